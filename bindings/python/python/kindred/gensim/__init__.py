"""gensim's `KeyedVectors` for programs that only read: change the import, and the searches are exact and run on Kindred's engines.

    from gensim.models import KeyedVectors      # before
    from kindred.gensim import KeyedVectors     # after

It needs NumPy only, not gensim. What it does, call by call: ``docs/gensim.md``.
"""

from __future__ import annotations

from typing import Any

from .._errors import UnsupportedError
from ._fasttext import FastTextKeyedVectors, load_facebook_vectors
from ._keyed import KeyedVectors
from ._table import IndexToKey, KeyToIndex

# gensim's older names of the same class.
Word2VecKeyedVectors = KeyedVectors
EuclideanKeyedVectors = KeyedVectors


def load_word2vec_format(*args: Any, **kwargs: Any) -> KeyedVectors:
    """`KeyedVectors.load_word2vec_format`."""
    return KeyedVectors.load_word2vec_format(*args, **kwargs)


__all__ = [
    "EuclideanKeyedVectors", "FastTextKeyedVectors", "IndexToKey", "KeyToIndex", "KeyedVectors", "UnsupportedError",
    "Word2VecKeyedVectors", "load_facebook_vectors", "load_word2vec_format",
]  # fmt: skip
