"""Parquet files as one long table: which rows a file has, its fingerprint, and any range of rows."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import ray

from .._errors import InvalidValueError, ModelError
from . import _columns
from ._nodes import here

Path = str | os.PathLike[str]


class File(NamedTuple):
    """A Parquet file."""

    path: str
    rows: int
    size: int
    sha256: str
    kinds: dict[str, Any]


def paths_of(source: Path | Sequence[Path]) -> list[str]:
    """The files of paths, folders and patterns: those of a folder or a pattern in the order of their names."""
    several = [source] if isinstance(source, (str, os.PathLike)) else source
    found: list[str] = []
    for one in several:
        path = os.path.abspath(one)
        if os.path.isdir(path):
            # As other readers of Parquet do, without what begins with a dot or an underscore.
            below = glob.iglob(os.path.join(glob.escape(path), "**", "*.parquet"), recursive=True)
            some = sorted(name for name in below if not os.path.basename(name).startswith(("_", ".")))
        else:
            some = sorted(glob.glob(path)) if glob.has_magic(path) and not os.path.exists(path) else [path]
        if not some:
            raise ModelError(f"{one} has no Parquet files; `source` takes files, folders and patterns such as texts/*.parquet")
        found += some
    return found


def look_at(paths: list[str], columns: list[str]) -> list[File]:
    """Reads and hashes all files, on the cluster's nodes."""
    task = ray.remote(num_cpus=1, scheduling_strategy="SPREAD")(_look_at_here)
    found: list[Any] = ray.get([task.remote(path, columns) for path in paths])
    for one in found:
        if isinstance(one, Exception):
            raise one
    return found


def _look_at_here(path: str, columns: list[str]) -> File | ModelError | InvalidValueError:
    """Errors are returned: Ray would wrap them in its own."""
    try:
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256") if hasattr(hashlib, "file_digest") else _digest(file)
            file.seek(0)
            schema, rows = pq.read_schema(file), pq.read_metadata(file).num_rows
    except (OSError, pa.ArrowInvalid) as error:
        return ModelError(f"{here()} can't read {path}: {error}; each node must have the source under the same path")
    for name in columns:
        if schema.names.count(name) != 1:
            return InvalidValueError(f"{path} has no column `{name}`; it has {', '.join(schema.names)}", field="column")
    return File(path, rows, os.path.getsize(path), digest.hexdigest(), {name: schema.field(name).type for name in columns})


def _digest(file: Any) -> Any:
    digest = hashlib.sha256()
    while some := file.read(1 << 20):
        digest.update(some)
    return digest


class Rows:
    """Ranges of rows of all files. Ranges that follow one another are read as a stream, others from the row group that has them."""

    def __init__(self, files: Sequence[File], columns: list[str]) -> None:
        self._files = files
        self._columns = list(dict.fromkeys(columns))
        self._stream: Iterator[pa.Table] = iter(())
        self._next, self._rest = -1, pa.table({})

    def read(self, first: int, end: int, step: int) -> pa.Table:
        """The rows from `first` to `end`."""
        parts = []
        if self._next != first:
            self._stream, self._next, self._rest = self._from(first, step), first, pa.table({})
        while self._next < end:
            if self._rest.num_rows == 0:
                self._rest = next(self._stream)
            taken = self._rest.slice(0, end - self._next)
            self._rest = self._rest.slice(taken.num_rows)
            self._next += taken.num_rows
            parts.append(taken)
        return pa.concat_tables(parts)

    def _from(self, first: int, step: int) -> Iterator[pa.Table]:
        """All rows from `first` on, some at a time."""
        before = 0
        for file in self._files:
            if before + file.rows > first:
                yield from self._of_file(file, max(0, first - before), step)
            before += file.rows

    def _of_file(self, file: File, first: int, step: int) -> Iterator[pa.Table]:
        try:
            if os.path.getsize(file.path) != file.size:
                raise ModelError(f"{here()}: {file.path} has changed while it was read; start again with a source that stays as it is")
            with pq.ParquetFile(file.path) as parquet:
                skipped, group = 0, 0
                while group < parquet.num_row_groups and skipped + parquet.metadata.row_group(group).num_rows <= first:
                    skipped += parquet.metadata.row_group(group).num_rows
                    group += 1
                groups = range(group, parquet.num_row_groups)
                for batch in parquet.iter_batches(batch_size=step, row_groups=groups, columns=self._columns):
                    over = min(first - skipped, batch.num_rows)
                    skipped += over
                    if over < batch.num_rows:
                        columns = {name: _columns.plain(batch.column(name)[over:]) for name in self._columns}
                        yield pa.table(columns)
        except (OSError, pa.ArrowInvalid) as error:
            if isinstance(error, ModelError):
                raise
            raise ModelError(f"{here()} can't read {file.path}: {error}; each node must have the source under the same path") from error
