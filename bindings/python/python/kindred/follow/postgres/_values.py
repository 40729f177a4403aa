"""Values of columns in PostgreSQL's binary forms (the types' ``send`` functions), as keys, vectors and attributes."""

from __future__ import annotations

import datetime
import struct
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

EPOCH = datetime.datetime(2000, 1, 1, tzinfo=datetime.timezone.utc)

BOOL, INT8, INT2, INT4, TEXT, OID, JSON = 16, 20, 21, 23, 25, 26, 114
FLOAT4, FLOAT8, BPCHAR, VARCHAR, NAME = 700, 701, 1042, 1043, 19
DATE, TIMESTAMP, TIMESTAMPTZ, NUMERIC, UUID, JSONB = 1082, 1114, 1184, 1700, 2950, 3802
FLOAT4S, FLOAT8S, TEXTS, VARCHARS = 1021, 1022, 1009, 1015

Decode = Callable[[bytes], Any]


@dataclass(frozen=True)
class Type:
    """A column's type, or the type below a domain: its number and its name, which is `enum` for all enumerations."""

    oid: int
    name: str

    def __str__(self) -> str:
        return self.name


def key_decoder(kind: Type) -> Decode | None:
    """A function from a key of this type to its text; None if the type can't be one of keys."""
    return {
        INT2: lambda raw: str(_INT2(raw)), INT4: lambda raw: str(_INT4(raw)), INT8: lambda raw: str(_INT8(raw)),
        UUID: lambda raw: str(uuid.UUID(bytes=raw)), TEXT: _text, VARCHAR: _text, BPCHAR: lambda raw: _text(raw).rstrip(" "),
        NAME: _text,
    }.get(kind.oid, _text if kind.name in ("citext", "enum") else None)  # fmt: skip


def attribute_decoder(kind: Type) -> tuple[str, Decode] | None:
    """The attribute's type in the table, and how a value becomes one of it; None if it can't be one."""
    known: dict[int, tuple[str, Decode]] = {
        BOOL: ("boolean", lambda raw: raw != b"\0"),
        INT2: ("integer", _INT2), INT4: ("integer", _INT4), INT8: ("integer", _INT8), OID: ("integer", _UINT4),
        FLOAT4: ("number", _finite(_FLOAT4)), FLOAT8: ("number", _finite(_FLOAT8)), NUMERIC: ("number", _finite(_numeric)),
        TEXT: ("text", _text), VARCHAR: ("text", _text), BPCHAR: ("text", lambda raw: _text(raw).rstrip(" ")), NAME: ("text", _text),
        UUID: ("text", lambda raw: str(uuid.UUID(bytes=raw))), JSON: ("stored", _text), JSONB: ("stored", lambda raw: _text(raw[1:])),
        DATE: ("date-time", _date), TIMESTAMP: ("date-time", _timestamp), TIMESTAMPTZ: ("date-time", _timestamp),
        TEXTS: ("list", _texts), VARCHARS: ("list", _texts),
    }  # fmt: skip
    return known.get(kind.oid, ("text", _text) if kind.name in ("citext", "enum") else None)


def vector_decoder(kind: Type) -> Decode | None:
    """A function from a value of this type to its vector of float32; None if the type is none of vectors."""
    if kind.oid in (FLOAT4S, FLOAT8S):
        return _array_of_floats
    return {"vector": _pgvector, "halfvec": _halfvec}.get(kind.name)


def vectors_together(kind: str, raws: list[bytes], dim: int) -> npt.NDArray[np.float32] | None:
    """Vectors of one type and of `dim` components, ``[n, dim]``, which takes far less time than one after the other. None if they are
    not all finite ones of this form."""
    import numpy as np

    start, number = {"vector": (4, ">f4"), "halfvec": (4, ">f2"), "_float4": (20, ">f4"), "_float8": (20, ">f8")}[kind]
    element: Any = number if start == 4 else [("length", ">i4"), ("number", number)]
    form = np.dtype([("head", f"V{start}"), ("elements", element, (dim,))])
    head = struct.pack("!HH", dim, 0) if start == 4 else struct.pack("!iiIii", 1, 0, FLOAT4 if number == ">f4" else FLOAT8, dim, 1)
    if not all(len(raw) == form.itemsize and raw.startswith(head) for raw in raws):
        return None
    elements = np.frombuffer(b"".join(raws), form)["elements"]
    vectors = _float32(elements if start == 4 else elements["number"])
    return vectors if np.isfinite(vectors).all() else None


