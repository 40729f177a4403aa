"""What runs on the nodes: an actor has one model, and answers batches of a Dataset or blocks of a job."""

from __future__ import annotations

import hashlib
import os
import pickle
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

import kindred

from .. import _kindred
from .._errors import InvalidValueError, KindredError, ModelError
from .._model import Model
from ._blocks import Block, Folder
from ._nodes import here
from ._source import File, Rows


class Question(Protocol):
    """What is asked of each row; `_answers` has them."""

    @property
    def name(self) -> str: ...
    @property
    def depends_on_engine(self) -> bool: ...
    def schema(self) -> dict[str, Any]: ...
    def warm_up(self, model: Model) -> None: ...
    def answer(self, model: Model, column: Any, name: str) -> dict[str, pa.Array]: ...


@dataclass(frozen=True)
class Opening:
    """How a worker opens its model."""

    model: str | None
    device: str
    threads: int
    # What it must hold; None to take what is there.
    version: str | None = None

    def open(self) -> Model:
        """Opens the model on this node."""
        try:
            if self.model is None:
                opened = kindred.demo(device=self.device, threads=self.threads)
            else:
                opened = kindred.open(self.model, device=self.device, threads=self.threads)
        except KindredError as error:
            error.args = (f"{here()}: {error}{self._cure(error)}",)
            raise
        if self.version not in (None, opened.version):
            raise ModelError(
                f"{here()} has another model in {self.model}: its version is {opened.version}, not {self.version}; give all nodes the "
                "same folder"
            )
        return opened

    def _cure(self, error: KindredError) -> str:
        if isinstance(error, ModelError) and self.model is not None and not os.path.isdir(self.model):
            return "; the model's folder must be there under the same path on each node: use a shared disk, or copy it to all nodes"
        return ""


class Fingerprint:
    """Versions of a model and a head as a node has them. A head's is a hash of its files."""

    def __init__(self, model: str | None, head: str | None) -> None:
        self.version, self.rows, _ = _kindred.content(model)
        self.head = "built in" if head is None else _hash_of(head)


def fingerprint_here(model: str | None, head: str | None) -> Fingerprint | ModelError:
    """Errors are returned: Ray would wrap them in its own."""
    try:
        return Fingerprint(model, head)
    except (KindredError, OSError) as error:
        return ModelError(f"{here()}: {error}; model and head must be there under the same path on each node")


def _hash_of(folder: str) -> str:
    digest = hashlib.sha256()
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as file:
            content = file.read()
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


class BatchWorker:
    """Adds the answers to batches: a class for `ray.data.Dataset.map_batches`."""

    def __init__(self, opening: Opening, question: Question, column: str) -> None:
        self._question, self._column = question, column
        self._model = opening.open()
        question.warm_up(self._model)

    def __call__(self, batch: pa.Table) -> pa.Table:
        if self._column not in batch.column_names:
            has = ", ".join(batch.column_names)
            raise InvalidValueError(f"the Dataset has no column `{self._column}`; it has {has}", field="column")
        check_names(batch.column_names, self._question.schema())
        answers = self._question.answer(self._model, _one(batch[self._column]), self._column)
        for name, column in answers.items():
            batch = batch.append_column(name, column)
        return batch


def check_names(names: list[str], taken: Collection[str]) -> None:
    """Refuses columns that have the names of answers."""
    if both := [name for name in names if name in taken]:
        message = f"the source's column `{both[0]}` has the name of an answer's column: rename it, or leave it out"
        raise InvalidValueError(message, field="keep")


@dataclass(frozen=True)
class Work:
    """A job, as its workers need it."""

    opening: Opening
    question: Question
    folder: Folder
    # Empty for a graph, whose rows are those of the model.
    files: list[File]
    column: str
    keep: list[str]


class BlockWorker:
    """Answers blocks of rows and writes each to its file."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._failure: Exception | None = None
        # Ray would wrap an error from here in its own and start the actor again.
        try:
            work.folder.check_shared()
            self._model = work.opening.open()
            work.question.warm_up(self._model)
            work.folder.check_engine(self._model)
        except (KindredError, OSError) as error:
            self._failure = error

    def __call__(self, items: pa.Table) -> pa.Table:
        done: list[dict[str, Any]] = []
        try:
            if self._failure:
                raise self._failure
            for first, end, step in zip(*(items[name].to_pylist() for name in ("first", "end", "step"))):
                done += self._run(first, end, step)
        except (KindredError, OSError) as error:
            done.append({"first": -1, "rows": 0, "errors": 0, "started": 0.0, "failure": pickle.dumps(error)})
        return pa.Table.from_pylist(done, schema=REPORT)

    def _run(self, first: int, end: int, step: int) -> Iterator[dict[str, Any]]:
        """Blocks that follow one another."""
        work, question = self._work, self._work.question
        source = Rows(work.files, [work.column, *work.keep]) if work.files else None
        for start in range(first, end, step):
            started = time.time()
            block = Block(start, min(start + step, end))
            columns: dict[str, Any] = {"row": pa.array(np.arange(block.first, block.end), pa.int64())}
            if source is None:
                columns |= question.answer(self._model, range(block.first, block.end), "")
            else:
                rows = source.read(block.first, block.end, step)
                columns |= {name: rows[name] for name in work.keep}
                columns |= question.answer(self._model, _one(rows[work.column]), work.column)
            table = pa.table(columns)
            errors = table.num_rows - table["error"].null_count if "error" in columns else 0
            work.folder.write(block, table, errors)
            yield {"first": block.first, "rows": table.num_rows, "errors": errors, "started": started, "failure": None}


REPORT = pa.schema(
    [("first", pa.int64()), ("rows", pa.int64()), ("errors", pa.int64()), ("started", pa.float64()), ("failure", pa.binary())]
)


def _one(column: pa.ChunkedArray) -> pa.Array:
    found = column.combine_chunks()
    # Depending on pyarrow's version and the number of chunks it is still chunked.
    return pa.concat_arrays(found.chunks) if isinstance(found, pa.ChunkedArray) else found
