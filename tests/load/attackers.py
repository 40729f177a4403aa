"""The clients and the attacks of `attacks`: see there.

Every attacker has one connection. Its bytes are made before it starts, so that it takes little of the processor
itself. Nothing here connects to anywhere but 127.0.0.1."""

import collections
import json
import random
import re
import select
import socket
import struct
import time

HOST = "127.0.0.1"
JSON = [("content-type", "application/json")]
# Bounds of one request, by openapi.yaml.
MAX_VECTOR_COMPONENTS = 4_000_000
MAX_FULL_PASS_WORDS = 4096
MAX_RESULTS = 65_536


class Request:
    """One request, to be written in either version of HTTP."""

    def __init__(self, method, path, body=None, headers=()):
        self.method, self.path, self.headers = method, path, list(headers)
        self.body = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode() if isinstance(body, dict) else body
        if self.body is not None:
            self.headers += JSON

    def http1(self):
        head = [f"{self.method} {self.path} HTTP/1.1", "host: 127.0.0.1"]
        head += [f"{name}: {value}" for name, value in self.headers]
        if self.body is not None:
            head.append(f"content-length: {len(self.body)}")
        return "\r\n".join([*head, "", ""]).encode() + (self.body or b"")

    def fields(self, declared=None):
        """The head in HTTP/2, as HPACK literals without indexing and without Huffman."""
        length = len(self.body) if self.body is not None and declared is None else declared
        pairs = [(":method", self.method), (":scheme", "http"), (":authority", HOST), (":path", self.path), *self.headers]
        if length is not None:
            pairs.append(("content-length", str(length)))
        block = b""
        for name, value in pairs:
            block += b"\x00" + hpack_string(name) + hpack_string(value)
        return block

    def with_header(self, name, value):
        other = Request(self.method, self.path, self.body)
        other.headers = [*self.headers, (name, value)]
        return other

    def with_field(self, name, value):
        """With another field at the beginning of the body."""
        other = Request(self.method, self.path)
        other.headers = self.headers
        other.body = b'{"%s":%s,' % (name.encode(), json.dumps(value).encode()) + self.body[1:]
        return other


def hpack_string(text):
    raw = text.encode()
    length = len(raw)
    if length < 127:
        return bytes([length]) + raw
    out, length = bytearray([127]), length - 127
    while length >= 128:
        out.append(length % 128 + 128)
        length //= 128
    out.append(length)
    return bytes(out) + raw


def connect(port):
    connection = socket.create_connection((HOST, port), timeout=5)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setblocking(False)
    return connection


class Answer:
    """An answer, when its first and last bytes came, and when the last byte of the request was sent."""

    def __init__(self, status, length, headers, body, asked, sent, first, last):
        self.status, self.length, self.headers, self.body = status, length, headers, body
        self.asked, self.sent, self.first, self.last = asked, sent, first, last


class Http1:
    """A connection in HTTP/1.1, one request at a time."""

    def __init__(self, port):
        self.socket = connect(port)
        self.poll = select.poll()
        self.buffer = bytearray(1 << 18)
        self.is_open = True

    def close(self):
        self.is_open = False
        self.socket.close()

    def send(self, data, give_up=lambda: False):
        """Sends without waiting for an answer; whether all of it went out."""
        data = memoryview(data)
        while data and not give_up():
            self.poll.register(self.socket, select.POLLOUT)
            if self.poll.poll(100):
                data = data[self.socket.send(data) :]
        return not data

    def ask(self, request, give_up=lambda: False, keep=False):
        """The answer, or None if it was given up. The body is kept only if asked for."""
        asked = time.monotonic()
        data, sent, first, head, body, kept = memoryview(request), None, None, b"", 0, bytearray()
        status = length = headers = None
        chunked = False
        while True:
            if data:
                try:
                    data = data[self.socket.send(data) :]
                except BlockingIOError:
                    pass
                if not data:
                    sent = time.monotonic()
            self.poll.register(self.socket, select.POLLIN | (select.POLLOUT if data else 0))
            for _, event in self.poll.poll(100):
                if not event & ~select.POLLOUT:
                    continue
                got = self.socket.recv_into(self.buffer)
                if not got:
                    self.close()
                    raise ConnectionResetError("the service closed the connection")
                first = first or time.monotonic()
                piece = memoryview(self.buffer)[:got]
                if status is None:
                    head += piece
                    end = head.find(b"\r\n\r\n")
                    if end < 0:
                        continue
                    piece, headers = memoryview(head)[end + 4 :], head[:end].lower()
                    status = int(headers[9:12])
                    found = re.search(rb"\r\ncontent-length: *(\d+)", headers)
                    length = int(found[1]) if found else 0
                    chunked = b"\r\ntransfer-encoding: chunked" in headers
                body += len(piece)
                if keep or chunked:
                    kept += piece
                    if chunked and not keep:
                        del kept[:-5]
            if status is not None and (kept.endswith(b"0\r\n\r\n") if chunked else body >= length):
                break
            if give_up():
                self.close()
                return None
        if data or b"\r\nconnection: close" in headers:
            self.close()
        last = time.monotonic()
        return Answer(status, body, headers, bytes(kept), asked, sent or last, first, last)


