"""`KeyedVectors`: the searches of the other files, with loading, saving, old names, and refusals with their reasons."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt

import kindred

from . import _files
from ._evaluate import Evaluation
from ._lookup import is_key
from .._errors import UnsupportedError

if TYPE_CHECKING:
    from typing_extensions import Self


def _fixed(name: str) -> Any:
    """The property of a base class, with a refusal in place of the setter."""

    def refuse(self: Any, value: Any) -> NoReturn:
        raise UnsupportedError(f"`{name}` can't be set: {_MAKE_ANOTHER}")

    for base in Evaluation.__mro__:
        if name in base.__dict__:
            found: property = base.__dict__[name]
            return found.setter(refuse)
    raise AssertionError(name)


def _gone(name: str, instead: str) -> Any:
    """A name that gensim 4 no longer has: AttributeError, as there."""

    def get(self: Any) -> NoReturn:
        raise AttributeError(f"`{name}` is gone since gensim 4: use {instead}")

    return property(get)


_MAKE_ANOTHER = "a table that is searched never changes; make a new one: KeyedVectors.from_vectors(keys, vectors)"


class KeyedVectors(Evaluation):
    """gensim's `KeyedVectors` for programs that read, over a `kindred.Model`.

    Args:
        vector_size: a `kindred.Model` with the metric ``cosine``; or a number of components, for an empty table. To a table keys
            can be added until its first search. The search hands it to an engine, and from then on it never changes.
        count: the number of keys that there is room for at once.
        dtype: float32, or float16 to round numbers to it; they are stored as float32.
        mapfile_path: not used, as in gensim.
        device: as in `kindred.open`.

    Scores are the float64 cosines of the stored float32 numbers, exact and the same on every device, with ties to the lower row.
    gensim sums in float32, so its scores differ in about the seventh digit, and so may the order of nearly equal ones. Zero vectors
    are never found, where gensim computes NaN. Names, signatures and types are gensim's, but numbers are float64 for float32.

    `UnsupportedError` (a NotImplementedError) says why something is not possible, and what to do.

    >>> import kindred
    >>> from kindred.gensim import KeyedVectors
    >>> kv = KeyedVectors(kindred.demo())
    >>> kv.most_similar("frog", topn=2)
    [('frogs', 0.6804725969872646), ('toad', 0.6519971100007262)]
    >>> kv.key_to_index["frog"], kv.index_to_key[:3]
    (9070, ['the', 'of', 'and'])
    """

    vectors = _fixed("vectors")
    vector_size = _fixed("vector_size")
    index_to_key = _fixed("index_to_key")
    key_to_index = _fixed("key_to_index")
    norms = _fixed("norms")

    # Adding, until the first search

    def add_vectors(self, keys: Any, weights: Any, extras: Any = None, replace: bool = False) -> None:
        """Adds keys with their vectors ``[n, dim]``, or one key with its vector: before the first search only.

        Args:
            keys: a key, or keys.
            weights: floating-point ``[dim]`` or ``[n, dim]``, or a list of vectors.
            extras: not supported.
            replace: whether keys that are there already get the new vector.

        >>> from kindred.gensim import KeyedVectors
        >>> kv = KeyedVectors(2)
        >>> kv.add_vectors(["right", "up"], [[1.0, 0.0], [0.0, 1.0]])
        >>> kv.most_similar("up", topn=1)
        [('right', 0.0)]
        """
        if extras:
            raise UnsupportedError("`extras` can't be added: Kindred keeps no attributes but counts, which `fvocab` has")
        table = self._collected("adding or changing vectors")
        if is_key(keys):
            keys, weights = [keys], np.asarray(weights).reshape(1, -1)
        table.add(list(keys), np.asarray(weights), replace)
        self._norms = None

    def add_vector(self, key: Any, vector: Any) -> int:
        """Adds a key, or replaces its vector: before the first search only. Returns its row."""
        self.add_vectors(key, vector, replace=True)
        return self.get_index(key)  # type: ignore[no-any-return]

    def __setitem__(self, keys: Any, weights: Any) -> None:
        self.add_vectors(keys, weights, replace=True)

    # Files

    @classmethod
    def load(cls, fname: Any, mmap: Any = None, *, device: str = "auto") -> Self:
        """Opens a model folder, as `save` and ``kindred prepare`` write it. It is always mapped, so processes share it.

        gensim's own files are pickles: they hold gensim's objects, and reading one runs what it says. Load them with gensim, and
        write them with its ``save_word2vec_format(name, binary=True)``.
        """
        if os.path.isfile(fname):
            raise UnsupportedError(
                f"{os.fspath(fname)} is a file, and `load` opens model folders. If gensim saved it: load it with gensim, "
                "save_word2vec_format(name, binary=True), then `kindred prepare name --out folder`, or load_word2vec_format here"
            )
        return cls(kindred.open(fname, device=device))

    def save(self, fname_or_handle: Any, *args: Any, **kwargs: Any) -> None:
        """Writes a model folder, which `load` and `kindred.open` open. Counts are not kept. Other arguments mean nothing here."""
        if hasattr(fname_or_handle, "write"):
            raise UnsupportedError("`save` writes a folder, so it needs a path, not an open file")
        _files.save_folder(self, fname_or_handle)

    @classmethod
    def load_word2vec_format(
        cls, fname: Any, fvocab: Any = None, binary: bool = False, encoding: str = "utf8", unicode_errors: str = "strict",
        limit: int | None = None, datatype: Any = np.float32, no_header: bool = False, *, device: str = "auto",
    ) -> Self:  # fmt: skip
        """Reads a file of word2vec, text or binary; compressed if its name ends in .gz, .bz2 or .xz.

        For a large file, ``kindred prepare`` it once and `load` the folder: that takes a moment each time.

        Args:
            fname: the file.
            fvocab: a file with a word and its count in a line.
            binary: whether it is binary.
            encoding, unicode_errors: of the words.
            limit: the number of vectors to read at most.
            datatype: float32, or float16 to round to it.
            no_header: whether a text has no line with the numbers of rows and components, as GloVe's.

        Raises:
            InvalidValueError: with the line that can't be read.
            EOFError: it ends early.
        """
        return _files._load_word2vec_format(
            cls, fname, fvocab, binary, encoding, unicode_errors, limit, datatype, no_header, device=device
        )  # type: ignore[return-value]

    def save_word2vec_format(
        self, fname: Any, fvocab: Any = None, binary: bool = False, total_vec: int | None = None, write_header: bool = True,
        prefix: str = "", append: bool = False, sort_attr: str = "count",
    ) -> None:  # fmt: skip
        """Writes a file of word2vec.

        Args:
            fname: the file; compressed if its name ends in .gz, .bz2 or .xz.
            fvocab: a file for words with their counts.
            binary: whether it is binary, or text.
            total_vec: the number of rows that the header says, if more are appended later.
            write_header: whether the first line has the numbers of rows and components.
            prefix: comes before each word.
            append: whether to append to files that exist.
            sort_attr: rows are written by this attribute, the largest first; as they are if there is none.
        """
        _files.save_word2vec_format(self, fname, fvocab, binary, total_vec, write_header, prefix, append, sort_attr)

    # Old names

    def word_vec(self, *args: Any, **kwargs: Any) -> npt.NDArray[np.float32]:
        """The old name of `get_vector`."""
        warnings.warn("use get_vector", DeprecationWarning, stacklevel=2)
        return self.get_vector(*args, **kwargs)

    def words_closer_than(self, word1: Any, word2: Any) -> list[str]:
        """The old name of `closer_than`."""
        warnings.warn("use closer_than", DeprecationWarning, stacklevel=2)
        return self.closer_than(word1, word2)

    def init_sims(self, replace: bool = False) -> None:
        """The old name of `fill_norms`; with ``replace`` of `unit_normalize_all`."""
        warnings.warn("use fill_norms", DeprecationWarning, stacklevel=2)
        self.fill_norms()
        if replace:
            self.unit_normalize_all()

    vocab = _gone("vocab", "key_to_index, index_to_key and get_vecattr")
    index2word = _gone("index2word", "index_to_key")
    index2entity = _gone("index2entity", "index_to_key")
    vectors_norm = _gone("vectors_norm", "get_normed_vectors()")

    # What a table that never changes can't do

    def unit_normalize_all(self) -> NoReturn:
        """Not supported: vectors do not change. Cosines would be the same."""
        raise UnsupportedError(
            "vectors can't be normalised in place: a table that is searched never changes. Cosines are the same without; for "
            "normalised vectors make KeyedVectors.from_vectors(kv.index_to_key, kv.get_normed_vectors())"
        )

    def set_vecattr(self, key: Any, attr: str, val: Any) -> NoReturn:
        """Not supported: keep attributes in an array of your own, by ``key_to_index``."""
        raise UnsupportedError(
            "attributes can't be set: keep them in an array of your own, by key_to_index; counts come from `fvocab`"
        )

    def allocate_vecattrs(self, attrs: Any = None, types: Any = None) -> NoReturn:
        """Not supported, as `set_vecattr`."""
        raise UnsupportedError("attributes can't be allocated: keep them in an array of your own, by key_to_index")

    def resize_vectors(self, seed: int = 0) -> NoReturn:
        """Not supported: it prepares training, which is gensim's."""
        raise UnsupportedError(f"vectors can't be resized: {_MAKE_ANOTHER}; to train a model use gensim")

    def intersect_word2vec_format(self, fname: Any, *args: Any, **kwargs: Any) -> NoReturn:
        """Not supported: it prepares training, which is gensim's."""
        raise UnsupportedError(f"vectors of a file can't be merged in: {_MAKE_ANOTHER}; to train on use gensim")

    def sort_by_descending_frequency(self) -> NoReturn:
        """Not supported: rows do not move. Files are best first already."""
        raise UnsupportedError(f"rows can't be sorted in place: {_MAKE_ANOTHER}")
