"""Every committed transaction, in commit order."""

from __future__ import annotations

import select
import struct
import time
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg import pq
from psycopg.conninfo import make_conninfo
from psycopg.pq.abc import PGconn

from .._batch import UNCHANGED, Batch, Row, most_bytes
from .._errors import BadRow, FollowError
from .._progress import Lag
from .._target import Target, say
from . import _protocol as protocol
from ._protocol import as_lsn, lsn
from ._setup import Columns, Source, connect, digest

# A table with partitions stores which they are, under this name: rows of one that is attached or detached are in no change.
PARTITIONS = "postgres/partitions"
# Transactions that are there together are committed together, up to this many rows.
TOGETHER = 2000
# The server hears that often how far the table is, in seconds.
REPORT_EVERY = 0.2
# The table stores its position without rows when the server has kept so much WAL for nothing, in bytes.
STORE_AFTER = 16 << 20
STORE_EVERY = 10.0
# The service hears that often, in seconds.
TELL_EVERY = 1.0
# The server's clock begins in 2000: seconds since 1970.
EPOCH_2000 = 946_684_800


def replication_connection(conninfo: str) -> PGconn:
    """A connection for the replication protocol."""
    options = make_conninfo(conninfo, replication="database", application_name="kindred follow", connect_timeout="10")
    connection = pq.PGconn.connect(options.encode())
    if connection.status != pq.ConnStatus.OK:
        raise psycopg.OperationalError(connection.error_message.decode().strip())
    return connection