FRAME = struct.Struct(">BHBBI")
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, ACK, END_HEADERS = 1, 1, 4
MAX_WINDOW = (1 << 31) - 1


def frame(kind, flags, stream, payload=b""):
    length = len(payload)
    return FRAME.pack(length >> 16, length & 0xFFFF, kind, flags, stream) + payload


class Http2:
    """A connection in HTTP/2 from its first byte on (prior knowledge), with just as much of it as is needed.

    The service is told that there is no dynamic table, so that `:status` can be read from each head alone."""

    PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    INDEXED = {8: 200, 9: 204, 10: 206, 11: 304, 12: 400, 13: 404, 14: 500}
    HUFFMAN = {"00000": "0", "00001": "1", "00010": "2", "011001": "3", "011010": "4", "011011": "5"}
    HUFFMAN |= {"011100": "6", "011101": "7", "011110": "8", "011111": "9"}

    def __init__(self, port, window=MAX_WINDOW, keep=False):
        self.socket = connect(port)
        self.poll = select.poll()
        self.keep = {} if keep else None
        self.reads_all = window == MAX_WINDOW
        self.outgoing, self.incoming = bytearray(), bytearray()
        self.buffer = bytearray(1 << 20)
        self.next_stream, self.bytes_sent, self.received = 1, 0, 0
        # Of the service: what it lets be sent.
        self.window, self.stream_window, self.most = 65535, 65535, 16384
        self.windows, self.unsent = {}, collections.OrderedDict()
        settings = struct.pack(">HIHIHI", 1, 0, 2, 0, 4, window)
        self.outgoing += self.PREFACE + frame(SETTINGS, 0, 0, settings)
        if self.reads_all:
            self.open_window(0, MAX_WINDOW - 65535)

    def close(self):
        self.socket.close()

    def open_window(self, stream, by):
        self.outgoing += frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", by))

    def ask(self, fields, body=None, unfinished=False):
        """Sends a request, as far as the windows let it. Returns its stream. An unfinished one stays open."""
        stream, self.next_stream = self.next_stream, self.next_stream + 2
        self.outgoing += frame(HEADERS, END_HEADERS | (0 if body else END_STREAM), stream, fields)
        if body:
            self.windows[stream] = self.stream_window
            self.unsent[stream] = (memoryview(body), unfinished)
            self.send_bodies()
        return stream

    def send_bodies(self):
        for stream in list(self.unsent):
            body, unfinished = self.unsent[stream]
            while body and (size := min(len(body), self.window, self.windows[stream], self.most)) > 0:
                piece, body = body[:size], body[size:]
                flags = END_STREAM if not body and not unfinished else 0
                self.outgoing += frame(DATA, flags, stream, bytes(piece))
                self.window -= size
                self.windows[stream] -= size
            if body:
                self.unsent[stream] = (body, unfinished)
                if self.window <= 0:
                    return
            else:
                del self.unsent[stream], self.windows[stream]

    def events(self, milliseconds):
        """What happened: ("status", stream, status), ("end", stream, None), ("reset", stream, code),
        ("goaway", 0, code). Raises OSError when the connection is gone."""
        self.poll.register(self.socket, select.POLLIN | (select.POLLOUT if self.outgoing else 0))
        for _, event in self.poll.poll(milliseconds):
            if self.outgoing and event & select.POLLOUT:
                sent = self.socket.send(self.outgoing)
                del self.outgoing[:sent]
                self.bytes_sent += sent
            if event & ~select.POLLOUT:
                got = self.socket.recv_into(self.buffer)
                if not got:
                    raise ConnectionResetError("the service closed the connection")
                self.incoming += memoryview(self.buffer)[:got]
        return self.parse()

    def parse(self):
        happened, index, end = [], 0, len(self.incoming)
        while index + 9 <= end:
            high, low, kind, flags, stream = FRAME.unpack_from(self.incoming, index)
            length = high << 16 | low
            if index + 9 + length > end:
                break
            payload = memoryview(self.incoming)[index + 9 : index + 9 + length]
            self.handle(kind, flags, stream, payload, happened)
            payload.release()
            index += 9 + length
        del self.incoming[:index]
        return happened

    def handle(self, kind, flags, stream, payload, happened):
        if kind == DATA:
            self.received += len(payload)
            if self.keep is not None:
                self.keep.setdefault(stream, bytearray()).extend(payload)
            if self.reads_all and self.received > 1 << 24:
                self.open_window(0, self.received)
                self.received = 0
        elif kind == HEADERS:
            happened.append(("status", stream, self.status(bytes(payload))))
        elif kind == RST_STREAM:
            self.unsent.pop(stream, None)
            self.windows.pop(stream, None)
            happened.append(("reset", stream, int.from_bytes(payload, "big")))
        elif kind == SETTINGS and not flags & ACK:
            for name, value in struct.iter_unpack(">HI", payload):
                if name == 4:
                    for open_one in self.windows:
                        self.windows[open_one] += value - self.stream_window
                    self.stream_window = value
                elif name == 5:
                    self.most = value
            self.outgoing += frame(SETTINGS, ACK, 0)
            self.send_bodies()
        elif kind == PING and not flags & ACK:
            self.outgoing += frame(PING, ACK, 0, bytes(payload))
        elif kind == GOAWAY:
            happened.append(("goaway", 0, int.from_bytes(payload[4:8], "big")))
        elif kind == WINDOW_UPDATE:
            by = int.from_bytes(payload, "big")
            if stream == 0:
                self.window += by
            elif stream in self.windows:
                self.windows[stream] += by
            self.send_bodies()
        if kind in (DATA, HEADERS) and flags & END_STREAM:
            happened.append(("end", stream, None))

    def status(self, block):
        """`:status`, which comes first."""
        index = 0
        while block[index] & 0xE0 == 0x20:  # a change of the table's size
            more = block[index] & 0x1F == 0x1F
            index += 1
            while more:
                more = block[index] & 0x80
                index += 1
        first = block[index]
        if first & 0x80:
            return self.INDEXED.get(first & 0x7F, 0)
        length, text = block[index + 1] & 0x7F, block[index + 2 :]
        if not block[index + 1] & 0x80:
            return int(text[:length])
        bits, digits = "".join(f"{byte:08b}" for byte in text[:length]), ""
        while len(digits) < 3:
            size = 5 if bits[:5] in self.HUFFMAN else 6
            digits, bits = digits + self.HUFFMAN[bits[:size]], bits[size:]
        return int(digits)


