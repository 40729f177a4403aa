"""`kindred follow DIR`: at the end, the table is what the lines say, in their order."""

from __future__ import annotations

import json
import os
import random
import re
import threading
import time

import numpy as np
import pytest
from followers import Follower, Tables, follow, in_table, wait_for

from kindred import ServiceError
from kindred.follow import _files, _records
from kindred.follow._errors import BadRow
from kindred.follow._target import Target


# Histories with kills; a long run asks for more.
HISTORIES = int(os.environ.get("TEST_HISTORIES", "2"))
COUNT = iter(range(1000))


@pytest.fixture
def folder(tmp_path):
    """A directory whose name nobody else has."""
    made = tmp_path / f"f{next(COUNT)}"
    made.mkdir()
    return made


OPTIONS = ["--key", "id", "--vector", "v", "--attributes", "name=text,price=number,tags=list"]


def append(file, *objects):
    with file.open("ab") as opened:
        for one in objects:
            opened.write(one if isinstance(one, bytes) else json.dumps(one).encode() + b"\n")


def row(key, *vector, **attributes):
    return {"id": key, "v": list(vector or (1, 2, 3)), **attributes}


def expected(*objects):
    """The table of these lines."""
    rows = {}
    for one in objects:
        if "delete" in one:
            for key in one["delete"] if isinstance(one["delete"], list) else [one["delete"]]:
                rows.pop(str(key), None)
            continue
        attributes = {name: one[name] for name in ("name", "price", "tags") if one.get(name) is not None}
        rows[str(one["id"])] = (np.array(one["v"], np.float32).tobytes(), attributes)
    return rows


def test_files_that_are_there_lines_that_are_appended_and_files_that_are_added(tables, folder):
    first = [row("a", 1, 0.1, -1e-30, name="é\"\\", price=1.5, tags=["x", "y"]), row(7, name=None), row("gone"), {"delete": "gone"}]
    append(folder / "1.jsonl", *first, b"\r\n", b"\n")
    (folder / "readme.txt").write_text("no lines")
    (folder / ".hidden.jsonl").write_text("no lines")
    code, said = follow(str(folder), tables, *OPTIONS)
    assert code == 0 and "readme.txt is left alone" in said and "made the table" in said, said
    client = tables.client(folder.name)
    assert in_table(client) == expected(*first)
    # Appended, and in files that are added, of which one stands first.
    more = [row("a", 2, 2, 2), {"delete": [7, "none"]}, row("b", 1e-46, 3, 4, price=7)]
    append(folder / "1.jsonl", more[0])
    append(folder / "0.ndjson", more[1])
    append(folder / "2 é,.jsonl", more[2], b'{"id": "half", "v"')
    code, said = follow(str(folder), tables, *OPTIONS)
    assert code == 0 and "has no end yet" in said, said
    assert in_table(client) == expected(*first, *more)
    names = [source["name"] for source in client.sources()["sources"]]
    assert names == ["files/0.ndjson", "files/1.jsonl", "files/2%20%C3%A9%2C.jsonl"]
    position = client.sources()["position"]
    assert follow(str(folder), tables, *OPTIONS)[0] == 0
    assert client.sources()["position"] == position + 2
    # While it runs: the end of the half line, a new file, one that goes.
    follower = Follower(str(folder), tables, *OPTIONS)
    append(folder / "2 é,.jsonl", b': [9, 9, 9]}\n')
    wait_for(lambda: client.get_row("half").vector.tolist() == [9, 9, 9], follower)
    append(folder / "3.jsonl", row("c"))
    size = (folder / "3.jsonl").stat().st_size
    assert client.after(f"files/3.jsonl:{size}").get_row("c").key == "c"
    (folder / "1.jsonl").unlink()
    wait_for(lambda: "files/1.jsonl is gone" in follower.log(), follower)
    assert "files/1.jsonl" not in [source["name"] for source in client.sources()["sources"]]
    source = next(source for source in client.sources()["sources"] if source["name"] == "files/3.jsonl")
    assert source["behind"] == 0 and source["behind_seconds"] < 30
    assert follower.stop() == 0 and "goes on here" in follower.said, follower.said
    assert in_table(client).keys() == {"a", "b", "half", "c"}