class Stream:
    """The transactions behind a position, applied to the table."""

    def __init__(
        self, source: Source, columns: Columns, target: Target, dim: int, start: int, partitions: frozenset[int],
        on_bad: Callable[[BadRow], None] | None,
    ) -> None:  # fmt: skip
        self.source, self.columns, self.target, self.dim, self.on_bad = source, columns, target, dim, on_bad
        self.stored = start
        self.reached = start
        self.lag = Lag()
        self.lag.reach(start)
        self.batch = Batch(most_bytes(dim))
        # Of the last transaction that is whole in the batch.
        self.end: int | None = None
        self.in_transaction = False
        self.skips = False
        self.is_in_parts = False
        # Of each table or partition, where it has the followed columns.
        self.places: dict[int, list[int]] = {}
        self.partitions = partitions
        self.together = TOGETHER
        self._told_at = self._reported_at = self._stored_at = 0.0
        self._retained = 0

    def one_by_one(self) -> Stream:
        """The same from the stored position on, with a batch for each transaction."""
        stream = Stream(self.source, self.columns, self.target, self.dim, self.stored, self.partitions, self.on_bad)
        stream.together = 0
        return stream

    def run(self, should_stop: Callable[[], bool], until_caught_up: bool, caught_up: Callable[[], None]) -> None:
        """Follows until it is stopped, has what there was at the beginning if that is enough, or the connection is lost. Tells when it
        has."""
        wanted = self.source.wanted
        self.connection = replication_connection(wanted.conninfo)
        try:
            with connect(wanted.conninfo) as self.queries:
                self._start()
                self._look()
                goal: int | None = self.lag.reached + self.lag.behind
                while not should_stop():
                    self._receive()
                    self._tick()
                    if goal is not None and self.reached >= goal and self.end is None and not self.in_transaction:
                        self._tell()
                        caught_up()
                        goal = None
                        if until_caught_up:
                            break
                self._finish()
        finally:
            self.connection.finish()

    def _start(self) -> None:
        wanted = self.source.wanted
        command = (
            f'START_REPLICATION SLOT "{wanted.slot}" LOGICAL {as_lsn(self.stored)} (proto_version \'1\','
            f" publication_names '\"{wanted.publication}\"', binary 'true')"
        )
        for attempt in range(50):
            started = self.connection.exec_(command.encode())
            if started.status == pq.ExecStatus.COPY_BOTH:
                return
            message = started.error_message.decode().strip()
            # The server may not have noticed yet that the connection before has ended.
            if "is active for" not in message or attempt == 49:
                self._fail(message)
            time.sleep(0.1)

    def _finish(self) -> None:
        """Commits what is whole. The rest is sent again."""
        if self.end is not None and not self.in_transaction:
            self._flush()
        self._answer()

    def _fail(self, message: str) -> None:
        if "requested WAL segment" in message or "has been invalidated" in message or "can no longer get changes" in message:
            raise FollowError(lost_slot(self.source.wanted.slot))
        raise psycopg.OperationalError(message)

    # Receiving

    def _receive(self) -> None:
        """Takes what is there; if nothing is, commits what is whole and waits a little."""
        self.connection.consume_input()
        while True:
            length, data = self.connection.get_copy_data(1)
            if length > 0:
                self._take(bytes(data))
                if self.batch.is_full:
                    # At the end of a transaction this is not needed.
                    self._flush_part()
                    return
                if time.monotonic() - self._reported_at > REPORT_EVERY:
                    return
                continue
            if length < 0:
                result = self.connection.get_result()
                self._fail((result.error_message if result else self.connection.error_message).decode().strip() or "it ended")
            break
        if self.end is not None and not self.in_transaction:
            self._flush()
            return
        select.select([self.connection.socket], [], [], 0.05)

    def _take(self, data: bytes) -> None:
        kind = data[:1]
        if kind == b"w":
            message = protocol.read(data[25:])
            if message is None:
                return
            try:
                self._apply(message)
            except (FollowError, BadRow):
                # Transactions before this one are whole, and in the same batch as its beginning.
                if self.end is None:
                    raise
                raise OneByOne from None
        elif kind == b"k":
            end, _, wants_answer = struct.unpack_from("!QqB", data, 1)
            # Everything up to here was decoded, and sent before this.
            if not self.in_transaction and self.end is None:
                self.reached = max(self.reached, self.source.behind_header(end))
                self.lag.reach(self.reached)
            if wants_answer:
                self._answer()

    def _answer(self, wants_answer: bool = False) -> None:
        """Tells the server how far the table is, on disk."""
        now = int((time.time() - EPOCH_2000) * 1e6)
        message = b"r" + struct.pack("!QQQqB", self.stored, self.stored, self.stored, now, wants_answer)
        self.connection.put_copy_data(message)
        self.connection.flush()
        self._reported_at = time.monotonic()

    # Applying

    def _apply(self, message: protocol.Message) -> None:
        if isinstance(message, protocol.Begin):
            self.in_transaction, self.is_in_parts = True, False
            # It is in the table already. The server leaves such ones out; here it is certain.
            self.skips = message.commit < self.stored
        elif isinstance(message, protocol.Commit):
            self.in_transaction = False
            if not self.skips:
                self.end = self.source.behind_header(message.end)
                if self.is_in_parts:
                    say(f"the large transaction is complete at {as_lsn(message.end)}")
                    self._flush()
                elif len(self.batch) >= self.together:
                    self._flush()
        elif isinstance(message, protocol.Relation):
            self._relation(message)
        elif self.skips:
            pass
        elif isinstance(message, protocol.Truncate):
            # Of a table with partitions, all of them are told.
            if self.source.oid in message.oids or (self.partitions and self.partitions <= set(message.oids)):
                self.batch.truncate(self.target.keys())
                say("TRUNCATE: all rows are deleted")
            elif self.partitions & set(message.oids):
                raise PartitionsChanged("a partition was truncated")
        elif message.oid in self.places:
            self._change(message)

    def _relation(self, relation: protocol.Relation) -> None:
        wanted, types = self.source.wanted, self.columns.types
        if relation.oid != self.source.oid and not self._is_partition(relation.oid):
            return
        found = dict(relation.columns)
        for name, kind in types.items():
            if found.get(name) != kind:
                what = "is gone" if name not in found else "has another type"
                raise FollowError(
                    f"the schema of {wanted.table} was changed: the column {name} {what}. Everything before the change is in the "
                    "table. Begin anew with --resnapshot and columns that are there; attributes of another type need a new model"
                )
        names = [name for name, _ in relation.columns]
        self.places[relation.oid] = [names.index(name) for name in types]

    def _is_partition(self, oid: int) -> bool:
        if self.source.is_parted and oid not in self.partitions:
            self._look()
        return oid in self.partitions

    def _change(self, message: Any) -> None:
        places, columns = self.places[message.oid], self.columns
        if isinstance(message, protocol.Delete):
            self.batch.delete(columns.read_key(message.old[places[0]]))
            return
        new = [message.new[place] for place in places]
        old_key = None
        if isinstance(message, protocol.Update) and message.old is not None:
            old = message.old[places[0]]
            old_key = None if old is None or old is UNCHANGED else columns.read_key(old)
            # A large key that was not changed is left out.
            if new[0] is UNCHANGED:
                new[0] = old
            # A full identity repeats large values that were not changed.
            new = [
                message.old[place] if value is UNCHANGED and message.old[place] is not None else value
                for value, place in zip(new, places)
            ]
        key = columns.read_key(new[0])
        try:
            vector = UNCHANGED if new[1] is UNCHANGED else columns.read_vector(key, new[1], self.dim)
            attributes = {
                name: UNCHANGED if value is UNCHANGED else columns.read_attribute(key, name, value)
                for name, value in zip(columns.attributes, new[2:])
            }
        except BadRow as bad:
            if self.on_bad is None:
                raise
            self.on_bad(bad)
            self.batch.delete(key)
            if old_key is not None and old_key != key:
                self.batch.delete(old_key)
            return
        self.batch.put(key, Row(vector, attributes), old_key)

    # Committing

    def _flush(self) -> None:
        """Commits whole transactions, with the position behind them."""
        assert self.end is not None
        of_partitions = f",{PARTITIONS}:{digest(self.partitions)}" if self.source.is_parted else ""
        self._commit(self.batch, f"postgres:{as_lsn(self.end)}{of_partitions}")
        self.stored = self.end
        self.reached = max(self.reached, self.end)
        self.lag.reach(self.reached)
        self.batch, self.end = Batch(most_bytes(self.dim)), None
        self._stored_at = time.monotonic()

    def _flush_part(self) -> None:
        """The batch is full. Whole transactions are committed as such; a part of a large one is committed without a position, and
        seen before its end."""
        if self.end is not None and not self.in_transaction:
            self._flush()
            return
        if not self.is_in_parts:
            say(f"a large transaction, of more than {len(self.batch):,} rows: it is applied in parts, which are seen before its end")
        self.is_in_parts = True
        # Transactions before it are whole in this part; they are sent again if it ends here.
        self._commit(self.batch, None)
        self.batch, self.end = Batch(most_bytes(self.dim)), None

    def _commit(self, batch: Batch, source: str | None) -> None:
        batch.complete(self.target.fetch, self._bad)
        self.target.commit(batch, source, self.on_bad)

    def _bad(self, bad: BadRow) -> None:
        if self.on_bad is None:
            raise bad
        self.on_bad(bad)

    # Reporting

    def _tick(self) -> None:
        now = time.monotonic()
        if now - self._reported_at >= REPORT_EVERY:
            # The server answers how far it has decoded.
            self._answer(wants_answer=True)
        if now - self._told_at >= TELL_EVERY:
            self._told_at = now
            self._look()
            self._tell()
        is_idle = self.end is None and not self.in_transaction and not len(self.batch)
        if is_idle and self.reached - self.stored > STORE_AFTER and now - self._stored_at >= STORE_EVERY:
            self.end = self.reached
            self._flush()

    def _look(self) -> None:
        """Reads the end of the server's log, the bytes that it keeps for this slot, and the table's partitions."""
        row = self.queries.execute(
            "SELECT pg_current_wal_lsn()::text, pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint, wal_status"
            " FROM pg_replication_slots WHERE slot_name = %s",
            (self.source.wanted.slot,),
        ).fetchone()
        if row is None or row[2] == "lost":
            raise FollowError(lost_slot(self.source.wanted.slot))
        self.lag.saw(lsn(row[0]))
        self._retained = row[1]
        found = self.source.partitions(self.queries)
        if not found >= self.partitions:
            raise PartitionsChanged("a partition is gone")
        for new in found - self.partitions:
            if not self.source.is_empty(self.queries, new):
                raise PartitionsChanged("a partition with rows is new")
        self.partitions = found

    def _tell(self) -> None:
        report = {
            "name": "postgres", "position": as_lsn(self.reached), "behind": self.lag.behind, "retained": max(0, self._retained),
            "behind_seconds": round(self.lag.seconds, 3),
        }  # fmt: skip
        reports = [report]
        if self.source.is_parted:
            reports.append({**report, "name": PARTITIONS, "position": str(digest(self.partitions))})
        self.target.report(reports)


class OneByOne(Exception):
    """A transaction can't be applied: those before it are to be committed without it."""


class PartitionsChanged(Exception):
    """Rows came or went that no change tells of: all are copied again."""


def lost_slot(slot: str) -> str:
    """The message for a slot that is of no use any more."""
    return (
        f"the slot {slot} is lost: the server has removed WAL that the table does not have (max_slot_wal_keep_size). Copy all rows "
        "again with --resnapshot; the table answers meanwhile"
    )
