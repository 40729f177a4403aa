"""Classifies texts on a Ray cluster of three nodes in this host, kills one in the middle, and counts the rows that differ from one process's.

    python benches/ray_nodes.py [TEXTS]        1,000,000 by default; needs kindred-vectors[ray]

The nodes have one CPU each. The built-in model and head are used.
"""

from __future__ import annotations

import os
import pathlib
import sys
import tempfile
import time

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import ray
from ray.cluster_utils import Cluster

import kindred
import kindred.ray

WORDS = 16


def write_texts(model: kindred.Model, folder: pathlib.Path, count: int) -> None:
    """Texts of the model's words in four files; a thousandth are null, and as many have no known word."""
    rng = np.random.default_rng(0)
    words = np.array(list(model.words), dtype=object)
    for part, rows in enumerate(np.array_split(np.arange(count), 4)):
        texts = [" ".join(some) for some in words[rng.integers(0, len(words), size=(len(rows), WORDS))]]
        texts[7::1000] = [None] * len(texts[7::1000])
        texts[8::1000] = ["zzzqx"] * len(texts[8::1000])
        pq.write_table(pa.table({"id": rows, "text": pa.array(texts, pa.string())}), folder / f"part-{part}.parquet", row_group_size=122_880)


def main(count: int) -> None:
    model = kindred.demo(device="cpu")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "texts").mkdir()
        write_texts(model, folder / "texts", count)
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "node_ip_address": "127.0.0.2", "include_dashboard": False})
        others = [cluster.add_node(num_cpus=1, node_ip_address=f"127.0.0.{3 + n}") for n in range(2)]
        ray.init(address=cluster.address, log_to_driver=False)
        killed = []

        def progress(done: int, rows: int) -> None:
            if done >= rows // 3 and not killed:
                cluster.remove_node(others.pop(), allow_graceful=False)
                killed.append(done)

        summary = kindred.ray.classify(folder / "texts", folder / "out", keep=["id"], block_rows=16_384, progress=progress)
        ray.shutdown()
        cluster.shutdown()

        found = pa.concat_tables([pq.read_table(file) for file in sorted((folder / "out").glob("rows-*.parquet"))])
        rows = found["row"].to_numpy()
        lost, doubled = count - len(np.unique(rows)), len(rows) - len(np.unique(rows))
        differing, started = 0, time.perf_counter()
        for first in range(0, count, 65_536):
            part = found.slice(first, 65_536)
            texts = [text or "" for text in pq.read_table(folder / "texts", columns=["text"])["text"].slice(first, 65_536).to_pylist()]
            best = [answer.labels[0] if answer.labels else None for answer in model.classify(texts)]
            labels = [label.name if label else None for label in best]
            scores = np.array([(label.probability, label.score) if label else (np.nan, np.nan) for label in best])
            theirs = np.column_stack([part["probability"].to_numpy(), part["score"].to_numpy()])
            same = np.array([a == b for a, b in zip(labels, part["label"].to_pylist())])
            same &= ((scores.view(np.int64) == theirs.view(np.int64)) | (np.isnan(scores) & np.isnan(theirs))).all(axis=1)
            differing += int((~same).sum())
        alone = time.perf_counter() - started
    print(f"{count} texts of {WORDS} words on 3 nodes, one killed after {killed[0]} rows")
    print(f"rows lost {lost}, doubled {doubled}, in another order {int((rows != np.arange(count)).sum())}, with other values {differing}")
    print(f"{summary.errors} rows with an error, {summary.blocks} files, {summary.rounds} rounds of workers")
    print(f"{summary.seconds:.1f} s with the loss of the node; the comparison in one process took {alone:.1f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