BAD = [
    (b'{"id": "x", "v": [1, 2', "it is no JSON"), (b"\xff", "it is no UTF-8"), (b"[1]", "it is no object"),
    (b'{"v": [1, 2, 3]}', "it has no field id"), (b'{"id": null, "v": [1, 2, 3]}', "its key is null"),
    (b'{"id": true, "v": [1, 2, 3]}', "its key is true"), (b'{"id": 1.5, "v": [1, 2, 3]}', "its key is 1.5"),
    (b'{"id": "x"}', "it has no vector in the field v"), (b'{"id": "x", "v": null}', "it has no vector"),
    (b'{"id": "x", "v": [1, 2]}', "2 components instead of 3"), (b'{"id": "x", "v": [1, "2", 3]}', "instead of a list of numbers"),
    (b'{"id": "x", "v": [1, true, 3]}', "instead of a list of numbers"), (b'{"id": "x", "v": [NaN, 2, 3]}', "NaN is no number of JSON"),
    (b'{"id": "x", "v": [1e39, 2, 3]}', "not a finite float32"), (b'{"id": "x", "v": [1' + b"0" * 400 + b', 2, 3]}', "not a finite float32"),
    (b'{"id": "x", "v": [1, 2, 3], "name": "\\ud800"}', "surrogate"), (b'{"id": "\\ud800", "v": [1, 2, 3]}', "its key is"),
    (b"[" * 100_000, "nested too deeply"), (b'{"delete": [null]}', "its key is null"), (b'{"id": "x", "v": 5}', "instead of a list"),
    (b'{"id": "x", "v": []}', "instead of a list"), (b'{"id": "x", "v": [1' + b"0" * 5000 + b', 2, 3]}', "digits"),
]  # fmt: skip
# Those that the service refuses.
REFUSED = [(b'{"id": "y", "v": [1, 2, 3], "price": "much"}', "price"), (b'{"id": "", "v": [1, 2, 3]}', "key")]


@pytest.mark.parametrize("bad, reason", BAD, ids=[reason for _, reason in BAD])
def test_lines_that_are_no_rows_are_told_with_the_reason(tmp_path, bad, reason):
    fields = _records.Fields("v", {"name": "text", "price": "number"})
    with pytest.raises(BadRow, match=re.escape(reason)):
        _files.Files(str(tmp_path), "id").changes(bad, fields, 3)


@pytest.mark.parametrize("bad, reason", [BAD[0], BAD[9], *REFUSED])
def test_a_bad_line_stops_it_behind_those_before_or_is_left_out(tables, folder, bad, reason):
    append(folder / "a.jsonl", row("x"), row("before"), bad + b"\n", row("after"))
    start = len(json.dumps(row("x"))) + len(json.dumps(row("before"))) + 2
    code, said = follow(str(folder), tables, *OPTIONS)
    assert code == 1 and reason in said and f"byte {start} of a.jsonl" in said and "--on-bad-row skip" in said, said
    client = tables.client(folder.name)
    assert in_table(client) == expected(row("x"), row("before"))
    # Again the same, and nothing is done twice.
    position = client.sources()["position"]
    assert follow(str(folder), tables, *OPTIONS)[0] == 1
    assert client.sources()["position"] == position + 2
    append(folder / "a.jsonl", *(other + b"\n" for other, _ in BAD + REFUSED))
    code, said = follow(str(folder), tables, *OPTIONS, "--on-bad-row", "skip")
    assert code == 0 and " rows were left out" in said, said
    # Of two bad rows with the same key that the service refuses, the later one counts; only the first ten are named.
    assert f"{len(BAD) + len(REFUSED) + ((bad, reason) in BAD)} rows were left out" in said, said
    # A row that becomes a bad one is deleted.
    assert in_table(client).keys() == {"before", "after"}


def test_files_that_are_rewritten_stop_it_and_all_is_read_again(tables, folder):
    file = folder / "a.jsonl"
    append(file, row("a"), row("b", name="long enough to be cut"))
    assert follow(str(folder), tables, *OPTIONS)[0] == 0
    client = tables.client(folder.name)
    for content in (json.dumps(row("new")) + "\n", "x" * 1000 + "\n"):
        file.write_text(content)
        code, said = follow(str(folder), tables, *OPTIONS)
        assert code == 1 and "was written anew or cut" in said and "--resnapshot" in said, said
    file.write_text(json.dumps(row("new")) + "\n")
    append(folder / "b.jsonl", row("more"), row("b"))
    code, said = follow(str(folder), tables, *OPTIONS, "--resnapshot")
    assert code == 0 and "reading everything again" in said and "1 others deleted" in said, said
    assert in_table(client).keys() == {"new", "more", "b"}
    assert [source["name"] for source in client.sources()["sources"]] == ["files/a.jsonl", "files/b.jsonl"]
    # While it runs, another file of the same name.
    follower = Follower(str(folder), tables, *OPTIONS)
    wait_for(lambda: "following" in follower.log(), follower)
    (folder / "other").write_text(json.dumps(row("newer")) + "\n" + json.dumps(row("newest")) + "\n")
    (folder / "other").rename(file)
    assert follower.wait() == 1 and "was written anew" in follower.said, follower.said
    code, _ = follow(str(folder), tables, *OPTIONS, "--resnapshot")
    assert in_table(client).keys() == {"newer", "newest", "more", "b"}


