"""What `soak` does: see there. Prints a table at the end; the exit code says whether everything held."""

import argparse
import collections
import http.client
import json
import multiprocessing
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

sys.dont_write_bytecode = True

import attackers

MODEL = "soaked"
# Of requests and of answers: little, so that memory that is taken without being counted shows.
POOL_MB = 128
# What the models that are swapped, the callers' connections and what the allocator keeps may take beside that.
BESIDES_MB = 150
# Of the 99th percentile of wrk's requests when it is alone. It is one caller of seven, and the attacker is another.
MOST_P99 = 20
HEADERS = {"Content-Type": "application/json"}


class Reference:
    """The contract's formula over one model folder: every row, sums in the documented order, float64."""

    def __init__(self, folder):
        blob = (folder / "vectors.safetensors").read_bytes()
        length = int.from_bytes(blob[:8], "little")
        header = json.loads(blob[8 : 8 + length])

        def tensor(name, kind):
            begin, end = header[name]["data_offsets"]
            data = blob[8 + length + begin : 8 + length + end]
            return np.frombuffer(data, kind).reshape(header[name]["shape"])

        self.words = (folder / "words.txt").read_text(encoding="utf-8").split("\n")[:-1]
        self.rows = {word: row for row, word in enumerate(self.words)}
        vectors = tensor("vectors", "<f4").astype(np.float64)
        padding = -vectors.shape[1] % 32
        self.vectors = np.pad(vectors, ((0, 0), (0, padding)))
        self.norms = tensor("norms", "<f8")

    def dots(self, query):
        lanes = np.zeros((len(self.vectors), 32))
        for first in range(0, self.vectors.shape[1], 32):
            # The product of two float32 is exact in float64, so that nothing is rounded twice.
            lanes += self.vectors[:, first : first + 32] * query[first : first + 32]
        for step in (16, 8, 4, 2, 1):
            lanes[:, :step] += lanes[:, step : 2 * step]
        return lanes[:, 0]

    def nearest(self, word, k, limit=None):
        """Rows and scores, best first; the lower row first among equal ones."""
        row = self.rows[word]
        scores = np.clip(self.dots(self.vectors[row]) / (self.norms[row] * self.norms), -1, 1)
        scores[row] = -np.inf
        scores[self.norms == 0] = -np.inf
        if limit is not None:
            scores[limit:] = -np.inf
        order = np.lexsort((np.arange(len(scores)), -scores))[:k]
        return [(int(r), float(scores[r])) for r in order if scores[r] > -np.inf]


class Service:
    def __init__(self, program, folder, head, key):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("KINDRED_")}
        command = [program, "serve", "--listen", "127.0.0.1:0", "--log-level", "warn"]
        command += ["--model", f"{MODEL}={folder}", "--head", f"near={head}", "--api-keys-file", str(key.file)]
        command += ["--body-memory-mb", str(POOL_MB), "--answer-memory-mb", str(POOL_MB), "--write-timeout-ms", "3000"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        for line in self.process.stdout:
            if "http://" in line:
                self.address = line.split("http://")[1].split()[0]
                break
        self.host, port = self.address.split(":")
        self.port = int(port)
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def anonymous_memory(self):
        """In bytes."""
        for line in open(f"/proc/{self.process.pid}/status"):
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024

    def connection(self, timeout=60):
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout)


class Key:
    """A key for each caller, for all connections of one key count as one, and one for the operator."""

    CALLERS = ("saturate", "sample1", "sample2", "invalid", "hang_up", "slow", "hostile")

    def __init__(self, program, folder):
        self.file = folder / "keys"
        self.of = {name: self.made(program, name) for name in self.CALLERS}
        self.operator = self.made(program, "operator", "--admin")

    def made(self, program, *arguments):
        said = subprocess.run([program, "api-key", *arguments], capture_output=True, text=True, check=True).stdout
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        entry = next(line for line in lines if len(line.split()[0]) == 64)
        with open(self.file, "a") as file:
            file.write(entry + "\n")
        return next(word for line in lines if line != entry for word in line.split() if len(word) >= 40)


def mixture(model):
    """Long, large and many, side by side."""
    requests = [attackers.rank(model), attackers.exclude_long(1_000_000)(model), attackers.large_answer(model)]
    return [*requests, attackers.cosmul(1, explain=True)(model), *attackers.lookups(model)[:16]]


