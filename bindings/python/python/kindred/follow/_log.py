"""Follows a log of records, such as files of lines or the partitions of a topic: reads it from the stored positions on, and commits
what is there together, with the positions behind it.

Each file or partition is a source with a position of its own. One that is gone is forgotten; the rows that it made stay. Reading
everything again (``--resnapshot``) is marked in the table until it is complete, so that an interrupted one begins anew.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

from ._batch import Batch, Row, most_bytes
from ._errors import BadRow, BadRows, FollowError
from ._progress import Bar, Lag
from ._records import Fields, declared
from ._target import Target, say

OnBad = Callable[[BadRow], None] | None

# The service hears that often, in seconds.
TELL_EVERY = 1.0
# A table has at most 1,000 positions. Some of them are no source's.
MOST_SOURCES = 990


@dataclass(frozen=True)
class Record:
    """A line or a message."""

    source: str
    """The source that has it, such as ``kafka/items/0``."""
    end: int
    """The position behind it."""
    place: str
    """For messages: ``offset 17 of kafka/items/0``."""
    content: Any
    """As the log's `changes` takes it."""
    size: int
    """About its bytes."""
    time: float = 0.0
    """When it was written, in seconds since 1970, if that is known."""


class Log(Protocol):
    """Records of some sources, each in order."""

    prefix: str
    """Names of its sources begin so."""
    unit: str
    """Of positions: ``bytes`` or ``messages``."""

    def begin(self, positions: dict[str, int]) -> None:
        """Goes on at these positions, and at the start of sources that are not there."""

    def poll(self) -> list[Record]:
        """The next records; waits a moment if there are none."""
        ...

    def reached(self) -> dict[str, int]:
        """The positions behind everything that was polled; of sources that are new, too."""
        ...

    def ends(self) -> dict[str, int]:
        """The ends of the sources now, behind what can be read."""
        ...

    def marks(self, records: list[Record], is_all: bool, stored: dict[str, int]) -> dict[str, int]:
        """Positions of other kinds that are stored beside those of the sources, with these records behind the stored positions. They
        are all that were polled, or only the first of them."""
        ...

    def begins_anew(self, stored: dict[str, int]) -> str | None:
        """The reason for which everything is to be read again, if there is one."""
        ...

    def changes(self, content: Any, fields: Fields, dim: int | None) -> list[tuple[str, Row | None]]:
        """The rows of a record by their keys; None deletes one. Raises `BadRow`."""
        ...

    def close(self) -> None:
        """Ends its connections."""


