"""The methods of both clients that are about tables: models whose rows change."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from .._types import Change, RowsPage, StoredRow
from . import _changes as changes
from ._settings import Settings
from ._wire import Question

T = TypeVar("T")
C = TypeVar("C", bound="Tables | AsyncTables")


class Tables:
    """Of `Client`."""

    _settings: Settings

    def _ask(self, question: Question[T]) -> T:
        raise NotImplementedError

    def create_model(
        self, name: str, dim: int, *, metric: str = "cosine", attributes: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Makes a table without rows in the service's folder of tables; the answer is as that of `model`.

        A client asks about it that is made with ``model=name``.

        Args:
            name: its name.
            dim: components of each vector.
            metric: ``cosine``, or ``dot`` for the dot product.
            attributes: types by names: ``text``, ``list``, ``integer``, ``number``, ``boolean``, ``date-time`` or ``stored``.
        """
        return self._ask(changes.create_model(name, dim, metric, attributes))

    def delete_model(self, name: str) -> None:
        """Deletes a table with all its rows."""
        self._ask(changes.delete_model(name))

    def put_rows(
        self, keys: Iterable[str], vectors: Any, *, attributes: Iterable[Mapping[str, Any] | None] | None = None,
        biases: Iterable[float] | None = None, delete: Iterable[str] = (), on_error: str = "refuse",
        durability: str = "synced", idempotency_key: str | None = None, if_position: Change | str | None = None,
        source_position: str | None = None, timeout: float | None = None,
    ) -> Change:  # fmt: skip
        """Inserts rows, and replaces those whose key the table has: all together, or none. Then they are on disk.

        Args:
            keys: a key for each row, which is its word in answers; at most 65,536.
            vectors: ``[n, dim]``. Arrays travel in binary, lists as JSON. A text instead of a vector is encoded by the service.
            attributes: for each row, its attributes by their names, or None.
            biases: under ``dot``, a number for each row that is added to its scores.
            delete: keys whose rows are deleted in the same batch. There may be no rows to put then.
            on_error: with ``skip``, bad rows are left out and named in the result, instead of a `BadRowsError`.
            durability: with ``none``, the answer does not wait for the disk.
            idempotency_key: a text that no other change has; the client makes one. A change that is sent again is done once.
            if_position: an earlier change, or its ``VERSION/POSITION``: if others have changed rows since, the change is refused
                with the code ``position_changed``.
            source_position: the position that the table reaches by this change of a system that it follows, ``NAME:POSITION``.
            timeout: seconds, instead of the client's.

        Raises:
            BadRowsError: it names each bad row.
        """
        return self._ask(
            changes.put_rows(
                keys, vectors, attributes, biases, delete, on_error, durability, idempotency_key, if_position,
                source_position, timeout,
            )  # fmt: skip
        )

    def delete_rows(
        self, keys: str | Iterable[str] | None = None, *, filter: str | None = None, durability: str = "synced",
        idempotency_key: str | None = None, if_position: Change | str | None = None, timeout: float | None = None,
    ) -> Change:  # fmt: skip
        """Deletes the rows of some keys, or all that meet a filter.

        By keys it is sent again as `put_rows` is. By a filter it is sent again only after status 429: other rows may meet it then.

        Args:
            keys: a key, or some. Those that the table does not have are counted as ``missing``.
            filter: instead of keys.
            durability, idempotency_key, if_position, timeout: as for `put_rows`.
        """
        return self._ask(changes.delete_rows(keys, filter, durability, idempotency_key, if_position, timeout))

    def get_row(self, key: str) -> StoredRow:
        """A row as it was put; `UnknownWordError` if the table has none with this key."""
        return self._ask(changes.get_row(key))

    def rows_page(
        self, *, filter: str | None = None, after: str | None = None, limit: int = 100, with_vectors: bool = True
    ) -> RowsPage:
        """Rows in their order, or those that meet a filter; at most 1000. ``after`` is the ``next`` of the page before."""
        return self._ask(changes.rows_page(filter, after, limit, with_vectors))

    def rows(
        self, *, filter: str | None = None, limit: int | None = None, with_vectors: bool = True
    ) -> Iterator[StoredRow]:
        """All rows in their order, or those that meet a filter, at most ``limit``. They are fetched in pages of one position."""
        pages = changes.Pages(filter, limit, with_vectors)
        while not pages.is_done:
            for row in pages.took(self._ask(pages.next())):
                yield row

    def sources(self) -> dict[str, Any]:
        """The systems that a table follows, such as PostgreSQL, and how far its rows have come there."""
        return self._ask(changes.sources())

    def report_sources(self, reports: list[dict[str, Any]]) -> dict[str, Any]:
        """Tells the service how far this program has followed other systems; each report has ``name``, ``position``, and ``behind``
        and ``behind_seconds``."""
        return self._ask(changes.report(reports))

    def fold(self, *, timeout: float | None = None) -> dict[str, Any]:
        """Folds the changes of a table into a new base: ``outcome`` is ``folded``, ``running`` or ``unchanged``."""
        return self._ask(changes.fold(timeout))

    def after(self: C, change: Change | str) -> C:
        """A client whose answers are about the rows after a change, or later ones, whatever service of several answers.

        ``change`` may also be a position of a system that the table follows, such as ``postgres:0/16B3748``.

        It shares the connections of this client, and lives as long. A service of one process needs none: there, every question that
        is asked after the answer to a change sees it.
        """
        same = object.__new__(type(self))
        same.__dict__.update(self.__dict__)
        same._settings = dataclasses.replace(self._settings, min_position=changes.position_of(change))
        return same