class Hostile:
    """An attacker on one connection: attacks in turns, and a pause after each. In a process of its own, which is made
    before any thread is."""

    PAUSE = 3

    def __init__(self, port, key, model):
        names = ("rank75", "exclude1mb", "noread", "expandtexts", "expandvectors")
        self.attacks = [attackers.ATTACKS[name] for name in names]
        self.attacks.append(attackers.Streams("a mixture of these, 40 at once", 40, mixture))
        for attack in self.attacks:
            attack.prepare(model)
            attack.requests = [one.with_header("authorization", f"Bearer {key}") for one in attack.requests]
        fork = multiprocessing.get_context("fork")
        self.stop, self.pauses, self.port = fork.Event(), fork.Event(), port
        self.pipe, theirs = fork.Pipe(duplex=False)
        self.process = fork.Process(target=self.run, args=(theirs,), daemon=True)
        self.process.start()

    def run(self, pipe):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        counts, turn = collections.Counter(), 0
        while not self.stop.is_set():
            attack, over = self.attacks[turn % len(self.attacks)], threading.Event()
            turn += 1
            timer = threading.Timer(random.uniform(4, 8), over.set)
            timer.start()
            for status, number in attack.run(self.port, over, 0.5)["by_status"].items():
                counts[f"{attack.text}: {status}"] += number
            timer.join()
            # Once what it took is given back, memory is as it was.
            self.stop.wait(1)
            self.pauses.set()
            self.stop.wait(self.PAUSE - 1)
            self.pauses.clear()
        pipe.send(counts)

    def result(self):
        self.stop.set()
        counts = self.pipe.recv() if self.pipe.poll(30) else None
        self.process.join(1)
        if self.process.is_alive():
            self.process.kill()
        return counts


