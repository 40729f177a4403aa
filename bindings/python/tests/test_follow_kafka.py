"""`kindred follow kafka://…` against librdkafka's mock cluster: at the end, the table is the last message of each key."""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import threading
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("confluent_kafka")

from followers import Follower, Tables, follow, in_table, wait_for  # noqa: E402
from mock_kafka import Kafka  # noqa: E402

from kindred.follow import _cli, _kafka  # noqa: E402
from kindred.follow._errors import FollowError  # noqa: E402


@pytest.fixture(scope="module")
def kafka():
    cluster = Kafka()
    # Only such a one tells topics' identities.
    cluster.call("set_controller_id", 1)
    yield cluster
    cluster.close()


# Histories with kills; a long run asks for more.
HISTORIES = int(os.environ.get("TEST_HISTORIES", "2"))
COUNT = iter(range(1000))


@pytest.fixture
def name():
    """The name of a topic that nobody else has."""
    return f"t.{next(COUNT)}"


OPTIONS = ["--vector", "v", "--attributes", "price=number,name=text"]


def value(*vector, **attributes):
    return {"v": list(vector or (1, 2, 3)), "other": [None], **attributes}


def as_row(one):
    attributes = {name: one[name] for name in ("price", "name") if one.get(name) is not None}
    return np.array(one["v"], np.float32).tobytes(), attributes


def test_messages_tombstones_and_partitions(kafka, tables, name, tmp_path):
    source = kafka.topic(name, 3)
    last = {}
    for n in range(600):
        key = f"k{n % 150}"
        one = None if n % 7 == 0 else value(n, 0.1, -1e-30, price=n, name=f"é{n}")
        kafka.send(name, key, one)
        last[key] = one
    kafka.sent()
    code, said = follow(source, tables, *OPTIONS)
    assert code == 0 and f"made the table {name}" in said and "600 rows and deletions" in said, said
    client = tables.client(name)

    def same():
        assert in_table(client) == {key: as_row(one) for key, one in last.items() if one is not None}

    same()
    sources = {source["name"]: int(source["position"]) for source in client.sources()["sources"]}
    offsets = [sources[f"kafka/{name}/{partition}"] for partition in range(3)]
    assert sum(offsets) == 600 and min(offsets) > 0 and sources[f"kafka/{name}/has-until"] > 1.7e9, sources
    position = client.sources()["position"]
    code, said = follow(source, tables, *OPTIONS)
    assert code == 0 and "0 rows and deletions" in said, said
    assert client.sources()["position"] == position + 2
    # Who asks with the offset that it got reads what it wrote.
    ready = tmp_path / "ready"
    follower = Follower(source, tables, *OPTIONS, "--ready-file", str(ready))
    wait_for(ready.exists, follower)
    for n in range(20):
        kafka.send(name, "own", value(n, 1, 1), partition=1)
        kafka.sent()
        offsets[1] += 1
        assert client.after(f"kafka/{name}/1:{offsets[1]}").get_row("own").vector[0] == n
    last["own"] = value(19, 1, 1)
    kafka.send(name, "k3", None)
    last["k3"] = None
    kafka.sent()
    wait_for(lambda: client.count('key = "k3"') == 0, follower)
    # Leaders change, and a broker is away for a while.
    for partition in range(3):
        kafka.call("partition_set_leader", name, partition, 1 + (partition + 1) % 3)
    kafka.send(name, "k4", value(4, 4, 4))
    kafka.call("broker_set_down", 2)
    time.sleep(0.5)
    kafka.call("broker_set_up", 2)
    kafka.send(name, "k5", value(5, 5, 5))
    last.update(k4=value(4, 4, 4), k5=value(5, 5, 5))
    kafka.sent()
    wait_for(lambda: client.get_row("k5").vector[0] == 5 and client.get_row("k4").vector[0] == 4, follower)
    wait_for(lambda: all(source["behind"] == 0 for source in client.sources()["sources"] if source["name"][-1].isdigit()), follower)
    assert follower.stop() == 0
    same()


