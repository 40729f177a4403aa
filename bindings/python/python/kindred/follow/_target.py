"""The table of a service that follows: commits batches, each exactly once."""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from .._errors import (
    BadRowsError,
    DeadlineError,
    KindredError,
    OverloadedError,
    ServiceError,
    UnavailableError,
    UnreachableError,
)
from .._types import Change
from ..client import Client
from ._batch import Batch, Row
from ._errors import BadRow, BadRows, FollowError, Overtaken, Stopped

T = TypeVar("T")

LONGEST_PAUSE = 5.0
# Beginnings, while others change the table.
ATTEMPTS = 20
# Statuses that pass: an engine that failed, a full disk.
TRIED_AGAIN = (502, 503, 504, 507)
# Positions in the header of a change, in bytes: docs/settings.md, max_header_bytes.
MOST_HEADER = 12_000
# Keys of a filter that reads rows.
KEYS_AT_ONCE = 200


def say(text: str) -> None:
    """A line of the follower's log."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    print(f"\r\x1b[K{now} {text}" if sys.stderr.isatty() else f"{now} {text}", file=sys.stderr, flush=True)


class Target:
    """A table, which this program alone changes."""

    def __init__(self, url: str, model: str, api_key: str | None, should_stop: Callable[[], bool]) -> None:
        self.client = Client(url, model=model, api_key=api_key, retries=0, timeout=120.0)
        self.url, self.model, self.should_stop = url, model, should_stop
        self.version, self.position = "", 0
        self._lock = threading.Lock()

    # The table

    def exists(self) -> bool:
        """Whether the service has the table."""
        return any(model["name"] == self.model for model in self._patiently(self.client.models))

    def create(self, dim: int, metric: str, attributes: dict[str, str]) -> None:
        """Makes the table."""
        try:
            self._patiently(lambda: self.client.create_model(self.model, dim, metric=metric, attributes=attributes))
        except ServiceError as error:
            # One whose answer was lost made it: it was not there before.
            if error.code != "model_exists" or self.describe()["rows"]:
                raise
        say(f"made the table {self.model}: {dim} components, {_listed(attributes)}")

    def describe(self) -> dict[str, Any]:
        """Its shape."""
        return dict(self._patiently(self.client.model))

    def compare(self, wanted: Mapping[str, str | None]) -> tuple[int, dict[str, str]]:
        """Compares the table with the attributes that are wanted, each with its type if that is known. Returns the number of
        components, and the types of these attributes."""
        described = self.describe()
        if not described.get("writable"):
            raise FollowError(f"the rows of {self.model} can't be changed there: it is no table of the service's --models-dir")
        found = {attribute["name"]: attribute["type"] for attribute in described.get("attributes", ())}
        wrong = [name for name, kind in wanted.items() if name not in found or kind not in (None, found[name])]
        if wrong:
            listed = ", ".join(f"{name} ({wanted[name]})" if wanted[name] else name for name in wrong)
            raise FollowError(
                f"the table {self.model} has not the attribute {listed}; a table keeps those that it was made with: name a new one "
                "with --model"
            )
        return int(described["dim"]), {name: found[name] for name in wanted}

    def begin(self, attempt: Callable[[], T]) -> T:
        """The result of an attempt to begin: it reads what is stored, checks all of it, and claims the table. That is made again, if the
        table was changed in between."""
        for _ in range(ATTEMPTS - 1):
            try:
                return attempt()
            except Overtaken:
                say("the table was changed while this began, such as by a late request of a follower that was killed: beginning again")
        return attempt()

    def claim(self, positions: Mapping[str, object] | None = None) -> None:
        """Changes the table's position, and stores those of the sources. A request of another follower that comes from now on is for a
        position before, and refused, though it was sent earlier. Raises `Overtaken` if one came since `sources`."""
        # Forgetting a source that is not there is a change, too.
        self.store(Batch(), positions or {"none": "-"})
        # A snapshot has two requests on their way, the second for the position behind the first.
        self.store(Batch(), {"none": "-"})

    def sources(self) -> dict[str, dict[str, Any]]:
        """The sources by name. Changes are for this position from now on."""
        state = self._patiently(self.client.sources)
        self.version, self.position = state["version"], state["position"]
        return {source["name"]: source for source in state["sources"]}

    def keys(self) -> Iterator[str]:
        """All keys."""
        after: str | None = None
        while True:
            page = self._patiently(lambda: self.client.rows_page(after=after, limit=1000, with_vectors=False))
            yield from (row.key for row in page.rows)
            after = page.next
            if after is None:
                return

    def fetch(self, keys: list[str]) -> dict[str, Row]:
        """Rows by their keys; those that are not there are left out."""
        rows: dict[str, Row] = {}
        for first in range(0, len(keys), KEYS_AT_ONCE):
            some = ", ".join(json.dumps(key, ensure_ascii=False) for key in keys[first : first + KEYS_AT_ONCE])
            page = self._patiently(lambda: self.client.rows_page(filter=f"key IN [{some}]", limit=1000))
            for row in page.rows:
                assert row.vector is not None
                rows[row.key] = Row(row.vector, row.attributes)
        return rows

    # Changes

    def commit(self, batch: Batch, source: str | None, on_bad: Callable[[BadRow], None] | None) -> None:
        """Commits whole rows and deletes as one batch, with the position of the source that it reaches. Without `on_bad`, bad rows
        stop the follower."""
        self._commit(batch, source, on_bad, None)

    def commit_behind(self, previous: Future[None] | None, batch: Batch, on_bad: Callable[[BadRow], None] | None) -> None:
        """The same, while the batch before it may be on its way: the service reads this one while it writes that."""
        self._commit(batch, None, on_bad, previous)

    def _commit(
        self, batch: Batch, source: str | None, on_bad: Callable[[BadRow], None] | None, previous: Future[None] | None
    ) -> None:  # fmt: skip
        puts, deletes = dict(batch.puts), dict(batch.deletes)
        while puts or deletes or source:
            try:
                vectors = batch.vectors if len(puts) == len(batch.puts) else None
                at = self.position + (previous is not None and not previous.done())
                change = self._put(puts, deletes, source, vectors, at)
                with self._lock:
                    # That of the batch before may be told later.
                    self.position = max(self.position, change.position)
                return
            except BadRowsError as error:
                if on_bad is None:
                    raise BadRows([BadRow(row.key, row.reason) for row in error.rows]) from None
                for row in error.rows:
                    if puts.pop(row.key, None) is not None:
                        # The row that it was before is not the source's any more.
                        deletes[row.key] = None
                        on_bad(BadRow(row.key, row.reason))
                    else:
                        # No row can have such a key.
                        del deletes[row.key]
            except ServiceError as error:
                if error.code == "position_changed" and previous is not None:
                    # The batch before it was later, or came in parts.
                    previous.result()
                    previous = None
                    continue
                if error.code == "position_changed":
                    raise Overtaken(
                        f"somebody else changes the rows of {self.model}, or it was made anew: {error}. A table that follows is "
                        "changed by its follower alone: end the other one and start this one again, with --resnapshot if rows of others stay"
                    ) from None
                if error.code != "body_too_large":
                    raise
                if len(puts) <= 1:
                    raise FollowError(f"row {next(iter(puts), '')!r} is larger than a request may be: {error}") from None
                # Seldom: texts that take more bytes than they have characters.
                half = Batch()
                half.puts = {key: puts.pop(key) for key in list(puts)[: len(puts) // 2]}
                self._commit(half, None, on_bad, previous)
                previous = None

    def delete(self, keys: Iterable[str]) -> Batch:
        """Deletes rows, except for the last batch, which is returned: it is committed with a position."""
        last = Batch()
        for key in keys:
            if last.is_full:
                self.commit(last, None, None)
                last = Batch()
            last.delete(key)
        return last

    def store(self, batch: Batch, positions: Mapping[str, object], on_bad: Callable[[BadRow], None] | None = None) -> None:
        """Commits rows and deletes with the positions of many sources; ``-`` forgets one. More than a request's header can have are
        stored behind the rows: if it is stopped in between, the rows of the others come again."""
        listed = [f"{name}:{at}" for name, at in positions.items()]
        while True:
            some: list[str] = []
            while listed and sum(map(len, some)) + len(some) + len(listed[0]) < MOST_HEADER:
                some.append(listed.pop(0))
            self.commit(batch, ",".join(some) or None, on_bad)
            if not listed:
                return
            batch = Batch()

    def _put(
        self, puts: dict[str, Row], deletes: dict[str, None], source: str | None, together: Any, at: int
    ) -> Change:  # fmt: skip
        import numpy as np

        rows = list(puts.values())
        vectors: Any = together
        if together is None:
            vectors = np.stack([row.vector for row in rows]) if rows else []  # type: ignore[misc]
        attributes = [{name: value for name, value in row.attributes.items() if value is not None} for row in rows]
        # All attempts have it: the change is done once.
        key = os.urandom(16).hex()
        return self._patiently(
            lambda: self.client.put_rows(
                list(puts), vectors, attributes=attributes if rows else None, delete=list(deletes), idempotency_key=key,
                if_position=f"{self.version}/{at}", source_position=source,
            )
        )  # fmt: skip

    def report(self, reports: list[dict[str, Any]]) -> None:
        """Tells the service how far it is. That may fail: the next report comes soon."""
        try:
            self.client.report_sources(reports)
        except KindredError:
            pass

    def _patiently(self, ask: Callable[[], T]) -> T:
        """The answer to a question, whenever the service has one."""
        pause, is_told = 0.1, False
        while True:
            try:
                answer = ask()
            except KindredError as error:
                later = isinstance(error, (OverloadedError, UnavailableError, DeadlineError))
                later = later or (isinstance(error, UnreachableError) and error.is_passing)
                if not later and error.status not in TRIED_AGAIN:
                    raise
                # A failed attempt is a cycle of objects, which holds the rows that it sent.
                gc.collect()
                if not is_told:
                    say(f"the service can't do it now; trying again: {error}")
                    is_told = True
            else:
                if is_told:
                    say("the service does it again")
                return answer
            for _ in range(int(pause / 0.05)):
                if self.should_stop():
                    raise Stopped("stopped while the service did not answer; started again, it goes on")
                time.sleep(0.05)
            pause = min(2 * pause, LONGEST_PAUSE)


def _listed(attributes: dict[str, str]) -> str:
    names = ", ".join(f"{name} ({kind})" for name, kind in attributes.items())
    return f"attributes {names}" if names else "no attributes"
