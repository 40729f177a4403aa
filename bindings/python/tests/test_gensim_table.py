"""`kindred.gensim` by itself: adding until the first search, what is refused and why, folders, pickles, zero vectors."""

from __future__ import annotations

import doctest
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from conftest import DEVICE

import kindred
from kindred.gensim import KeyedVectors, UnsupportedError

AXES = np.eye(3, dtype=np.float32)


def axes():
    kv = KeyedVectors(3, device=DEVICE)
    kv.add_vectors(["x", "y", "z"], AXES)
    return kv


def test_keys_are_added_until_the_first_search():
    kv = KeyedVectors(3, count=2, device=DEVICE)
    assert len(kv) == 0 and kv.vectors.shape == (0, 3) and kv.index_to_key == [] and "x" not in kv
    kv.add_vectors("x", [1, 0, 0])
    kv[["y", "z"]] = list(AXES[1:])
    kv["w"] = np.array([1, 1, 0])
    assert kv.add_vector("v", [3, 0, 0]) == 4
    kv.add_vectors(["x", "u"], [[9, 9, 9], [0, 0, 2]])
    assert kv.index_to_key == ["x", "y", "z", "w", "v", "u"] and kv["x"].tolist() == [1, 0, 0]
    # Looking up and comparing is not searching.
    assert kv.similarity("x", "v") == 1 and kv.doesnt_match(["x", "v", "w", "z"]) == "z" and kv.norms.tolist()[4:] == [3, 2]
    before = kv.vectors
    kv.add_vectors(["v"], [[0, 0, 5]], replace=True)
    assert kv.similarity("x", "v") == 0 and kv.norms[4] == 5 and before[4].tolist() == [3, 0, 0]
    assert kv.most_similar("v", topn=2) == [("z", 1.0), ("u", 1.0)]
    for change in (
        lambda: kv.add_vectors(["t"], [[1, 1, 1]]), lambda: kv.add_vector("t", [1, 1, 1]), lambda: kv.__setitem__("x", np.ones(3)),
    ):  # fmt: skip
        with pytest.raises(UnsupportedError, match="never changes. Add before the first search, or .*from_vectors"):
            change()
    assert kv["x"].tolist() == [1, 0, 0] and len(kv) == 6


def test_what_was_given_out_never_changes():
    kv = axes()
    keys, rows, before, first = kv.index_to_key, kv.key_to_index, kv.vectors, kv["x"]
    kv.add_vectors([f"k{row}" for row in range(100)], np.ones((100, 3)))
    kv.add_vectors(["x", "last"], [[5, 5, 5], [6, 6, 6]], replace=True)
    assert np.array_equal(before, AXES) and first.tolist() == [1, 0, 0] and kv["x"].tolist() == [5, 5, 5]
    for view in (before, first, kv.vectors, kv["x"]):
        with pytest.raises(ValueError, match="read-only"):
            view[...] = 0
    late = kv.vectors
    with pytest.raises(ValueError, match="WRITEABLE"):
        late.flags.writeable = True
    # The views of keys follow, before and after the first search.
    for _ in range(2):
        assert len(keys) == len(rows) == 104 and keys[-1] == "last" and rows["last"] == keys.index("last") == 103
        assert keys[:2] == ["x", "y"] and list(rows)[:2] == ["x", "y"] and "y" in keys and "none" not in rows
        assert rows.get("none") is None
        with pytest.raises(KeyError):
            rows["none"]
        with pytest.raises(ValueError):
            keys.index("none")
        with pytest.raises(TypeError):
            rows["x"] = 3
        kv.most_similar("x")
    for view in (before, first, late):
        with pytest.raises(ValueError, match="WRITEABLE"):
            view.flags.writeable = True


def test_the_first_search_happens_once_for_all_threads():
    kv = KeyedVectors(8, device=DEVICE)
    kv.add_vectors([str(row) for row in range(500)], np.random.default_rng(0).normal(size=(500, 8)))
    barrier = threading.Barrier(8)
    seen = []

    def ask():
        barrier.wait()
        seen.append((id(kv.model), tuple(kv.most_similar("7", topn=5)), kv["7"].tobytes(), len(kv)))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(seen) == 8 and len(set(seen)) == 1


