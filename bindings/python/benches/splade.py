"""`kindred.torch.SpladeHead` beside the same head in PyTorch's own operations: forward, and forward and backward with all gradients.

Needs an NVIDIA GPU and a module with CUDA. Texts of normally distributed vectors; biases so that a text touches some hundred terms.
In each step the weight has changed, so the rounded terms are made again. Milliseconds, medians of nine; memory beside inputs and
parameters, with their gradients.

    python benches/splade.py [--dtype float32|bfloat16] [--shapes 1,2,...]
"""

from __future__ import annotations

import argparse
import statistics

import torch

from kindred.torch import SpladeHead

# Texts, tokens of a text, components, terms, and minus the bias of all terms.
SHAPES = [
    (32, 64, 768, 30_522, 3.6),
    (32, 64, 768, 250_000, 4.2),
    (64, 16, 300, 400_000, 4.2),
    (64, 16, 300, 2_196_016, 4.6),
    (1_024, 16, 300, 400_000, 4.2),
    (256, 16, 300, 2_196_016, 4.6),
    (64, 640, 640, 640, 0.0),
]


def milliseconds(work):
    """The time of each of nine calls, and the peak of the memory that PyTorch and others took beyond what there was."""
    work(), work()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    times = []
    for _ in range(9):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


class Reference(torch.nn.Module):
    """The head as it is usually written."""

    def __init__(self, weight, bias):
        super().__init__()
        self.weight, self.bias = weight, bias

    def forward(self, x):
        return torch.log1p(torch.relu(torch.nn.functional.linear(x, self.weight, self.bias).amax(1)))


def measure(head, x, sparse):
    """Forward, forward and backward, and the memory of both beside what is there before."""
    free = torch.cuda.mem_get_info()[0] + torch.cuda.memory_reserved() - torch.cuda.memory_allocated()

    def changed():
        # As an optimiser does: the values are other ones as far as anybody knows.
        with torch.no_grad():
            head.weight[:1].mul_(1)

    def forward():
        changed()
        with torch.no_grad():
            return head(x)

    def both():
        changed()
        head.zero_grad()
        x.grad = None
        found = head(x)
        (found.values() if sparse else found).sum().backward()

    alone, together = milliseconds(forward), milliseconds(both)
    taken = free - torch.cuda.mem_get_info()[0] - torch.cuda.memory_reserved() + torch.cuda.max_memory_allocated()
    return alone, together, taken / 2**30


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    arguments.add_argument("--shapes", help="by number, from 1; all if not given")
    arguments = arguments.parse_args()
    numbers = [int(one) for one in arguments.shapes.split(",")] if arguments.shapes else range(1, len(SHAPES) + 1)
    dtype = getattr(torch, arguments.dtype)
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, {arguments.dtype}")
    print("| texts x tokens x components x terms | terms of a text | forward | PyTorch | both | PyTorch | GiB | PyTorch |")
    print("|---|---|---|---|---|---|---|---|")
    for number in numbers:
        texts, tokens, components, terms, sparsity = SHAPES[number - 1]
        torch.manual_seed(1)
        x = torch.randn(texts, tokens, components, device="cuda", dtype=dtype, requires_grad=True)
        head = SpladeHead(terms, components, sparse_grad=terms > 1e6, device="cuda", dtype=dtype)
        torch.nn.init.normal_(head.weight, std=components**-0.5)
        torch.nn.init.constant_(head.bias, -sparsity)
        ours = measure(head, x, sparse=True)
        touched = head(x)._nnz() / texts
        reference = Reference(head.weight, head.bias)
        del head
        torch.cuda.empty_cache()
        try:
            theirs = measure(reference, x, sparse=False)
        except torch.OutOfMemoryError:
            theirs = None
        theirs = [f"{one:.2f}" for one in theirs] if theirs else ["out of memory"] * 3
        cells = [f"{one:.2f} | {other}" for one, other in zip(ours, theirs)]
        print(f"| {texts} x {tokens} x {components} x {terms} | {touched:.0f} | {' | '.join(cells)} |", flush=True)
        del reference, x
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
