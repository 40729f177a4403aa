"""The attacks of `attacks`: see there.

Every attacker has one connection. Its bytes are made before it starts, so that it takes little of the processor
itself. Nothing here connects to anywhere but 127.0.0.1."""

import collections
import random
import re
import time

from clients import Http1, Http2, Request

# Bounds of one request, by openapi.yaml.
MAX_VECTOR_COMPONENTS = 4_000_000
MAX_FULL_PASS_WORDS = 4096
MAX_RESULTS = 65_536


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


def rank(model, words=1000):
    return Request("POST", "/rank", {"word": model.word, "words": model.short[:words]})


def rank_few(model):
    return rank(model, words=10)


def explain(model):
    queries = [{"word": word} for word in model.short[:1024]]
    return Request("POST", "/nearest", {"k": 1, "explain": True, "queries": queries})


def cosmul(k, words=32, **options):
    def make(model):
        number = min(1024, MAX_FULL_PASS_WORDS // words)
        queries = [{"positive": model.random.sample(model.short[:1500], words)} for _ in range(number)]
        common = {"k": min(k, model.rows), "method": "3cosmul", **options, "queries": queries}
        return Request("POST", "/analogy", common)

    return make


def max_score(limit):
    """Nearly all rows are above the maximum, so no bound of a score rules them out."""

    def make(model):
        queries = [{"word": word} for word in model.short[:1024]]
        return Request("POST", "/nearest", {"max_score": limit, "queries": queries})

    return make


def exclude_many(model):
    queries = [{"word": word} for word in model.short[:1024]]
    options = {"fold_case": True, "explain": True, "exclude": model.short[100:1100]}
    return Request("POST", "/nearest", {**options, "queries": queries})


def get_3cosmul(model):
    a, b, c = model.random.sample(model.short[:1500], 3)
    return Request("GET", f"/analogy?positive={a}&positive={b}&negative={c}&method=3cosmul")


def get_gzip(model):
    path = f"/nearest?word={model.word}&k={min(1000, model.rows)}&with_vectors=true"
    return Request("GET", path, headers=[("accept-encoding", "gzip")])


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


def filters(number, make):
    """Searches with so many filters, each of which is new by the time that it comes again."""
    return lambda model: [
        Request("POST", "/nearest", {"word": model.word, "filter": make(model, n)}) for n in range(number)
    ]


def filter_key(model, n):
    return f"key != '{model.short[n]}' AND key != '{model.short[n + 1]}'"


def filter_keys(model, n):
    """As many words as a filter may have, if they are as long as these."""
    return f"key NOT IN [{','.join(model.short[n : n + 9_990])[:65_000].rpartition(',')[0]}]"


def filter_number(model, n):
    return f"a < {n % 999} AND keyword != k{n}"


def filter_tests(model, n):
    return " OR ".join(f"a = {(n + 3 * test) % 1000}" if test % 2 else f"keyword = k{n + test}" for test in range(256))


def filter_values(model, n):
    """10,000 keywords."""
    return f"keyword IN [{','.join(f'k{n + value}' for value in range(9990))}]"


def expand_text(words):
    """Texts of up to 512 words, as many as a head reads of one."""

    def make(model):
        some = [model.random.choice(model.short) for _ in range(words)]
        texts = [" ".join(some[start : start + 512]) for start in range(0, words, 512)]
        return Request("POST", "/expand", {"texts": texts})

    return make


def expand_vectors(size):
    """A text whose vectors come with the request, of about so many bytes in all, at most 4,096."""

    def make(model):
        tokens = min(4096, max(1, size // (model.dim * 7)))
        vector = lambda: [round(model.random.uniform(-1, 1), 3) for _ in range(model.dim)]
        return Request("POST", "/expand", {"vectors": [vector() for _ in range(tokens)], "top": 1000})

    return make


def expand_poison(model):
    return Request("POST", "/expand", {"vectors": [[1e30] + [0] * (model.dim - 1)]})


def expand_usual(model):
    return Request("POST", "/expand", {"text": " ".join(model.short[:16])})


def classify_new(words):
    """Different words in each request, so that the head's products of most are new."""

    def make(model):
        all = list(model.short)
        model.random.shuffle(all)
        pieces = [all[start : start + 500] for start in range(0, len(all), 500)]
        step = max(1, words // 500)
        bodies = [pieces[start : start + step] for start in range(0, len(pieces), step)]
        return [Request("POST", "/classify", {"texts": [" ".join(one) for one in body]}) for body in bodies]

    return make


def classify_explain(model):
    """N-grams around one unknown word that is as long as the body lets it be."""
    length = min(6_000_000, model.body_limit - 200)
    text = b"good " + b"x" * length + b" bad"
    return Request("POST", "/classify", b'{"explain":true,"text":"%s"}' % text)


ATTACKS = {
    "rank": Loop("POST /rank of 1,000 words", rank),
    "explain1024": Loop("1,024 words, explained", explain),
    "cosmul128": Loop("128 analogies of 32 words by 3cosmul, k 512", cosmul(512)),
    "cosmulfill": Loop("128 analogies of 32 words by 3cosmul, k 1, explained", cosmul(1, explain=True)),
    "exclude1024": Loop("1,024 words without 1,000 others, folded and explained", exclude_many),
    "maxscore1024": Loop("1,024 words with a maximum score of −0.2", max_score(-0.2)),
    "get3cosmul": Loop("GET /analogy by 3cosmul", get_3cosmul),
    "getgzip": Loop("GET /nearest with 1,000 vectors, in gzip", get_gzip),
    "rank75": Streams("POST /rank of 1,000 words, 75 at once", 75, rank),
    "rank10": Streams("POST /rank of 10 words, 75 at once", 75, rank_few),
    "rank200": Streams("POST /rank of 1,000 words, 200 at once", 200, rank),
    "exclude1mb": Loop("1,024 queries without one word of 1 MB", exclude_long(1_000_000)),
    "exclude69mb": Loop("1,024 queries without one word as long as a body may be", exclude_long(None)),
    "exclude69mbgone": Loop("the same, and the attacker hangs up each time", exclude_long(None), hangs_up=True),
    "noread": NoRead("20 large answers that nobody reads", 20, large_answer),
    "noread150": NoRead("150 large answers that nobody reads", 150, large_answer),
    "declare": Declare("190 bodies of 6.9 MB declared, 90 bytes sent", 190, large_body).with_second(batch),
    "expandtext": Loop("POST /expand of 512 words", expand_text(512)).with_second(expand_usual),
    "expandtexts": Loop("POST /expand of 20 texts of 512 words", expand_text(10_240)).with_second(expand_usual),
    "expandvectors": Loop("POST /expand of 59 kB of vectors", expand_vectors(59_000)).with_second(expand_usual),
    "expand6mb": Loop("POST /expand of 6 MB of vectors", expand_vectors(6_000_000)).with_second(expand_usual),
    "expandpoison": Loop("POST /expand of one vector of 1e30", expand_poison).with_second(expand_usual),
    "classifynew": Loop("POST /classify of 10,000 words that were not asked before", classify_new(10_000)),
    "classifyexplain": Loop("an explanation around an unknown word of 6 MB", classify_explain),
    "noreadexplain": NoRead("3 of these that nobody reads", 3, classify_explain).with_second(large_answer),
    "filterkey": Loop("a new filter of two words in each request", filters(5000, filter_key)),
    "filterkeys": Loop("a new filter of nearly 10,000 words in each request", filters(1100, filter_keys)),
    "filternumber": Loop("a new filter of two attributes in each request", filters(5000, filter_number)),
    "filtertests": Loop("a new filter of 256 tests in each request", filters(1100, filter_tests)),
    "filtervalues": Loop("a new filter of 9,990 keywords in each request", filters(1100, filter_values)),
    "lookups": Streams("200 look-ups of prefixes and misspelt words", 200, lookups).with_second(unknown_word),
}
ATTACKS["lookups"].valid = (200, 404)
# These need attributes: those of `kindred synth --attributes`.
OF_ATTRIBUTES = ("filternumber", "filtertests", "filtervalues")

# For time-outs: shapes of requests that take long or are long.
SHAPES = {
    "rank": rank,
    "explain1024": explain,
    "cosmul128": cosmul(512),
    "cosmul1024": cosmul(1, words=3),
    "exclude1024": exclude_many,
    "spaces of 6 MB": large_body,
    "vectors of 6 MB": lambda model: model.vectors(min(6_000_000, model.body_limit), 54),
    "exclude of 6 MB": exclude_long(6_000_000),
}