class Follow:
    """A log, and the table that follows it."""

    def __init__(
        self, log: Log, target: Target, arguments: argparse.Namespace, on_bad: OnBad, stopped: threading.Event,
        caught_up: Callable[[], None],
    ) -> None:  # fmt: skip
        """`caught_up` is called when the table has everything that was there at the beginning."""
        self.log, self.target, self.arguments, self.on_bad, self.stopped = log, target, arguments, on_bad, stopped
        self.caught_up = caught_up
        self.fields = Fields(arguments.vector, {})
        self.dim: int | None = None
        self.copying = f"{log.prefix}copying"
        # Positions that the table has stored.
        self.stored: dict[str, int] = {}
        self.lags: dict[str, Lag] = {}
        # Of the table before everything is read again: those that no record had yet.
        self.before: set[str] | None = None
        self._told_at = 0.0
        self._counts = 0

    def run(self) -> None:
        """Follows until it is stopped, or has what was there at the beginning if that is enough."""
        try:
            self._begin()
            with ThreadPoolExecutor(1) as thread:
                self._follow(thread)
        finally:
            self.log.close()

    # Beginning

    def _begin(self) -> None:
        reason = self.target.begin(self._claim)
        if reason is not None:
            self.before = set(self.target.keys())
        self.log.begin({} if reason is not None else self.stored)
        if reason is None:
            say(f"following {self.log.prefix} from {'the stored positions' if self.stored else 'the start'} on")

    def _claim(self) -> str | None:
        """Reads what is stored, and makes the table this follower's. Returns the reason for which everything is read again."""
        target, log = self.target, self.log
        wanted = declared(self.arguments.attributes)
        is_there = target.exists()
        found = {name: source["position"] for name, source in (target.sources() if is_there else {}).items() if source["position"]}
        self.stored = {name: int(at) for name, at in found.items() if name.startswith(log.prefix)}
        if is_there:
            self.dim, kinds = target.compare(wanted)
            self.fields = Fields(self.arguments.vector, kinds)
        elif missing := [name for name, kind in wanted.items() if kind is None]:
            raise FollowError(
                f"the table {target.model} is not there yet: give the type of each attribute, such as --attributes {missing[0]}=text"
            )
        else:
            self.fields = Fields(self.arguments.vector, {name: kind for name, kind in wanted.items() if kind is not None})
            self.dim = self.arguments.dim
            if self.dim is not None:
                self._make_table(self.dim)
        reason = "--resnapshot" if self.arguments.resnapshot else "it was interrupted" if self.copying in self.stored else None
        if reason is None and self.stored:
            reason = log.begins_anew(self.stored)
        if reason is None and not self.stored and is_there:
            if any(True for _ in target.keys()):
                others = [name for name in found if not name.startswith(log.prefix)]
                follows = f", and follows {others[0]}" if others else ""
                raise FollowError(
                    f"the table {target.model} has rows that do not come from {log.prefix}{follows}; --resnapshot replaces them"
                )
        if reason is not None and is_there:
            say(f"reading everything again, while the table answers: {reason}")
            # Whatever happens from here on, all of it is read.
            target.claim({self.copying: 1, **{name: "-" for name in found if name != self.copying}})
            self.stored = {self.copying: 1}
        elif is_there:
            target.claim()
        return reason if is_there else None

    # Following

    def _follow(self, thread: ThreadPoolExecutor) -> None:
        ends = self.log.ends()
        begun = sum(self.log.reached().get(name, 0) for name in ends)
        bar = Bar("reading", sum(ends.values()) - begun, self.log.unit)
        records: list[Record] = []
        size, is_behind, has_all = 0, True, False
        # A batch is committed while the next one is read.
        committed: Future[None] = Future()
        committed.set_result(None)
        while not self.stopped.is_set():
            polled = self.log.poll()
            records += polled
            size += sum(record.size for record in polled)
            reached = self.log.reached()
            most = most_bytes(self.dim) if self.dim is not None else 1
            if records and (committed.done() or size >= most):
                committed.result()
                some, records, size = records, [], 0
                committed = thread.submit(self._commit, some, {**reached, **self.log.marks(some, True, self.stored)})
            if is_behind:
                bar.at(sum(reached.get(name, 0) for name in ends) - begun)
                # A source may be gone, or end in half a line.
                now = self.log.ends()
                is_behind = any(reached.get(name, 0) < min(end, now[name]) for name, end in ends.items() if name in now)
            if not has_all and not records and not is_behind:
                committed.result()
                self._complete(reached)
                self._tell(reached)
                has_all = True
                self.caught_up()
                if self.arguments.until_caught_up:
                    say(f"the table has everything: {self._counts:,} rows and deletions were read")
                    return
            if committed.done():
                # Errors are seen though nothing else comes.
                committed.result()
                self._tick(reached)
        committed.result()
        say("stopped; started again, it goes on here")

    def _commit(self, records: list[Record], positions: dict[str, int], is_all: bool = True) -> None:
        """Commits records, with the positions behind them. If one is bad, those before it, without."""
        target = self.target
        batch, owners = Batch(), {}
        for place, record in enumerate(records):
            try:
                changes = self.log.changes(record.content, self.fields, self.dim)
            except BadRow as bad:
                self._bad(bad, records, place, batch)
                continue
            for key, row in changes:
                if row is None:
                    batch.delete(key)
                else:
                    if not target.version:
                        self._make_table(len(row.vector))  # type: ignore[arg-type]
                    batch.put(key, row)
                owners[key] = place
            self._counts += len(changes)
        if self.before is not None:
            self.before.difference_update(batch.puts)
            self.before.difference_update(batch.deletes)
        if not target.version:
            # Deletions alone make no table.
            return
        try:
            self._store(batch, positions, is_all)
        except BadRows as error:
            first = min(error.rows, key=lambda row: owners[row.key])
            self._bad(first, records, owners[first.key], batch)

    def _store(self, batch: Batch, positions: dict[str, int], is_all: bool) -> None:
        """Commits a batch with the positions that changed. Sources that are not among all of them are forgotten."""
        forgotten = [name for name in self.stored if is_all and name not in positions and name != self.copying]
        moved = {name: at for name, at in positions.items() if self.stored.get(name) != at}
        self.target.store(batch, {**dict.fromkeys(forgotten, "-"), **moved}, self.on_bad)
        self.stored.update(moved)
        for name in forgotten:
            del self.stored[name]
            self.lags.pop(name, None)
            say(f"{name} is gone; its rows stay")

    def _bad(self, bad: BadRow, records: list[Record], place: int, batch: Batch) -> None:
        """Leaves out a bad record, or commits those before it and stops."""
        bad = BadRow(bad.key, f"{bad.reason} ({records[place].place})")
        if self.on_bad is not None:
            self.on_bad(bad)
            if bad.key:
                # The row that it was before is not the source's any more.
                batch.delete(bad.key)
            return
        before = records[:place]
        if before:
            positions = {record.source: record.end for record in before}
            self._commit(before, {**positions, **self.log.marks(before, False, self.stored)}, False)
        raise bad

    def _make_table(self, dim: int) -> None:
        self.dim = dim
        self.target.create(dim, self.arguments.metric, dict(self.fields.attributes))
        self.target.sources()

    def _complete(self, reached: dict[str, int]) -> None:
        """Everything that was there is read."""
        if self.before is None:
            return
        gone = self.target.delete(self.before)
        # The last batch makes it complete.
        positions = {**reached, **self.log.marks([], True, self.stored)}
        self.target.store(gone, {**positions, self.copying: "-"})
        del self.stored[self.copying]
        say(f"everything is read again: {self._counts:,} rows and deletions, {len(self.before):,} others deleted")
        self.stored.update(positions)
        self.before = None

    # Reporting

    def _tick(self, reached: dict[str, int]) -> None:
        now = time.monotonic()
        if now - self._told_at < TELL_EVERY:
            return
        self._told_at = now
        self._tell(reached)
        if not self.target.version:
            return
        marks = self.log.marks([], True, self.stored)
        positions = {**reached, **marks}
        is_gone = any(name not in positions and name != self.copying for name in self.stored)
        if is_gone or any(self.stored.get(name) != at for name, at in marks.items()):
            self._store(Batch(), positions, True)

    def _tell(self, reached: dict[str, int]) -> None:
        if not self.target.version:
            return
        # The others are told of, too: a service with `max_lag_seconds` waits for the reports on all that it has stored.
        reports: list[dict[str, Any]] = []
        ends = self.log.ends()
        for name, stored in list(self.stored.items()):
            lag = self.lags.setdefault(name, Lag())
            lag.saw(ends.get(name, 0))
            lag.reach(reached.get(name, 0))
            behind = {"behind": lag.behind, "behind_seconds": round(lag.seconds, 3)}
            reports.append({"name": name, "position": str(reached.get(name, stored)), **behind})
        if reports:
            self.target.report(reports)
