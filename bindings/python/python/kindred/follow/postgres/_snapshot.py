"""The rows of the table at the moment at which the slot begins."""

from __future__ import annotations

import gc
import select
import struct
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, Any, Optional

import psycopg
from psycopg import pq, sql
from psycopg.pq.abc import PGconn

from .._batch import BYTES_PER_ROW, MOST_ROWS, Batch, Row, most_bytes
from .._errors import BadRow, FollowError, Stopped
from .._progress import Bar
from .._target import Target, say
from ._protocol import as_lsn, lsn
from ._setup import Columns, Source, connect, digest
from ._stream import PARTITIONS, replication_connection
from ._values import vectors_together

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# Of a row, in the order of the query's columns: the key, the vector, and then attributes.
Values = Sequence[Optional[bytes]]

INT2, INT4 = struct.Struct("!h"), struct.Struct("!i")
SIGNATURE = b"PGCOPY\n\xff\r\n\0"

# Batches that are committed at the same time: the service reads one while it writes another.
AT_ONCE = 2
# The client's requests are cycles of objects, which hold the rows that they sent until they are collected: after this many batches.
COLLECTED = 8
# Forms of rows that are remembered: texts have many lengths.
MOST_FORMS = 4096
# Stored while a snapshot is made: nothing of the source is reached yet, and an interrupted one begins anew.
BEGUN = "0/0"


def take(
    source: Source, columns: Columns, target: Target, dim: int, on_bad: Callable[[BadRow], None] | None,
    should_stop: Callable[[], bool],
) -> tuple[int, frozenset[int]]:  # fmt: skip
    """Makes the slot, and puts all rows into the table; those that are there and not in the source are deleted. Returns the
    position at which the stream goes on, and the table's partitions then."""
    replication = replication_connection(source.wanted.conninfo)
    try:
        start, snapshot = _make_slot(replication, source.wanted.slot)
        target.commit(Batch(), f"postgres:{BEGUN}", None)
        before = set(target.keys())
        with closing(connect(source.wanted.conninfo)) as connection:
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            try:
                connection.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(sql.Literal(snapshot)))
            except psycopg.Error as error:
                # The server was started anew since it made the slot.
                raise psycopg.OperationalError(f"the slot's snapshot is gone: {error}") from None
            partitions = source.partitions(connection)
            # Rows are many objects without cycles. Python would spend a tenth of the time looking for cycles, so `_copy` collects them now
            # and then. A thread that sends rows waits for its turn after each piece: with Python's default, five times as long.
            interval = sys.getswitchinterval()
            gc.freeze()
            gc.disable()
            sys.setswitchinterval(0.001)
            try:
                count = _copy(source, columns, connection, target, dim, before, on_bad, should_stop)
            finally:
                gc.enable()
                gc.unfreeze()
                sys.setswitchinterval(interval)
    finally:
        # Until then the server keeps the snapshot.
        replication.finish()
    # The last batch makes it complete, so it is the one that tells how far the table is.
    last = target.delete(before)
    of_partitions = f",{PARTITIONS}:{digest(partitions)}" if source.is_parted else ""
    target.commit(last, f"postgres:{start}{of_partitions}", None)
    more = f", {len(before):,} others deleted" if before else ""
    say(f"the snapshot is complete at {as_lsn(lsn(start))}: {count:,} rows{more}")
    return lsn(start), partitions


def _make_slot(replication: PGconn, slot: str) -> tuple[str, str]:
    """Makes a slot. Returns the position at which it begins, and the name of the snapshot of the rows then."""
    made = replication.exec_(f'CREATE_REPLICATION_SLOT "{slot}" LOGICAL pgoutput (SNAPSHOT \'export\')'.encode())
    if made.status != pq.ExecStatus.TUPLES_OK:
        message = made.error_message.decode().strip()
        if replication.status == pq.ConnStatus.BAD:
            # The server is gone, and comes again.
            raise psycopg.OperationalError(message)
        raise FollowError(f"the slot {slot} can't be made: {message}")
    start, snapshot = ((made.get_value(0, column) or b"").decode() for column in (1, 2))
    return start, snapshot


