"""word2vec's text and binary files, read and written as gensim does."""

from __future__ import annotations

import builtins
import bz2
import gzip
import logging
import lzma
import os
import tempfile
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

import kindred

from .._errors import UnsupportedError

if TYPE_CHECKING:
    from ._keyed import KeyedVectors

logger = logging.getLogger(__name__)

_COMPRESSED: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


def opened(path: Any, mode: str) -> IO[bytes]:
    """A file of bytes; compressed if its name ends in .gz, .bz2 or .xz."""
    opener = _COMPRESSED.get(os.path.splitext(os.fspath(path))[1], builtins.open)
    file: IO[bytes] = opener(path, mode)
    return file


def _load_word2vec_format(
    cls: type[KeyedVectors], fname: Any, fvocab: Any = None, binary: bool = False, encoding: str = "utf8",
    unicode_errors: str = "strict", limit: int | None = None, datatype: Any = np.float32, no_header: bool = False,
    binary_chunk_size: int = 1 << 20, device: str = "auto",
) -> KeyedVectors:  # fmt: skip
    """Reads a file; see `KeyedVectors.load_word2vec_format`."""
    if no_header and binary:
        raise UnsupportedError("`no_header` is for text only: a binary file can't be read without its header")
    counts = None if fvocab is None else _counts(fvocab, unicode_errors)
    if no_header:
        rows, dim = _sizes(fname)
    with opened(fname, "rb") as file:
        if not no_header:
            rows, dim = _header(file.readline(), fname)
        rows = min(rows, limit) if limit else rows
        kv = cls(dim, rows, dtype=datatype, device=device)
        table = kv._collected("loading")
        first = 1 if no_header else 2
        lines = _binary(file, dim, binary_chunk_size) if binary else _text(file, dim, fname, first, encoding, unicode_errors)
        made_up: list[int] = []
        for row in range(rows):
            found = next(lines, None)
            if found is None:
                raise EOFError(f"{fname} ends after {row} of {rows} vectors: it is damaged, or its header is wrong")
            raw, vector = found
            key = raw.decode(encoding, unicode_errors).lstrip("\n") if isinstance(raw, bytes) else raw
            if table.append(key, vector):
                made_up.append(rows - len(made_up))
            else:
                logger.warning("%s has %r more than once: only its first vector counts", fname, key)
    if counts is not None:
        missing = sum(key not in counts for key in table.keys)
        if missing:
            logger.warning("%s has no counts for %d keys of %s: they get 0", fvocab, missing, fname)
        made_up = [counts.get(key, 0) for key in table.keys]
    kv._attributes["count"] = np.array(made_up, dtype=np.int64)
    return kv


def _counts(fvocab: Any, unicode_errors: str) -> dict[str, int]:
    with opened(fvocab, "rb") as file:
        pairs = [line.decode("utf8", unicode_errors).split() for line in file]
    for number, pair in enumerate(pairs, 1):
        if len(pair) != 2 or not pair[1].lstrip("-").isdigit():
            raise kindred.InvalidValueError(f"{fvocab}: line {number} is no word with its count", field="fvocab")
    return {word: int(count) for word, count in pairs}


def _header(line: bytes, fname: Any) -> tuple[int, int]:
    try:
        rows, dim = (int(part) for part in line.split())
    except ValueError:
        raise kindred.InvalidValueError(
            f"{fname} does not begin with the numbers of rows and components, as word2vec's files do: if it is text without "
            "a header, give no_header=True",
            field="fname",
        ) from None
    return rows, dim


def _sizes(fname: Any) -> tuple[int, int]:
    """Rows and components of a text file without a header."""
    with opened(fname, "rb") as file:
        dim = len(file.readline().rstrip().split(b" ")) - 1
        return (1 + sum(1 for _ in file) if dim > 0 else 0), dim


def _text(
    file: IO[bytes], dim: int, fname: Any, first: int, encoding: str, errors: str
) -> Iterator[tuple[str, npt.NDArray[np.float64]]]:
    """Words and vectors. Numbers become the nearest float64; the table rounds them to float32."""
    for number, line in enumerate(file, first):
        word, *numbers = line.rstrip().decode(encoding, errors).split(" ")
        try:
            vector = np.array([float(number) for number in numbers])
        except ValueError as error:
            raise kindred.InvalidValueError(f"{fname}: line {number}: {error}", field="fname") from None
        if len(vector) != dim:
            raise kindred.InvalidValueError(f"{fname}: line {number} has {len(vector)} components, not {dim}", field="fname")
        yield word, vector


def _binary(file: IO[bytes], dim: int, chunk: int) -> Iterator[tuple[bytes, npt.NDArray[np.float32]]]:
    size = 4 * dim
    held = b""
    while True:
        more = file.read(chunk)
        held += more
        at = 0
        while (space := held.find(b" ", at)) >= 0 and len(held) > space + size:
            yield held[at:space], np.frombuffer(held, "<f4", dim, space + 1)
            at = space + 1 + size
        held = held[at:]
        if not more:
            return


def save_word2vec_format(
    kv: KeyedVectors, fname: Any, fvocab: Any, binary: bool, total_vec: int | None, write_header: bool, prefix: str,
    append: bool, sort_attr: str,
) -> None:  # fmt: skip
    """Writes a file; see `KeyedVectors.save_word2vec_format`."""
    keys, vectors = list(kv.index_to_key), kv.vectors
    mode = "ab" if append else "wb"
    values: Any = kv._attributes.get(sort_attr)
    if values is None and sort_attr == "count" and kv._makes_up_counts:
        values = np.arange(len(keys), 0, -1)
    has_all = values is not None and len(values) == len(keys)
    if fvocab is not None and not has_all:
        raise kindred.InvalidValueError(f"there is no attribute {sort_attr!r} of every key to write to `fvocab`", field="sort_attr")
    order = np.argsort(-values, kind="stable") if has_all else np.arange(len(keys))
    if fvocab is not None:
        with opened(fvocab, mode) as file:
            file.writelines(f"{prefix}{keys[row]} {values[row]}\n".encode() for row in order)
    with opened(fname, mode) as file:
        if write_header:
            file.write(f"{len(keys) if total_vec is None else total_vec} {kv.vector_size}\n".encode())
        for row in order:
            name = f"{prefix}{keys[row]} ".encode()
            # The shortest digits that give the same float32 again.
            rest = vectors[row].astype("<f4").tobytes() if binary else " ".join(map(str, vectors[row])).encode() + b"\n"
            file.write(name + rest)


def save_folder(kv: KeyedVectors, path: Any) -> None:
    """Writes a model folder."""
    target = os.path.abspath(os.fspath(path))
    for key in kv.index_to_key:
        if key.endswith("\r"):
            raise kindred.InvalidValueError(
                f"a folder can't keep the carriage return at the end of {key!r}: rename the key", field="keys"
            )
    with tempfile.TemporaryDirectory(dir=os.path.dirname(target)) as made:
        np.save(os.path.join(made, "vectors.npy"), kv.vectors)
        # With a byte order mark, which is taken off: without it, one that the first key begins with would be.
        with builtins.open(os.path.join(made, "words.txt"), "w", encoding="utf-8-sig", newline="\n") as file:
            file.writelines(f"{key}\n" for key in kv.index_to_key)
        kindred.prepare(os.path.join(made, "vectors.npy"), target, words=os.path.join(made, "words.txt"), replace=True)
