"""Tables in process, against a dictionary and the scores of a model that never changes."""

from __future__ import annotations

import os
import pickle
import random
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from conftest import DEVICE

import kindred

DIM = 12


@pytest.fixture
def table(tmp_path):
    with kindred.create_table(tmp_path / "t", DIM, attributes={"n": "integer", "kind": "text"}, device=DEVICE) as table:
        yield table


def put(table, known, keys, rng, **options):
    """Puts rows at random into a table and into a dictionary, whose last rows are the newest."""
    vectors = rng.normal(size=(len(keys), DIM)).astype(np.float32)
    attributes = [{"n": int(rng.integers(100)), "kind": "ab"[int(rng.integers(2))]} for _ in keys]
    change = table.put_rows(keys, vectors, attributes=attributes, **options)
    for key, vector, of_row in zip(keys, vectors, attributes):
        known.pop(key, None)
        known[key] = vector, of_row
    return change


def check(table, known, rng):
    """The table has exactly the rows of the dictionary, and the answers of a model of these."""
    assert len(table) == len(known)
    rows = list(table.rows())
    assert [row.key for row in rows] == list(known)
    assert [row.row for row in rows] == sorted(row.row for row in rows)
    for row in rows:
        assert np.array_equal(row.vector, known[row.key][0]) and row.attributes == known[row.key][1]
    vectors = np.array([vector for vector, _ in known.values()])
    model = kindred.from_array(vectors, list(known), device="cpu")
    number = {row.key: row.row for row in rows}
    for query in [*rng.normal(size=(3, DIM)).astype(np.float32), *vectors[:2]]:
        found = table.nearest(query, k=20)
        expected = model.nearest(query, k=20)
        assert [(one.word, one.score) for one in found] == [(one.word, one.score) for one in expected]
        assert all(one.row == number[one.word] for one in found)
    together = table.nearest(vectors, k=5)
    names = list(known)
    expected = model.nearest(vectors, k=5)
    assert np.array_equal(together.scores, expected.scores)
    assert [[number[names[row]] for row in line] for line in expected.indices] == together.indices.tolist()
    keys = rng.choice(names, 4, replace=False).tolist()
    assert [one[:2] for one in table.nearest(keys[0], k=3)] == [one[:2] for one in model.nearest(keys[0], k=3)]
    assert table.similarity(keys[0], keys[1:]) == model.similarity(keys[0], keys[1:])
    assert table.odd_one_out(keys) == model.odd_one_out(keys)
    expression = f"{keys[0]} - {keys[1]} + {keys[2]}"
    assert [one[:2] for one in table.analogy(expression)] == [one[:2] for one in model.analogy(expression)]
    assert [one.rank for one in table.rank(keys, vectors[0])] == [one.rank for one in model.rank(keys, vectors[0])]
    met = {key for key, (_, attributes) in known.items() if attributes["n"] < 30 and attributes["kind"] == "a"}
    filter = "n < 30 AND kind = a"
    assert table.count(filter) == len(met)
    assert {row.key for row in table.rows(filter=filter, with_vectors=False)} == met
    assert {one.word for one in table.nearest(vectors[0], k=1000, filter=filter)} == met


@pytest.mark.parametrize("seed", range(3))
def test_a_history_has_the_answers_of_a_model_of_the_same_rows(tmp_path, seed):
    rng, chance = np.random.default_rng(seed), random.Random(seed)
    table = kindred.create_table(tmp_path / "t", DIM, attributes={"n": "integer", "kind": "text"}, device=DEVICE)
    known, folds, reopened, made = {}, 0, 0, 0
    put(table, known, [f"k{n}" for n in range(600)], rng)
    for step in range(30):
        version, position = table.version, table.position
        what = chance.random()
        if what < 0.5:
            keys = {f"k{chance.randrange(900)}" for _ in range(chance.choice([1, 5, 200]))}
            change = put(table, known, sorted(keys), rng)
            assert change.inserted + change.replaced == len(keys) and change.is_durable and not change.is_repeated
            made += 1
        elif what < 0.65:
            keys = [f"k{chance.randrange(900)}" for _ in range(chance.choice([1, 30]))]
            change = table.delete_rows(keys)
            gone = {key for key in keys if known.pop(key, None) is not None}
            assert (change.deleted, change.missing) == (len(gone), len(set(keys)) - len(gone))
        elif what < 0.75:
            least = chance.randrange(90, 100)
            change = table.delete_rows(filter=f"n >= {least}")
            gone = [key for key, (_, attributes) in known.items() if attributes["n"] >= least]
            assert change.deleted == len([known.pop(key) for key in gone])
        elif what < 0.9:
            assert table.fold()["outcome"] in ("folded", "unchanged")
            assert table.fold() == {"outcome": "unchanged"}
            folds += 1
        else:
            table.close()
            table = kindred.open_table(tmp_path / "t", device=DEVICE)
            reopened += 1
        assert table.version == version and table.position >= position
        if step % 5 == 0:
            check(table, known, rng)
    check(table, known, rng)
    table.close()
    assert folds and made