BAD = [
    ("x", b'{"v": [1, 2', "it is no JSON"), (None, b'{"v": [1, 2, 3]}', "it has no key"), ("y", b'{"v": [1, 2, 3], "price": "much"}', "price"),
    ("x", b"", "it is no JSON"), ("x", b"null", "it is no object"), ("x", b"{}", "it has no vector"), ("", b'{"v": [1, 2, 3]}', "key"),
    (b"\xff", b'{"v": [1, 2, 3]}', "its key is no UTF-8"), ("x", b'{"v": [1, 2]}', "2 components instead of 3"),
    (b"\xff", None, "its key is no UTF-8"),
]  # fmt: skip


@pytest.mark.parametrize("key, bad, reason", BAD[:3])
def test_a_poison_message_stops_it_or_is_left_out(kafka, tables, name, key, bad, reason):
    source = kafka.topic(name)
    kafka.send(name, "x", value(5, 5, 5))
    kafka.send(name, "before", value())
    kafka.send(name, key, bad, partition=0)
    kafka.send(name, "after", value())
    kafka.sent()
    code, said = follow(source, tables, *OPTIONS)
    assert code == 1 and reason in said and f"offset 2 of kafka/{name}/0" in said and "--on-bad-row skip" in said, said
    client = tables.client(name)
    assert in_table(client).keys() == {"x", "before"}
    position = client.sources()["position"]
    assert follow(source, tables, *OPTIONS)[0] == 1
    assert client.sources()["position"] == position + 2
    for other, raw, _ in BAD:
        kafka.send(name, other, raw, partition=0)
    kafka.sent()
    code, said = follow(source, tables, *OPTIONS, "--on-bad-row", "skip")
    # Of two bad rows with the same key that the service refuses, the later one counts.
    assert code == 0 and f"{len(BAD) + (key != 'y')} rows were left out" in said and all(part in said for *_, part in BAD[:9]), said
    assert in_table(client).keys() == {"before", "after"}


def test_keys_may_be_objects(kafka, tables, name):
    source = kafka.topic(name)
    kafka.send(name, json.dumps({"id": 4711}), value())
    kafka.send(name, json.dumps({"id": "b"}), value())
    kafka.send(name, json.dumps({"id": "b"}), None)
    kafka.sent()
    assert follow(source, tables, *OPTIONS, "--key", "id")[0] == 0
    assert in_table(tables.client(name)).keys() == {"4711"}
    kafka.send(name, "b", value())
    kafka.sent()
    code, said = follow(source, tables, *OPTIONS, "--key", "id")
    assert code == 1 and "no JSON" in said, said


def test_messages_that_are_gone_and_topics_made_anew_are_found(kafka, tables, name):
    source = kafka.topic(name, 2)
    for n in range(20):
        kafka.send(name, f"k{n}", value(n, 1, 1), partition=n % 2)
    kafka.sent()
    assert follow(source, tables, *OPTIONS)[0] == 0
    client = tables.client(name)
    for n in range(20):
        kafka.send(name, f"more{n}", value(n, 1, 1), partition=0)
    kafka.sent()
    # As its retention would: offsets 10 to 14 are gone, and the table does not have them.
    assert kafka.call("partition_delete_records", name, 0, 15) == 0
    code, said = follow(source, tables, *OPTIONS)
    assert code == 1 and f"the table is at offset 10 of kafka/{name}/0, which has 15 to 30" in said and "--resnapshot" in said, said
    code, said = follow(source, tables, *OPTIONS, "--resnapshot")
    assert code == 0 and "everything is read again" in said, said
    assert in_table(client).keys() == {f"k{n}" for n in range(1, 20, 2)} | {f"more{n}" for n in range(5, 20)}
    # A topic of the same name, with more messages than the one before.
    assert kafka.call("topic_delete", name) == 0
    time.sleep(0.1)
    kafka.topic(name, 2)
    for n in range(100):
        kafka.send(name, f"new{n}", value(n, 1, 1), partition=n % 2)
    kafka.sent()
    code, said = follow(source, tables, *OPTIONS)
    assert code == 0 and "is another topic of the same name" in said, said
    assert in_table(client).keys() == {f"new{n}" for n in range(100)}
    # While somebody follows.
    follower = Follower(source, tables, *OPTIONS)
    wait_for(lambda: "following" in follower.log(), follower)
    assert kafka.call("topic_delete", name) == 0
    kafka.topic(name, 2)
    kafka.send(name, "newest", value())
    kafka.sent()
    assert follower.wait() == 1 and "started again, it reads all of it" in follower.said, follower.said
    assert follow(source, tables, *OPTIONS)[0] == 0
    assert in_table(client).keys() == {"newest"}


