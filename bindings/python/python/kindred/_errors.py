"""Exceptions. Those of a model in process and of a client are the same; all are a `KindredError`."""

from __future__ import annotations

from typing import Any

from ._types import BadRow, UnknownWord


class KindredError(Exception):
    """Anything that Kindred refuses or fails at. The message says what is wrong, and the cure.

    Attributes:
        status: the HTTP status of a service's answer; None in process, and if there was no answer.
        code: the error's code in the service's documentation; None in process, and if the answer had none.
        request_id: the id of the request, which the service's log has; None in process.
    """

    status: int | None = None
    code: str | None = None
    request_id: str | None = None

    def __init__(self, message: str = "", **fields: Any) -> None:
        super().__init__(message)
        for name, value in fields.items():
            setattr(self, name, value)

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""

    def __reduce__(self) -> Any:
        return _restore, (type(self), self.args, self.__dict__)


def _restore(kind: type[KindredError], args: tuple[Any, ...], fields: dict[str, Any]) -> KindredError:
    error = kind(*args)
    error.__dict__.update(fields)
    return error


class QuestionError(KindredError, ValueError):
    """A question that has no answer, whatever the model."""


class UnknownWordError(KindredError, KeyError):
    """Words that the model does not have.

    Attributes:
        unknown: each word, with suggestions.
    """

    unknown: list[UnknownWord]

    def __init__(self, message: str = "", unknown: Any = (), **fields: Any) -> None:
        super().__init__(message, **fields)
        self.unknown = [UnknownWord(word, list(suggestions)) for word, suggestions in unknown]

    @property
    def words(self) -> list[str]:
        """The unknown words alone."""
        return [one.word for one in self.unknown]


class InvalidValueError(QuestionError):
    """An option or a part of a question with an impossible value.

    Attributes:
        field: its name; None if the question as a whole is malformed.
        expected: what it must be.
        column: of a filter, the character where its fault is, from 1.
    """

    field: str | None = None
    expected: str | None = None
    column: int | None = None


class ExpressionError(QuestionError):
    """An expression that does not follow the grammar.

    Attributes:
        column: the first character that can't be read, from 1.
    """

    column: int | None = None


class DimensionError(QuestionError):
    """A vector with another number of components than the model's rows.

    Attributes:
        found: the caller's number of components.
        expected: the model's.
    """

    found: int | None = None
    expected: int | None = None


class NotFiniteError(QuestionError):
    """A vector with a component that is NaN, infinite, or out of the range of float32."""


class ZeroVectorError(QuestionError):
    """A query without a direction: a zero vector, or words that cancel out."""


class MethodError(QuestionError):
    """Words that do not have the form that an analogy's method takes."""


class BadRowsError(QuestionError):
    """Rows that a table can't take. Nothing of their batch was kept.

    Attributes:
        rows: each bad row, with its place, its key and its fault.
    """

    rows: list[BadRow]

    def __init__(self, message: str = "", rows: Any = (), **fields: Any) -> None:
        super().__init__(message, **fields)
        self.rows = [BadRow(*row) for row in rows]


class OverloadedError(KindredError):
    """The queue is full.

    Attributes:
        retry_after: when to ask again, in seconds.
    """

    retry_after: float | None = None


class DeadlineError(KindredError, TimeoutError):
    """The answer was not ready before the deadline."""


class EngineError(KindredError, RuntimeError):
    """The engine does not start, or failed."""


class ModelError(KindredError, OSError):
    """A model, head or file that can't be read or written."""


class ForkError(KindredError, RuntimeError):
    """A model that was opened before the process forked, used after it."""


class UnsupportedError(KindredError, AttributeError, NotImplementedError):
    """What a client can't do, because it would need the whole model, or gensim offers and Kindred does not."""


class ServiceError(KindredError):
    """What only a service can refuse or fail at."""


class UnreachableError(ServiceError, ConnectionError):
    """There was no answer: no connection, or it ended early.

    Attributes:
        is_passing: whether the next attempt may have one; not if the service's certificate is not trusted.
    """

    is_passing: bool = True


class UnauthorizedError(ServiceError, PermissionError):
    """An API key is missing, wrong, or not allowed to do this."""


class UnavailableError(ServiceError):
    """The service can't answer now.

    Attributes:
        retry_after: when to ask again, in seconds.
    """

    retry_after: float | None = None
