"""Clients: tables are made, changed and read, each change once."""

from __future__ import annotations

import itertools
import json
import pickle
import subprocess
import threading
import urllib.request

import numpy as np
import pytest
from clients import FROG, KINDS, both
from service import Service, answer, problem, program

import kindred

DONE = {"model": "m", "version": "0" * 16, "position": 3, "inserted": 1, "replaced": 0, "deleted": 0, "missing": 0, "durable": True,
        "repeated": False}  # fmt: skip
CHANGED = answer(json.dumps(DONE))
ODD_KEYS = ["a/b", "a%2Fb", "é ü+&?#", "..", ".", "日本語", "a\\b", ' "quoted" ']
COUNT = itertools.count()


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    service = Service("--models-dir", str(tmp_path_factory.mktemp("tables")), "--fold-changed-ratio", "0")
    yield service
    service.stop()


@pytest.fixture(params=KINDS, ids=["sync", "async"])
def table(request, tables):
    """A client of a new table of 3 dimensions."""
    name = f"t{next(COUNT)}"
    with request.param(tables.url, model=name) as client:
        made = client.create_model(name, 3, attributes={"n": "integer", "brand": "text"})
        assert (made["name"], made["rows"], made["dim"]) == (name, 0, 3)
        yield client


def figures(change):
    return change[2:7]


def keys(rows):
    return [row.key for row in rows]


@pytest.mark.parametrize("as_array", [lambda rows: rows, np.array, lambda rows: np.asfortranarray(np.array(rows, np.float16))])
def test_rows_are_put_read_and_deleted(table, as_array):
    assert list(table.rows()) == [] and table.nearest(np.ones(3)) == []
    vectors = as_array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.0]])
    change = table.put_rows(["a", "b"], vectors, attributes=[{"n": np.int64(5), "brand": "é"}, None])
    assert figures(change) == (1, 2, 0, 0, 0) and (change.is_durable, change.is_repeated, change.skipped) == (True, False, [])
    row = table.get_row("a")
    assert row[:2] == ("a", 0) and row.bias is None and row.attributes == {"n": 5, "brand": "é"}
    assert row.vector.dtype == np.float32 and row.vector.tolist() == [1, 0, 0.5] and not row.vector.flags.writeable
    assert [neighbor.word for neighbor in table.nearest("a", filter="n IS NULL")] == ["b"]
    assert figures(table.put_rows(iter(["a"]), as_array([[0.0, 0.0, 1.0]]))) == (2, 0, 1, 0, 0)
    assert figures(table.delete_rows("b")) == (3, 0, 0, 1, 0)
    assert figures(table.delete_rows(["b", "a"])) == (4, 0, 0, 1, 1)
    with pytest.raises(kindred.UnknownWordError, match="no row `a`$") as caught:
        table.get_row("a")
    assert (caught.value.words, caught.value.status, caught.value.code) == (["a"], 404, "no_such_row")


def test_any_key_comes_back(table):
    vectors = np.random.default_rng(3).normal(size=(len(ODD_KEYS), 3))
    for given in (vectors, vectors.tolist()):
        table.put_rows(ODD_KEYS, given)
        assert keys(table.rows()) == ODD_KEYS
        for key, vector in zip(ODD_KEYS, vectors):
            assert table.get_row(key).vector.tolist() == vector.astype(np.float32).tolist()
    for key in ODD_KEYS:
        assert table.delete_rows(key).deleted == 1
    assert list(table.rows()) == []


def test_arrays_are_put_as_they_look(table):
    wide = np.arange(24, dtype=np.float64).reshape(4, 6)[::-2, ::2]
    assert not wide.flags.c_contiguous
    table.put_rows(["x", "y"], wide)
    assert [row.vector.tolist() for row in table.rows()] == wide.tolist()
    table.put_rows(["z"], wide[1:].astype(">f4"))
    assert table.get_row("z").vector.tolist() == wide[1].tolist()


def test_pages_are_of_one_position(table):
    table.put_rows([f"k{n}" for n in range(2500)], np.random.default_rng(1).normal(size=(2500, 3)),
                   attributes=[{"n": n % 7} for n in range(2500)])  # fmt: skip
    expected = [f"k{n}" for n in range(2500)]
    assert keys(table.rows()) == expected
    assert keys(table.rows(with_vectors=False)) == expected
    assert keys(table.rows(filter="n = 3", with_vectors=False, limit=150)) == expected[3::7][:150]
    assert keys(table.rows(limit=101)) == expected[:101] and list(table.rows(limit=0)) == []
    first = table.rows_page(filter="n = 3", limit=10)
    table.delete_rows(filter="n = 3")
    second = table.rows_page(filter="n = 3", limit=1000, after=first.next)
    assert keys(first.rows + second.rows) == expected[3::7]
    assert (first.position, second.position, second.next) == (1, 1, None)
    assert table.count("n = 3") == 0
    with pytest.raises(kindred.InvalidValueError, match="`limit`"):
        table.rows_page(limit=1001)


