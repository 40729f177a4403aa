"""`kindred.gensim` against gensim itself: the same order, scores within 1e-5, the same files and the same kinds of answers."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import DEVICE
from peer import Theirs, needs_gensim

import kindred
from kindred.gensim import KeyedVectors

pytestmark = needs_gensim


class Pair:
    """The same vectors here and in gensim, with some words, vectors and rows to ask for."""

    def __init__(self, keys, vectors):
        self.keys = keys
        self.ours = KeyedVectors.from_vectors(keys, vectors, device=DEVICE)
        self.theirs = Theirs(vectors.shape[1])
        self.theirs.add_vectors(keys, vectors)


def of_random():
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=(2000, 33)).astype(np.float32) * rng.uniform(0.1, 9, size=(2000, 1)).astype(np.float32)
    return Pair([f"key{row}" for row in range(2000)], vectors)


def of_demo():
    model = kindred.demo(device=DEVICE)
    return Pair(list(model.words), np.array(model.vectors))


@pytest.fixture(scope="module", params=[of_random, of_demo])
def pair(request):
    return request.param()


def same(ours, theirs):
    """The same lists of keys with nearly the same scores, or nearly the same numbers."""
    if isinstance(theirs, list) and theirs and isinstance(theirs[0], tuple):
        where = 0 if isinstance(theirs[0][0], str) else 1
        assert isinstance(ours, list) and all(type(one) is tuple for one in ours)
        assert [one[where] for one in ours] == [one[where] for one in theirs]
        np.testing.assert_allclose([one[1 - where] for one in ours], [one[1 - where] for one in theirs], atol=1e-5, rtol=0)
    elif isinstance(theirs, (list, str, int)):
        assert ours == theirs
    else:
        assert np.shape(ours) == np.shape(theirs)
        np.testing.assert_allclose(ours, theirs, atol=1e-5, rtol=0)


# Questions to both: `kv` is one of them, `w` their keys, `v` two vectors.
QUESTIONS = {
    "a key": lambda kv, w, v: kv.most_similar(w[70]),
    "positive and negative": lambda kv, w, v: kv.most_similar([w[70], w[500]], [w[900]], topn=25),
    "keywords": lambda kv, w, v: kv.most_similar(positive=w[70], negative=w[900]),
    "negative only": lambda kv, w, v: kv.most_similar(negative=[w[900]]),
    "weights": lambda kv, w, v: kv.most_similar([(w[70], 0.5), w[71]], [(w[72], -0.25), (w[73], 0.5)]),
    "repeated and cancelled": lambda kv, w, v: kv.most_similar([w[70], w[70], w[71]], [w[71]]),
    "rows": lambda kv, w, v: kv.most_similar([70, np.int64(71)], [72]),
    "vectors": lambda kv, w, v: kv.most_similar(v),
    "a vector": lambda kv, w, v: kv.most_similar(v[0]),
    "vectors and keys": lambda kv, w, v: kv.most_similar([w[70], v[0], (v[1], 0.3)], [w[72]]),
    "topn of 3": lambda kv, w, v: kv.most_similar(w[70], topn=3),
    "topn of 0": lambda kv, w, v: kv.most_similar(w[70], topn=0),
    "topn of a NumPy 0": lambda kv, w, v: kv.most_similar(w[70], topn=np.uint8(0)),
    "topn of None": lambda kv, w, v: kv.most_similar([w[70]], [w[71]], topn=None),
    "topn over 1000": lambda kv, w, v: kv.most_similar([w[70]], [w[71]], topn=1200),
    "topn of more than there are": lambda kv, w, v: len(kv.most_similar(w[70], topn=10**6)),
    "clip_start": lambda kv, w, v: kv.most_similar(w[70], clip_start=50),
    "clip_end": lambda kv, w, v: kv.most_similar(w[70], clip_end=300),
    "both clips": lambda kv, w, v: kv.most_similar([w[70]], [w[400]], clip_start=60, clip_end=300, topn=20),
    "clips, topn of None": lambda kv, w, v: kv.most_similar(w[70], clip_start=60, clip_end=300, topn=None),
    "restrict_vocab": lambda kv, w, v: kv.most_similar(w[70], restrict_vocab=200, clip_start=100),
    "restrict_vocab, few": lambda kv, w, v: kv.most_similar(w[1], restrict_vocab=5),
    "similar_by_word": lambda kv, w, v: kv.similar_by_word(w[8], topn=4, restrict_vocab=700),
    "similar_by_key": lambda kv, w, v: kv.similar_by_key(w[8], 4),
    "similar_by_vector": lambda kv, w, v: kv.similar_by_vector(v[1], 6, 800),
    "similar_by_vector, None": lambda kv, w, v: kv.similar_by_vector(v[1], None),
    "cosmul": lambda kv, w, v: kv.most_similar_cosmul([w[70], w[500]], [w[900]]),
    "cosmul of keys": lambda kv, w, v: kv.most_similar_cosmul(w[70], w[900]),
    "cosmul, only positive": lambda kv, w, v: kv.most_similar_cosmul([w[70], w[71]], topn=5),
    "cosmul, vector": lambda kv, w, v: kv.most_similar_cosmul([w[70], v[0] / np.linalg.norm(v[0])], [w[71]]),
    "cosmul, None": lambda kv, w, v: kv.most_similar_cosmul([w[70], w[500]], [], topn=None),
    "closer_than": lambda kv, w, v: kv.closer_than(w[70], w[71]),
    "closer_than itself": lambda kv, w, v: kv.closer_than(w[70], w[70]),
    "rank": lambda kv, w, v: kv.rank(w[70], w[1500]),
    "most_similar_to_given": lambda kv, w, v: kv.most_similar_to_given(w[70], w[100:180]),
    "doesnt_match": lambda kv, w, v: kv.doesnt_match(w[100:105]),
    "rank_by_centrality": lambda kv, w, v: kv.rank_by_centrality([*w[100:110], "no such key"]),
    "rank_by_centrality, raw": lambda kv, w, v: kv.rank_by_centrality(w[100:110], use_norm=False),
    "similarity": lambda kv, w, v: kv.similarity(w[5], w[6]),
    "similarity of rows": lambda kv, w, v: kv.similarity(5, np.int32(6)),
    "n_similarity": lambda kv, w, v: kv.n_similarity(w[5:9], [*w[10:14], "no such key"]),
    "n_similarity of nothing": lambda kv, w, v: kv.n_similarity(["no such key"], ["nobody"]),
    "distance": lambda kv, w, v: kv.distance(w[5], w[6]),
    "distances": lambda kv, w, v: kv.distances(w[5]),
    "distances to some": lambda kv, w, v: kv.distances(w[5], w[20:29]),
    "distances of a vector": lambda kv, w, v: kv.distances(v[0], w[20:29]),
    "cosine_similarities": lambda kv, w, v: kv.cosine_similarities(v[0], kv.vectors[:40]),
    "relative_cosine_similarity": lambda kv, w, v: kv.relative_cosine_similarity(w[5], w[6], 10),
    "a vector of a key": lambda kv, w, v: kv[w[5]],
    "vectors of keys": lambda kv, w, v: kv[[w[5], w[7], 9]],
    "get_vector": lambda kv, w, v: kv.get_vector(w[5]),
    "get_vector, norm": lambda kv, w, v: kv.get_vector(w[5], norm=True),
    "get_mean_vector": lambda kv, w, v: kv.get_mean_vector([w[5], "no such key", v[0]], [1, 3, -2.5]),
    "get_mean_vector, raw": lambda kv, w, v: kv.get_mean_vector(w[5:8], pre_normalize=False, post_normalize=True),
    "get_index": lambda kv, w, v: [kv.get_index(w[5]), kv.get_index(7), kv.get_index("no such key", -3), kv.get_index(10**9, -1)],
    "key_to_index": lambda kv, w, v: list(dict(kv.key_to_index).items()),
    "key_to_index.get": lambda kv, w, v: [kv.key_to_index.get(w[5]), kv.key_to_index.get("no such key"), w[5] in kv.key_to_index],
    "index_to_key": lambda kv, w, v: [kv.index_to_key[5], kv.index_to_key[-1], *kv.index_to_key[3:40:5], *kv.index_to_key],
    "has_index_for": lambda kv, w, v: [kv.has_index_for(w[5]), kv.has_index_for("no such key"), kv.has_index_for(5), -1 in kv],
    "len": lambda kv, w, v: [len(kv), kv.vector_size, len(kv.index_to_key), len(kv.key_to_index)],
    "str": lambda kv, w, v: str(kv),
    "vectors": lambda kv, w, v: kv.vectors,
    "get_normed_vectors": lambda kv, w, v: kv.get_normed_vectors(),
    "norms": lambda kv, w, v: [kv.fill_norms(), np.allclose(kv.norms[:100], np.linalg.norm(kv.vectors[:100], axis=1))],
    "vectors_for_all": lambda kv, w, v: kv.vectors_for_all([w[9], "no such key", w[3], w[9]]).most_similar(w[9]),
    "vectors_for_all, counts": lambda kv, w, v: int(kv.vectors_for_all([w[9], w[3]]).get_vecattr(w[9], "count")),
}


@pytest.mark.filterwarnings("ignore:Call to deprecated")
@pytest.mark.parametrize("name", QUESTIONS)
def test_it_answers_as_gensim(pair, name):
    vectors = np.random.default_rng(5).normal(size=(2, pair.ours.vector_size)).astype(np.float32)
    ours, theirs = (QUESTIONS[name](kv, pair.keys, vectors) for kv in (pair.ours, pair.theirs))
    same(ours, theirs)


REFUSED_BY_BOTH = {
    "an unknown key": (KeyError, lambda kv: kv.most_similar("no such key")),
    "an unknown key beside others": (KeyError, lambda kv: kv.most_similar(["no such key", 5])),
    "an unknown vector": (KeyError, lambda kv: kv["no such key"]),
    "unknown vectors": (KeyError, lambda kv: kv[["no such key", 5]]),
    "an unknown row": (KeyError, lambda kv: kv.get_index(10**9)),
    "a negative row": (KeyError, lambda kv: kv[-1]),
    "an unknown mean": (KeyError, lambda kv: kv.get_mean_vector(["no such key"], ignore_missing=False)),
    "distances of an unknown key": (KeyError, lambda kv: kv.distances("no such key")),
    "no such key": (ValueError, lambda kv: kv.most_similar()),
    "cosmul without positive": (ValueError, lambda kv: kv.most_similar_cosmul(negative=[5])),
    "a mean of nothing": (ValueError, lambda kv: kv.get_mean_vector([])),
    "a mean with too few weights": (ValueError, lambda kv: kv.get_mean_vector([1, 2], [1])),
    "centrality of nothing": (ValueError, lambda kv: kv.rank_by_centrality(["no such key"])),
    "an empty list": (ZeroDivisionError, lambda kv: kv.n_similarity([], [5])),
    "another dimension": (ValueError, lambda kv: kv.similar_by_vector(np.ones(3, dtype=np.float32))),
    "unseen documents": (NotImplementedError, lambda kv: kv.similarity_unseen_docs()),
    "an unknown attribute": (KeyError, lambda kv: kv.get_vecattr(5, "no such key")),
    "a change of a vector": (ValueError, lambda kv: kv.get_vector(5).__setitem__(0, 1.0)),
    "vocab": (AttributeError, lambda kv: kv.vocab),
    "index2word": (AttributeError, lambda kv: kv.index2word),
    "index2entity": (AttributeError, lambda kv: kv.index2entity),
    "vectors_norm": (AttributeError, lambda kv: kv.vectors_norm),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", REFUSED_BY_BOTH)
def test_it_refuses_as_gensim(pair, name):
    kind, ask = REFUSED_BY_BOTH[name]
    for kv in (pair.ours, pair.theirs):
        with pytest.raises(kind):
            ask(kv)


@pytest.mark.parametrize("name", ["word_vec", "words_closer_than", "init_sims"])
def test_old_names_warn_and_answer_as_gensims(pair, name):
    given = {"word_vec": (7,), "words_closer_than": (7, 8), "init_sims": ()}[name]
    answers = []
    for kv in (pair.ours, pair.theirs):
        with pytest.warns(DeprecationWarning):
            answers.append(getattr(kv, name)(*given))
    if name != "init_sims":
        same(*answers)


@pytest.mark.parametrize("norm", [True, False])
def test_word_movers_distance(pair, norm):
    pytest.importorskip("ot", reason="POT is not installed: neither here nor in gensim is there a distance without it")
    w = pair.keys
    for first, second in (
        (w[5:12], w[10:14]), ([w[5], w[5], w[6]], [w[7], "no such key"]), (w[5:8], w[5:8]), ([w[5]], [w[5], w[5]]),
        (w[5:8], ["no such key"]),
    ):  # fmt: skip
        same(pair.ours.wmdistance(first, second, norm=norm), float(pair.theirs.wmdistance(first, second, norm=norm)))


def test_scores_have_the_bits_of_the_models_searches(pair):
    model, w = pair.ours.model, pair.keys
    pick = np.random.default_rng(1).integers(len(w), size=(40, 3)).tolist()
    for a, b, c in pick:
        expected = [(one.word, one.score) for one in model.nearest(w[a], k=5)]
        assert pair.ours.most_similar(w[a], topn=5) == expected
        assert pair.ours.most_similar(w[a], topn=1500)[:5] == expected == pair.ours.most_similar(w[a], topn=5, clip_end=len(w))
        terms = dict(positive=[w[b], (w[c], 0.7)], negative=[w[a]])
        expected = [(one.word, one.score) for one in model.analogy(k=5, **terms)]
        assert pair.ours.most_similar(**terms, topn=5) == expected == pair.ours.most_similar(**terms, topn=1500)[:5]
        assert pair.ours.similarity(w[a], w[b]) == model.similarity(w[a], w[b])
        assert pair.ours.distance(w[a], w[b]) == 1 - model.similarity(w[a], w[b]) or a == b
        assert pair.ours.distances(w[a], [w[b]])[0] == pair.ours.distances(w[a])[b] == 1 - model.scores(w[a])[b]
