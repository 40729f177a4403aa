"""Rows of tables as they are put and read, in process and by the clients."""

from __future__ import annotations

import json
import operator
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ._errors import BadRowsError, InvalidValueError, NotFiniteError
from ._types import BadRow, Change, StoredRow

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MOST_ROWS = 65_536


def rows_to_put(
    keys: Iterable[str], vectors: Any, attributes: Iterable[Mapping[str, Any] | None] | None, biases: Iterable[float] | None
) -> tuple[list[dict[str, Any]], npt.NDArray[np.float32] | None]:
    """Rows for JSON. Vectors that are an array are not in them, but beside them, ``[n, dim]``."""
    rows: list[dict[str, Any]] = [{"key": key} for key in keys_of(keys)]
    for name, values in (("attributes", attributes), ("bias", biases)):
        if values is None:
            continue
        listed = list(values)
        _check_count("biases" if name == "bias" else name, len(listed), len(rows))
        for row, value in zip(rows, listed):
            if value is not None:
                row[name] = dict(value) if name == "attributes" else float(value)  # type: ignore[arg-type]
    if isinstance(vectors, (list, tuple)) and not any(hasattr(vector, "dtype") for vector in vectors):
        _check_count("vectors", len(vectors), len(rows))
        for row, vector in zip(rows, vectors):
            row.update({"text": vector} if isinstance(vector, str) else {"vector": list(vector)})
        return rows, None
    from ._arrays import floats

    array = floats(vectors, "vectors", (2,))
    _check_count("vectors", len(array), len(rows))
    return rows, array


def keys_of(keys: Any) -> list[str]:
    """A list of keys."""
    expected = f"1 to {MOST_ROWS} texts"
    listed = None if isinstance(keys, (str, bytes)) or not hasattr(keys, "__iter__") else list(keys)
    if listed is None or not 1 <= len(listed) <= MOST_ROWS or not all(isinstance(key, str) for key in listed):
        raise InvalidValueError(f"`keys` must be {expected}", field="keys", expected=expected)
    return [str(key) for key in listed]


def _check_count(name: str, found: int, expected: int) -> None:
    if found != expected:
        message = f"`{name}` has the length {found}, but there are {expected} keys"
        raise InvalidValueError(message, field=name, expected=f"one for each of {expected} keys")


def one_of(name: str, value: Any, values: tuple[str, ...]) -> str:
    """A value that must be one of these."""
    if value not in values:
        expected = " or ".join(values)
        raise InvalidValueError(f"`{name}` must be {expected}", field=name, expected=expected)
    return str(value)


def _plain(value: Any) -> Any:
    """Numbers of NumPy and dates, for JSON."""
    for method in ("item", "isoformat"):
        if hasattr(value, method):
            return getattr(value, method)()
    raise InvalidValueError(f"a {type(value).__name__} has no form in JSON; convert it to a text or a number")


# Made once: `json.dumps` makes one for each row.
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_plain)


def to_json(value: Any) -> bytes:
    """A value as JSON."""
    try:
        return _ENCODER.encode(value).encode()
    except UnicodeEncodeError:
        raise InvalidValueError("a text has a lone surrogate, which is no character") from None
    except ValueError:
        if isinstance(value, dict) and "rows" in value:
            refuse(value["rows"])
        raise NotFiniteError("a number is NaN or infinite, which JSON can't have") from None


def to_json_lines(rows: list[dict[str, Any]]) -> str:
    """Each row as a line of JSON."""
    # One list is encoded three times as fast as its rows one by one. Between them stands what is in none.
    between = os.urandom(16).hex()
    listed: list[Any] = [between] * max(2 * len(rows) - 1, 0)
    listed[::2] = rows
    try:
        text = to_json(listed).decode()
    except NotFiniteError:
        refuse(rows)
        raise
    return text[1:-1].replace(f', "{between}", ', "\n")


def refuse(rows: list[dict[str, Any]]) -> None:
    """BadRowsError for rows that can't be written as JSON, as a service says it."""
    bad = []
    for index, row in enumerate(rows):
        try:
            json.dumps(row, allow_nan=False, default=_plain)
        except ValueError:
            bad.append((index, row["key"], "it has a number that is NaN or infinite"))
    if bad:
        count = "1 row is" if len(bad) == 1 else f"{len(bad)} rows are"
        first = f'row {bad[0][0]} ("{bad[0][1]}"): {bad[0][2]}'
        raise BadRowsError(f"{count} bad, so nothing was changed: {first}", bad)


def change_of(
    model: str, at: tuple[str, int], counts: tuple[int, int, int, int], outcome: tuple[bool, bool],
    skipped: Iterable[tuple[int, str, str]],
) -> Change:  # fmt: skip
    """The effect of a change: of which table, its version and position, its counts, whether it is on disk and whether it was made
    before, and the bad rows that were left out."""
    return Change(model, *at, *counts, *outcome, [BadRow(*row) for row in skipped])


def stored_row(row: Mapping[str, Any], vector: npt.NDArray[np.float32] | None, bias: float | None) -> StoredRow:
    """A row as it was put, of its JSON."""
    if vector is not None:
        vector.flags.writeable = False
    return StoredRow(row["key"], row["row"], vector, None if bias is None else float(bias), dict(row.get("attributes", {})))


def limit_of(limit: int | None) -> int | None:
    """The most rows that are listed, if there is a limit."""
    if limit is None:
        return None
    most = whole(limit, (0, 2**63))
    if most is None:
        raise InvalidValueError("`limit` must be a whole number, at least 0", field="limit")
    return most


def whole(value: Any, bounds: tuple[int, int]) -> int | None:
    """A whole number within bounds, both included."""
    # True is no number here.
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        return None
    number = operator.index(value)
    return number if bounds[0] <= number <= bounds[1] else None
