"""`kindred follow` against a real server of PostgreSQL: at the end, the table is the query, row by row."""

from __future__ import annotations

import os
import random
import re
import shlex
import shutil
import subprocess
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

psycopg = pytest.importorskip("psycopg")

import followers  # noqa: E402
from followers import Tables, in_table, wait_for  # noqa: E402
from postgres import Follower, Postgres, follow, in_database, with_pgvector  # noqa: E402

from kindred.follow import _cli  # noqa: E402
from kindred.follow._batch import Batch, Row  # noqa: E402
from kindred.follow._errors import FollowError  # noqa: E402
from kindred.follow._target import Target  # noqa: E402
from kindred.follow.postgres import _values  # noqa: E402

# Histories with kills; a long run asks for more.
HISTORIES = int(os.environ.get("TEST_HISTORIES", "2"))


@pytest.fixture(scope="module")
def postgres():
    server = Postgres()
    yield server
    server.close()


COUNT = iter(range(1000))


@pytest.fixture
def name():
    """The name of a table that nobody else has."""
    return f"t{next(COUNT)}"


@pytest.fixture
def items(postgres, name):
    """A table with a few rows."""
    postgres.run(
        f"CREATE TABLE {name} (id bigint PRIMARY KEY, v real[], price numeric, label text, body text)",
        f"INSERT INTO {name} SELECT g, ARRAY[g, 0.1, -1e-30], g / 8.0, 'l' || g % 3, NULL FROM generate_series(1, 100) g",
    )
    return name


ATTRIBUTES = ["--attributes", "price,label,body"]


def numbers(rows):
    """Decimals are numbers in a table."""
    return {key: (v, {n: float(x) if n == "price" else x for n, x in more.items()}) for key, (v, more) in rows.items()}


def same(postgres, tables, name, where=""):
    """Whether the table is the query."""
    query = f"SELECT id, v, price, label, body FROM {name} {where}"
    assert in_table(tables.client(name)) == numbers(in_database(postgres, query, ("price", "label", "body")))


def test_a_snapshot_and_then_every_change(postgres, tables, items, tmp_path):
    code, said = follow(postgres, tables, items, *ATTRIBUTES)
    assert code == 0 and "the snapshot is complete" in said and "100 rows" in said, said
    same(postgres, tables, items)
    before = tables.client(items).sources()
    postgres.run(
        f"UPDATE {items} SET price = price + 1 WHERE id <= 10",
        f"UPDATE {items} SET id = id + 1000 WHERE id > 90",
        f"DELETE FROM {items} WHERE id BETWEEN 11 AND 20",
        f"INSERT INTO {items} VALUES (-5, '{{1,2,3}}', NULL, 'é\"\\', NULL)",
        f"UPDATE {items} SET label = NULL WHERE id = 30",
    )
    code, said = follow(postgres, tables, items, *ATTRIBUTES)
    assert code == 0 and "snapshot" not in said, said
    same(postgres, tables, items)
    client = tables.client(items)
    assert client.nearest([1.0, 2.0, 3.0], k=1)[0].word == "-5"
    # Nothing to do: one who begins refuses late requests of others, and commits nothing else.
    at = client.sources()
    assert at["position"] > before["position"]
    code, _ = follow(postgres, tables, items, *ATTRIBUTES)
    assert (code, client.sources()["position"]) == (0, at["position"] + 1)
    # Who asks with the database's position reads what it wrote.
    ready = tmp_path / "ready"
    follower = Follower(postgres, tables, items, *ATTRIBUTES, "--ready-file", str(ready))
    wait_for(ready.exists, follower)
    for n in range(20):
        with postgres.connect() as connection:
            connection.execute(f"INSERT INTO {items} VALUES ({5000 + n}, '{{1,2,{n}}}')")
            lsn = connection.execute("SELECT pg_current_wal_insert_lsn()::text").fetchone()[0]
        assert client.after(f"postgres:{lsn}").get_row(str(5000 + n)).vector[2] == n
    assert follower.stop() == 0 and "goes on here" in follower.said, follower.said
    same(postgres, tables, items)
    source = client.sources()["sources"][0]
    assert source["name"] == "postgres" and source["behind_seconds"] < 60 and source["retained"] >= 0


def test_a_snapshot_has_rows_of_one_size_in_many_forms(postgres, tables, items):
    # Two texts that share a row's size differently, and some that are missing.
    label, body = "repeat('é', n % 7)", "CASE WHEN n % 5 > 0 THEN repeat('x', 12 - 2 * (n % 7)) END"
    postgres.run(f"INSERT INTO {items} SELECT 1000 + n, ARRAY[n, 1, 0], n, {label}, {body} FROM generate_series(1, 300) AS n")
    code, said = follow(postgres, tables, items, *ATTRIBUTES)
    assert code == 0 and "400 rows" in said, said
    same(postgres, tables, items)


