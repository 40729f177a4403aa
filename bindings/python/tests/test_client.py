"""Clients: what works on a model in process works on a service, and what a network does to them."""

from __future__ import annotations

import asyncio
import inspect
import json
import multiprocessing
import pickle
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from service import Fake, Service, answer, problem

import kindred
from kindred.client._npy import decode, encode

FROG = answer('{"model":"m","version":"v","neighbors":[{"word":"toad","score":0.5,"row":3}]}')
TOAD = [kindred.Neighbor("toad", 0.5, 3)]


class Awaited:
    """An `AsyncClient` whose methods wait, so that it is used as the others are."""

    def __init__(self, *arguments, **keywords):
        self._loop = asyncio.new_event_loop()
        self._client = kindred.AsyncClient(*arguments, **keywords)

    def __getattr__(self, name):
        method = getattr(self._client, name)
        return lambda *arguments, **keywords: self._loop.run_until_complete(method(*arguments, **keywords))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
        self._loop.close()


KINDS = [kindred.Client, Awaited]
both = pytest.mark.parametrize("kind", KINDS, ids=["sync", "async"])


@pytest.fixture(scope="module")
def service():
    service = Service()
    yield service
    service.stop()


@pytest.fixture(params=KINDS, ids=["sync", "async"])
def client(request, service):
    with request.param(service.url) as client:
        yield client


@pytest.fixture
def fake():
    made = []

    def make(*answers):
        made.append(Fake(*answers))
        return made[-1]

    yield make
    [one.close() for one in made]


# The same as in process

RANDOM = np.random.default_rng(11).normal(size=(3000, 100))
TEXTS = ["a moving and funny film", "what a waste of time", "qwqwqw zzzz", "", "frog", "  "]

QUESTIONS = {
    "a word": lambda m: m.nearest("frog", k=5),
    "ten": lambda m: m.nearest("frog"),
    "words": lambda m: m.nearest(["frog", "piano", "king"], k=3),
    "many words": lambda m: m.nearest(["frog", "piano"] * 60, k=1000),
    "more words than a request takes": lambda m: m.nearest(["frog", "toad", "king"] * 700, k=1),
    "a vector": lambda m: m.nearest(RANDOM[0], k=7),
    "a list of numbers": lambda m: m.nearest(list(RANDOM[1]), k=7),
    "vectors": lambda m: m.nearest(RANDOM[:5], k=4),
    "more vectors than a request takes": lambda m: m.nearest(RANDOM.astype(np.float32), k=3),
    "more results than a request takes": lambda m: m.nearest(RANDOM[:70], k=1000),
    "no vectors": lambda m: m.nearest(RANDOM[:0], k=3),
    "fewer than k": lambda m: m.nearest(RANDOM[:3], k=9, min_score=0.39),
    "columns": lambda m: m.nearest(np.asfortranarray(RANDOM[:4].astype(np.float16)), k=2),
    "a text": lambda m: m.nearest_text("Roses, violets & qwertyish!", k=3),
    "a long text": lambda m: m.nearest_text("frog toad lizard " * 80, k=3),
    "filters": lambda m: m.nearest("frog", exclude=["toad"], vocab_limit=20_000, min_score=0.1, max_score=0.65, k=4),
    "filters of vectors": lambda m: m.nearest(
        RANDOM[:5], exclude=("holmes", "a+b&c=ü"), vocab_limit=20_000, max_score=np.float32(0.3)
    ),
    "a long exclude": lambda m: m.nearest("frog", exclude=[f"frogs{n}" for n in range(900)] + ["frogs"], k=3),
    "a set": lambda m: m.nearest("frog", exclude={"frogs"}, include_query=np.True_, k=np.int64(3), fold_case=None),
    "fold_case": lambda m: m.nearest("frog", fold_case=True, unknown="skip", timeout_ms=60_000),
    "an expression": lambda m: m.analogy("king - man + woman", k=3),
    "expressions": lambda m: m.analogy(["king - man + woman", "0.5*ice + (water - 2*fire)"], k=3),
    "no expressions": lambda m: m.analogy([]),
    "lists": lambda m: m.analogy(positive=["paris", ("japan", 0.8)], negative="france", k=3),
    "3cosmul": lambda m: m.analogy(positive=["paris", "japan"], negative=["france"], k=3, method="3cosmul"),
    "pairdirection": lambda m: m.analogy("paris - france + japan", k=3, method="pairdirection"),
    "pairdirection of lists": lambda m: m.analogy(positive=["king", "woman"], negative=["man"], k=3, method="pairdirection"),
    "skip": lambda m: m.analogy("king - man + woman + nosuchword", k=3, unknown="skip"),
    "explain": lambda m: m.explain("king - man + woman", k=3),
    "explain 3cosmul": lambda m: m.explain("king - man + woman", k=3, method="3cosmul"),
    "explain a text": lambda m: m.explain(text="a quick brown fox", k=3),
    "explain lists": lambda m: m.explain(positive=["king"], negative=[("man", 0.5)], k=3),
    "rank": lambda m: m.rank(["toad", "car"], "frog"),
    "rank one": lambda m: m.rank("toad", "frog", exclude=["frogs"], vocab_limit=10_000),
    "rank by a vector": lambda m: m.rank(["toad", "car"], RANDOM[3]),
    "rank by pairs": lambda m: m.rank("queen", [("king", 1), ("man", -1), ("woman", 1)]),
    "similarity": lambda m: m.similarity("frog", "toad"),
    "similarity of sets": lambda m: m.similarity(["red", "green"], ("purple", "orange")),
    "similarities": lambda m: m.similarities([("frog", "toad"), ("king", "queen")] * 600),
    "no similarities": lambda m: m.similarities([]),
    "odd one out": lambda m: m.odd_one_out(["breakfast", "lunch", "dinner", "piano"]),
    "suggestions": lambda m: [m.suggestions("frogg"), m.suggestions("frog"), m.suggestions("zzzzqqqq")],
    "prefix": lambda m: m.words_with_prefix("fro", 4),
    "row": lambda m: m.row("frog"),
    "vector of a word": lambda m: m.vector("frog"),
    "classify": lambda m: m.classify(TEXTS),
    "classify one": lambda m: [m.classify(text) for text in TEXTS],
    "classify none": lambda m: m.classify([]),
    "classify a generator": lambda m: m.classify(text for text in TEXTS * 300),
    "a cut text": lambda m: m.classify("film good " * 600),
    "expand": lambda m: without_rows(m.expand(TEXTS, top=5)),
    "expand one": lambda m: without_rows(m.expand("cheap flights", min_weight=0.1, max_ratio=0.3)),
    "expand many": lambda m: without_rows(m.expand(TEXTS * 30, top=1000)),
    "expand vectors": lambda m: without_rows(m.expand(RANDOM[:4], top=6)),
}