def _copy(
    source: Source, columns: Columns, connection: psycopg.Connection[Any], target: Target, dim: int, before: set[str],
    on_bad: Callable[[BadRow], None] | None, should_stop: Callable[[], bool],
) -> int:  # fmt: skip
    bar, count, batches = Bar("snapshot", source.estimate), 0, 0
    rows: list[Values] = []
    most, size = most_bytes(dim), 0
    # Names of attributes, and what numbers are longer as text; components of two bytes are sent as four.
    of_row = BYTES_PER_ROW + sum(len(name) + 25 for name in columns.attributes) + 2 * dim * (columns.vector_type == "halfvec")
    # Batches are committed while the next one is read.
    committed: deque[Future[None]] = deque()
    with ThreadPoolExecutor(AT_ONCE) as threads:

        def commit() -> None:
            batch = _batch(columns, rows, dim, on_bad)
            before.difference_update(batch.puts)
            if len(committed) == AT_ONCE:
                committed.popleft().result()
            previous = committed[-1] if committed else None
            committed.append(threads.submit(target.commit_behind, previous, batch, on_bad))
            nonlocal batches
            batches += 1
            if batches % COLLECTED == 0:
                gc.collect()

        for values, length in _rows(connection, source.copy()):
            rows.append(values)
            size += length + of_row
            if size >= most or len(rows) >= MOST_ROWS:
                commit()
                count += len(rows)
                rows, size = [], 0
                bar.at(count)
                if should_stop():
                    raise Stopped("stopped in the middle of the snapshot; it begins anew next time")
        if rows:
            commit()
            count += len(rows)
        for one in committed:
            one.result()
    return count


def _batch(columns: Columns, rows: list[Values], dim: int, on_bad: Callable[[BadRow], None] | None) -> Batch:
    """Rows of the table of these rows of the source."""
    batch, names = Batch(), list(columns.attributes)
    together = _together(columns, rows, dim)
    if together is not None:
        batch.puts, batch.vectors = together
        return batch
    for values in rows:
        key = columns.read_key(values[0])
        try:
            vector = columns.read_vector(key, values[1], dim)
            attributes = {name: columns.read_attribute(key, name, value) for name, value in zip(names, values[2:])}
        except BadRow as bad:
            if on_bad is None:
                raise
            on_bad(bad)
            continue
        batch.put(key, Row(vector, attributes))
    return batch


def _together(columns: Columns, rows: list[Values], dim: int) -> tuple[dict[str, Row], npt.NDArray[np.float32]] | None:
    """The same by columns, in a third of the time. None if a row is bad, or two have the same key."""
    raws = [values[1] for values in rows if values[1] is not None]
    vectors = vectors_together(columns.vector_type, raws, dim) if len(raws) == len(rows) else None
    if vectors is None:
        return None
    try:
        keys = [columns.read_key(values[0]) for values in rows]
        read = [
            [None if (value := values[place]) is None else decode(value) for values in rows]
            for place, (_, decode) in enumerate(columns.attributes.values(), 2)
        ]
    except (BadRow, ValueError):
        return None
    names = list(columns.attributes)
    attributes = [dict(zip(names, values)) for values in zip(*read)] if names else [{} for _ in rows]
    puts = {key: Row(vector, of_row) for key, vector, of_row in zip(keys, vectors, attributes)}
    return (puts, vectors) if len(puts) == len(rows) else None


def _rows(connection: psycopg.Connection[Any], query: sql.Composed) -> Iterator[tuple[Values, int]]:
    """Rows of a binary COPY, each with its size. A message has whole rows, and the head or the end beside them."""
    pgconn, is_first = connection.pgconn, True
    # Of a row alone in its message, by the message's size, its form: most rows of a size have the same one.
    forms: dict[int, tuple[struct.Struct, tuple[int, ...]]] = {}
    result = pgconn.exec_(query.as_bytes(connection))
    if result.status != pq.ExecStatus.COPY_OUT:
        raise psycopg.OperationalError(result.error_message.decode().strip())
    while True:
        length, message = pgconn.get_copy_data(1)
        if length == 0:
            select.select([pgconn.socket], [], [])
            pgconn.consume_input()
            continue
        if length < 0:
            ended = pgconn.get_result()
            if ended is None or ended.status != pq.ExecStatus.COMMAND_OK:
                raise psycopg.OperationalError((ended or pgconn).error_message.decode().strip())
            return
        data, at = bytes(message), 0
        form = forms.get(length)
        if form is not None:
            fields = form[0].unpack(data)
            # The number of values, and then each behind its length.
            if fields[0] == len(form[1]) and fields[1::2] == form[1]:
                yield fields[2::2], length
                continue
        if is_first:
            if not data.startswith(SIGNATURE):
                raise FollowError("the server's COPY has an unknown format")
            at = 19 + INT4.unpack_from(data, 15)[0]
            is_first = False
        while at < len(data):
            count = INT2.unpack_from(data, at)[0]
            at += 2
            if count < 0:
                # The end; the server has more to say.
                break
            begin, lengths = at - 2, []
            values: list[bytes | None] = []
            for _ in range(count):
                lengths.append(INT4.unpack_from(data, at)[0])
                at += 4
                end = at + max(lengths[-1], 0)
                values.append(None if lengths[-1] < 0 else data[at:end])
                at = end
            yield values, at - begin
            if begin == 0 and at == length and None not in values and len(forms) < MOST_FORMS:
                forms[length] = struct.Struct("!h" + "".join(f"i{one}s" for one in lengths)), tuple(lengths)