def test_pages_are_of_the_position_at_which_they_were_asked_for(table):
    rng, known = np.random.default_rng(1), {}
    put(table, known, [f"k{n}" for n in range(2500)], rng)
    before = list(known)
    listed = table.rows(with_vectors=False)
    first = next(listed)
    table.delete_rows([f"k{n}" for n in range(0, 2500, 2)])
    table.fold()
    put(table, {}, ["later"], rng)
    assert [first.key, *(row.key for row in listed)] == before and first.vector is None
    assert [row.key for row in table.rows(limit=3)] == ["k1", "k3", "k5"]
    assert list(table.rows(limit=0)) == []
    for wrong in (-1, 1.5, True):
        with pytest.raises(kindred.InvalidValueError, match="limit"):
            table.rows(limit=wrong)


def test_under_dot_rows_have_a_bias(tmp_path):
    with kindred.create_table(tmp_path / "t", 2, metric="dot", device=DEVICE) as table:
        table.put_rows(["a", "b"], [[1, 0], [1, 0]], biases=[0.5, 2])
        assert [(one.word, one.score) for one in table.nearest(np.float32([1, 1]))] == [("b", 3.0), ("a", 1.5)]
        assert [row.bias for row in table.rows()] == [0.5, 2.0] and table.get_row("b").bias == 2.0


def test_bad_rows_are_named_and_nothing_of_their_batch_is_kept(table):
    good = [1.0] * DIM
    cases = [
        (["a", "b"], [good, [1.0]], {}, ["b"]),
        (["a", "b"], [good, [float("nan")] * DIM], {}, ["b"]),
        (["a", "b"], np.array([good, [np.inf] * DIM]), {}, ["b"]),
        (["a", "a"], [good, good], {}, ["a"]),
        (["a", ""], [good, good], {}, [""]),
        (["a", "b"], [good, good], {"attributes": [{"n": "x"}, {"m": 1}]}, ["a", "b"]),
        (["a"], [good], {"biases": [1]}, ["a"]),
    ]
    for keys, vectors, options, bad in cases:
        with pytest.raises(kindred.BadRowsError, match="nothing was changed") as caught:
            table.put_rows(keys, vectors, **options)
        assert [row.key for row in caught.value.rows] == bad, caught.value
        assert all(row.reason for row in caught.value.rows)
    assert len(table) == 0 and table.position == 0
    change = table.put_rows(["a", "b"], np.array([good, [np.nan] * DIM]), on_error="skip")
    assert (change.inserted, [row.key for row in change.skipped]) == (1, ["b"])


def test_wrong_arguments_say_which(table, tmp_path):
    one = [[1.0] * DIM]
    for call, field in [
        (lambda: table.put_rows([], []), "keys"),
        (lambda: table.put_rows("abc", one), "keys"),
        (lambda: table.put_rows([7], one), "keys"),
        (lambda: table.put_rows(["a"], one * 2), "vectors"),
        (lambda: table.put_rows(["a"], one, attributes=[{}, {}]), "attributes"),
        (lambda: table.put_rows(["a"], one, on_error="ignore"), "on_error"),
        (lambda: table.put_rows(["a"], one, durability="often"), "durability"),
        (lambda: table.put_rows(["a"], one, idempotency_key=""), "idempotency_key"),
        (lambda: table.delete_rows(filter="n > 1", idempotency_key="x"), "idempotency_key"),
        (lambda: table.delete_rows(filter="m > 1"), "filter"),
        (lambda: list(table.rows(filter="n >")), "filter"),
    ]:
        with pytest.raises(kindred.InvalidValueError) as caught:
            call()
        assert caught.value.field == field, caught.value
    with pytest.raises(kindred.DimensionError):
        table.put_rows(["a"], np.zeros((1, DIM + 1), np.float32))
    with pytest.raises(kindred.InvalidValueError, match="exactly one"):
        table.delete_rows()
    with pytest.raises(kindred.InvalidValueError, match="surrogate"):
        table.put_rows(["\ud800"], one)
    with pytest.raises(kindred.UnknownWordError, match="no row with the key `x`"):
        table.get_row("x")
    with pytest.raises(kindred.ModelError, match="t"):
        kindred.create_table(tmp_path / "t", DIM)
    for dim, attributes in [(0, {}), (3, {"key": "text"}), (3, {"a b": "text"})]:
        with pytest.raises(kindred.ModelError):
            kindred.create_table(tmp_path / "u", dim, attributes=attributes)
    with pytest.raises(kindred.InvalidValueError):
        kindred.create_table(tmp_path / "u", 3, attributes={"a": "colour"})
    assert not (tmp_path / "u").exists()
    with pytest.raises(TypeError, match="one process"):
        pickle.dumps(table)


def test_a_change_with_the_same_key_is_made_once(table):
    vectors = np.ones((1, DIM), np.float32)
    first = table.put_rows(["a"], vectors, idempotency_key="one")
    again = table.put_rows(["a"], vectors, idempotency_key="one")
    assert (again.position, again.is_repeated, table.position) == (first.position, True, 1)
    with pytest.raises(kindred.InvalidValueError, match="used for another batch"):
        table.put_rows(["b"], vectors, idempotency_key="one")
    assert not table.put_rows(["b"], vectors, durability="none").is_durable


