"""Requests, and what each version of the model answers: bytes that every replica gives, alone and beside anything."""

import http.client
import json
import random
import urllib.parse


class Question:
    def __init__(self, name, method, target, body=b""):
        self.name, self.method, self.target, self.body = name, method, target, body
        head = f"{method} {target} HTTP/1.1\r\nhost: balancer\r\n"
        if body:
            head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
        self.request = head.encode() + b"\r\n" + body
        # By version.
        self.expected = {}

    def is_right(self, answer, body):
        return body == self.expected.get(answer["version"])

    def ask(self, address):
        """Of a replica itself. Keeps the answer as the one expected of the replica's version."""
        connection = http.client.HTTPConnection(*address, timeout=60)
        headers = {"content-type": "application/json"} if self.body else {}
        connection.request(self.method, self.target, self.body or None, headers)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        assert answer.status == 200, f"{self.name}: {answer.status} {body[:300]!r}"
        self.expected[json.loads(body)["version"]] = body


def usual(words, dimensions, seed=1):
    """A mixture: GET and POST in equal parts, single words, analogies, batches, and bodies of 16 to 64 KB."""
    rng = random.Random(seed)
    questions = []

    def get(route, **fields):
        questions.append(Question(f"GET /{route}", "GET", f"/{route}?{urllib.parse.urlencode(fields)}"))

    for _ in range(40):
        get("nearest", word=rng.choice(words), k=rng.choice((5, 10, 50)))
    for _ in range(10):
        get("analogy", expression=f"{rng.choice(words)} + {rng.choice(words)} - {rng.choice(words)}")
    for _ in range(45):
        queries = [{"word": rng.choice(words)} for _ in range(rng.randint(1, 16))]
        questions.append(batch("a batch", queries))
    for size in (16_000, 32_000, 48_000, 60_000, 65_536):
        questions.append(of_size(rng, dimensions, size))
    rng.shuffle(questions)
    return questions


def batch(name, queries):
    return Question(name, "POST", "/nearest", json.dumps({"queries": queries, "k": 5}).encode())


def of_size(rng, dimensions, size):
    """A batch of vectors in exactly this many bytes."""
    queries, length = [], len(batch("", []).body)
    while True:
        one = {"vector": [round(rng.gauss(0, 1), 6) for _ in range(dimensions)]}
        # With the comma and the space before it.
        length += len(json.dumps(one)) + 2
        if length > size:
            break
        queries.append(one)
    body = batch("", queries).body
    return Question(f"a body of {size} bytes", "POST", "/nearest", body + b" " * (size - len(body)))


def large(dimensions):
    """Batches over 64 KB, by size."""
    rng = random.Random(2)
    return {size << 10: [of_size(rng, dimensions, size << 10) for _ in range(3)] for size in (80, 128, 256, 512)}