def test_bad_rows_are_named(table):
    bad = np.array([[1, 2, 3], [np.nan, 0, 0], [1, 1, 1], [np.inf, 1, 1]])
    with pytest.raises(kindred.BadRowsError, match="2 rows are bad, so nothing was changed") as caught:
        table.put_rows(["a", "b", "c", ""], bad)
    assert [(row.place, row.key) for row in caught.value.rows] == [(1, "b"), (3, "")]
    assert isinstance(caught.value, ValueError) and all(row.reason for row in caught.value.rows)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.rows, str(again)) == (caught.value.rows, str(caught.value))
    with pytest.raises(kindred.BadRowsError, match='2 rows are bad, so nothing was changed: row 1 \\("b"\\)') as caught:
        table.put_rows(["a", "b", "c", "d"], bad.tolist())
    assert [(row.place, row.key) for row in caught.value.rows] == [(1, "b"), (3, "d")]
    with pytest.raises(kindred.BadRowsError) as caught:
        table.put_rows(["a", "b"], [[1, 2], [1, 2, 3]], attributes=[{}, {"nosuch": 1}])
    assert [row.place for row in caught.value.rows] == [0, 1]
    for twice in ([[1.0, 2, 3]] * 2, np.ones((2, 3))):
        with pytest.raises(kindred.BadRowsError):
            table.put_rows(["a", "a"], twice)
    assert list(table.rows()) == []
    change = table.put_rows(["a", "b", "c", "d"], bad, on_error="skip")
    assert [(row.place, row.key) for row in change.skipped] == [(1, "b"), (3, "d")]
    assert keys(table.rows()) == ["a", "c"]


def test_a_change_may_be_for_one_position_and_store_that_of_another_system(table):
    first = table.put_rows(["a", "b"], np.ones((2, 3)), source_position="postgres:0/10")
    second = table.put_rows(["c"], [[1, 2, 3]], delete=["a", "nosuch"], if_position=first)
    assert figures(second) == (2, 1, 0, 1, 1)
    assert figures(table.put_rows([], [], delete=["b"], source_position="postgres:0/20,kafka/t/0:7")) == (3, 0, 0, 1, 0)
    assert figures(table.put_rows(["d"], np.ones((1, 3), np.float32), delete=["c"])) == (4, 1, 0, 1, 0)
    for change in (
        lambda: table.put_rows(["x"], np.ones((1, 3)), if_position=second),
        lambda: table.delete_rows("d", if_position=second),
        lambda: table.delete_rows(filter="key = d", if_position=f"{second.version}/{second.position}"),
    ):
        with pytest.raises(kindred.ServiceError) as caught:
            change()
        assert (caught.value.status, caught.value.code) == (412, "position_changed")
    expected = [{"name": "kafka/t/0", "position": "7"}, {"name": "postgres", "position": "0/20"}]
    assert (table.sources()["sources"], table.sources()["position"]) == (expected, 4)
    report = {"name": "postgres", "position": "0/30", "behind": 5, "behind_seconds": 0.5}
    assert table.report_sources([report])["sources"][1]["reached"] == "0/30"
    assert keys(table.after("postgres:0/30").rows()) == ["d"]
    for wrong in ("a b:1", "", 5):
        with pytest.raises(kindred.InvalidValueError, match="source_position"):
            table.put_rows(["x"], np.ones((1, 3)), source_position=wrong)
    with pytest.raises(kindred.InvalidValueError):
        table.put_rows(["x"], np.ones((1, 3)), source_position="postgres")


