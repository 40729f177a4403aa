"""Tables in process: models whose rows change."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ._errors import InvalidValueError, UnknownWordError
from ._questions import Questions
from ._rows import change_of, keys_of, limit_of, one_of, rows_to_put, stored_row, to_json_lines
from ._types import Change, StoredRow

if TYPE_CHECKING:
    from . import _kindred

# Rows that are copied together for those who iterate.
_TOGETHER = 1000


class Table(Questions):
    """A table of vectors whose rows change, with an engine: any number of threads can ask and change it at the same time.

    Make one by `kindred.create_table`, open one by `kindred.open_table`. A change is on disk, and seen by every question that is asked
    after it, when its method returns. One process at a time may change a table; others can read it as it is when they open it.

    >>> import kindred, tempfile
    >>> table = kindred.create_table(tempfile.mkdtemp() + "/products", 2, attributes={"price": "integer"})
    >>> change = table.put_rows(["mug", "cup", "sofa"], [[1, 2], [1, 3], [3, -1]], attributes=[{"price": 8}, {"price": 5}, None])
    >>> change.position, change.inserted
    (1, 3)
    >>> [neighbor.word for neighbor in table.nearest("mug", filter="price < 8")]
    ['cup']
    >>> table.delete_rows("cup").deleted
    1
    >>> len(table), "cup" in table
    (2, False)
    """

    def __init__(self, table: _kindred.Table, how: dict[str, Any]) -> None:
        self._table = table
        self._how = how
        self._model = table.start(how)

    @property
    def position(self) -> int:
        """The number of changes so far."""
        return self._table.position

    @property
    def attributes(self) -> dict[str, str]:
        """The types of the attributes by their names."""
        return dict(self._table.attributes)

    def __len__(self) -> int:
        return self._table.rows

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self._table.selection(None).place(key) is not None

    def __repr__(self) -> str:
        shape = f"{len(self)} x {self.dim}, {self.metric}"
        return f"<kindred.Table {self.name}: {shape}, position {self.position}, on {self._model.engine[0]}>"

    # Rows

    def put_rows(
        self, keys: Iterable[str], vectors: Any, *, attributes: Iterable[Mapping[str, Any] | None] | None = None,
        biases: Iterable[float] | None = None, on_error: str = "refuse", durability: str = "synced",
        idempotency_key: str | None = None,
    ) -> Change:  # fmt: skip
        """Inserts rows, and replaces those whose key the table has: all together, or none. Then they are on disk.

        Args:
            keys: a key for each row, which is its word in answers; at most 65,536. Many rows in a call are faster than many calls;
                calls of several threads share the disk's time.
            vectors: ``[n, dim]``; or a list of texts, which the table's encoder makes vectors of.
            attributes: for each row, its attributes by their names, or None.
            biases: under ``dot``, a number for each row that is added to its scores.
            on_error: with ``skip``, bad rows are left out and named in the result, instead of a `BadRowsError`.
            durability: with ``none``, the call does not wait for the disk.
            idempotency_key: a text that no other change has: a change that is made again with it is done once.

        Raises:
            BadRowsError: it names each bad row.
            ModelError: the table was opened to be read, or the disk is full or has failed.
        """
        rows, array = rows_to_put(keys, vectors, attributes, biases)
        skips = one_of("on_error", on_error, ("refuse", "skip")) == "skip"
        how = (skips, _is_synced(durability), idempotency_key)
        lines = to_json_lines(rows).split("\n")
        return change_of(self.name, *self._table.put(lines, array, how))

    def delete_rows(
        self, keys: str | Iterable[str] | None = None, *, filter: str | None = None, durability: str = "synced",
        idempotency_key: str | None = None,
    ) -> Change:  # fmt: skip
        """Deletes the rows of some keys, or all that meet a filter.

        Args:
            keys: a key, or some. Those that the table does not have are counted as ``missing``.
            filter: instead of keys.
            durability, idempotency_key: as for `put_rows`; an ``idempotency_key`` only with keys.
        """
        if (keys is None) == (filter is None):
            raise InvalidValueError("delete_rows() needs exactly one of `keys` and `filter`")
        how = (False, _is_synced(durability), idempotency_key)
        if filter is None:
            listed = keys_of([keys] if isinstance(keys, str) else keys)
            return change_of(self.name, *self._table.delete_keys(listed, how))
        if idempotency_key is not None:
            message = "`idempotency_key` is for changes by keys: other rows may meet the filter when it is made again"
            raise InvalidValueError(message, field="idempotency_key")
        return change_of(self.name, *self._table.delete_filter(filter, how))

    def get_row(self, key: str) -> StoredRow:
        """A row as it was put; `UnknownWordError` if the table has none with this key."""
        now = self._table.selection(None)
        place = now.place(key)
        if place is None:
            raise UnknownWordError(f"the table has no row with the key `{key}`", [(key, [])])
        return next(iter(_page(now, place, 1, True)[0]))

    def rows(
        self, *, filter: str | None = None, limit: int | None = None, with_vectors: bool = True
    ) -> Iterator[StoredRow]:
        """All rows in their order, or those that meet a filter, at most ``limit``: as they are at the time of the call, whatever is changed
        meanwhile."""
        return _pages(self._table.selection(filter), limit_of(limit), with_vectors)

    def fold(self, *, progress: Callable[[str, int, int], object] | None = None) -> dict[str, Any]:
        """Folds the changes into a new base, so that searches are as fast as those of a table that never changed: ``outcome`` is
        ``folded`` or ``unchanged``. Questions and changes of other threads go on. It needs room for a second base on the disk and for a
        second engine in memory.

        Args:
            progress: called several times a second with the step, the rows that are done and their number.
        """
        if not self._table.fold(progress):
            return {"outcome": "unchanged"}
        # Questions that are under way keep the engine of the old base until they are answered.
        self._model = self._table.start(self._how)
        return {"outcome": "folded"}

    # Housekeeping

    def close(self) -> None:
        """Ends the engine now, unless calls are under way, and lets other processes change the table. It can't be used afterwards."""
        self.__dict__.pop("_model", None)
        self.__dict__.pop("_table", None)

    def __enter__(self) -> Table:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        if name in ("_model", "_table"):
            raise ValueError("the table is closed")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __reduce__(self) -> Any:
        raise TypeError("a table is open in one process; open it in the other by kindred.open_table(path, read_only=True)")


def _is_synced(durability: str) -> bool:
    return one_of("durability", durability, ("synced", "none")) == "synced"


def _page(now: _kindred.Selection, place: int, limit: int, with_vectors: bool) -> tuple[list[StoredRow], int | None]:
    lines, vectors, biases, next_place = now.page(place, limit, with_vectors)
    rows = []
    for index, line in enumerate(lines):
        # A copy, so that a row that somebody keeps does not keep the others of its page.
        vector = None if vectors is None else vectors[index].copy()
        rows.append(stored_row(json.loads(line), vector, None if biases is None else biases[index]))
    return rows, next_place


def _pages(now: _kindred.Selection, left: int | None, with_vectors: bool) -> Iterator[StoredRow]:
    place: int | None = 0
    while place is not None and left != 0:
        rows, place = _page(now, place, _TOGETHER if left is None else min(_TOGETHER, left), with_vectors)
        left = None if left is None else left - len(rows)
        yield from rows
