#!/usr/bin/env python3
"""PyTorch's TextCNN at the shapes of `cargo bench -p gpu-core --bench classify`, for comparison: token ids on the host to class
scores on the host. On a GPU in float16, otherwise in float32 on the threads that torch is given. Needs torch."""
import statistics
import sys
import time

import torch
import torch.nn.functional as F

GPU = torch.cuda.is_available() and "--cpu" not in sys.argv
DEVICE, TYPE = ("cuda", torch.float16) if GPU else ("cpu", torch.float32)
SHAPES = {
    "Kim": (400_000, 300, 20, (3, 4, 5), 100, (2,)),
    "21,635 x 4,096": (21_635, 4096, 16, (3, 5, 7, 9), 1024, (2048, 1024, 512, 2)),
}


def values(*shape, size=0.02):
    return (torch.rand(*shape, device=DEVICE) * 2 * size - size).to(TYPE)


@torch.no_grad()
def rate(rows, dim, length, widths, channels, layers, batch):
    table = values(rows, dim, size=0.6)
    filters = [values(channels, dim, width) for width in widths]
    sizes = [channels * len(widths), *layers]
    dense = [values(outputs, inputs) for inputs, outputs in zip(sizes, sizes[1:])]
    tokens = torch.randint(rows, (batch, length))
    tokens = tokens.pin_memory() if GPU else tokens

    def scores():
        x = table[tokens.to(DEVICE, non_blocking=True)].transpose(1, 2)
        x = torch.cat([F.relu(F.conv1d(x, one)).amax(2) for one in filters], 1)
        for index, layer in enumerate(dense):
            x = F.linear(F.relu(x) if index else x, layer)
        return x.cpu()

    scores()
    times = []
    for _ in range(5 if GPU else 3):
        began = time.perf_counter()
        scores()
        times.append(time.perf_counter() - began)
    return batch / statistics.median(times)


print(f"torch {torch.__version__} on {torch.cuda.get_device_name() if GPU else f'{torch.get_num_threads()} threads'}")
for name, shape in SHAPES.items():
    if not GPU and name != "Kim":
        continue
    best = max((rate(*shape, batch), batch) for batch in ((1024, 4096, 16_384) if GPU else (32, 256, 1024)))
    print(f"{name}: {best[0] / 1e6:.4f} M texts/s in batches of {best[1]}", flush=True)
