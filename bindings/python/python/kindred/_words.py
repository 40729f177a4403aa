"""The words of a model in process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

from . import _kindred

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class Words(Sequence[str]):
    """The words of a model by their rows, most frequent first. Words are looked up by their exact characters.

    >>> import kindred
    >>> words = kindred.demo().words
    >>> words[0], len(words), "frog" in words, words.index("frog")
    ('the', 30000, True, 9070)
    """

    def __init__(self, model: _kindred.Model) -> None:
        self._model = model

    def __len__(self) -> int:
        return self._model.rows

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> list[str]: ...
    def __getitem__(self, row: int | slice) -> str | list[str]:
        if isinstance(row, slice):
            return self._model.words(*row.indices(len(self)))
        row = range(len(self))[row]
        word = self._model.word(row)
        assert word is not None
        return word

    def __iter__(self) -> Iterator[str]:
        together = 10_000
        for first in range(0, len(self), together):
            yield from self._model.words(first, min(first + together, len(self)), 1)

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and self._model.row(word) is not None

    def index(self, word: str, start: int = 0, stop: int | None = None) -> int:
        """The row of a word; ValueError if there is none."""
        row = self._model.row(word)
        if row is None or not start <= row < (len(self) if stop is None else stop):
            raise ValueError(f"the model does not have `{word}`")
        return row

    def rows(self, words: Iterable[str]) -> npt.NDArray[np.int64]:
        """The rows of some words, int64 ``[n]``; -1 for a word that the model does not have."""
        return self._model.rows_of(list(words))

    def of(self, rows: Any) -> list[str]:
        """The words of an array of rows ``[n]``, such as one line of `Neighbors.indices`."""
        import numpy as np

        return self._model.words_of(np.ascontiguousarray(rows, dtype=np.int64))

    def __repr__(self) -> str:
        return f"<{len(self)} words: {', '.join(self[:3])}, ...>"