class Model:
    """What an attacker knows of a model: its words, the shortest ones, and the bounds."""

    def __init__(self, words_file, dim, body_limit):
        words = words_file.read_text(encoding="utf-8").split("\n")[:-1]
        plain = re.compile("[a-z]+")
        self.dim, self.body_limit, self.rows = dim, body_limit, len(words)
        self.random = random.Random(1)
        some = dict.fromkeys(words[:20_000] + words[:: 1 + len(words) // 200_000])
        usable = [word for word in some if plain.fullmatch(word)]
        self.short = sorted(usable, key=len)
        self.word = "frog" if "frog" in usable else self.short[0]
        self.misspelt = self.misspellings(words, [word for word in usable if len(word) >= 8] or self.short[-1000:])

    def misspellings(self, words, long):
        """Words that the model does not have, though it has similar ones; of 8 letters and more if it has any."""
        known, found = set(words), []
        while len(found) < 400:
            word = list(self.random.choice(long))
            for index in self.random.sample(range(len(word)), 2):
                word[index] = self.random.choice("abcdefghijklmnopqrstuvwxyz")
            if "".join(word) not in known:
                found.append("".join(word))
        return found

    def vectors(self, size, digits):
        """Queries by vectors, about so many bytes in all."""
        number = min(1024, max(1, size // (self.dim * (digits + 4) + 13)))
        component = lambda: f"{self.random.uniform(-1, 1):.{digits}f}"
        queries = [f'{{"vector":[{",".join(component() for _ in range(self.dim))}]}}' for _ in range(number)]
        return Request("POST", "/nearest", ('{"k":1,"queries":[' + ",".join(queries) + "]}").encode())


class Attack:
    """An attack on one connection: the arguments of the service that it needs, and for how long it must run at
    least. `run` attacks until `stop`, then waits for answers until `drain` has passed; what it counted."""

    serve = ()
    at_least = 0
    second = None
    # Statuses of an answer to a valid request.
    valid = (200,)

    def __init__(self, text, make):
        self.text, self.make = text, make

    def prepare(self, model):
        made = self.make(model)
        self.requests = made if isinstance(made, list) else [made]

    def with_second(self, make):
        """Another victim beside the usual one: one request at a time."""
        self.second = make
        return self


class Counts:
    def __init__(self):
        self.sent = self.bytes = self.answered = 0
        self.by_status = collections.Counter()
        self.closed_after = None

    def answer(self, status):
        self.answered += 1
        self.by_status[str(status)] += 1

    def result(self, seconds):
        return {
            "sent": self.sent,
            "answered": self.answered,
            "by_status": dict(self.by_status),
            "bytes": self.bytes,
            "seconds": seconds,
            "closed_after": self.closed_after,
            "own_cpu_seconds": time.process_time(),
        }


def finished(stop, drain):
    """Whether it is time to give up: some time after the end."""
    ended = []

    def over():
        if stop.is_set() and not ended:
            ended.append(time.monotonic())
        return bool(ended) and time.monotonic() >= ended[0] + drain

    return over


class Loop(Attack):
    """HTTP/1.1: the next request as soon as the last one is answered, or sent if the attacker hangs up."""

    def __init__(self, text, make, hangs_up=False):
        super().__init__(text, make)
        self.hangs_up = hangs_up

    def run(self, port, stop, drain):
        counts, connection, started = Counts(), None, time.monotonic()
        requests, over = [request.http1() for request in self.requests], finished(stop, drain)
        while not stop.is_set():
            request = requests[counts.sent % len(requests)]
            try:
                if connection is None or not connection.is_open:
                    connection = Http1(port)
                counts.sent += 1
                counts.bytes += len(request)
                if self.hangs_up:
                    connection.send(request, over)
                    connection.close()
                    counts.by_status["hung up"] += 1
                elif answer := connection.ask(request, over):
                    counts.answer(answer.status)
            except OSError:
                counts.by_status["broken"] += 1
                connection = None
                time.sleep(0.05)
        return counts.result(time.monotonic() - started)


class Streams(Attack):
    """HTTP/2: so many streams at once, each one repeated when it is answered."""

    def __init__(self, text, number, make):
        super().__init__(text, make)
        self.number = number

    def run(self, port, stop, drain):
        counts, started, over = Counts(), time.monotonic(), finished(stop, drain)
        heads = [(request.fields(), request.body) for request in self.requests]
        while not stop.is_set():
            connection = None
            try:
                connection, in_work, next_one = Http2(port), {}, 0
                while not over() and (in_work or not stop.is_set()):
                    # A stream's successor asks the same, so that the mixture stays as it is.
                    while len(in_work) < self.number and not stop.is_set() and next_one < self.number:
                        in_work[connection.ask(*heads[next_one % len(heads)])] = next_one
                        next_one += 1
                        counts.sent += 1
                    for what, stream, value in connection.events(50):
                        if what == "status":
                            counts.answer(value)
                        elif what == "goaway":
                            counts.by_status["goaway"] += 1
                        elif stream in in_work:
                            if what == "reset":
                                counts.by_status[f"reset {value}"] += 1
                            index = in_work.pop(stream)
                            if not stop.is_set():
                                in_work[connection.ask(*heads[index % len(heads)])] = index
                                counts.sent += 1
            except OSError:
                counts.by_status["broken"] += 1
                time.sleep(0.05)
            if connection:
                counts.bytes += connection.bytes_sent
                connection.close()
        return counts.result(time.monotonic() - started)


class NoRead(Attack):
    """HTTP/2: large answers whose bodies are never read, and one small one a second, which is."""

    serve = ("--write-timeout-ms", "3000")
    at_least = 10

    def __init__(self, text, number, make):
        super().__init__(text, make)
        self.number = number

    def run(self, port, stop, drain):
        counts, started, over = Counts(), time.monotonic(), finished(stop, drain)
        request, small = self.requests[0], Request("GET", "/health/live")
        small_ones, next_small = set(), started + 1
        try:
            connection = Http2(port, window=0)
            for _ in range(self.number):
                connection.ask(request.fields(), request.body)
                counts.sent += 1
            heads = 0
            while not stop.is_set() or (heads < self.number and not over()):
                if time.monotonic() >= next_small:
                    next_small += 1
                    stream = connection.ask(small.fields())
                    small_ones.add(stream)
                    connection.open_window(stream, 1000)
                    connection.open_window(0, 1000)
                for what, stream, value in connection.events(50):
                    if what == "status" and stream in small_ones:
                        counts.by_status[f"live {value}"] += 1
                    elif what == "status":
                        heads += 1
                        counts.answer(value)
                    elif what == "reset":
                        counts.by_status[f"reset {value}"] += 1
                    elif what == "goaway":
                        counts.by_status["goaway"] += 1
                counts.bytes = connection.bytes_sent
        except OSError:
            counts.closed_after = time.monotonic() - started
            # One that is closed is not opened again: the question is when.
            while not stop.is_set():
                time.sleep(0.05)
        return counts.result(time.monotonic() - started)


class Declare(Attack):
    """HTTP/2: streams that declare a large body, send little of it and stay open."""

    SENT = 90

    def __init__(self, text, number, make):
        super().__init__(text, make)
        self.number = number

    def run(self, port, stop, drain):
        counts, started = Counts(), time.monotonic()
        request = self.requests[0]
        fields, beginning = request.fields(), request.body[: self.SENT]
        while not stop.is_set():
            connection = None
            try:
                connection, in_work = Http2(port), set()
                while not stop.is_set():
                    while len(in_work) < self.number:
                        in_work.add(connection.ask(fields, beginning, unfinished=True))
                        counts.sent += 1
                    for what, stream, value in connection.events(50):
                        if what == "status":
                            counts.answer(value)
                        elif what == "reset":
                            counts.by_status[f"reset {value}"] += 1
                        elif what == "goaway":
                            counts.by_status["goaway"] += 1
                        if what in ("reset", "end"):
                            in_work.discard(stream)
            except OSError:
                counts.by_status["broken"] += 1
                time.sleep(0.05)
            if connection:
                counts.bytes += connection.bytes_sent
                connection.close()
        return counts.result(time.monotonic() - started)


def rank(model):
    return Request("POST", "/rank", {"word": model.word, "words": model.short[:1000]})


def explain(model):
    queries = [{"word": word} for word in model.short[:1024]]
    return Request("POST", "/nearest", {"k": 1, "explain": True, "queries": queries})


def cosmul(k, **options):
    def make(model):
        number = MAX_FULL_PASS_WORDS // 32
        queries = [{"positive": model.random.sample(model.short[:1500], 32)} for _ in range(number)]
        common = {"k": min(k, model.rows), "method": "3cosmul", **options, "queries": queries}
        return Request("POST", "/analogy", common)

    return make


def evaluate(model):
    questions = [model.random.sample(model.short[:1500], 4) for _ in range(1000)]
    return Request("POST", "/evaluate", {"analogies": [{"name": "a", "questions": questions}]})


def exclude_many(model):
    queries = [{"word": word} for word in model.short[:1024]]
    options = {"fold_case": True, "explain": True, "exclude": model.short[100:1100]}
    return Request("POST", "/nearest", {**options, "queries": queries})


def get_3cosmul(model):
    a, b, c = model.random.sample(model.short[:1500], 3)
    return Request("GET", f"/analogy?positive={a}&positive={b}&negative={c}&method=3cosmul")


def get_brotli(model):
    path = f"/nearest?word={model.word}&k={min(1000, model.rows)}&with_vectors=true"
    return Request("GET", path, headers=[("accept-encoding", "br")])


def exclude_long(size):
    """One excluded word, as long as the body lets it be where no size is given."""

    def make(model):
        query = b'{"word":"%s"}' % model.word.encode()
        before, after = b'{"k":1,"exclude":["', b'"],"queries":[' + b",".join([query] * 1024) + b"]}"
        length = size or model.body_limit - len(before) - len(after) - 100
        return Request("POST", "/nearest", before + b"x" * length + after)

    return make


def large_answer(model):
    k = min(1000, model.rows)
    number = max(1, min(1024, MAX_VECTOR_COMPONENTS // (k * model.dim), MAX_RESULTS // k))
    queries = [{"word": word} for word in model.short[:number]]
    return Request("POST", "/nearest", {"k": k, "with_vectors": True, "queries": queries})


def large_body(model):
    """A body that is all spaces behind its beginning."""
    size = min(6_900_000, model.body_limit)
    return Request("POST", "/nearest", (b'{"k":1,"word":"%s"}' % model.word.encode()).ljust(size))


def lookups(model):
    prefixes = [f"/words?prefix={word[:2]}" for word in model.misspelt[:50]]
    unknown = [f"/words/{word}" for word in model.misspelt[50:200]]
    paths = prefixes + unknown
    model.random.shuffle(paths)
    return [Request("GET", path) for path in paths]


def batch(model):
    return model.vectors(45_000, 6)


def unknown_word(model):
    return Request("GET", f"/words/{model.misspelt[-1]}")


ATTACKS = {
    "rank": Loop("POST /rank of 1,000 words", rank),
    "explain1024": Loop("1,024 words, explained", explain),
    "cosmul128": Loop("128 analogies of 32 words by 3cosmul, k 512", cosmul(512)),
    "cosmulfill": Loop("128 analogies of 32 words by 3cosmul, k 1, explained", cosmul(1, explain=True)),
    "evaluate": Loop("1,000 questions by all methods", evaluate),
    "exclude1024": Loop("1,024 words without 1,000 others, folded and explained", exclude_many),
    "get3cosmul": Loop("GET /analogy by 3cosmul", get_3cosmul),
    "getbrotli": Loop("GET /nearest with 1,000 vectors, in brotli", get_brotli),
    "rank75": Streams("POST /rank of 1,000 words, 75 at once", 75, rank),
    "rank200": Streams("POST /rank of 1,000 words, 200 at once", 200, rank),
    "exclude1mb": Loop("1,024 queries without one word of 1 MB", exclude_long(1_000_000)),
    "exclude69mb": Loop("1,024 queries without one word as long as a body may be", exclude_long(None)),
    "exclude69mbgone": Loop("the same, and the attacker hangs up each time", exclude_long(None), hangs_up=True),
    "noread": NoRead("20 large answers that nobody reads", 20, large_answer),
    "noread150": NoRead("150 large answers that nobody reads", 150, large_answer),
    "declare": Declare("190 bodies of 6.9 MB declared, 90 bytes sent", 190, large_body).with_second(batch),
    "lookups": Streams("200 look-ups of prefixes and misspelt words", 200, lookups).with_second(unknown_word),
}
ATTACKS["lookups"].valid = (200, 404)

# For time-outs: shapes of requests that take long or are long.
SHAPES = {
    "rank": rank,
    "explain1024": explain,
    "cosmul128": cosmul(512),
    "evaluate": evaluate,
    "exclude1024": exclude_many,
    "spaces of 6 MB": large_body,
    "vectors of 6 MB": lambda model: model.vectors(min(6_000_000, model.body_limit), 54),
    "exclude of 6 MB": exclude_long(6_000_000),
}
