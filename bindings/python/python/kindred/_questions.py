"""Questions about the rows of a model, or of a table as it is now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, overload

from ._expressions import expression_of, weighted
from ._types import Explanation, Neighbor, Neighbors, OddOneOut, Ranked

if TYPE_CHECKING:
    import numpy.typing as npt
    from typing_extensions import Unpack

    from . import _kindred
    from ._options import AnalogyOptions, NearestOptions, RankOptions, SearchOptions


class Questions:
    """The properties and questions of `Model` and `Table`."""

    _model: _kindred.Model

    @property
    def name(self) -> str:
        """The model's name: its folder's, unless it was given another."""
        return self._model.name

    @property
    def version(self) -> str:
        """The version of its content: other content has another version. Of a table, that from which positions count: changes and folds
        keep it."""
        return self._model.version

    @property
    def metric(self) -> str:
        """``cosine`` or ``dot``."""
        return self._model.metric

    @property
    def dim(self) -> int:
        """Components of each vector."""
        return self._model.dim

    @property
    def device(self) -> str:
        """The engine that searches, such as ``cpu`` or ``cuda:0``, with details.

        >>> import kindred
        >>> kindred.demo(device="cpu").device.startswith("cpu")
        True
        """
        name, detail = self._model.engine
        return f"{name} ({detail})" if detail else name

    # Searches

    @overload
    def nearest(self, query: str, k: int = 10, **options: Unpack[NearestOptions]) -> list[Neighbor]: ...
    @overload
    def nearest(self, query: list[str] | tuple[str, ...], k: int = 10, **options: Unpack[NearestOptions]) -> list[list[Neighbor]]: ...
    @overload
    def nearest(
        self, query: npt.NDArray[Any], k: int = 10, **options: Unpack[SearchOptions]
    ) -> list[Neighbor] | Neighbors: ...
    @overload
    def nearest(self, query: Sequence[float], k: int = 10, **options: Unpack[SearchOptions]) -> list[Neighbor]: ...
    def nearest(self, query: Any, k: int = 10, **options: Any) -> Any:
        """The k nearest neighbours, best first.

        Args:
            query: one of

                - a word: a list of `Neighbor`, without the word itself;
                - a list of words: a list of such lists;
                - a vector, floating-point ``[dim]``: a list of `Neighbor`;
                - vectors, floating-point ``[n, dim]``: `Neighbors` with ``indices`` int64 ``[n, k]`` and ``scores`` float64
                  ``[n, k]``. Do not change the array meanwhile.
            k: 1 to 1000.
            **options: which rows may be neighbours, such as ``exclude`` and ``min_score``: all of `SearchOptions` in
                `kindred._options`; for words, of `NearestOptions` there.

        Raises:
            UnknownWordError: with suggestions.
            ZeroVectorError, NotFiniteError, DimensionError: a vector is zero, not finite, or has another dimension.
            OverloadedError, DeadlineError, EngineError: the engine did not answer.

        >>> import kindred
        >>> model = kindred.demo()
        >>> model.nearest("frog", k=1)
        [Neighbor(word='frogs', score=0.6804725969872646, row=10925)]
        >>> found = model.nearest(model.vectors[:1000], k=5)
        >>> found.indices.shape, found.indices[0, 0]
        ((1000, 5), np.int64(0))
        >>> try:
        ...     model.nearest("frogg")
        ... except kindred.UnknownWordError as error:
        ...     print(error.unknown[0].suggestions[0])
        frog
        """
        options["k"] = k
        if isinstance(query, str):
            return self._model.nearest_word(query, options)
        if isinstance(query, (list, tuple)) and query and all(isinstance(word, str) for word in query):
            return self._model.nearest_words(query, options)
        from ._arrays import floats

        vectors = floats(query, "query", (1, 2))
        if vectors.ndim == 1:
            return self._model.nearest_vector(vectors, options)
        return Neighbors(*self._model.nearest_to_vectors(vectors, options, options.pop("progress", None)))

    def nearest_text(self, text: str, k: int = 10, **options: Unpack[NearestOptions]) -> list[Neighbor]:
        """The words nearest to the sum of a text's words. Words that the model does not have are left out.

        >>> import kindred
        >>> kindred.demo().nearest_text("a quick brown fox", k=2)[0].word
        'greyish'
        """
        return self._model.nearest_text(text, {**options, "k": k})

    @overload
    def analogy(
        self, expression: str | None = None, k: int = 10, *, positive: Any = (), negative: Any = (), **options: Unpack[AnalogyOptions]
    ) -> list[Neighbor]: ...
    @overload
    def analogy(self, expression: list[str], k: int = 10, **options: Unpack[AnalogyOptions]) -> list[list[Neighbor]]: ...
    def analogy(
        self, expression: Any = None, k: int = 10, *, positive: Any = (), negative: Any = (), **options: Any
    ) -> Any:
        """The words nearest to an expression.

        Args:
            expression: such as ``"king - man + woman"`` or ``"0.5*ice + (water - 2*fire)"``; a list of them gives a list of answers.
            k: 1 to 1000.
            positive, negative: instead of an expression, words, or pairs ``(word, weight)``.
            **options: as of `nearest`, and ``method``: ``3cosadd`` (the default), ``3cosmul`` or ``pairdirection``.

        Raises:
            ExpressionError: with the column where it can't be read.
            UnknownWordError, MethodError, ZeroVectorError, and those of `nearest`.

        >>> import kindred
        >>> model = kindred.demo()
        >>> model.analogy("king - man + woman", k=1)[0].word
        'queen'
        >>> model.analogy(positive=["paris", "japan"], negative=["france"], k=1)[0].word
        'tokyo'
        >>> [answer[0].word for answer in model.analogy(["king - man + woman", "brother - man + woman"], k=1)]
        ['queen', 'sister']
        """
        options["k"] = k
        if isinstance(expression, (list, tuple)):
            return self._model.analogies([expression_of(one, (), ()) for one in expression], options)
        return self._model.analogy(expression_of(expression, positive, negative), options)

    def explain(
        self, expression: str | None = None, k: int = 10, *, text: str | None = None, positive: Any = (), negative: Any = (),
        **options: Unpack[AnalogyOptions],
    ) -> Explanation:  # fmt: skip
        """As `analogy` (or `nearest_text`, or `nearest` for one word), with what each word contributes to each score.

        >>> import kindred
        >>> explained = kindred.demo().explain("king - man + woman", k=1)
        >>> [(term.word, round(term.part, 2)) for term in explained.neighbors[0].terms]
        [('king', 0.56), ('man', 0.06), ('woman', 0.2)]
        >>> explained.inputs[0].word, explained.inputs[0].rank
        ('king', 2)
        """
        given: dict[str, Any] = {**options, "k": k, "explain": True}
        if text is not None:
            return Explanation(*self._model.explain(text, True, given))
        return Explanation(*self._model.explain(expression_of(expression, positive, negative), False, given))

    def rank(self, words: str | Sequence[str], query: Any, **options: Unpack[RankOptions]) -> list[Ranked]:
        """The ranks of words among all neighbours of a query, in the order of the words.

        Args:
            words: a word, or 1 to 1000 words.
            query: a word, a vector ``[dim]``, or pairs ``(word, weight)``.

        >>> import kindred
        >>> [(one.word, one.rank) for one in kindred.demo().rank(["toad", "car"], "frog")]
        [('toad', 2), ('car', 14408)]
        """
        words = [words] if isinstance(words, str) else list(words)
        if not isinstance(query, str):
            pairs = weighted(query, 1.0) if isinstance(query, (list, tuple)) else None
            if pairs is None:
                from ._arrays import floats

                query = floats(query, "query", (1,))
            else:
                query = pairs
        return self._model.rank(words, query, dict(options))

    # Scores without a search

    def similarity(self, a: str | Sequence[str], b: str | Sequence[str]) -> float:
        """The similarity of two words or sets of words: their cosine, or their dot product under the metric ``dot``.

        >>> import kindred
        >>> round(kindred.demo().similarity("frog", "toad"), 3)
        0.652
        """
        return self._model.similarity(a, b)

    def odd_one_out(self, words: Iterable[str]) -> OddOneOut:
        """The word that is least like all of them together. 3 to 256 words.

        >>> import kindred
        >>> kindred.demo().odd_one_out(["breakfast", "lunch", "dinner", "piano"]).word
        'piano'
        """
        ranked = self._model.odd_one_out(list(words))
        return OddOneOut(ranked[-1][0], ranked)

    def count(self, filter: str) -> int:
        """The number of rows that meet a filter over the model's attributes and words.

        >>> import kindred
        >>> kindred.demo().count("key IN [frog, toad, frogg]")
        2
        """
        return self._model.count(filter)