def without_rows(terms):
    # The service does not say the rows of terms.
    if isinstance(terms, list):
        return [without_rows(one) for one in terms]
    return terms._replace(terms=[term._replace(row=0) for term in terms.terms])


def is_same(found, expected):
    """Equal to the bit, with the same types."""
    assert type(found) is type(expected)
    if isinstance(expected, np.ndarray):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        assert found.tobytes() == expected.tobytes()
    elif isinstance(expected, kindred.Neighbors):
        [is_same(*pair) for pair in zip(found, expected)]
    elif isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        [is_same(*pair) for pair in zip(found, expected)]
    else:
        assert found == expected


@pytest.mark.parametrize("ask", QUESTIONS.values(), ids=QUESTIONS)
def test_the_same_code_has_the_same_answer(demo, client, ask):
    is_same(ask(client), ask(demo))


WRONG = {
    "unknown word": lambda m: m.nearest("frogg"),
    "unknown words": lambda m: m.nearest(["toad", "frogg", "kingg"]),
    "unknown in expressions": lambda m: m.analogy(["king", "kingg - frogg + woman"]),
    "unknown in pairs": lambda m: m.similarities([("frog", "toad"), ("kingg", "frog")]),
    "unknown in sets": lambda m: m.similarity(["kingg"], "frogg"),
    "unknown in ranks": lambda m: m.rank("frogg", "kingg"),
    "unknown odd": lambda m: m.odd_one_out(["kingg", "frogg", "frog"]),
    "unknown row": lambda m: m.row("frogg"),
    "unknown vector": lambda m: m.vector("frogg"),
    "unknown text": lambda m: m.nearest_text("qwqwqw zzzz"),
    "k": lambda m: m.nearest("frog", k=0),
    "k is True": lambda m: m.nearest("frog", k=True),
    "k is text": lambda m: m.nearest("frog", k="5"),
    "k is a fraction": lambda m: m.nearest("frog", k=1.0),
    "a huge k": lambda m: m.nearest(RANDOM[:2], k=2**70),
    "min_score": lambda m: m.nearest("frog", min_score=float("nan")),
    "min_score is text": lambda m: m.nearest(RANDOM[0], min_score="0.1"),
    "exclude": lambda m: m.nearest("frog", exclude="toad"),
    "exclude of numbers": lambda m: m.nearest("frog", exclude=["a", 5]),
    "a long exclude": lambda m: m.nearest("frog", exclude=["a"] * 1001),
    "include_query": lambda m: m.nearest("frog", include_query=1),
    "unknown": lambda m: m.nearest("frog", unknown="SKIP"),
    "vocab_limit": lambda m: m.nearest("frog", vocab_limit=0),
    "timeout_ms": lambda m: m.nearest("frog", timeout_ms=0),
    "method": lambda m: m.analogy("king", method="best"),
    "no such option": lambda m: m.nearest("frog", topn=3),
    "grammar": lambda m: m.analogy("king - (man"),
    "both": lambda m: m.analogy("king", positive=["man"]),
    "no expression": lambda m: m.analogy(5),
    "cancelled": lambda m: m.analogy("king - king"),
    "weights": lambda m: m.analogy("2*king - man", method="pairdirection"),
    "weight": lambda m: m.rank(["frog"], [("toad", float("nan"))]),
    "zero": lambda m: m.nearest(np.zeros(100, np.float32)),
    "dim": lambda m: m.nearest(np.ones(99, np.float32)),
    "dim of vectors": lambda m: m.nearest(np.ones((100, 99), np.float32)),
    "dim of tokens": lambda m: m.expand(np.ones((100, 99), np.float32)),
    "dims": lambda m: m.nearest(np.ones((2, 2, 2), np.float32)),
    "nan": lambda m: m.nearest(np.full(100, np.nan)),
    "nan in ranks": lambda m: m.rank(["frog"], np.full(100, np.nan)),
    "range": lambda m: m.nearest(np.full(100, 1e300)),
    "integers": lambda m: m.nearest(np.arange(100)),
    "words as an array": lambda m: m.nearest(np.array(["a"])),
    "top": lambda m: m.expand("frog", top=0),
    "the vector that is zero": lambda m: m.nearest(np.where(np.arange(2500)[:, None] == 2345, 0, RANDOM[:2500]), k=1),
    "the vector that is not finite": lambda m: m.nearest(np.where(np.arange(2500)[:, None] == 1024, np.inf, RANDOM[:2500]), k=1),
}


