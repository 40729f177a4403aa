"""Bulk work on Ray Data: texts to classify or expand, words or vectors to find neighbours for, and graphs of whole models.

Each worker is an actor with a model of its own; those of one node share its memory. A job over Parquet files writes a file for each
block of rows, goes on where it ended, and survives the loss of nodes. A Dataset gets columns with the answers. Values have the same
bits as those of `kindred.Model`. Needs Ray Data and pyarrow: ``pip install 'kindred-vectors[ray]'``.

    import kindred.ray

    kindred.ray.classify("texts/*.parquet", "labels", model="models/en", head="heads/topics", keep=["id"])
    dataset = kindred.ray.classify(ray.data.read_csv("texts.csv"), model="models/en", head="heads/topics")
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypedDict, overload

from . import _needs  # noqa: F401  first, for its message
from .._errors import InvalidValueError
from . import _answers
from ._job import Progress, Resources, Summary, of_dataset, of_files, of_model
from ._source import Path

if TYPE_CHECKING:
    from ray.data import Dataset
    from typing_extensions import Unpack

    from .._options import NearestOptions, SearchOptions

__all__ = ["Summary", "Workers", "classify", "expand", "graph", "nearest"]


class Workers(TypedDict, total=False):
    """What all functions take about workers."""

    actors: int | None
    """Their number; by default as many as the cluster has room for."""
    cpus: float
    """CPUs of each, 1 by default: also the threads of its CPU engine."""
    gpus: float
    """GPUs of each, 0 by default. A worker sees its own alone, and uses it."""
    device: str | None
    """As of `kindred.open`; by default ``cuda`` with GPUs, and else ``cpu``."""


class Job(Workers, total=False):
    """What jobs take besides."""

    keep: Sequence[str]
    """Columns of the source that the results have, too, such as an id."""
    block_rows: int
    """Rows in each file of results, 65,536 by default. Smaller blocks lose less when a node is lost."""
    progress: Progress | None
    """Called with the rows that are done and their number."""


@overload
def classify(
    source: Dataset, *, model: Path | None = None, head: Path | None = None, column: str = "text", all_labels: bool = False,
    **workers: Unpack[Workers],
) -> Dataset: ...  # fmt: skip
@overload
def classify(
    source: Path | Sequence[Path], out: Path, *, model: Path | None = None, head: Path | None = None, column: str = "text",
    all_labels: bool = False, **job: Unpack[Job],
) -> Summary: ...  # fmt: skip
def classify(
    source: Any, out: Path | None = None, *, model: Path | None = None, head: Path | None = None, column: str = "text",
    all_labels: bool = False, **job: Any,
) -> Any:  # fmt: skip
    """The labels of texts, as `kindred.Model.classify` gives them.

    Args:
        source: a Dataset; or Parquet files, their folder, or a pattern, under the same path on each node.
        out: for files, the folder of the results, on a disk that all nodes share.
        model: the model's folder, under the same path on each node; by default the built-in model.
        head: the head's folder; by default the built-in one of the built-in model.
        column: the texts.
        all_labels: whether all labels are given, best first, besides the best.
        **job: see `Workers` and `Job`.

    Returns:
        For a Dataset, it with the columns ``label``, ``probability``, ``score``, with ``all_labels`` also ``labels``,
        ``probabilities``, ``scores``, then ``unknown``, ``is_cut`` and ``error``. For files, a `Summary`, when all rows are done:
        the files of ``out`` have the column ``row``, the row in the source, then what is kept, then those columns.
    """
    question = _answers.Classify(_answers.folder(head), bool(all_labels))
    return _of_source(source, out, question, column, model, question.head, job)


@overload
def expand(
    source: Dataset, *, model: Path | None = None, head: Path | None = None, column: str = "text", top: int = 100,
    min_weight: float = 0.0, max_ratio: float = 0.0, filter: str | None = None, **workers: Unpack[Workers],
) -> Dataset: ...  # fmt: skip
@overload
def expand(
    source: Path | Sequence[Path], out: Path, *, model: Path | None = None, head: Path | None = None, column: str = "text",
    top: int = 100, min_weight: float = 0.0, max_ratio: float = 0.0, filter: str | None = None, **job: Unpack[Job],
) -> Summary: ...  # fmt: skip
def expand(
    source: Any, out: Path | None = None, *, model: Path | None = None, head: Path | None = None, column: str = "text",
    top: int = 100, min_weight: float = 0.0, max_ratio: float = 0.0, filter: str | None = None, **job: Any,
) -> Any:  # fmt: skip
    """The weighted terms that texts imply, as `kindred.Model.expand` gives them.

    Args:
        source, out, model, head, column, **job: as of `classify`.
        top, min_weight, max_ratio, filter: as of `kindred.Model.expand`.

    Returns:
        As of `classify`, with the columns ``terms``, ``weights``, ``term_rows``, ``unknown``, ``is_cut`` and ``error``.
    """
    if not 1 <= top <= 1000:
        raise InvalidValueError("`top` must be a whole number from 1 to 1000", field="top")
    question = _answers.Expand(_answers.folder(head), int(top), float(min_weight), float(max_ratio), filter)
    return _of_source(source, out, question, column, model, question.head, job)


@overload
def nearest(
    source: Dataset, *, model: Path | None = None, column: str = "word", k: int = 10, options: NearestOptions | None = None,
    **workers: Unpack[Workers],
) -> Dataset: ...  # fmt: skip
@overload
def nearest(
    source: Path | Sequence[Path], out: Path, *, model: Path | None = None, column: str = "word", k: int = 10,
    options: NearestOptions | None = None, **job: Unpack[Job],
) -> Summary: ...  # fmt: skip
def nearest(
    source: Any, out: Path | None = None, *, model: Path | None = None, column: str = "word", k: int = 10, options: Any = None,
    **job: Any,
) -> Any:  # fmt: skip
    """The nearest neighbours of words or vectors, as `kindred.Model.nearest` gives them.

    Args:
        source, out, model, **job: as of `classify`.
        column: words, or vectors: lists of floating-point numbers.
        k: 1 to 1000.
        options: further options of `kindred.Model.nearest`, such as ``{"min_score": 0.5}``.

    Returns:
        As of `classify`, with the columns ``neighbors``, ``neighbor_rows``, ``scores`` and ``error``.
    """
    question = _answers.Nearest(_checked_k(k), dict(options or {}))
    return _of_source(source, out, question, column, model, None, job)


def graph(
    out: Path, *, model: Path | None = None, k: int = 10, first_rows: int | None = None, min_score: float | None = None,
    **job: Unpack[Job],
) -> Summary:  # fmt: skip
    """The exact graph of nearest neighbours of a model's rows, as `kindred.Model.knn_graph` gives it.

    Args:
        out, model, **job: as of `classify`; nothing is kept.
        k: 1 to 1000.
        first_rows: the graph of the first rows, and among them.
        min_score: only neighbours with at least this score.

    Returns:
        As of `classify`, with the columns ``neighbor_rows`` and ``scores``, which are lists, best first.
    """
    given: dict[str, Any] = dict(job)
    if given.pop("keep", ()):
        raise InvalidValueError("a graph has no source whose columns could be kept", field="keep")
    if first_rows is not None and first_rows < 1:
        raise InvalidValueError("`first_rows` must be 1 or more", field="first_rows")
    asked: SearchOptions = {}
    if first_rows is not None:
        asked["vocab_limit"] = first_rows
    if min_score is not None:
        asked["min_score"] = min_score
    resources, block_rows, progress = _resources(given), given.pop("block_rows", _BLOCK_ROWS), given.pop("progress", None)
    _nothing_left(given)
    return of_model(out, _answers.Graph(_checked_k(k), dict(asked)), model, first_rows, block_rows, resources, progress)


_BLOCK_ROWS = 65_536


def _of_source(source: Any, out: Path | None, question: Any, column: str, model: Path | None, head: str | None, job: dict[str, Any]) -> Any:
    import ray.data

    resources = _resources(job)
    if isinstance(source, ray.data.Dataset):
        if out is not None:
            message = (
                "a Dataset has no fixed blocks that could be resumed: leave `out` away and write the Dataset that is returned, or give "
                "Parquet files"
            )
            raise InvalidValueError(message, field="out")
        _nothing_left(job)
        return of_dataset(source, question, column, model, resources)
    if out is None:
        raise InvalidValueError("files need `out`, the folder of the results", field="out")
    keep, block_rows, progress = job.pop("keep", ()), job.pop("block_rows", _BLOCK_ROWS), job.pop("progress", None)
    _nothing_left(job)
    return of_files(source, out, question, column, keep, model, head, block_rows, resources, progress)


def _resources(job: dict[str, Any]) -> Resources:
    return Resources(job.pop("actors", None), job.pop("cpus", 1), job.pop("gpus", 0), job.pop("device", None))


def _nothing_left(job: dict[str, Any]) -> None:
    if job:
        raise TypeError(f"there is no option `{next(iter(job))}` here")


def _checked_k(k: int) -> int:
    if not 1 <= k <= 1000:
        raise InvalidValueError("`k` must be a whole number from 1 to 1000", field="k")
    return int(k)
