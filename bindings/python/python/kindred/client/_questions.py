"""What each method asks, and how the answers become its result. Both clients use it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlencode

from .._errors import (
    DeadlineError,
    InvalidValueError,
    KindredError,
    NotFiniteError,
    OverloadedError,
    UnavailableError,
    UnknownWordError,
    UnreachableError,
    UnsupportedError,
)
from .._expressions import expression_of, texts_of, weighted
from .._rows import whole
from .._types import Classified, Explanation, Neighbor, Neighbors, OddOneOut, Ranked, Terms
from . import _answers, _options, _problems
from ._wire import Answer, Question, Request, one

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

T = TypeVar("T")

# The service's limits for a request.
MOST_QUERIES = 1024
MOST_RESULTS = 65_536
MOST_TEXTS = 1024
# Texts are sent in pieces of about this many bytes, because a batch may have whole documents.
TEXT_BYTES = 4 << 20
# Longer addresses are refused by some proxies.
LONGEST_ADDRESS = 2000

NOT_ON_THE_WIRE = {
    "nearest_rows": "a service has no route for rows; ask for words, or for vectors",
    "scores": "a service does not send the scores of all rows; rank() gives those of given words",
    "vectors": "a service does not send its whole table; vector() gives that of a word",
    "words": "a service does not send all its words; words_with_prefix() gives the most frequent ones",
    "knn_graph": "a service makes no graphs; open the model in process, or run `kindred graph`",
    "write_graph": "a service makes no graphs; open the model in process, or run `kindred graph`",
    "evaluate": "a service measures no models; open the model in process, or run `kindred eval`",
    "verify": "a service checks its own files; ready() asks whether it answers correctly",
}


def missing(owner: object, name: str) -> AttributeError:
    """Why a client does not have an attribute."""
    if name in NOT_ON_THE_WIRE:
        return UnsupportedError(f"a client has no `{name}`: {NOT_ON_THE_WIRE[name]}")
    return AttributeError(f"{type(owner).__name__!r} object has no attribute {name!r}")


# Searches


def nearest(query: Any, k: Any, given: Mapping[str, Any]) -> Question[Any]:
    """As `Model.nearest`."""
    options, timeout = _options.read({**given, "k": k})
    if isinstance(query, (list, tuple)) and query and all(isinstance(word, str) for word in query):
        return _batch("/nearest", [{"word": word} for word in query], options, timeout)
    if isinstance(query, str):
        return one(_asked("/nearest", {"word": str(query)}, options, _answers.neighbors_of), timeout)
    from .._arrays import floats
    from ._npy import MEDIA_TYPE, encode

    vectors = floats(query, "query", (1, 2))
    if vectors.ndim == 2:
        return _array(vectors, options, timeout)
    request = Request("/nearest", _answers.neighbors_of, _options.parameters(options), encode(vectors), MEDIA_TYPE)
    return one(request, timeout)


def nearest_text(text: str, k: Any, given: Mapping[str, Any]) -> Question[list[Neighbor]]:
    """As `Model.nearest_text`."""
    options, timeout = _options.read({**given, "k": k})
    return one(_asked("/nearest", {"text": text}, options, _answers.neighbors_of), timeout)


def _array(vectors: npt.NDArray[np.float32], options: dict[str, Any], timeout: float | None) -> Question[Neighbors]:
    import numpy as np

    from ._npy import MEDIA_TYPE, decode, encode

    k, parameters = options["k"], _options.parameters(options)
    shape = len(vectors), k
    found = Neighbors(np.empty(shape, np.int64), np.empty(shape, np.float64))

    def part(start: int, end: int) -> Request:
        def read(answer: Answer) -> None:
            if answer.headers.get("content-type") != MEDIA_TYPE:
                raise answer.broken("an array")
            array = decode(answer.body)
            if array.shape != (end - start, k):
                raise answer.broken(f"an array {[end - start, k]}")
            found.indices[start:end] = array["row"]
            found.scores[start:end] = array["score"]

        body = encode(vectors[start:end])
        return Request("/nearest", read, parameters, body, MEDIA_TYPE, MEDIA_TYPE, rescue=_placed("vector", "queries", start))

    return Question(_pieces(len(vectors), _queries_at_once(options), part), lambda _: found, timeout)


def _placed(item: str | None, list: str, start: int) -> Callable[[KindredError], None]:
    """Raises the error of an item of an array, which begins at `start`, as a model in process says it; without `item`, of the only
    one."""

    def rescue(error: KindredError) -> None:
        place = getattr(error, "query", None)
        if isinstance(place, int):
            said = str(error).removeprefix(f"`{list}[{place}]`: ").partition("; an .npy answer")[0]
            error.query = start + place  # type: ignore[attr-defined]
            error.args = (said if item is None else f"{item} {start + place}: {said}",)
        raise error

    return rescue


def analogy(expression: Any, k: Any, positive: Any, negative: Any, given: Mapping[str, Any]) -> Question[Any]:
    """As `Model.analogy`."""
    options, timeout = _options.read({**given, "k": k})
    if isinstance(expression, (list, tuple)):
        return _batch("/analogy", [_words_of(expression_of(each, (), ())) for each in expression], options, timeout)
    asked = _words_of(expression_of(expression, positive, negative))
    return one(_asked("/analogy", asked, options, _answers.neighbors_of), timeout)


def explain(
    expression: Any, k: Any, text: str | None, positive: Any, negative: Any, given: Mapping[str, Any]
) -> Question[Explanation]:
    """As `Model.explain`."""
    options, timeout = _options.read({**given, "k": k})
    if text is None:
        route, asked = "/analogy", _words_of(expression_of(expression, positive, negative))
    else:
        # What a text has no use for is left out, as in process.
        options.pop("method", None)
        route, asked = "/nearest", {"text": text}
    return one(_asked(route, asked, {**options, "explain": True}, _answers.explanation), timeout)


def rank(words: str | Sequence[str], query: Any, given: Mapping[str, Any]) -> Question[list[Ranked]]:
    """As `Model.rank`."""
    options, timeout = _options.read(given)
    asked: dict[str, Any] = {"words": [words] if isinstance(words, str) else list(words), **options}
    if isinstance(query, str):
        asked["word"] = query
    elif isinstance(query, (list, tuple)):
        asked |= _words_of(weighted(query, 1.0))
    else:
        from .._arrays import floats

        asked["vector"] = _finite(floats(query, "query", (1,)))
    return one(_posted("/rank", asked, lambda answer: [_answers.ranked(each) for each in answer.json()["ranked"]]), timeout)


def similarity(a: Any, b: Any) -> Question[float]:
    """As `Model.similarity`."""
    sides = [each if isinstance(each, str) else list(each) for each in (a, b)]
    return one(_posted("/similarity", {"pairs": [sides]}, lambda answer: _answers.results(answer, _answers.score)[0]))


def similarities(pairs: Iterable[tuple[str, str]]) -> Question[npt.NDArray[np.float64]]:
    """As `Model.similarities`."""
    import numpy as np

    listed = [[a, b] for a, b in pairs]

    def part(start: int, end: int) -> Request:
        return _posted("/similarity", {"pairs": listed[start:end]}, lambda answer: _answers.results(answer, _answers.score))

    return Question(_pieces(len(listed), MOST_QUERIES, part), lambda found: np.array(sum(found, []), np.float64))


def encode(texts: str | Iterable[str], given: dict[str, Any]) -> Question[npt.NDArray[np.float32]]:
    """As `Model.encode`."""
    import numpy as np

    from ._npy import MEDIA_TYPE, decode

    listed, item = texts_of(texts), None if isinstance(texts, str) else "text"
    given = {name: value for name, value in given.items() if value is not None}
    options, _ = _options.read({"unknown": given.pop("unknown")} if "unknown" in given else {})
    options |= given

    def part(start: int, end: int) -> Request:
        def read(answer: Answer) -> npt.NDArray[np.float32]:
            array = decode(answer.body) if answer.headers.get("content-type") == MEDIA_TYPE else None
            if array is None or array.ndim != 2 or len(array) != end - start or array.dtype != np.float32:
                raise answer.broken(f"an array of {end - start} vectors")
            return array

        body = json.dumps({"texts": listed[start:end], **options}, ensure_ascii=False).encode()
        return Request("/embed", read, body=body, accepts=MEDIA_TYPE, rescue=_placed(item, "texts", start))

    def all(found: list[npt.NDArray[np.float32]]) -> npt.NDArray[np.float32]:
        return found[0][0] if isinstance(texts, str) else np.concatenate(found)

    return Question(_pieces(len(listed), MOST_TEXTS, part), all)


def odd_one_out(words: Iterable[str]) -> Question[OddOneOut]:
    """As `Model.odd_one_out`."""

    def read(answer: Answer) -> OddOneOut:
        ranked = [(each["word"], each["score"]) for each in answer.json()["ranked"]]
        return OddOneOut(ranked[-1][0], ranked)

    return one(_posted("/odd-one-out", {"words": list(words)}, read))


def count(filter: str) -> Question[int]:
    """As `Model.count`."""
    return one(_posted("/count", {"filter": filter}, lambda answer: int(answer.json()["count"])))


# Heads


def classify(texts: str | Iterable[str], head: str | None) -> Question[Any]:
    """As `Model.classify`."""
    asked: dict[str, Any] = {"scores": True}
    if head is not None:
        asked["head"] = _name(head)
    return _of_texts("/classify", texts, asked, MOST_TEXTS, _answers.classified, Classified([], [], False))


def expand(
    texts: Any, top: int, min_weight: float, max_ratio: float, filter: str | None, head: str | None
) -> Question[Any]:
    """As `Model.expand`."""
    if whole(top, (1, 1000)) is None:
        raise InvalidValueError("`top` must be a whole number from 1 to 1000", field="top")
    # A service is told only what is unusual, and refuses it with its reason.
    wanted: dict[str, Any] = {"top": int(top), "explain": True}
    for name, value in (("min_weight", min_weight), ("max_ratio", max_ratio)):
        if value != 0.0:
            wanted[name] = float(value)
    if filter is not None:
        wanted["filter"] = filter
    if head is not None:
        wanted["head"] = _name(head)
    if hasattr(texts, "dtype"):
        from .._arrays import floats
        from ._npy import MEDIA_TYPE, encode

        body = encode(floats(texts, "texts", (2,)))
        return one(Request("/expand", lambda answer: _answers.implied(answer.json()), _options.parameters(wanted), body, MEDIA_TYPE))
    together = min(MOST_TEXTS, MOST_RESULTS // int(top))
    return _of_texts("/expand", texts, wanted, together, _answers.implied, Terms([], [], False))


def _of_texts(
    route: str, texts: Any, asked: dict[str, Any], together: int, read: Callable[[Any], T], empty: T
) -> Question[Any]:
    is_one = isinstance(texts, str)
    listed: list[str] = [texts] if is_one else list(texts)
    found = [empty] * len(listed)
    places = list(range(len(listed)))

    def part(chosen: list[int]) -> Request:
        def read_all(answer: Answer) -> None:
            results = answer.json()["results"]
            if len(results) != len(chosen):
                raise answer.broken(f"{len(chosen)} results")
            for place, result in zip(chosen, results):
                if "error" not in result:
                    found[place] = read(result)
                    continue
                error = _problems.of_problem(result["error"], answer.request_id)
                # In process, a text without a known word has no labels and no terms.
                if not isinstance(error, UnknownWordError) and getattr(error, "expected", None) != "a text with at least one word":
                    raise error

        return _posted(route, {**asked, "texts": [listed[place] for place in chosen]}, read_all)

    pieces = [_later(part, chosen) for chosen in _by_size(places, lambda place: len(listed[place]), together)]
    return Question(pieces, lambda _: found[0] if is_one else found)


# Words


def word(word: str) -> Question[dict[str, Any]]:
    """What is known of a word."""
    return one(Request("/words", lambda answer: _answers.about(answer), [("word", word)]))


def row(word: str) -> Question[int]:
    """As `Model.row`."""
    return one(Request("/words", _answers.row, [("word", word)]))


def contains(word: object) -> Question[bool]:
    """Whether the model has a word."""
    if not isinstance(word, str):
        return Question([], lambda _: False)
    return one(Request("/words", lambda answer: "row" in _answers.about(answer), [("word", word)], rescue=_if_unknown(lambda _: False)))


def vector(word: str | int) -> Question[npt.NDArray[np.float32]]:
    """As `Model.vector`, of a word."""
    if not isinstance(word, str):
        raise UnsupportedError("a service gives the vector of a word only, not of a row")
    import numpy as np

    from ._npy import MEDIA_TYPE, decode

    def read(answer: Answer) -> npt.NDArray[np.float32]:
        array = decode(answer.body) if answer.headers.get("content-type") == MEDIA_TYPE else None
        if array is None or array.ndim != 1 or array.dtype != np.float32:
            raise answer.broken("a vector")
        return array

    return one(Request("/words", read, [("word", word)], accepts=MEDIA_TYPE))


def suggestions(word: str) -> Question[list[str]]:
    """As `Model.suggestions`."""
    unknown = _if_unknown(lambda error: error.unknown[0].suggestions)
    return one(Request("/words", lambda answer: _answers.about(answer)["suggestions"], [("word", word)], rescue=unknown))


def words_with_prefix(prefix: str, limit: int) -> Question[list[str]]:
    """As `Model.words_with_prefix`; at most 1000."""
    parameters = [("prefix", prefix), ("limit", str(limit))]
    return one(Request("/words", lambda answer: [each["word"] for each in answer.json()["words"]], parameters))


# The service


def model() -> Question[dict[str, Any]]:
    """Name, size, metric, engine and origin of the model."""
    return one(Request("/model", lambda answer: dict(answer.json())))


def of_model(*names: str) -> Question[Any]:
    """Some of `model`, as a tuple; one as itself."""

    def read(answer: Answer) -> Any:
        known = answer.json()
        return known[names[0]] if len(names) == 1 else tuple(known[name] for name in names)

    return one(Request("/model", read))


def models() -> Question[list[dict[str, Any]]]:
    """All models, the default one first."""
    return one(Request("/models", lambda answer: list(answer.json()["models"]), is_of_model=False))


def heads() -> Question[list[dict[str, Any]]]:
    """The heads of the model."""
    return one(Request("/heads", lambda answer: list(answer.json()["heads"])))


def build() -> Question[dict[str, Any]]:
    """The build of the program that answers."""
    return one(Request("/version", lambda answer: dict(answer.json()), is_of_model=False))


def health(route: str) -> Question[bool]:
    """Whether a route of the service's health says yes."""

    def rescue(error: KindredError) -> bool:
        if isinstance(error, (UnavailableError, OverloadedError, DeadlineError)):
            return False
        raise error

    return one(Request(route, lambda answer: bool(answer.json()), is_of_model=False, is_probe=True, rescue=rescue))