def test_values_of_all_types_arrive_as_they_are(postgres, tables, name):
    types = {
        "b": ("boolean", "true"), "s": ("smallint", "-7"), "i": ("integer", "2147483647"), "l": ("bigint", "-9223372036854775808"),
        "r": ("real", "0.1"), "d": ("double precision", "0.1"), "n": ("numeric(20, 6)", "-12345678.000901"), "t": ("text", "'é\"\\'"),
        "c": ("varchar(9)", "'x'"), "p": ("char(5)", "'ab'"), "u": ("uuid", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"),
        "tz": ("timestamptz", "'2026-11-28 01:02:03.000004+02'"), "ts": ("timestamp", "'0999-01-01 00:00:00'"),
        "da": ("date", "'1969-07-20'"), "ta": ("text[]", "ARRAY['a', '', 'é']"), "va": ("varchar[]", "'{}'"),
        "j": ("jsonb", "'{\"a\": 1}'"), "js": ("json", "'[1,  2]'"), "e": (f"{name}_mood", "'sad'"), "o": (f"{name}_age", "5"),
    }  # fmt: skip
    columns = ", ".join(f"{column} {kind}" for column, (kind, _) in types.items())
    values = ", ".join(value for _, value in types.values())
    postgres.run(
        f"CREATE TYPE {name}_mood AS ENUM ('sad', 'glad')",
        f"CREATE DOMAIN {name}_age AS integer CHECK (VALUE > 0)",
        f"CREATE TABLE {name} (id text PRIMARY KEY, v double precision[], {columns})",
        f"INSERT INTO {name} VALUES ('snapshot', '{{0.1, 1e-46, 3}}', {values})",
    )
    options = ["--attributes", ",".join(types)]
    assert follow(postgres, tables, name, *options)[0] == 0
    postgres.run(f"INSERT INTO {name} VALUES ('stream', '{{0.1, 1e-46, 3}}', {values})", f"INSERT INTO {name} VALUES ('none', '{{1,2,3}}')")
    assert follow(postgres, tables, name, *options)[0] == 0
    rows = in_table(tables.client(name))
    vector = np.array([0.1, 1e-46, 3], np.float64).astype(np.float32).tobytes()
    expected = {
        "b": True, "s": -7, "i": 2147483647, "l": -9223372036854775808, "r": float(np.float32(0.1)), "d": 0.1,
        "n": -12345678.000901, "t": "é\"\\", "c": "x", "p": "ab", "u": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        "tz": "2026-11-27T23:02:03.000004Z", "ts": "0999-01-01T00:00:00Z", "da": "1969-07-20T00:00:00Z", "ta": ["a", "", "é"],
        "va": [], "j": '{"a": 1}', "js": "[1,  2]", "e": "sad", "o": 5,
    }  # fmt: skip
    assert rows["snapshot"] == rows["stream"] == (vector, expected)
    assert rows["none"][1] == {}


def test_dates_beyond_the_calendar_are_no_values():
    for days in (-2_000_000, 3_000_000, 2**31 - 2):
        with pytest.raises(ValueError, match="the year is not one"):
            _values.attribute_decoder(_values.Type(_values.DATE, "date"))[1](days.to_bytes(4, "big", signed=True))


def test_command_lines_of_documents_are_those_of_the_program():
    page = (Path(__file__).parents[3] / "docs/postgres.md").read_text().replace("\\\n", " ")
    lines = re.findall(r"^    (kindred follow .*)", page, re.M)
    lines += [line.strip() for line in _cli.EPILOG.splitlines() if line.startswith("  kindred follow")]
    assert len(lines) >= 4, lines
    for line in lines:
        words = shlex.split(line.rstrip("& "))
        assert _cli._arguments(words[2:]).vector == "embedding"
    options = set(re.findall(r"`(--[a-z-]+)`", page)) - {"--write"}
    assert len(options) >= 6 and all(option in _cli._parser().format_help() for option in options), options


def test_vectors_together_are_those_one_by_one(postgres, name):
    rng = np.random.default_rng(5)
    for kind, array in (("_float4", "real[]"), ("_float8", "double precision[]")):
        with postgres.connect() as connection:
            texts = ["{" + ",".join(map(str, row)) + "}" for row in rng.standard_normal((50, 7))]
            raws = [bytes(connection.execute(f"SELECT array_send(%s::{array})", (text,)).fetchone()[0]) for text in texts]
            others = ["{1,2}", "{NULL,2,3,4,5,6,7}", "{{1,2,3,4,5,6,7}}", "[2:8]={1,2,3,4,5,6,7}", "{1,2,3,4,5,6,Infinity}"]
            others = [bytes(connection.execute(f"SELECT array_send(%s::{array})", (text,)).fetchone()[0]) for text in others]
        one_by_one = [_values._array_of_floats(raw).tobytes() for raw in raws]
        assert [row.tobytes() for row in _values.vectors_together(kind, raws, 7)] == one_by_one
        assert all(_values.vectors_together(kind, [*raws, other], 7) is None for other in others)
    vector = bytes.fromhex("0002 0000 3f800000 c0000000".replace(" ", ""))
    assert _values.vectors_together("vector", [vector, vector], 2).tolist() == [[1, -2]] * 2
    assert _values.vectors_together("halfvec", [bytes.fromhex("000200003c00c000")], 2).tolist() == [[1, -2]]
    numbers = ["0", "-0.00001", "12345678901234567890.5", "1e300", "0.1", "9999.9999", "10000", "1e-300", "-7e20"]
    with postgres.connect() as connection:
        for number in numbers:
            raw = bytes(connection.execute("SELECT numeric_send(%s::numeric)", (number,)).fetchone()[0])
            assert _values._numeric(raw) == float(number)
        raw = bytes(connection.execute("SELECT numeric_send('1e400')").fetchone()[0])
    with pytest.raises(ValueError, match="larger than"):
        _values._numeric(raw)


def test_vectors_of_pgvector_have_their_recorded_forms():
    # As its vector_send and halfvec_send write them: the number of components, zero, then the components.
    raw = bytes.fromhex("0003 0000 3f800000 c0000000 3dcccccd".replace(" ", ""))
    assert _values.vector_decoder(_values.Type(1, "vector"))(raw).tolist() == [1.0, -2.0, float(np.float32(0.1))]
    raw = bytes.fromhex("0003 0000 3c00 c000 2e66".replace(" ", ""))
    assert _values.vector_decoder(_values.Type(1, "halfvec"))(raw).tolist() == [1.0, -2.0, float(np.float16(0.1))]
    # A number whose float64 is just between two float32: its own digits decide.
    above, below = "1.00000005960464477540", "1.00000017881393432616"
    assert _values.vector_of_text(f"[{above},{below}]").tolist() == [float(np.nextafter(np.float32(1), np.float32(2)))] * 2
    floats = np.random.default_rng(3).integers(0, 2**32, 20000, np.uint32).view(np.float32)
    floats = floats[np.isfinite(floats)]
    text = "{" + ",".join(map(str, floats)) + "}"
    assert _values.vector_of_text(text).tobytes() == floats.tobytes()


def test_columns_of_pgvector_are_followed(tables, name):
    server = Postgres(with_pgvector())
    try:
        server.run(
            "CREATE EXTENSION vector",
            f"CREATE TABLE {name} (id bigint PRIMARY KEY, v vector(700), h halfvec(700), price int)",
            f"ALTER TABLE {name} ALTER v SET STORAGE EXTERNAL, ALTER h SET STORAGE EXTERNAL",
            f"INSERT INTO {name} SELECT g, a, a, g FROM generate_series(1, 50) g, LATERAL (SELECT array_agg((g * sin(i))::real)::vector a "
            "FROM generate_series(1, 700) i) AS made",
        )
        for column in ("v", "h"):
            model = f"{name}_{column}"
            options = ["--attributes", "price", "--model", model]
            assert follow(server, tables, name, *options, vector=column)[0] == 0
            query = f"SELECT id, {column}::real[], price FROM {name}"
            assert in_table(tables.client(model)) == in_database(server, query, ("price",))
            server.run(
                f"UPDATE {name} SET price = price + 1 WHERE id < 10",
                f"UPDATE {name} SET {column} = (SELECT {column} FROM {name} WHERE id = 3) WHERE id = 4",
                f"INSERT INTO {name} SELECT 99, v, h, 0 FROM {name} WHERE id = 20",
                f"INSERT INTO {name} SELECT 98, '[{','.join(['6.0e-5'] * 699)},-65504]', '[{','.join(['6.0e-5'] * 699)},-65504]'",
                f"DELETE FROM {name} WHERE id = 7",
            )
            assert follow(server, tables, name, *options, vector=column)[0] == 0
            assert in_table(tables.client(model)) == in_database(server, query, ("price",))
            server.run(f"DELETE FROM {name} WHERE id > 90")
        server.run(f"ALTER TABLE {name} ADD s sparsevec(5)")
        code, said = follow(server, tables, name, vector="s")
        assert code == 1 and "vectors are real[]" in said, said
    finally:
        server.close()


def test_large_values_that_an_update_leaves_alone_stay(postgres, tables, name):
    postgres.run(
        f"CREATE TABLE {name} (id text PRIMARY KEY, v real[], price integer, body text)",
        f"ALTER TABLE {name} ALTER v SET STORAGE EXTERNAL, ALTER body SET STORAGE EXTERNAL",
        f"INSERT INTO {name} SELECT 'k' || g, array(SELECT (g * i)::real FROM generate_series(1, 700) i), g, repeat('b' || g, 3000) "
        "FROM generate_series(1, 20) g",
    )
    options = ["--attributes", "price,body"]
    query, names = f"SELECT id, v, price, body FROM {name}", ("price", "body")
    assert follow(postgres, tables, name, *options)[0] == 0
    for identity in ("DEFAULT", "FULL"):
        if identity == "FULL":
            postgres.run(f"ALTER TABLE {name} REPLICA IDENTITY FULL", f"DROP PUBLICATION {publication(postgres, name)}")
            assert follow(postgres, tables, name, "--resnapshot", *options)[0] == 0
        with postgres.connect() as connection, connection.transaction():
            # Unchanged over several updates, with a changed key, after a change, and back again.
            connection.execute(f"UPDATE {name} SET price = price + 100 WHERE id < 'k15'")
            connection.execute(f"UPDATE {name} SET price = price + 100")
            connection.execute(f"UPDATE {name} SET id = 'moved' WHERE id = 'k1'")
            connection.execute(f"UPDATE {name} SET id = 'twice', price = 0 WHERE id = 'moved'")
            connection.execute(f"UPDATE {name} SET body = 'short' WHERE id = 'k2'")
            connection.execute(f"UPDATE {name} SET price = 1 WHERE id = 'k2'")
            connection.execute(f"UPDATE {name} SET id = 'k1' WHERE id = 'twice'")
            connection.execute(f"DELETE FROM {name} WHERE id = 'k3'")
            connection.execute(f"UPDATE {name} SET id = 'k3' WHERE id = 'k4'")
            connection.execute(f"UPDATE {name} SET v = v || 1::real WHERE false")
        assert follow(postgres, tables, name, *options)[0] == 0
        assert in_table(tables.client(name)) == in_database(postgres, query, names), identity
        postgres.run(f"INSERT INTO {name} SELECT 'k4', v, 4, body FROM {name} WHERE id = 'k5'")


def publication(postgres, name):
    with postgres.connect() as connection:
        return connection.execute("SELECT pubname FROM pg_publication_tables WHERE tablename = %s", (name,)).fetchone()[0]


def test_transactions_arrive_whole_in_commit_order(postgres, tables, items):
    assert follow(postgres, tables, items, *ATTRIBUTES)[0] == 0
    with postgres.connect() as one, postgres.connect() as two:
        one.execute("BEGIN")
        one.execute(f"UPDATE {items} SET label = 'one' WHERE id <= 50")
        two.execute("BEGIN")
        two.execute(f"UPDATE {items} SET label = 'two' WHERE id > 50")
        two.execute("SAVEPOINT s")
        two.execute(f"DELETE FROM {items} WHERE id > 50")
        two.execute("ROLLBACK TO s")
        two.execute("SAVEPOINT t")
        two.execute(f"INSERT INTO {items} VALUES (777, '{{7,7,7}}')")
        two.execute("RELEASE t")
        two.execute("COMMIT")
        assert follow(postgres, tables, items, *ATTRIBUTES)[0] == 0
        labels = {row.attributes.get("label") for row in tables.client(items).rows()}
        assert "two" in labels and "one" not in labels
        one.execute("COMMIT")
        two.execute("BEGIN")
        two.execute(f"DELETE FROM {items}")
        two.execute("ROLLBACK")
    assert follow(postgres, tables, items, *ATTRIBUTES)[0] == 0
    same(postgres, tables, items)


def test_no_half_of_a_transaction_is_ever_seen(postgres, tables, items):
    follower = Follower(postgres, tables, items, *ATTRIBUTES)
    client, stop, seen = tables.client(items), threading.Event(), []

    def look():
        while not stop.is_set():
            try:
                seen.append([client.count(f"label = 'm{n}'") for n in (0,)])
            except Exception:
                pass

    wait_for(lambda: "following" in follower.log(), follower)
    looker = threading.Thread(target=look)
    looker.start()
    with postgres.connect() as connection:
        for n in range(60):
            label = "m0" if n % 2 == 0 else "m1"
            with connection.transaction():
                for first in range(1, 100, 25):
                    connection.execute(f"UPDATE {items} SET label = '{label}' WHERE id BETWEEN {first} AND {first + 24}")
    stop.set()
    looker.join()
    assert follower.stop() == 0
    assert {count for (count,) in seen} <= {0, 100}, seen
    assert follow(postgres, tables, items, *ATTRIBUTES)[0] == 0
    same(postgres, tables, items)


def test_truncate_partitions_and_conditions(postgres, tables, items, name):
    assert follow(postgres, tables, items, *ATTRIBUTES)[0] == 0
    with postgres.connect() as connection, connection.transaction():
        connection.execute(f"INSERT INTO {items} VALUES (500, '{{1,2,3}}')")
        connection.execute(f"TRUNCATE {items}")
        connection.execute(f"INSERT INTO {items} VALUES (1, '{{1,2,3}}'), (501, '{{1,2,3}}')")
    assert follow(postgres, tables, items, *ATTRIBUTES)[0] == 0
    same(postgres, tables, items)
    parted = f"{name}_parted"
    postgres.run(
        f"CREATE TABLE {parted} (id int PRIMARY KEY, v real[], label text) PARTITION BY RANGE (id)",
        f"CREATE TABLE {parted}_a PARTITION OF {parted} FOR VALUES FROM (0) TO (100)",
        f"CREATE TABLE {parted}_b PARTITION OF {parted} FOR VALUES FROM (100) TO (200)",
        f"INSERT INTO {parted} SELECT g, ARRAY[g, 1], 'x' FROM generate_series(90, 110) g",
    )
    assert follow(postgres, tables, parted, "--attributes", "label")[0] == 0
    postgres.run(
        f"UPDATE {parted} SET id = id + 50 WHERE id BETWEEN 95 AND 99",
        f"CREATE TABLE {parted}_c PARTITION OF {parted} FOR VALUES FROM (200) TO (300)",
        f"INSERT INTO {parted} VALUES (250, '{{1,2}}', 'new')",
        f"TRUNCATE {parted}_b",
        f"INSERT INTO {parted} VALUES (150, '{{1,2}}', 'again')",
    )

    def of_parted(part):
        code, said = follow(postgres, tables, parted, "--attributes", "label")
        assert code == 0 and part in said, said
        assert in_table(tables.client(parted)) == in_database(postgres, f"SELECT id, v, label FROM {parted}", ("label",))

    # No change tells of rows that come and go with a partition.
    of_parted("partitions were changed while nobody followed")
    postgres.run(f"INSERT INTO {parted} VALUES (151, '{{1,2}}', 'more')")
    of_parted("following")
    postgres.run(f"TRUNCATE {parted}_b")
    of_parted("a partition was truncated")
    postgres.run(f"ALTER TABLE {parted} DETACH PARTITION {parted}_a")
    of_parted("partitions were changed while nobody followed")
    follower = Follower(postgres, tables, parted, "--attributes", "label")
    client = tables.client(parted)
    wait_for(lambda: "following" in follower.log(), follower)
    postgres.run(f"CREATE TABLE {parted}_d PARTITION OF {parted} FOR VALUES FROM (300) TO (400)")
    time.sleep(1.2)
    postgres.run(f"INSERT INTO {parted} VALUES (350, '{{1,2}}', 'new')")
    wait_for(lambda: client.count("key = 350") == 1, follower)
    postgres.run(f"ALTER TABLE {parted} ATTACH PARTITION {parted}_a FOR VALUES FROM (0) TO (100)")
    wait_for(lambda: client.count("key = 90") == 1, follower)
    assert follower.stop() == 0
    assert "a partition with rows is new" in follower.said and follower.said.count("copied again") == 1, follower.said
    of_parted("following")
    postgres.run(f"TRUNCATE {parted}")
    of_parted("TRUNCATE: all rows are deleted")
    code, said = follow(postgres, tables, parted, "--where", "id > 5")
    assert code == 1 and "has partitions" in said, said


def test_a_condition_is_that_of_the_snapshot_and_of_the_stream(postgres, tables, items):
    where = ["--where", "price > 5 AND label <> 'l1'"]
    code, said = follow(postgres, tables, items, *ATTRIBUTES, *where)
    assert code == 1 and "REPLICA IDENTITY FULL" in said, said
    with postgres.connect() as connection:
        assert connection.execute("SELECT count(*) FROM pg_publication_tables WHERE tablename = %s", (items,)).fetchone() == (0,)
    postgres.run(f"ALTER TABLE {items} REPLICA IDENTITY FULL")
    assert follow(postgres, tables, items, *ATTRIBUTES, *where)[0] == 0
    same(postgres, tables, items, "WHERE price > 5 AND label <> 'l1'")
    postgres.run(
        f"UPDATE {items} SET price = 1 WHERE id BETWEEN 60 AND 70",
        f"UPDATE {items} SET price = 100 WHERE id < 5",
        f"UPDATE {items} SET label = 'l1' WHERE id = 90",
        f"INSERT INTO {items} VALUES (700, '{{1,2,3}}', 1, 'l0'), (701, '{{1,2,3}}', 10, 'l0')",
        f"DELETE FROM {items} WHERE id = 95",
    )
    assert follow(postgres, tables, items, *ATTRIBUTES, *where)[0] == 0
    same(postgres, tables, items, "WHERE price > 5 AND label <> 'l1'")
    code, said = follow(postgres, tables, items, *ATTRIBUTES)
    assert code == 1 and "has the condition" in said, said
    code, said = follow(postgres, tables, items, *ATTRIBUTES, "--where", "price > 6", "--model", items)
    assert code == 1 and "has the condition" in said, said


def test_transactions_that_are_larger_than_a_batch_are_applied_in_parts(postgres, tables, items):
    assert follow(postgres, tables, items, *ATTRIBUTES)[0] == 0
    postgres.run(
        f"INSERT INTO {items} SELECT g, ARRAY[g, 1, 2], 1, 'many' FROM generate_series(1000, 53000) g",
        f"DELETE FROM {items} WHERE id % 7 = 0",
        f"INSERT INTO {items} VALUES (2, '{{9,9,9}}') ON CONFLICT (id) DO UPDATE SET label = 'after'",
    )
    code, said = follow(postgres, tables, items, *ATTRIBUTES)
    assert code == 0 and "in parts" in said and "large transaction is complete" in said, said
    same(postgres, tables, items)


def test_bad_rows_stop_it_or_are_left_out_and_counted(postgres, tables, items):
    postgres.run(f"INSERT INTO {items} VALUES (201, NULL), (202, '{{1}}'), (203, '{{1,2,NaN}}'), (204, '{{1,NULL,3}}'), (205, '{{}}')")
    code, said = follow(postgres, tables, items, *ATTRIBUTES, "--dim", "3")
    assert code == 1 and "row '201': its vector is NULL" in said and "--on-bad-row skip" in said, said
    code, said = follow(postgres, tables, items, *ATTRIBUTES, "--dim", "3", "--on-bad-row", "skip")
    assert code == 0 and "5 rows were left out" in said and "row '202': its vector has 1 components" in said, said
    good = "WHERE id < 201 OR id > 205"
    same(postgres, tables, items, good)
    postgres.run(
        f"UPDATE {items} SET v = NULL WHERE id = 5",
        f"UPDATE {items} SET v = '{{1,2}}' WHERE id = 6",
        f"UPDATE {items} SET v = '{{3,2,1}}' WHERE id = 201",
        f"UPDATE {items} SET price = 'NaN' WHERE id = 7",
    )
    code, said = follow(postgres, tables, items, *ATTRIBUTES, "--on-bad-row", "skip")
    assert code == 0 and "3 rows were left out" in said and "NaN" in said.replace("nan", "NaN"), said
    same(postgres, tables, items, "WHERE id NOT IN (5, 6, 7, 202, 203, 204, 205)")
    # One that the service refuses: no row has such a key.
    words = f"{items}_words"
    postgres.run(f"CREATE TABLE {words} (id text PRIMARY KEY, v real[])", f"INSERT INTO {words} VALUES ('', '{{1,2}}'), ('a', '{{1,2}}')")
    code, said = follow(postgres, tables, words)
    assert code == 1 and "rows can't be taken" in said, said
    code, said = follow(postgres, tables, words, "--on-bad-row", "skip")
    assert code == 0 and "1 rows were left out" in said, said
    assert list(in_table(tables.client(words))) == ["a"]


def test_what_is_missing_is_told_with_its_cure(postgres, tables, items, name):
    def refused(part, *options, table=items, **columns):
        code, said = follow(postgres, tables, table, *options, **columns)
        assert code == 1 and part in said, said
        assert "postgres@" not in said

    refused("there is no table nosuch", table="nosuch")
    refused("has no column x; it has id, v", "--attributes", "x")
    refused("a key is a text, a whole number or a uuid", key="price")
    refused("vectors are real[]", vector="label")
    refused("does not name one row", key="label")
    postgres.run(f"CREATE TABLE {name}_none (id int UNIQUE NOT NULL, v real[], p point)")
    refused("which no attribute has", "--attributes", "p", table=f"{name}_none")
    refused("replica identity is without id", table=f"{name}_none")
    postgres.run(f"ALTER TABLE {name}_none REPLICA IDENTITY USING INDEX {name}_none_id_key")
    refused("give the number of components with --dim", table=f"{name}_none")
    assert follow(postgres, tables, f"{name}_none", "--dim", "2")[0] == 0
    postgres.run(f"CREATE VIEW {name}_view AS SELECT * FROM {items}")
    refused("is no table", table=f"{name}_view")
    postgres.run(f"CREATE ROLE {name}_reader LOGIN", f"GRANT SELECT ON {items} TO {name}_reader")

    class AsReader:
        url = postgres.url.replace("postgres@", f"{name}_reader@")

    code, said = follow(AsReader, tables, items)
    assert code == 1 and f"ALTER ROLE {name}_reader REPLICATION" in said, said
    postgres.run(f"ALTER ROLE {name}_reader REPLICATION")
    code, said = follow(AsReader, tables, items)
    assert code == 1 and "let the owner of" in said and "CREATE PUBLICATION" in said, said
    postgres.run(said.split("run: ")[1].strip())
    code, said = follow(AsReader, tables, items)
    assert code == 0, said
    # A table with other rows is not overwritten by chance, and another's shape is refused.
    other = f"{name}_other"
    client = tables.client(other)
    client.create_model(other, 3)
    client.put_rows(["mine"], [[1, 2, 3]])
    refused("no follower has put", "--model", other)
    assert follow(postgres, tables, items, "--model", other, "--resnapshot")[0] == 0
    assert "mine" not in in_table(client) and len(in_table(client)) == 100
    refused("has not the attribute price (number)", "--attributes", "price", "--model", other, "--resnapshot")


def test_connections_are_encrypted_and_passwords_are_never_told(tables, name, monkeypatch, tmp_path):
    if shutil.which("openssl") is None:
        pytest.skip("no openssl, which makes a certificate")
    server = Postgres()
    try:
        server.run(f"CREATE TABLE {name} (id int PRIMARY KEY, v real[])", f"INSERT INTO {name} VALUES (1, '{{1,2}}')")
        certificate = server.authenticate()
        address = server.url.replace("127.0.0.1", "localhost") + f"?sslmode=verify-full&sslrootcert={certificate}"

        def tried(source, part):
            follower = followers.Follower(source, tables, "--table", name, "--key", "id", "--vector", "v", "--until-caught-up")
            code = follower.wait()
            assert (code == 0) == (part in ("", "following")) and part in follower.said and "hush" not in follower.said, follower.said

        tried(address, "no password supplied")
        monkeypatch.setenv("PGPASSWORD", "hushed")
        tried(address, "password authentication failed")
        monkeypatch.setenv("PGPASSWORD", "hush")
        tried(address, "following")
        assert in_table(tables.client(name)).keys() == {"1"}
        tried(server.url + "?sslmode=disable", "no pg_hba.conf entry")
        # Of another name, and of another root.
        tried(address.replace("localhost", "127.0.0.1"), "certificate")
        other = tmp_path / "other.crt"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-keyout", tmp_path / "key",
                        "-out", other], check=True, capture_output=True)  # fmt: skip
        tried(address.replace(str(certificate), str(other)), "certificate")
        # A password in the address is not told either.
        tried(address.replace("postgres@", "postgres:hushed@"), "password authentication failed")
        with psycopg.connect(address) as connection:
            assert connection.execute("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()").fetchone() == (True,)
    finally:
        server.close()


