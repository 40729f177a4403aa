"""Clients: what works on a model in process works on a service."""

from __future__ import annotations

import inspect
import multiprocessing
import pickle
import subprocess
import threading

import numpy as np
import pytest
from clients import is_same
from conftest import DEVICE, fasttext_file
from service import Service

import kindred

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
    "encode a text": lambda m: m.encode("Roses, violets & qwertyish!"),
    "the mean of a text": lambda m: m.encode("frog toad", normalize=False),
    "a long text, cut": lambda m: m.encode("frog toad lizard " * 3000),
    "encode texts": lambda m: m.encode(["frog", "a small boat"] * 700),
    "filters": lambda m: m.nearest("frog", exclude=["toad"], vocab_limit=20_000, min_score=0.1, max_score=0.65, k=4),
    "filters of vectors": lambda m: m.nearest(
        RANDOM[:5], exclude=("holmes", "a+b&c=ü"), vocab_limit=20_000, max_score=np.float32(0.3)
    ),
    "a long exclude": lambda m: m.nearest("frog", exclude=[f"frogs{n}" for n in range(900)] + ["frogs"], k=3),
    "a set": lambda m: m.nearest("frog", exclude={"frogs"}, include_query=np.True_, k=np.int64(3), fold_case=None),
    "a page": lambda m: m.nearest("frog", k=4, offset=3),
    "a page behind the last": lambda m: m.nearest("frog", k=4, offset=3, min_score=0.65),
    "pages of vectors": lambda m: m.nearest(RANDOM[:5], k=4, offset=3),
    "fold_case": lambda m: m.nearest("frog", fold_case=True, unknown="skip", timeout_ms=60_000),
    "a filter": lambda m: m.nearest("frog", filter="key NOT IN [frogs, toad]", k=3),
    "a filter of vectors": lambda m: m.nearest(RANDOM[:5], filter="NOT (key = king OR key = queen)"),
    "a filter that nothing meets": lambda m: m.nearest("frog", filter="key = nosuchword"),
    "count": lambda m: m.count("key IN [frog, toad, frogg]"),
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
    "no texts": lambda m: m.encode([]),
    "a number for a text": lambda m: m.encode(["frog", 5]),
    "the text that is unknown": lambda m: m.encode(["frog"] * 1100 + ["qwqwqw"]),
    "the only text": lambda m: m.encode("qwqwqw"),
    "a text without words": lambda m: m.encode(["frog", ""]),
    "a long text, refused": lambda m: m.encode("frog toad lizard " * 3000, truncate=False),
    "unknown of texts": lambda m: m.encode("frog", unknown="SKIP"),
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
    # A model also says what it got: `k` must be a whole number from 1 to 1000, not 0.
    assert str(found) == str(expected) or str(expected).startswith(f"{found}, not ")
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
    assert set(client.build()) == {"version", "commit", "features"}
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
    for ask, limits in (
        (lambda: client.odd_one_out(["frog", "toad"]), "3 to 256"),
        (lambda: client.rank([], "frog"), "1 to 1000"),
    ):
        with pytest.raises(kindred.InvalidValueError, match=limits) as caught:
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


def test_words_that_are_no_rows_of_a_fasttext_model(tmp_path):
    (tmp_path / "m.bin").write_bytes(fasttext_file(["frog", "toad", "pond"], 8, 50)[0])
    kindred.prepare(tmp_path / "m.bin", tmp_path / "m")
    service = Service("--model", str(tmp_path / "m"))
    try:
        with kindred.open(tmp_path / "m", device=DEVICE) as model, kindred.Client(service.url) as client:
            is_same(client.vector("frogs"), model.vector("frogs"))
            is_same(client.nearest("frogs", k=2), model.nearest("frogs", k=2))
            is_same(client.encode(["frogs and toads", "frog"]), model.encode(["frogs and toads", "frog"]))
            assert client.similarity("frogs", "frog") == model.similarity("frogs", "frog")
            assert client.odd_one_out(["frogs", "frog", "toad"]) == model.odd_one_out(["frogs", "frog", "toad"])
            assert "frogs" not in client and "frog" in client
            assert "row" not in client.word("frogs") and client.word("frogs")["ngrams"]
            for one in (client, model):
                with pytest.raises(kindred.UnknownWordError) as caught:
                    one.row("frogs")
                assert caught.value.unknown == [("frogs", ["frog"])]
    finally:
        service.stop()
