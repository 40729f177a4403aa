"""Trains a SPLADE head to find texts by some of their words: python train_splade.py [--model FOLDER] [--texts 256] [--steps 60]

Needs `pip install ./bindings/python torch`, and for large vocabularies a GPU and a module with CUDA. `--head logits` is the same head
in PyTorch's own operations, which makes the logits of all tokens and terms. `--random 2196016x300` takes random vectors of this shape.
"""

from __future__ import annotations

import argparse
import time

import torch
from torch import nn

import kindred
from kindred.torch import SpladeHead


class Logits(SpladeHead):
    """The same head by all logits, with the same answer."""

    def forward(self, x, mask=None):
        return torch.log1p(torch.relu(nn.functional.linear(x, self.weight, self.bias).amax(dim=1))).to_sparse()


class Encoder(nn.Module):
    """Tokens' vectors, turned by a learnt matrix, and the terms that they imply."""

    def __init__(self, vectors, bias, head):
        super().__init__()
        terms, components = vectors.shape
        self.vectors = vectors
        self.turn = nn.Linear(components, components, bias=False, device=vectors.device)
        nn.init.eye_(self.turn.weight)
        # With sparse gradients, a step costs what the touched terms cost.
        self.head = head(terms, components, sparse_grad=head is SpladeHead, device=vectors.device)
        self.head.weight.data.copy_(vectors)
        nn.init.constant_(self.head.bias, bias)

    def forward(self, tokens):
        return self.head(self.turn(self.vectors[tokens]))


def flops(activations):
    """The FLOPS regulariser of SPLADE: the sum over terms of the square of their mean activation."""
    texts, terms = activations.shape
    found = activations.coalesce()
    means = torch.zeros(terms, device=activations.device).index_add(0, found.indices()[1], found.values()) / texts
    return means.square().sum()


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--model", help="a folder made by `kindred prepare`; the demo's vectors if not given")
    arguments.add_argument("--random", metavar="TERMSxCOMPONENTS", help="random vectors instead")
    arguments.add_argument("--head", choices=["kindred", "logits"], default="kindred")
    arguments.add_argument("--texts", type=int, default=256, help="of a step, each of 16 words")
    arguments.add_argument("--steps", type=int, default=60)
    arguments = arguments.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(1)
    if arguments.random:
        vectors = torch.randn(*map(int, arguments.random.split("x")), device=device)
    else:
        model = kindred.open(arguments.model, device="cpu") if arguments.model else kindred.demo(device="cpu")
        vectors = torch.from_numpy(model.vectors.copy()).to(device)
    vectors = nn.functional.normalize(vectors)
    # At first, terms whose cosine with a token is above this are implied.
    threshold = 0.3 if arguments.random else 0.75
    encoder = Encoder(vectors, -threshold, SpladeHead if arguments.head == "kindred" else Logits)
    dense = [encoder.turn.weight, encoder.head.bias]
    optimisers = [torch.optim.Adam(dense, lr=1e-3), torch.optim.SGD([encoder.head.weight], lr=0.5)]
    began = time.perf_counter()
    for step in range(arguments.steps):
        # Frequent words come first, and more often.
        texts = (len(vectors) * torch.rand(arguments.texts, 16, device=device) ** 3).long()
        documents, queries = encoder(texts), encoder(texts[:, :4])
        scores = torch.sparse.mm(queries, documents.T).to_dense()
        found = nn.functional.cross_entropy(20 * scores, torch.arange(len(texts), device=device))
        loss = found + 0.03 * (flops(documents) + flops(queries))
        for optimiser in optimisers:
            optimiser.zero_grad()
        loss.backward()
        for optimiser in optimisers:
            optimiser.step()
        if step % 10 == 9 or step == arguments.steps - 1:
            right = (scores.argmax(dim=1) == torch.arange(len(texts), device=device)).float().mean()
            terms = documents._nnz() / len(texts)
            each = (time.perf_counter() - began) / (step + 1)
            print(f"step {step + 1}: loss {loss:.3f}, {right:.0%} of the texts are found, {terms:.0f} terms a text, {1e3 * each:.1f} ms a step")
    if device == "cuda":
        print(f"at most {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB, of which the vectors and weights are {2 * vectors.nbytes / 2**30:.1f}")


if __name__ == "__main__":
    main()
