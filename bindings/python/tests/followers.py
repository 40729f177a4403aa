"""A service with tables and a follower, each of which can be killed and started again."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time

import numpy as np
import pytest
from service import program

import kindred


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class Tables:
    """A service with a folder of tables, on a port that stays."""

    def __init__(self, folder, *settings):
        self.folder, self.port = folder, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        environment = {name: value for name, value in os.environ.items() if not name.startswith("KINDRED_")}
        words = [program(), "serve", "--models-dir", folder, "--listen", f"127.0.0.1:{self.port}", "--log-level", "warn", *settings]
        self._words, self._environment = words, environment
        self.clients = []
        self.start()

    def start(self):
        self.process = subprocess.Popen(self._words, env=self._environment, stdout=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            if "http://" in line:
                return
        pytest.fail("the service ended before it listened")

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def client(self, model):
        self.clients.append(kindred.Client(self.url, model=model))
        return self.clients[-1]

    def close(self):
        self.kill()
        for client in self.clients:
            client.close()


class Follower:
    """`kindred follow`, beside the test."""

    def __init__(self, source, tables, *options):
        self._words = [sys.executable, "-m", "kindred.follow", source, "--to", tables.url, *options]
        self.said = ""
        self.start()

    def start(self):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("KINDRED_")}
        # Into a file: nobody reads meanwhile.
        self._log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(self._words, env=environment, stderr=self._log, stdin=subprocess.DEVNULL)

    def log(self):
        """Its log since its start."""
        # Not by seeking, which would move its own place.
        return os.pread(self._log.fileno(), 1 << 20, 0).decode()

    def _ended(self):
        self._log.seek(0)
        self.said += self._log.read()
        self._log.close()
        return self.process.returncode

    def wait(self, timeout=60):
        """The exit code; `said` has the log then."""
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            pytest.fail(f"the follower does not end: {self.said}")
        return self._ended()

    def stop(self):
        """Ends it in order."""
        self.process.terminate()
        return self.wait()

    def kill(self):
        self.process.kill()
        self.process.wait()
        return self._ended()


def follow(source, tables, *options):
    """Follows until the table has what there is. Returns the exit code and the log."""
    follower = Follower(source, tables, "--until-caught-up", *options)
    return follower.wait(), follower.said


def wait_for(condition, follower, timeout=30):
    """Until something is so; errors are ones of services that were killed."""
    ends = time.monotonic() + timeout
    while time.monotonic() < ends:
        try:
            if condition():
                return
        except Exception:
            pass
        time.sleep(0.02)
    follower.kill()
    pytest.fail(follower.said)


def in_table(client):
    """All rows of a table of the service."""
    return {row.key: (np.asarray(row.vector).tobytes(), row.attributes) for row in client.rows()}
