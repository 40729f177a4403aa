"""Which terms texts touch: on a GPU by a certified search, elsewhere by products of some terms at a time."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from .. import _kindred
from .._errors import NotFiniteError

if TYPE_CHECKING:
    from collections.abc import Sequence

# The most components of a vector, with its bias, that the search takes.
_MOST_COMPONENTS = 4096

# Forward passes by products after one in which most texts touched more terms than the search merges.
_PASSES_BY_PRODUCTS = 15

# Bytes of products at a time.
_PRODUCT_BYTES = 1 << 28

_SEARCHED_TYPES = (torch.float32, torch.bfloat16, torch.float16)


class Touched(NamedTuple):
    """Terms above zero, ordered by text, then by term. All are ``[entries]``: the text, the term, the first token of the maximum (among
    the tokens of all texts) as int64, and the maximum."""

    texts: torch.Tensor
    terms: torch.Tensor
    tokens: torch.Tensor
    values: torch.Tensor


class Terms:
    """What a head keeps on a GPU beside its parameters: the terms rounded to 8 bits, a byte for each component.

    It is made in the first forward pass, and again after the parameters have changed, which their version counters tell, as they tell
    autograd.
    """

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._on_device: Any = None
        self._device: torch.device | None = None
        # What the rounded terms were made of, and copies of it where the search can't read it as it is.
        self._made_of: tuple[Any, ...] = ()
        self._copies: dict[str, torch.Tensor] = {}
        self._by_products = 0

    def __deepcopy__(self, memo: Any) -> Terms:
        return Terms()

    def __reduce__(self) -> tuple[type[Terms], tuple[()]]:
        return Terms, ()

    def changed(self) -> None:
        """Says that the parameters may have changed."""
        self._made_of = ()

    def touched(self, vectors: torch.Tensor, ends: Sequence[int], weight: torch.Tensor, bias: torch.Tensor | None) -> Touched:
        """The terms above zero. ``vectors`` are those of the texts' tokens ``[tokens, components]``, one text after the other; each
        text ends at a token."""
        if not torch.isfinite(vectors).all():
            raise NotFiniteError("the tokens' vectors have values that are not finite")
        if not _can_search(vectors, weight, bias):
            return by_products(vectors, ends, weight, bias)
        if self._by_products > 0:
            # As often happens when a training begins.
            self._by_products -= 1
            return by_products(vectors, ends, weight, bias)
        vectors = vectors.detach().to(torch.float32).contiguous()
        weight, bias = self._updated(vectors, weight, bias)
        parts, start = [], 0
        while start < len(ends):
            first = ends[start - 1] if start > 0 else 0
            end = self._fitting(ends, start, first)
            if end == start:
                # One text with more tokens than the search takes.
                end = start + 1
                found = by_products(vectors[first : ends[start]], [ends[start] - first], weight, bias)
            else:
                found = self._search(vectors[first : ends[end - 1]], [one - first for one in ends[start:end]], weight, bias)
            parts.append(Touched(found.texts + start, found.terms, found.tokens + first, found.values))
            start = end
        return _joined(parts, vectors.device)

    def rows(self, weight: torch.Tensor) -> torch.Tensor:
        """The terms' vectors in float32 if the search has such a copy of them as they are, or else themselves."""
        is_copied = "weight" in self._copies and self._made_of[:1] == (_state(weight),)
        return self._copies["weight"] if is_copied else weight

    def start_sums(self, rows: torch.Tensor, entries: tuple[torch.Tensor, ...], to: tuple[torch.Tensor, torch.Tensor]) -> None:
        """Starts sums of rows with weights on the GPU. ``entries`` are indices, weights and where each group begins, and at last ends;
        ``to`` are the sums ``[groups, components]`` and the sums of the weights."""
        indices, weights, begins = entries
        sums, totals = to
        assert {one.dtype for one in (rows, weights, sums, totals)} == {torch.float32}
        assert indices.dtype == begins.dtype == torch.int32
        assert all(one.is_contiguous() and one.device == self._device for one in (rows, *entries, *to))
        groups, components = sums.shape
        assert len(begins) == groups + 1 == len(totals) + 1 and len(indices) == len(weights) and components == rows.shape[1]
        addresses = tuple(one.data_ptr() for one in (indices, weights, begins))
        self._on_device.sum(rows.data_ptr(), addresses, (sums.data_ptr(), totals.data_ptr()), (groups, components), _stream(rows.device))

    @property
    def is_on_device(self) -> bool:
        """Whether the last texts were searched on a GPU."""
        return self._on_device is not None

    def _fitting(self, ends: Sequence[int], start: int, first: int) -> int:
        """The text up to which a pass takes texts."""
        end = start
        most_texts, most_tokens = self._on_device.most_texts, self._on_device.most_tokens
        while end < len(ends) and end - start < most_texts and ends[end] - first <= most_tokens:
            end += 1
        return end

    def _search(self, vectors: torch.Tensor, ends: list[int], weight: torch.Tensor, bias: torch.Tensor | None) -> Touched:
        *arrays, over = self._on_device.touched(vectors.data_ptr(), ends, _stream(vectors.device))
        found = Touched(*(torch.from_numpy(array).to(vectors.device) for array in arrays))
        if not over:
            return found
        # Texts that touch many terms.
        if 2 * len(over) > len(ends):
            self._by_products = _PASSES_BY_PRODUCTS
        starts = [ends[text - 1] if text > 0 else 0 for text in over]
        lengths = [ends[text] - start for text, start in zip(over, starts)]
        of_texts = [torch.arange(start, ends[text], device=vectors.device) for text, start in zip(over, starts)]
        tokens = torch.cat(of_texts)
        ends_of = torch.tensor(lengths).cumsum(0).tolist()
        rest = by_products(vectors[tokens], ends_of, weight, bias)
        texts = torch.tensor(over, device=vectors.device)[rest.texts]
        both = _joined([found, Touched(texts, rest.terms, tokens[rest.tokens], rest.values)], vectors.device)
        order = torch.argsort(both.texts, stable=True)
        return Touched(*(each[order] for each in both))

    def _updated(
        self, vectors: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Weight and bias as the search reads them, with the rounded terms up to date."""
        if self._device != weight.device:
            self._forget()
            self._on_device = _kindred.BorrowedTerms(weight.device.index or 0)
            self._device = weight.device
        made_of = tuple(_state(one) for one in (weight, bias) if one is not None)
        is_up_to_date = made_of == self._made_of
        weight = self._readable("weight", weight, is_up_to_date)
        bias = None if bias is None else self._readable("bias", bias, is_up_to_date)
        if not is_up_to_date:
            self._made_of = ()
            self._round(vectors, weight, bias)
            self._made_of = made_of
        return weight, bias

    def _readable(self, name: str, tensor: torch.Tensor, is_up_to_date: bool) -> torch.Tensor:
        """A tensor as the search can read it: itself, or a copy in float32."""
        tensor = tensor.detach()
        if tensor.dtype == torch.float32 and tensor.is_contiguous():
            self._copies.pop(name, None)
            return tensor
        copy = self._copies.get(name)
        if copy is None or copy.shape != tensor.shape:
            self._copies[name] = tensor.to(torch.float32, memory_format=torch.contiguous_format, copy=True)
        elif not is_up_to_date:
            copy.copy_(tensor)
        return self._copies[name]

    def _round(self, vectors: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
        table = (weight.data_ptr(), None if bias is None else bias.data_ptr(), *weight.shape)
        stream = _stream(weight.device)
        if self._on_device.round_again(table, stream):
            return
        largest_bias = 0.0 if bias is None else float(bias.abs().max())
        token_norm = float(torch.linalg.vector_norm(vectors, dim=1).mean()) if len(vectors) > 0 else 1.0
        try:
            self._on_device.round(table, largest_bias, token_norm, stream)
        except MemoryError:
            # PyTorch keeps memory that it does not use.
            torch.cuda.empty_cache()
            try:
                self._on_device.round(table, largest_bias, token_norm, stream)
            except MemoryError as error:
                raise torch.OutOfMemoryError(str(error)) from None


def by_products(vectors: torch.Tensor, ends: Sequence[int], weight: torch.Tensor, bias: torch.Tensor | None) -> Touched:
    """As `Terms.touched`, by products in float64 of all tokens and some terms at a time."""
    device, texts = vectors.device, len(ends)
    lengths = torch.tensor(ends, device=device).diff(prepend=torch.zeros(1, dtype=torch.long, device=device))
    starts = torch.tensor(ends, device=device) - lengths
    longest = int(lengths.max()) if texts > 0 else 0
    if longest == 0:
        return _joined([], device)
    # [texts, longest]: the tokens of each text; those after its end do not count.
    position = torch.arange(longest, device=device)
    counts = position < lengths[:, None]
    padded = vectors.detach().to(torch.float64)[torch.where(counts, starts[:, None] + position, 0)]
    together = max(1, _PRODUCT_BYTES // (8 * texts * longest))
    parts = []
    for first in range(0, len(weight), together):
        some = weight.detach()[first : first + together].to(torch.float64)
        scores = padded @ some.T
        if bias is not None:
            scores += bias.detach()[first : first + together]
        if not torch.isfinite(scores).all():
            raise NotFiniteError("the weight or the bias has values that are not finite")
        scores.masked_fill_(~counts[:, :, None], -torch.inf)
        most, at = scores.max(dim=1)
        text, term = (most > 0).nonzero(as_tuple=True)
        parts.append(Touched(text, term + first, starts[text] + at[text, term], most[text, term]))
    found = _joined(parts, device)
    order = torch.argsort(found.texts, stable=True)
    values = found.values.to(torch.float64 if vectors.dtype == torch.float64 else torch.float32)
    return Touched(found.texts[order], found.terms[order], found.tokens[order], values[order])


def _can_search(vectors: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> bool:
    if not vectors.is_cuda or any(one is not None and one.dtype not in _SEARCHED_TYPES for one in (vectors, weight, bias)):
        return False
    if not _kindred.has_cuda:
        warnings.warn("this kindred was built without CUDA, so kindred.torch makes products on the GPU, which is slower", stacklevel=4)
        return False
    return len(weight) > 0 and 0 < weight.shape[1] < _MOST_COMPONENTS


def _state(tensor: torch.Tensor) -> tuple[Any, ...]:
    """What changes with a tensor's values."""
    return tensor.data_ptr(), tensor._version, tensor.dtype


def _stream(device: torch.device) -> int:
    return int(torch.cuda.current_stream(device).cuda_stream)


def _joined(parts: list[Touched], device: torch.device) -> Touched:
    if len(parts) == 1:
        return parts[0]
    if not parts:
        none = torch.empty(0, dtype=torch.long, device=device)
        return Touched(none, none, none, torch.empty(0, device=device))
    return Touched(*(torch.cat(each) for each in zip(*parts)))
