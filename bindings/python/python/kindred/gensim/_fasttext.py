"""`FastTextKeyedVectors`: keys without rows have the vectors of their n-grams."""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt

import kindred

from ._keyed import KeyedVectors
from .._errors import UnsupportedError

if TYPE_CHECKING:
    from typing_extensions import Self


class FastTextKeyedVectors(KeyedVectors):
    """gensim's `FastTextKeyedVectors` for programs that read, over a `kindred.Model` that was prepared from a fastText ``.bin`` file.

    Args:
        model: the model. gensim's own arguments make an empty table to train, which is not supported.

    Every word has a vector, the one that fastText computes; ``word in kv.key_to_index`` says whether it has a row. Vectors are
    fastText's to the bit, where gensim divides instead of multiplying by the reciprocal, and may differ in the last bit.
    """

    compatible_hash = True
    """Whether n-grams are hashed as by fastText, as gensim has done it since version 3.7."""

    def __init__(self, model: kindred.Model | None = None, *args: Any, **kwargs: Any) -> None:
        if not isinstance(model, kindred.Model) or args or kwargs:
            raise UnsupportedError(
                "an empty FastTextKeyedVectors is for training, which is gensim's: load_facebook_vectors(path), or "
                "FastTextKeyedVectors(kindred.open(folder))"
            )
        super().__init__(model)
        lengths, vectors = model._model.ngram_lengths(), model._model.ngram_vectors()
        if lengths is None or vectors is None:
            raise UnsupportedError(
                "the model has no n-grams: it was not prepared from a fastText .bin file, or that has none; use KeyedVectors"
            )
        self.min_n, self.max_n, self.bucket = lengths
        vectors.flags.writeable = False
        self.vectors_ngrams: npt.NDArray[np.float32] = vectors
        """The rows that n-grams share, float32 ``[bucket, dim]``: a read-only view."""

    @classmethod
    def load_facebook_vectors(cls, path: Any, encoding: str = "utf-8", *, device: str = "auto") -> Self:
        """Reads a ``.bin`` file of fastText, also compressed. ``encoding`` is UTF-8, as fastText writes it.

        Words that can't be rows, such as an empty one, are left out with a warning; texts have their vectors all the same.
        For a large file, ``kindred prepare`` it once and `load` the folder: that takes a moment each time.
        """
        if encoding.lower().replace("_", "-") not in ("utf-8", "utf8"):
            raise UnsupportedError(f"`encoding` is utf-8, as fastText writes its files, not {encoding}")
        folder = tempfile.mkdtemp(prefix="kindred-")
        try:
            model = os.path.join(folder, "model")
            # As gensim, which reads words that no text can have.
            read = kindred.prepare(path, model, skip_bad_rows=True)
            if read["bad_rows_skipped"]:
                left_out = f"{read['bad_rows_skipped']} words of the file have no row; the first: {read['first_bad_row']}"
                warnings.warn(left_out, stacklevel=2)
            found = cls(kindred.open(model, device=device))
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        weakref.finalize(found, shutil.rmtree, folder, ignore_errors=True)
        return found

    def __contains__(self, key: Any) -> bool:
        """Whether there is a vector, which every word has. ``key in kv.key_to_index`` asks for a row."""
        return isinstance(key, str) or self.has_index_for(key)

    def _inferred(self, key: Any) -> npt.NDArray[np.float32] | None:
        if not isinstance(key, str) or self._row(key) is not None:
            return None
        return self.model.vector(key)

    def get_sentence_vector(self, sentence: Sequence[Any]) -> npt.NDArray[np.float32]:
        """The mean of the normalised vectors of some words, float32 ``[dim]``, as `get_mean_vector`."""
        return self.get_mean_vector(sentence)

    def _empty(self, count: int) -> Any:
        return KeyedVectors(self.vector_size, count, device=self._device)

    @property
    def vectors_vocab(self) -> NoReturn:
        """Not supported: the words' own rows are for training."""
        raise UnsupportedError("`vectors_vocab` has the words' own rows, which only training needs; `vectors` has the words' vectors")


def load_facebook_vectors(path: Any, encoding: str = "utf-8", *, device: str = "auto") -> FastTextKeyedVectors:
    """`FastTextKeyedVectors.load_facebook_vectors`."""
    return FastTextKeyedVectors.load_facebook_vectors(path, encoding, device=device)
