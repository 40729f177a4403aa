"""Questions in Arrow's columns: texts of any string type, vectors in lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from .._errors import InvalidValueError

_NULL = "the value is null"


def is_text(kind: pa.DataType) -> bool:
    """Whether a column of this type holds texts. One that is all null may."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_null)
    return any(is_kind(kind) for is_kind in kinds)


def is_vectors(kind: pa.DataType) -> bool:
    """Whether a column of this type holds vectors."""
    lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(is_list(kind) for is_list in lists) and pa.types.is_floating(kind.value_type)


def check_text(kind: pa.DataType, name: str) -> None:
    """Refuses a column that holds no texts."""
    if not is_text(kind):
        raise InvalidValueError(f"the column `{name}` must have strings, but has {kind}; cast it first", field="column")


def check_words_or_vectors(kind: pa.DataType, name: str) -> None:
    """Refuses a column that holds neither words nor vectors."""
    if not is_text(kind) and not is_vectors(kind):
        message = f"the column `{name}` must have strings, or lists of floating-point numbers, but has {kind}; cast it first"
        raise InvalidValueError(message, field="column")


def plain(column: Any) -> pa.Array:
    """A column as one array without a dictionary, so that arrays of all files go together."""
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if is_text(column.type):
        column = column.cast(pa.large_string(), safe=False)
    return column


def texts(column: pa.Array) -> tuple[list[str | None], list[str | None]]:
    """The texts, and the errors of those that are none."""
    column = plain(column)
    try:
        found = column.to_pylist()
    except UnicodeDecodeError:
        found = [_decoded(text) for text in column.cast(pa.large_binary()).to_pylist()]
    errors = [_NULL if text is None else "the text is not UTF-8" if isinstance(text, bytes) else None for text in found]
    return [None if error else text for text, error in zip(found, errors)], errors


def _decoded(text: bytes | None) -> str | bytes | None:
    try:
        return None if text is None else text.decode()
    except UnicodeDecodeError:
        return text


def vectors(column: pa.Array, name: str, dim: int) -> tuple[list[Any], list[str | None]]:
    """The vectors, and the errors of those that have another length than the model's."""
    check_words_or_vectors(column.type, name)
    # Nulls among the components become NaN, which a search refuses by itself.
    lists = [None if one is None else np.asarray(one.to_numpy(zero_copy_only=False)) for one in _lists(column)]
    errors = [_NULL if one is None else None if len(one) == dim else _wrong_length(len(one), dim) for one in lists]
    return [None if error else one for one, error in zip(lists, errors)], errors


def _lists(column: pa.Array) -> list[pa.Array | None]:
    is_there = column.is_valid().to_pylist()
    return [scalar.values if there else None for scalar, there in zip(column, is_there)]


def _wrong_length(found: int, expected: int) -> str:
    return f"the vector has {found} components, but the model's rows have {expected}"
