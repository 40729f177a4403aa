"""A SPLADE head for PyTorch that never makes the logits of all tokens and terms. Needs PyTorch.

For each text and each term, ``f = relu(max over tokens of (x · w + bias))`` with x a token's vector and w the term's. The head finds the
terms above zero by a certified search, and computes gradients from them alone: instead of ``texts × tokens × terms`` numbers there
are as many as terms are above zero. On a GPU this needs a module that was built with CUDA, and tensors of float32, bfloat16 or
float16. Elsewhere, and for texts with more than about a thousand terms above zero, the products of some terms at a time are made.

>>> import torch
>>> from kindred.torch import SpladeHead
>>> head = SpladeHead(terms=1000, components=8)
>>> activations = head(torch.randn(2, 5, 8))
>>> activations.shape, activations.layout
(torch.Size([2, 1000]), torch.sparse_coo)
>>> activations.sum().backward()
>>> head.weight.grad.shape
torch.Size([1000, 8])
"""

from __future__ import annotations

import json
import math
import os
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from .. import _kindred
from .._errors import InvalidValueError
from ._function import Splade, splade
from ._terms import Terms

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .. import Model

__all__ = ["Splade", "SpladeHead", "Terms", "splade", "token_rows"]

# The most tokens of a text, as `kindred train` has it.
_LIMIT = 512


def token_rows(model: Model, texts: Iterable[str], *, limit: int = _LIMIT, cut: str = "end") -> list[torch.Tensor]:
    """The rows of each text's tokens, int64 ``[tokens]``: those that a saved head takes of the same text. Unknown words have none.

    >>> import kindred
    >>> model = kindred.demo()
    >>> [rows] = token_rows(model, ["the frog, a toad"])
    >>> [model.words[row] for row in rows.tolist()]
    ['the', 'frog', ',', 'a', 'toad']
    """
    rows = _kindred.token_rows(model._model, list(texts), {"limit": limit, "cut": cut})
    return [torch.from_numpy(one) for one in rows]


class SpladeHead(nn.Module):
    """The activations of all terms for texts, as a sparse tensor: ``log1p(relu(max over tokens of (x · w + bias)))``.

    Args:
        terms: the size of the vocabulary.
        components: of a token's vector, and of a term's.
        bias: whether terms have biases, zero at first.
        log1p: whether ``log1p`` is applied, as SPLADE does.
        sparse_grad: whether the gradient of ``weight`` is a sparse tensor with the rows of touched terms alone, for
            `torch.optim.SparseAdam` or SGD; as ``sparse`` of `torch.nn.Embedding`.
        device, dtype: of the parameters.

    Attributes:
        weight: the terms' vectors, ``[terms, components]``.
        bias: ``[terms]``, or None.

    >>> head = SpladeHead(terms=1000, components=8, sparse_grad=True)
    >>> head(torch.randn(1, 3, 8), mask=torch.tensor([[True, True, False]])).to_dense().shape
    torch.Size([1, 1000])
    """

    bias: nn.Parameter | None

    def __init__(
        self,
        terms: int,
        components: int,
        *,
        bias: bool = True,
        log1p: bool = True,
        sparse_grad: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(terms, components, device=device, dtype=dtype))
        self.bias = nn.Parameter(torch.empty(terms, device=device, dtype=dtype)) if bias else None
        self.log1p = log1p
        self.sparse_grad = sparse_grad
        self._terms = Terms()
        self.reset_parameters()

    @classmethod
    def from_linear(cls, linear: nn.Linear, **options: Any) -> SpladeHead:
        """A head that shares the parameters of a linear layer, such as the decoder of a masked language model.

        >>> decoder = nn.Linear(8, 1000)
        >>> SpladeHead.from_linear(decoder).weight is decoder.weight
        True
        """
        head = cls(linear.out_features, linear.in_features, bias=linear.bias is not None, device="meta", **options)
        head.weight, head.bias = linear.weight, linear.bias  # type: ignore[assignment]
        return head

    def reset_parameters(self) -> None:
        """Draws new vectors as `torch.nn.Linear` does. Biases become zero."""
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        """The activations ``[texts, terms]`` of texts, a coalesced sparse tensor of float32 (float64 for float64).

        Args:
            x: the vectors of the texts' tokens, ``[texts, tokens, components]``.
            mask: ``[texts, tokens]``: false or zero for tokens that do not count.
        """
        return splade(x, self.weight, self.bias, mask=mask, log1p=self.log1p, sparse_grad=self.sparse_grad, terms=self._terms)

    def changed(self) -> None:
        """Says that the parameters may have changed in a way that PyTorch does not count, such as through ``weight.data``."""
        self._terms.changed()

    def save(
        self,
        folder: str | os.PathLike[str],
        model: Model,
        *,
        projection: nn.Linear | torch.Tensor | None = None,
        terms: Sequence[str] | None = None,
        limit: int = _LIMIT,
        cut: str = "end",
        description: Mapping[str, Any] | None = None,
        replace: bool = False,
    ) -> None:
        """Writes the head as a folder that ``kindred serve --head``, ``kindred expand`` and `Model.expand` take.

        Args:
            folder: the folder to write; it appears complete or not at all.
            model: the model whose words are the tokens and the terms.
            projection: the matrix ``[components, components]`` that tokens' vectors are multiplied by before the head, or its linear
                layer without biases; None if they are the model's own.
            terms: the word of each term; None if they are the model's first rows.
            limit: the maximum number of tokens of a text.
            cut: the end at which longer texts are cut, ``start`` or ``end``.
            description: about the training, for people; it must be JSON.
            replace: whether a head that is there is replaced.

        Raises:
            InvalidValueError: if a shape or an option is wrong.
            ModelError: if a term is no word of the model, a number is not finite, or the folder can't be written.
        """
        if isinstance(projection, nn.Linear):
            if projection.bias is not None:
                raise InvalidValueError("a head's projection has no biases; make it with nn.Linear(..., bias=False)", field="projection")
            projection = projection.weight
        if projection is not None and projection.dim() != 2:
            raise InvalidValueError("`projection` must be a matrix [components, components]", field="projection")
        bias, matrix = (None if one is None else _numbers(one) for one in (self.bias, projection))
        tokens = {"limit": limit, "cut": cut}
        about = json.dumps({"made_by": f"kindred.torch {_kindred.version}", **(description or {})})
        words = None if terms is None else list(terms)
        weights = (_numbers(self.weight), bias, matrix)
        _kindred.write_expander(model._model, folder, weights, words, self.log1p, tokens, about, replace)
        # The model may have opened the head that was there before.
        model._expanders.pop(os.fspath(folder), None)

    def extra_repr(self) -> str:
        terms, components = self.weight.shape
        return f"terms={terms}, components={components}, bias={self.bias is not None}, log1p={self.log1p}, sparse_grad={self.sparse_grad}"


def _numbers(tensor: torch.Tensor) -> Any:
    """A copy as float32 in NumPy."""
    return tensor.detach().to("cpu", torch.float32).contiguous().numpy().copy()
