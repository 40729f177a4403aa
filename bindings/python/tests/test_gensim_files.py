"""Files and evaluations of `kindred.gensim` against gensim's: the same bytes written, the same vectors read, the same results."""

from __future__ import annotations

import gzip
import logging
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import DEVICE
from peer import Theirs, needs_gensim

import kindred
from kindred.gensim import KeyedVectors, UnsupportedError

pytestmark = needs_gensim


@pytest.fixture
def vectors():
    vectors = np.random.default_rng(8).normal(size=(300, 7)).astype(np.float32)
    vectors[5] = [0, -0.0, 1e-30, 3e18, 1e-45, 16777216, 0.1]
    return vectors


@pytest.fixture
def written(tmp_path, vectors):
    """gensim's files, text and binary, with counts that do not descend."""
    theirs = Theirs(7)
    theirs.add_vectors([f"wörd{row}" for row in range(300)], vectors)
    for row, count in enumerate(np.random.default_rng(1).integers(1, 50, size=300)):
        theirs.set_vecattr(row, "count", int(count))
    (tmp_path / "few counts").write_text("".join(f"wörd{row} {row * 7 % 5}\n" for row in range(300)), encoding="utf8")
    theirs.save_word2vec_format(tmp_path / "text", fvocab=tmp_path / "vocab")
    theirs.save_word2vec_format(tmp_path / "binary", binary=True)
    theirs.save_word2vec_format(tmp_path / "bare", write_header=False)
    return tmp_path


READ = {
    "text": dict(fname="text"),
    "text with counts": dict(fname="text", fvocab="vocab"),
    "binary": dict(fname="binary", binary=True),
    "binary with counts": dict(fname="binary", binary=True, fvocab="vocab"),
    "limit": dict(fname="text", limit=20),
    "limit of a binary": dict(fname="binary", binary=True, limit=20),
    "a limit over all": dict(fname="text", limit=10**6),
    "no header": dict(fname="bare", no_header=True),
    "no header, limit": dict(fname="bare", no_header=True, limit=20),
    "replaced characters": dict(fname="text", encoding="ascii", unicode_errors="replace"),
    "another encoding": dict(fname="binary", encoding="latin1", binary=True),
    "float16": dict(fname="text", datatype=np.float16, limit=5),
}


# gensim does not close a file without a header.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", READ)
def test_files_are_read_as_gensim_reads_them(written, name):
    arguments = {key: written / value if key in ("fname", "fvocab") else value for key, value in READ[name].items()}
    ours, theirs = KeyedVectors.load_word2vec_format(**arguments, device=DEVICE), Theirs.load_word2vec_format(**arguments)
    for _ in ("before the first search", "after it"):
        assert ours.index_to_key == theirs.index_to_key and list(ours.index_to_key) == theirs.index_to_key
        assert np.array_equal(ours.vectors.view(np.uint32), theirs.vectors.astype(np.float32).view(np.uint32))
        counts = [[kv.get_vecattr(row, "count") for row in range(len(kv))] for kv in (ours, theirs)]
        assert counts[0] == counts[1]
        if name != "float16":
            assert ours.most_similar(0, topn=1)[0][0] == theirs.most_similar(0, topn=1)[0][0]


WRITE = {
    "text": {},
    "binary": dict(binary=True),
    "no header": dict(write_header=False),
    "prefix": dict(prefix="*dt_"),
    "total_vec": dict(total_vec=1000, binary=True),
    "counts": dict(fvocab="again"),
    "an attribute that is not there": dict(sort_attr="weight"),
    "append": dict(append=True, fvocab="again", prefix="a_"),
}


@pytest.mark.parametrize("counts", ["vocab", "few counts", None])
@pytest.mark.parametrize("name", WRITE)
def test_the_same_bytes_are_written(written, name, counts):
    counts = counts and written / counts
    options = dict(WRITE[name])
    files = []
    for cls in (KeyedVectors, Theirs):
        kv = cls.load_word2vec_format(written / "text", fvocab=counts)
        out = written / cls.__module__
        again = out.with_suffix(".vocab")
        options.update({"fvocab": again} if "fvocab" in options else {})
        for _ in range(2):
            kv.save_word2vec_format(out, **options)
        files.append([out.read_bytes(), again.read_bytes() if again.exists() else None])
    assert files[0] == files[1]


def test_compressed_files(written):
    for ending in (".gz", ".bz2", ".xz"):
        path = written / f"packed{ending}"
        kv = KeyedVectors.load_word2vec_format(written / "binary", binary=True)
        kv.save_word2vec_format(path, binary=True)
        assert np.array_equal(KeyedVectors.load_word2vec_format(path, binary=True).vectors, kv.vectors)
    assert gzip.decompress((written / "packed.gz").read_bytes()) == (written / "binary").read_bytes()