class Soak:
    def __init__(self, arguments):
        self.arguments = arguments
        self.stop = threading.Event()
        self.lock = threading.Lock()
        self.counts = collections.Counter()
        self.failures = []
        self.latencies = []
        # While the attacker pauses, and always.
        self.memory, self.all_memory = [], []

    def count(self, what):
        with self.lock:
            self.counts[what] += 1

    def fail(self, what):
        with self.lock:
            self.failures.append(what)
        print(f"failed: {what}"[:500], file=sys.stderr, flush=True)

    def headers(self, caller):
        return {**HEADERS, "Authorization": f"Bearer {self.key.of[caller]}"}

    def run(self):
        with tempfile.TemporaryDirectory() as scratch:
            self.soak(pathlib.Path(scratch))

    def soak(self, scratch):
        program, rows, dim = self.arguments.kindred, self.arguments.rows, self.arguments.dim
        self.references = {}
        for seed in (1, 2):
            folder = scratch / f"seed{seed}"
            command = [program, "synth", "--rows", str(rows), "--dim", str(dim), "--seed", str(seed)]
            subprocess.run([*command, "--out", str(folder)], check=True, stdout=subprocess.DEVNULL)
            self.references[seed] = Reference(folder)
            command = [program, "train", "expander", "--model", str(folder), "--out", str(scratch / f"head{seed}")]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.words = self.references[1].words
        assert self.words == self.references[2].words, "both models have the same words"
        self.link, self.scratch, self.expanded = scratch / "current", scratch, {}
        self.point_to(1)
        self.key = Key(program, scratch)
        self.service = Service(program, self.link, scratch / "head", self.key)
        self.versions = {}
        for seed in (1, 2):
            self.point_to(seed)
            self.reload()
            self.versions[self.version()] = seed
        assert len(self.versions) == 2
        limit = (1 << 20) + 60 * 1024 * dim
        model = attackers.Model(scratch / "seed1" / "words.txt", dim, limit)
        self.idle = self.service.anonymous_memory()
        _, self.p99_alone = self.wrk(scratch, 10)
        self.hostile = Hostile(self.service.port, self.key.of["hostile"], model)
        work = [(self.sample, "sample1"), (self.sample, "sample2"), (self.invalid, "invalid"), (self.hang_up, "hang_up")]
        work += [(self.read_slowly, "slow"), (self.send_slowly, "slow"), (self.swap,)]
        threads = [threading.Thread(target=self.repeat, args=one) for one in work]
        threads.append(threading.Thread(target=self.saturate, args=(scratch,)))
        threads.append(threading.Thread(target=self.watch_memory))
        for thread in threads:
            thread.start()
        ends = time.monotonic() + self.arguments.minutes * 60
        while time.monotonic() < ends and self.service.process.poll() is None:
            time.sleep(1)
        attacked = self.hostile.result()
        self.stop.set()
        for thread in threads:
            thread.join()
        self.count_attacks(attacked)
        if self.service.process.poll() is not None:
            self.fail(f"the service ended with {self.service.process.returncode}")
        self.service.process.send_signal(signal.SIGTERM)
        if self.service.process.wait(60) != 0:
            self.fail("the service did not stop in order")

    def count_attacks(self, counts):
        if not counts:
            self.fail("the attacker did not attack")
            return
        for what, number in counts.items():
            self.counts[f"hostile: {what}"] += number
            if what.rsplit(" ", 1)[1].startswith("5"):
                self.fail(f"the attacker met a fault: {what}")

    def point_to(self, seed):
        new = self.scratch / "next"
        for folder, link in ((f"head{seed}", self.scratch / "head"), (f"seed{seed}", self.link)):
            new.symlink_to(self.scratch / folder)
            new.rename(link)

    def version(self):
        connection = self.service.connection()
        connection.request("GET", "/model", headers=self.headers("sample1"))
        return json.loads(connection.getresponse().read())["version"]

    def reload(self):
        connection = self.service.connection()
        headers = {"Authorization": f"Bearer {self.key.operator}"}
        connection.request("POST", "/admin/reload", headers=headers)
        response = connection.getresponse()
        body = response.read()
        if response.status != 200:
            self.fail(f"reload: {response.status} {body}")

    def repeat(self, work, *caller):
        while not self.stop.is_set():
            try:
                work(*caller)
            except Exception as error:  # noqa: BLE001: whatever it is, it is a failure
                self.fail(f"{work.__name__}: {error!r}")
                time.sleep(0.1)

    def wrk(self, scratch, seconds):
        """As many callers as it takes. Returns the requests, p99 in ms, and the problems that were met."""
        words = scratch / "seed1" / "words.txt"
        command = ["wrk", "-t1", "-c64", f"-d{seconds}s", "--timeout", "20s", "-s", "tests/load/requests.lua"]
        command += ["-H", f"Authorization: Bearer {self.key.of['saturate']}", f"http://{self.service.address}"]
        ran = subprocess.run([*command, "--", str(words), "mixed", "problems"], capture_output=True, text=True)
        _, rate, _, p99, errors = ran.stdout.strip().splitlines()[-1].split()
        if int(errors):
            self.fail(f"wrk saw {errors} errors: {ran.stderr or ran.stdout}")
        return int(float(rate) * seconds), float(p99)

    def saturate(self, scratch):
        """In rounds, so that it meets every version of the model."""
        while not self.stop.is_set():
            requests, p99 = self.wrk(scratch, 20)
            with self.lock:
                self.counts["by wrk"] += requests
                self.latencies.append(p99)

    def sample(self, caller):
        """A connection of valid requests, each answer held against the reference of its version."""
        connection = self.service.connection()
        for _ in range(random.randint(1, 40)):
            if self.stop.is_set():
                break
            if random.random() < 0.2:
                self.expand(connection, caller)
                continue
            words, k = random.choices(self.words, k=random.randint(1, 3)), random.choice([1, 10, 10, 100])
            limit = random.choice([None, None, len(self.words) // 2])
            fields = {"k": k} if limit is None else {"k": k, "vocab_limit": limit}
            fields |= {"word": words[0]} if len(words) == 1 else {"queries": [{"word": w} for w in words]}
            connection.request("POST", "/nearest", json.dumps(fields), self.headers(caller))
            response = connection.getresponse()
            answer = json.loads(response.read())
            if response.status != 200:
                self.fail(f"valid request: {response.status} {answer}")
                continue
            reference = self.references[self.versions[answer["version"]]]
            results = answer.get("results", [answer])
            for word, result in zip(words, results, strict=True):
                found = [(n["row"], n["score"]) for n in result["neighbors"]]
                if found != reference.nearest(word, k, limit):
                    self.fail(f"wrong answer for {word}, k {k}, limit {limit}: {found[:3]}")
                if any(reference.words[n["row"]] != n["word"] for n in result["neighbors"]):
                    self.fail(f"wrong words for {word}")
                self.count("held against the reference")

    def expand(self, connection, caller):
        """The terms of a text are always the same, whatever others ask."""
        start = 7 * random.randrange(40)
        fields = {"text": " ".join(self.words[start : start + 7]), "top": 20}
        connection.request("POST", "/expand", json.dumps(fields), self.headers(caller))
        response = connection.getresponse()
        answer = json.loads(response.read())
        if response.status != 200:
            self.fail(f"valid text: {response.status} {answer}")
            return
        with self.lock:
            first = self.expanded.setdefault((answer["version"], start), answer)
        if answer != first:
            self.fail(f"another answer for the same text: {answer['terms'][:3]}, before {first['terms'][:3]}")
        self.count("texts expanded alike")

    INVALID = [
        ("GET", "/nearest", None, 422),
        ("GET", "/nearest?word=no-such-word-at-all", None, 404),
        ("GET", "/nearest?word=%ff", None, 400),
        ("GET", "/nowhere", None, 404),
        ("GET", "/models/other/nearest?word=x", None, 404),
        ("DELETE", "/nearest", None, 405),
        ("POST", "/nearest", "{", 400),
        ("POST", "/nearest", '{"vector": [1]}', 422),
        ("POST", "/nearest", '{"queries": []}', 422),
        ("POST", "/analogy", '{"expression": "a +"}', 400),
        ("POST", "/rank", "[" * 200_000, 400),
    ]

    def invalid(self, caller):
        connection = self.service.connection()
        for method, path, body, status in random.sample(self.INVALID, len(self.INVALID)):
            connection.request(method, path, body, self.headers(caller))
            response = connection.getresponse()
            answer = response.read()
            if response.status != status:
                self.fail(f"{method} {path}: {response.status}, not {status}: {answer}")
            self.count("invalid")
        time.sleep(0.01)

    def large(self):
        queries = [{"word": word} for word in random.choices(self.words, k=1024)]
        return json.dumps({"queries": queries, "k": 60}).encode()

    def raw(self, caller, body):
        head = f"POST /nearest HTTP/1.1\r\nHost: soak\r\nAuthorization: Bearer {self.key.of[caller]}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        return head.encode() + body

    def connect(self):
        return socket.create_connection((self.service.host, self.service.port), timeout=60)

    def hang_up(self, caller):
        """Asks for much, and goes: at once, in the middle of the request, or while it is answered."""
        request = self.raw(caller, self.large())
        with self.connect() as connection:
            connection.sendall(request[: random.choice([10, len(request) // 2, len(request)])])
            time.sleep(random.choice([0, 0.001, 0.02]))
        self.count("hung up")
        time.sleep(0.3)

    def read_slowly(self, caller):
        """Asks for much and takes its time to read it; sometimes it never does."""
        with self.connect() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.sendall(self.raw(caller, self.large()))
            for _ in range(random.choice([0, 20, 60])):
                if not connection.recv(4096):
                    break
                time.sleep(0.05)
        self.count("read slowly")
        time.sleep(0.1)

    def send_slowly(self, caller):
        with self.connect() as connection:
            head = f"GET /nearest?word=x HTTP/1.1\r\nHost: soak\r\nAuthorization: Bearer {self.key.of[caller]}\r\nX-Slow: "
            for byte in head.encode():
                connection.send(bytes([byte]))
                time.sleep(0.02)
        self.count("sent slowly")

    def swap(self):
        time.sleep(5)
        self.point_to(random.choice([1, 2]))
        self.reload()
        self.count("reloads")

    def watch_memory(self):
        while not self.stop.is_set():
            memory = self.service.anonymous_memory()
            self.all_memory.append(memory)
            if self.hostile.pauses.is_set():
                self.memory.append(memory)
            time.sleep(0.1)

    def report(self):
        megabytes = np.array([m for m in self.memory if m]) / 1e6
        most, bound = max(m for m in self.all_memory if m) / 1e6, self.idle / 1e6 + 2 * POOL_MB * 1.5 + BESIDES_MB
        if most > bound:
            self.fail(f"memory reached {most:.1f} MB, over the bound of {bound:.1f} MB")
        warm = megabytes[len(megabytes) // 5 :]
        # What is swapped makes peaks: the memory in between is what may not grow.
        first, last = np.median(warm[: len(warm) // 3]), np.median(warm[-len(warm) // 3 :])
        growth = last / first - 1
        if growth > 0.05:
            self.fail(f"memory grew by {growth:.1%}")
        if max(self.latencies) > MOST_P99 * self.p99_alone:
            self.fail(f"p99 reached {max(self.latencies)} ms, alone {self.p99_alone} ms")
        print("| what | |\n| --- | --- |")
        for what, number in sorted(self.counts.items()):
            print(f"| {what} | {number} |")
        print(f"| p99 of wrk alone | {self.p99_alone:.1f} ms |")
        print(f"| p99 of wrk's rounds, median and most | {np.median(self.latencies):.1f}, {max(self.latencies):.1f} ms |")
        print(f"| RssAnon in the attacker's pauses, first and last third after warm-up | {first:.1f}, {last:.1f} MB ({growth:+.1%}) |")
        print(f"| RssAnon, most, of at most {bound:.0f} MB | {most:.1f} MB |")
        print(f"| failures | {len(self.failures)} |")
        return 1 if self.failures else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--kindred", default="target/release/kindred")
    parser.add_argument("--rows", type=int, default=30_000)
    parser.add_argument("--dim", type=int, default=100)
    soak = Soak(parser.parse_args())
    soak.run()
    sys.exit(soak.report())


if __name__ == "__main__":
    main()