@pytest.mark.parametrize(
    ("keys", "vectors", "error", "message"),
    [
        (["new", ""], np.ones((2, 3)), ValueError, "a key must have a character"),
        (["new", "a\n"], np.ones((2, 3)), ValueError, "line feed"),
        (["new", 5], np.ones((2, 3)), NotImplementedError, r"str\(5\)"),
        (["new"], np.ones((1, 4)), kindred.DimensionError, r"shape \[1, 3\], but they have \[1, 4\]"),
        (["new", "b"], np.ones((1, 3)), kindred.DimensionError, "2 keys"),
        (["new"], [["a", "b", "c"]], ValueError, "could not convert"),
    ],
)
def test_what_can_not_be_added_leaves_the_table_as_it_was(keys, vectors, error, message):
    kv = axes()
    with pytest.raises(error, match=message):
        kv.add_vectors(keys, vectors)
    assert kv.index_to_key == ["x", "y", "z"]


REFUSED = {
    "indexer": (lambda kv: kv.most_similar("x", indexer=object()), "exact"),
    "unit_normalize_all": (lambda kv: kv.unit_normalize_all(), "get_normed_vectors"),
    "set_vecattr": (lambda kv: kv.set_vecattr("x", "count", 3), "fvocab"),
    "allocate_vecattrs": (lambda kv: kv.allocate_vecattrs(["a"], [int]), "array of your own"),
    "resize_vectors": (lambda kv: kv.resize_vectors(), "gensim"),
    "intersect_word2vec_format": (lambda kv: kv.intersect_word2vec_format("file"), "make a new one"),
    "sort_by_descending_frequency": (lambda kv: kv.sort_by_descending_frequency(), "make a new one"),
    "extras": (lambda kv: kv.add_vectors(["a"], [[1, 1, 1]], extras={"count": np.ones(1)}), "fvocab"),
    "vectors": (lambda kv: setattr(kv, "vectors", AXES), "`vectors` can't be set.*from_vectors"),
    "index_to_key": (lambda kv: setattr(kv, "index_to_key", []), "can't be set"),
    "key_to_index": (lambda kv: setattr(kv, "key_to_index", {}), "can't be set"),
    "float64": (lambda kv: KeyedVectors(3, dtype=np.float64), "float32"),
    "a file that is open": (lambda kv: kv.save(sys.stdout), "path"),
    "a pickle of gensim": (lambda kv: KeyedVectors.load(__file__), "load it with gensim"),
    "the metric dot": (lambda kv: KeyedVectors(kindred.from_array(AXES, metric="dot", device=DEVICE)), "from_array"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_possible_says_why(name):
    ask, message = REFUSED[name]
    kv = axes()
    for _ in ("before the first search", "after it"):
        with pytest.raises(NotImplementedError, match=message) as caught:
            ask(kv)
        assert isinstance(caught.value, kindred.KindredError)
        kv.most_similar("x") if name != "extras" else None
    assert np.array_equal(kv.vectors, AXES)


def test_init_sims_that_replaces_is_refused():
    with pytest.raises(UnsupportedError, match="in place"), pytest.warns(DeprecationWarning):
        axes().init_sims(replace=True)


def test_a_folder_keeps_keys_and_bits(tmp_path):
    keys = ["a b", "ü", "  spaces  ", "\t", "#", '"', "5", "\x00", "\r."]
    vectors = np.random.default_rng(4).normal(size=(9, 5)).astype(np.float32)
    kv = KeyedVectors.from_vectors(keys, vectors, device=DEVICE)
    for _ in range(2):
        kv.save(tmp_path / "folder")
    again = KeyedVectors.load(tmp_path / "folder", mmap="r", device=DEVICE)
    assert again.index_to_key == keys and np.array_equal(again.vectors, vectors) and os.listdir(tmp_path) == ["folder"]
    assert again.most_similar("ü") == kv.most_similar("ü") == KeyedVectors(kindred.open(tmp_path / "folder")).most_similar("ü")
    with pytest.raises(kindred.ModelError):
        KeyedVectors.load(tmp_path / "nothing")
    with pytest.raises(kindred.InvalidValueError, match="carriage return"):
        KeyedVectors.from_vectors(["a\r"], vectors[:1], device=DEVICE).save(tmp_path / "other")
    bom = KeyedVectors.from_vectors(["\ufeffa"], vectors[:1], device=DEVICE)
    bom.save(tmp_path / "bom")
    assert KeyedVectors.load(tmp_path / "bom").index_to_key == bom.index_to_key


@pytest.mark.parametrize("searched", [False, True])
def test_it_is_pickled(searched):
    kv = axes()
    kv.most_similar("x") if searched else None
    again = pickle.loads(pickle.dumps(kv))
    assert again.index_to_key == ["x", "y", "z"] and np.array_equal(again.vectors, AXES)
    assert again.most_similar("x", topn=1) == [("y", 0.0)]


def test_zero_vectors_are_never_found(array, points):
    """Row 17 is zero, rows 80 and 90 are equal."""
    kv = KeyedVectors(array)
    assert len(kv.most_similar("3", topn=5000)) == len(points) - 2 == len(kv.most_similar("3", topn=5000, clip_end=len(points) + 5))
    for numbers in (kv.most_similar("3", topn=None), kv.distances("3"), kv.distances(3, kv.index_to_key)):
        assert np.flatnonzero(np.isnan(numbers)).tolist() == [17]
    assert "17" not in [key for key, _ in kv.most_similar_cosmul("3", "4", topn=5000)]
    assert [key for key, _ in kv.most_similar(points[80], topn=2)] == ["80", "90"]
    assert kv.distance("80", "90") == pytest.approx(0, abs=1e-15)
    assert kv.similarity("17", "3") == 0 and kv.distance("17", "17") == 1 and np.isnan(kv.get_vector("17", norm=True)).all()
    for ask in (lambda: kv.most_similar("17"), lambda: kv.most_similar(["17", "3"]), lambda: kv.most_similar("3", "3")):
        with pytest.raises(kindred.ZeroVectorError):
            ask()
    assert kv.most_similar("3", topn=10, clip_start=3000) == [] == kv.most_similar("3", clip_start=20, clip_end=10)


def test_ties_go_to_the_lower_row_for_any_topn():
    vectors = np.tile(AXES, (1000, 1))
    kv = KeyedVectors.from_vectors([str(row) for row in range(3000)], vectors, device=DEVICE)
    for topn in (5, 990, 3000):
        for options in ({}, dict(clip_start=3)):
            rows = [int(key) for key, _ in kv.most_similar("30", topn=topn, **options)]
            expected = sorted(set(range(options.get("clip_start", 0), 3000)) - {30}, key=lambda row: (row % 3 != 0, row))
            assert rows == expected[:topn]


@pytest.mark.parametrize(("package", "ask"), [
    ("ot", lambda kv, file: kv.wmdistance(["x"], ["y"])), ("scipy", lambda kv, file: kv.evaluate_word_pairs(file)),
])  # fmt: skip
def test_a_package_that_is_not_there_is_named(monkeypatch, package, ask):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=f"pip install {package.replace('ot', 'POT')}"):
        ask(axes(), __file__)


def test_an_unknown_key_has_suggestions(demo):
    with pytest.raises(kindred.UnknownWordError, match="did you mean frog"):
        KeyedVectors(demo).most_similar("frogg")


def test_restrict_vocab_of_cosmul_is_heeded(demo):
    kv = KeyedVectors(demo)
    few = kv.most_similar_cosmul(["king", "woman"], ["man"], topn=5, restrict_vocab=1000)
    assert len(few) == 5 and all(kv.get_index(key) < 1000 for key, _ in few)
    assert len(kv.most_similar_cosmul("king", topn=None, restrict_vocab=10)) == 10


def test_counts_say_what_there_is(demo):
    kv = KeyedVectors(demo)
    assert [kv.get_vecattr(key, "count") for key in (0, 1, len(kv) - 1)] == [30000, 29999, 1]
    with pytest.raises(KeyError):
        axes().get_vecattr("x", "count")


def test_gensim_is_not_imported():
    program = "import sys, kindred.gensim; print('gensim' in sys.modules, 'scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout.split() == ["False"] * 2


def test_the_example_of_the_documents_runs():
    document = Path(__file__).parents[3] / "docs" / "gensim.md"
    if not document.exists():
        pytest.skip("this is not the whole repository: docs/gensim.md is not there")
    failed, tried = doctest.testfile(str(document), module_relative=False)
    assert failed == 0 and tried >= 5
