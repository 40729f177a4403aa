"""Replicas of a table that follow PostgreSQL, each by a follower of its own, while a writer commits: every answer is whole, and none
is older than its request demands."""

import json
import os
import random
import subprocess
import sys
import threading
import time
import urllib.parse

from balancers import TOP
from questions import Question
from replicas import MAX_LAG, MODEL, Replica

ROWS, PAIRS, DIMENSIONS, COMMITS = 2000, 50, 32, 50


def vector(seed):
    """Far from that of any other seed."""
    rng = random.Random(seed)
    return [round(rng.gauss(0, 1), 4) for _ in range(DIMENSIONS)]


def array(numbers):
    return "{" + ",".join(map(str, numbers)) + "}"


class Writer:
    """Commits pairs of rows with the same vector and number, again and again."""

    def __init__(self, postgres):
        self.postgres, self.stopping = postgres, threading.Event()
        self.commits = 0
        # Of each pair: its last number, and the position in the server's log behind its commit.
        self.last = {}
        self.latest = "0/0"
        with postgres.connect() as connection:
            connection.execute("CREATE TABLE items (id text PRIMARY KEY, v real[], n integer, kind text)")
            with connection.cursor().copy("COPY items FROM STDIN") as copy:
                for row in range(ROWS):
                    copy.write_row((f"s{row}", array(vector(-row - 1)), 0, "static"))
                for pair in range(PAIRS):
                    for letter in "ab":
                        copy.write_row((f"{letter}{pair}", array(vector(pair * 1_000_000)), 0, "pair"))
            for pair in range(PAIRS):
                self.last[pair] = (0, "0/0")
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        rng = random.Random(7)
        with self.postgres.connect() as connection:
            while not self.stopping.is_set():
                begun, pair = time.monotonic(), rng.randrange(PAIRS)
                number = self.last[pair][0] + 1
                with connection.transaction():
                    for letter in "ab":
                        values = (array(vector(pair * 1_000_000 + number)), number, f"{letter}{pair}")
                        connection.execute("UPDATE items SET v = %s, n = %s WHERE id = %s", values)
                position = connection.execute("SELECT pg_current_wal_insert_lsn()::text").fetchone()[0]
                self.last[pair], self.latest = (number, position), position
                self.commits += 1
                self.stopping.wait(max(0, 1 / COMMITS - (time.monotonic() - begun)))

    def stop(self):
        self.stopping.set()
        self.thread.join()


class Follower:
    """`kindred follow` beside a replica."""

    def __init__(self, postgres, address, scratch):
        self.log = scratch / f"follower-{address[0]}.log"
        columns = ["--key", "id", "--vector", "v", "--attributes", "n,kind"]
        to = ["--to", "http://%s:%d" % address, "--model", MODEL]
        self.command = [sys.executable, "-m", "kindred.follow", postgres.url, "--table", "items", *columns, *to]
        self.start()

    def start(self):
        environment = {**os.environ, "PYTHONPATH": str(TOP / "bindings/python/python")}
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command, stderr=log, env=environment)

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def said(self):
        return self.log.read_text()[-1000:]


def wait_for_rows(replicas, followers, seconds=60):
    """Until each replica has all rows."""
    deadline = time.monotonic() + seconds
    for replica, follower in zip(replicas, followers):
        while True:
            status, body = replica.get("/model")
            if status == 200 and json.loads(body)["rows"] == ROWS + 2 * PAIRS:
                break
            if follower.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the replica at {replica.address[0]} does not get its rows: {follower.said()}")
            time.sleep(0.1)


class TableReplica(Replica):
    """A replica whose rows change, with a folder of its own."""

    def __init__(self, program, address, scratch):
        super().__init__(program, address, scratch)
        self.folder = scratch / f"tables-{address[0]}"
        self.folder.mkdir(exist_ok=True)

    def model(self, _):
        return ["--models-dir", str(self.folder), "--open-writes", "--max-lag-seconds", str(MAX_LAG)]


class Static:
    """The neighbors of a row that never changes, among such rows."""

    def __init__(self, row):
        filter_ = urllib.parse.quote('kind = "static"')
        self.name, self.target = f"neighbors of s{row}", f"/nearest?word=s{row}&k=5&filter={filter_}"
        self.expected = None

    def ask(self, address):
        """Of a replica itself."""
        self.expected = neighbors(ask(address, self.target))

    def now(self, writer):
        return Asked(self.name, self.target, writer.latest, lambda answer: neighbors(answer) == self.expected)


class OfPair:
    """A question about a pair of rows. `number` is that of the commit which the answer shows; None if it shows no whole one."""

    def now(self, writer):
        least, position = writer.last[self.pair]

        def is_right(answer):
            number = self.number(answer)
            # One more than the writer has told by now is a commit whose position is not known yet.
            return number is not None and least <= number <= writer.last[self.pair][0] + 1

        return Asked(f"{self.name}, at least number {least}", self.target, position, is_right)


class Pair(OfPair):
    """The row nearest to one of a pair: the other, with the number of the same commit."""

    def __init__(self, pair):
        filter_ = urllib.parse.quote('kind = "pair"')
        self.name, self.pair = f"the pair {pair}", pair
        self.target = f"/nearest?word=a{pair}&k=1&with_attributes=true&filter={filter_}"

    def number(self, answer):
        (found,) = answer["neighbors"]
        is_other = found["word"] == f"b{self.pair}" and found["score"] > 0.9999
        return found["attributes"]["n"] if is_other else None


class Rows(OfPair):
    """Both rows of a pair."""

    def __init__(self, pair):
        filter_ = urllib.parse.quote(f'key IN ["a{pair}", "b{pair}"]')
        self.name, self.pair, self.target = f"the rows of pair {pair}", pair, f"/rows?filter={filter_}"

    def number(self, answer):
        numbers = {row["attributes"]["n"] for row in answer["rows"]}
        vectors = {tuple(row["vector"]) for row in answer["rows"]}
        is_whole = len(answer["rows"]) == 2 and len(numbers) == len(vectors) == 1
        return numbers.pop() if is_whole else None


class Asked:
    """A question as it is asked now: about rows at this position, or at a later one."""

    def __init__(self, name, target, position, is_right):
        self.name = name
        self.request = f"GET {target} HTTP/1.1\r\nhost: balancer\r\nmin-position: postgres:{position}\r\n\r\n".encode()
        self._is_right = is_right

    def is_right(self, answer, _):
        return self._is_right(answer)


def neighbors(answer):
    # Numbers of rows are each replica's own.
    return [(one["word"], one["score"]) for one in answer["neighbors"]]


def ask(address, target):
    question = Question(target, "GET", target)
    question.ask(address)
    (body,) = question.expected.values()
    return json.loads(body)


class Questions:
    """Like a list of questions, of which each is made when it is asked."""

    def __init__(self, writer):
        rng = random.Random(3)
        static = [Static(rng.randrange(ROWS)) for _ in range(40)]
        self.static = static
        self.all = static + [kind(pair) for kind in (Pair, Rows) for pair in rng.sample(range(PAIRS), 30)]
        rng.shuffle(self.all)
        self.writer = writer

    def __len__(self):
        return len(self.all)

    def __getitem__(self, number):
        return self.all[number].now(self.writer)
