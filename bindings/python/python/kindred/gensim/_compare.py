"""Comparing a few keys or vectors with each other: no search, so a table can still grow afterwards."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import kindred

from ._arithmetic import cosines, dots, number, unit
from ._lookup import Lookup
from .._errors import UnsupportedError

logger = logging.getLogger(__name__)


class Comparison(Lookup):
    """Similarities and distances of a few keys."""

    def similarity(self, w1: Any, w2: Any) -> np.float64:
        """The cosine of two keys; 0 if a vector is zero.

        >>> import kindred
        >>> from kindred.gensim import KeyedVectors
        >>> round(float(KeyedVectors(kindred.demo()).similarity("frog", "toad")), 3)
        0.652
        """
        return _cosine(self.get_vector(w1), self.get_vector(w2))

    def distance(self, w1: Any, w2: Any) -> np.float64:
        """1 - `similarity`; exactly 0 for a key and itself, unless its vector is zero."""
        one, other = (self.get_index(key, -1) for key in (w1, w2))
        is_same = one == other >= 0 or (isinstance(w1, str) and w1 == w2)
        if is_same and self.get_vector(w1).any():
            return number(0)
        return number(1 - self.similarity(w1, w2))

    def n_similarity(self, ws1: Sequence[Any], ws2: Sequence[Any]) -> np.float64:
        """The cosine of the means of two lists of keys. Unknown keys are left out; 0 if none is left."""
        if not (len(ws1) and len(ws2)):
            raise ZeroDivisionError("n_similarity needs at least one key in each list")
        return _cosine(*(self._mean(keys, None, pre_normalize=False, ignore_missing=True) for keys in (ws1, ws2)))

    @staticmethod
    def cosine_similarities(vector_1: npt.NDArray[Any], vectors_all: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """The cosines of a vector ``[dim]`` with vectors ``[n, dim]``, float64 ``[n]``; NaN where one of them is zero."""
        return cosines(np.asarray(vectors_all), np.asarray(vector_1))

    def most_similar_to_given(self, key1: Any, keys_list: Sequence[Any]) -> Any:
        """The key of a list that is most similar to ``key1``."""
        return keys_list[int(np.argmax([self.similarity(key1, key) for key in keys_list]))]

    def rank_by_centrality(self, words: Sequence[Any], use_norm: bool = True) -> list[tuple[np.float64, Any]]:
        """The keys with their similarities to the mean of all of them, the most similar first. Unknown keys are left out.

        Args:
            words: keys.
            use_norm: whether their vectors are normalised first. If not, the numbers are dot products with the normalised mean.
        """
        known = [word for word in words if word in self]
        if len(known) != len(words):
            logger.warning("left out, as they are not in the model: %s", ", ".join(map(str, set(words) - set(known))))
        if not known:
            raise kindred.InvalidValueError("none of the words is in the model, so there is no mean to compare with", field="words")
        vectors = self[known].astype(np.float64)
        if use_norm:
            vectors = np.stack([unit(vector) for vector in vectors])
        centre = unit(vectors.mean(axis=0))
        return sorted(zip(dots(vectors, centre), known), reverse=True)

    def doesnt_match(self, words: Sequence[Any]) -> Any:
        """The key that is farthest from the mean of all of them.

        >>> import kindred
        >>> from kindred.gensim import KeyedVectors
        >>> KeyedVectors(kindred.demo()).doesnt_match("breakfast lunch dinner piano".split())
        'piano'
        """
        return self.rank_by_centrality(words)[-1][1]

    def wmdistance(self, document1: Sequence[str], document2: Sequence[str], norm: bool = True) -> float:
        """The Word Mover's Distance of two lists of words, as gensim by the package POT. Infinite if one of them has no known word.

        Args:
            norm: whether the words' vectors are normalised first.

        Raises:
            ImportError: POT is not installed.
        """
        try:
            from ot import emd2
        except ImportError as error:
            raise ImportError("wmdistance needs the package POT, as it does in gensim: pip install POT") from error
        first, second = (Counter(word for word in document if word in self) for document in (document1, document2))
        if not first or not second:
            logger.warning("a document has no word of the model: the distance is infinite")
            return float("inf")
        vectors = [self[list(words)].astype(np.float64) for words in (first, second)]
        if norm:
            vectors = [np.stack([unit(vector) for vector in rows]) for rows in vectors]
        costs = np.sqrt(np.square(vectors[0][:, np.newaxis] - vectors[1]).sum(axis=-1))
        if not costs.any():
            return 0.0
        weights = [np.array(list(words.values())) / sum(words.values()) for words in (first, second)]
        return float(emd2(weights[0], weights[1], costs))

    def similarity_unseen_docs(self, *args: Any, **kwargs: Any) -> Any:
        """Only a Doc2Vec model can do this, in gensim too."""
        raise UnsupportedError("similarity_unseen_docs infers vectors, which only gensim's Doc2Vec models do")


def _cosine(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> np.float64:
    product, square_of_a, square_of_b = dots(np.stack([a, a, b]), np.stack([b, a, b]))
    if square_of_a == 0 or square_of_b == 0:
        return number(0)
    return number(np.clip(product / (np.sqrt(square_of_a) * np.sqrt(square_of_b)), -1.0, 1.0))
