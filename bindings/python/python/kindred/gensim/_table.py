"""Keys and vectors that are still collected, and the views of keys that gensim has as a list and a dict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

import kindred

from .._errors import UnsupportedError

if TYPE_CHECKING:
    from ._lookup import Lookup


class Table:
    """Keys with their vectors, before an engine has them.

    Rows are appended to a buffer that doubles. A view that was given out never changes: replacing a vector copies the buffer first.
    """

    def __init__(self, dim: int, capacity: int = 0, dtype: Any = np.float32) -> None:
        dim, capacity = int(dim), int(capacity)
        if dim < 1 or capacity < 0:
            raise kindred.InvalidValueError(
                f"`vector_size` must be at least 1 and `count` at least 0, not {dim} and {capacity}", field="vector_size"
            )
        self.dim = dim
        self.keys: list[str] = []
        self.rows: dict[str, int] = {}
        self._dtype = np.dtype(dtype)
        if self._dtype not in (np.dtype(np.float32), np.dtype(np.float16)):
            raise UnsupportedError(
                f"Kindred stores float32, so vectors can't be kept as {self._dtype}: give numpy.float32, or numpy.float16 to round "
                "them further"
            )
        self._buffer = np.empty((capacity, dim), dtype=np.float32)

    @property
    def vectors(self) -> npt.NDArray[np.float32]:
        """float32 ``[rows, dim]``, a read-only view."""
        # Over a read-only memoryview, so that nobody can make the view writeable again.
        view: npt.NDArray[np.float32] = np.asarray(self._buffer.data.toreadonly())
        return view[: len(self.keys)]

    def append(self, key: str, vector: npt.NDArray[Any]) -> bool:
        """Appends a key; False, and nothing else, if it is there already."""
        if key in self.rows:
            return False
        _check_key(key)
        row = len(self.keys)
        if row == len(self._buffer):
            self._reserve(row + 1)
        self._buffer[row] = self._rounded(vector)
        self.rows[key] = row
        self.keys.append(key)
        return True

    def add(self, keys: Sequence[str], vectors: npt.NDArray[Any], replace: bool) -> None:
        """Appends keys with their vectors ``[n, dim]``. For a key that is there already the old vector stays, or is replaced."""
        if vectors.shape != (len(keys), self.dim):
            raise kindred.DimensionError(
                f"{len(keys)} keys need vectors of the shape [{len(keys)}, {self.dim}], but they have {list(vectors.shape)}",
                expected=self.dim,
            )
        for key in keys:
            _check_key(key)
        vectors = self._rounded(vectors)
        self._reserve(len(self.keys) + sum(key not in self.rows for key in keys))
        is_private = False
        for key, vector in zip(keys, vectors):
            if self.append(key, vector) or not replace:
                continue
            if not is_private:
                self._buffer = self._buffer.copy()
                is_private = True
            self._buffer[self.rows[key]] = vector

    def model(self, device: str) -> kindred.Model:
        """A model of the rows, without a copy: nobody can write to them from now on."""
        self._buffer.flags.writeable = False
        return kindred.from_array(self._buffer[: len(self.keys)], self.keys, name="KeyedVectors", device=device)

    def _rounded(self, numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
        # What is out of range becomes infinite, and the engine refuses it by name.
        with np.errstate(over="ignore"):
            return numbers.astype(self._dtype, copy=False)

    def _reserve(self, rows: int) -> None:
        if rows > len(self._buffer):
            grown = np.empty((max(rows, 2 * len(self._buffer)), self.dim), dtype=np.float32)
            grown[: len(self.keys)] = self._buffer[: len(self.keys)]
            self._buffer = grown


def _check_key(key: Any) -> None:
    if not isinstance(key, str):
        raise UnsupportedError(f"keys are strings in Kindred, not {type(key).__name__}: use str({key!r})")
    if not key or "\n" in key:
        raise kindred.InvalidValueError(f"a key must have a character and no line feed, which {key!r} does not", field="keys")


class IndexToKey(Sequence[str]):
    """The keys by their rows, as gensim's list: read-only, and without a copy of the words. ``list(keys)`` makes a list."""

    def __init__(self, owner: Lookup) -> None:
        self._owner = owner

    def __len__(self) -> int:
        return len(self._owner)

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> list[str]: ...
    def __getitem__(self, row: int | slice) -> str | list[str]:
        if isinstance(row, slice):
            return list(self._owner._keys()[row])
        return self._owner._keys()[int(row)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._owner._keys())

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self._owner._row(key) is not None

    def index(self, key: str, start: int = 0, stop: int | None = None) -> int:
        """The row of a key; ValueError if there is none."""
        row = self._owner._row(key)
        if row is None or row not in range(*slice(start, stop).indices(len(self))):
            raise ValueError(f"{key!r} is not there")
        return row

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (IndexToKey, list)):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self[:]) if len(self) <= 10 else f"[{', '.join(map(repr, self[:10]))}, ... {len(self)} keys]"


class KeyToIndex(Mapping[str, int]):
    """The rows of the keys, as gensim's dict: read-only, and without a copy of the words. ``dict(rows)`` makes a dict."""

    def __init__(self, owner: Lookup) -> None:
        self._owner = owner

    def __getitem__(self, key: str) -> int:
        row = self._owner._row(key) if isinstance(key, str) else None
        if row is None:
            raise KeyError(key)
        return row

    def __iter__(self) -> Iterator[str]:
        return iter(self._owner._keys())

    def __len__(self) -> int:
        return len(self._owner)

    def __repr__(self) -> str:
        shown = ", ".join(f"{key!r}: {row}" for row, key in enumerate(self._owner._keys()[:10]))
        return f"{{{shown}}}" if len(self) <= 10 else f"{{{shown}, ... {len(self)} keys}}"
