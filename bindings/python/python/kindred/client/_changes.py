"""Requests of the methods of tables: changes of rows, and rows as they were put."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from .._errors import InvalidValueError, KindredError, UnknownWordError
from .._rows import change_of, keys_of, limit_of, one_of, rows_to_put, stored_row, to_json, to_json_lines
from .._types import Change, RowsPage, StoredRow
from . import _options
from ._settings import VISIBLE, check_name
from ._wire import Answer, Question, Request, one

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


# Tables


def create_model(name: str, dim: Any, metric: str, attributes: Mapping[str, str] | None) -> Question[dict[str, Any]]:
    """Makes a table."""
    check_name("name", name)
    body = to_json({"name": name, "dim": dim, "metric": metric, "attributes": dict(attributes or {})})
    return one(Request("/models", lambda answer: dict(answer.json()), body=body, is_of_model=False, is_done_once=True))


def delete_model(name: str) -> Question[None]:
    """Deletes a table."""
    check_name("name", name)
    route = f"/models/{quote(name, safe='')}"
    return one(Request(route, _nothing, method="DELETE", is_of_model=False, is_done_once=True))


def fold(timeout: float | None) -> Question[dict[str, Any]]:
    """Folds the changes."""
    return one(Request("/fold", lambda answer: dict(answer.json()), method="POST", is_done_once=True), timeout)


# Rows


def put_rows(
    keys: Iterable[str], vectors: Any, attributes: Iterable[Mapping[str, Any] | None] | None, biases: Iterable[float] | None,
    delete: Iterable[str], on_error: str, durability: str, idempotency_key: str | None, if_position: Change | str | None,
    source_position: str | None, timeout: float | None,
) -> Question[Change]:  # fmt: skip
    """Puts rows and deletes others, all together or none."""
    gone = list(delete)
    rows: list[dict[str, Any]] = []
    array = None
    # Only a change that does something else may have none to put.
    keys = list(keys) if (gone or source_position) and not isinstance(keys, (str, bytes)) else keys
    if keys != []:
        rows, array = rows_to_put(keys, vectors, attributes, biases)
    options = {"on_error": one_of("on_error", on_error, ("refuse", "skip")), **_durability(durability)}
    if array is None:
        parameters, body, sends = [], to_json({"rows": rows, "delete": gone, **options}), "application/json"
    else:
        parameters = _options.parameters(options)
        body, sends = _parts(rows, array, gone)
    made, headers = _made(idempotency_key), _positions(if_position, source_position)
    return one(Request("/rows", _change, parameters, body, sends, headers=headers, idempotency_key=made), timeout)


def delete_rows(
    keys: Any, filter: str | None, durability: str, idempotency_key: str | None, if_position: Change | str | None,
    timeout: float | None,
) -> Question[Change]:  # fmt: skip
    """Deletes rows by their keys, or all that meet a filter."""
    if (keys is None) == (filter is None):
        raise InvalidValueError("delete_rows() needs exactly one of `keys` and `filter`")
    options, headers = _durability(durability), _positions(if_position, None)
    if filter is None:
        body = to_json({"keys": keys_of([keys] if isinstance(keys, str) else keys), **options})
        made = _made(idempotency_key)
        return one(Request("/rows/delete", _change, body=body, headers=headers, idempotency_key=made), timeout)
    if idempotency_key is not None:
        message = "`idempotency_key` is for changes by keys: other rows may meet the filter when it is sent again"
        raise InvalidValueError(message, field="idempotency_key")
    body = to_json({"filter": filter, **options})
    return one(Request("/rows/delete", _change, body=body, headers=headers, is_done_once=True), timeout)


def sources() -> Question[dict[str, Any]]:
    """The systems that a table follows."""
    return one(Request("/sources", lambda answer: dict(answer.json())))


def report(reports: list[dict[str, Any]]) -> Question[dict[str, Any]]:
    """A follower's report."""
    return one(Request("/sources", lambda answer: dict(answer.json()), body=to_json({"sources": reports}), is_done_once=True))


def get_row(key: str) -> Question[StoredRow]:
    """A row as it was put."""
    if not isinstance(key, str):
        raise InvalidValueError("`key` must be a text", field="key", expected="a text")

    def rescue(error: KindredError) -> StoredRow:
        if error.code == "no_such_row":
            fields = dict(status=error.status, code=error.code, request_id=error.request_id)
            raise UnknownWordError(str(error).partition(" (404 ")[0], [(key, ())], **fields) from None
        raise error

    # As a parameter: a path can't have keys such as `..`.
    return one(Request("/rows", lambda answer: _row(answer.json()), [("key", key)], rescue=rescue))