def test_what_is_wrong_is_refused(table):
    with pytest.raises(kindred.DimensionError):
        table.put_rows(["a"], np.ones((1, 4)))
    with pytest.raises(kindred.DimensionError, match="`vectors` must be"):
        table.put_rows(["a"], np.ones(3))
    for wrong in (
        lambda: table.put_rows([], np.ones((0, 3))),
        lambda: table.put_rows([], []),
        lambda: table.put_rows("a", np.ones((1, 3))),
        lambda: table.put_rows([5], np.ones((1, 3))),
        lambda: table.put_rows(["a"], np.ones((2, 3))),
        lambda: table.put_rows(["a"], [[1, 2, 3]] * 2),
        lambda: table.put_rows(["a"], np.ones((1, 3)), attributes=[]),
        lambda: table.put_rows(["a"], np.ones((1, 3), np.int64)),
        lambda: table.put_rows(["a"], np.ones((1, 3)), on_error="ignore"),
        lambda: table.put_rows(["a"], np.ones((1, 3)), durability="sync"),
        lambda: table.put_rows(["a"], np.ones((1, 3)), idempotency_key="a b"),
        lambda: table.put_rows(["a"], np.ones((1, 3)), attributes=[{"n": object()}]),
        lambda: table.put_rows(["\ud800"], np.ones((1, 3))),
        lambda: table.delete_rows(),
        lambda: table.delete_rows([]),
        lambda: table.delete_rows("a", filter="n = 1"),
        lambda: table.delete_rows(filter="n = 1", idempotency_key="k"),
        lambda: table.delete_rows(filter="n ="),
        lambda: table.get_row(5),
        lambda: table.create_model("..", 3),
        lambda: table.create_model("x", 0),
        lambda: table.create_model("x", 3, metric="l2"),
        lambda: table.create_model("x", 3, attributes={"n": "int"}),
        lambda: table.delete_model(".."),
    ):
        with pytest.raises(kindred.QuestionError):
            wrong()
    assert list(table.rows()) == []
    with pytest.raises(kindred.ServiceError, match="409 model_exists"):
        table.create_model(table.model()["name"], 3)


def test_a_repeated_change_is_done_once(table):
    first = table.put_rows(["a"], np.ones((1, 3)), idempotency_key="k1")
    second = table.put_rows(["a"], np.ones((1, 3)), idempotency_key="k1")
    assert (first.is_repeated, second.is_repeated, second.position) == (False, True, first.position)
    with pytest.raises(kindred.ServiceError, match="409 idempotency_key_reused"):
        table.put_rows(["a"], np.zeros((1, 3)), idempotency_key="k1")
    assert table.put_rows(["a"], np.ones((1, 3))).position == 2
    assert not table.put_rows(["b"], np.ones((1, 3)), durability="none").is_durable


def test_biases(tables):
    with kindred.Client(tables.url, model="dots") as client:
        client.create_model("dots", 2, metric="dot")
        client.put_rows(["a", "b"], np.eye(2), biases=np.array([5, 0.5]))
        client.put_rows(["c"], [[0, 1]], biases=[7])
        assert [(row.key, row.bias) for row in client.rows()] == [("a", 5), ("b", 0.5), ("c", 7)]
        assert [one.word for one in client.nearest(np.zeros(2))] == ["c", "a", "b"]


def test_a_fold_is_not_seen_and_a_deleted_table_is_gone(table):
    table.put_rows(["a", "b"], np.eye(3)[:2])
    table.delete_rows("a")
    before = table.get_row("b")
    assert table.fold(timeout=60)["outcome"] == "folded" and table.fold()["outcome"] == "unchanged"
    after = table.get_row("b")
    assert (after.row, after.vector.tolist()) == (before.row, before.vector.tolist())
    table.delete_model(table.model()["name"])
    with pytest.raises(kindred.ModelError):
        table.get_row("b")