def test_a_server_that_goes_while_the_slot_is_made_is_waited_for(tables, name):
    server = Postgres()
    try:
        server.run(f"CREATE TABLE {name} (id int PRIMARY KEY, v real[])", f"INSERT INTO {name} VALUES (1, '{{1,2}}')")
        # A slot waits for transactions that were there before it.
        open_one, watching = psycopg.connect(server.url), server.connect()
        open_one.execute(f"INSERT INTO {name} VALUES (2, '{{1,2}}')")
        follower = Follower(server, tables, name)
        slots = "SELECT count(*) FROM pg_replication_slots"
        wait_for(lambda: watching.execute(slots).fetchone()[0] == 1, follower)
        server.kill()
        open_one.close()
        watching.close()
        server.start()
        wait_for(lambda: in_table(tables.client(name)).keys() == {"1"}, follower)
        assert follower.stop() == 0 and "no connection to the database; trying again" in follower.said, follower.said
    finally:
        server.close()


def test_changed_schemas_stop_it_with_the_reason(postgres, tables, items):
    # Otherwise the publication has a list of columns, and PostgreSQL refuses to change their types.
    postgres.run(f"ALTER TABLE {items} REPLICA IDENTITY FULL")
    assert follow(postgres, tables, items, *ATTRIBUTES)[0] == 0
    postgres.run(f"ALTER TABLE {items} ADD COLUMN more int DEFAULT 5", f"UPDATE {items} SET more = 6, price = 1 WHERE id = 1")
    assert follow(postgres, tables, items, *ATTRIBUTES)[0] == 0
    same(postgres, tables, items)
    follower = Follower(postgres, tables, items, *ATTRIBUTES)
    client = tables.client(items)
    wait_for(lambda: "following" in follower.log(), follower)
    postgres.run(f"UPDATE {items} SET price = 77 WHERE id = 2")
    postgres.run(f"ALTER TABLE {items} ALTER COLUMN label TYPE integer USING 5", f"UPDATE {items} SET price = 78 WHERE id = 3")
    assert follower.wait() == 1, follower.said
    assert "the schema of" in follower.said and "the column label has another type" in follower.said, follower.said
    assert (client.get_row("2").attributes["price"], client.get_row("3").attributes["price"]) == (77, 3 / 8)
    code, said = follow(postgres, tables, items, *ATTRIBUTES)
    assert code == 1 and "has not the attribute label (integer)" in said, said


