"""Looking up: keys, rows, vectors, norms and means of vectors."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

import kindred

from ._arithmetic import norm as norm_of
from ._arithmetic import norms, unit, units
from .._errors import UnsupportedError
from ._table import IndexToKey, KeyToIndex, Table

if TYPE_CHECKING:
    from typing_extensions import Self

# One for all: the first search of an object happens once.
_FREEZING = threading.Lock()


def is_key(key: object) -> bool:
    """Whether something is a key, or a row in its place."""
    return isinstance(key, (str, int, np.integer))


class Lookup:
    """Keys and vectors: a table that is collected until the first search, and a model from then on."""

    def __init__(
        self, vector_size: int | kindred.Model, count: int = 0, dtype: Any = np.float32, mapfile_path: Any = None, *,
        device: str = "auto",
    ) -> None:  # fmt: skip
        self._table: Table | None = None
        self._model: kindred.Model | None = None
        self._device = device
        self._norms: npt.NDArray[np.float64] | None = None
        self._attributes: dict[str, npt.NDArray[Any]] = {}
        self._makes_up_counts = isinstance(vector_size, kindred.Model)
        if isinstance(vector_size, kindred.Model):
            if vector_size.metric != "cosine":
                raise UnsupportedError(
                    "KeyedVectors ranks by cosine, and the model's metric is `dot`: ask the model itself, or make another with "
                    "kindred.from_array(model.vectors, list(model.words))"
                )
            self._model = vector_size
        else:
            self._table = Table(vector_size, count, dtype)

    @classmethod
    def from_vectors(cls, keys: Iterable[str], vectors: Any, *, device: str = "auto") -> Self:
        """Of keys and their vectors, floating-point ``[keys, dim]``.

        >>> import numpy
        >>> from kindred.gensim import KeyedVectors
        >>> kv = KeyedVectors.from_vectors(["right", "up", "steep"], numpy.array([[1, 0], [0, 1], [3.0, 4.0]]))
        >>> kv.most_similar("up", topn=1)
        [('steep', 0.8)]
        """
        return cls(kindred.from_array(np.asarray(vectors), list(keys), name=cls.__name__, device=device))

    @property
    def model(self) -> kindred.Model:
        """The model that searches. The first use makes it, and ends the adding of keys."""
        with _FREEZING:
            if self._model is None:
                assert self._table is not None
                self._model = self._table.model(self._device)
                self._table = None
            return self._model

    def _collected(self, what: str) -> Table:
        """The table, if it can still change."""
        table = self._table
        if table is None:
            raise UnsupportedError(
                f"{what} is not possible: a table that is searched never changes. Add before the first search, or make a new one: "
                "KeyedVectors.from_vectors(keys, vectors)"
            )
        return table

    # Keys and rows

    def _keys(self) -> Sequence[str]:
        table = self._table
        return self.model.words if table is None else table.keys

    def _row(self, key: str) -> int | None:
        table = self._table
        return self.model._model.row(key) if table is None else table.rows.get(key)

    def __len__(self) -> int:
        return len(self._keys())

    def __str__(self) -> str:
        return f"{type(self).__name__}<vector_size={self.vector_size}, {len(self)} keys>"

    __repr__ = __str__

    @property
    def vector_size(self) -> int:
        """Components of each vector."""
        table = self._table
        return self.model.dim if table is None else table.dim

    @property
    def index_to_key(self) -> IndexToKey:
        """The keys by their rows: a read-only sequence."""
        return IndexToKey(self)

    @property
    def key_to_index(self) -> KeyToIndex:
        """The rows of the keys: a read-only mapping."""
        return KeyToIndex(self)

    def get_index(self, key: Any, default: Any = None) -> Any:
        """The row of a key, or of a row itself; ``default`` if it is not None and there is no such key; else KeyError."""
        row = self._row(key) if isinstance(key, str) else None
        if row is not None:
            return row
        if isinstance(key, (int, np.integer)) and 0 <= key < len(self):
            return key
        if default is not None:
            return default
        raise self._missing(key)

    def has_index_for(self, key: Any) -> bool:
        """Whether there is such a key or row."""
        return bool(self.get_index(key, -1) >= 0)

    def __contains__(self, key: Any) -> bool:
        return self.has_index_for(key)

    def _missing(self, key: Any) -> kindred.UnknownWordError:
        if isinstance(key, str) and self._table is None:
            return self.model._unknown([key])
        return kindred.UnknownWordError(f"key {key!r} is not present", [(key, [])])

    # Vectors

    @property
    def vectors(self) -> npt.NDArray[np.float32]:
        """All vectors, float32 ``[rows, dim]``: a read-only view."""
        table = self._table
        return self.model.vectors if table is None else table.vectors

    def get_vector(self, key: Any, norm: bool = False) -> npt.NDArray[np.float32]:
        """The vector of a key or a row, float32 ``[dim]``, read-only; with ``norm`` divided by its norm."""
        vector = self._inferred(key)
        if vector is None:
            vector = self.vectors[self.get_index(key)]
        if norm:
            vector = units(vector[np.newaxis])[0]
            vector.flags.writeable = False
        found: npt.NDArray[np.float32] = vector
        return found

    def _inferred(self, key: Any) -> npt.NDArray[np.float32] | None:
        """The vector of a key that has no row, float32 ``[dim]``, read-only; None for other keys."""
        return None

    def __getitem__(self, key_or_keys: Any) -> npt.NDArray[np.float32]:
        """The vector of a key, ``[dim]``; the vectors of a list of keys, ``[keys, dim]``."""
        if is_key(key_or_keys):
            return self.get_vector(key_or_keys)
        inferred = [self._inferred(key) for key in key_or_keys]
        rows = [self.get_index(key) if vector is None else 0 for key, vector in zip(key_or_keys, inferred)]
        vectors: npt.NDArray[np.float32] = self.vectors[np.array(rows, dtype=np.int64)]
        for at, vector in enumerate(inferred):
            if vector is not None:
                vectors[at] = vector
        return vectors

    @property
    def norms(self) -> npt.NDArray[np.float64]:
        """The norm of each vector, float64 ``[rows]``."""
        if self._norms is None or len(self._norms) != len(self):
            self._norms = norms(self.vectors)
            self._norms.flags.writeable = False
        return self._norms

    def fill_norms(self, force: bool = False) -> None:
        """Computes `norms`, which otherwise their first use does."""
        if force:
            self._norms = None
        _ = self.norms

    def get_normed_vectors(self) -> npt.NDArray[np.float32]:
        """All vectors, each divided by its norm: a new array, float32 ``[rows, dim]``. A zero vector becomes NaN."""
        return units(self.vectors)

    def get_mean_vector(
        self, keys: Any, weights: Any = None, pre_normalize: bool = True, post_normalize: bool = False, ignore_missing: bool = True
    ) -> npt.NDArray[np.float32]:
        """The weighted mean of the vectors of keys, float32 ``[dim]``: computed in float64, rounded once.

        Args:
            keys: keys, rows or vectors ``[dim]``. Vectors are never normalised first.
            weights: a number for each.
            pre_normalize, post_normalize: whether the vectors of keys, and the mean, are divided by their norms.
            ignore_missing: whether unknown keys are left out, instead of a KeyError.

        >>> import kindred
        >>> from kindred.gensim import KeyedVectors
        >>> KeyedVectors(kindred.demo()).get_mean_vector(["frog", "toad"]).shape
        (100,)
        """
        mean = self._mean(keys, weights, pre_normalize, ignore_missing)
        return (unit(mean) if post_normalize else mean).astype(np.float32)

    def _mean(self, keys: Any, weights: Any, pre_normalize: bool, ignore_missing: bool) -> npt.NDArray[np.float64]:
        if len(keys) == 0:
            raise kindred.InvalidValueError("a mean needs at least one key or vector", field="keys")
        weights = np.ones(len(keys)) if weights is None else np.asarray(weights, dtype=np.float64)
        if weights.shape != (len(keys),):
            raise kindred.InvalidValueError(
                f"`weights` must be a number for each of the {len(keys)} keys, not {list(weights.shape)}", field="weights"
            )
        total, weight_of_all = np.zeros(self.vector_size), 0.0
        for key, weight in zip(keys, weights):
            if isinstance(key, np.ndarray):
                vector = self._checked(key)
            elif key in self:
                vector = self.get_vector(key).astype(np.float64)
                vector = vector / norm_of(vector) if pre_normalize else vector
            elif ignore_missing:
                continue
            else:
                raise self._missing(key)
            total += weight * vector
            weight_of_all += abs(float(weight))
        return total / weight_of_all if weight_of_all > 0 else total

    def _checked(self, vector: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """A caller's vector in float64."""
        if vector.shape != (self.vector_size,):
            raise kindred.DimensionError(
                f"a vector must have {self.vector_size} components, but it has the shape {list(vector.shape)}",
                expected=self.vector_size,
            )
        return vector.astype(np.float64)

    def get_vecattr(self, key: Any, attr: str) -> Any:
        """An attribute of a key. There is one: ``count``.

        Counts are those of ``fvocab``, if one was loaded. Without it, gensim makes up counts that descend with the row, and so does
        this. Keys that were added have none: KeyError.
        """
        row = self.get_index(key)
        if attr == "count" and self._makes_up_counts:
            return np.int64(len(self) - row)
        if attr not in self._attributes or row >= len(self._attributes[attr]):
            raise KeyError(attr)
        return self._attributes[attr][row]

    def vectors_for_all(self, keys: Iterable[Any], allow_inference: bool = True, copy_vecattrs: bool = False) -> Self:
        """A new object of those keys that are here, in their order, each once; with ``copy_vecattrs`` with their counts.

        Keys can be added to it until its first search. Those that have vectors but no rows, as with fastText, come with
        ``allow_inference``.
        """
        words = self._keys()
        wanted = [key for key in dict.fromkeys(keys) if key in self and (allow_inference or self._inferred(key) is None)]
        names = list(dict.fromkeys(words[self.get_index(key)] if self._inferred(key) is None else key for key in wanted))
        found = self._empty(len(names))
        table = found._collected("adding")
        rows = [self.get_index(name, -1) for name in names]
        at = np.array(rows, dtype=np.int64)
        table.add(names, self[names], replace=False)
        if not copy_vecattrs:
            found._attributes["count"] = np.arange(len(rows), 0, -1)
        elif self._makes_up_counts:
            found._attributes["count"] = np.where(at < 0, 0, np.int64(len(self)) - at)
        else:
            has_all = [name for name, values in self._attributes.items() if len(values) == len(self)]
            found._attributes = {name: np.where(at < 0, 0, self._attributes[name][at]) for name in has_all}
        return found

    def _empty(self, count: int) -> Self:
        """A table without keys, for vectors like these."""
        return type(self)(self.vector_size, count, device=self._device)
