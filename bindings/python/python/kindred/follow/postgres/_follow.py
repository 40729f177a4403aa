"""From the first connection to the last: a snapshot if one is needed, then the stream; again, whenever the connection is lost."""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg

from .._batch import Batch
from .._errors import BadRow, FollowError
from .._target import LONGEST_PAUSE, Target, say
from . import _snapshot
from ._protocol import as_lsn, lsn
from ._setup import Columns, Source, Wanted, connect, default_publication, default_slot, digest, is_lost
from ._stream import PARTITIONS, OneByOne, PartitionsChanged, Stream, lost_slot

OnBad = Callable[[BadRow], None] | None


def follow(
    arguments: argparse.Namespace, target: Target, on_bad: OnBad, stopped: threading.Event, caught_up: Callable[[], None]
) -> None:
    """Follows until it is stopped. Tells whenever the table has everything that was there at a beginning."""
    slot = arguments.slot or default_slot(arguments.table, target.model, target.url)
    attributes = tuple(name.strip() for name in arguments.attributes.split(",") if name.strip())
    wanted = Wanted(
        arguments.source, arguments.table, arguments.key, arguments.vector, attributes, arguments.where, slot,
        arguments.publication or default_publication(slot),
    )  # fmt: skip
    source = Source(wanted)
    if arguments.drop_slot:
        with connect(wanted.conninfo) as connection:
            is_dropped = source.drop_slot(connection)
            source.drop_publication(connection)
        say(f"the slot {slot} is dropped" if is_dropped else f"there is no slot {slot}")
        return
    pause, resnapshot = 0.1, arguments.resnapshot
    stream: Stream | None = None
    while not stopped.is_set():
        begun = time.monotonic()
        try:
            if stream is None:
                stream = _begin(source, target, arguments, resnapshot, on_bad, stopped)
                resnapshot = False
                say(f"following {wanted.table} from {as_lsn(stream.stored)} on, slot {slot}")
            stream.run(stopped.is_set, arguments.until_caught_up, caught_up)
            if not stopped.is_set():
                say(f"the table has everything up to {as_lsn(stream.reached)}")
                return
        except OneByOne:
            assert stream is not None
            stream = stream.one_by_one()
            continue
        except PartitionsChanged as changed:
            say(f"{changed}: all rows are copied again, while the table answers")
            resnapshot = True
        except psycopg.Error as error:
            if not is_lost(error):
                raise FollowError(f"the database says: {_first_line(error)}") from None
            say(f"the database can't do it now; trying again: {_first_line(error)}")
        stream = None
        if time.monotonic() - begun > LONGEST_PAUSE:
            pause = 0.1
        stopped.wait(pause)
        pause = min(2 * pause, LONGEST_PAUSE)
    say("stopped; started again, it goes on here")


def _first_line(error: psycopg.Error) -> str:
    return str(error).strip().split("\n")[0]


def _begin(
    source: Source, target: Target, arguments: argparse.Namespace, resnapshot: bool, on_bad: OnBad, stopped: threading.Event
) -> Stream:
    """Checks everything, makes the table and takes a snapshot if there is none."""
    with connect(source.wanted.conninfo) as connection:
        columns = source.check(connection)
        dim, going_on, others = target.begin(lambda: _claim(source, connection, columns, target, resnapshot))
        if going_on is None:
            source.drop_slot(connection)
            source.drop_publication(connection)
            source.publish(connection)
            # It follows this table from now on.
            target.store(Batch(), dict.fromkeys(others, "-"))
            dim = dim or _make_table(source, connection, columns, target, arguments)
            going_on = _snapshot.take(source, columns, target, dim, on_bad, stopped.is_set)
    assert dim is not None
    start, partitions = going_on
    return Stream(source, columns, target, dim, start, partitions, on_bad)


def _claim(
    source: Source, connection: psycopg.Connection[Any], columns: Columns, target: Target, resnapshot: bool
) -> tuple[int | None, tuple[int, frozenset[int]] | None, list[str]]:
    """Reads what is stored, compares it with the database, and makes the table this follower's. Returns the number of components, if the
    table is there; the position and the partitions with which the stream goes on, None if all rows are to be copied; and the sources
    that these rows replace."""
    if not target.exists():
        return None, None, []
    wanted, sources = source.wanted, target.sources()
    dim = target.compare({name: kind for name, (kind, _) in columns.attributes.items()})[0]
    stored, of_partitions = (sources.get(name, {}).get("position") for name in ("postgres", PARTITIONS))
    if not (resnapshot or stored in (None, _snapshot.BEGUN)):
        assert stored is not None
        source.publish(connection)
        slot = source.slot(connection)
        if slot is not None and slot.is_active:
            raise psycopg.OperationalError(f"another follower has the slot {wanted.slot}, or it was just killed")
        start, partitions = lsn(stored), source.partitions(connection)
        # Before comparing: so the stored position, the slot and the partitions are of the same time.
        target.claim()
        if source.is_parted and of_partitions != str(digest(partitions)):
            raise PartitionsChanged("partitions were changed while nobody followed")
        if slot is None or slot.is_lost:
            raise FollowError(lost_slot(wanted.slot))
        if slot.confirmed > start:
            raise FollowError(
                f"the table is at {stored}, and the slot {wanted.slot} already at {as_lsn(slot.confirmed)}: the table was put back "
                "from an earlier copy, and what is between would be missing. Copy all rows again with --resnapshot"
            )
        return dim, (start, partitions), []
    if stored is None and not resnapshot and any(True for _ in target.keys()):
        raise FollowError(
            f"the table {target.model} has rows that no follower has put; --resnapshot replaces them by those of {wanted.table}"
        )
    # Whatever happens from here on, the snapshot is made.
    target.claim({"postgres": _snapshot.BEGUN})
    return dim, None, [name for name in sources if resnapshot and name not in ("postgres", PARTITIONS)]


def _make_table(
    source: Source, connection: psycopg.Connection[Any], columns: Columns, target: Target, arguments: argparse.Namespace
) -> int:
    """Makes the table. Returns the number of components."""
    dim: int | None = arguments.dim or source.dim(connection)
    if dim is None:
        raise FollowError(f"{source.wanted.table} has no row with a vector yet: give the number of components with --dim")
    target.create(dim, arguments.metric, {name: kind for name, (kind, _) in columns.attributes.items()})
    target.sources()
    return dim
