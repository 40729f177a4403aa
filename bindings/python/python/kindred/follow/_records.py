"""JSON objects of messages and lines as rows of a table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from ._batch import Row
from ._errors import BadRow, FollowError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

TYPES = ("text", "list", "integer", "number", "boolean", "date-time", "stored")


def declared(listed: str) -> dict[str, str | None]:
    """Attributes of the command line, ``name,price=number``, with their types if they are given."""
    attributes: dict[str, str | None] = {}
    for one in filter(None, (part.strip() for part in listed.split(","))):
        name, _, kind = one.partition("=")
        if not name or (kind and kind not in TYPES):
            raise FollowError(f"--attributes {one}: it is NAME=TYPE, and the types are {', '.join(TYPES)}")
        attributes[name] = kind or None
    return attributes


class Fields:
    """The fields of an object that make a row."""

    def __init__(self, vector: str, attributes: Mapping[str, str]) -> None:
        """`attributes`: their types by names."""
        self.vector, self.attributes = vector, attributes

    def row(self, key: str, value: Mapping[str, Any], dim: int | None) -> Row:
        """The row of an object. The service checks the values of attributes."""
        vector = vector_of(key, self.vector, value.get(self.vector), dim)
        return Row(vector, {name: self._attribute(key, name, kind, value.get(name)) for name, kind in self.attributes.items()})

    @staticmethod
    def _attribute(key: str, name: str, kind: str, value: Any) -> Any:
        if kind == "stored" and value is not None and not isinstance(value, str):
            return json.dumps(value, ensure_ascii=False)
        # Half of a character from beyond U+FFFF would make the whole request unreadable.
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and not _is_text(text):
                raise BadRow(key, f"its field {name} has half of a surrogate pair")
        return value


def parse(raw: bytes | str) -> Any:
    """A value of JSON. An error is a `ValueError`, whose text goes on in a sentence."""
    try:
        return json.loads(raw, parse_constant=_refuse)
    except UnicodeDecodeError:
        raise ValueError("it is no UTF-8") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is no JSON: {error.msg} at character {error.pos + 1}") from None
    except RecursionError:
        raise ValueError("its JSON is nested too deeply") from None


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON")


def key_of(value: Any) -> str:
    """The key of a row: a text or a whole number. An error is a `ValueError`."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str) and _is_text(value):
        return value
    raise ValueError(f"its key is {_shown(value)}, and a key is a text or a whole number")


def vector_of(key: str, field: str, value: Any, dim: int | None) -> npt.NDArray[np.float32]:
    """The vector of a row, with finite components: each is the float32 nearest to the float64 nearest to its digits."""
    import numpy as np

    if value is None:
        raise BadRow(key, f"it has no vector in the field {field}")
    if not isinstance(value, list) or not value or not set(map(type, value)) <= {int, float}:
        raise BadRow(key, f"its vector in the field {field} is {_shown(value)} instead of a list of numbers")
    if dim is not None and len(value) != dim:
        raise BadRow(key, f"its vector has {len(value)} components instead of {dim}")
    try:
        with np.errstate(over="ignore"):
            vector = np.array(value, np.float64).astype(np.float32)
    except OverflowError:
        vector = np.array([np.inf], np.float32)
    if not np.isfinite(vector).all():
        raise BadRow(key, "a component of its vector is not a finite float32")
    return vector


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) < 50 else text[:50] + "…"
