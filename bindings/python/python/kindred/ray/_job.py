"""Jobs: what is left to do, in rounds, until every block is written."""

from __future__ import annotations

import math
import os
import pickle
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import ray
import ray.data

from .._errors import InvalidValueError, ModelError
from . import _columns, _nodes
from ._blocks import Block, Folder
from ._source import File, Path, look_at, paths_of
from ._workers import BatchWorker, BlockWorker, Fingerprint, Opening, Question, Work, check_names, fingerprint_here

Progress = Callable[[int, int], object]

# Ray restarts actors and retries tasks by itself. A round that fails all the same is followed by another, unless so many in a row
# finish no block.
_ROUNDS_WITHOUT_PROGRESS = 3
# Consecutive blocks that one task answers: enough to read large row groups once, and few enough that all workers end together.
_MOST_BLOCKS_A_TASK = 16
_TASKS_A_WORKER = 32


class Summary(NamedTuple):
    """What a job did."""

    rows: int
    """Rows of the source, each of which has a row in the results."""
    errors: int
    """Rows with an error instead of an answer."""
    blocks: int
    """Files of results."""
    resumed: int
    """Files that were there before, from an earlier call."""
    rounds: int
    """How often workers were started: 1, unless nodes were lost in a way that Ray does not repair, 0 if nothing was left to do."""
    seconds: float
    """From the start of the first block, when a worker has its model open, to the end of the last."""


class Resources(NamedTuple):
    """What each worker gets, and how many there are."""

    actors: int | None
    cpus: float
    gpus: float
    device: str | None

    def checked(self) -> Resources:
        """Refuses impossible values."""
        for name in ("cpus", "gpus"):
            if not getattr(self, name) >= 0:
                raise InvalidValueError(f"`{name}` must be 0 or more, not {getattr(self, name)!r}", field=name)
        if self.device is not None and self.device.split(":")[0] not in ("cpu", "cuda"):
            message = f"`device` must be cpu or cuda, not {self.device!r}: what each worker has does not depend on where it starts"
            raise InvalidValueError(message, field="device")
        if self.actors is not None and self.actors < 1:
            raise InvalidValueError(f"`actors` must be 1 or more, not {self.actors!r}", field="actors")
        return self

    def opening(self, model: Path | None, version: str | None = None) -> Opening:
        """How a worker opens the model. With a GPU of its own it sees that one alone, as the first."""
        device = self.device or ("cuda" if self.gpus else "cpu")
        return Opening(None if model is None else os.path.abspath(model), device, max(1, int(self.cpus)), version)

    def engine(self) -> str:
        """``cpu`` or ``cuda``."""
        return self.opening(None).device.split(":")[0]


def of_dataset(dataset: Any, question: Question, column: str, model: Path | None, resources: Resources) -> Any:
    """The Dataset with the answers' columns."""
    resources.checked()
    _nodes.connect()
    size = {"size": resources.actors} if resources.actors else {"min_size": 1, "max_size": _nodes.fitting(resources.cpus, resources.gpus)}
    return dataset.map_batches(
        BatchWorker,
        fn_constructor_kwargs={"opening": resources.opening(model), "question": question, "column": column},
        batch_format="pyarrow",
        batch_size=4096,
        compute=ray.data.ActorPoolStrategy(**size),
        num_cpus=resources.cpus,
        num_gpus=resources.gpus or None,
    )


def of_files(
    source: Path | Sequence[Path], out: Path, question: Question, column: str, keep: Sequence[str], model: Path | None,
    head: str | None, block_rows: int, resources: Resources, progress: Progress | None,
) -> Summary:  # fmt: skip
    """Answers all rows of Parquet files."""
    resources.checked()
    keep = [keep] if isinstance(keep, str) else list(keep)
    check_names(keep, ["row", *question.schema()])
    paths = paths_of(source)
    _nodes.connect()
    files = look_at(paths, [column, *keep])
    for file in files:
        _check_kinds(file, files[0], question, column, keep)
    found = _fingerprint(model, head)
    asked = {"column": column, "keep": keep, "source": [[file.sha256, file.rows] for file in files]}
    rows = sum(file.rows for file in files)
    return _run(out, question, asked, rows, block_rows, found, resources, model, progress, files, column, keep)


def of_model(
    out: Path, question: Question, model: Path | None, first_rows: int | None, block_rows: int, resources: Resources,
    progress: Progress | None,
) -> Summary:  # fmt: skip
    """Answers the rows of a model."""
    resources.checked()
    _nodes.connect()
    found = _fingerprint(model, None)
    rows = found.rows if first_rows is None else min(first_rows, found.rows)
    return _run(out, question, {}, rows, block_rows, found, resources, model, progress, [], "", [])


def _fingerprint(model: Path | None, head: str | None) -> Fingerprint:
    path = None if model is None else os.path.abspath(model)
    found = ray.get(ray.remote(num_cpus=1)(fingerprint_here).remote(path, head))
    if isinstance(found, ModelError):
        raise found
    return found  # type: ignore[no-any-return]


