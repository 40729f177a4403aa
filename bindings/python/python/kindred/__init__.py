"""Exact nearest neighbours and analogies over word vectors and other embeddings.

>>> import kindred
>>> model = kindred.demo()
>>> model.nearest("frog", k=1)[0].word
'frogs'

The same query always has the same neighbours with bit-identical scores: alone or in a batch, on CPU or GPU, here or from a
service (`kindred.Client`).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from . import _kindred
from ._errors import (
    BadRowsError,
    DeadlineError,
    DimensionError,
    EngineError,
    ExpressionError,
    ForkError,
    InvalidValueError,
    KindredError,
    MethodError,
    ModelError,
    NotFiniteError,
    OverloadedError,
    QuestionError,
    ServiceError,
    UnauthorizedError,
    UnavailableError,
    UnknownWordError,
    UnreachableError,
    UnsupportedError,
    ZeroVectorError,
)
from ._model import Model
from ._table import Table
from ._types import (
    BadRow,
    Change,
    Classified,
    Contribution,
    Explained,
    Explanation,
    Label,
    Neighbor,
    Neighbors,
    OddOneOut,
    Ranked,
    RowsPage,
    StoredRow,
    Term,
    Terms,
    UnknownWord,
)
from ._words import Words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    from .client import AsyncClient, Client

    Path = str | os.PathLike[str]

__version__: str = _kindred.version


def open(
    path: Path, *, device: str = "auto", placement: str = "auto", threads: int = 0, keep_tables: bool = True
) -> Model:
    """Opens a model folder, as `prepare` writes it, and starts its engine. The vectors are mapped, not read: processes share them.

    Args:
        path: the folder.
        device: ``auto`` (a GPU if there is one, else the CPU), ``cpu``, ``cuda``, ``cuda:1``, ``cuda:0,2`` or ``cuda:all``.
        placement: on several GPUs, ``replicate``, ``shard`` or ``auto``.
        threads: of the CPU engine; 0 for one per core.
        keep_tables: whether the CPU engine keeps its derived table beside the folder, so that the next start is fast and processes
            share it.

    Raises:
        ModelError: it is no model folder, or is damaged.
        EngineError: the device is not there, or has too little memory.
    """
    keywords = dict(device=device, placement=placement, threads=threads, keep_tables=keep_tables)
    how = _how(device, placement, threads, keep_tables)
    path = os.path.abspath(path)
    return Model(_kindred.Model.open(path, how), (open, (path,), keywords))


def create_table(
    path: Path, dim: int, *, metric: str = "cosine", attributes: Mapping[str, str] | None = None, device: str = "auto",
    threads: int = 0,
) -> Table:  # fmt: skip
    """Makes a table without rows, whose rows will change, and opens it: `Table` has an example.

    Args:
        path: the folder to make.
        dim: components of each vector.
        metric: ``cosine``, or ``dot`` for the dot product.
        attributes: types by names: ``text``, ``list``, ``integer``, ``number``, ``boolean``, ``date-time`` or ``stored``.
        device, threads: as of `open`.

    Raises:
        ModelError: there is something at ``path``, or no table has such a shape.
    """
    how = _how(device, "auto", threads, True)
    path = os.path.abspath(path)
    _kindred.Table.create(path, dim, metric, list((attributes or {}).items()))
    return Table(_kindred.Table.open(path, False), how)


def open_table(
    path: Path, *, read_only: bool = False, device: str = "auto", placement: str = "auto", threads: int = 0,
    keep_tables: bool = True,
) -> Table:  # fmt: skip
    """Opens a model folder to ask about its rows as they are now, and to change them. `open` is for those that never change.

    Args:
        path: the folder, of `create_table`, `prepare` or ``kindred serve --models-dir``.
        read_only: whether it is only read, beside a process that may change it: it stays as it is now.
        device, placement, threads, keep_tables: as of `open`.

    Raises:
        ModelError: it is no model folder, is damaged, or another process changes its rows.
        EngineError: the device is not there, or has too little memory.
    """
    how = _how(device, placement, threads, keep_tables)
    return Table(_kindred.Table.open(os.path.abspath(path), read_only), how)


def demo(*, device: str = "auto", threads: int = 0) -> Model:
    """The built-in model: 30,000 English words x 100 dimensions. Its first use prepares it in the user's cache folder.

    >>> import kindred
    >>> kindred.demo().shape
    (30000, 100)
    """
    keywords = dict(device=device, threads=threads)
    how = _how(device, "auto", threads, True)
    return Model(_kindred.Model.demo(how), (demo, (), keywords))


def from_array(
    array: npt.NDArray[Any], words: Sequence[str] | None = None, metric: str = "cosine", *, biases: Any = None,
    name: str = "array", device: str = "auto", placement: str = "auto", threads: int = 0,
) -> Model:  # fmt: skip
    """A model of the rows of an array: word vectors, or embeddings of anything.

    Args:
        array: floating-point ``[rows, dim]``. It is copied, unless it is float32 in C order and it and all that it is a view of are
            read-only: answers are proved for the numbers that were there, so they must not change.
        words: a distinct word for each row; by default the row's number.
        metric: ``cosine``, or ``dot`` for the dot product.
        biases: under ``dot``, a number for each row that is added to its scores, ``[rows]``.

    Raises:
        ModelError: a component is not finite, or a word is empty or repeated.

    >>> import kindred, numpy
    >>> points = numpy.random.default_rng(0).normal(size=(1000, 16)).astype(numpy.float32)
    >>> model = kindred.from_array(points)
    >>> model.nearest(points[7], k=1)[0].row
    7
    >>> model.nearest_rows([0, 1, 2], k=5).indices.shape
    (3, 5)
    """
    from ._arrays import frozen

    how = _how(device, placement, threads, False)
    biases = None if biases is None else [float(bias) for bias in biases]
    words = None if words is None else list(words)
    array = frozen(array)
    keywords = dict(biases=biases, name=name, device=device, placement=placement, threads=threads)
    model = _kindred.Model.of_frozen_array(array, words, metric, biases, name, how)
    return Model(model, (from_array, (array, words, metric), keywords))


def prepare(
    source: Path, out: Path, *, replace: bool = False, progress: Callable[[int, int | None], object] | None = None,
    format: str | None = None, words: Path | None = None, metric: str = "cosine", biases: Path | None = None,
    attributes: Path | None = None, key: str | None = None, types: Mapping[str, str] | None = None,
    encoder: Path | None = None, vectors: Path | None = None, text: str = "text", keep_text: bool = False,
    text_weights: str | None = None, counts: Path | None = None,
    tensor: str | None = None, member: str | None = None, dim: int | None = None, skip_bad_rows: bool = False,
    allow_numeric_words: bool = False, limit: int | None = None, encoding: str | None = None, separator: str = "space",
) -> dict[str, Any]:  # fmt: skip
    """Reads a vectors file, or texts with an encoder, and writes a model folder: complete, or not at all.

    Args:
        source: GloVe, word2vec, fastText .vec or .bin, NumPy or safetensors, plain or compressed; or the folder of a static model. With
            ``encoder`` or ``vectors``, a file of texts: CSV with a header, JSON lines or Parquet.
        out: the folder to make.
        replace: whether an older model there is replaced.
        progress: called several times a second with the bytes that are read, and their number if it is known.
        format: ``glove``, ``glove-norm``, ``word2vec``, ``word2vec-bin``, ``npy`` or ``safetensors``; detected by default.
        words: the file of the words, one per line, for formats without words.
        metric: ``cosine`` or ``dot``.
        biases: a file with a number for each row, for ``dot``.
        attributes: a file that says what the rows are: CSV with a header, JSON lines or Parquet; a line for each row of ``source``, in its
            order, also for rows that are skipped, or joined by ``key``.
        key: the column of ``attributes`` with the word of a row. Rows without a line have no values. With ``encoder`` or ``vectors``,
            also the column of ``source`` that becomes the row's word; by default the number of the text, from 1.
        types: the types of attributes by their names: ``text``, ``list``, ``integer``, ``number``, ``boolean``, ``date-time`` or ``stored``; those
            of all others are told by their values.
        encoder: the folder of a static model, or a model folder, by whose words: the new model's rows are the texts of ``source``.
        vectors: instead, the array (.npy, two dimensions) of the vectors of the texts of ``source``, whose row n belongs to text n. The model
            has no encoder then, so queries come as vectors.
        text: the column of ``source`` with the text.
        keep_text: whether the texts are kept, as the attribute that ``text`` names.
        text_weights: ``sif`` weighs the words of texts by a / (a + p) with a = 0.001, so frequent words count less. The probability p of a
            word is estimated from the rank of its row by Zipf's law (the first row has the most frequent word), or from ``counts``.
        counts: the file with the count of each word for ``text_weights``: a word and a whole number per line.
        tensor: the tensor of a safetensors file, if it has several.
        member: the member of a zip archive, if it has several.
        dim: components per row, if the file does not say.
        skip_bad_rows: whether invalid rows are counted and left out, instead of an error; more than half must be valid.
        allow_numeric_words: whether the first field of each line is its word, even if all of these are numbers; with ``words``,
            each line of that file, even if all of these end in numbers. If ``dim`` or a header gives the components per row, words
            may also end in a number after a space.
        limit: maximum rows that are read, from the first; invalid and repeated rows count, too. The rest of the file is read for
            its checksum only.
        encoding: of text in ``source``, ``words``, ``biases``, ``attributes`` and ``counts``: a WHATWG name such as ``latin1``, ``shift_jis`` or ``utf-16le``;
            by default UTF-8. A byte order mark overrides it.
        separator: the character between the fields of text that contains its words: ``space``, ``tab`` or ``comma``.

    Returns:
        A dictionary of ``format``, ``rows``, ``dim``, ``bad_rows_skipped``, ``first_bad_row``, ``duplicate_words_dropped``,
        ``attributes``, each with ``name``, ``type`` and the numbers of ``distinct`` and ``missing`` values, and ``warnings``, such as
        one about empty lines at the end.

    Raises:
        ModelError: with the line that can't be read, and the cure.
    """
    texts = None if encoder is None and vectors is None else (encoder, vectors, text, keep_text)
    return _kindred.prepare(
        source, out, replace=replace, format=format, words=words, metric=metric, biases=biases, attributes=attributes, key=key,
        types=list((types or {}).items()), texts=texts, text_weights=text_weights, counts=counts, tensor=tensor, member=member,
        dim=dim, limit=limit, encoding=encoding, separator=separator, allow_numeric_words=allow_numeric_words, skip_bad_rows=skip_bad_rows, progress=progress,
    )  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in ("AsyncClient", "Client"):
        from . import client

        return getattr(client, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _how(device: str, placement: str, threads: int, keep_tables: bool) -> dict[str, Any]:
    return dict(device=device, placement=placement, threads=threads, keep_tables=keep_tables)


__all__ = [
    "AsyncClient", "BadRow", "BadRowsError", "Change", "Classified", "Client", "Contribution", "DeadlineError", "DimensionError",
    "EngineError", "Explained", "Explanation", "ExpressionError", "ForkError", "InvalidValueError", "KindredError", "Label",
    "MethodError", "Model", "ModelError", "Neighbor", "Neighbors", "NotFiniteError", "OddOneOut", "OverloadedError",
    "QuestionError", "Ranked", "RowsPage", "ServiceError", "StoredRow", "Table", "Term", "Terms", "UnauthorizedError", "UnavailableError",
    "UnknownWord", "UnknownWordError", "UnreachableError", "UnsupportedError", "Words", "ZeroVectorError", "create_table", "demo",
    "from_array", "open", "open_table", "prepare",
]  # fmt: skip
