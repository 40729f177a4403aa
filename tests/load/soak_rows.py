"""What `soak-rows` does: see there. Prints a table at the end; the exit code says whether everything held."""

import argparse
import collections
import contextlib
import http.client
import json
import multiprocessing
import os
import pathlib
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True

import changing_rows as rows
from changing_callers import Caller, Reader, Shared, Writer, repeat
from changing_rows import insist

# Of the time, in which the service is killed. After it one process goes on, whose memory is looked at.
KILLED_FOR = 0.4
# By which anonymous memory may grow between the first quarter of that process's life and its end: whichever is more.
# A table keeps the last 100,000 idempotency keys.
GROWTH, GROWTH_MB = 0.10, 16
READERS_OF_A_PROCESS = 16


class Workers:
    """Threads with the same shared state, in a process that is made before any thread is."""

    def __init__(self, shared, makers):
        fork = multiprocessing.get_context("fork")
        self.pipe, theirs = fork.Pipe(duplex=False)
        self.process = fork.Process(target=self.run, args=(shared, makers, theirs), daemon=True)
        self.process.start()

    @staticmethod
    def run(shared, makers, pipe):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        random.seed()
        shared.lock, shared.counts, shared.failures = threading.Lock(), collections.Counter(), []
        threads = [threading.Thread(target=repeat, args=(shared, make().turn)) for make in makers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        pipe.send((shared.counts, shared.failures))

    def result(self):
        result = self.pipe.recv() if self.pipe.poll(90) else None
        self.process.join(1)
        if self.process.is_alive():
            self.process.kill()
        return result


def free_port():
    """Below those that connections are given, so that none has it while the service is down."""
    for port in random.sample(range(20_000, 30_000), 100):
        with socket.socket() as tried, contextlib.suppress(OSError):
            tried.bind(("127.0.0.1", port))
            return port
    raise SystemExit("no free port")


class Service:
    def __init__(self, program, shared, tables, frozen, keys):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("KINDRED_")}
        command = [program, "serve", "--listen", f"127.0.0.1:{shared.port}", "--log-level", "warn"]
        command += ["--models-dir", str(tables), "--model", f"frozen={frozen}", "--api-keys-file", str(keys)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        for line in self.process.stdout:
            if "http://" in line:
                break
        threading.Thread(target=self.process.stdout.read, daemon=True).start()
        ends = time.monotonic() + 60
        while self.ready() != 200:
            insist(time.monotonic() < ends, "the service was not ready in a minute")
            time.sleep(0.005)

    def ready(self):
        connection = http.client.HTTPConnection("127.0.0.1", int(self.process.args[3].split(":")[1]), timeout=10)
        with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
            connection.request("GET", "/health/ready")
            return connection.getresponse().status

    def anonymous_memory(self):
        """In MB."""
        for line in open(f"/proc/{self.process.pid}/status"):
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) / 1024


