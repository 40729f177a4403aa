"""Messages of the replication stream and of ``pgoutput``, protocol version 1 with binary values."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from .._batch import UNCHANGED

# The letters before values. Of the fourth, `u`, there is no value: a large one that an update did not change is left out.
_NULL, _AS_TEXT, _BINARY = b"ntb"

U16, U32, U64 = struct.Struct("!H"), struct.Struct("!I"), struct.Struct("!Q")


class AsText(str):
    """A value in its text form, because its type has no binary one."""


Tuple = list[Any]
"""A row: for each column bytes, an `AsText`, None, or `UNCHANGED`."""


@dataclass(frozen=True)
class Begin:
    """A transaction begins, which was committed."""

    commit: int
    """The beginning of its commit in the log."""


@dataclass(frozen=True)
class Commit:
    """It ends. Those whose commits begin at `end` or behind it are the next ones."""

    end: int


@dataclass(frozen=True)
class Relation:
    """The columns of a table, before its first row and after each change of them."""

    oid: int
    name: str
    columns: tuple[tuple[str, int], ...]
    """Names and types."""


@dataclass(frozen=True)
class Insert:
    """A row is inserted."""

    oid: int
    new: Tuple


@dataclass(frozen=True)
class Update:
    """A row is changed. `old` is there if its identity was changed, or is the whole row."""

    oid: int
    old: Tuple | None
    new: Tuple


@dataclass(frozen=True)
class Delete:
    """A row is deleted; of `old` the columns of its identity are there."""

    oid: int
    old: Tuple


@dataclass(frozen=True)
class Truncate:
    """All rows of these tables are deleted."""

    oids: tuple[int, ...]


Message = Begin | Commit | Relation | Insert | Update | Delete | Truncate


def read(data: bytes) -> Message | None:
    """A message of pgoutput; None for those that say nothing about rows."""
    kind = data[:1]
    if kind == b"I":
        return Insert(U32.unpack_from(data, 1)[0], _tuple(data, 6)[0])
    if kind == b"U":
        oid, at, old = U32.unpack_from(data, 1)[0], 5, None
        if data[at : at + 1] in (b"K", b"O"):
            old, at = _tuple(data, at + 1)
        return Update(oid, old, _tuple(data, at + 1)[0])
    if kind == b"D":
        return Delete(U32.unpack_from(data, 1)[0], _tuple(data, 6)[0])
    if kind == b"B":
        return Begin(U64.unpack_from(data, 1)[0])
    if kind == b"C":
        return Commit(U64.unpack_from(data, 10)[0])
    if kind == b"R":
        return _relation(data)
    if kind == b"T":
        count = U32.unpack_from(data, 1)[0]
        return Truncate(struct.unpack_from(f"!{count}I", data, 6))
    return None


def _relation(data: bytes) -> Relation:
    oid, at = U32.unpack_from(data, 1)[0], 5
    schema, at = _name(data, at)
    name, at = _name(data, at)
    count, at = U16.unpack_from(data, at + 1)[0], at + 3
    columns = []
    for _ in range(count):
        column, at = _name(data, at + 1)
        columns.append((column, U32.unpack_from(data, at)[0]))
        at += 8
    return Relation(oid, f"{schema}.{name}", tuple(columns))


def _name(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(b"\0", at)
    return data[at:end].decode(), end + 1


def _tuple(data: bytes, at: int) -> tuple[Tuple, int]:
    count = U16.unpack_from(data, at)[0]
    at += 2
    values: Tuple = []
    for _ in range(count):
        kind = data[at]
        at += 1
        if kind in (_BINARY, _AS_TEXT):
            start = at + 4
            at = start + U32.unpack_from(data, at)[0]
            raw = data[start:at]
            values.append(raw if kind == _BINARY else AsText(raw.decode()))
        else:
            values.append(None if kind == _NULL else UNCHANGED)
    return values, at


def lsn(text: str) -> int:
    """The number of a position such as ``0/16B3748``."""
    high, low = text.split("/")
    return int(high, 16) << 32 | int(low, 16)


def as_lsn(number: int) -> str:
    """A position as PostgreSQL writes it."""
    return f"{number >> 32:X}/{number & 0xFFFFFFFF:X}"
