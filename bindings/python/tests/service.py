"""Services to test clients with: the real program, and a server that answers what a test tells it to."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import threading
from pathlib import Path

import pytest

import kindred


def program():
    """The program `kindred`: that of the environment variable, else the package's own."""
    named = os.environ.get("KINDRED_EXECUTABLE")
    found = Path(named) if named else Path(kindred.__file__).parent / "bin" / "kindred"
    if not found.is_file():
        pytest.skip("no program kindred: name one by KINDRED_EXECUTABLE")
    return found


class Service:
    """The real service, on a port that the system chooses."""

    def __init__(self, *settings):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("KINDRED_")}
        words = [program(), "serve", "--listen", "127.0.0.1:0", "--log-level", "warn", *settings]
        self.process = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True)
        said = ""
        for line in self.process.stdout:
            said += line
            if found := re.search(r"http://[\d.]+:\d+", line):
                self.url = found[0]
                return
        pytest.fail(f"the service ended before it listened: {said}")

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Asked:
    """A request as it came."""

    def __init__(self, head, body):
        first, *lines = head.split("\r\n")
        self.method, self.target, _ = first.split(" ")
        self.headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        self.body = body


class Fake:
    """Answers each request by the next of `answers`, and the last one for ever: bytes, or a function of socket and request.

    A connection is closed after its answer, unless the answer is of `json`.
    """

    def __init__(self, *answers):
        self.answers, self.asked, self.lock = list(answers), [], threading.Lock()
        self.context = None
        self.under_way = self.most_under_way = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.sockets = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.sockets.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        stream = None
        try:
            if self.context:
                connection = self.context.wrap_socket(connection, server_side=True)
            stream = connection.makefile("rb")
            while True:
                head = b""
                while not head.endswith(b"\r\n\r\n"):
                    line = stream.readline()
                    if not line:
                        return
                    head += line
                asked = Asked(head[:-4].decode(), b"")
                asked.body = stream.read(int(asked.headers.get("content-length", 0)))
                with self.lock:
                    self.asked.append(asked)
                    answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
                    self.under_way += 1
                    self.most_under_way = max(self.under_way, self.most_under_way)
                try:
                    answer = answer(connection, asked) if callable(answer) else answer
                finally:
                    with self.lock:
                        self.under_way -= 1
                if answer:
                    connection.sendall(answer)
                if not answer or b"\r\nconnection: close" in answer:
                    return
        except OSError:
            pass
        finally:
            if stream:
                stream.close()
            connection.close()

    def close(self):
        self.listener.close()
        for connection in self.sockets:
            connection.close()


def answer(body, status="200 OK", kind="application/json", close=False, **headers):
    """An answer as bytes."""
    body = body if isinstance(body, bytes) else body.encode()
    lines = [f"HTTP/1.1 {status}", f"content-type: {kind}", f"content-length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    lines += ["connection: close"] * close
    return "\r\n".join([*lines, "", ""]).encode() + body


def problem(status, code, detail="no", retry_after=None, **fields):
    """A problem document as bytes."""
    document = {"type": f"urn:kindred:problem:{code}", "title": code, "status": status, "detail": detail, "code": code, **fields}
    headers = {} if retry_after is None else {"retry_after": retry_after}
    return answer(json.dumps(document), f"{status} No", "application/problem+json", **headers)