def rows_page(filter: str | None, after: str | None, limit: int, with_vectors: bool) -> Question[RowsPage]:
    """Some rows in their order."""
    wanted: dict[str, Any] = {"limit": limit, "with_vectors": bool(with_vectors)}
    wanted |= {name: value for name, value in (("filter", filter), ("after", after)) if value is not None}

    def read(answer: Answer) -> RowsPage:
        page = answer.json()
        return RowsPage([_row(row) for row in page["rows"]], page.get("next"), page["version"], page.get("position"))

    return one(Request("/rows", read, _options.parameters(wanted)))


class Pages:
    """The pages of a listing, one after the other; both clients ask for them in their own way."""

    def __init__(self, filter: str | None, limit: int | None, with_vectors: bool) -> None:
        limit = limit_of(limit)
        self._filter, self._left, self._with_vectors = filter, limit, with_vectors
        self._after: str | None = None
        self.is_done = limit == 0

    def next(self) -> Question[RowsPage]:
        """The next page."""
        # Vectors are long in JSON.
        most = 100 if self._with_vectors else 1000
        limit = most if self._left is None else min(most, self._left)
        return rows_page(self._filter, self._after, limit, self._with_vectors)

    def took(self, page: RowsPage) -> list[StoredRow]:
        """The rows of a page that came."""
        self._after = page.next
        if self._left is not None:
            self._left -= len(page.rows)
        self.is_done = page.next is None or self._left == 0
        return page.rows


def position_of(change: Change | str) -> str:
    """The position of a change, as a header has it."""
    position = f"{change.version}/{change.position}" if isinstance(change, Change) else change
    if not isinstance(position, str) or not VISIBLE.fullmatch(position):
        message = "`change` must be the answer to a change, VERSION/POSITION or SOURCE:POSITION"
        raise InvalidValueError(message, field="change")
    return position


def _positions(if_position: Change | str | None, source_position: str | None) -> dict[str, str]:
    """The headers of a change for one position, and of one that reaches a position of another system."""
    headers = {} if if_position is None else {"If-Position": position_of(if_position)}
    if source_position is not None:
        if not isinstance(source_position, str) or not VISIBLE.fullmatch(source_position):
            expected = "SOURCE:POSITION without spaces, such as postgres:0/16B3748"
            raise InvalidValueError(f"`source_position` must be {expected}", field="source_position", expected=expected)
        headers["Source-Position"] = source_position
    return headers


def _nothing(answer: Answer) -> None:
    answer.json()


def _change(answer: Answer) -> Change:
    done = answer.json()
    skipped = [(row["index"], row["key"], row["reason"]) for row in done.get("skipped", ())]
    counts = (done["inserted"], done["replaced"], done["deleted"], done["missing"])
    return change_of(done["model"], (done["version"], done["position"]), counts, (done["durable"], done["repeated"]), skipped)


def _row(row: Any) -> StoredRow:
    vector = row.get("vector")
    if vector is not None:
        import numpy as np

        vector = np.array(vector, np.float32)
    return stored_row(row, vector, row.get("bias"))


def _durability(durability: str) -> dict[str, str]:
    return {"durability": one_of("durability", durability, ("synced", "none"))}


def _made(idempotency_key: str | None) -> str:
    """The key of the caller, or a new one: all attempts have it."""
    if idempotency_key is None:
        return os.urandom(16).hex()
    if not isinstance(idempotency_key, str) or not VISIBLE.fullmatch(idempotency_key):
        expected = "visible ASCII characters without spaces"
        raise InvalidValueError(f"`idempotency_key` must be {expected}", field="idempotency_key", expected=expected)
    return idempotency_key


def _parts(rows: list[dict[str, Any]], vectors: npt.NDArray[np.float32], delete: list[str]) -> tuple[bytes, str]:
    """Rows as JSON lines, their vectors as an .npy file and keys to delete, as parts of one body, and its type."""
    from ._npy import MEDIA_TYPE, parts

    boundary = os.urandom(16).hex()
    body = b"".join(
        [
            f'--{boundary}\r\nContent-Disposition: form-data; name="rows"\r\nContent-Type: application/x-ndjson\r\n\r\n'.encode(),
            to_json_lines(rows).encode(),
            f'\r\n--{boundary}\r\nContent-Disposition: form-data; name="vectors"\r\nContent-Type: {MEDIA_TYPE}\r\n\r\n'.encode(),
            *parts(vectors),
            f'\r\n--{boundary}\r\nContent-Disposition: form-data; name="delete"\r\n\r\n'.encode(),
            to_json(delete),
            f"\r\n--{boundary}--\r\n".encode(),
        ]
    )
    return body, f"multipart/form-data; boundary={boundary}"
