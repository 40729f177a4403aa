"""What is asked, and its answers as columns. Each row has an answer or an error, never both and never neither."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from .._errors import KindredError, QuestionError, UnknownWordError
from .._model import Model
from .._options import OF_WORDS
from .._types import Neighbors
from . import _columns

Columns = dict[str, pa.Array]

_STRINGS = pa.list_(pa.string())
_NUMBERS = pa.list_(pa.float64())
_ROWS = pa.list_(pa.int64())
_NOTHING_KNOWN = "the text has no word that the model or the head knows"


@dataclass(frozen=True)
class Classify:
    """The labels of texts."""

    head: str | None
    all_labels: bool

    name: ClassVar[str] = "classify"
    # Class scores have the same bits on one engine only; everything else, on all of them.
    depends_on_engine: ClassVar[bool] = True

    def schema(self) -> dict[str, Any]:
        """The columns of the answers, by name."""
        best = {"label": pa.string(), "probability": pa.float64(), "score": pa.float64()}
        every = {"labels": _STRINGS, "probabilities": _NUMBERS, "scores": _NUMBERS} if self.all_labels else {}
        return {**best, **every, "unknown": _STRINGS, "is_cut": pa.bool_(), "error": pa.string()}

    def warm_up(self, model: Model) -> None:
        """Opens the head."""
        model._head(self.head)

    def answer(self, model: Model, column: pa.Array, name: str) -> Columns:
        head = model._head(self.head)
        answers, errors = _of_texts(column, name, lambda texts: model._model.classify(head, texts))
        some = [answer and answer.labels for answer in answers]
        found: dict[str, list[Any]] = {
            "label": [labels[0].name if labels else None for labels in some],
            "probability": [labels[0].probability if labels else None for labels in some],
            "score": [labels[0].score if labels else None for labels in some],
        }
        if self.all_labels:
            found["labels"] = [labels and [label.name for label in labels] for labels in some]
            found["probabilities"] = [labels and [label.probability for label in labels] for labels in some]
            found["scores"] = [labels and [label.score for label in labels] for labels in some]
        return _arrays(self.schema(), {**found, **_about(answers), "error": errors})


@dataclass(frozen=True)
class Expand:
    """The weighted terms that texts imply."""

    head: str | None
    top: int
    min_weight: float
    max_ratio: float
    filter: str | None = None

    name: ClassVar[str] = "expand"
    depends_on_engine: ClassVar[bool] = False

    def schema(self) -> dict[str, Any]:
        """The columns of the answers, by name."""
        terms = {"terms": _STRINGS, "weights": _NUMBERS, "term_rows": _ROWS}
        return {**terms, "unknown": _STRINGS, "is_cut": pa.bool_(), "error": pa.string()}

    def warm_up(self, model: Model) -> None:
        """Opens the head."""
        model._expander(self.head)

    def answer(self, model: Model, column: pa.Array, name: str) -> Columns:
        head, wanted = model._expander(self.head), (self.top, self.min_weight, self.max_ratio, self.filter)
        answers, errors = _of_texts(column, name, lambda texts: model._model.expand(head, texts, wanted))
        found: dict[str, list[Any]] = {
            "terms": [answer and [term.word for term in answer.terms] for answer in answers],
            "weights": [answer and [term.weight for term in answer.terms] for answer in answers],
            "term_rows": [answer and [term.row for term in answer.terms] for answer in answers],
        }
        return _arrays(self.schema(), {**found, **_about(answers), "error": errors})


@dataclass(frozen=True)
class Nearest:
    """The neighbours of words, or of vectors."""

    k: int
    options: dict[str, Any] = field(default_factory=dict)

    name: ClassVar[str] = "nearest"
    depends_on_engine: ClassVar[bool] = False

    def schema(self) -> dict[str, Any]:
        """The columns of the answers, by name."""
        return {"neighbors": _STRINGS, "neighbor_rows": _ROWS, "scores": _NUMBERS, "error": pa.string()}

    def warm_up(self, model: Model) -> None:
        """Nothing to open."""

    def answer(self, model: Model, column: pa.Array, name: str) -> Columns:
        if _columns.is_text(column.type):
            questions, errors = _columns.texts(column)
            ask: Callable[[Any], Neighbors] = lambda some: self._of_words(model, some)  # noqa: E731
        else:
            questions, errors = _columns.vectors(column, name, model.dim)
            ask = lambda some: Neighbors(*model.nearest(np.stack(some), self.k, **self.options))  # noqa: E731
        indices = np.full((len(column), self.k), -1, dtype=np.int64)
        scores = np.full((len(column), self.k), np.nan)
        asked = [row for row, question in enumerate(questions) if question is not None]
        for some, found in _bisected([questions[row] for row in asked], ask):
            rows = asked[some]
            if isinstance(found, Neighbors):
                indices[rows], scores[rows] = found
            else:
                errors[rows[0]] = found
        return self.columns(model, Neighbors(indices, scores), errors)

    def _of_words(self, model: Model, words: list[str]) -> Neighbors:
        # Arrays are far faster than lists of answers, and mean the same without the options of words.
        if not self.options.keys() & OF_WORDS:
            rows = model.words.rows(words)
            if (rows >= 0).all():
                found = model.nearest_rows(rows, self.k, **self.options)
                # A row without neighbours may be a zero vector, which is an error where a word is asked for.
                for zero in np.flatnonzero(found.indices[:, 0] < 0):
                    model.nearest(words[zero], self.k, **self.options)
                return found
        indices = np.full((len(words), self.k), -1, dtype=np.int64)
        scores = np.full((len(words), self.k), np.nan)
        for row, answer in enumerate(model.nearest(words, self.k, **self.options)):
            indices[row, : len(answer)] = [neighbor.row for neighbor in answer]
            scores[row, : len(answer)] = [neighbor.score for neighbor in answer]
        return Neighbors(indices, scores)

    def columns(self, model: Model, found: Neighbors, errors: Sequence[str | None]) -> Columns:
        """Neighbours as columns."""
        rows, scores = lists_of(found, errors)
        words = pa.array(model.words.of(rows.values.to_numpy()), pa.string())
        return {
            "neighbors": pa.ListArray.from_arrays(rows.offsets, words, mask=rows.is_null()),
            "neighbor_rows": rows,
            "scores": scores,
            "error": pa.array(errors, pa.string()),
        }


@dataclass(frozen=True)
class Graph:
    """The neighbours of rows of the model."""

    k: int
    options: dict[str, Any] = field(default_factory=dict)

    name: ClassVar[str] = "graph"
    depends_on_engine: ClassVar[bool] = False

    def schema(self) -> dict[str, Any]:
        """The columns of the answers, by name."""
        return {"neighbor_rows": _ROWS, "scores": _NUMBERS}

    def warm_up(self, model: Model) -> None:
        """Asks for a row, so that nothing is left to do for the first block."""
        model.nearest_rows([0], self.k)

    def answer(self, model: Model, column: range, name: str) -> Columns:
        found = model.nearest_rows(np.arange(column.start, column.stop), self.k, **self.options)
        neighbours, scores = lists_of(found, [None] * len(column))
        return {"neighbor_rows": neighbours, "scores": scores}


def folder(path: str | os.PathLike[str] | None) -> str | None:
    """A folder's absolute path: workers have other working directories."""
    return None if path is None else os.path.abspath(path)