class AsyncTables:
    """Of `AsyncClient`."""

    _settings: Settings

    async def _ask(self, question: Question[T]) -> T:
        raise NotImplementedError

    async def create_model(
        self, name: str, dim: int, *, metric: str = "cosine", attributes: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """As `Client.create_model`."""
        return await self._ask(changes.create_model(name, dim, metric, attributes))

    async def delete_model(self, name: str) -> None:
        """As `Client.delete_model`."""
        await self._ask(changes.delete_model(name))

    async def put_rows(
        self, keys: Iterable[str], vectors: Any, *, attributes: Iterable[Mapping[str, Any] | None] | None = None,
        biases: Iterable[float] | None = None, delete: Iterable[str] = (), on_error: str = "refuse",
        durability: str = "synced", idempotency_key: str | None = None, if_position: Change | str | None = None,
        source_position: str | None = None, timeout: float | None = None,
    ) -> Change:  # fmt: skip
        """As `Client.put_rows`."""
        return await self._ask(
            changes.put_rows(
                keys, vectors, attributes, biases, delete, on_error, durability, idempotency_key, if_position,
                source_position, timeout,
            )  # fmt: skip
        )

    async def delete_rows(
        self, keys: str | Iterable[str] | None = None, *, filter: str | None = None, durability: str = "synced",
        idempotency_key: str | None = None, if_position: Change | str | None = None, timeout: float | None = None,
    ) -> Change:  # fmt: skip
        """As `Client.delete_rows`."""
        return await self._ask(changes.delete_rows(keys, filter, durability, idempotency_key, if_position, timeout))

    async def get_row(self, key: str) -> StoredRow:
        """As `Client.get_row`."""
        return await self._ask(changes.get_row(key))

    async def rows_page(
        self, *, filter: str | None = None, after: str | None = None, limit: int = 100, with_vectors: bool = True
    ) -> RowsPage:
        """As `Client.rows_page`."""
        return await self._ask(changes.rows_page(filter, after, limit, with_vectors))

    async def rows(
        self, *, filter: str | None = None, limit: int | None = None, with_vectors: bool = True
    ) -> AsyncIterator[StoredRow]:
        """As `Client.rows`, for ``async for``."""
        pages = changes.Pages(filter, limit, with_vectors)
        while not pages.is_done:
            for row in pages.took(await self._ask(pages.next())):
                yield row

    async def sources(self) -> dict[str, Any]:
        """As `Client.sources`."""
        return await self._ask(changes.sources())

    async def report_sources(self, reports: list[dict[str, Any]]) -> dict[str, Any]:
        """As `Client.report_sources`."""
        return await self._ask(changes.report(reports))

    async def fold(self, *, timeout: float | None = None) -> dict[str, Any]:
        """As `Client.fold`."""
        return await self._ask(changes.fold(timeout))

    def after(self: C, change: Change | str) -> C:
        """As `Client.after`."""
        same = object.__new__(type(self))
        same.__dict__.update(self.__dict__)
        same._settings = dataclasses.replace(self._settings, min_position=changes.position_of(change))
        return same