def test_one_who_changes_rows_beside_it_is_found(postgres, tables, items):
    follower = Follower(postgres, tables, items, *ATTRIBUTES)
    client = tables.client(items)
    wait_for(lambda: "following" in follower.log(), follower)
    client.put_rows(["mine"], [[1, 2, 3]])
    postgres.run(f"UPDATE {items} SET price = 1 WHERE id = 1")
    assert follower.wait() == 1
    assert "somebody else changes the rows" in follower.said and "--resnapshot" in follower.said, follower.said


def test_batches_on_their_way_together_come_in_order_and_stop_behind_somebody_else(tables, name):
    client = tables.client(name)
    client.create_model(name, 2, attributes={})
    target = Target(tables.url, name, None, lambda: False)
    target.sources()

    def batch(key):
        made = Batch()
        made.put(key, Row(np.array([1, 2], np.float32), {}))
        return made

    with ThreadPoolExecutor(1) as thread:
        # The first is late: the second is refused, waits for it and is sent again.
        first = Future()
        second = thread.submit(target.commit_behind, first, batch("second"), None)
        time.sleep(0.5)
        assert not second.done() and len(client) == 0
        target.commit_behind(None, batch("first"), None)
        first.set_result(None)
        second.result(10)
        assert [row.key for row in client.rows()] == ["first", "second"]
        # Somebody else: nothing of either is taken.
        client.put_rows(["other"], [[3.0, 4.0]])
        first = thread.submit(target.commit_behind, None, batch("third"), None)
        for refused in (first, thread.submit(target.commit_behind, first, batch("fourth"), None)):
            with pytest.raises(FollowError, match="somebody else"):
                refused.result(10)
    assert [row.key for row in client.rows()] == ["first", "second", "other"]
    target.client.close()


