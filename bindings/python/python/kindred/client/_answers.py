"""Readers of a service's answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from .._errors import UnknownWordError
from .._types import Classified, Contribution, Explained, Explanation, Label, Neighbor, Ranked, Term, Terms
from . import _problems
from ._wire import Answer

T = TypeVar("T")


def results(answer: Answer, read: Callable[[Any], T]) -> list[T]:
    """The results of a batch; the first error is raised."""
    results = answer.json()["results"]
    for result in results:
        if "error" in result:
            raise _problems.of_problem(result["error"], answer.request_id)
    return [read(result) for result in results]


def neighbors_of(answer: Answer) -> list[Neighbor]:
    """The neighbours of a single question."""
    return neighbors(answer.json())


def neighbors(found: Any) -> list[Neighbor]:
    """The neighbours of a result, best first."""
    return [Neighbor(each["word"], float(each["score"]), each["row"]) for each in found["neighbors"]]


def score(compared: Any) -> float:
    """The score of a pair."""
    return float(compared["score"])


def ranked(each: Any) -> Ranked:
    """A word with its score and rank."""
    score = each["score"]
    return Ranked(each["word"], None if score is None else float(score), each["row"], each["rank"])


def explanation(answer: Answer) -> Explanation:
    """The neighbours with what each word contributes, and the ranks of the question's own words."""
    found = answer.json()
    neighbors = [
        Explained(each["word"], float(each["score"]), each["row"], [contribution(term) for term in each["terms"]])
        for each in found["neighbors"]
    ]
    return Explanation(neighbors, [ranked(each) for each in found["inputs"]])


def contribution(term: Any) -> Contribution:
    """The contribution of a word to a score."""
    kind = "contribution" if "contribution" in term else "factor"
    return Contribution(term["word"], float(term["weight"]), float(term["cosine"]), float(term[kind]), kind)


def classified(found: Any) -> Classified:
    """The labels of a text."""
    labels = [Label(each["label"], float(each["probability"]), float(each["score"])) for each in found["labels"]]
    return Classified(labels, list(found.get("unknown", ())), bool(found.get("cut", False)))


def implied(found: Any) -> Terms:
    """The terms that a text implies."""
    terms = [
        Term(each["term"], float(each["weight"]), each.get("row", -1), each["token"]["position"], each["token"].get("text"))
        for each in found["terms"]
    ]
    return Terms(terms, list(found.get("unknown", ())), bool(found.get("cut", False)))


def about(answer: Answer) -> dict[str, Any]:
    """A word, as the service knows it: with its row, or with the n-grams that its vector is the mean of."""
    names = ("word", "row", "norm", "ngrams", "suggestions")
    return {name: answer.json()[name] for name in names if name in answer.json()}


def row(answer: Answer) -> int:
    """The row of a word; `UnknownWordError` if it has a vector alone."""
    known = about(answer)
    if "row" not in known:
        unknown = [(known["word"], known["suggestions"])]
        raise UnknownWordError(f"the model has no row for `{known['word']}`, only a vector of its subwords", unknown)
    return int(known["row"])
