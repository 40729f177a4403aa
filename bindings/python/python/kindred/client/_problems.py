"""Answers that are no success, as exceptions: the same as in process where a model in process refuses the same."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from .._errors import (
    BadRowsError,
    DeadlineError,
    DimensionError,
    ExpressionError,
    InvalidValueError,
    KindredError,
    MethodError,
    ModelError,
    NotFiniteError,
    OverloadedError,
    ServiceError,
    UnauthorizedError,
    UnavailableError,
    UnknownWordError,
    ZeroVectorError,
)

CODES: dict[str, type[KindredError]] = {
    "unknown_word": UnknownWordError,
    "invalid_value": InvalidValueError,
    "invalid_filter": InvalidValueError,
    "invalid_request": InvalidValueError,
    "unknown_field": InvalidValueError,
    "too_many_results": InvalidValueError,
    "no_such_head": InvalidValueError,
    "bad_rows": BadRowsError,
    "too_many_rows": InvalidValueError,
    "bad_expression": ExpressionError,
    "dimension_mismatch": DimensionError,
    "not_finite": NotFiniteError,
    "zero_query": ZeroVectorError,
    "method_mismatch": MethodError,
    "no_such_model": ModelError,
    "deadline_passed": DeadlineError,
}
# Where the code does not decide, and for answers of proxies.
STATUSES: dict[int, type[KindredError]] = {
    401: UnauthorizedError,
    403: UnauthorizedError,
    429: OverloadedError,
    502: UnavailableError,
    503: UnavailableError,
    504: UnavailableError,
}
# Fields of problem documents that become attributes.
FIELDS = ("field", "expected", "column", "found", "known", "limit", "query")
QUOTED = 120


def of_answer(what: str, status: int, headers: Mapping[str, str], body: bytes, request_id: str | None) -> KindredError:
    """The exception for an answer that is no success.

    Args:
        what: the request's method and address, for the message.
        headers: with names in lower case.
    """
    if status < 400:
        target = f" to {headers['location']}" if "location" in headers else ""
        message = f"{what} was answered with status {status}, a redirect{target}: set base_url to where the service itself is"
        return ServiceError(message, status=status, request_id=request_id)
    retry_after = _retry_after(headers.get("retry-after"))
    problem = _problem(body)
    if problem is not None:
        return of_problem(problem, request_id, retry_after)
    message = f"{what} was answered with status {status} and no problem document but {quoted(body)}; is a proxy in between?"
    return _make(STATUSES.get(status, ServiceError), message, status, None, request_id, retry_after, {})


def of_problem(problem: Mapping[str, Any], request_id: str | None, retry_after: float | None = None) -> KindredError:
    """The exception for a problem document, of an answer or of an item of a batch."""
    code, status = problem.get("code"), problem["status"]
    kind = CODES.get(str(code)) or STATUSES.get(status, ServiceError)
    message = str(problem["detail"])
    if issubclass(kind, ServiceError):
        message += f" ({status} {code}, request {request_id})"
    if retry_after is None and isinstance(problem.get("retry_after"), (int, float)):
        retry_after = float(problem["retry_after"])
    fields = {name: problem[name] for name in FIELDS if name in problem}
    if kind is UnknownWordError:
        fields["unknown"] = [(one["word"], one["suggestions"]) for one in problem.get("unknown", ())]
    elif kind is BadRowsError:
        fields["rows"] = [(one["index"], one["key"], one["reason"]) for one in problem.get("rows", ())]
    elif code == "no_such_head":
        fields["field"] = "head"
    return _make(kind, message, status, code, request_id, retry_after, fields)


def quoted(body: bytes) -> str:
    """The beginning of an answer, for a message."""
    text = re.sub(r"\s+", " ", body[: 4 * QUOTED].decode("utf-8", "replace")).strip()
    if not text:
        return "nothing"
    return f"\"{text[:QUOTED]}{'…' if len(text) > QUOTED or len(body) > 4 * QUOTED else ''}\""


def _make(
    kind: type[KindredError], message: str, status: int, code: str | None, request_id: str | None, retry_after: float | None,
    fields: dict[str, Any],
) -> KindredError:  # fmt: skip
    if hasattr(kind, "retry_after"):
        fields["retry_after"] = retry_after
    return kind(message, status=status, code=code, request_id=request_id, **fields)


def _problem(body: bytes) -> dict[str, Any] | None:
    try:
        problem = json.loads(body)
    except ValueError:
        return None
    is_whole = isinstance(problem, dict) and isinstance(problem.get("detail"), str) and isinstance(problem.get("status"), int)
    return problem if is_whole else None


def _retry_after(header: str | None) -> float | None:
    """Seconds, from a number or a date."""
    if header is None:
        return None
    if re.fullmatch(r"\s*[0-9]{1,9}\s*", header):
        return float(header)
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None
