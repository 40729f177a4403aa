"""The activations and their gradients, for autograd.

Formulas, with g the derivative of a loss by an activation f, and l* the first position of its maximum:

    dW[v]    = sum over texts b with f[b, v] > 0 of g[b, v] · x[b, l*]
    db[v]    = sum over texts b with f[b, v] > 0 of g[b, v]
    dX[b, l] = sum over terms v with l* = l      of g[b, v] · w[v]

Each sum is in float64, in a fixed order, and rounded once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.autograd.function import once_differentiable

from ._terms import Terms

if TYPE_CHECKING:
    from collections.abc import Sequence

# Components of products at a time.
_TOGETHER = 1 << 24


@torch.compiler.disable
def splade(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    *,
    mask: torch.Tensor | None = None,
    log1p: bool = False,
    sparse_grad: bool = False,
    terms: Terms | None = None,
) -> torch.Tensor:
    """``relu(max over tokens of (x · w + bias))``, as a coalesced sparse tensor ``[texts, terms]`` of float32 (float64 for float64).

    Args:
        x: the vectors of the texts' tokens, ``[texts, tokens, components]``.
        weight: the terms' vectors, ``[terms, components]``.
        bias: ``[terms]``.
        mask: ``[texts, tokens]``: false or zero for tokens that do not count.
        log1p: whether ``log1p`` is applied.
        sparse_grad: as in `SpladeHead`.
        terms: what is kept on a GPU for these terms. Without it, it is made in each call.

    Raises:
        ValueError: shapes that do not fit, or tensors of several devices.
        NotFiniteError: vectors or biases that are not finite.

    >>> x, weight = torch.tensor([[[1.0, 0.0], [0.0, 2.0]]]), torch.tensor([[1.0, 1.0], [-1.0, 0.5], [-1.0, -1.0]])
    >>> splade(x, weight).to_dense()
    tensor([[2., 1., 0.]])
    """
    _check(x, weight, bias, mask)
    count, length, components = x.shape
    if mask is None:
        vectors, ends = x.reshape(-1, components), [length * (text + 1) for text in range(count)]
    else:
        mask = mask.to(torch.bool)
        vectors, ends = x[mask], mask.sum(dim=1).cumsum(0).tolist()
    terms = Terms() if terms is None else terms
    values, texts, ids = Splade.apply(vectors, weight, bias, ends, sparse_grad, terms)
    # Autograd has no sparse derivative of `log1p`, but one of values.
    values = torch.log1p(values) if log1p else values
    return torch.sparse_coo_tensor(torch.stack((texts, ids)), values, (count, len(weight)), check_invariants=False, is_coalesced=True)


def _check(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, mask: torch.Tensor | None) -> None:
    if x.dim() != 3 or weight.dim() != 2 or x.shape[2] != weight.shape[1]:
        raise ValueError(
            f"x must be [texts, tokens, components] and weight [terms, components], with as many components; they are {list(x.shape)} and "
            f"{list(weight.shape)}"
        )
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(f"bias must be [{len(weight)}], one number for each term; it is {list(bias.shape)}")
    if mask is not None and mask.shape != x.shape[:2]:
        raise ValueError(f"mask must be {list(x.shape[:2])}, one value for each token; it is {list(mask.shape)}")
    devices = {str(one.device) for one in (x, weight, bias, mask) if one is not None}
    if len(devices) > 1:
        raise ValueError(f"x, weight, bias and mask must be on one device; they are on {', '.join(sorted(devices))}")


class Splade(torch.autograd.Function):
    """The activations above zero of packed texts: their values, texts and terms, each ``[entries]``.

    Takes the tokens' vectors ``[tokens, components]``, ``weight``, ``bias``, the ends of texts, ``sparse_grad`` and `Terms`; see `splade`.
    """

    @staticmethod
    def forward(
        ctx: Any,
        vectors: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor | None,
        ends: Sequence[int],
        sparse_grad: bool,
        terms: Terms,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        with torch.autocast(vectors.device.type, enabled=False):
            found = terms.touched(vectors, ends, weight, bias)
        ctx.save_for_backward(vectors, weight, found.terms, found.tokens)
        ctx.bias_dtype = None if bias is None else bias.dtype
        ctx.sparse_grad, ctx.of = sparse_grad, terms
        ctx.mark_non_differentiable(found.texts, found.terms)
        return found.values, found.texts, found.terms

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradients: torch.Tensor, *_: Any) -> tuple[torch.Tensor | None, ...]:
        vectors, weight, ids, tokens = ctx.saved_tensors
        of_vectors, of_weight, of_bias = ctx.needs_input_grad[:3]
        with torch.autocast(vectors.device.type, enabled=False):
            gradients = gradients.contiguous()
            d_vectors = d_weight = d_bias = None
            if of_weight or of_bias:
                groups = _Groups(ids, tokens, gradients)
                sums, totals = groups.sums(vectors, ctx.of)
                if of_weight and ctx.sparse_grad:
                    d_weight = torch.sparse_coo_tensor(
                        groups.targets[None], sums.to(weight.dtype), weight.shape, check_invariants=False, is_coalesced=True
                    )
                elif of_weight:
                    d_weight = groups.spread(sums, weight)
                if of_bias:
                    d_bias = totals.new_zeros(len(weight)).index_copy_(0, groups.targets, totals).to(ctx.bias_dtype)
            if of_vectors:
                groups = _Groups(tokens, ids, gradients)
                d_vectors = groups.spread(groups.sums(ctx.of.rows(weight), ctx.of)[0], vectors)
        return d_vectors, d_weight, d_bias, None, None, None


class _Groups:
    """Entries in groups, and those of a group in their order."""

    def __init__(self, groups: torch.Tensor, indices: torch.Tensor, weights: torch.Tensor) -> None:
        groups, order = torch.sort(groups, stable=True)
        self.indices, self.weights = indices[order], weights[order]
        # [groups], ascending.
        self.targets, self.counts = torch.unique_consecutive(groups, return_counts=True)

    def sums(self, rows: torch.Tensor, terms: Terms) -> tuple[torch.Tensor, torch.Tensor]:
        """The sum of each group's rows with their weights, ``[groups, components]``, and the sum of its weights."""
        count = len(self.targets)
        ends = self.counts.cumsum(0)
        if terms.is_on_device and self.weights.dtype == torch.float32:
            rows = rows.detach().to(torch.float32).contiguous()
            begins = torch.nn.functional.pad(ends, (1, 0)).to(torch.int32)
            sums = rows.new_empty(count, rows.shape[1])
            totals = rows.new_empty(count)
            terms.start_sums(rows, (self.indices.to(torch.int32), self.weights, begins), (sums, totals))
            return sums, totals
        group = torch.arange(count, device=rows.device).repeat_interleave(self.counts)
        weights = self.weights.to(torch.float64)
        sums = weights.new_zeros(count, rows.shape[1])
        together = max(1, _TOGETHER // max(1, rows.shape[1]))
        for first in range(0, len(group), together):
            some = slice(first, first + together)
            sums.index_add_(0, group[some], weights[some, None] * rows.detach()[self.indices[some]].to(torch.float64))
        totals = weights.new_zeros(count).index_add_(0, group, weights)
        return sums.to(self.weights.dtype), totals.to(self.weights.dtype)

    def spread(self, sums: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
        """The sums in the groups' rows of a tensor that is zero elsewhere."""
        return torch.zeros_like(like, memory_format=torch.contiguous_format).index_copy_(0, self.targets, sums.to(like.dtype))