def vector_of_text(text: str) -> npt.NDArray[np.float32]:
    """A vector in its text form, ``[1,2]`` or ``{1,2}``: each number is the float32 that is nearest to it."""
    import numpy as np

    texts = text.strip("[]{} ").split(",")
    numbers = np.array(texts, np.float64)
    rounded = _float32(numbers)
    # Rounding to float64 first could put a number just on the middle between two; its own digits decide then.
    between = np.zeros(len(numbers), bool)
    for side in (np.inf, -np.inf):
        neighbor = np.nextafter(rounded, np.float32(side))
        between |= numbers == (rounded.astype(np.float64) + neighbor) / 2
    for place in np.flatnonzero(between & np.isfinite(rounded)):
        rounded[place] = _nearest(Fraction(texts[place].strip()), rounded[place])
    return rounded


def _nearest(number: Fraction, about: np.float32) -> np.float32:
    import numpy as np

    # If it is on the middle, the even one, which stands first.
    around = [about, np.nextafter(about, np.float32(-np.inf)), np.nextafter(about, np.float32(np.inf))]
    return min((one for one in around if np.isfinite(one)), key=lambda one: abs(Fraction(float(one)) - number))


def _reader(form: str) -> Decode:
    unpack = struct.Struct(form).unpack
    return lambda raw: unpack(raw)[0]


_INT2, _INT4, _INT8, _UINT4 = _reader("!h"), _reader("!i"), _reader("!q"), _reader("!I")
_FLOAT4, _FLOAT8 = _reader("!f"), _reader("!d")


def _text(raw: bytes) -> str:
    return raw.decode()


def _finite(read: Decode) -> Decode:
    def decode(raw: bytes) -> float:
        number = float(read(raw))
        if number - number != 0:
            raise ValueError(f"{number} is no number that an attribute can have")
        return number

    return decode


def _numeric(raw: bytes) -> float:
    """Digits to the base 10,000, the first times 10,000 to the power of `weight`."""
    count, weight, sign, _ = struct.unpack_from("!hhHh", raw)
    if sign >= 0xC000:
        return float({0xC000: "NaN", 0xD000: "Infinity"}.get(sign, "-Infinity"))
    number = 0
    for digit in struct.unpack_from(f"!{count}h", raw, 8):
        number = 10_000 * number + digit
    number = -number if sign == 0x4000 else number
    zeros = weight - count + 1
    try:
        # A division of whole numbers is rounded once.
        return float(number * 10_000**zeros if zeros >= 0 else number / 10_000**-zeros)
    except OverflowError:
        raise ValueError("it is larger than a float64 can be") from None


def _date(raw: bytes) -> str:
    days = _INT4(raw)
    if abs(days) >= 2**31 - 1:
        raise ValueError("an infinite date is no date-time")
    return _iso(days=days)


def _timestamp(raw: bytes) -> str:
    microseconds = _INT8(raw)
    if abs(microseconds) >= 2**63 - 1:
        raise ValueError("an infinite timestamp is no date-time")
    return _iso(microseconds=microseconds)


def _iso(**since: int) -> str:
    try:
        return (EPOCH + datetime.timedelta(**since)).isoformat().replace("+00:00", "Z")
    except OverflowError:
        raise ValueError("the year is not one from 1 to 9999") from None


def _array(raw: bytes) -> tuple[int, int, int]:
    """Of an array: its number of elements, the type of them, and where they begin."""
    dimensions, has_nulls, element = struct.unpack_from("!iiI", raw)
    if dimensions == 0:
        return 0, element, 12
    if dimensions != 1:
        raise ValueError(f"it is an array of {dimensions} dimensions; one is needed")
    if has_nulls:
        raise ValueError("an element is NULL")
    return struct.unpack_from("!i", raw, 12)[0], element, 20


def _array_of_floats(raw: bytes) -> npt.NDArray[np.float32]:
    import numpy as np

    count, element, start = _array(raw)
    number = ">f4" if element == FLOAT4 else ">f8"
    # Before each element stands its length.
    elements = np.frombuffer(raw, np.dtype([("length", ">i4"), ("number", number)]), count, start)
    return _float32(elements["number"])


def _float32(numbers: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    import numpy as np

    with np.errstate(over="ignore"):
        # Infinite ones are refused as such.
        return numbers.astype(np.float32)


def _pgvector(raw: bytes) -> npt.NDArray[np.float32]:
    import numpy as np

    return np.frombuffer(raw, ">f4", struct.unpack_from("!H", raw)[0], 4).astype(np.float32)


def _halfvec(raw: bytes) -> npt.NDArray[np.float32]:
    import numpy as np

    return np.frombuffer(raw, ">f2", struct.unpack_from("!H", raw)[0], 4).astype(np.float32)


def _texts(raw: bytes) -> list[str]:
    count, _, at = _array(raw)
    texts = []
    for _ in range(count):
        length = struct.unpack_from("!i", raw, at)[0]
        texts.append(raw[at + 4 : at + 4 + length].decode())
        at += 4 + length
    return texts
