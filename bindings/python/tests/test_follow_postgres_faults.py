"""`kindred follow` against a real server of PostgreSQL: refusals, faults, and kills of everything at random moments."""

from __future__ import annotations

import os
import random
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
from postgres import ATTRIBUTES, Follower, Postgres, follow, in_database, same  # noqa: E402

from kindred.follow._batch import Batch, Row  # noqa: E402
from kindred.follow._errors import FollowError  # noqa: E402
from kindred.follow._target import Target  # noqa: E402

# Histories with kills; a long run asks for more.
HISTORIES = int(os.environ.get("TEST_HISTORIES", "2"))


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
        assert follower.stop() == 0 and "the database can't do it now; trying again" in follower.said, follower.said
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


def test_a_second_follower_waits_until_the_slot_is_free(postgres, tables, items):
    one = Follower(postgres, tables, items, *ATTRIBUTES)
    client = tables.client(items)
    wait_for(lambda: "following" in one.log(), one)
    two = Follower(postgres, tables, items, *ATTRIBUTES)
    wait_for(lambda: "another follower has the slot" in two.log(), two)
    postgres.run(f"UPDATE {items} SET price = 1 WHERE id = 1")
    wait_for(lambda: client.get_row("1").attributes["price"] == 1, one)
    one.kill()
    postgres.run(f"UPDATE {items} SET price = 2 WHERE id = 1")
    wait_for(lambda: client.get_row("1").attributes["price"] == 2, two)
    assert two.stop() == 0
    same(postgres, tables, items)


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
