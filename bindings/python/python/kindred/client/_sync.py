"""The client for programs with threads."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, overload

from .._errors import KindredError
from .._types import Classified, Explanation, Neighbor, Neighbors, OddOneOut, Ranked, Terms
from . import _questions as questions
from ._needs import needed
from ._settings import checked
from ._tables import Tables
from ._wire import Call, Question, Request

if TYPE_CHECKING:
    import ssl

    import httpx
    import numpy as np
    import numpy.typing as npt
    from typing_extensions import Unpack

    from .._options import AnalogyOptions, NearestOptions, RankOptions, SearchOptions
    from ._pool import Pool

T = TypeVar("T")


class Client(Tables):
    """Asks a Kindred service. It has the methods of `kindred.Model`, with the same arguments, results and exceptions.

    Any number of threads can share one, and should: they share its connections. It can be pickled; its key then is in the pickle.
    Close it by ``close()`` or a ``with`` block::

        with kindred.Client("http://127.0.0.1:8080") as model:
            model.nearest("frog", k=3)

    Needs httpx: ``pip install kindred-vectors[client]``.

    Args:
        base_url: where the service is, with the path that a proxy may put before it.
        model: the name of a model; the service's default model without it.
        api_key: if the service uses keys.
        timeout: seconds that a request may take with all its attempts; None for no limit. The option ``timeout_ms`` of a call takes
            its place, for the whole call. Looking up the host's name is not interrupted.
        retries: how often a request is sent again, 0 to 10: after the statuses 429 and 503, and if there was no answer. ``reload``
            and the health checks are never repeated, and a change without an idempotency key is only after 429.
        max_retry_after: if the service asks to wait longer, in seconds, the call fails at once.
        parallel: how many requests of one call are under way at the same time, if it is cut into several.
        verify: for https, whether certificates are checked, or an ``ssl.SSLContext``.
        http_client: an ``httpx.Client`` to send with, such as one for a proxy. It is not closed. Without it, proxies of the
            environment are not used. With it, a service that sends its answer in tiny pieces may take up to twice the timeout.

    Raises:
        UnreachableError: there was no answer.
        DeadlineError: there was none in time.
        OverloadedError, UnavailableError: the service can't answer now, with ``retry_after``.
        UnauthorizedError: the API key is missing or wrong.
        ServiceError: any other failure of a service or a proxy.
    """

    def __init__(
        self, base_url: str, *, model: str | None = None, api_key: str | None = None, timeout: float | None = 30.0,
        retries: int = 2, max_retry_after: float = 10.0, parallel: int = 2, verify: ssl.SSLContext | bool = True,
        http_client: httpx.Client | None = None,
    ) -> None:  # fmt: skip
        self._settings = checked(
            base_url, model=model, api_key=api_key, timeout=timeout, retries=retries, max_retry_after=max_retry_after,
            parallel=parallel, verify=verify,
        )  # fmt: skip
        keywords = dict(
            model=model, api_key=api_key, timeout=timeout, retries=retries, max_retry_after=max_retry_after, parallel=parallel,
            verify=verify, http_client=http_client,
        )  # fmt: skip
        self._again = (base_url, keywords)
        self._own = http_client
        self._lock = threading.Lock()
        self._is_closed = False
        self._open()

    # What it is

    @property
    def name(self) -> str:
        """The model's name. This and the other properties ask the service each time: a reload may change them."""
        return str(self._ask(questions.of_model("name")))

    @property
    def version(self) -> str:
        """The version of the model's content."""
        return str(self._ask(questions.of_model("version")))

    @property
    def metric(self) -> str:
        """``cosine`` or ``dot``."""
        return str(self._ask(questions.of_model("metric")))

    @property
    def dim(self) -> int:
        """Components of each vector."""
        return int(self._ask(questions.of_model("dim")))

    @property
    def shape(self) -> tuple[int, int]:
        """``(rows, dim)``."""
        rows, dim = self._ask(questions.of_model("rows", "dim"))
        return rows, dim

    @property
    def device(self) -> str:
        """What searches, such as ``cpu`` or ``cuda``, with details."""
        engine = self._ask(questions.of_model("engine"))
        return f"{engine['name']} ({engine['detail']})" if engine["detail"] else str(engine["name"])

    def row(self, word: str) -> int:
        """The row of a word, from 0; `UnknownWordError` with suggestions if there is none."""
        return self._ask(questions.row(word))

    def vector(self, word: str) -> npt.NDArray[np.float32]:
        """The vector of a word, float32 ``[dim]``, read-only."""
        return self._ask(questions.vector(word))

    def __len__(self) -> int:
        return int(self._ask(questions.of_model("rows")))

    def __bool__(self) -> bool:
        # Else `if client:` would send a request.
        return True

    def __contains__(self, word: object) -> bool:
        return self._ask(questions.contains(word))

    def __getitem__(self, word: str) -> npt.NDArray[np.float32]:
        return self.vector(word)

    # Without it, Python would ask for the vectors of 0, 1, 2 and so on.
    __iter__ = None

    def __repr__(self) -> str:
        return f"<kindred.Client {self._settings.base}{self._settings.of_model}>"

    # Searches

    @overload
    def nearest(self, query: str, k: int = 10, **options: Unpack[NearestOptions]) -> list[Neighbor]: ...
    @overload
    def nearest(
        self, query: list[str] | tuple[str, ...], k: int = 10, **options: Unpack[NearestOptions]
    ) -> list[list[Neighbor]]: ...
    @overload
    def nearest(
        self, query: npt.NDArray[Any], k: int = 10, **options: Unpack[SearchOptions]
    ) -> list[Neighbor] | Neighbors: ...
    @overload
    def nearest(self, query: Sequence[float], k: int = 10, **options: Unpack[SearchOptions]) -> list[Neighbor]: ...
    def nearest(self, query: Any, k: int = 10, **options: Any) -> Any:
        """The k nearest neighbours of a word, words, a vector ``[dim]`` or vectors ``[n, dim]``, as `Model.nearest`.

        Vectors travel in binary. Large batches are cut into requests that the service takes.
        """
        return self._ask(questions.nearest(query, k, options))

    def nearest_text(self, text: str, k: int = 10, **options: Unpack[NearestOptions]) -> list[Neighbor]:
        """The words nearest to the sum of a text's words. Words that the model does not have are left out."""
        return self._ask(questions.nearest_text(text, k, options))

    @overload
    def analogy(
        self, expression: str | None = None, k: int = 10, *, positive: Any = (), negative: Any = (),
        **options: Unpack[AnalogyOptions],
    ) -> list[Neighbor]: ...
    @overload
    def analogy(
        self, expression: list[str], k: int = 10, **options: Unpack[AnalogyOptions]
    ) -> list[list[Neighbor]]: ...
    def analogy(
        self, expression: Any = None, k: int = 10, *, positive: Any = (), negative: Any = (), **options: Any
    ) -> Any:
        """The words nearest to an expression such as ``"king - man + woman"``, or to each of a list, as `Model.analogy`."""
        return self._ask(questions.analogy(expression, k, positive, negative, options))

    def explain(
        self, expression: str | None = None, k: int = 10, *, text: str | None = None, positive: Any = (), negative: Any = (),
        **options: Unpack[AnalogyOptions],
    ) -> Explanation:  # fmt: skip
        """As `analogy` (or `nearest_text`), with what each word contributes to each score."""
        return self._ask(questions.explain(expression, k, text, positive, negative, options))

    def rank(self, words: str | Sequence[str], query: Any, **options: Unpack[RankOptions]) -> list[Ranked]:
        """The ranks of words among all neighbours of a word, a vector ``[dim]``, or pairs ``(word, weight)``, as `Model.rank`."""
        return self._ask(questions.rank(words, query, options))

    # Scores without a search

    def similarity(self, a: str | Sequence[str], b: str | Sequence[str]) -> float:
        """How alike two words or sets of words are: their cosine, or their dot product under the metric ``dot``."""
        return self._ask(questions.similarity(a, b))

    def similarities(self, pairs: Iterable[tuple[str, str]]) -> npt.NDArray[np.float64]:
        """The similarity of each pair of words, float64 ``[n]``."""
        return self._ask(questions.similarities(pairs))

    def encode(
        self,
        texts: str | Iterable[str],
        *,
        unknown: str | None = None,
        normalize: bool | None = None,
        truncate: bool | None = None,
    ) -> npt.NDArray[np.float32]:
        """The vector of a text, float32 ``[dim]``, or of each of several, ``[texts, dim]``, as `Model.encode`."""
        return self._ask(questions.encode(texts, {"unknown": unknown, "normalize": normalize, "truncate": truncate}))

    def odd_one_out(self, words: Iterable[str]) -> OddOneOut:
        """The word that is least like all of them together. 3 to 256 words."""
        return self._ask(questions.odd_one_out(words))

    def count(self, filter: str) -> int:
        """How many rows meet a filter over the model's attributes and words."""
        return self._ask(questions.count(filter))

    def suggestions(self, word: str) -> list[str]:
        """Words of the model that resemble a word, the likeliest first."""
        return self._ask(questions.suggestions(word))

    def words_with_prefix(self, prefix: str, limit: int = 10) -> list[str]:
        """The most frequent words that begin with ``prefix``, at most 1000."""
        return self._ask(questions.words_with_prefix(prefix, limit))

    def word(self, word: str) -> dict[str, Any]:
        """What is known of a word: ``word``, ``row``, ``norm`` and ``suggestions``; in the place of ``row``, ``ngrams`` of a word
        that has the vector of its subwords."""
        return self._ask(questions.word(word))

    # Heads

    @overload
    def classify(  # type: ignore[overload-overlap]
        self, texts: str, *, head: str | None = None
    ) -> Classified: ...
    @overload
    def classify(self, texts: Iterable[str], *, head: str | None = None) -> list[Classified]: ...
    def classify(self, texts: str | Iterable[str], *, head: str | None = None) -> Any:
        """The labels of a text, or of each of some texts, as `Model.classify`; ``head`` is the name of one of `heads`."""
        return self._ask(questions.classify(texts, head))

    @overload
    def expand(  # type: ignore[overload-overlap]
        self, texts: str, *, top: int = 100, min_weight: float = 0.0, max_ratio: float = 0.0, filter: str | None = None,
        head: str | None = None,
    ) -> Terms: ...  # fmt: skip
    @overload
    def expand(
        self, texts: Iterable[str], *, top: int = 100, min_weight: float = 0.0, max_ratio: float = 0.0, filter: str | None = None,
        head: str | None = None,
    ) -> list[Terms]: ...  # fmt: skip
    def expand(
        self, texts: Any, *, top: int = 100, min_weight: float = 0.0, max_ratio: float = 0.0, filter: str | None = None,
        head: str | None = None,
    ) -> Any:  # fmt: skip
        """The terms that a text, or each of some texts, or the vectors of one text's tokens ``[tokens, dim]``, implies.

        As `Model.expand`; ``head`` is the name of one of `heads`.
        """
        return self._ask(questions.expand(texts, top, min_weight, max_ratio, filter, head))

    # The service

    def model(self) -> dict[str, Any]:
        """Name, version, size, metric, engine and origin of the model."""
        return self._ask(questions.model())

    def models(self) -> list[dict[str, Any]]:
        """All models of the service, each as `model`; the default one first."""
        return self._ask(questions.models())

    def heads(self) -> list[dict[str, Any]]:
        """The heads of the model, and how they were made."""
        return self._ask(questions.heads())

    def build(self) -> dict[str, Any]:
        """Version, commit and features of the program that answers."""
        return self._ask(questions.build())

    def live(self) -> bool:
        """Whether the process responds. Asked once, and False if there is no answer."""
        return self._health("/health/live")

    def ready(self) -> bool:
        """Whether the service answers questions correctly. Asked once, and False if there is no answer."""
        return self._health("/health/ready")

    def reload(self, *, timeout: float | None = None) -> dict[str, Any]:
        """Loads models, keys and certificates again. Needs an admin key. Sent once, whatever happens.

        Args:
            timeout: seconds, instead of the client's: large models take a while.
        """
        return self._ask(questions.reload(timeout))

    def metrics(self) -> str:
        """The metrics of the service, in Prometheus' text format."""
        return self._ask(questions.metrics())

    # Housekeeping

    def close(self) -> None:
        """Closes the connections. The client can't be used afterwards."""
        self._is_closed = True
        self._pool.close()
        if self._threads is not None:
            self._threads.shutdown(wait=False)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        # Another process has connections of its own.
        return _again, (*self._again, self._settings.min_position)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            raise questions.missing(self, name)

    def _open(self) -> None:
        self._pool: Pool = needed().Pool(self._settings, self._own)
        self._threads: ThreadPoolExecutor | None = None
        self._process = os.getpid()

    def _health(self, route: str) -> bool:
        try:
            return self._ask(questions.health(route))
        except questions.NO_ANSWER:
            return False

    def _ask(self, question: Question[T]) -> T:
        if self._is_closed:
            raise ValueError("the client is closed")
        if self._process != os.getpid():
            # After a fork, the connections belong to the parent.
            with self._lock:
                if self._process != os.getpid():
                    self._open()
        ends, parts = question.ends(), question.parts
        if len(parts) < 2:
            return question.join([self._send(part(), ends) for part in parts])
        return question.join(self._send_all(question, ends))

    def _send(self, request: Request, ends: float | None) -> Any:
        call = Call.of(self._settings, request, ends)
        while True:
            try:
                return self._pool.send(call)
            except KindredError as error:
                pause = call.pause_after(error)
            time.sleep(pause)

    def _send_all(self, question: Question[Any], ends: float | None) -> list[Any]:
        """Several at a time, in this thread and in others. After an error no more are begun, and the first in order is raised."""
        results: list[Any] = [None] * len(question.parts)
        errors: dict[int, Exception] = {}
        todo = _Shared(iter(range(len(question.parts))), errors)

        def work() -> None:
            for place in todo:
                try:
                    results[place] = self._send(question.parts[place](), ends)
                except Exception as error:
                    errors[place] = error

        with self._lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self._settings.parallel, "kindred-client")
        helpers = [self._threads.submit(work) for _ in range(min(self._settings.parallel, len(question.parts)) - 1)]
        try:
            work()
        except BaseException:
            # Ctrl-C: the helpers end with their request.
            errors.setdefault(-1, RuntimeError("interrupted"))
            raise
        for helper in helpers:
            if not helper.cancel():
                helper.result()
        if errors:
            raise errors[min(errors)]
        return results


def _again(base_url: str, keywords: dict[str, Any], min_position: str | None) -> Client:
    client = Client(base_url, **keywords)
    return client if min_position is None else client.after(min_position)


class _Shared(Iterator[int]):
    """Places for several threads, until there is an error."""

    def __init__(self, places: Iterator[int], errors: dict[int, Exception]) -> None:
        self._places, self._errors, self._lock = places, errors, threading.Lock()

    def __next__(self) -> int:
        with self._lock:
            if self._errors:
                raise StopIteration
            return next(self._places)
