"""Replicas of Kindred on loopback addresses, and what may happen to them."""

import http.client
import json
import os
import pathlib
import signal
import subprocess
import threading
import time

MODEL = "balanced"
# One whose rows are further behind leaves the balancer, in seconds.
MAX_LAG = 3


def synthetic(program, scratch, seed):
    """A version of a model: the same words, other vectors."""
    folder = scratch / f"version-{seed}"
    if not folder.exists():
        command = [program, "synth", "--rows", "20000", "--dim", "64", "--seed", str(seed), "--out", str(folder)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return folder


class Replica:
    """A process at an address that stays, whatever becomes of it."""

    def __init__(self, program, address, scratch):
        self.program, self.address, self.scratch = program, address, scratch
        self.process = None

    def start(self, folder):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("KINDRED_")}
        command = [self.program, "serve", "--listen", "%s:%d" % self.address, *self.model(folder)]
        # Little of everything: three of them share a small machine. The queue is as small as the test that fills it can fill.
        command += ["--device", "cpu", "--threads", "1", "--http-threads", "1", "--queue-capacity-queries", "1024"]
        command += ["--access-log-one-in", "0", "--log-level", "warn"]
        log = open(self.scratch / f"replica-{self.address[0]}.log", "ab")
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log, env=environment)
        log.close()

    def model(self, folder):
        """The options with what is served."""
        return ["--model", f"{MODEL}={folder}"]

    def wait_ready(self, seconds=60):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                log = (self.scratch / f"replica-{self.address[0]}.log").read_text()
                raise RuntimeError(f"the replica at {self.address[0]} ended: {log[-2000:]}")
            try:
                if self.is_ready():
                    return
            except OSError:
                pass
            time.sleep(0.1)
        raise RuntimeError(f"the replica at {self.address[0]} is not ready after {seconds} s")

    def is_ready(self):
        return self.get("/health/ready")[0] == 200

    def get(self, target):
        connection = http.client.HTTPConnection(*self.address, timeout=10)
        connection.request("GET", target)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, body

    def answered(self):
        """How many requests for neighbours and analogies."""
        lines = self.get("/metrics")[1].decode().splitlines()
        counted = ('kindred_requests_total{route="/nearest"', 'kindred_requests_total{route="/analogy"')
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(counted))

    def signal(self, number):
        self.process.send_signal(number)

    def stop(self):
        """As a supervisor does: requests in progress are answered."""
        self.signal(signal.SIGTERM)
        code = self.process.wait(60)
        assert code == 0, f"the replica at {self.address[0]} ended with {code}"

    def kill(self):
        if self.process is not None and self.process.poll() is None:
            self.signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait()


class Filler:
    """Keeps the queue of a replica full: callers that each ask for many ranks, again and again, not through the balancer."""

    CALLERS = 64

    def __init__(self, address, words):
        self.address = address
        self.body = json.dumps({"word": words[0], "words": words[1:1001]}).encode()
        self.stopping = threading.Event()
        self.statuses = {}
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.run, daemon=True) for _ in range(self.CALLERS)]
        for thread in self.threads:
            thread.start()

    def run(self):
        while not self.stopping.is_set():
            try:
                connection = http.client.HTTPConnection(*self.address, timeout=30)
                while not self.stopping.is_set():
                    connection.request("POST", "/rank", self.body, {"content-type": "application/json"})
                    answer = connection.getresponse()
                    said = answer.read()
                    with self.lock:
                        self.statuses[answer.status] = self.statuses.get(answer.status, 0) + 1
                    if answer.status not in (200, 429):
                        raise RuntimeError(f"POST /rank: {answer.status} {said[:300]!r}")
                    self.stopping.wait(0.03 if answer.status == 429 else 0)
            except (OSError, http.client.HTTPException):
                time.sleep(0.05)

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join()