class Soak:
    def __init__(self, arguments):
        self.arguments = arguments
        self.shared = Shared(arguments.groups, arguments.writers)
        self.memory = []

    def run(self):
        with tempfile.TemporaryDirectory() as scratch:
            try:
                self.soak(pathlib.Path(scratch))
            finally:
                self.service.process.kill()

    def soak(self, scratch):
        program, shared = self.arguments.kindred, self.shared
        for seed in (1, 2):
            command = [program, "synth", "--rows", "5000", "--dim", "32", "--seed", str(seed)]
            subprocess.run([*command, "--out", str(scratch / f"seed{seed}")], check=True, stdout=subprocess.DEVNULL)
        shared.frozen_words = (scratch / "seed1" / "words.txt").read_text(encoding="utf-8").split("\n")[:50]
        self.scratch, self.tables = scratch, scratch / "tables"
        self.tables.mkdir()
        self.point_to(1)
        shared.port = free_port()
        self.make_keys()
        self.caller = Caller(shared, "operator")
        self.start()
        made = {"name": "t", "dim": rows.DIM, "attributes": {"g": "integer", "n": "integer"}}
        status, answer = self.caller.once("POST", "/models", made)
        insist(status in (200, 201), f"the table: {status} {answer}")
        shared.version = self.caller.once("GET", "/models/t/model")[1]["version"]
        for group in range(len(shared.begun)):
            shared.begun[group] = 1
            several = [rows.row(group, member, 1) for member in range(rows.MEMBERS)]
            self.caller.ask("POST", "/models/t/rows", {"rows": several})
            shared.acknowledged[group] = 1
        writers, readers = self.arguments.writers, self.arguments.readers
        # Not in a loop's closure, which would have its last number.
        makers = [[lambda number=number: Writer(shared, number, writers) for number in range(writers)]]
        for first in range(0, readers, READERS_OF_A_PROCESS):
            makers.append([lambda: Reader(shared)] * min(READERS_OF_A_PROCESS, readers - first))
        workers = [Workers(shared, some) for some in makers]
        threads = [threading.Thread(target=repeat, args=(shared, Operator(self, one).turn)) for one in Operator.ALL]
        for thread in threads:
            thread.start()
        self.kill_and_watch()
        self.rest()
        shared.stop.set()
        for thread in threads:
            thread.join()
        for one in workers:
            result = one.result()
            if result is None:
                shared.fail("readers or writers did not stop")
            else:
                shared.counts += result[0]
                shared.failures += result[1]
        self.disk = sum(file.stat().st_size for file in self.tables.rglob("*") if file.is_file()) / 1e6
        self.service.process.send_signal(signal.SIGTERM)
        if self.service.process.wait(60) != 0:
            shared.fail("the service did not stop in order")

    def start(self):
        scratch = self.scratch
        self.service = Service(self.arguments.kindred, self.shared, self.tables, scratch / "current", scratch / "keys")
        self.shared.lives.value += 1
        self.shared.down.value = 0

    def make_keys(self):
        for name, *may in (("reader",), ("writer", "--write"), ("operator", "--admin")):
            command = [self.arguments.kindred, "api-key", name, *may]
            said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            # The line of the file begins with a hash in hexadecimal digits.
            lines = [line.split() for line in said.splitlines() if line.strip()]
            entry = next(line for line in lines if len(line[0]) == 64)
            with open(self.scratch / "keys", "a") as file:
                file.write(" ".join(entry) + "\n")
            others = (word for line in lines if line != entry for word in line)
            self.shared.keys[name] = next(word for word in others if len(word) >= 40)

    def point_to(self, seed):
        new = self.scratch / "next"
        new.symlink_to(self.scratch / f"seed{seed}")
        new.rename(self.scratch / "current")

    def kill_and_watch(self):
        begins = time.monotonic()
        kills_end, ends = (begins + self.arguments.seconds * part for part in (KILLED_FOR, 1))
        next_kill, next_rest = begins + min(3, self.arguments.seconds / 10), begins + min(5, self.arguments.seconds / 2)
        while (now := time.monotonic()) < ends:
            if self.service.process.poll() is not None:
                self.shared.fail(f"the service ended with {self.service.process.returncode}")
                return
            if next_kill <= now < kills_end:
                self.kill()
                self.memory = []
                next_kill = time.monotonic() + random.uniform(2, 8)
            if next_rest <= now:
                self.rest()
                next_rest = time.monotonic() + max(10, self.arguments.seconds / 30)
            self.memory.append(self.service.anonymous_memory())
            time.sleep(0.1)

    def kill(self):
        self.shared.down.value = 1
        self.service.process.send_signal(signal.SIGKILL)
        self.service.process.wait()
        self.start()
        self.shared.count("kills")

    def rest(self):
        """While nobody writes, the whole table is known, and some searches are compared with the formula over it."""
        shared = self.shared
        shared.pause.set()
        ends = time.monotonic() + 60
        while not all(shared.at_rest):
            if time.monotonic() > ends:
                shared.fail(f"writers do not rest: {list(shared.at_rest)}")
                break
            time.sleep(0.01)
        try:
            self.compare()
        except Exception as error:  # noqa: BLE001: whatever it is, it is a failure
            shared.fail(f"wrong at rest: {error!r}")
        shared.pause.clear()

    def compare(self):
        shared, changes = self.shared, list(self.shared.acknowledged)
        insist(changes == list(shared.begun), "what was begun is acknowledged")
        reader = Reader(shared)
        tables = shared.counts["tables read page by page"]
        while shared.counts["tables read page by page"] == tables:
            reader.pages()
        for _ in range(3):
            query = rows.vector(random.randrange(len(changes)), 0, 1)
            found = self.caller.ask("POST", "/models/t/nearest", {"vector": query, "k": 50})["neighbors"]
            must = rows.best(query, changes, 50)
            insist([(one["word"], one["score"]) for one in found] == must, f"{found[:3]} instead of {must[:3]}")
            shared.count("searches compared with the formula over all rows")