def test_lost_slots_and_tables_from_an_earlier_copy_are_found(postgres, tables, items):
    assert follow(postgres, tables, items, *ATTRIBUTES)[0] == 0
    with postgres.connect() as connection:
        slot = connection.execute("SELECT slot_name FROM pg_replication_slots WHERE slot_name LIKE %s", (f"kindred_{items}%",))
        slot = slot.fetchone()[0]
    postgres.run(f"UPDATE {items} SET price = 1 WHERE id = 1")
    # As a table would be that was put back: the slot is further.
    with postgres.connect() as connection:
        connection.execute("SELECT pg_replication_slot_advance(%s, pg_current_wal_lsn())", (slot,))
    code, said = follow(postgres, tables, items, *ATTRIBUTES)
    assert code == 1 and "put back from an earlier copy" in said and "--resnapshot" in said, said
    assert follow(postgres, tables, items, *ATTRIBUTES, "--resnapshot")[0] == 0
    same(postgres, tables, items)
    code, said = follow(postgres, tables, items, *ATTRIBUTES, "--drop-slot")
    assert code == 0 and f"the slot {slot} is dropped" in said, said
    code, said = follow(postgres, tables, items, *ATTRIBUTES)
    assert code == 1 and "is lost" in said and "--resnapshot" in said, said
    assert follow(postgres, tables, items, *ATTRIBUTES, "--resnapshot")[0] == 0
    same(postgres, tables, items)


