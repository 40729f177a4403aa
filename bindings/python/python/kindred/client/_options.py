"""The options of questions on their way into a request: checked as a model in process does, and with its messages."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from .. import _kindred
from .._errors import InvalidValueError


def _whole(value: Any, most: float = 2**63 - 1) -> int | None:
    # True is no number here.
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        return None
    number = operator.index(value)
    return number if 1 <= number <= most else None


def _number(value: Any) -> float | None:
    if isinstance(value, (bool, str, bytes)) or not (hasattr(value, "__float__") or hasattr(value, "__index__")):
        return None
    number = float(value)
    return number if math.isfinite(number) else None


def _switch(value: Any) -> bool | None:
    is_switch = isinstance(value, bool) or type(value).__name__ in ("bool_", "bool")
    return bool(value) if is_switch else None


def _words(value: Any) -> list[str] | None:
    # A word alone is no list of its letters.
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        return None
    words = list(value)
    return words if len(words) <= 1000 and all(isinstance(word, str) for word in words) else None


def _one_of(*names: str) -> Callable[[Any], str | None]:
    return lambda value: value if isinstance(value, str) and value in names else None


DEFAULT_K = 10

# What reads each option, and what it must be.
READERS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "method": (_one_of("3cosadd", "3cosmul", "pairdirection"), "`3cosadd`, `3cosmul` or `pairdirection`"),
    "k": (lambda value: _whole(value, 1000), "a whole number from 1 to 1000"),
    "exclude": (_words, "a list of at most 1000 words"),
    "include_query": (_switch, "true or false"),
    "vocab_limit": (_whole, "a whole number of at least 1 (the number of rows to search)"),
    "min_score": (_number, "a finite number (cosines are from -1 to 1)"),
    "max_score": (_number, "a finite number (cosines are from -1 to 1)"),
    "with_vectors": (_switch, "true or false"),
    "unknown": (_one_of("error", "skip"), "`error` or `skip`"),
    "fold_case": (_switch, "true or false"),
    "explain": (_switch, "true or false"),
    "timeout_ms": (_whole, "a whole number of milliseconds, at least 1"),
}


def read(given: Mapping[str, Any]) -> tuple[dict[str, Any], float | None]:
    """Options for a request, without those that are None, and the time limit in seconds."""
    options: dict[str, Any] = {}
    for name, value in given.items():
        if value is None:
            if name != "k":
                continue
            value = DEFAULT_K
        if name not in READERS:
            raise TypeError(f"there is no option `{name}`; the options are {', '.join(_kindred.OPTIONS)}")
        reader, expected = READERS[name]
        options[name] = reader(value)
        if options[name] is None:
            raise InvalidValueError(f"`{name}` must be {expected}", field=name, expected=expected)
    # In process, answers have no place for vectors; explain() explains.
    options.pop("with_vectors", None)
    options.pop("explain", None)
    timeout_ms = options.pop("timeout_ms", None)
    return options, None if timeout_ms is None else timeout_ms / 1000


def parameters(options: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Options as parameters of an address."""
    return [(name, _written(one)) for name, value in options.items() for one in (value if isinstance(value, list) else [value])]


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else repr(value)
