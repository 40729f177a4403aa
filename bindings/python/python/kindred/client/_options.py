"""The options of questions on their way into a request: checked as a model in process does, and with its messages."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from .. import _kindred
from .._errors import InvalidValueError
from .._rows import whole


def _number(value: Any, _: None) -> float | None:
    if isinstance(value, (bool, str, bytes)) or not (hasattr(value, "__float__") or hasattr(value, "__index__")):
        return None
    number = float(value)
    return number if math.isfinite(number) else None


def _switch(value: Any, _: None) -> bool | None:
    is_switch = isinstance(value, bool) or type(value).__name__ in ("bool_", "bool")
    return bool(value) if is_switch else None


def _words(value: Any, most: int) -> list[str] | None:
    # A word alone is no list of its letters.
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        return None
    words = list(value)
    return words if len(words) <= most and all(isinstance(word, str) for word in words) else None


def _names(value: Any, most: int) -> bool | list[str] | None:
    is_all = _switch(value, None)
    return _words(value, most) if is_all is None else is_all


def _text(value: Any, _: None) -> str | None:
    return value if isinstance(value, str) else None


def _name(value: Any, names: list[str]) -> str | None:
    return value if isinstance(value, str) and value in names else None


# By the kinds of values in the declarations.
READERS: dict[str, Callable[[Any, Any], Any]] = {
    "whole": whole,
    "number": _number,
    "switch": _switch,
    "words": _words,
    "names": _names,
    "text": _text,
    "name": _name,
}


def read(given: Mapping[str, Any]) -> tuple[dict[str, Any], float | None]:
    """Options for a request, without those that are None, and the time limit in seconds."""
    options: dict[str, Any] = {}
    for name, value in given.items():
        if value is None:
            if name != "k":
                continue
            value = _kindred.DEFAULT_K
        if name not in _kindred.OPTIONS:
            raise TypeError(f"there is no option `{name}`; the options are {', '.join(_kindred.OPTIONS)}")
        values, bounds, expected = _kindred.OPTIONS[name]
        options[name] = READERS[values](value, bounds)
        if options[name] is None:
            raise InvalidValueError(f"`{name}` must be {expected}", field=name, expected=expected)
    # In process, answers have no place for vectors, texts and attributes; explain() explains.
    for name in ("with_vectors", "with_text", "with_attributes", "explain"):
        options.pop(name, None)
    timeout_ms = options.pop("timeout_ms", None)
    return options, None if timeout_ms is None else timeout_ms / 1000


def parameters(options: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Options as parameters of an address."""
    return [(name, _written(one)) for name, value in options.items() for one in (value if isinstance(value, list) else [value])]


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else repr(value)