def test_a_replica_begins_from_a_copied_slot_and_folder(postgres, tables, items, tmp_path):
    slot, copy = f"{items}_a", f"{items}_b"
    follower = Follower(postgres, tables, items, *ATTRIBUTES, "--slot", slot)
    wait_for(lambda: "following" in follower.log(), follower)
    postgres.run(f"UPDATE {items} SET price = 1 WHERE id = 1", f"SELECT pg_copy_logical_replication_slot('{slot}', '{copy}')")
    postgres.run(f"UPDATE {items} SET price = 2 WHERE id = 2")
    wait_for(lambda: tables.client(items).get_row("2").attributes["price"] == 2, follower)
    shutil.copytree(Path(tables.folder) / items, tmp_path / items)
    postgres.run(f"DELETE FROM {items} WHERE id = 3")
    second = Tables(str(tmp_path))
    try:
        code, said = follow(postgres, second, items, *ATTRIBUTES, "--slot", copy, "--publication", slot)
        assert code == 0 and "snapshot" not in said, said
        same(postgres, second, items)
    finally:
        second.close()
        assert follower.stop() == 0
        postgres.run(f"SELECT pg_drop_replication_slot('{copy}')")


def test_positions_at_the_end_of_a_page_of_the_log_are_reached(postgres, tables, items):
    follower = Follower(postgres, tables, items, *ATTRIBUTES)
    client = tables.client(items)
    wait_for(lambda: "following" in follower.log(), follower)
    headers = 0
    with postgres.connect() as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS padding (x text)")
        for length in range(4000):
            # Until a commit ends with a page: then the position behind it is one behind the next page's header.
            connection.execute(f"UPDATE {items} SET body = %s WHERE id = 1", ("x" * (length * 37 % 200),))
            lsn = connection.execute("SELECT pg_current_wal_insert_lsn()::text").fetchone()[0]
            if int(lsn.split("/")[1], 16) % 8192 == 24:
                headers += 1
                begun = time.monotonic()
                assert client.after(f"postgres:{lsn}").count("key = 1") == 1
                assert time.monotonic() - begun < 0.9, "by its commit, and not by a later report"
            if headers == 2:
                break
    assert headers == 2, "no commit ended with a page"
    assert follower.stop() == 0
    same(postgres, tables, items)


