"""Requests, and the rules by which they are repeated. Nothing here sends: both clients do that, each in its own way."""

from __future__ import annotations

import json
import math
import os
import random
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NoReturn, TypeVar
from urllib.parse import quote, urlencode

from .._errors import DeadlineError, KindredError, ServiceError, UnreachableError
from . import _problems
from ._settings import Settings

T = TypeVar("T")

# The first pause is up to this long, the next up to twice as long, and so on. In seconds.
FIRST_PAUSE = 0.2
LONGEST_PAUSE = 5.0
LONGEST_TIMEOUT = 1e6
# OpenSSL's codes (x509_vfy.h): self-signed, in the chain too; an issuer that is not known. Those of other faults, such as a certificate
# that has expired, pass when it is renewed.
UNTRUSTED = (18, 19, 20, 21)


def _is_untrusted(error: BaseException | None) -> bool:
    """Whether a failure was that of a certificate of an unknown authority, beneath any number of others."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return error.verify_code in UNTRUSTED
        error = error.__cause__ or error.__context__
    return False


@dataclass(frozen=True)
class Answer:
    """A whole answer of success."""

    what: str
    status: int
    headers: Mapping[str, str]
    """With names in lower case."""
    body: bytes
    request_id: str

    def json(self) -> Any:
        """The body as JSON; ServiceError if it is none."""
        try:
            return json.loads(self.body)
        except ValueError:
            raise self.broken("JSON") from None

    def broken(self, expected: str) -> ServiceError:
        """That the answer is not what Kindred answers."""
        kind = self.headers.get("content-type", "no content type")
        message = (
            f"{self.what} was answered with status {self.status}, but not with {expected} as Kindred does: {kind}, "
            f"{_problems.quoted(self.body)}; is base_url right?"
        )
        return ServiceError(message, status=self.status, request_id=self.request_id)


@dataclass(frozen=True)
class Request:
    """A request, and how its answer is read."""

    route: str
    read: Callable[[Answer], Any]
    parameters: Sequence[tuple[str, str]] = ()
    body: bytes | None = None
    """With it, and for `is_reload`, the request is a POST."""
    sends: str = "application/json"
    accepts: str = "application/json"
    is_of_model: bool = True
    is_reload: bool = False
    """It changes the service, so it is never sent twice."""
    method: str | None = None
    """Instead of the usual one."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """More of them."""
    idempotency_key: str | None = None
    """With it, the service does the change once, however often it is sent."""
    is_done_once: bool = False
    """It is a change that must not be done twice, and has no key: it is repeated only if the service refused it before it began."""
    is_probe: bool = False
    """It asks about this moment, so it is sent once."""
    rescue: Callable[[KindredError], Any] | None = None
    """What an error means, if it is an answer too; it raises the others."""

    @property
    def is_change(self) -> bool:
        """Whether it changes a table."""
        return self.is_done_once or self.idempotency_key is not None


@dataclass(frozen=True)
class Question(Generic[T]):
    """What a method asks: requests, in order, and how their answers become its result."""

    parts: Sequence[Callable[[], Request]]
    """Made when they are sent, because bodies are large."""
    join: Callable[[list[Any]], T]
    timeout: float | None = None
    """Seconds for all of it, instead of the client's for each request."""

    def ends(self) -> float | None:
        """When it ends, by the monotonic clock, if it starts now."""
        return None if self.timeout is None else time.monotonic() + self.timeout


def one(request: Request, timeout: float | None = None) -> Question[Any]:
    """A question of one request."""
    return Question([lambda: request], lambda results: results[0], timeout)