def lists_of(found: Neighbors, errors: Sequence[str | None]) -> tuple[pa.ListArray, pa.ListArray]:
    """Rows and scores of neighbours as lists without what fills arrays up; null where there is an error."""
    is_there = found.indices >= 0
    ends = np.concatenate([[0], np.cumsum(is_there.sum(axis=1))]).astype(np.int32)
    has_error = pa.array([error is not None for error in errors], pa.bool_())
    lists = (pa.array(values[is_there]) for values in found)
    rows, scores = (pa.ListArray.from_arrays(pa.array(ends), values, mask=has_error) for values in lists)
    return rows, scores


def _of_texts(column: pa.Array, name: str, ask: Callable[[list[str]], list[Any]]) -> tuple[list[Any], list[str | None]]:
    """The answer, or an error, for each text."""
    _columns.check_text(column.type, name)
    texts, errors = _columns.texts(column)
    asked = [(row, text) for row, text in enumerate(texts) if text is not None]
    answers: list[Any] = [None] * len(texts)
    for (row, _), answer in zip(asked, ask([text for _, text in asked]) if asked else []):
        answers[row] = answer
        errors[row] = _NOTHING_KNOWN if answer is None else None
    return answers, errors


def _about(answers: list[Any]) -> dict[str, list[Any]]:
    return {"unknown": [answer and answer.unknown for answer in answers], "is_cut": [answer and answer.is_cut for answer in answers]}


def _arrays(schema: dict[str, Any], found: dict[str, list[Any]]) -> Columns:
    return {name: pa.array(found[name], kind) for name, kind in schema.items()}


def _bisected(questions: list[Any], ask: Callable[[list[Any]], Neighbors]) -> list[tuple[slice, Neighbors | str]]:
    """Answers of parts, and the error of each question that has no answer: one bad question fails a whole call."""
    found: list[tuple[slice, Neighbors | str]] = []
    waiting = [slice(0, len(questions))] if questions else []
    while waiting:
        part = waiting.pop()
        try:
            found.append((part, ask(questions[part])))
        except (QuestionError, UnknownWordError) as error:
            if part.stop - part.start == 1:
                found.append((part, str(error)))
            else:
                middle = (part.start + part.stop) // 2
                waiting += [slice(part.start, middle), slice(middle, part.stop)]
    return found