def test_who_was_away_for_longer_than_deletions_are_kept_reads_everything_again(kafka, tables, name):
    source = kafka.topic(name)
    kafka.send(name, "a", value())
    kafka.sent()
    assert follow(source, tables, *OPTIONS)[0] == 0
    client = tables.client(name)
    # As it would be a day later, after a deletion of which nothing is left.
    client.put_rows(["deleted"], [[1, 2, 3]], source_position=f"kafka/{name}/has-until:1")
    code, said = follow(source, tables, *OPTIONS)
    assert code == 0 and "nobody followed for" in said and "1 others deleted" in said, said
    assert in_table(client).keys() == {"a"}
    code, said = follow(source, tables, *OPTIONS)
    assert code == 0 and "again" not in said, said


def test_what_is_missing_is_told_with_its_cure(kafka, tables, name, tmp_path):
    source = kafka.topic(name)

    def refused(part, *options, code=1, address=source):
        found, said = follow(address, tables, *options)
        assert found == code and part in said, said
        assert "hush" not in said

    refused("Unknown topic", *OPTIONS, address=source + "none")
    refused("make it first", *OPTIONS, address=source + "none")
    refused("kafka://HOST:PORT", *OPTIONS, address="kafka://host")
    refused("in --kafka-config", *OPTIONS, address="kafka://me:hush@host/t")
    refused("--where is not for kafka", *OPTIONS, "--where", "x > 1", code=2)
    config = tmp_path / "kafka.properties"
    config.write_text("# TLS\nno.such.setting=1\n")
    refused("No such configuration property", *OPTIONS, "--kafka-config", str(config))
    config.write_text("sasl.password\n")
    refused("line 1 of", *OPTIONS, "--kafka-config", str(config))
    refused("can't be read", *OPTIONS, "--kafka-config", str(tmp_path / "none"))
    # It holds, whatever else is set.
    config.write_text("enable.auto.commit=true\nauto.offset.reset=latest\nclient.id=mine\n")
    kafka.send(name, "a", value())
    kafka.sent()
    assert follow(source, tables, *OPTIONS, "--kafka-config", str(config))[0] == 0
    assert in_table(tables.client(name)).keys() == {"a"}
    # A second follower of the same table ends one of the two, and no row is lost.
    one, two = Follower(source, tables, *OPTIONS), Follower(source, tables, *OPTIONS)
    for follower in (one, two):
        wait_for(lambda: "following" in follower.log(), follower)
    kafka.send(name, "b", value())
    kafka.sent()
    wait_for(lambda: one.process.poll() is not None or two.process.poll() is not None, one)
    ended, other = (one, two) if one.process.poll() is not None else (two, one)
    assert ended.wait() == 1 and "somebody else changes the rows" in ended.said, ended.said
    kafka.send(name, "c", value())
    kafka.sent()
    wait_for(lambda: in_table(tables.client(name)).keys() == {"a", "b", "c"}, other)
    assert other.stop() == 0


def test_a_partition_whose_leader_is_unknown_is_asked_again(kafka, name):
    followed = _kafka.Kafka(kafka.topic(name), None, None, lambda: False)
    consumer, failures = followed._consumer, [_kafka.KafkaError._UNKNOWN_PARTITION] * 2

    class Without:
        """A consumer that knows no leader at first."""

        def __getattr__(self, attribute):
            return getattr(consumer, attribute)

        def get_watermark_offsets(self, partition, **options):
            if failures:
                raise _kafka.KafkaException(_kafka.KafkaError(failures.pop()))
            return consumer.get_watermark_offsets(partition, **options)

    followed._consumer = Without()
    kafka.send(name, "a", value(), partition=0)
    kafka.sent()
    assert followed._watermarks(0) == (0, 1) and not failures
    failures.append(_kafka.KafkaError._UNKNOWN_PARTITION)
    with pytest.raises(FollowError, match="Unknown partition"):
        followed._watermarks(7)
    followed.close()


