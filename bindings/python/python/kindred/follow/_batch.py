"""Changes of rows until they are committed together: the last state of each key."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ._errors import BadRow

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# One request has at most 65,536 rows, and as many keys to delete.
MOST_ROWS = 20_000
# A row beside its vector and its attributes' values, about.
BYTES_PER_ROW = 120


def most_bytes(dim: int) -> int:
    """About the size of a request that the service takes, with some to spare: docs/http.md."""
    return (3 << 20) + dim * (20 << 10)


def _size(value: Any) -> int:
    if isinstance(value, str):
        return len(value) + 20
    return sum(map(_size, value)) + 20 if isinstance(value, list) else 30


class _Unchanged:
    """The value of a column that an update has not changed, and that the source does not repeat."""


UNCHANGED = _Unchanged()


@dataclass
class Row:
    """A row with all its values, or with some that are unchanged."""

    vector: npt.NDArray[np.float32] | _Unchanged
    attributes: dict[str, Any]
    stored_as: str | None = None
    """The key under which the table has the unchanged values."""

    def is_whole(self) -> bool:
        """Whether nothing of it is unchanged."""
        return self.vector is not UNCHANGED and all(value is not UNCHANGED for value in self.attributes.values())

    def over(self, before: Row) -> Row:
        """The same row, with its unchanged values from an earlier one."""
        vector = before.vector if self.vector is UNCHANGED else self.vector
        kept = {
            name: before.attributes.get(name) if value is UNCHANGED else value for name, value in self.attributes.items()
        }
        return Row(vector, kept, before.stored_as)


class Batch:
    """Rows to put and keys to delete. Each key has one of the two, or none."""

    def __init__(self, most: int = 1 << 62) -> None:
        """`most`: its size from which on it is full, in bytes."""
        self._most = most
        self.puts: dict[str, Row] = {}
        self.deletes: dict[str, None] = {}
        self.bytes = 0
        self.vectors: npt.NDArray[np.float32] | None = None
        """Those of all rows to put, in their order, where they are one array."""

    def __len__(self) -> int:
        return len(self.puts) + len(self.deletes)

    @property
    def is_full(self) -> bool:
        """Whether it should be committed, if that is possible."""
        return len(self) >= MOST_ROWS or self.bytes >= self._most

    def put(self, key: str, row: Row, old_key: str | None = None) -> None:
        """A row is inserted, or takes the place of the one with its key; or of that with `old_key`, which is deleted."""
        if not row.is_whole():
            before = self.puts.get(key if old_key is None else old_key)
            row = row.over(before) if before is not None else Row(row.vector, row.attributes, old_key or key)
        if old_key is not None and old_key != key:
            self.delete(old_key)
        self.deletes.pop(key, None)
        self.puts[key] = row
        self.bytes += BYTES_PER_ROW + getattr(row.vector, "nbytes", 0) + sum(map(_size, row.attributes.values()))

    def delete(self, key: str) -> None:
        """A row is deleted, if it is there."""
        self.puts.pop(key, None)
        self.deletes[key] = None
        self.bytes += BYTES_PER_ROW

    def truncate(self, keys: Iterable[str]) -> None:
        """All rows are deleted: these, which the table has, and those of the batch."""
        self.puts.clear()
        self.deletes.update(dict.fromkeys(keys))
        self.bytes = BYTES_PER_ROW * len(self)

    def complete(self, fetch: Callable[[list[str]], dict[str, Row]], on_bad: Callable[[BadRow], None]) -> None:
        """Reads the unchanged values of rows from the table, which must be as it was when the batch began. Rows that the table
        does not have, because they were bad before, are bad again."""
        partial = {key: row for key, row in self.puts.items() if not row.is_whole()}
        if not partial:
            return
        stored = fetch(sorted({row.stored_as or key for key, row in partial.items()}))
        for key, row in partial.items():
            before = stored.get(row.stored_as or key)
            if before is None:
                self.delete(key)
                on_bad(BadRow(key, "an update left its vector as it was, and the table does not have it"))
            else:
                self.puts[key] = row.over(before)
