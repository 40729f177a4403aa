"""What is refused, and how it is said."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from conftest import DEVICE

import kindred


def test_unknown_words_come_with_suggestions(demo):
    with pytest.raises(kindred.UnknownWordError) as caught:
        demo.nearest("frogg")
    assert caught.value.unknown[0].word == "frogg" and "frog" in caught.value.unknown[0].suggestions
    assert "did you mean frog" in str(caught.value)
    # As dictionaries and gensim raise it.
    assert isinstance(caught.value, KeyError)
    for ask in (
        lambda: demo.analogy("kingg - frogg + woman"),
        lambda: demo.analogy(["king", "kingg - frogg + woman"]),
        lambda: demo.similarity(["kingg"], "frogg"),
        lambda: demo.odd_one_out(["kingg", "frogg", "frog"]),
        lambda: demo.rank("frogg", "kingg"),
    ):
        with pytest.raises(kindred.UnknownWordError) as caught:
            ask()
        assert sorted(caught.value.words) == ["frogg", "kingg"]
    for ask in (demo.vector, demo.row, lambda word: demo[word]):
        with pytest.raises(kindred.UnknownWordError, match="did you mean"):
            ask("frogg")


def test_words_that_are_unknown_can_be_left_out(demo):
    assert demo.analogy("king - man + woman + nosuchword", k=1, unknown="skip")[0].word == "queen"


@pytest.mark.parametrize(
    ("ask", "error", "message"),
    [
        (lambda m: m.nearest("frog", k=0), kindred.InvalidValueError, "`k` must be a whole number from 1 to 1000"),
        (lambda m: m.nearest("frog", k=True), kindred.InvalidValueError, "`k` must be"),
        (lambda m: m.nearest("frog", k=1001), kindred.InvalidValueError, "`k` must be"),
        (lambda m: m.nearest("frog", k="5"), kindred.InvalidValueError, "`k` must be"),
        (lambda m: m.nearest("frog", min_score=float("nan")), kindred.InvalidValueError, "`min_score` must be a finite number"),
        (lambda m: m.nearest("frog", exclude="toad"), kindred.InvalidValueError, "`exclude` must be a list"),
        (lambda m: m.nearest("frog", unknown="maybe"), kindred.InvalidValueError, "`unknown` must be `error`, `skip` or `subwords`"),
        (lambda m: m.analogy("king", method="best"), kindred.InvalidValueError, "`method` must be"),
        (lambda m: m.nearest("frog", topn=3), TypeError, "there is no option `topn`; the options are .*vocab_limit"),
        (lambda m: m.analogy("king - (man"), kindred.ExpressionError, "column"),
        (lambda m: m.nearest("frog", offset=991), kindred.InvalidValueError, "`offset`"),
        (lambda m: m.nearest("frog", distinct="price"), kindred.InvalidValueError, "the model has none"),
        (lambda m: m.nearest("frog", filter="price < 80"), kindred.InvalidValueError, "no attribute `price`"),
        (lambda m: m.analogy("king", positive=["man"]), kindred.InvalidValueError, "not both"),
        (lambda m: m.analogy(5), kindred.InvalidValueError, "must be a string"),
        (lambda m: m.analogy("king - king"), kindred.ZeroVectorError, "cancel"),
        (lambda m: m.analogy("2*king - man", method="pairdirection"), kindred.MethodError, "[Pp]air[Dd]irection"),
        (lambda m: m.nearest(np.zeros(100, np.float32)), kindred.ZeroVectorError, "no direction"),
        (lambda m: m.nearest(np.ones(99, np.float32)), kindred.DimensionError, "99 components.*100"),
        (lambda m: m.nearest(np.ones((100, 99), np.float32)), kindred.DimensionError, "99 components.*100"),
        (lambda m: m.expand(np.ones((100, 99), np.float32)), kindred.DimensionError, "99 components.*100"),
        (lambda m: m.nearest(np.ones((2, 2, 2), np.float32)), kindred.DimensionError, r"\[dim\] or \[n, dim\]"),
        (lambda m: m.nearest(np.full(100, np.nan)), kindred.NotFiniteError, "component 0"),
        (lambda m: m.nearest(np.full(100, 1e300)), kindred.NotFiniteError, "not a finite float32"),
        (lambda m: m.nearest(np.arange(100)), kindred.InvalidValueError, "nearest_rows"),
        (lambda m: m.nearest(np.array(["a"])), kindred.InvalidValueError, "floating-point"),
        (lambda m: m.nearest(np.ones((1, 100), np.float32), fold_case=True), kindred.InvalidValueError, "`fold_case`"),
        (lambda m: m.nearest_rows([30_000]), kindred.InvalidValueError, "0 to 29999 .and not 30000"),
        (lambda m: m.nearest_rows([-1]), kindred.InvalidValueError, "and not -1"),
        (lambda m: m.nearest_rows([0.5]), kindred.InvalidValueError, "whole numbers"),
        (lambda m: m.rank([], "frog"), kindred.InvalidValueError, "1 to 1000 words"),
        (lambda m: m.odd_one_out(["frog", "toad"]), kindred.InvalidValueError, "3 to 256"),
        (lambda m: m.expand("frog", top=0), kindred.InvalidValueError, "`top`"),
        (lambda m: m.classify("frog", head="no/such/folder"), kindred.ModelError, "no/such/folder"),
        (lambda m: m.evaluate(case="upper"), kindred.InvalidValueError, "`case`"),
    ],
)
def test_what_is_wrong_is_said(demo, ask, error, message):
    with pytest.raises(error, match=message):
        ask(demo)


def test_the_vector_that_is_wrong_is_named(array):
    vectors = np.ones((5000, 37), np.float32)
    vectors[4321] = 0
    with pytest.raises(kindred.ZeroVectorError, match="vector 4321"):
        array.nearest(vectors)
    vectors[4321, 5] = np.inf
    with pytest.raises(kindred.NotFiniteError, match="vector 4321: component 5"):
        array.nearest(vectors)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(array=np.zeros((0, 3), np.float32)), "0 rows"),
        (dict(array=np.zeros((3, 0), np.float32)), "is no model"),
        (dict(array=np.full((3, 2), np.nan)), "row 0 has a component that is not finite"),
        (dict(array=np.ones((3, 2)), words=["a", "b"]), "words: 2 for 3 rows"),
        (dict(array=np.ones((3, 2)), words=["a", "b", "a"]), "rows 0 and 2 have the same word, `a`"),
        (dict(array=np.ones((3, 2)), words=["a", "b", ""]), "the word of row 2 is empty"),
        (dict(array=np.ones((3, 2)), biases=[1, 2, 3]), "only under the metric `dot`"),
        (dict(array=np.ones((3, 2)), biases=[1, 2], metric="dot"), "biases: 2 for 3 rows"),
        (dict(array=np.ones((3, 2), int)), "floating-point"),
        (dict(array=np.ones(3)), "rows, dim"),
        (dict(array=np.ones((3, 2)), metric="l2"), "`cosine` or `dot`"),
        (dict(array=np.ones((3, 2)), device="tpu"), "unknown device `tpu`"),
    ],
)
def test_arrays_that_are_no_model(arguments, message):
    with pytest.raises(kindred.KindredError, match=message):
        kindred.from_array(**arguments)


def test_folders_that_are_no_model(tmp_path):
    with pytest.raises(kindred.ModelError, match="kindred prepare"):
        kindred.open(tmp_path)
    with pytest.raises(OSError, match="no such folder"):
        kindred.open(tmp_path / "missing")


def test_a_gpu_that_is_not_there_is_an_error():
    with pytest.raises(kindred.EngineError, match="--device|cuda"):
        kindred.demo(device="cuda:77")


def test_errors_can_be_pickled(demo):
    with pytest.raises(kindred.UnknownWordError) as caught:
        demo.nearest("frogg")
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is kindred.UnknownWordError
    assert (again.unknown, str(again)) == (caught.value.unknown, str(caught.value))


def test_a_deadline_is_kept(array):
    with pytest.raises(kindred.DeadlineError, match="timeout_ms") as caught:
        array.nearest(np.ones((20_000, 37), np.float32), k=1000, timeout_ms=1)
    assert isinstance(caught.value, TimeoutError)


def test_a_closed_model_says_so():
    with kindred.from_array(np.eye(3, dtype=np.float32), device=DEVICE) as model:
        assert len(model) == 3
    with pytest.raises(ValueError, match="closed"):
        model.nearest_rows(0)
