"""Analogies as they are given: an expression, or words with weights."""

from __future__ import annotations

from typing import Any

from ._errors import InvalidValueError


def expression_of(expression: Any, positive: Any, negative: Any) -> Any:
    """An expression, or the words that are added and taken away, with their weights."""
    if expression is None:
        return weighted(positive, 1.0) + weighted(negative, -1.0)
    if positive or negative:
        raise InvalidValueError("give an expression, or `positive` and `negative`, but not both", field="expression")
    if not isinstance(expression, str):
        raise InvalidValueError(f"`expression` must be a string such as 'king - man + woman', not {expression!r}", field="expression")
    return expression


def weighted(words: Any, sign: float) -> list[tuple[str, float]]:
    """Words with their weights, times this sign."""
    if isinstance(words, str):
        words = [words]
    terms = []
    for one in words:
        word, weight = (one, 1.0) if isinstance(one, str) else one
        terms.append((word, sign * weight))
    return terms


def texts_of(texts: Any) -> list[str]:
    """A text, or the texts of a list, of which there is at least one."""
    listed = [texts] if isinstance(texts, str) else list(texts)
    for place, text in enumerate(listed):
        if not isinstance(text, str):
            raise InvalidValueError(f"text {place} must be a string, not {text!r}", field="texts")
    if not listed:
        raise InvalidValueError("`texts` must have at least one text", field="texts")
    return listed