def _check_kinds(file: File, first: File, question: Question, column: str, keep: list[str]) -> None:
    try:
        if question.name == "nearest":
            _columns.check_words_or_vectors(file.kinds[column], column)
        else:
            _columns.check_text(file.kinds[column], column)
        other = [name for name in keep if file.kinds[name] != first.kinds[name]]
        if _columns.is_text(file.kinds[column]) != _columns.is_text(first.kinds[column]):
            other.append(column)
        if other:
            kinds = f"{file.kinds[other[0]]}, and in {first.path} {first.kinds[other[0]]}"
            raise InvalidValueError(f"the column `{other[0]}` has {kinds}; cast one of them", field="source")
    except InvalidValueError as error:
        error.args = (f"{file.path}: {error}",)
        raise


def _run(
    out: Path, question: Question, asked: dict[str, Any], rows: int, block_rows: int, found: Fingerprint, resources: Resources,
    model: Path | None, progress: Progress | None, files: list[File], column: str, keep: list[str],
) -> Summary:  # fmt: skip
    if block_rows < 1:
        raise InvalidValueError(f"`block_rows` must be 1 or more, not {block_rows!r}", field="block_rows")
    options = {name: value for name, value in vars(question).items() if name != "head"}
    asked = {"what": question.name, "options": options, "block_rows": block_rows, "rows": rows, "model": found.version, **asked}
    if question.name in ("classify", "expand"):
        asked["head"] = found.head
    if question.depends_on_engine:
        asked["engine"] = resources.engine()
    folder = Folder.begin(os.path.abspath(out), asked)
    work = Work(resources.opening(model, found.version), question, folder, files, column, keep)
    blocks = [Block(first, min(first + block_rows, rows)) for first in range(0, rows, block_rows)]
    done = folder.done(blocks)
    resumed, rounds, vain, started = len(done), 0, 0, math.inf
    told = sum(block.end - block.first for block in done)

    def tell(more: int, since: float = math.inf) -> None:
        nonlocal told, started
        told, started = told + more, min(started, since)
        if progress:
            progress(told, rows)

    tell(0)
    while left := [block for block in blocks if block not in done]:
        before = len(done)
        rounds += 1
        try:
            _round(work, left, block_rows, resources, done, tell)
        except ray.exceptions.RayError as error:
            vain = 0 if len(done) > before else vain + 1
            if isinstance(error, ray.exceptions.UserCodeException) or vain == _ROUNDS_WITHOUT_PROGRESS:
                raise
    seconds = time.time() - started if rounds else 0.0
    # What the driver does not see can't be resumed.
    if missing := [block.file for block in blocks if not os.path.exists(os.path.join(folder.path, block.file))]:
        raise ModelError(f"{folder.path} lacks {missing[0]}, which a worker has written: `out` must be on a disk that all nodes share")
    folder.tidy()
    return Summary(rows, sum(done.values()), len(blocks), resumed, rounds, seconds)


def _round(
    work: Work, left: list[Block], block_rows: int, resources: Resources, done: dict[Block, int], tell: Callable[[int, float], None]
) -> None:
    """Has workers answer the blocks that are left."""
    fitting = _nodes.fitting(resources.cpus, resources.gpus)
    actors = min(resources.actors or fitting, fitting)
    together = min(_MOST_BLOCKS_A_TASK, len(left) // (_TASKS_A_WORKER * actors)) if work.files else 1
    runs = _runs(left, max(1, together))
    items = [pa.table({"first": [run[0].first], "end": [run[-1].end], "step": [block_rows]}) for run in runs]
    dataset = ray.data.from_arrow(items)
    dataset.context.enable_progress_bars = False
    dataset.context.print_on_execution_start = False
    reports = dataset.map_batches(
        BlockWorker,
        fn_constructor_kwargs={"work": work},
        batch_format="pyarrow",
        # One block of the table, which has one row. Ray demands a number where there are GPUs.
        batch_size=1,
        # Two calls at a time: one block is written while the next is answered. A third waits, and no more, so that all end together.
        compute=ray.data.ActorPoolStrategy(
            size=min(actors, len(items)),
            max_concurrent_calls_per_actor=2,
            max_tasks_in_flight_per_actor=3,
            enable_true_multi_threading=True,
        ),
        num_cpus=resources.cpus,
        num_gpus=resources.gpus or None,
    )
    of_first = {block.first: block for block in left}
    for report in reports.iter_rows():
        if report["failure"] is not None:
            # It was made by this package on this cluster.
            raise pickle.loads(report["failure"])
        done[of_first[report["first"]]] = report["errors"]
        tell(report["rows"], report["started"])


def _runs(blocks: list[Block], most: int) -> list[list[Block]]:
    """Blocks that follow one another, up to a maximum number together."""
    runs: list[list[Block]] = []
    for block in blocks:
        if runs and len(runs[-1]) < most and runs[-1][-1].end == block.first:
            runs[-1].append(block)
        else:
            runs.append([block])
    return runs