class Operator:
    """Folds, swaps, and makes and deletes other tables."""

    ALL = ("fold", "swap", "make_and_delete")

    def __init__(self, soak, work):
        self.soak, self.shared, self.work = soak, soak.shared, getattr(self, work)
        self.caller = Caller(soak.shared, "operator")

    def turn(self):
        self.shared.stop.wait(random.uniform(0.5, 4))
        self.work()

    def fold(self):
        status, answer = self.caller.once("POST", "/models/t/fold")
        insist(status in (200, 202, 409), f"a fold: {status} {answer}")
        self.shared.count(f"folds asked for: {answer.get('outcome', status)}")

    def swap(self):
        self.soak.point_to(random.choice([1, 2]))
        status, answer = self.caller.once("POST", "/admin/reload")
        # Tables are made and folded one after the other with reloads.
        busy = status == 409 and answer["code"] == "reload_in_progress"
        insist(status == 200 or busy, f"a reload: {status} {answer}")
        self.shared.count("reloads beside another" if busy else "reloads")

    def make_and_delete(self):
        left, self.left = self.left, True
        status, answer = self.caller.once("POST", "/models", {"name": "other", "dim": 2})
        if status == 409 and answer["code"] == "reload_in_progress":
            self.left = left
            return
        insist(status in (200, 201) or (left and status == 409), f"made: {status} {answer}")
        row = {"key": "a", "vector": [1, 2]}
        status, answer = self.caller.once("POST", "/models/other/rows", {"rows": [row]})
        insist(status == 200, f"its row: {status} {answer}")
        status, answer = self.caller.once("DELETE", "/models/other")
        insist(status in (200, 204), f"deleted: {status} {answer}")
        self.left = False
        self.shared.count("tables made, filled and deleted")

    # Whether a kill may have left the other table.
    left = False


def report(soak):
    shared, memory = soak.shared, soak.memory
    quarter = len(memory) // 4
    first, last = statistics.median(memory[quarter // 2 : quarter + quarter // 2]), statistics.median(memory[-quarter:])
    if last - first > max(GROWTH * first, GROWTH_MB):
        shared.fail(f"memory grew from {first:.1f} to {last:.1f} MB")
    print("| what | |\n| --- | --- |")
    for text, number in sorted(shared.counts.items()):
        print(f"| {text} | {number} |")
    print(f"| RssAnon of the last process, medians about a quarter and in the last quarter | {first:.1f}, {last:.1f} MB |")
    print(f"| RssAnon, most | {max(memory):.1f} MB |")
    print(f"| the folder of tables at the end | {soak.disk:.1f} MB |")
    for kind in ("failed", "wrong"):
        number = sum(failure.startswith("wrong") == (kind == "wrong") for failure in shared.failures)
        print(f"| {kind} | {number} |")
    return 1 if shared.failures else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--kindred", default="target/release/kindred")
    parser.add_argument("--groups", type=int, default=2_000)
    parser.add_argument("--readers", type=int, default=64)
    parser.add_argument("--writers", type=int, default=8)
    soak = Soak(parser.parse_args())
    soak.run()
    sys.exit(report(soak))


if __name__ == "__main__":
    main()