@dataclass
class Call:
    """A request on its way: its attempts, its id and its end."""

    settings: Settings
    request: Request
    ends: float
    attempts: int = 0
    request_id: str = field(default_factory=lambda: os.urandom(8).hex())
    last: KindredError | None = None

    @classmethod
    def of(cls, settings: Settings, request: Request, ends: float | None) -> Call:
        """A call that ends at a time, or by the settings."""
        now = time.monotonic()
        ends = now + settings.timeout if ends is None else ends
        # Systems can't wait so long.
        return cls(settings, request, ends if ends - now < LONGEST_TIMEOUT else math.inf)

    @property
    def method(self) -> str:
        if self.request.method is not None:
            return self.request.method
        return "POST" if self.request.body is not None or self.request.is_reload else "GET"

    @property
    def url(self) -> str:
        request = self.request
        of_model = self.settings.of_model if request.is_of_model else ""
        parameters = f"?{urlencode(request.parameters, quote_via=quote)}" if request.parameters else ""
        return f"{self.settings.base}{of_model}{request.route}{parameters}"

    @property
    def what(self) -> str:
        return f"{self.method} {self.url.partition('?')[0]}"

    @property
    def left(self) -> float:
        """Seconds that are left; infinite without a limit."""
        return self.ends - time.monotonic()

    def begin(self) -> dict[str, str]:
        """The headers of the next attempt; DeadlineError if there is no time for one."""
        left = self.left
        if left <= 0:
            self.late()
        self.attempts += 1
        headers = {"Accept": self.request.accepts, "X-Request-Id": self.request_id, **self.request.headers}
        if self.request.body is not None:
            headers["Content-Type"] = self.request.sends
        if self.settings.api_key is not None:
            headers["Authorization"] = f"Bearer {self.settings.api_key}"
        if self.request.idempotency_key is not None:
            headers["Idempotency-Key"] = self.request.idempotency_key
        if self.settings.min_position is not None and self.request.is_of_model and not self.request.is_change:
            headers["Min-Position"] = self.settings.min_position
        if left < math.inf:
            # So that the service stops working, too, when nobody waits any more.
            headers["Request-Timeout-Ms"] = str(max(1, math.ceil(left * 1000)))
        return headers

    def late(self) -> NoReturn:
        """The time is over."""
        sent = "once" if self.attempts == 1 else f"{self.attempts} times"
        cure = "raise `timeout`, or `timeout_ms` of the call, or ask for less at once"
        message = f"{self.what} had no answer in time (sent {sent}); {cure}"
        raise DeadlineError(message, request_id=self.request_id) from self.last

    def unreachable(self, error: BaseException) -> NoReturn:
        """There was no answer, or a part of one."""
        reason = str(error) or type(error).__name__
        cure, is_passing = "is the service running, and is base_url right?", True
        if _is_untrusted(error):
            cure, is_passing = "if the certificate is yours, name its file with SSL_CERT_FILE, or in a context for `verify`", False
        message = f"{self.what} had no answer: {reason}; {cure}"
        raise UnreachableError(message, request_id=self.request_id, is_passing=is_passing) from error

    def undecoded(self, error: BaseException) -> NoReturn:
        """The answer's compression is broken."""
        message = f"{self.what} was answered with what can't be decompressed: {error}; is a proxy in between?"
        raise ServiceError(message, request_id=self.request_id) from error

    def read(self, status: int, headers: Mapping[str, str], body: bytes) -> Any:
        """The result of an answer; raises what it says."""
        request_id = headers.get("x-request-id", self.request_id)
        if not 200 <= status < 300:
            error = _problems.of_answer(self.what, status, headers, body, request_id)
            if self.request.rescue is None:
                raise error
            return self.request.rescue(error)
        answer = Answer(self.what, status, headers, body, request_id)
        try:
            return self.request.read(answer)
        except KindredError:
            raise
        except (KeyError, IndexError, TypeError, ValueError, AttributeError):
            raise answer.broken("what was asked for") from None

    def pause_after(self, error: KindredError) -> float:
        """Seconds to wait before the next attempt; raises the error if there must be none."""
        self.last = error
        may_repeat = not (self.request.is_reload or self.request.is_probe) and self.attempts <= self.settings.retries
        is_passing = isinstance(error, UnreachableError) and error.is_passing
        if not may_repeat or not (is_passing or error.status in (429, 503)):
            raise error
        if self.request.is_done_once and error.status != 429:
            raise error
        retry_after: float = getattr(error, "retry_after", None) or 0.0
        # A part of it is random, so that clients that failed together do not come back together.
        pause: float = retry_after + random.random() * min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (self.attempts - 1))
        # The error says more than a deadline that is certain to pass.
        if retry_after > self.settings.max_retry_after or pause >= self.left:
            raise error
        return pause
