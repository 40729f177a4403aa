"""The client for programs with asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, overload

from .._errors import KindredError
from .._types import Classified, Explanation, Neighbor, Neighbors, OddOneOut, Ranked, Terms
from . import _questions as questions
from ._needs import needed
from ._settings import checked
from ._tables import AsyncTables
from ._wire import Call, Question, Request

if TYPE_CHECKING:
    import ssl

    import httpx
    import numpy as np
    import numpy.typing as npt
    from typing_extensions import Unpack

    from .._options import AnalogyOptions, NearestOptions, RankOptions, SearchOptions
    from ._pool import AsyncPool

T = TypeVar("T")


class AsyncClient(AsyncTables):
    """As `Client`, for asyncio: every method is awaited.

    Any number of tasks of one event loop can share one. Close it by ``await close()`` or an ``async with`` block::

        async with kindred.AsyncClient("http://127.0.0.1:8080") as model:
            await model.nearest("frog", k=3)

    The arguments are those of `Client`; ``http_client`` is an ``httpx.AsyncClient``. The properties of `Client` are in what
    ``await model()`` returns. A task that is cancelled ends its requests, and the service drops their work.
    """

    def __init__(
        self, base_url: str, *, model: str | None = None, api_key: str | None = None, timeout: float | None = 30.0,
        retries: int = 2, max_retry_after: float = 10.0, parallel: int = 2, verify: ssl.SSLContext | bool = True,
        http_client: httpx.AsyncClient | None = None,
    ) -> None:  # fmt: skip
        self._settings = checked(
            base_url, model=model, api_key=api_key, timeout=timeout, retries=retries, max_retry_after=max_retry_after,
            parallel=parallel, verify=verify,
        )  # fmt: skip
        self._pool: AsyncPool = needed().AsyncPool(self._settings, http_client)
        self._is_closed = False

    # Words and rows

    async def row(self, word: str) -> int:
        """As `Client.row`."""
        return await self._ask(questions.row(word))

    async def vector(self, word: str) -> npt.NDArray[np.float32]:
        """As `Client.vector`."""
        return await self._ask(questions.vector(word))

    def __repr__(self) -> str:
        return f"<kindred.AsyncClient {self._settings.base}{self._settings.of_model}>"

    # Searches

    @overload
    async def nearest(self, query: str, k: int = 10, **options: Unpack[NearestOptions]) -> list[Neighbor]: ...
    @overload
    async def nearest(
        self, query: list[str] | tuple[str, ...], k: int = 10, **options: Unpack[NearestOptions]
    ) -> list[list[Neighbor]]: ...
    @overload
    async def nearest(
        self, query: npt.NDArray[Any], k: int = 10, **options: Unpack[SearchOptions]
    ) -> list[Neighbor] | Neighbors: ...
    @overload
    async def nearest(self, query: Sequence[float], k: int = 10, **options: Unpack[SearchOptions]) -> list[Neighbor]: ...
    async def nearest(self, query: Any, k: int = 10, **options: Any) -> Any:
        """As `Client.nearest`."""
        return await self._ask(questions.nearest(query, k, options))

    async def nearest_text(self, text: str, k: int = 10, **options: Unpack[NearestOptions]) -> list[Neighbor]:
        """As `Client.nearest_text`."""
        return await self._ask(questions.nearest_text(text, k, options))

    @overload
    async def analogy(
        self, expression: str | None = None, k: int = 10, *, positive: Any = (), negative: Any = (),
        **options: Unpack[AnalogyOptions],
    ) -> list[Neighbor]: ...
    @overload
    async def analogy(
        self, expression: list[str], k: int = 10, **options: Unpack[AnalogyOptions]
    ) -> list[list[Neighbor]]: ...
    async def analogy(
        self, expression: Any = None, k: int = 10, *, positive: Any = (), negative: Any = (), **options: Any
    ) -> Any:
        """As `Client.analogy`."""
        return await self._ask(questions.analogy(expression, k, positive, negative, options))

    async def explain(
        self, expression: str | None = None, k: int = 10, *, text: str | None = None, positive: Any = (), negative: Any = (),
        **options: Unpack[AnalogyOptions],
    ) -> Explanation:  # fmt: skip
        """As `Client.explain`."""
        return await self._ask(questions.explain(expression, k, text, positive, negative, options))

    async def rank(self, words: str | Sequence[str], query: Any, **options: Unpack[RankOptions]) -> list[Ranked]:
        """As `Client.rank`."""
        return await self._ask(questions.rank(words, query, options))

    # Scores without a search

    async def similarity(self, a: str | Sequence[str], b: str | Sequence[str]) -> float:
        """As `Client.similarity`."""
        return await self._ask(questions.similarity(a, b))

    async def similarities(self, pairs: Iterable[tuple[str, str]]) -> npt.NDArray[np.float64]:
        """As `Client.similarities`."""
        return await self._ask(questions.similarities(pairs))

    async def encode(
        self,
        texts: str | Iterable[str],
        *,
        unknown: str | None = None,
        normalize: bool | None = None,
        truncate: bool | None = None,
    ) -> npt.NDArray[np.float32]:
        """As `Client.encode`."""
        return await self._ask(questions.encode(texts, {"unknown": unknown, "normalize": normalize, "truncate": truncate}))

    async def odd_one_out(self, words: Iterable[str]) -> OddOneOut:
        """As `Client.odd_one_out`."""
        return await self._ask(questions.odd_one_out(words))

    async def count(self, filter: str) -> int:
        """As `Client.count`."""
        return await self._ask(questions.count(filter))

    async def suggestions(self, word: str) -> list[str]:
        """As `Client.suggestions`."""
        return await self._ask(questions.suggestions(word))

    async def words_with_prefix(self, prefix: str, limit: int = 10) -> list[str]:
        """As `Client.words_with_prefix`."""
        return await self._ask(questions.words_with_prefix(prefix, limit))

    async def word(self, word: str) -> dict[str, Any]:
        """As `Client.word`."""
        return await self._ask(questions.word(word))

    # Heads

    @overload
    async def classify(  # type: ignore[overload-overlap]
        self, texts: str, *, head: str | None = None
    ) -> Classified: ...
    @overload
    async def classify(self, texts: Iterable[str], *, head: str | None = None) -> list[Classified]: ...
    async def classify(self, texts: str | Iterable[str], *, head: str | None = None) -> Any:
        """As `Client.classify`."""
        return await self._ask(questions.classify(texts, head))

    @overload
    async def expand(  # type: ignore[overload-overlap]
        self, texts: str, *, top: int = 100, min_weight: float = 0.0, max_ratio: float = 0.0, filter: str | None = None,
        head: str | None = None,
    ) -> Terms: ...  # fmt: skip
    @overload
    async def expand(
        self, texts: Iterable[str], *, top: int = 100, min_weight: float = 0.0, max_ratio: float = 0.0, filter: str | None = None,
        head: str | None = None,
    ) -> list[Terms]: ...  # fmt: skip
    async def expand(
        self, texts: Any, *, top: int = 100, min_weight: float = 0.0, max_ratio: float = 0.0, filter: str | None = None,
        head: str | None = None,
    ) -> Any:  # fmt: skip
        """As `Client.expand`."""
        return await self._ask(questions.expand(texts, top, min_weight, max_ratio, filter, head))

    # The service

    async def model(self) -> dict[str, Any]:
        """As `Client.model`."""
        return await self._ask(questions.model())

    async def models(self) -> list[dict[str, Any]]:
        """As `Client.models`."""
        return await self._ask(questions.models())

    async def heads(self) -> list[dict[str, Any]]:
        """As `Client.heads`."""
        return await self._ask(questions.heads())

    async def build(self) -> dict[str, Any]:
        """As `Client.build`."""
        return await self._ask(questions.build())

    async def live(self) -> bool:
        """As `Client.live`."""
        return await self._health("/health/live")

    async def ready(self) -> bool:
        """As `Client.ready`."""
        return await self._health("/health/ready")

    async def reload(self, *, timeout: float | None = None) -> dict[str, Any]:
        """As `Client.reload`."""
        return await self._ask(questions.reload(timeout))

    async def metrics(self) -> str:
        """As `Client.metrics`."""
        return await self._ask(questions.metrics())

    # Housekeeping

    async def close(self) -> None:
        """As `Client.close`."""
        self._is_closed = True
        await self._pool.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            raise questions.missing(self, name)

    async def _health(self, route: str) -> bool:
        try:
            return await self._ask(questions.health(route))
        except questions.NO_ANSWER:
            return False

    async def _ask(self, question: Question[T]) -> T:
        if self._is_closed:
            raise ValueError("the client is closed")
        ends, parts = question.ends(), question.parts
        if len(parts) < 2:
            return question.join([await self._send(part(), ends) for part in parts])
        return question.join(await self._send_all(question, ends))

    async def _send(self, request: Request, ends: float | None) -> Any:
        call = Call.of(self._settings, request, ends)
        while True:
            try:
                return await self._pool.send(call)
            except KindredError as error:
                pause = call.pause_after(error)
            await asyncio.sleep(pause)

    async def _send_all(self, question: Question[Any], ends: float | None) -> list[Any]:
        """Several at a time. After an error no more are begun, and the first in order is raised."""
        results: list[Any] = [None] * len(question.parts)
        errors: dict[int, Exception] = {}
        todo = iter(range(len(question.parts)))

        async def work() -> None:
            for place in todo:
                try:
                    results[place] = await self._send(question.parts[place](), ends)
                except Exception as error:
                    errors[place] = error
                if errors:
                    return

        tasks = [asyncio.ensure_future(work()) for _ in range(min(self._settings.parallel, len(question.parts)))]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
        if errors:
            raise errors[min(errors)]
        return results
