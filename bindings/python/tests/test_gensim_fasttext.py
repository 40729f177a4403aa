"""`kindred.gensim.FastTextKeyedVectors` against gensim's own, which reads the same file."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import DEVICE, fasttext_file
from peer import needs_gensim

import kindred
from kindred.gensim import FastTextKeyedVectors, KeyedVectors, load_facebook_vectors

WORDS = [f"{start}{end}" for start in ("frog", "toad", "pond", "wat", "né", "東京") for end in ("", "s", "ling", "er", "é")]
UNKNOWN = ["frogg", "toady", "ponderous", "京", "a", "ne", "the frog"]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    found = tmp_path_factory.mktemp("fasttext") / "model.bin"
    found.write_bytes(fasttext_file(WORDS, 20, 200)[0])
    return found


@pytest.fixture(scope="module")
def ours(path):
    return load_facebook_vectors(path, device=DEVICE)


@pytest.fixture(scope="module")
def theirs(path):
    from gensim.models.fasttext import load_facebook_vectors

    return load_facebook_vectors(str(path))


CALLS = {
    "get_vector": lambda kv, word: kv.get_vector(word),
    "get_vector, normalised": lambda kv, word: kv.get_vector(word, norm=True),
    "item": lambda kv, word: kv[word],
    "items": lambda kv, word: kv[[word, "frog", word]],
    "most_similar": lambda kv, word: kv.most_similar(word, topn=5),
    "most_similar, both": lambda kv, word: kv.most_similar(positive=[word, "toads"], negative=["frogs", "toadling"], topn=5),
    "similar_by_word": lambda kv, word: kv.similar_by_word(word, topn=3),
    "similarity": lambda kv, word: kv.similarity(word, "frog"),
    "distance": lambda kv, word: kv.distance(word, word),
    "distances": lambda kv, word: kv.distances(word, ["frog", "toad"]),
    "n_similarity": lambda kv, word: kv.n_similarity([word, "frog"], ["toad", word]),
    "doesnt_match": lambda kv, word: kv.doesnt_match([word, "frog", "frogs", "frogling"]),
    "most_similar_to_given": lambda kv, word: kv.most_similar_to_given(word, ["frog", "toad", "pond"]),
    "get_mean_vector": lambda kv, word: kv.get_mean_vector([word, "frog"]),
    "get_sentence_vector": lambda kv, word: kv.get_sentence_vector([word, "frog", "toad"]),
    "contains": lambda kv, word: (word in kv, word in kv.key_to_index, kv.has_index_for(word)),
    "vectors_for_all": lambda kv, word: (lambda all: (list(all.index_to_key), all["frog"], all[word]))(kv.vectors_for_all(["frog", word])),
}


def agree(ours, theirs):
    if isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs):
            agree(one, other)
    elif isinstance(theirs, (str, bool)):
        assert ours == theirs
    else:
        assert np.asarray(ours) == pytest.approx(np.asarray(theirs), abs=1e-5)


@needs_gensim
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("word", ["frogs", *UNKNOWN])
def test_it_answers_as_gensim(ours, theirs, name, word):
    agree(CALLS[name](ours, word), CALLS[name](theirs, word))


def test_words_without_rows_are_taken_where_gensim_takes_rows_alone(ours):
    frogg, frog = ours.get_vector("frogg"), ours.get_vector("frog")
    by_word = ours.most_similar_cosmul(positive=["frogg", "toads"], negative=["frog"], topn=5)
    by_vector = ours.most_similar_cosmul(positive=[frogg / np.linalg.norm(frogg), "toads"], negative=["frog"], topn=5)
    assert [word for word, _ in by_word] == [word for word, _ in by_vector]
    assert ours.distances("frog", ["frogg"]) == pytest.approx(1 - ours.cosine_similarities(frog, frogg[np.newaxis]))


@needs_gensim
def test_its_parts_are_gensims(ours, theirs):
    assert (ours.min_n, ours.max_n, ours.bucket) == (theirs.min_n, theirs.max_n, theirs.bucket) == (3, 5, 200)
    assert ours.vectors_ngrams.tobytes() == theirs.vectors_ngrams.tobytes() and not ours.vectors_ngrams.flags.writeable
    assert list(ours.index_to_key) == theirs.index_to_key
    assert ours.vectors == pytest.approx(theirs.vectors, abs=1e-6)


def test_what_it_can_not_do_is_said(ours, path, tmp_path):
    with pytest.raises(kindred.UnsupportedError, match="for training"):
        FastTextKeyedVectors(20, 3, 5, 200)
    with pytest.raises(kindred.UnsupportedError, match="use KeyedVectors"):
        FastTextKeyedVectors(kindred.demo(device=DEVICE))
    with pytest.raises(kindred.UnsupportedError, match="only training needs"):
        _ = ours.vectors_vocab
    with pytest.raises(kindred.UnsupportedError, match="utf-8"):
        load_facebook_vectors(path, encoding="latin1")
    with pytest.raises(KeyError):
        ours.get_vector("x" * 65_537)
    with pytest.raises(KeyError):
        ours.get_index("frogg")
    kindred.prepare(path, tmp_path / "model")
    opened = FastTextKeyedVectors.load(tmp_path / "model", device=DEVICE)
    assert opened.get_vector("frogg").tobytes() == ours.get_vector("frogg").tobytes()
    # The plain class knows the rows alone.
    plain = KeyedVectors(kindred.open(tmp_path / "model", device=DEVICE))
    assert "frogg" not in plain and "frog" in plain
