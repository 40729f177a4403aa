"""Trains a SPLADE head, and saves it for `kindred serve --head`: python train_splade.py [--model FOLDER] [--pairs FILE] [--save HEAD]

FILE has a query, a tab and a relevant text in each line. Without it, the head learns to find random texts by some of their words, as
a measurement. Needs `pip install ./bindings/python torch`, and for large vocabularies a GPU and a module with CUDA. `--head logits` is
the same head in PyTorch's own operations, which makes the logits of all tokens and terms. `--random 2196016x300` takes random vectors
of this shape.
"""

from __future__ import annotations

import argparse
import time

import torch
from torch import nn

import kindred
from kindred.torch import SpladeHead, token_rows


class Logits(SpladeHead):
    """The same head by all logits, with the same answer."""

    def forward(self, x, mask):
        logits = nn.functional.linear(x, self.weight, self.bias).masked_fill(~mask[:, :, None], -torch.inf)
        return torch.log1p(torch.relu(logits.amax(dim=1))).to_sparse()


class Encoder(nn.Module):
    """Tokens' vectors, turned by a learnt matrix, and the terms that they imply."""

    def __init__(self, vectors, bias, head):
        super().__init__()
        terms, components = vectors.shape
        norms = vectors.norm(dim=1, keepdim=True)
        self.vectors = vectors
        self.turn = nn.Linear(components, components, bias=False, device=vectors.device)
        # A saved head takes the model's vectors as they are, so the matrix makes them about as long as 1.
        self.turn.weight.data.copy_(torch.eye(components) / norms.median().item())
        # With sparse gradients, a step costs what the touched terms cost.
        self.head = head(terms, components, sparse_grad=head is SpladeHead, device=vectors.device)
        self.head.weight.data.copy_(vectors / norms.clamp(min=1e-9))
        nn.init.constant_(self.head.bias, bias)

    def forward(self, tokens):
        # Rows below zero fill texts up.
        return self.head(self.turn(self.vectors[tokens.clamp(min=0)]), tokens >= 0)


def flops(activations):
    """The FLOPS regulariser of SPLADE: the sum over terms of the square of their mean activation."""
    texts, terms = activations.shape
    found = activations.coalesce()
    means = torch.zeros(terms, device=activations.device).index_add(0, found.indices()[1], found.values()) / texts
    return means.square().sum()


def read_pairs(file, model, device):
    """The rows of the tokens of queries and texts, [pairs, tokens], filled up with −1."""
    with open(file, encoding="utf-8") as lines:
        pairs = [line.rstrip("\n").split("\t")[:2] for line in lines if "\t" in line]
    rows = [token_rows(model, side) for side in zip(*pairs)]
    known = [all(map(len, pair)) for pair in zip(*rows)]
    print(f"{sum(known)} of {len(pairs)} pairs have known words on both sides")
    sides = [[one for one, is_known in zip(side, known) if is_known] for side in rows]
    return [nn.utils.rnn.pad_sequence(side, batch_first=True, padding_value=-1).to(device) for side in sides]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--model", help="a folder made by `kindred prepare`; the demo's vectors if not given")
    arguments.add_argument("--random", metavar="TERMSxCOMPONENTS", help="random vectors instead")
    arguments.add_argument("--pairs", metavar="FILE", help="queries and relevant texts")
    arguments.add_argument("--save", metavar="HEAD", help="the folder of the head to write")
    arguments.add_argument("--head", choices=["kindred", "logits"], default="kindred")
    arguments.add_argument("--texts", type=int, default=256, help="of a step; random ones have 16 words each")
    arguments.add_argument("--steps", type=int, default=60)
    arguments = arguments.parse_args()
    if arguments.random and (arguments.pairs or arguments.save):
        raise SystemExit("--pairs and --save need a model, whose words are the terms")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(1)
    if arguments.random:
        model, vectors = None, torch.randn(*map(int, arguments.random.split("x")), device=device)
    else:
        model = kindred.open(arguments.model, device="cpu") if arguments.model else kindred.demo(device="cpu")
        vectors = torch.from_numpy(model.vectors.copy()).to(device)
    pairs = read_pairs(arguments.pairs, model, device) if arguments.pairs else None
    # At first, terms whose cosine with a token is above this are implied.
    threshold = 0.3 if arguments.random else 0.75
    encoder = Encoder(vectors, -threshold, SpladeHead if arguments.head == "kindred" else Logits)
    dense = [encoder.turn.weight, encoder.head.bias]
    optimisers = [torch.optim.Adam(dense, lr=1e-3), torch.optim.SGD([encoder.head.weight], lr=0.5)]
    began = time.perf_counter()
    for step in range(arguments.steps):
        if pairs is None:
            # Frequent words come first, and more often.
            texts = (len(vectors) * torch.rand(arguments.texts, 16, device=device) ** 3).long()
            asked = texts[:, :4]
        else:
            some = torch.randint(len(pairs[0]), (arguments.texts,), device=device)
            asked, texts = (side[some] for side in pairs)
        documents, queries = encoder(texts), encoder(asked)
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
    if arguments.save:
        encoder.head.save(arguments.save, model, projection=encoder.turn, description={"steps": arguments.steps})
        served = f"--model {arguments.model} --head {arguments.save}" if arguments.model else f"--head {arguments.save}"
        print(f"{arguments.save}: a head of {len(vectors)} terms; to serve it: kindred serve {served}")
    if device == "cuda":
        print(f"at most {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB, of which the vectors and weights are {2 * vectors.nbytes / 2**30:.1f}")


if __name__ == "__main__":
    main()