# What a probe of the health may fail by, if there is no answer.
NO_ANSWER = (UnreachableError, DeadlineError)


def reload(timeout: float | None) -> Question[dict[str, Any]]:
    """The result of a reload."""
    return one(Request("/admin/reload", lambda answer: dict(answer.json()), is_of_model=False, is_reload=True), timeout)


def metrics() -> Question[str]:
    """The metrics as text."""
    request = Request("/metrics", lambda answer: answer.body.decode(), accepts="text/plain", is_of_model=False, is_probe=True)
    return one(request)


# Requests


def _asked(route: str, asked: dict[str, Any], options: dict[str, Any], read: Callable[[Answer], Any]) -> Request:
    """A GET, which caches may answer, if it fits into an address; else a POST."""
    if all(isinstance(value, str) for value in asked.values()):
        parameters = _options.parameters({**asked, **options})
        if len(urlencode(parameters, quote_via=quote)) <= LONGEST_ADDRESS:
            return Request(route, read, parameters)
    return _posted(route, {**asked, **options}, read)


def _posted(route: str, asked: Mapping[str, Any], read: Callable[[Answer], Any]) -> Request:
    return Request(route, read, body=json.dumps(asked, ensure_ascii=False, allow_nan=False).encode())


def _batch(route: str, queries: list[dict[str, Any]], options: dict[str, Any], timeout: float | None) -> Question[list[Any]]:
    def part(start: int, end: int) -> Request:
        return _posted(route, {**options, "queries": queries[start:end]}, lambda answer: _answers.results(answer, _answers.neighbors))

    return Question(_pieces(len(queries), _queries_at_once(options), part), lambda found: sum(found, []), timeout)


