"""Searches of the whole table: the nearest keys, and how far all of them are."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

import kindred
from kindred._arrays import floats

from ._arithmetic import cosines, norm, number, unit
from ._compare import Comparison
from ._lookup import is_key
from .._errors import UnsupportedError

# The engine's largest k.
_LARGEST_K = 1000

Found = list[tuple[str, float]]
Scores = npt.NDArray[np.float64]


class Search(Comparison):
    """Searches. The first one ends the adding of keys."""

    def most_similar(
        self, positive: Any = None, negative: Any = None, topn: int | None = 10, clip_start: int = 0, clip_end: int | None = None,
        restrict_vocab: int | None = None, indexer: Any = None,
    ) -> Any:  # fmt: skip
        """The keys nearest to the weighted sum of others, which are left out.

        Args:
            positive, negative: a key, row or vector ``[dim]``; vectors ``[n, dim]``; or a list of keys, rows, vectors and pairs of
                one of them with its weight. Weights are 1.0 and -1.0 by default; a weight that is given counts as it is, also in
                ``negative``. The vectors of keys are normalised first.
            topn: how many; None for the scores of all rows.
            clip_start, clip_end: the rows that are searched.
            restrict_vocab: the number of first rows that are searched, instead of these.
            indexer: not supported: searches are exact.

        Returns:
            ``[(key, score)]``, best first, ties to the lower row; float64 ``[rows that are searched]`` if ``topn`` is None.

        >>> import kindred
        >>> from kindred.gensim import KeyedVectors
        >>> kv = KeyedVectors(kindred.demo())
        >>> kv.most_similar(positive=["king", "woman"], negative=["man"], topn=1)[0][0]
        'queen'
        """
        if indexer is not None:
            raise UnsupportedError("`indexer` is for approximate searches; this one is exact: leave `indexer` out")
        if isinstance(topn, Integral) and topn < 1:
            return []
        query, left_out = self._query(_listed(positive), _listed(negative))
        window = slice(0, restrict_vocab) if restrict_vocab else slice(clip_start, clip_end or None)
        first, end, _ = window.indices(len(self))
        if topn is None:
            return self.model.scores(query)[first:end]
        return self._best(query, int(topn), first, end, left_out)

    def similar_by_word(self, word: Any, topn: int | None = 10, restrict_vocab: int | None = None) -> Any:
        """`similar_by_key`."""
        return self.similar_by_key(word, topn, restrict_vocab)

    def similar_by_key(self, key: Any, topn: int | None = 10, restrict_vocab: int | None = None) -> Any:
        """The keys nearest to a key."""
        return self.most_similar(positive=[key], topn=topn, restrict_vocab=restrict_vocab)

    def similar_by_vector(self, vector: Any, topn: int | None = 10, restrict_vocab: int | None = None) -> Any:
        """The keys nearest to a vector ``[dim]``."""
        return self.most_similar(positive=[vector], topn=topn, restrict_vocab=restrict_vocab)

    def most_similar_cosmul(
        self, positive: Any = None, negative: Any = None, topn: int | None = 10, restrict_vocab: int | None = None
    ) -> Any:
        """The keys with the largest product of similarities (Levy and Goldberg's 3CosMul, with gensim's epsilon of 0.000001).

        Args:
            positive, negative: a key, row or vector, or a list of them. As in gensim, a vector counts with its norm.
            topn: how many; None for the scores of all rows.
            restrict_vocab: the number of first rows that are searched. (gensim has this option and ignores it.)
        """
        if isinstance(topn, Integral) and topn < 1:
            return []
        ups, downs = _listed(positive), _listed(negative)
        if not ups:
            raise kindred.InvalidValueError("most_similar_cosmul needs at least one positive key", field="positive")
        left_out = {int(self.get_index(key)) for key in ups + downs if is_key(key) and self._inferred(key) is None}
        numerator, denominator = (np.prod([self._factor(one) for one in side], axis=0) for side in (ups, downs))
        scores = (numerator / (denominator + 0.000001))[: restrict_vocab or None]
        return scores if topn is None else self._highest(scores, int(topn), 0, left_out)

    def closer_than(self, key1: Any, key2: Any) -> list[str]:
        """The keys that are closer to ``key1`` than ``key2`` is, by their rows."""
        return self.model.words.of(self._closer(key1, key2))

    def rank(self, key1: Any, key2: Any) -> int:
        """The rank of ``key2`` among all keys by their distance from ``key1``, from 1.

        >>> import kindred
        >>> from kindred.gensim import KeyedVectors
        >>> KeyedVectors(kindred.demo()).rank("frog", "toad")
        2
        """
        return len(self._closer(key1, key2)) + 1

    def distances(self, word_or_vector: Any, other_words: Iterable[Any] = ()) -> Scores:
        """1 - cosine from a key, row or vector to some keys, or to all: float64 ``[n]``; NaN for a zero vector."""
        if is_key(word_or_vector):
            vector: npt.NDArray[Any] = self.get_vector(word_or_vector)
        else:
            vector = np.asarray(word_or_vector)
            vector = floats(self._checked(vector), "vector", (1,))
        others = list(other_words)
        return 1 - (cosines(self[others], vector) if others else self.model.scores(vector))

    def relative_cosine_similarity(self, wa: Any, wb: Any, topn: int = 10) -> np.float64:
        """The similarity of two keys, divided by the sum of those of the first one's ``topn`` nearest keys."""
        nearest = self.similar_by_word(wa, topn)
        if not nearest:
            raise kindred.InvalidValueError("relative_cosine_similarity needs a neighbour: `topn` of 1 or more", field="topn")
        return number(self.similarity(wa, wb) / sum(score for _, score in nearest))

    # How

    def _closer(self, key1: Any, key2: Any) -> npt.NDArray[np.int64]:
        own, other = self.get_index(key1), self.get_index(key2)
        scores = self.model.scores(self.vectors[own])
        is_closer = scores > scores[other]
        is_closer[own] = False
        return np.flatnonzero(is_closer)

    def _query(self, positive: list[Any], negative: list[Any]) -> tuple[npt.NDArray[np.float32], set[int]]:
        """The vector that is searched for, and the rows that are left out."""
        terms = [_weighted(one, 1.0) for one in positive] + [_weighted(one, -1.0) for one in negative]
        if not terms:
            raise kindred.InvalidValueError("most_similar needs at least one key or vector", field="positive")
        weights: dict[int, float] = {}
        arrays: list[tuple[npt.NDArray[Any], float]] = []
        for one, weight in terms:
            inferred = None if isinstance(one, np.ndarray) else self._inferred(one)
            if isinstance(one, np.ndarray):
                arrays.append((one, weight))
            elif inferred is not None:
                # Alone it is the query itself.
                arrays.append((inferred if len(terms) == 1 else self._direction(one, inferred), weight))
            else:
                row = int(self.get_index(one))
                weights[row] = weights.get(row, 0.0) + weight
        left_out = set(weights)
        if len(terms) == 1 and terms[0][1] > 0:
            # One vector is its own query, with the bits of `Model.nearest`.
            only = self.vectors[next(iter(left_out))] if left_out else self._checked(arrays[0][0])
            return floats(only, "vector", (1,)), left_out
        total = np.zeros(self.vector_size)
        for row, weight in weights.items():
            if weight != 0:
                total += weight * self._direction(self._keys()[row], self.vectors[row])
        for array, weight in arrays:
            total += weight * self._checked(array)
        if norm(total) == 0:
            raise kindred.ZeroVectorError("the keys cancel out: their sum has no direction, so it has no neighbours")
        return unit(total).astype(np.float32), left_out

    def _direction(self, key: str, vector: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        """The vector of a key divided by its norm."""
        if not vector.any():
            raise kindred.ZeroVectorError(f"the vector of {key!r} is zero: it has no direction, so it can't be added")
        wide = vector.astype(np.float64)
        found: npt.NDArray[np.float64] = wide / norm(wide)
        return found

    def _best(self, query: npt.NDArray[np.float32], topn: int, first: int, end: int, left_out: set[int]) -> Found:
        if end <= first:
            return []
        k = topn + len(left_out)
        if first == 0 and k <= _LARGEST_K:
            nearest: Any = self.model.nearest(query, k=k, vocab_limit=end)
            return [(one.word, one.score) for one in nearest if one.row not in left_out][:topn]
        return self._highest(self.model.scores(query)[first:end], topn, first, left_out)

    def _highest(self, scores: Scores, topn: int, first: int, left_out: set[int]) -> Found:
        """The best of scores of the rows from ``first``, ties to the lower row."""
        scores = scores.copy()
        scores[[row - first for row in left_out if first <= row < first + len(scores)]] = np.nan
        order = np.argsort(-scores, kind="stable")[: min(topn, int(np.count_nonzero(~np.isnan(scores))))]
        return list(zip(self.model.words.of(order + first), scores[order].tolist()))

    def _factor(self, one: Any) -> Scores:
        """What a key or vector contributes to the score of each row by 3CosMul."""
        if is_key(one):
            return (1 + self.model.scores(self.get_vector(one))) / 2
        if not isinstance(one, np.ndarray):
            raise kindred.InvalidValueError(f"most_similar_cosmul takes keys and vectors, not {one!r}", field="positive")
        return (1 + self.model.scores(self._checked(one)) * norm(one)) / 2


def _listed(value: Any) -> list[Any]:
    """A single key or vector in a list."""
    if value is None:
        return []
    if is_key(value) or (isinstance(value, np.ndarray) and value.ndim == 1):
        return [value]
    return list(value)


def _weighted(one: Any, weight: float) -> tuple[Any, float]:
    if is_key(one) or isinstance(one, np.ndarray):
        return one, weight
    if isinstance(one, (tuple, list)) and len(one) == 2 and (is_key(one[0]) or isinstance(one[0], np.ndarray)):
        return one[0], float(one[1])
    raise kindred.InvalidValueError(f"{one!r} is no key, row, vector (NumPy array) or pair with a weight", field="positive")