def test_threads_put_beside_each_other(tables):
    with kindred.Client(tables.url, model="many") as client:
        client.create_model("many", 3)
        wrong = []

        def work(name):
            for n in range(20):
                change = client.put_rows([f"{name}/{n}"], np.full((1, 3), n + 1.0))
                if client.after(change).get_row(f"{name}/{n}").vector[0] != n + 1:
                    wrong.append((name, n))

        threads = [threading.Thread(target=work, args=(name,)) for name in range(6)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        assert not wrong and len(list(client.rows())) == 120
        assert client.model()["position"] == 120


def test_answers_after_a_change(table):
    change = table.put_rows(["a"], np.ones((1, 3)))
    assert table.after(change).get_row("a").key == "a"
    later = table.after(f"{change.version}/{change.position + 5}")
    with pytest.raises(kindred.UnavailableError, match="position_not_reached"):
        later.get_row("a")
    assert later.put_rows(["b"], np.ones((1, 3))).position == 2
    with pytest.raises(kindred.InvalidValueError):
        table.after(5)


def test_only_keys_that_may_write_do(tmp_path):
    made = [subprocess.run([program(), "api-key", name, *flags], capture_output=True, text=True, check=True).stdout.split("\n")
            for name, flags in (("reader", []), ("writer", ["--write"]), ("operator", ["--admin"]))]  # fmt: skip
    (tmp_path / "keys").write_text("".join(f"{lines[4]}\n" for lines in made))
    (tmp_path / "tables").mkdir()
    service = Service("--models-dir", str(tmp_path / "tables"), "--api-keys-file", str(tmp_path / "keys"))
    reader, writer, operator = (kindred.Client(service.url, model="t", api_key=lines[1]) for lines in made)
    try:
        for client in (reader, writer):
            with pytest.raises(kindred.UnauthorizedError) as caught:
                client.create_model("t", 3)
            assert caught.value.status == 403
        operator.create_model("t", 3)
        for wrong in (lambda: reader.put_rows(["a"], np.ones((1, 3))), lambda: reader.delete_rows("a"),
                      lambda: writer.fold(), lambda: writer.delete_model("t")):  # fmt: skip
            with pytest.raises(kindred.UnauthorizedError) as caught:
                wrong()
            assert caught.value.status == 403
        writer.put_rows(["a"], np.ones((1, 3)))
        assert reader.get_row("a").key == "a"
        with kindred.Client(service.url, model="t") as nobody, pytest.raises(kindred.UnauthorizedError) as caught:
            nobody.put_rows(["a"], np.ones((1, 3)))
        assert caught.value.status == 401
    finally:
        [client.close() for client in (reader, writer, operator)]
        service.stop()


def test_a_model_without_changes_is_read_alone(client):
    assert client.get_row("frog").row == client.row("frog")
    assert client.rows_page(limit=2, with_vectors=False).rows[1].key == client.words_with_prefix("of", 1)[0]
    with pytest.raises(kindred.UnauthorizedError, match="403 not_writable"):
        client.put_rows(["frog"], np.ones((1, 100)))


# Attempts

BY_KEYS = [lambda client: client.put_rows(["a"], np.ones((1, 3))), lambda client: client.put_rows(["a"], [[1, 2]]),
           lambda client: client.delete_rows("a")]  # fmt: skip
ONCE = [lambda client: client.delete_rows(filter="n = 1"), lambda client: client.create_model("t", 3),
        lambda client: client.delete_model("t"), lambda client: client.fold()]  # fmt: skip


@both
@pytest.mark.parametrize("change", BY_KEYS, ids=["array", "list", "delete"])
def test_a_change_by_keys_is_sent_again_with_its_key(fake, kind, change):
    server = fake(b"", problem(503, "draining"), CHANGED)
    with kind(server.url) as client:
        assert change(client).position == 3
        change(client)
    sent = [asked.headers["idempotency-key"] for asked in server.asked]
    assert len(sent) == 4 and sent[0] == sent[1] == sent[2] != sent[3]
    assert server.asked[0].body == server.asked[1].body == server.asked[2].body


@both
def test_a_change_whose_answer_is_lost_is_done_once(fake, tables, kind):
    name = f"t{next(COUNT)}"
    with kindred.Client(tables.url) as direct:
        direct.create_model(name, 2)

    def forward(connection, asked):
        named = {name: value for name, value in asked.headers.items() if name in ("content-type", "idempotency-key")}
        request = urllib.request.Request(tables.url + asked.target, asked.body, named, method=asked.method)
        with urllib.request.urlopen(request) as response:
            return answer(response.read())

    def lose(connection, asked):
        forward(connection, asked)
        return b""

    server = fake(lose, forward, lose, forward)
    with kind(server.url, model=name) as client:
        put = client.put_rows(["a", "b"], np.eye(2))
        assert (put.position, put.inserted, put.is_repeated) == (1, 2, True)
        deleted = client.delete_rows("a")
        assert (deleted.position, deleted.is_repeated) == (2, True)
        assert len(server.asked) == 4
    with kindred.Client(tables.url, model=name) as direct:
        assert keys(direct.rows()) == ["b"] and direct.model()["position"] == 2


@both
@pytest.mark.parametrize("change", ONCE, ids=["filter", "create", "delete", "fold"])
def test_a_change_without_a_key_is_sent_once(fake, kind, change):
    for failure, error in ((b"", kindred.UnreachableError), (problem(503, "draining"), kindred.UnavailableError)):
        server = fake(failure, CHANGED)
        with kind(server.url) as client, pytest.raises(error):
            change(client)
        assert len(server.asked) == 1 and "idempotency-key" not in server.asked[0].headers
    server = fake(problem(429, "queue_full", retry_after=0), CHANGED)
    with kind(server.url) as client:
        change(client)
    assert len(server.asked) == 2


@both
def test_a_position_is_sent_with_questions_alone(fake, kind):
    server = fake(CHANGED, FROG)
    with kind(server.url) as client:
        change = client.put_rows(["a"], np.ones((1, 3)))
        after = client.after(change)
        after.nearest("frog")
        client.nearest("frog")
        server.answers[:] = [CHANGED]
        after.delete_rows("a")
    assert [asked.headers.get("min-position") for asked in server.asked] == [None, f"{'0' * 16}/3", None, None]


def test_a_client_after_a_change_is_pickled(fake):
    server = fake(FROG)
    with kindred.Client(server.url) as client, pickle.loads(pickle.dumps(client.after("v/1"))) as again:
        again.nearest("frog")
    assert server.asked[0].headers["min-position"] == "v/1"
