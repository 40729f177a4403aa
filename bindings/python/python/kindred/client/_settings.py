"""The settings of a client, checked when it is made: a wrong one is named at once."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from .._errors import InvalidValueError

if TYPE_CHECKING:
    import ssl

VISIBLE = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True)
class Settings:
    """What a client is made with."""

    base: str
    """The address without a slash at its end."""
    of_model: str
    """What comes before the routes of a model: empty for the default model."""
    api_key: str | None = field(repr=False)
    timeout: float
    """Seconds that a request may take with all its attempts; infinite for no limit."""
    retries: int
    max_retry_after: float
    parallel: int
    verify: ssl.SSLContext | bool
    min_position: str | None = None
    """Answers are about the rows at this position, ``VERSION/POSITION``, or a later one."""


def checked(
    base_url: str, *, model: str | None, api_key: str | None, timeout: float | None, retries: int, max_retry_after: float,
    parallel: int, verify: ssl.SSLContext | bool,
) -> Settings:  # fmt: skip
    """Settings that can be used; `InvalidValueError` with the name of one that can't."""
    try:
        address = urlsplit(base_url) if isinstance(base_url, str) else None
    except ValueError:
        address = None
    is_plain = address is not None and address.scheme in ("http", "https") and bool(address.hostname)
    if address is None or not is_plain or address.username is not None or address.query or address.fragment:
        raise _wrong("base_url", "an http or https address without a user, a query or a fragment, such as http://127.0.0.1:8080")
    # Addresses take dots for folders.
    if model is not None:
        check_name("model", model)
    # The key is not repeated, because messages are logged.
    if api_key is not None and not (isinstance(api_key, str) and VISIBLE.fullmatch(api_key)):
        raise _wrong("api_key", "visible ASCII characters without spaces")
    timeout = math.inf if timeout is None else timeout
    if not _is_number(timeout) or not timeout > 0:
        raise _wrong("timeout", "seconds above 0, or None for no limit")
    if not _is_number(max_retry_after) or not max_retry_after >= 0:
        raise _wrong("max_retry_after", "seconds, at least 0")
    for name, number, least, most in (("retries", retries, 0, 10), ("parallel", parallel, 1, 64)):
        if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= most:
            raise _wrong(name, f"a whole number from {least} to {most}")
    of_model = "" if model is None else f"/models/{quote(model, safe='')}"
    return Settings(base_url.rstrip("/"), of_model, api_key, timeout, retries, max_retry_after, parallel, verify)


def check_name(field: str, name: Any) -> None:
    """InvalidValueError if something can't be the name of a model."""
    if not isinstance(name, str) or name in ("", ".", ".."):
        raise _wrong(field, "the name of a model; models() lists them")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _wrong(name: str, expected: str) -> InvalidValueError:
    return InvalidValueError(f"`{name}` must be {expected}", field=name, expected=expected)
