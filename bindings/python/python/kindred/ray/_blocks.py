"""The folder of a job: what was asked, and a Parquet file for each block of rows that is done."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import uuid
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from .._errors import InvalidValueError, ModelError
from .._model import Model
from ._nodes import here

# Readers of Parquet pass over names that begin with an underscore or a dot.
JOB = "_job.json"


class Block(NamedTuple):
    """Rows that are answered and written together."""

    first: int
    end: int

    @property
    def file(self) -> str:
        """The file's name: in the order of names, rows are in order."""
        return f"rows-{self.first:015}.parquet"


class Folder(NamedTuple):
    """Where a job's results are."""

    path: str
    job: str

    @staticmethod
    def begin(path: str, asked: dict[str, Any]) -> Folder:
        """Enters what is asked into the folder, or compares it with what was entered before.

        Raises:
            InvalidValueError: the folder has other work, or something else.
        """
        # As it comes back from a file: tuples are lists there.
        asked = json.loads(json.dumps(asked, default=list))
        folder = Folder(path, hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:32])
        os.makedirs(path, exist_ok=True)
        before = _read(path)
        if before is None:
            if others := [name for name in os.listdir(path) if not name.startswith(f".{JOB}")]:
                message = f"{path} is not empty and holds no work of kindred.ray: it has {others[0]}; give another `out`"
                raise InvalidValueError(message, field="out")
            _replace(os.path.join(path, JOB), json.dumps({"job": folder.job, "asked": asked}, indent=1, sort_keys=True).encode())
        elif before["job"] != folder.job:
            changes = "; ".join(_changes(before["asked"], asked))
            raise InvalidValueError(
                f"the work in {path} was begun otherwise ({changes}): finish it as it was begun, or give another `out`", field="out"
            )
        return folder

    def check_shared(self) -> None:
        """Refuses a folder that only the driver sees."""
        found = _read(self.path)
        if found is None or found["job"] != self.job:
            raise ModelError(f"{here()} does not see {self.path}/{JOB}: `out` must be on a disk that all nodes share")

    def check_engine(self, model: Model) -> None:
        """Refuses an engine that may give other bits than that which the job was begun with, if the job says that this matters."""
        found = _read(self.path)
        begun = found and found["asked"].get("engine")
        engine = "cuda" if model.device.startswith("cuda") else "cpu"
        if begun and begun != engine:
            raise ModelError(
                f"{here()} would answer on {engine}, but this work is done on {begun}; give `device` and `gpus` that all nodes have"
            )

    def write(self, block: Block, table: pa.Table, errors: int) -> None:
        """Writes the file of a block: complete, or not at all. A block that is written again gets the same bytes."""
        about = {b"kindred.block": self._name_of(block), b"kindred.errors": str(errors).encode()}
        table = table.replace_schema_metadata(about)
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, row_group_size=max(1, table.num_rows), write_page_checksum=True)
        _replace(os.path.join(self.path, block.file), sink.getvalue())

    def done(self, blocks: Iterable[Block]) -> dict[Block, int]:
        """The blocks whose files are there and whole, with their numbers of errors. Everything is read: a checksum covers each page."""
        blocks = list(blocks)
        with ThreadPoolExecutor(8) as pool:
            return {block: errors for block, errors in zip(blocks, pool.map(self._errors_of, blocks)) if errors is not None}

    def _errors_of(self, block: Block) -> int | None:
        try:
            with pq.ParquetFile(os.path.join(self.path, block.file), page_checksum_verification=True) as file:
                about = file.metadata.metadata or {}
                if about[b"kindred.block"] != self._name_of(block):
                    return None
                file.read(use_threads=False)
                return int(about[b"kindred.errors"])
        except (OSError, pa.ArrowException, KeyError, ValueError):
            return None

    def _name_of(self, block: Block) -> bytes:
        return f"{self.job} {block.first} {block.end}".encode()

    def tidy(self) -> None:
        """Removes what killed workers left half written."""
        for name in os.listdir(self.path):
            if name.startswith(".") and name.endswith(".part"):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(os.path.join(self.path, name))


def _replace(path: str, content: Any) -> None:
    folder, name = os.path.split(path)
    part = os.path.join(folder, f".{name}.{uuid.uuid4().hex}.part")
    try:
        with open(part, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except FileNotFoundError:
        # Another driver has finished the same work and tidied up.
        if not os.path.exists(path):
            raise
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise
    # The name, too, must outlive a power cut.
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read(path: str) -> dict[str, Any] | None:
    try:
        with open(os.path.join(path, JOB)) as file:
            found: dict[str, Any] = json.load(file)
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise ModelError(f"{os.path.join(path, JOB)} is damaged: {error}; give another `out`") from error
    return found


def _changes(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """What differs, in words."""
    found = []
    for name in sorted(before.keys() | now.keys()):
        then, this = before.get(name), now.get(name)
        if then != this and name == "source":
            found.append("the source's files have changed")
        elif then != this:
            found.append(f"{name} was {then}, and is {this}")
    return found
