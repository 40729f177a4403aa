"""The extension module. Its classes are not for users: `kindred.Model` has the documentation."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ._types import Classified, Explained, Neighbor, Ranked, Terms

# The options of questions: the kind of values, their bounds, and what a value must be.
OPTIONS: dict[str, tuple[str, Any, str]]
# The options that `nearest`, `analogy` and `rank` take.
OPTIONS_OF: dict[str, list[str]]
DEFAULT_K: int
has_cuda: bool
has_parquet: bool
version: str

_Options = dict[str, Any] | None
_Expression = str | Sequence[tuple[str, float]]
_Arrays = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]
_Wanted = tuple[int, float, float]

class Head:
    labels: list[str]

class Expander: ...

# Only in modules with CUDA. Arrays are addresses on the device; see `gpu_core::search::BorrowedTerms`.
class BorrowedTerms:
    most_texts: int
    most_tokens: int
    def __new__(cls, ordinal: int) -> BorrowedTerms: ...
    def round(self, table: tuple[int, int | None, int, int], largest_bias: float, token_norm: float, stream: int) -> None: ...
    def round_again(self, table: tuple[int, int | None, int, int], stream: int) -> bool: ...
    def touched(
        self, vectors: int, ends: Sequence[int], stream: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float32], list[int]]: ...
    def sum(
        self,
        rows: int,
        entries: tuple[int, int, int],
        to: tuple[int, int],
        shape: tuple[int, int],
        stream: int,
    ) -> None: ...

class Model:
    name: str
    version: str
    rows: int
    dim: int
    metric: str
    engine: tuple[str, str]
    @staticmethod
    def open(folder: Any, how: dict[str, Any]) -> Model: ...
    @staticmethod
    def demo(how: dict[str, Any]) -> Model: ...
    @staticmethod
    def of_frozen_array(
        array: npt.NDArray[np.float32],
        words: list[str] | None,
        metric: str,
        biases: list[float] | None,
        name: str,
        how: dict[str, Any],
    ) -> Model: ...
    def row(self, word: str) -> int | None: ...
    def word(self, row: int) -> str | None: ...
    def words(self, first: int, end: int, step: int) -> list[str]: ...
    def rows_of(self, words: list[str]) -> npt.NDArray[np.int64]: ...
    def words_of(self, rows: npt.NDArray[np.int64]) -> list[str]: ...
    def with_prefix(self, prefix: str, limit: int) -> list[str]: ...
    def suggestions(self, word: str) -> list[str]: ...
    def vectors(self) -> npt.NDArray[np.float32]: ...
    def nearest_word(self, word: str, given: _Options) -> list[Neighbor]: ...
    def nearest_row(self, row: int, given: _Options) -> list[Neighbor]: ...
    def nearest_vector(self, vector: npt.NDArray[np.float32], given: _Options) -> list[Neighbor]: ...
    def nearest_text(self, text: str, given: _Options) -> list[Neighbor]: ...
    def nearest_words(self, words: Sequence[str], given: _Options) -> list[list[Neighbor]]: ...
    def nearest_to_vectors(
        self, vectors: npt.NDArray[np.float32], given: _Options, progress: Callable[[int], object] | None
    ) -> _Arrays: ...
    def nearest_to_rows(
        self, rows: npt.NDArray[np.uint32], given: _Options, progress: Callable[[int], object] | None
    ) -> _Arrays: ...
    def analogy(self, expression: _Expression, given: _Options) -> list[Neighbor]: ...
    def analogies(self, expressions: Sequence[_Expression], given: _Options) -> list[list[Neighbor]]: ...
    def explain(self, query: _Expression, is_text: bool, given: _Options) -> tuple[list[Explained], list[Ranked]]: ...
    def rank(self, words: list[str], query: Any, given: _Options) -> list[Ranked]: ...
    def scores(self, vector: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]: ...
    def similarity(self, a: str | Sequence[str], b: str | Sequence[str]) -> float: ...
    def similarities(self, pairs: list[tuple[str, str]]) -> npt.NDArray[np.float64]: ...
    def odd_one_out(self, words: list[str]) -> list[tuple[str, float]]: ...
    def head(self, folder: Any) -> Head | None: ...
    def expander(self, folder: Any) -> Expander | None: ...
    def classify(self, head: Head, texts: list[str]) -> list[Classified | None]: ...
    def expand(self, expander: Expander, texts: list[str], wanted: _Wanted) -> list[Terms | None]: ...
    def expand_vectors(self, expander: Expander, vectors: npt.NDArray[np.float32], wanted: _Wanted) -> Terms: ...
    def evaluate(self, analogies: list[str], similarities: list[str], methods: list[str], case: str) -> str: ...
    def write_graph(
        self,
        file: Any,
        *,
        k: int,
        first_rows: int | None,
        min_score: float | None,
        replace: bool,
        progress: Callable[[int, int], object] | None,
    ) -> str: ...
    def verify(self) -> None: ...

def prepare(
    source: Any,
    out: Any,
    *,
    replace: bool,
    format: str | None,
    words: Any,
    metric: str,
    biases: Any,
    attributes: Any,
    key: str | None,
    types: list[tuple[str, str]],
    tensor: str | None,
    member: str | None,
    dim: int | None,
    limit: int | None,
    encoding: str | None,
    separator: str,
    allow_numeric_words: bool,
    skip_bad_rows: bool,
    progress: Callable[[int, int | None], object] | None,
) -> dict[str, Any]: ...
def token_rows(model: Model, texts: list[str], tokens: dict[str, Any]) -> list[npt.NDArray[np.int64]]: ...
def write_expander(
    model: Model,
    out: Any,
    weights: tuple[npt.NDArray[np.float32], npt.NDArray[np.float32] | None, npt.NDArray[np.float32] | None],
    words: list[str] | None,
    log1p: bool,
    tokens: dict[str, Any],
    description: str,
    replace: bool,
) -> None: ...
def content(folder: Any = None) -> tuple[str, int, int]: ...