def test_what_is_missing_is_told_with_its_cure(tables, folder):
    def refused(part, *options, code=1, source=None):
        found, said = follow(str(source or folder), tables, *options)
        assert found == code and part in said, said

    append(folder / "a.jsonl", row("a"))
    refused("--key is missing", "--vector", "v", code=2)
    refused("--table is not for", *OPTIONS, "--table", "t", code=2)
    refused("mysql:// is unknown", *OPTIONS, source="mysql://host/t", code=2)
    refused("give the type of each attribute, such as --attributes name=text", "--key", "id", "--vector", "v", "--attributes", "name")
    refused("the types are text, list", "--key", "id", "--vector", "v", "--attributes", "name=string")
    refused("can't be read: No such file", *OPTIONS, source=folder / "none")
    # A table with other rows is not overwritten by chance, and another's shape is refused.
    other = f"{folder.name}_other"
    client = tables.client(other)
    client.create_model(other, 3)
    client.put_rows(["mine"], [[1, 2, 3]], source_position="postgres:0/5")
    refused("and follows postgres; --resnapshot replaces them", "--key", "id", "--vector", "v", "--model", other)
    refused("has not the attribute name", *OPTIONS, "--model", other)
    assert follow(str(folder), tables, "--key", "id", "--vector", "v", "--model", other, "--resnapshot")[0] == 0
    assert in_table(client).keys() == {"a"}
    assert [source["name"] for source in client.sources()["sources"]] == ["files/a.jsonl"]
    # Types come from the table.
    assert follow(str(folder), tables, *OPTIONS)[0] == 0
    append(folder / "a.jsonl", row("b", price=3))
    assert follow(str(folder), tables, "--key", "id", "--vector", "v", "--attributes", "price")[0] == 0
    assert tables.client(folder.name).get_row("b").attributes == {"price": 3}


def test_many_files_and_rows_are_read_in_order(tables, folder):
    lines = []
    for number in range(900):
        rows = [row(f"k{number % 50}", number, n, 1, price=number) for n in range(3)]
        append(folder / f"{number:04}-a-rather-long-name.jsonl", *rows)
        lines += rows
    follower = Follower(str(folder), tables, *OPTIONS)
    client = tables.client(folder.name)
    wait_for(lambda: len(client.sources()["sources"]) == 900, follower)
    assert follower.stop() == 0
    assert in_table(client) == expected(*lines)
    for number in range(900, 1000):
        append(folder / f"{number:04}.jsonl", row("x"))
    code, said = follow(str(folder), tables, *OPTIONS)
    assert code == 1 and "follows at most 990" in said and "their rows stay" in said, said
    for file in sorted(folder.iterdir())[:890]:
        file.unlink()
    assert follow(str(folder), tables, *OPTIONS)[0] == 0
    assert len(client.sources()["sources"]) == 110


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_whatever_is_killed_nothing_is_lost_and_nothing_is_doubled(tmp_path, folder, seed):
    rng, written = random.Random(seed), []
    (tmp_path / "tables").mkdir()
    service = Tables(str(tmp_path / "tables"), "--fold-changed-ratio", "0.3")
    stop = threading.Event()

    def write():
        own = random.Random(seed)
        while not stop.is_set():
            file = folder / f"{len(written) // 400:03}.jsonl"
            key = f"k{own.randrange(200)}"
            line = {"delete": key} if own.random() < 0.2 else row(key, own.random(), 1, len(written), price=len(written))
            raw = json.dumps(line).encode() + b"\n"
            cut = own.randrange(len(raw))
            # A line that comes in two parts.
            append(file, raw[:cut])
            append(file, raw[cut:])
            written.append(line)
            time.sleep(0.001)

    writer = threading.Thread(target=write)
    append(folder / "000.jsonl", *(lines := [row(f"k{n}") for n in range(200)]))
    writer.start()
    follower = Follower(str(folder), service, *OPTIONS)
    try:
        for _ in range(6):
            time.sleep(rng.random() * 0.8)
            victim = rng.choice([follower, service])
            victim.kill()
            time.sleep(rng.random() * 0.2)
            victim.start()
            if follower.process.poll() is not None:
                pytest.fail(f"the follower ended: {follower.wait()} {follower.said}")
        stop.set()
        writer.join()
        follower.kill()
        code, said = follow(str(folder), service, *OPTIONS)
        assert code == 0, said
        assert in_table(service.client(folder.name)) == expected(*lines, *written)
    finally:
        stop.set()
        follower.process.kill()
        service.close()