@pytest.mark.parametrize("ask", WRONG.values(), ids=WRONG)
def test_the_same_code_has_the_same_error(demo, client, ask):
    with pytest.raises(Exception) as expected:
        ask(demo)
    with pytest.raises(Exception) as found:
        ask(client)
    found, expected = found.value, expected.value
    assert type(found) is type(expected)
    assert str(found) == str(expected)
    for name, value in vars(expected).items():
        assert getattr(found, name) == value, name
    if isinstance(found, kindred.KindredError) and found.status is not None:
        assert found.code and found.request_id
    again = pickle.loads(pickle.dumps(found))
    assert (type(again), str(again), vars(again)) == (type(found), str(found), vars(found))


def test_the_methods_are_the_models():
    for kind in (kindred.Client, kindred.AsyncClient):
        for name in ("nearest", "nearest_text", "analogy", "explain", "rank", "similarity", "similarities", "odd_one_out", "row",
                     "vector", "suggestions", "words_with_prefix", "classify", "expand"):  # fmt: skip
            ours, models = (inspect.signature(getattr(one, name)) for one in (kind, kindred.Model))
            assert list(ours.parameters) == list(models.parameters), name
            defaults = [[parameter.default for parameter in one.parameters.values()] for one in (ours, models)]
            assert defaults[0] == defaults[1], name


def test_what_the_model_is(demo, service):
    with kindred.Client(service.url) as client:
        assert (client.shape, client.dim, client.metric, client.version) == (demo.shape, demo.dim, demo.metric, demo.version)
        assert (len(client), client.name, bool(client)) == (30_000, "demo", True)
        assert "frog" in client and "frogg" not in client and 5 not in client
        is_same(client["frog"], demo["frog"])
        assert client.device.startswith("cpu (")
        assert not client.vector("frog").flags.writeable


def test_what_a_service_has_besides(client):
    assert client.model()["rows"] == 30_000
    assert [model["name"] for model in client.models()] == ["demo"]
    assert {head["name"] for head in client.heads()} == {"sentiment", "nearby"}
    about = client.word("frog")
    assert (about["row"], about["norm"]) == (9070, 1.0000153464995105)
    assert client.live() is True and client.ready() is True
    assert "kindred_requests_total" in client.metrics()
    assert client.classify("frog", head="sentiment") == client.classify("frog")


def test_what_a_service_refuses(client):
    with pytest.raises(kindred.UnauthorizedError, match="admin key.*403 forbidden, request ") as caught:
        client.reload()
    assert isinstance(caught.value, PermissionError) and caught.value.status == 403
    with pytest.raises(kindred.InvalidValueError, match="there is no head `x`; heads: sentiment") as caught:
        client.classify("frog", head="x")
    assert (caught.value.field, caught.value.code) == ("head", "no_such_head")
    with pytest.raises(kindred.InvalidValueError, match="not a folder"):
        client.classify("frog", head=__file__.encode())
    with pytest.raises(kindred.InvalidValueError, match="`limit` must be"):
        client.words_with_prefix("fro", 5000)
    for ask in (lambda: client.odd_one_out(["frog", "toad"]), lambda: client.rank([], "frog")):
        with pytest.raises(kindred.InvalidValueError, match="3 to 256.*1 to 1000") as caught:
            ask()
        assert caught.value.field == "words"
    with pytest.raises(kindred.UnsupportedError, match="not of a row"):
        client.vector(5)


@pytest.mark.parametrize("name", ["nearest_rows", "scores", "vectors", "words", "knn_graph", "write_graph", "evaluate", "verify"])
def test_what_a_service_can_not_do_is_said(name):
    for client in (kindred.Client("http://localhost:1"), kindred.AsyncClient("http://localhost:1")):
        assert hasattr(kindred.Model, name) and not hasattr(client, name)
        with pytest.raises(kindred.UnsupportedError, match=f"a client has no `{name}`: a service .*; "):
            getattr(client, name)
        with pytest.raises(AttributeError, match="no attribute 'nearst'"):
            client.nearst


