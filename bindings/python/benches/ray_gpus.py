"""Measures kindred.ray.graph on two GPUs of one host against one: python benches/ray_gpus.py [--device cpu]

A synthetic model is made unless --model names one. A calibration in this process chooses how many rows the graph has, so that one GPU
needs a little over --seconds. The clock starts when all workers have their models open, and ends when all rows are written. Both runs
must write the same bytes. Needs kindred-vectors[ray], and for GPUs a module that was built with CUDA. The table is printed last.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import time

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

import numpy as np
import ray
import ray.data

import kindred
import kindred.ray
from kindred.ray import Summary


def rate(model: kindred.Model, rows: int, k: int, sample: int) -> float:
    """Rows a second of a graph of the first rows, from some of them."""
    asked = np.linspace(0, rows - 1, sample, dtype=np.int64)
    model.nearest_rows(asked[:1024], k, vocab_limit=rows)
    started = time.perf_counter()
    model.nearest_rows(asked, k, vocab_limit=rows)
    return sample / (time.perf_counter() - started)


def calibrated(folder: pathlib.Path, device: str, k: int, seconds: float) -> int:
    """How many rows take this long on one device."""
    opened = {"device": "cuda:0"} if device == "cuda" else {"device": "cpu", "threads": 1}
    started = time.perf_counter()
    with kindred.open(folder, **opened) as model:
        model.nearest_rows(range(64), k)
        print(f"{model}: {model.device}, open after {time.perf_counter() - started:.1f} s", flush=True)
        rows = len(model)
        # A CPU engine first answers by full scans, until its derived table is there; a large one is kept in a file. On a busy machine that
        # takes a while.
        table = folder.with_name(f"{folder.name}.{platform.machine()}.cpu-table")
        until = time.perf_counter() + (300 if rows * model.dim >= 50_000_000 else 3)
        while device == "cpu" and not table.exists() and time.perf_counter() < until:
            time.sleep(0.2)
        # The work grows with the square; the second measurement corrects the first.
        for sample in (1 << 17, 1 << 18) if device == "cuda" else (1 << 10, 1 << 13):
            each = rate(model, rows, k, min(sample, rows))
            print(f"calibration: {rows} rows at {each:.0f} rows/s would take {rows / each:.1f} s", flush=True)
            rows = min(len(model), int(rows * (seconds * each / rows) ** 0.5))
        if rows == len(model):
            print("all rows of the model take less than that: give more --rows", flush=True)
    return rows


def run(workers: int, folder: pathlib.Path, out: pathlib.Path, arguments: argparse.Namespace, rows: int) -> Summary:
    """The graph by this number of workers."""
    gpus = 1 if arguments.device == "cuda" else 0
    started = time.perf_counter()
    summary = kindred.ray.graph(
        out, model=folder, k=arguments.k, first_rows=rows, actors=workers, cpus=1, gpus=gpus, block_rows=arguments.block_rows
    )
    whole = time.perf_counter() - started
    print(f"{workers} workers: {summary.seconds:.2f} s, with their start {whole:.1f} s, {summary.rounds} rounds", flush=True)
    return summary


def digest(out: pathlib.Path) -> str:
    """A hash of all results."""
    found = hashlib.sha256()
    for file in sorted(out.glob("rows-*.parquet")):
        found.update(file.name.encode() + hashlib.sha256(file.read_bytes()).digest())
    return found.hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--model", type=pathlib.Path, help="a model folder, instead of a synthetic model")
    parser.add_argument("--rows", type=int, default=12_000_000, help="of the synthetic model [12,000,000: 14.4 GB]")
    parser.add_argument("--dim", type=int, default=300)
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=64, help="that one device shall need [64]")
    parser.add_argument("--block-rows", type=int, default=32_768)
    parser.add_argument("--workers", default="1,2", help="their numbers, one run for each [1,2]")
    parser.add_argument("--scratch", type=pathlib.Path, help="a folder for the model and the results [a temporary one]")
    arguments = parser.parse_args()
    counts = [int(count) for count in arguments.workers.split(",")]
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as name:
        scratch = pathlib.Path(name)
        folder = arguments.model or scratch / "model"
        if arguments.model is None:
            program = os.environ.get("KINDRED_EXECUTABLE")
            command = [program] if program else [sys.executable, "-m", "kindred"]
            subprocess.run([*command, "synth", "--rows", str(arguments.rows), "--dim", str(arguments.dim), "--out", folder], check=True)
        rows = calibrated(folder, arguments.device, arguments.k, arguments.seconds)
        gpus = {"num_gpus": max(counts)} if arguments.device == "cuda" else {}
        # Only numbers of blocks go through the object store. The loopback address needs no network.
        ray.init(
            num_cpus=max(4, 2 * max(counts)),
            include_dashboard=False,
            log_to_driver=False,
            object_store_memory=1 << 30,
            _node_ip_address="127.0.0.1",
            **gpus,
        )
        # All workers have their models open before the first block.
        ray.data.DataContext.get_current().wait_for_min_actors_s = 900
        found = {count: run(count, folder, scratch / f"out-{count}", arguments, rows) for count in counts}
        same = len({digest(scratch / f"out-{count}") for count in counts}) == 1
        ray.shutdown()
    one = found[counts[0]].seconds
    print(f"\ngraph of {rows} rows, k = {arguments.k}; all runs wrote the same bytes: {'yes' if same else 'NO'}")
    print("| workers | seconds | rows/s | against the first |\n|---|---|---|---|")
    for count, summary in found.items():
        print(f"| {count} | {summary.seconds:.2f} | {rows / summary.seconds:,.0f} | {one / summary.seconds:.3f} |")
    sys.exit(not same)


if __name__ == "__main__":
    main()