def test_other_tables_do_not_keep_wal(postgres, tables, items, monkeypatch):
    postgres.run("CREATE TABLE IF NOT EXISTS busy (x text)")
    follower = Follower(postgres, tables, items, *ATTRIBUTES)
    client = tables.client(items)
    wait_for(lambda: "following" in follower.log(), follower)
    before = client.sources()
    postgres.run("INSERT INTO busy SELECT repeat('x', 1000) FROM generate_series(1, 30000)", "CHECKPOINT")
    with postgres.connect() as connection:
        lsn = connection.execute("SELECT pg_current_wal_lsn()::text").fetchone()[0]
    # Reached though there was nothing for the table, and stored in the end.
    assert client.after(f"postgres:{lsn}").count("key = 1") == 1
    wait_for(lambda: client.sources()["position"] == before["position"] + 1, follower)
    assert follower.stop() == 0


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_whatever_is_killed_nothing_is_lost_and_nothing_is_doubled(tmp_path, name, seed):
    rng = random.Random(seed)
    server = Postgres()
    (tmp_path / "tables").mkdir()
    service = Tables(str(tmp_path / "tables"), "--fold-changed-ratio", "0.3")
    columns = "id bigint PRIMARY KEY, v real[], price integer, body text"
    server.run(
        f"CREATE TABLE {name} ({columns})", f"ALTER TABLE {name} ALTER body SET STORAGE EXTERNAL",
        f"INSERT INTO {name} SELECT g, ARRAY[g, 1, 2], g, repeat('b', 3000) FROM generate_series(1, 300) g",
    )  # fmt: skip
    stop = threading.Event()

    def write(seed):
        own = random.Random(seed)
        while not stop.is_set():
            try:
                with psycopg.connect(server.url, connect_timeout=1) as connection:
                    while not stop.is_set():
                        for _ in range(own.choice([1, 1, 1, 3, 40])):
                            connection.execute(statement(own, name))
                        connection.rollback() if own.random() < 0.1 else connection.commit()
            except psycopg.Error:
                time.sleep(0.05)

    writers = [threading.Thread(target=write, args=(seed * 10 + n,)) for n in range(3)]
    follower = Follower(server, service, name, "--attributes", "price,body")
    [writer.start() for writer in writers]
    try:
        if seed % 3:
            wait_for(lambda: "following" in follower.log(), follower)
        for _ in range(8):
            time.sleep(rng.random() * 0.8)
            victim = rng.choice([follower, service, server])
            victim.kill()
            time.sleep(rng.random() * 0.2)
            victim.start()
            if follower.process.poll() is not None:
                pytest.fail(f"the follower ended: {follower.wait()} {follower.said}")
        time.sleep(0.5)
        stop.set()
        [writer.join() for writer in writers]
        follower.kill()
        code, said = follow(server, service, name, "--attributes", "price,body")
        assert code == 0, said
        client = service.client(name)
        query = f"SELECT id, v, price, body FROM {name}"
        assert in_table(client) == in_database(server, query, ("price", "body")), follower.said
        assert len(client) == len(in_table(client)), "no key is there twice"
    finally:
        stop.set()
        follower.process.kill()
        service.close()
        server.close()


def statement(rng, name):
    """A change of a few rows of a table with keys up to 400."""
    key, other = rng.randrange(1, 400), rng.randrange(1, 400)
    vector = f"ARRAY[{rng.randrange(100)}, {rng.random()}, 1]"
    return rng.choice([
        f"INSERT INTO {name} VALUES ({key}, {vector}, {other}, repeat('n', 3000)) ON CONFLICT (id) DO UPDATE SET price = excluded.price",
        f"UPDATE {name} SET price = price + 1 WHERE id BETWEEN {key} AND {key + 5}",
        f"UPDATE {name} SET v = {vector} WHERE id = {key}",
        f"DELETE FROM {name} WHERE id BETWEEN {key} AND {key + 1}",
        f"UPDATE {name} SET id = {other} WHERE id = {key} AND NOT EXISTS (SELECT FROM {name} WHERE id = {other})",
    ])  # fmt: skip