def test_a_model_by_its_name(service, client):
    with kindred.Client(service.url + "/", model="demo") as named:
        assert named.nearest("frog") == client.nearest("frog")
        assert named.models()[0]["name"] == "demo" and named.live()
    with kindred.Client(service.url, model="gl/ve") as named:
        with pytest.raises(kindred.ModelError, match="there is no model `gl/ve`; models: demo") as caught:
            named.nearest("frog")
        assert (caught.value.status, caught.value.known) == (404, ["demo"])


def test_keys_and_reload(tmp_path):
    from service import program

    made = [subprocess.run([program(), "api-key", name, *flags], capture_output=True, text=True, check=True).stdout.split("\n")
            for name, flags in (("reader", []), ("operator", ["--admin"]))]  # fmt: skip
    keys = tmp_path / "keys"
    keys.write_text("".join(f"{lines[4]}\n" for lines in made))
    service = Service("--api-keys-file", str(keys))
    try:
        for key in (None, "wrong"):
            with kindred.Client(service.url, api_key=key) as client, pytest.raises(kindred.UnauthorizedError) as caught:
                client.nearest("frog")
            assert (caught.value.status, caught.value.code) == (401, "unauthorized")
        with kindred.Client(service.url, api_key=made[0][1]) as client:
            assert client.nearest("frog", k=1)[0].word == "frogs"
            assert made[0][1] not in repr(client) + repr(client._settings)
            with pytest.raises(kindred.UnauthorizedError):
                client.reload()
        with kindred.Client(service.url, api_key=made[1][1]) as client:
            assert client.reload(timeout=60)["models"][0]["outcome"] == "unchanged"
    finally:
        service.stop()


