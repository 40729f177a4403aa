"""The options of questions, as keyword arguments. The engine declares and checks them; a test compares these types with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict


class SearchOptions(TypedDict, total=False):
    """Which rows may be neighbours."""

    exclude: Sequence[str] | None
    """Words that are no answers, at most 1000."""
    include_query: bool | None
    """Whether the words of the question may be answers."""
    vocab_limit: int | None
    """Search only the first rows: the most frequent words."""
    min_score: float | None
    """Only neighbours with at least this score."""
    max_score: float | None
    """Only neighbours with at most this score."""
    filter: str | None
    """Only rows whose attributes meet this: ``"price < 80 AND category = shoes"``."""
    timeout_ms: int | None
    """Time limit of the answer, in milliseconds."""


class NearestOptions(SearchOptions, total=False):
    """Options of searches."""

    offset: int | None
    """Leave out the best neighbours, those of earlier pages; with k at most 1000."""
    distinct: str | None
    """Only the best row of each value of this attribute."""
    unknown: str | None
    """The treatment of unknown words: ``error``; ``skip`` to leave them out, where several are given; or ``subwords``, the
    default of models prepared from a fastText ``.bin`` file, for the vectors of their subwords."""
    fold_case: bool | None
    """Treat words that differ only in case as one word."""


class AnalogyOptions(NearestOptions, total=False):
    """Options of analogies."""

    method: str | None
    """``3cosadd`` (the default), ``3cosmul`` or ``pairdirection``."""


class RankOptions(SearchOptions, total=False):
    """Options of ranks."""

    method: str | None
    """As of analogies."""
    unknown: str | None
    """As of searches."""


OF_WORDS = NearestOptions.__annotations__.keys() - SearchOptions.__annotations__.keys()
"""Options of searches that only words can have, not rows and vectors."""