def test_brokers_that_are_away_are_waited_for(kafka, tables, name):
    source = kafka.topic(name)
    kafka.send(name, "a", value())
    kafka.sent()
    for broker in (1, 2, 3):
        kafka.call("broker_set_down", broker)
    try:
        follower = Follower(source, tables, *OPTIONS)
        wait_for(lambda: "trying again" in follower.log(), follower)
        assert follower.process.poll() is None
    finally:
        for broker in (1, 2, 3):
            kafka.call("broker_set_up", broker)
    client = tables.client(name)
    wait_for(lambda: client.get_row("a").key == "a", follower, 60)
    assert follower.stop() == 0, follower.said


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_whatever_is_killed_nothing_is_lost_and_nothing_is_doubled(kafka, tmp_path, name, seed):
    rng, last = random.Random(seed), {}
    source = kafka.topic(name, 4)
    service = Tables(str(tmp_path), "--fold-changed-ratio", "0.3")
    stop = threading.Event()

    def write():
        own = random.Random(seed)
        while not stop.is_set():
            key = f"k{own.randrange(200)}"
            last[key] = None if own.random() < 0.2 else value(own.random(), 1, 2, price=own.randrange(1000))
            kafka.send(name, key, last[key])
            time.sleep(0.001)

    writer = threading.Thread(target=write)
    writer.start()
    follower = Follower(source, service, *OPTIONS)
    try:
        for _ in range(8):
            time.sleep(rng.random() * 0.8)
            victim = rng.choice([follower, service, "broker"])
            broker = rng.randrange(1, 4)
            kafka.call("broker_set_down", broker) if victim == "broker" else victim.kill()
            time.sleep(rng.random() * 0.2)
            kafka.call("broker_set_up", broker) if victim == "broker" else victim.start()
            kafka.call("partition_set_leader", name, rng.randrange(4), rng.randrange(1, 4))
            if follower.process.poll() is not None:
                pytest.fail(f"the follower ended: {follower.wait()} {follower.said}")
        stop.set()
        writer.join()
        kafka.sent()
        follower.kill()
        code, said = follow(source, service, *OPTIONS)
        assert code == 0, said
        assert in_table(service.client(name)) == {key: as_row(one) for key, one in last.items() if one is not None}
    finally:
        stop.set()
        follower.process.kill()
        service.close()


def test_partitions_that_are_added_are_followed(kafka, name):
    """The mock cluster can't add one, so the answer to the question for them is changed."""
    source = kafka.topic(name, 3)
    for partition in range(3):
        kafka.send(name, f"k{partition}", value(), partition=partition)
    kafka.sent()
    log = _kafka.Kafka(source, None, None, lambda: False)
    hidden = log._consumer.list_topics

    class Fewer:
        def __init__(self, consumer):
            self._consumer = consumer

        def __getattr__(self, what):
            return getattr(self._consumer, what)

        def list_topics(self, *arguments, **named):
            found = hidden(*arguments, **named)
            del found.topics[name].partitions[2]
            return found

    real, log._consumer = log._consumer, Fewer(log._consumer)
    log.begin({})
    seen = []
    ends = time.monotonic() + 20
    while len(seen) < 2 and time.monotonic() < ends:
        seen += [record.content.key() for record in log.poll()]
    log._consumer, log._looked_at = real, 0.0
    while len(seen) < 3 and time.monotonic() < ends:
        seen += [record.content.key() for record in log.poll()]
    assert sorted(seen) == [b"k0", b"k1", b"k2"]
    assert log.reached() == log.ends() == {f"kafka/{name}/{partition}": 1 for partition in range(3)}
    log.close()


def test_command_lines_of_documents_are_those_of_the_program():
    page = (Path(__file__).parents[3] / "docs/kafka.md").read_text().replace("\\\n", " ")
    lines = re.findall(r"^    (kindred follow .*)", page, re.M)
    assert len(lines) >= 2, lines
    for line in lines:
        words = shlex.split(line.rstrip("& "))
        assert _cli._arguments(words[2:]).vector == "embedding"
    options = set(re.findall(r"`(--[a-z-]+)[` ]", page))
    assert len(options) >= 4 and all(option in _cli._parser().format_help() for option in options), options