def test_many_threads_share_a_client(demo, service):
    expected = {word: demo.nearest(word, k=20) for word in ("frog", "piano", "king", "blue")}
    arrays = demo.nearest(RANDOM[:1500], k=2)
    wrong = []
    with kindred.Client(service.url) as client:

        def ask():
            for _ in range(5):
                wrong.extend(word for word, answer in expected.items() if client.nearest(word, k=20) != answer)
            if client.nearest(RANDOM[:1500], k=2).scores.tobytes() != arrays.scores.tobytes():
                wrong.append("arrays")

        threads = [threading.Thread(target=ask) for _ in range(8)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
    assert not wrong


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_client_works_after_a_fork(service):
    with kindred.Client(service.url) as client:
        client.nearest(RANDOM[:2000], k=1)
        with multiprocessing.get_context("fork").Pool(2, initializer=globals().__setitem__, initargs=("CLIENT", client)) as pool:
            found = pool.map(_ask_in_child, range(6))
        assert found == ["frogs"] * 6 and client.nearest("frog", k=1)[0].word == "frogs"


def _ask_in_child(_):
    return CLIENT.nearest("frog", k=1)[0].word  # noqa: F821


# Requests


@both
def test_what_is_sent(fake, kind):
    server = fake(FROG)
    with kind(server.url + "/prefix/", model="a/b é", api_key="secret", timeout=5) as client:
        assert client.nearest("a+b &%é", k=1, exclude=["x y", "z"]) == TOAD
        client.nearest_text("word " * 500)
        client.nearest(np.ones(3), k=2)
    word, text, vector = server.asked
    path = "/prefix/models/a%2Fb%20%C3%A9/nearest"
    assert (word.method, word.target) == ("GET", f"{path}?word=a%2Bb%20%26%25%C3%A9&exclude=x%20y&exclude=z&k=1") or (
        word.target == f"{path}?word=a%2Bb%20%26%25%C3%A9&k=1&exclude=x%20y&exclude=z"
    )
    assert word.headers["authorization"] == "Bearer secret" and word.headers["accept"] == "application/json"
    assert 4000 < int(word.headers["request-timeout-ms"]) <= 5000
    assert "content-type" not in word.headers
    assert (text.method, text.target, text.headers["content-type"]) == ("POST", path, "application/json")
    assert json.loads(text.body) == {"text": "word " * 500, "k": 10}
    assert (vector.method, vector.target, vector.headers["content-type"]) == ("POST", f"{path}?k=2", "application/x-npy")
    assert decode(vector.body).tolist() == [1, 1, 1] and decode(vector.body).dtype == np.float32
    assert len({asked.headers["x-request-id"] for asked in server.asked}) == 3


def array_of(asked, k=2, kind="application/x-npy"):
    sent = decode(asked.body)
    found = np.zeros((len(sent), k), [("row", "<i8"), ("score", "<f8")])
    found["row"] = sent[:, :1]
    return answer(encode(found), kind=kind)


@both
def test_batches_are_cut_and_sent_several_at_once(fake, kind):
    def slowly(connection, asked):
        # The first is the slowest: the order of answers is not that of the rows.
        time.sleep(0.3 if decode(asked.body)[0, 0] == 0 else 0.02)
        return array_of(asked)

    server = fake(slowly)
    vectors = np.repeat(np.arange(10_000, dtype=np.float32)[:, None], 2, axis=1)
    with kind(server.url, parallel=3) as client:
        found = client.nearest(vectors, k=2)
    assert found.indices[:, 0].tolist() == list(range(10_000))
    assert sorted(len(decode(asked.body)) for asked in server.asked) == [784] + [1024] * 9
    assert server.most_under_way == 3


@both
def test_the_first_error_of_a_batch_in_order_ends_it(fake, kind):
    def some(connection, asked):
        first = int(decode(asked.body)[0, 0])
        time.sleep(0.2 if first == 1024 else 0)
        if first in (1024, 2048):
            return problem(422, "zero_query", f"`queries[{first // 1024}]`: zero; an .npy answer has no place", query=first // 1024)
        return array_of(asked)

    server = fake(some)
    with kind(server.url, parallel=2) as client, pytest.raises(kindred.ZeroVectorError, match="^vector 1025: zero$") as caught:
        client.nearest(np.repeat(np.arange(20_000, dtype=np.float32)[:, None], 2, axis=1), k=2)
    assert caught.value.query == 1025 and len(server.asked) <= 4


# Attempts


@both
@pytest.mark.parametrize("refusal", [problem(429, "queue_full", retry_after=1), problem(503, "engine_restarting", retry_after=1)])
def test_a_refusal_is_asked_again_after_its_time(fake, kind, refusal):
    server = fake(refusal, FROG)
    with kind(server.url) as client:
        start = time.monotonic()
        assert client.nearest(np.ones(2)) == TOAD
    assert 1 <= time.monotonic() - start < 3
    first, second = server.asked
    assert first.headers["x-request-id"] == second.headers["x-request-id"]
    assert first.body == second.body
    assert int(second.headers["request-timeout-ms"]) <= int(first.headers["request-timeout-ms"]) - 900


@both
def test_a_refusal_without_a_time_is_asked_again(fake, kind):
    server = fake(problem(503, "draining"), b"", FROG)
    with kind(server.url) as client:
        start = time.monotonic()
        assert client.nearest("frog") == TOAD
    assert time.monotonic() - start < 2 and len(server.asked) == 3


@both
def test_attempts_are_bounded(fake, kind):
    server = fake(problem(429, "queue_full", "the queue is full", retry_after=0))
    with kind(server.url, retries=3) as client, pytest.raises(kindred.OverloadedError, match="the queue is full") as caught:
        client.nearest("frog")
    assert (len(server.asked), caught.value.retry_after, caught.value.status, caught.value.code) == (4, 0, 429, "queue_full")
    assert caught.value.request_id == server.asked[0].headers["x-request-id"]
    with kind(server.url, retries=0) as client, pytest.raises(kindred.OverloadedError):
        client.nearest("frog")
    assert len(server.asked) == 5


def in_a_minute():
    from email.utils import formatdate

    return formatdate(time.time() + 60, usegmt=True)


@both
@pytest.mark.parametrize("retry_after", ["11", "999999999", in_a_minute()])
def test_nobody_waits_longer_than_max_retry_after(fake, kind, retry_after):
    server = fake(problem(503, "engine_restarting", retry_after=retry_after))
    with kind(server.url, timeout=None) as client:
        start = time.monotonic()
        with pytest.raises(kindred.UnavailableError) as caught:
            client.nearest("frog")
    assert time.monotonic() - start < 1 and len(server.asked) == 1 and caught.value.retry_after > 10
    assert "request-timeout-ms" not in server.asked[0].headers


@both
def test_nobody_waits_past_the_timeout(fake, kind):
    server = fake(problem(429, "queue_full", retry_after=3))
    with kind(server.url, timeout=1) as client:
        start = time.monotonic()
        # The refusal says more than the deadline that would pass.
        with pytest.raises(kindred.OverloadedError):
            client.nearest("frog")
    assert time.monotonic() - start < 1 and len(server.asked) == 1


@both
@pytest.mark.parametrize(
    "what", [problem(429, "queue_full", retry_after=0), problem(503, "draining"), b""], ids=["429", "503", "reset"]
)
def test_reload_and_probes_are_sent_once(fake, kind, what):
    server = fake(what)
    with kind(server.url) as client:
        with pytest.raises(kindred.KindredError):
            client.reload()
        assert len(server.asked) == 1 and server.asked[0].method == "POST" and server.asked[0].target == "/admin/reload"
        assert client.live() is False and client.ready() is False
    assert len(server.asked) == 3


@both
@pytest.mark.parametrize("code", [400, 404, 408, 413, 422, 500, 504])
def test_other_errors_are_not_asked_again(fake, kind, code):
    server = fake(problem(code, "something"))
    with kind(server.url) as client, pytest.raises(kindred.KindredError) as caught:
        client.nearest("frog")
    assert (len(server.asked), caught.value.status) == (1, code)


# Time


def drip(data):
    """Sends bytes so slowly that no single read takes long."""

    def send(connection, asked):
        for byte in data:
            connection.sendall(bytes([byte]))
            time.sleep(0.05)

    return send


SILENT = [
    lambda connection, asked: time.sleep(3),
    drip(FROG),
    drip(answer(b" " * 500)[:-490]),
    lambda connection, asked: (connection.sendall(FROG[:-5]), time.sleep(3)) and None,
]


@both
@pytest.mark.parametrize("silent", SILENT, ids=["silent", "slow headers", "slow body", "stopped body"])
def test_the_timeout_is_kept_whatever_the_service_does(fake, kind, silent):
    server = fake(silent)
    with kind(server.url, timeout=0.4) as client:
        start = time.monotonic()
        with pytest.raises(kindred.DeadlineError, match="had no answer in time .sent once.; raise `timeout`") as caught:
            client.nearest("frog")
        took = time.monotonic() - start
        assert 0.35 < took < 0.8
        assert isinstance(caught.value, TimeoutError) and caught.value.request_id
        # The option of a call takes the place of the client's.
        start = time.monotonic()
        with pytest.raises(kindred.DeadlineError):
            client.nearest(np.ones(2), timeout_ms=150)
        assert 0.1 < time.monotonic() - start < 0.5


@both
def test_a_service_that_does_not_read_is_left(kind):
    import socket

    # The system accepts the connection and some of the body; nobody reads it.
    listener = socket.create_server(("127.0.0.1", 0))
    with kind(f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=0.4) as client:
        start = time.monotonic()
        with pytest.raises(kindred.DeadlineError):
            client.expand(np.ones((20_000, 300), np.float32))
        assert time.monotonic() - start < 1
    listener.close()


@both
def test_attempts_share_one_timeout(fake, kind):
    def late_refusal(connection, asked):
        time.sleep(0.3)
        return problem(503, "draining")

    server = fake(late_refusal)
    with kind(server.url, timeout=1, retries=10) as client:
        start = time.monotonic()
        with pytest.raises((kindred.DeadlineError, kindred.UnavailableError)):
            client.nearest("frog")
    assert time.monotonic() - start < 1.4 and 2 <= len(server.asked) <= 4


@both
def test_the_time_limit_of_a_call_is_for_all_its_requests(fake, kind):
    def slowly(connection, asked):
        time.sleep(0.2)
        return array_of(asked)

    server = fake(slowly)
    vectors = np.ones((20_000, 2), np.float32)
    with kind(server.url) as client:
        start = time.monotonic()
        with pytest.raises(kindred.DeadlineError):
            client.nearest(vectors, k=2, timeout_ms=700)
        assert time.monotonic() - start < 1.2
    # The client's is for each.
    with kind(server.url, timeout=1, parallel=4) as client:
        start = time.monotonic()
        client.nearest(vectors[:8192], k=2)
        assert time.monotonic() - start < 3


def test_the_services_504_is_a_deadline(fake):
    server = fake(problem(504, "deadline_passed", "too late"))
    with kindred.Client(server.url) as client, pytest.raises(kindred.DeadlineError, match="too late") as caught:
        client.nearest("frog")
    assert (caught.value.status, caught.value.code) == (504, "deadline_passed")


# What is not Kindred's


def reset(connection, asked):
    import socket
    import struct

    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


@both
@pytest.mark.parametrize(
    ("broken", "error", "message", "times"),
    [
        (b"", kindred.UnreachableError, "had no answer: .*is the service running", 3),
        (b"garbage\r\n\r\n", kindred.UnreachableError, "had no answer", 3),
        (lambda connection, asked: connection.sendall(FROG[:-10]), kindred.UnreachableError, "had no answer", 3),
        (lambda connection, asked: connection.sendall(FROG[:30]), kindred.UnreachableError, "had no answer", 3),
        (reset, kindred.UnreachableError, "had no answer", 3),
        (answer("<html><h1>502</h1>\n nginx", "502 Bad Gateway", "text/html"), kindred.UnavailableError,
         'status 502 and no problem document but "<html><h1>502</h1> nginx"; is a proxy in between', 1),
        (answer("<html>busy", "503 No", "text/html"), kindred.UnavailableError, "status 503.*<html>busy", 3),
        (answer("slow down", "429 No", "text/html", retry_after=0), kindred.OverloadedError, "status 429.*slow down", 3),
        (answer("<html>404", "404 Not Found", "text/html"), kindred.ServiceError, "status 404.*<html>404", 1),
        (answer("", "500 No", "text/html"), kindred.ServiceError, "status 500.*nothing", 1),
        (answer("", "401 No", "text/html"), kindred.UnauthorizedError, "status 401", 1),
        (answer('"detail"', "500 No"), kindred.ServiceError, "no problem document", 1),
        (answer('{"detail": 5, "status": 500}', "500 No"), kindred.ServiceError, "no problem document", 1),
        (answer("<html>welcome", kind="text/html"), kindred.ServiceError,
         'not with JSON as Kindred does: text/html, "<html>welcome"', 1),
        (answer("{"), kindred.ServiceError, 'not with JSON as Kindred does: application/json, "{"', 1),
        (answer("[]"), kindred.ServiceError, r'not with what was asked for.*"\[\]"', 1),
        (answer('{"neighbors":[{"word":"a"}]}'), kindred.ServiceError, "not with what was asked for", 1),
        (answer("", "302 Found", location="https://login.example/"), kindred.ServiceError,
         "a redirect to https://login.example/: set base_url", 1),
        (answer("", "304 Not Modified"), kindred.ServiceError, "status 304", 1),
        (answer(b"\x1f\x8bnot gzip", content_encoding="gzip"), kindred.ServiceError, "can't be decompressed", 1),
    ],
)  # fmt: skip
def test_what_is_not_kindreds_is_said(fake, kind, broken, error, message, times):
    server = fake(broken)
    with kind(server.url) as client, pytest.raises(error, match=message) as caught:
        client.nearest("frog")
    assert type(caught.value) is error or error is kindred.ServiceError
    assert len(server.asked) == times
    assert caught.value.request_id == server.asked[0].headers["x-request-id"]


@both
def test_no_service_at_all(kind):
    with kind("http://127.0.0.1:1") as client:
        with pytest.raises(kindred.UnreachableError, match="GET http://127.0.0.1:1/nearest had no answer: ") as caught:
            client.nearest("frog")
        assert isinstance(caught.value, ConnectionError) and caught.value.status is None
        assert client.live() is False and client.ready() is False


PICKLED = np.array([[{"a": 1}]], dtype=object)


def pickled():
    import io

    file = io.BytesIO()
    np.save(file, PICKLED, allow_pickle=True)
    return file.getvalue()


GOOD = encode(np.zeros((2, 2), [("row", "<i8"), ("score", "<f8")]))


@both
@pytest.mark.parametrize(
    "body",
    [
        pickled(), b"", b"\x93NUMPY", GOOD[:-1], GOOD + b"x", GOOD.replace(b"(2, 2)", b"(2, 3)"), GOOD.replace(b"(2, 2)", b"(4, )"),
        GOOD.replace(b"(2, 2), }      ", b"(10**9, 2), }"), GOOD.replace(b"(2, 2), }      ", b"(999999999, 2), }"),
        GOOD.replace(b"'row'", b"'raw'"), GOOD.replace(b"\x93NUMPY\x01", b"\x93NUMPY\x07"), encode(np.zeros((2, 2))),
        GOOD.replace(b"False", b"True "), GOOD.replace(b"(2, 2)", b"(-2,-2)"),
    ],
)  # fmt: skip
def test_arrays_that_are_wrong_are_refused_and_nothing_is_unpickled(fake, kind, body):
    server = fake(answer(body, kind="application/x-npy"))
    with kind(server.url) as client, pytest.raises(kindred.ServiceError, match="not with"):
        client.nearest(np.ones((2, 3)), k=2)


@both
def test_an_array_of_another_media_type_is_refused(fake, kind):
    server = fake(answer(GOOD, kind="text/html"))
    with kind(server.url) as client, pytest.raises(kindred.ServiceError, match="not with an array.*text/html"):
        client.nearest(np.ones((2, 3)), k=2)


def test_arrays_there_and_back():
    for array in (np.ones((2, 3), np.float32), np.zeros((0, 5)), np.float16([1, 2]), np.zeros((2, 1), [("row", "<i8")])):
        is_same(decode(encode(array)), array)
        import io

        is_same(np.load(io.BytesIO(encode(array))), array)


# Housekeeping


def test_the_options_are_the_models():
    import inspect

    from kindred import _kindred
    from kindred.client import _options

    assert set(_options.READERS) == {values for values, _, _ in _kindred.OPTIONS.values()}
    for kind in (kindred.Client, kindred.AsyncClient):
        assert inspect.signature(kind.nearest).parameters["k"].default == _kindred.DEFAULT_K


def test_pauses_are_random_and_bounded():
    from kindred.client._settings import checked
    from kindred.client._wire import Call, Request

    settings = checked("http://a", model=None, api_key=None, timeout=None, retries=10, max_retry_after=10, parallel=1, verify=True)
    for attempts, longest in ((1, 0.2), (2, 0.4), (10, 5.0)):
        call = Call(settings, Request("/nearest", lambda answer: None), float("inf"), attempts)
        plain = [call.pause_after(kindred.UnreachableError()) for _ in range(200)]
        told = [call.pause_after(kindred.OverloadedError(status=429, retry_after=2)) for _ in range(200)]
        assert 0 <= min(plain) < longest / 4 and 3 * longest / 4 < max(plain) <= longest
        assert 2 <= min(told) and max(told) <= 2 + longest


@both
@pytest.mark.parametrize("timeout", [None, 1e300, float("inf"), 10**7])
def test_a_timeout_may_be_endless(fake, kind, timeout):
    server = fake(FROG)
    with kind(server.url, timeout=timeout) as client:
        assert client.nearest("frog", k=None) == client.nearest("frog", timeout_ms=2**63 - 1) == TOAD
    assert "request-timeout-ms" not in server.asked[0].headers


def test_a_client_can_be_pickled(fake):
    server = fake(FROG)
    with kindred.Client(server.url, model="m", api_key="secret", retries=0) as client:
        with pickle.loads(pickle.dumps(client)) as again:
            assert again.nearest("frog") == TOAD and again._settings == client._settings


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    import shutil

    if not shutil.which("openssl"):
        pytest.skip("no openssl to make a certificate with")
    folder = tmp_path_factory.mktemp("certificate")
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-addext",
             "subjectAltName=DNS:localhost", "-keyout", "key.pem", "-out", "certificate.pem"]  # fmt: skip
    subprocess.run(words, cwd=folder, check=True, capture_output=True)
    return folder


@both
def test_https(fake, kind, certificate):
    import ssl

    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ours.load_cert_chain(certificate / "certificate.pem", certificate / "key.pem")
    server = fake(FROG, FROG, lambda connection, asked: time.sleep(3))
    server.context = ours
    url = f"https://localhost:{server.listener.getsockname()[1]}"
    theirs = ssl.create_default_context(cafile=certificate / "certificate.pem")
    with kind(url, verify=theirs, timeout=0.5) as client:
        assert client.nearest("frog") == client.nearest(np.ones(3)) == TOAD
        start = time.monotonic()
        with pytest.raises(kindred.DeadlineError):
            client.nearest("frog")
        assert time.monotonic() - start < 0.9
    with kind(url, retries=0) as client, pytest.raises(kindred.UnreachableError, match="certificate"):
        client.nearest("frog")


@pytest.mark.parametrize(
    ("keywords", "field"),
    [
        (dict(base_url="127.0.0.1:80"), "base_url"), (dict(base_url="ftp://a"), "base_url"), (dict(base_url="http://"), "base_url"),
        (dict(base_url="http://a:b@c"), "base_url"), (dict(base_url="http://a?b"), "base_url"), (dict(base_url=None), "base_url"),
        (dict(base_url="http://[::1"), "base_url"), (dict(model=""), "model"), (dict(model=".."), "model"),
        (dict(api_key="a b"), "api_key"), (dict(api_key="a\r\nb"), "api_key"), (dict(api_key=""), "api_key"),
        (dict(timeout=0), "timeout"), (dict(timeout=-1), "timeout"), (dict(timeout=float("nan")), "timeout"),
        (dict(timeout="1"), "timeout"), (dict(retries=-1), "retries"), (dict(retries=1.5), "retries"),
        (dict(retries=True), "retries"), (dict(max_retry_after=-1), "max_retry_after"), (dict(parallel=0), "parallel"),
    ],
)  # fmt: skip
def test_settings_that_are_wrong_are_named(keywords, field):
    for kind in (kindred.Client, kindred.AsyncClient):
        with pytest.raises(kindred.InvalidValueError, match=f"`{field}` must be") as caught:
            kind(**{"base_url": "http://localhost:1", **keywords})
        assert caught.value.field == field


@both
def test_a_closed_client_says_so(fake, kind):
    with kind(fake(FROG).url) as client:
        assert client.nearest("frog") == TOAD
        client.close()
        with pytest.raises(ValueError, match="closed"):
            client.nearest("frog")


def test_connections_are_used_again(fake):
    server = fake(FROG)
    with kindred.Client(server.url) as client:
        for _ in range(20):
            client.nearest("frog")
    assert len(server.asked) == 20 and len(server.sockets) == 1


def test_an_httpx_client_of_ones_own(fake):
    import httpx

    seen = []

    def respond(request):
        seen.append(request)
        return httpx.Response(200, json={"neighbors": [{"word": "toad", "score": 0.5, "row": 3}]})

    own = httpx.Client(transport=httpx.MockTransport(respond))
    with kindred.Client("http://kindred.example", http_client=own) as client:
        assert client.nearest("frog", k=1) == TOAD
    assert str(seen[0].url) == "http://kindred.example/nearest?word=frog&k=1" and not own.is_closed

    async def ask():
        async with httpx.AsyncClient(transport=httpx.MockTransport(respond)) as own:
            async with kindred.AsyncClient("http://kindred.example", http_client=own) as client:
                return await asyncio.gather(*(client.nearest("frog", k=1) for _ in range(5)))

    assert asyncio.run(ask()) == [TOAD] * 5


def test_a_cancelled_task_ends_its_requests(fake):
    ended = threading.Event()

    def wait(connection, asked):
        # The other side closes.
        if connection.recv(1) == b"":
            ended.set()

    server = fake(wait)

    async def ask():
        async with kindred.AsyncClient(server.url) as client:
            task = asyncio.ensure_future(client.nearest(np.ones((5000, 2), np.float32)))
            while not server.asked:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(ask())
    assert ended.wait(2) and len(server.asked) <= 2


def test_httpx_is_needed_only_by_clients():
    program = """
import sys
sys.modules["httpx"] = None
import kindred
from kindred import *
assert Client is kindred.Client
for kind in (Client, AsyncClient):
    try:
        kind("http://localhost")
    except ImportError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["clients need httpx: pip install 'kindred-vectors[client]', or pip install httpx"] * 2


def test_the_page_about_clients(service, tmp_path):
    import pathlib
    import re

    page = pathlib.Path(__file__).parents[3] / "docs" / "python-client.md"
    if not page.is_file():
        pytest.skip("the page is in the repository only")
    examples = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    assert len(examples) == 3
    for example in examples:
        promised = "".join(f"{line[2:]}\n" for line in example.splitlines() if line.startswith("# "))
        program = example.replace("http://127.0.0.1:8080", service.url)
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        assert (done.stderr, done.stdout) == ("", promised)
