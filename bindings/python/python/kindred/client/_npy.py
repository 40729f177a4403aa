"""Arrays as .npy files, to and from bytes. Nothing is ever unpickled."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import numpy.typing as npt

MEDIA_TYPE = "application/x-npy"


def encode(array: npt.NDArray[Any]) -> bytes:
    """An array in C order as a file."""
    return b"".join(parts(array))


def parts(array: npt.NDArray[Any]) -> list[bytes | memoryview]:
    """The file's header, and the array's own memory."""
    header = io.BytesIO()
    shape = {"descr": np.lib.format.dtype_to_descr(array.dtype), "fortran_order": False, "shape": array.shape}
    np.lib.format.write_array_header_1_0(header, shape)
    return [header.getvalue(), array.data if array.size else b""]


def decode(file: bytes) -> npt.NDArray[Any]:
    """The array of a file, as a read-only view of the bytes; ValueError if it is no whole file, or of Python objects.

    As ``np.lib.format.read_array(..., allow_pickle=False)``, but the shape is compared with the file's size before anything
    is allocated for it.
    """
    stream = io.BytesIO(file)
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    elif version == (2, 0):
        shape, is_fortran, dtype = np.lib.format.read_array_header_2_0(stream)
    else:
        raise ValueError(f"an .npy file of version {version}")
    if dtype.hasobject or is_fortran:
        raise ValueError("an .npy file of Python objects, or in Fortran's order")
    count = 1
    for length in shape:
        count *= length
    if stream.tell() + count * dtype.itemsize != len(file):
        raise ValueError(f"an .npy file of {len(file)} bytes for the shape {list(shape)} of {dtype}")
    return np.frombuffer(file, dtype, count, stream.tell()).reshape(shape)
