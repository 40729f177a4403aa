#!/usr/bin/env python3
"""PyTorch's SPLADE head at the shapes of `bindings/python/benches/splade.py`, for comparison: forward, forward and backward,
and peak memory beside the inputs, in float32 and bfloat16. Needs torch and an NVIDIA GPU.

--cpu: the forward pass in float32 on a processor, at the shape of `cargo bench -p cpu-core --bench expand`, on as many threads as
torch takes."""
import statistics
import sys
import time

import torch
import torch.nn.functional as F

# Texts, tokens of a text, components, terms, and minus the bias of all terms.
SHAPES = [
    (64, 16, 300, 2_196_016, 4.6),
    (64, 16, 300, 400_000, 4.2),
    (1_024, 16, 300, 400_000, 4.2),
    (32, 64, 768, 30_522, 3.6),
    (32, 64, 768, 250_000, 4.2),
    (64, 640, 640, 640, 0.0),
]


def milliseconds(work):
    for _ in range(2):
        work()
    times = []
    for _ in range(5):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


def measure(texts, tokens, dim, terms, sparsity, dtype):
    torch.manual_seed(1)
    x = torch.randn(texts, tokens, dim, device="cuda", dtype=dtype, requires_grad=True)
    w = (torch.randn(dim, terms, device="cuda") / dim**0.5).to(dtype).requires_grad_()
    bias = torch.full((terms,), -sparsity, device="cuda", dtype=dtype, requires_grad=True)

    def forward():
        return F.relu((x @ w + bias).amax(1))

    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    with torch.no_grad():
        alone = milliseconds(forward)
    gradient = torch.randn_like(forward())
    touched = (forward() > 0).sum().item() / texts

    def both():
        x.grad = w.grad = bias.grad = None
        forward().backward(gradient)

    together = milliseconds(both)
    peak = (torch.cuda.max_memory_allocated() - before) / 2**30
    print(f"| {texts} x {tokens} x {dim} x {terms} | {str(dtype)[6:]} | {touched:.0f} | {alone:.2f} | {together:.2f} | {peak:.2f} |",
          flush=True)


@torch.no_grad()
def measure_cpu(texts, tokens, dim, terms, sparsity):
    torch.manual_seed(1)
    x, w = torch.randn(texts, tokens, dim), torch.randn(dim, terms) / dim**0.5
    bias = torch.full((terms,), -sparsity)
    times = []
    for _ in range(6):
        began = time.perf_counter()
        touched = (F.relu((x @ w + bias).amax(1)) > 0).sum().item() / texts
        times.append(time.perf_counter() - began)
    milliseconds = statistics.median(times[1:]) * 1e3
    print(f"{texts} x {tokens} x {dim} x {terms}, float32, {torch.get_num_threads()} threads: {touched:.0f} terms of a text, {milliseconds:.0f} ms")


def main():
    if "--cpu" in sys.argv:
        measure_cpu(8, 16, 300, 400_000, 4.2)
        return
    print(torch.__version__, torch.cuda.get_device_name())
    print("| texts x tokens x components x terms | type | terms of a text | forward, ms | and backward, ms | peak, GiB |")
    print("|---|---|---|---|---|---|")
    for shape in SHAPES:
        for dtype in (torch.float32, torch.bfloat16):
            measure(*shape, dtype)
            torch.cuda.empty_cache()


main()
