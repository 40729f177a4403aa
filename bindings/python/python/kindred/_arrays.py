"""Arrays on their way into the engine. Imports NumPy, so it is imported on first use only."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ._errors import DimensionError, InvalidValueError


def floats(array: Any, what: str, dims: tuple[int, ...]) -> npt.NDArray[np.float32]:
    """An array of floating-point numbers as float32 in C order; without a copy if it is one already."""
    expected = "an array of floating-point numbers"
    if isinstance(array, np.ndarray) and array.dtype.kind in "iu":
        message = (
            f"`{what}` has whole numbers; for rows use nearest_rows, for a vector convert it: array.astype(numpy.float32)"
        )
        raise InvalidValueError(message, field=what, expected=expected)
    array = np.asarray(array)
    if array.dtype.kind not in "fiu":
        raise InvalidValueError(f"`{what}` must be {expected}, not of {array.dtype}", field=what, expected=expected)
    if array.ndim not in dims:
        shapes = " or ".join("[dim]" if n == 1 else "[n, dim]" for n in dims)
        raise DimensionError(f"`{what}` must be {shapes}, but it has the shape {list(array.shape)}")
    with np.errstate(over="ignore"):
        # A number out of float32's range becomes infinite, and is refused by name later.
        return np.ascontiguousarray(array, dtype=np.float32)


def rows(array: Any, of: int) -> npt.NDArray[np.uint32]:
    """An array of rows as uint32 in C order."""
    array = np.asarray(array)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise InvalidValueError(
            f"`rows` must be whole numbers [n], not {array.dtype} {list(array.shape)}", field="rows", expected="whole numbers [n]"
        )
    if array.size and not (0 <= array.min() and array.max() < of):
        wrong = next(int(row) for row in array if not 0 <= row < of)
        raise InvalidValueError(
            f"`rows` must be rows of the model, 0 to {of - 1} (and not {wrong})", field="rows", expected="rows of the model"
        )
    return np.ascontiguousarray(array, dtype=np.uint32)


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """The array itself if nobody can write to it, else a private copy; float32 ``[rows, dim]`` in C order."""
    if array.dtype.kind != "f" or array.ndim != 2:
        raise InvalidValueError(
            f"`array` must be floating-point numbers [rows, dim], not {array.dtype} {list(array.shape)}",
            field="array",
            expected="floating-point numbers [rows, dim]",
        )
    is_ours = array.dtype == np.float32 and array.dtype.isnative and array.flags.c_contiguous
    if is_ours and array.flags.aligned and is_read_only(array):
        return array
    copy = np.array(array, dtype=np.float32, order="C", copy=True)
    copy.flags.writeable = False
    return copy


def is_read_only(array: Any) -> bool:
    """Whether an array and everything that it is a view of are read-only."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return False
        array = array.base
    if array is None:
        return True
    try:
        return memoryview(array).readonly
    except TypeError:
        # Unknown memory may be written to by whoever owns it.
        return False
