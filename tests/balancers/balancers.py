"""The two balancers, with the configurations of deploy/, in which only addresses and paths are replaced."""

import contextlib
import csv
import http.client
import io
import json
import pathlib
import re
import signal
import socket
import subprocess
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
# What the configurations say, in the order of the replicas.
HOSTS = ("127.0.0.2", "127.0.0.3", "127.0.0.4")
LISTEN = "127.0.0.1"


def free_port(*hosts):
    """A port that is free at each of these addresses."""
    while True:
        with contextlib.ExitStack() as stack:
            sockets = [stack.enter_context(socket.socket()) for _ in hosts]
            try:
                sockets[0].bind((hosts[0], 0))
                port = sockets[0].getsockname()[1]
                for one, host in zip(sockets[1:], hosts[1:]):
                    one.bind((host, port))
                return port
            except OSError:
                continue


def replaced(text, *pairs):
    """Each pair's first by its second; it must be there, so that a change of a configuration does not go unnoticed."""
    for old, new in pairs:
        assert old in text, f"the configuration has no {old!r}"
        text = text.replace(old, new)
    return text


class Balancer:
    def __init__(self, program, scratch, port, threads=2, cores=None):
        """The replicas listen at `port` of HOSTS. `cores`: a list for taskset."""
        self.program, self.scratch, self.port, self.threads = program, scratch, port, threads
        self.prefix = ["taskset", "-c", cores] if cores else []
        self.address = (LISTEN, free_port(LISTEN))
        self.processes, self.environment = [], None
        scratch.mkdir(parents=True, exist_ok=True)

    def spawn(self, *arguments):
        with open(self.scratch / "log", "ab") as log:
            command = [*self.prefix, self.program, *arguments]
            self.processes.append(subprocess.Popen(command, stdout=log, stderr=log, env=self.environment))

    def wait_answers(self, seconds=30):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.processes[-1].poll() is not None:
                break
            try:
                connection = http.client.HTTPConnection(*self.address, timeout=5)
                connection.request("GET", "/health/live")
                if connection.getresponse().status == 200:
                    return
            except (OSError, http.client.HTTPException):
                pass
            time.sleep(0.1)
        raise RuntimeError(f"{self.name} does not answer: {(self.scratch / 'log').read_text()[-3000:]}")

    def log(self):
        return (self.scratch / "log").read_text()

    def stop(self):
        for process in self.processes:
            if process.poll() is None:
                process.terminate()
        for process in self.processes:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class HAProxy(Balancer):
    name = "HAProxy"

    def configure(self, hosts=HOSTS, retries=True):
        text = (TOP / "deploy/haproxy/haproxy.cfg").read_text()
        text = replaced(
            text,
            ("0.0.0.0:8000", "%s:%d" % self.address),
            ("/run/haproxy/kindred.sock", str(self.scratch / "admin.sock")),
            # Names of this process's own: others may run on the same machine.
            ("abns@kindred-", f"abns@kindred-{self.port}-"),
            *((f"{host}:8080", f"{host}:{self.port}") for host in HOSTS),
        )
        text = replaced(text, ("\nglobal\n", f"\nglobal\n    nbthread {self.threads}\n"))
        if not retries:
            text = replaced(text, ("retries 2", "retries 0"))
        for letter, host in zip("abc", HOSTS):
            if host not in hosts:
                text = re.sub(rf"(?m)^ +(server {letter} |bind abns@\S+ name {letter}$).*\n", "", text)
        (self.scratch / "haproxy.cfg").write_text(text)

    def start(self):
        self.spawn("-W", "-f", str(self.scratch / "haproxy.cfg"))

    def reload(self, hosts):
        self.configure(hosts)
        loaded = lambda: self.log().count("Loading success")
        before = loaded()
        self.processes[-1].send_signal(signal.SIGUSR2)
        deadline = time.monotonic() + 20
        while loaded() == before:
            assert time.monotonic() < deadline, f"no new worker: {self.log()[-2000:]}"
            time.sleep(0.05)

    def reload_whole(self):
        """Every reload is one of the whole configuration."""

    def asked_again(self):
        """How often so far."""
        with socket.socket(socket.AF_UNIX) as admin:
            admin.connect(str(self.scratch / "admin.sock"))
            admin.sendall(b"show stat\n")
            text = b"".join(iter(lambda: admin.recv(65536), b"")).decode()
        rows = csv.DictReader(io.StringIO(text.removeprefix("# ")))
        return sum(int(row["wretr"]) for row in rows if (row["pxname"], row["svname"]) == ("choose", "BACKEND"))


class Envoy(Balancer):
    name = "Envoy"

    def configure(self, hosts=HOSTS, retries=True):
        self.admin = (LISTEN, free_port(LISTEN))
        text = (TOP / "deploy/envoy/envoy.yaml").read_text()
        text = replaced(
            text,
            ("address: 0.0.0.0, port_value: 8000", "address: %s, port_value: %d" % self.address),
            ("address: 127.0.0.1, port_value: 9901", "address: %s, port_value: %d" % self.admin),
            ("/etc/envoy/", f"{self.scratch}/"),
        )
        if not retries:
            text = replaced(text, ("num_retries: 2", "num_retries: 0"))
        (self.scratch / "envoy.yaml").write_text(text)
        self.list_replicas(hosts)

    def list_replicas(self, hosts):
        lines = (TOP / "deploy/envoy/replicas.yaml").read_text().splitlines(keepends=True)
        for host in HOSTS:
            assert sum(f"address: {host}, port_value: 8080" in line for line in lines) == 1, host
        lines = [line for line in lines if not any(f"address: {host}," in line for host in set(HOSTS) - set(hosts))]
        new = self.scratch / "replicas.new"
        new.write_text("".join(lines).replace("port_value: 8080", f"port_value: {self.port}"))
        new.rename(self.scratch / "replicas.yaml")

    def start(self):
        self.epoch = 0
        identity = self.scratch / "base-id"
        self.spawn(*self.arguments(), "--use-dynamic-base-id", "--base-id-path", str(identity))

    def arguments(self):
        arguments = ["-c", str(self.scratch / "envoy.yaml"), "--log-level", "warning", "--concurrency", str(self.threads)]
        return [*arguments, "--restart-epoch", str(self.epoch), "--drain-time-s", "2", "--parent-shutdown-time-s", "4"]

    def reload(self, hosts):
        self.list_replicas(hosts)
        deadline = time.monotonic() + 20
        while self.hosts() != set(hosts):
            assert time.monotonic() < deadline, f"Envoy has {self.hosts()} and not {hosts}: {self.log()[-2000:]}"
            time.sleep(0.05)

    def reload_whole(self):
        """A new process takes over, with the whole configuration."""
        self.epoch += 1
        identity = (self.scratch / "base-id").read_text().strip()
        self.spawn(*self.arguments(), "--base-id", identity)
        code = self.processes[-2].wait(60)
        assert code == 0, f"the old process ended with {code}: {self.log()[-2000:]}"

    def ask_admin(self, target):
        connection = http.client.HTTPConnection(*self.admin, timeout=10)
        connection.request("GET", target)
        return connection.getresponse().read()

    def hosts(self):
        clusters = json.loads(self.ask_admin("/clusters?format=json"))["cluster_statuses"]
        return {one["address"]["socket_address"]["address"] for one in clusters[0].get("host_statuses", [])}

    def asked_again(self):
        """How often so far."""
        text = self.ask_admin("/stats?filter=cluster.kindred.upstream_rq_retry$").decode()
        return int(text.rsplit(" ", 1)[1])


BALANCERS = {"haproxy": HAProxy, "envoy": Envoy}