def test_one_process_changes_a_table_and_others_read_it(table, tmp_path):
    put(table, {}, ["a", "b"], np.random.default_rng(2))
    with pytest.raises(kindred.ModelError, match="changes the rows"):
        kindred.open_table(tmp_path / "t", device="cpu")
    reader = kindred.open_table(tmp_path / "t", read_only=True, device="cpu")
    put(table, {}, ["c"], np.random.default_rng(3))
    assert [row.key for row in reader.rows()] == ["a", "b"] and len(table) == 3
    with pytest.raises(kindred.ModelError, match="read only"):
        reader.delete_rows("a")
    with pytest.raises(kindred.ModelError, match="read only"):
        reader.fold()
    table.close()
    with pytest.raises(ValueError, match="the table is closed"):
        table.nearest("a")
    with pytest.raises(ValueError, match="the table is closed"):
        len(table)
    with kindred.open_table(tmp_path / "t", device="cpu") as again:
        assert [row.key for row in again.rows()] == ["a", "b", "c"]


def test_threads_that_put_delete_fold_and_ask_at_once_see_whole_batches(table):
    stop, faults, puts = threading.Event(), [], 30
    rng = np.random.default_rng(4)

    def write(writer):
        own = np.random.default_rng(writer)
        for number in range(puts):
            # Both rows of a pair have the same vector, and are put and deleted together.
            vector = own.normal(size=DIM).astype(np.float32)
            keys = [f"{writer}-{number}-{end}" for end in "xy"]
            table.put_rows(keys, np.array([vector, vector]))
            found = table.nearest(vector, k=2)
            if [one.word for one in found] != keys:
                faults.append((keys, found))
            if number % 3 == 0:
                table.delete_rows(keys)
                if keys[0] in table or any(one.word in keys for one in table.nearest(vector, k=2)):
                    faults.append(("deleted", keys))

    def read():
        while not stop.is_set():
            words = [row.key[:-1] for row in table.rows(with_vectors=False)]
            if any(words.count(word) != 2 for word in set(words)):
                faults.append(("half", words))
            table.nearest(rng.normal(size=DIM).astype(np.float32))

    def fold():
        while not stop.is_set():
            table.fold()

    writers = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
    others = [threading.Thread(target=read), threading.Thread(target=fold)]
    [thread.start() for thread in writers + others]
    [thread.join() for thread in writers]
    stop.set()
    [thread.join() for thread in others]
    assert not faults, faults[:3]
    assert len(table) == 4 * 2 * puts * 2 // 3


KILLED = """
import sys, numpy as np, kindred
table = kindred.open_table(sys.argv[1], device="cpu")
for number in range(10_000):
    table.put_rows([f"k{number}", f"l{number}"], np.full((2, 12), number + 1.0, np.float32))
    print(number, flush=True)
    if number % 40 == 39:
        table.fold()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_a_killed_process_loses_nothing_that_was_acknowledged(table, tmp_path):
    table.close()
    chance = random.Random(8)
    for _ in range(3):
        command = [sys.executable, "-c", KILLED, tmp_path / "t"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            said = [writer.stdout.readline() for _ in range(chance.randrange(20, 120))]
            writer.send_signal(signal.SIGKILL)
            last = int((said + writer.stdout.read().split())[-1])
        with kindred.open_table(tmp_path / "t", device="cpu") as again:
            rows = {row.key: row.vector[0] for row in again.rows()}
            assert all(rows[f"{letter}{number}"] == number + 1 for letter in "kl" for number in range(last + 1))
            assert len(rows) % 2 == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_fork_neither_changes_nor_unlocks_the_table_of_its_parent(table, tmp_path):
    put(table, {}, ["a"], np.random.default_rng(5))
    child = os.fork()
    if child == 0:
        code = 1
        try:
            table.delete_rows("a")
        except kindred.ForkError:
            table.close()
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    with pytest.raises(kindred.ModelError, match="changes the rows"):
        kindred.open_table(tmp_path / "t", device="cpu")
    assert put(table, {}, ["b"], np.random.default_rng(6)).position == 2


def test_a_table_that_is_served_later_is_the_same(table, tmp_path, service):
    known = {}
    put(table, known, [f"k{n}" for n in range(50)], np.random.default_rng(7))
    table.delete_rows("k7")
    assert set(table.attributes) == {"n", "kind"} and (table.dim, table.metric) == (DIM, "cosine")
    assert "k8" in table and "k7" not in table and 8 not in table
    assert "position 2" in repr(table)
    # `open` is for models that never change: it says so, after a fold, too, when numbers are no places.
    for _ in range(2):
        table.close()
        with pytest.raises(kindred.ModelError, match="open_table"):
            kindred.open(tmp_path / "t", device="cpu")
        table = kindred.open_table(tmp_path / "t", device="cpu")
        table.fold()
    table.close()