BROKEN = {
    "it ends early": (EOFError, b"3 2\na 1 2\nb 1 2\n", {}),
    "a binary that ends early": (EOFError, b"2 1\na \0\0\x80\x3fb \0\0", dict(binary=True)),
    "no header": (ValueError, b"a 1 2\nb 1 2\n", {}),
    "no number": (ValueError, b"2 2\na 1 2\nb 1 x\n", {}),
    "too many components": (ValueError, b"2 2\na 1 2\nb 1 2 3\n", {}),
    "no word in UTF-8": (UnicodeDecodeError, b"1 1\n\xff 1\n", {}),
    "a binary without a header": (NotImplementedError, b"a 1 2\n", dict(binary=True, no_header=True)),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_are_refused_as_by_gensim(tmp_path, name):
    kind, content, options = BROKEN[name]
    (tmp_path / "file").write_bytes(content)
    for cls in (KeyedVectors, Theirs):
        with pytest.raises(kind):
            cls.load_word2vec_format(tmp_path / "file", **options)


def test_the_line_that_is_wrong_is_named(tmp_path):
    (tmp_path / "file").write_bytes(b"2 2\na 1 2\nb 1 x\n")
    with pytest.raises(kindred.InvalidValueError, match="line 3.*'x'"):
        KeyedVectors.load_word2vec_format(tmp_path / "file")
    (tmp_path / "file").write_bytes(b"a 1 2\nb 1\n")
    with pytest.raises(kindred.InvalidValueError, match="line 2 has 1 components, not 2"):
        KeyedVectors.load_word2vec_format(tmp_path / "file", no_header=True)
    with pytest.raises(UnsupportedError, match="float32.*float64"):
        KeyedVectors.load_word2vec_format(tmp_path / "file", no_header=True, datatype=np.float64)


def test_of_repeated_words_the_first_counts(tmp_path, caplog):
    (tmp_path / "file").write_text("4 1\na 1\nb 2\na 3\nc 4\n")
    kv = KeyedVectors.load_word2vec_format(tmp_path / "file")
    assert kv.index_to_key == ["a", "b", "c"] and kv.vectors.ravel().tolist() == [1, 2, 4]
    # gensim's list of keys ends with a None here.
    assert Theirs.load_word2vec_format(tmp_path / "file").index_to_key[:3] == ["a", "b", "c"]
    assert "'a' more than once" in caplog.text


# Evaluation


def gensims(name):
    """A file of gensim's test data."""
    return Path(sys.modules[Theirs.__module__].__file__).parents[1] / "test" / "test_data" / name


@pytest.fixture(scope="module")
def both():
    model = kindred.demo(device=DEVICE)
    theirs = Theirs(model.dim)
    # Two words that differ from the first ones by case only, with each other's vectors.
    theirs.add_vectors([*model.words[:4000], "The", "OF"], np.concatenate([model.vectors[:4000], model.vectors[[1, 0]]]))
    return KeyedVectors.from_vectors(theirs.index_to_key, theirs.vectors, device=DEVICE), theirs


@pytest.fixture(scope="module")
def analogies(tmp_path_factory):
    """Every 30th of gensim's questions, with some lines that can't be read."""
    lines = gensims("questions-words.txt").read_text().splitlines()
    chosen = [line for number, line in enumerate(lines) if line.startswith(":") or number % 30 == 0]
    # Right only if "The" and "OF" count as the words that were asked, which are no answers.
    right = kindred.demo(device=DEVICE).nearest("of", k=1, vocab_limit=4000, exclude=["the"])[0].word
    odd = [": odd ones", "only three words", "the the the the", "the of the of", f"the of the {right}", ": empty"]
    path = tmp_path_factory.mktemp("analogies") / "questions.txt"
    path.write_text("\n".join([*chosen, *odd]))
    return path


@pytest.mark.parametrize(
    "options", [{}, dict(restrict_vocab=1500), dict(dummy4unknown=True), dict(case_insensitive=False), dict(restrict_vocab=5)]
)
def test_analogies(both, analogies, options):
    ours, theirs = (kv.evaluate_word_analogies(analogies, **options) for kv in both)
    assert ours == theirs
    assert options.get("restrict_vocab") == 5 or 0.05 < ours[0] < 0.9


@pytest.mark.parametrize("options", [{}, dict(restrict_vocab=1500), dict(dummy4unknown=True), dict(case_insensitive=False)])
def test_word_pairs(both, options, caplog, tmp_path):
    (tmp_path / "pairs").write_text(gensims("wordsim353.tsv").read_text() + "#the\tof\t9\nthe\tof\nThe\tof\t3\n")
    caplog.set_level(logging.INFO, "kindred.gensim")
    ours, theirs = (kv.evaluate_word_pairs(tmp_path / "pairs", **options) for kv in both)
    for mine, other in zip(ours, theirs):
        assert type(mine) is type(other)
        np.testing.assert_allclose(mine, other, atol=1e-5)
    assert len(ours) == 3 and f"unknown words: {theirs[2]:.1f}%" in caplog.text


def test_test_sets_that_can_not_be_read(both, tmp_path):
    (tmp_path / "file").write_text("a b c d\n")
    for kv in both:
        with pytest.raises(ValueError):
            kv.evaluate_word_analogies(tmp_path / "file")
        with pytest.raises(ValueError):
            kv.evaluate_word_pairs(tmp_path / "file")
    with pytest.raises(UnsupportedError, match="Model.evaluate"):
        both[0].evaluate_word_analogies(tmp_path / "file", similarity_function="most_similar_cosmul")


def test_logs(caplog):
    caplog.set_level(logging.INFO)
    for cls in (KeyedVectors, Theirs):
        caplog.clear()
        cls.log_accuracy({"section": "capitals", "correct": [1, 2], "incorrect": [3]})
        cls.log_accuracy({"section": "empty", "correct": [], "incorrect": []})
        cls.log_evaluate_word_pairs((0.5, 0.01), (0.25, 0.01), 12.5, "pairs.tsv")
        assert caplog.messages[0] == "capitals: 66.7% (2/3)" and len(caplog.messages) == 4
        assert all(number in caplog.text for number in ("0.5000", "0.2500", "12.5%"))