def _queries_at_once(options: Mapping[str, Any]) -> int:
    return min(MOST_QUERIES, MOST_RESULTS // int(options["k"]))


def _pieces(count: int, together: int, part: Callable[[int, int], Request]) -> list[Callable[[], Request]]:
    return [_later(part, start, min(start + together, count)) for start in range(0, count, together)]


def _later(part: Callable[..., Request], *arguments: Any) -> Callable[[], Request]:
    return lambda: part(*arguments)


def _by_size(places: list[int], size: Callable[[int], int], together: int) -> list[list[int]]:
    """Places in order, up to a maximum number together, and of about `TEXT_BYTES`."""
    pieces: list[list[int]] = []
    room = 0
    for place in places:
        if not pieces or len(pieces[-1]) == together or size(place) > room:
            pieces.append([])
            room = TEXT_BYTES
        pieces[-1].append(place)
        room -= size(place)
    return pieces


def _words_of(expression: Any) -> dict[str, Any]:
    if isinstance(expression, str):
        return {"expression": expression}
    for _, weight in expression:
        if not math.isfinite(weight):
            raise NotFiniteError("the weights of the analogy are too large: the sum is not finite")
    return {"positive": [{"word": word, "weight": weight} for word, weight in expression]}


def _finite(vector: npt.NDArray[np.float32]) -> list[float]:
    """A vector for JSON, which has no place for NaN."""
    import numpy as np

    wrong = np.flatnonzero(~np.isfinite(vector))
    if wrong.size:
        raise NotFiniteError(f"component {wrong[0]} of the vector is not a finite float32")
    return [float(component) for component in vector]


def _name(head: Any) -> str:
    if not isinstance(head, str):
        expected = "the name of a head of the service, not a folder; heads() lists them"
        raise InvalidValueError(f"`head` must be {expected}", field="head", expected=expected)
    return head


def _if_unknown(answer: Callable[[UnknownWordError], T]) -> Callable[[KindredError], T]:
    def rescue(error: KindredError) -> T:
        if isinstance(error, UnknownWordError):
            return answer(error)
        raise error

    return rescue
