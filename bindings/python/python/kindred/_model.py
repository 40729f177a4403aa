"""Models in process: a table of vectors, its words, and an engine that searches it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, overload

from . import _kindred
from ._errors import InvalidValueError, KindredError, UnknownWordError
from ._expressions import texts_of
from ._questions import Questions
from ._types import Classified, Neighbor, Neighbors, Terms
from ._words import Words

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import scipy.sparse
    from typing_extensions import Unpack

    from ._options import SearchOptions

    Progress = Callable[[int, int | None], object]
    Path = str | os.PathLike[str]


class Model(Questions):
    """A model with an engine: any number of threads can ask it at the same time.

    Open one by `kindred.open`, `kindred.from_array` or `kindred.demo`. Its table never changes. Calls that work release the
    interpreter's lock, and Ctrl-C ends them. The engine ends with the last reference, or at the end of a ``with`` block.

    Pickling a model that was opened from a folder pickles the folder's path: each process opens it again, and all share its pages.
    A model over an array is pickled with its numbers.

    >>> import kindred
    >>> model = kindred.demo()
    >>> [neighbor.word for neighbor in model.nearest("frog", k=3)]
    ['frogs', 'toad', 'salamander']
    """

    def __init__(self, model: _kindred.Model, reopen: tuple[Callable[..., Model], tuple[Any, ...], dict[str, Any]]) -> None:
        self._model = model
        self._reopen = reopen
        self._heads: dict[str | None, Any] = {}
        self._expanders: dict[str | None, Any] = {}

    # What it is

    @property
    def shape(self) -> tuple[int, int]:
        """``(rows, dim)``."""
        return self._model.rows, self._model.dim

    @property
    def words(self) -> Words:
        """The words of the rows: a sequence, most frequent first."""
        return Words(self._model)

    @property
    def vectors(self) -> npt.NDArray[np.float32]:
        """All vectors, float32 ``[rows, dim]``: a read-only view, not a copy.

        >>> import kindred
        >>> kindred.demo().vectors.shape
        (30000, 100)
        """
        view = self._model.vectors()
        view.flags.writeable = False
        return view

    def row(self, word: str) -> int:
        """The row of a word, from 0; `UnknownWordError` with suggestions if there is none."""
        row = self._model.row(word)
        if row is None:
            raise self._unknown([word])
        return row

    def vector(self, word: str | int) -> npt.NDArray[np.float32]:
        """The vector of a word or a row, float32 ``[dim]``: a read-only view.

        Of a model prepared from a fastText ``.bin`` file, a word that is no row has the vector of its subwords.

        >>> import kindred
        >>> kindred.demo().vector("frog").shape
        (100,)
        """
        if isinstance(word, str) and word not in self:
            of_subwords = self._model.subword_vector(word)
            if of_subwords is None:
                raise self._unknown([word])
            of_subwords.flags.writeable = False
            return of_subwords
        row = self.row(word) if isinstance(word, str) else range(len(self))[word]
        vector: npt.NDArray[np.float32] = self.vectors[row]
        return vector

    def __len__(self) -> int:
        return self._model.rows

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and self._model.row(word) is not None

    def __getitem__(self, word: str | int) -> npt.NDArray[np.float32]:
        return self.vector(word)

    def __repr__(self) -> str:
        rows, dim = self.shape
        return f"<kindred.Model {self.name}: {rows} x {dim}, {self.metric}, on {self._model.engine[0]}>"

    # Searches

    @overload
    def nearest_rows(self, rows: int, k: int = 10, **options: Unpack[SearchOptions]) -> list[Neighbor]: ...
    @overload
    def nearest_rows(self, rows: Any, k: int = 10, **options: Unpack[SearchOptions]) -> Neighbors: ...
    def nearest_rows(self, rows: Any, k: int = 10, **options: Any) -> Any:
        """The k nearest neighbours of rows of the model, each without itself: for rows that have no words, and for many rows.

        Args:
            rows: a row, or rows, whole numbers ``[n]``.
            k: 1 to 1000.
            **options: as of `nearest`.

        Returns:
            A list of `Neighbor` for a row; `Neighbors` for an array.

        >>> import kindred
        >>> model = kindred.demo()
        >>> model.nearest_rows(9070, k=1) == model.nearest("frog", k=1)
        True
        >>> model.nearest_rows(range(100), k=3).scores.shape
        (100, 3)
        """
        options["k"] = k
        if isinstance(rows, int):
            return self._model.nearest_row(range(len(self))[rows], options)
        from ._arrays import rows as as_rows

        progress = options.pop("progress", None)
        return Neighbors(*self._model.nearest_to_rows(as_rows(rows, len(self)), options, progress))

    # Scores without a search

    def scores(self, query: Any) -> npt.NDArray[np.float64]:
        """The score of every row, float64 ``[rows]``: NaN for a row that is zero. To find the best ones, `nearest` is far faster.

        Args:
            query: a word or a vector ``[dim]``.

        >>> import kindred
        >>> model = kindred.demo()
        >>> model.scores("frog").argmax() == model.row("frog")
        np.True_
        """
        from ._arrays import floats

        query = self.vector(query) if isinstance(query, str) else query
        return self._model.scores(floats(query, "query", (1,)))

    def encode(
        self,
        texts: str | Iterable[str],
        *,
        unknown: str | None = None,
        normalize: bool | None = None,
        truncate: bool | None = None,
    ) -> npt.NDArray[np.float32]:
        """The vector of a text, float32 ``[dim]``, or of each of several, ``[texts, dim]``: those that `nearest_text` searches for.

        Args:
            texts: a text or texts.
            normalize: whether vectors have unit length; false is the mean of the words' or tokens' vectors.
            truncate: whether texts that are too long are cut; otherwise they are an error.
            unknown: the treatment of unknown words: ``error``, ``skip`` or ``subwords``. They are left out, or of a model prepared
                from a fastText ``.bin`` file have the vectors of their subwords, if nothing is said.

        >>> import kindred
        >>> kindred.demo().encode(["a small boat", "a ship"]).shape
        (2, 100)
        """
        listed = texts_of(texts)
        if isinstance(texts, str):
            vector: npt.NDArray[np.float32] = self._model.encode(listed, unknown, normalize, truncate)[0]
            return vector
        try:
            return self._model.encode(listed, unknown, normalize, truncate)
        except KindredError as error:
            if isinstance(place := getattr(error, "query", None), int):
                error.args = (f"text {place}: {error}",)
            raise

    def similarities(self, pairs: Iterable[tuple[str, str]]) -> npt.NDArray[np.float64]:
        """The similarity of each pair of words, float64 ``[n]``."""
        return self._model.similarities(list(pairs))

    def suggestions(self, word: str) -> list[str]:
        """Words of the model that resemble a word, the likeliest first."""
        return self._model.suggestions(word)

    def words_with_prefix(self, prefix: str, limit: int = 10) -> list[str]:
        """The most frequent words that begin with ``prefix``."""
        return self._model.with_prefix(prefix, limit)

    # Heads

    @overload
    def classify(self, texts: str, *, head: Path | None = None) -> Classified: ...
    @overload
    def classify(self, texts: list[str] | tuple[str, ...], *, head: Path | None = None) -> list[Classified]: ...
    def classify(self, texts: Any, *, head: Path | None = None) -> Any:
        """The labels of a text, or of each of some texts, the most probable first.

        Args:
            texts: a text, or texts. A text without a word that the head knows has no labels.
            head: a head's folder, as ``kindred train classifier`` writes it; by default the built-in one of the demo model.

        >>> import kindred
        >>> kindred.demo().classify("a moving and funny film").labels[0].name
        'positive'
        """
        one = isinstance(texts, str)
        found = self._model.classify(self._head(head), [texts] if one else list(texts))
        answers = [Classified([], [], False) if answer is None else answer for answer in found]
        return answers[0] if one else answers

    @overload
    def expand(
        self, texts: str, *, top: int = 100, min_weight: float = 0.0, max_ratio: float = 0.0, filter: str | None = None,
        head: Path | None = None,
    ) -> Terms: ...  # fmt: skip
    @overload
    def expand(
        self, texts: list[str] | tuple[str, ...], *, top: int = 100, min_weight: float = 0.0, max_ratio: float = 0.0,
        filter: str | None = None, head: Path | None = None,
    ) -> list[Terms]: ...  # fmt: skip
    @overload
    def expand(
        self, texts: npt.NDArray[Any], *, top: int = 100, min_weight: float = 0.0, max_ratio: float = 0.0,
        filter: str | None = None, head: Path | None = None,
    ) -> Terms: ...  # fmt: skip
    def expand(
        self, texts: Any, *, top: int = 100, min_weight: float = 0.0, max_ratio: float = 0.0, filter: str | None = None,
        head: Path | None = None,
    ) -> Any:  # fmt: skip
        """The terms that a text, or each of some texts, implies, the largest weight first.

        Args:
            texts: a text, texts, or the vectors of one text's tokens, floating-point ``[tokens, dim]``.
            top: at most this number of terms, 1 to 1000.
            min_weight: only terms of at least this weight.
            max_ratio: only terms of at least this part of the largest weight, 0 to 1.
            filter: only terms that meet this filter of the attributes and words of the model that has them.
            head: an expander's folder; by default the built-in one, or the model's own terms under the metric ``dot``.

        >>> import kindred
        >>> terms = kindred.demo().expand("cheap flights", top=5).terms
        >>> "inexpensive" in [term.word for term in terms]
        True
        """
        if not 1 <= top <= 1000:
            raise InvalidValueError("`top` must be a whole number from 1 to 1000", field="top")
        expander, wanted = self._expander(head), (top, min_weight, max_ratio, filter)
        if hasattr(texts, "dtype"):
            from ._arrays import floats

            return self._model.expand_vectors(expander, floats(texts, "texts", (2,)), wanted)
        one = isinstance(texts, str)
        found = self._model.expand(expander, [texts] if one else list(texts), wanted)
        answers = [Terms([], [], False) if answer is None else answer for answer in found]
        return answers[0] if one else answers

    # Whole models

    def knn_graph(
        self, k: int = 10, *, progress: Progress | None = None, **options: Unpack[SearchOptions]
    ) -> scipy.sparse.csr_matrix:
        """The exact graph of nearest neighbours: for each row its k nearest others, with their scores. Needs SciPy.

        Args:
            k: 1 to 1000.
            progress: called about 20 times a second with the rows that are done and their number.
            **options: as of `nearest`; with ``vocab_limit`` the graph of the first rows, and among them.

        Returns:
            float64 ``[rows, rows]``. The neighbours of a row are stored best first. `write_graph` writes larger graphs to a file.

        >>> import kindred
        >>> graph = kindred.demo().knn_graph(3, vocab_limit=1000)
        >>> graph.shape, graph.nnz
        ((1000, 1000), 3000)
        """
        import numpy as np
        from scipy.sparse import csr_matrix

        rows = len(self) if options.get("vocab_limit") is None else min(len(self), int(options["vocab_limit"] or 0))
        told = None if progress is None else (lambda done: progress(done, rows))
        indices, scores = self._model.nearest_to_rows(np.arange(rows, dtype=np.uint32), {**options, "k": k}, told)
        is_there = indices >= 0
        ends = np.concatenate([[0], np.cumsum(is_there.sum(axis=1))])
        if is_there.all():
            data, columns = scores.ravel(), indices.ravel()
        else:
            data, columns = scores[is_there], indices[is_there]
        kind = np.int32 if max(rows, len(data)) < 2**31 else np.int64
        return csr_matrix((data, columns.astype(kind), ends.astype(kind)), shape=(rows, rows))

    def write_graph(
        self, file: Path, k: int = 10, *, first_rows: int | None = None, min_score: float | None = None,
        filter: str | None = None, replace: bool = False, progress: Progress | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Writes the exact graph of nearest neighbours to ``file``, as ``kindred graph`` does: it takes little memory, and after a
        kill the same call goes on.

        Args:
            file: ends in ``.npz`` (arrays ``indices`` int64 ``[rows, k]`` and ``scores`` float64 ``[rows, k]``), or in ``.parquet``
                in builds with that feature.
            filter: only neighbours that meet it; all rows have neighbours, whether they meet it or not.
        """
        made = self._model.write_graph(
            file, k=k, first_rows=first_rows, min_score=min_score, filter=filter, replace=replace, progress=progress
        )
        summary: dict[str, Any] = json.loads(made)
        return summary

    def evaluate(
        self, *, analogies: Path | Sequence[Path] = (), similarities: Path | Sequence[Path] = (), methods: Sequence[str] = (),
        case: str = "lower",
    ) -> dict[str, Any]:  # fmt: skip
        """How good the model is, by test sets: the report of ``kindred eval --json``.

        Args:
            analogies: files or folders of analogies, in the forms of questions-words.txt, MSR or BATS.
            similarities: files with two words and people's score in a line.
            methods: of analogies; all that the metric allows by default.
            case: ``lower``: words are looked up as written, then in lower case. ``exact``: as written only.
        """
        found = self._model.evaluate(_paths(analogies), _paths(similarities), list(methods), case)
        report: dict[str, Any] = json.loads(found)
        return report

    def verify(self) -> None:
        """Reads everything and checks every checksum; `ModelError` names the first file that is wrong."""
        self._model.verify()

    # Housekeeping

    def close(self) -> None:
        """Ends the engine now, unless calls are under way. The model can't be used afterwards."""
        self._heads.clear()
        self._expanders.clear()
        self.__dict__.pop("_model", None)

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        if name == "_model":
            raise ValueError("the model is closed")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __reduce__(self) -> Any:
        opener, arguments, keywords = self._reopen
        return _open_again, (opener, arguments, keywords)

    def _unknown(self, words: list[str]) -> UnknownWordError:
        unknown = [(word, self._model.suggestions(word)) for word in words]
        names = ", ".join(f"`{word}`" for word in words)
        meant = f"; did you mean {', '.join(unknown[0][1])}?" if len(words) == 1 and unknown[0][1] else ""
        return UnknownWordError(f"the model does not have {names}{meant}", unknown)

    def _head(self, folder: Path | None) -> Any:
        return _opened(self._heads, folder, self._model.head, "head", "head=FOLDER, as `kindred train classifier` writes it")

    def _expander(self, folder: Path | None) -> Any:
        return _opened(self._expanders, folder, self._model.expander, "expander", "head=FOLDER, as `kindred train expander` writes it")


def _opened(kept: dict[str | None, Any], folder: Path | None, open: Callable[[Any], Any], what: str, cure: str) -> Any:
    key = None if folder is None else os.fspath(folder)
    if key not in kept:
        found = open(folder)
        if found is None:
            raise InvalidValueError(f"this model has no built-in {what}; give {cure}", field="head")
        kept[key] = found
    return kept[key]


def _open_again(opener: Callable[..., Model], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Model:
    return opener(*arguments, **keywords)


def _paths(paths: Any) -> list[str]:
    if isinstance(paths, (str, os.PathLike)):
        paths = [paths]
    return [os.fspath(path) for path in paths]
