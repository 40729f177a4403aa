"""What answers are made of: named tuples, which compare, unpack and pickle as tuples do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class Neighbor(NamedTuple):
    """A neighbour of a word, a vector or an expression."""

    word: str
    """Its word."""
    score: float
    """Its score: under the metric ``cosine`` from -1 to 1."""
    row: int
    """Its row, from 0: the most frequent word first."""


class Neighbors(NamedTuple):
    """Neighbours of many queries, as arrays."""

    indices: npt.NDArray[np.int64]
    """Rows, int64 ``[n, k]``, best first. -1 where a query has fewer than k neighbours."""
    scores: npt.NDArray[np.float64]
    """Scores, float64 ``[n, k]``. NaN where a query has fewer than k neighbours."""


class Contribution(NamedTuple):
    """A word's part in a score."""

    word: str
    """The word of the question."""
    weight: float
    """Its weight in the question."""
    similarity: float
    """How similar the neighbour is to it."""
    part: float
    """Its part in the score."""
    kind: str
    """``contribution``: the parts add up to the score. ``factor``: they multiply to it."""


class Explained(NamedTuple):
    """A neighbour, and what each word of the question contributes to its score."""

    word: str
    """Its word."""
    score: float
    """Its score."""
    row: int
    """Its row, from 0."""
    terms: list[Contribution]
    """The parts of the question's words."""


class Ranked(NamedTuple):
    """A word and its place among the neighbours of a question."""

    word: str
    """The word."""
    score: float | None
    """Its score; None if its vector is zero."""
    row: int
    """Its row, from 0."""
    rank: int | None
    """Its rank, from 1; None if it has no score or a filter excludes it."""


class Explanation(NamedTuple):
    """An explained answer."""

    neighbors: list[Explained]
    """The neighbours, best first."""
    inputs: list[Ranked]
    """The question's own words, with score and rank."""


class OddOneOut(NamedTuple):
    """Which of some words is the odd one."""

    word: str
    """The word that is least like all of them together."""
    ranked: list[tuple[str, float]]
    """All words with their cosine to the mean, highest first."""


class Label(NamedTuple):
    """A label of a text."""

    name: str
    """Its name."""
    probability: float
    """How probable it is, from 0 to 1."""
    score: float
    """The class score that the probability was computed from."""


class Classified(NamedTuple):
    """The labels of a text."""

    labels: list[Label]
    """All labels, the most probable first."""
    unknown: list[str]
    """Words that neither the model nor the head has. They were left out."""
    is_cut: bool
    """Whether the text was too long, so that a part of it was left out."""


class Term(NamedTuple):
    """A term that a text implies."""

    word: str
    """Its word."""
    weight: float
    """How much the text implies it: above zero."""
    row: int
    """Its number among the expander's terms; -1 from a service that does not say it."""
    position: int
    """The token that implies it most: its position among the tokens that the expander knows."""
    token: str | None
    """That token; None where vectors were given."""


class Terms(NamedTuple):
    """The terms that a text implies."""

    terms: list[Term]
    """The terms, the largest weight first."""
    unknown: list[str]
    """Words that the model does not have. They were left out."""
    is_cut: bool
    """Whether the text was too long, so that a part of it was left out."""


class UnknownWord(NamedTuple):
    """A word that a model does not have."""

    word: str
    """As it was written."""
    suggestions: list[str]
    """Words of the model that resemble it, the likeliest first."""


class BadRow(NamedTuple):
    """A row that a table can't take."""

    place: int
    """Its place among the rows that were given, from 0."""
    key: str
    """Its key; empty if it has none."""
    reason: str
    """The fault, with the cure."""


class Change(NamedTuple):
    """The effect of a change of a table."""

    model: str
    """The table's name."""
    version: str
    """The table's version."""
    position: int
    """The position from which on the change is seen."""
    inserted: int
    """Number of rows with a new key."""
    replaced: int
    """Number of rows that took the place of another."""
    deleted: int
    """Number of rows that were deleted."""
    missing: int
    """Number of keys to delete that the table did not have."""
    is_durable: bool
    """Whether it is on disk."""
    is_repeated: bool
    """Whether an earlier request with the same idempotency key had done it."""
    skipped: list[BadRow]
    """With ``on_error="skip"``, the bad rows, which were left out."""


class StoredRow(NamedTuple):
    """A row of a table, as it was put."""

    key: str
    """Its key, which is its word in answers."""
    row: int
    """Its number."""
    vector: npt.NDArray[np.float32] | None
    """Its vector, float32 ``[dim]``, read-only; None if it was not asked for."""
    bias: float | None
    """Under the metric ``dot``, the number that is added to its scores."""
    attributes: dict[str, Any]
    """Its attributes by their names, without those that are missing."""


class RowsPage(NamedTuple):
    """Some rows of a table, in their order."""

    rows: list[StoredRow]
    """The rows."""
    next: str | None
    """The ``after`` of the next page; None on the last."""
    version: str
    """The table's version."""
    position: int | None
    """The position that all pages are of; None for a model whose rows do not change."""
