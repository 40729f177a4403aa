"""An open loop: requests are sent when they are due, whatever the answers, and a latency begins when its request was due.
Every answer is compared, byte for byte, with the one that is expected of the version that it names. Nothing is sent twice."""

import asyncio
import collections
import json
import time

# More than a balancer may take for an answer: then the request has failed.
PATIENCE = 60


class Failed(Exception):
    """No answer. `begun`: after a part of one, when no balancer may ask again."""

    def __init__(self, why, begun=False):
        super().__init__(why)
        self.begun = begun


class Connection:
    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer

    @property
    def is_open(self):
        return not self.reader.at_eof() and not self.writer.is_closing()

    async def ask(self, request):
        """The status, the headers and the body, and whether the connection may be used again."""
        begun = False
        try:
            self.writer.write(request)
            head = await self.reader.readuntil(b"\r\n\r\n")
            begun = True
            first, *lines = head.decode("latin-1").split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
            if "content-length" in headers:
                body = await self.reader.readexactly(int(headers["content-length"]))
            elif headers.get("transfer-encoding") == "chunked":
                body = await self.chunks()
            else:
                raise Failed(f"an answer without length: {head!r}", begun)
            stays = headers.get("connection", "").lower() != "close"
            return int(first.split()[1]), headers, body, stays
        except (OSError, asyncio.IncompleteReadError) as error:
            begun = begun or bool(getattr(error, "partial", b""))
            raise Failed(f"{type(error).__name__}: {error}", begun) from error

    async def chunks(self):
        body = b""
        while length := int(await self.reader.readuntil(b"\r\n"), 16):
            body += (await self.reader.readexactly(length + 2))[:-2]
        await self.reader.readexactly(2)
        return body


class Load:
    """Asks `questions` at `rate` through `address`, between `start` and `stop`. `may_be_full`: a 429 with Retry-After is right."""

    def __init__(self, address, questions, rate, may_be_full=False):
        self.address, self.questions, self.rate, self.may_be_full = address, questions, rate, may_be_full
        self.idle, self.running = [], {}
        self.latencies, self.failures, self.wrong = [], [], []
        self.asked, self.cut = 0, 0
        self.versions, self.statuses = collections.Counter(), collections.Counter()
        # By when it was due: the version in its answer.
        self.history = []

    def start(self):
        self.stopping = False
        self.loop = asyncio.ensure_future(self.run())

    async def run(self):
        begun = time.perf_counter()
        number = 0
        while not self.stopping:
            due = begun + number / self.rate
            if (wait := due - time.perf_counter()) > 0:
                await asyncio.sleep(wait)
            task = asyncio.ensure_future(self.one(self.questions[number % len(self.questions)], due))
            self.running[task] = due
            task.add_done_callback(self.running.pop)
            self.asked = number = number + 1

    async def stop(self):
        """Ends when every request has its answer."""
        self.stopping = True
        await self.loop
        if self.running:
            await asyncio.wait(self.running)
        for connection in self.idle:
            connection.writer.close()

    def waiting(self, seconds):
        """How many requests have been due for longer than this, and have no answer."""
        return sum(time.perf_counter() - due > seconds for due in self.running.values())

    async def one(self, question, due):
        try:
            status, headers, body = await asyncio.wait_for(self.answer(question), PATIENCE)
        except (Failed, TimeoutError, asyncio.TimeoutError) as error:
            if getattr(error, "begun", False):
                self.cut += 1
            self.failures.append(f"{question.name}: {error or 'no answer in time'}")
            return
        self.latencies.append(time.perf_counter() - due)
        self.statuses[status] += 1
        if status == 429 and self.may_be_full and "retry-after" in headers:
            return
        if status != 200:
            self.failures.append(f"{question.name}: {status} {body[:200]!r}")
            return
        answer = json.loads(body)
        version = answer["version"]
        self.versions[version] += 1
        self.history.append((due, version))
        if not question.is_right(answer, body):
            self.wrong.append(f"{question.name}: {body[:200]!r}")

    async def answer(self, question):
        connection = await self.connection()
        status, headers, body, stays = await connection.ask(question.request)
        if stays:
            self.idle.append(connection)
        else:
            connection.writer.close()
        return status, headers, body

    async def connection(self):
        while self.idle:
            # The one used last: the others may be closed.
            connection = self.idle.pop()
            if connection.is_open:
                return connection
            connection.writer.close()
        try:
            return Connection(*await asyncio.open_connection(*self.address))
        except OSError as error:
            raise Failed(f"no connection to the balancer: {error}") from error

    def percentile(self, share):
        """In milliseconds."""
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] * 1e3 if ordered else float("nan")
