"""Two plain HTTP clients for load tests, which count bytes and never wait: HTTP/1.1 with pipelining, and HTTP/2 with any number of
requests at once. Nothing here connects to anywhere but 127.0.0.1."""

import collections
import json
import re
import select
import socket
import struct
import time

HOST = "127.0.0.1"
JSON = [("content-type", "application/json")]


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
