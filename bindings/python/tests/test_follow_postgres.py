"""`kindred follow` against a real server of PostgreSQL: at the end, the table is the query, row by row."""

from __future__ import annotations

import re
import shlex
import threading
import time
from pathlib import Path

import numpy as np
import pytest

psycopg = pytest.importorskip("psycopg")

from followers import in_table, wait_for  # noqa: E402
from postgres import ATTRIBUTES, Follower, Postgres, follow, in_database, same, with_pgvector  # noqa: E402

from kindred.follow import _cli  # noqa: E402
from kindred.follow.postgres import _values  # noqa: E402


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
    assert (code, client.sources()["position"]) == (0, at["position"] + 2)
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
