"""The engine's arithmetic for a few vectors: the same sums in the same order, so that a score here has the bits of a search's."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_LANES = 32
# Rows that are widened to float64 together.
_TOGETHER = 4096


def dots(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> Floats:
    """The dot products along the last axis in float64, as arrays broadcast: component i is added to lane i mod 32, in ascending
    order; then the lanes are folded.

    >>> import numpy
    >>> float(dots(numpy.ones(40), numpy.ones(40)))
    40.0
    """
    products = np.asarray(a, dtype=np.float64) * np.asarray(b, dtype=np.float64)
    lanes = np.zeros((*products.shape[:-1], _LANES))
    for first in range(0, products.shape[-1], _LANES):
        part = products[..., first : first + _LANES]
        lanes[..., : part.shape[-1]] += part
    step = _LANES // 2
    while step:
        lanes = lanes[..., :step] + lanes[..., step : 2 * step]
        step //= 2
    folded: Floats = lanes[..., 0]
    return folded


def norms(rows: npt.NDArray[Any]) -> Floats:
    """The Euclidean norm of each row, float64 ``[n]`` of ``[n, dim]``."""
    found = np.empty(len(rows))
    for first in range(0, len(rows), _TOGETHER):
        part = rows[first : first + _TOGETHER]
        found[first : first + _TOGETHER] = np.sqrt(dots(part, part))
    return found


def norm(vector: npt.NDArray[Any]) -> np.float64:
    """The Euclidean norm of a vector ``[dim]``."""
    return number(np.sqrt(dots(vector, vector)))


def number(value: Any) -> np.float64:
    """A number as float64."""
    found: np.float64 = np.float64(value)
    return found


def cosines(rows: npt.NDArray[Any], query: npt.NDArray[Any]) -> Floats:
    """The cosine of each row ``[n, dim]`` with a query ``[dim]``, float64 ``[n]``; NaN where one of them is zero."""
    found = np.empty(len(rows))
    of_query = norm(query)
    for first in range(0, len(rows), _TOGETHER):
        part = rows[first : first + _TOGETHER]
        with np.errstate(invalid="ignore", divide="ignore"):
            quotients = dots(part, query) / (of_query * np.sqrt(dots(part, part)))
        found[first : first + _TOGETHER] = np.clip(quotients, -1.0, 1.0)
    return found


def units(rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Each row divided by its norm, each component rounded to float32 once; NaN for rows of norm zero."""
    found = np.empty(rows.shape, dtype=np.float32)
    for first in range(0, len(rows), _TOGETHER):
        part = rows[first : first + _TOGETHER].astype(np.float64)
        with np.errstate(invalid="ignore"):
            found[first : first + _TOGETHER] = part / np.sqrt(dots(part, part))[:, np.newaxis]
    return found


def unit(vector: npt.NDArray[Any]) -> Floats:
    """A vector ``[dim]`` divided by its norm, float64; the vector itself if it is zero."""
    wide = np.asarray(vector, dtype=np.float64)
    length = norm(wide)
    return wide / length if length > 0 else wide