def test_an_interrupted_reading_of_everything_begins_anew(tables, folder):
    append(folder / "a.jsonl", row("a"))
    assert follow(str(folder), tables, *OPTIONS)[0] == 0
    client = tables.client(folder.name)
    client.put_rows(["mine"], [[1, 2, 3]], source_position="files/copying:1,files/a.jsonl:-")
    code, said = follow(str(folder), tables, *OPTIONS)
    assert code == 0 and "it was interrupted" in said, said
    assert in_table(client).keys() == {"a"}
    assert [source["name"] for source in client.sources()["sources"]] == ["files/a.jsonl"]
    # One who changes rows beside it is found.
    follower = Follower(str(folder), tables, *OPTIONS)
    wait_for(lambda: "following" in follower.log(), follower)
    client.put_rows(["mine"], [[1, 2, 3]])
    append(folder / "a.jsonl", row("b"))
    assert follower.wait() == 1 and "somebody else changes the rows" in follower.said, follower.said


def test_a_late_request_of_a_follower_that_was_killed_is_refused(tables, folder):
    append(folder / "a.jsonl", row("a"))
    assert follow(str(folder), tables, *OPTIONS)[0] == 0
    client = tables.client(folder.name)
    before = client.sources()
    follower = Follower(str(folder), tables, *OPTIONS)
    wait_for(lambda: "following" in follower.log(), follower)
    with pytest.raises(ServiceError) as error:
        client.put_rows(["late"], [[1, 2, 3]], if_position=f"{before['version']}/{before['position']}")
    assert error.value.code == "position_changed"
    append(folder / "a.jsonl", row("b"))
    wait_for(lambda: in_table(client).keys() == {"a", "b"}, follower)
    # Another that may not begin leaves this one alone.
    code, said = follow(str(folder), tables, *OPTIONS[:-1], "none=text")
    assert code == 1 and "has not the attribute none" in said, said
    append(folder / "a.jsonl", row("c"))
    wait_for(lambda: in_table(client).keys() == {"a", "b", "c"}, follower)
    assert follower.stop() == 0, follower.said


@pytest.mark.parametrize("dim", [[], ["--dim", "3"]])
def test_everything_is_read_again_into_a_table_that_is_not_there(tables, folder, dim):
    append(folder / "a.jsonl", row("a"))
    code, said = follow(str(folder), tables, *OPTIONS, "--resnapshot", *dim)
    assert code == 0, said
    assert in_table(tables.client(folder.name)).keys() == {"a"}


def test_a_request_that_comes_while_a_follower_begins_makes_it_begin_again(tables, folder):
    client = tables.client(folder.name)
    client.create_model(folder.name, 1)
    target = Target(tables.url, folder.name, None, lambda: False)
    begun = []

    def attempt():
        sources = target.sources()
        begun.append(sources.get("x", {}).get("position"))
        if len(begun) < 3:
            client.put_rows(["late"], [[1]], source_position=f"x:{len(begun)}")
        target.claim()
        return len(begun)

    at = client.sources()
    assert target.begin(attempt) == 3 and begun == [None, "1", "2"]
    # The two requests that a snapshot has on their way.
    for late in (2, 3):
        with pytest.raises(ServiceError) as error:
            client.put_rows(["late"], [[1]], if_position=f"{at['version']}/{at['position'] + late}")
        assert error.value.code == "position_changed"
    assert [source["name"] for source in client.sources()["sources"]] == ["x"]
    target.client.close()


def test_lines_end_with_a_line_break_alone(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b'{"id": "a\xe2\x80\xa8b", "v": [1]}\n{"id":\r"c", "v": [2]}\r\nrest')
    files = _files.Files(str(tmp_path), "id")
    files.begin({})
    records = files.poll()
    fields = _records.Fields("v", {})
    keys = [files.changes(record.content, fields, 1)[0][0] for record in records]
    assert keys == ["a\u2028b", "c"] and files.reached() == {"files/a.jsonl": records[-1].end}
    with pytest.raises(BadRow, match="nested too deeply"):
        files.changes(b"[" * 100_000, fields, 1)
