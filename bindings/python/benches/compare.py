"""Measures the package against gensim, FAISS, scikit-learn and pynndescent: python benches/compare.py MODEL [--graph] [--peers NAME,...]

MODEL is a model folder. Needs the peers, all of them on PyPI; one that is missing is left out, and `--peers ''` measures the package
alone. Each figure is a median, of calls that take turns with the peer's, so that both see the same machine. Between two calls there is a
pause, because threads of OpenBLAS go on spinning after a call, on cores that the next one needs. `--graph` measures graphs of
all rows. Peers use as many threads as the process has cores: `taskset -c 0,1 python benches/compare.py MODEL --device cpu`.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pathlib
import platform
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import kindred


# Seconds between two calls of different packages.
PAUSE = 0.1


def in_turns(calls: dict[str, Callable[[], object]], times: int) -> dict[str, float]:
    """The median time of each call, in seconds."""
    took: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(times + 1):
        for name, call in calls.items():
            if len(calls) > 1:
                time.sleep(PAUSE)
            started = time.perf_counter()
            call()
            if turn > 0:
                took[name].append(time.perf_counter() - started)
    return {name: statistics.median(times) for name, times in took.items()}


def show(what: str, took: dict[str, float], each: int = 1) -> None:
    ours = took["kindred"]
    for name, seconds in took.items():
        print(f"{what:44} {name:16} {seconds * 1e3 / each:10.4f} ms  {each / seconds:12.1f}/s  {seconds / ours:6.2f} x", flush=True)


def peer(name: str, peers: list[str]):
    """A peer's module, if it is asked for and there."""
    if name not in peers:
        return None
    try:
        return importlib.import_module(name)
    except ImportError as error:
        print(f"{name} is not there ({error}); left out", flush=True)
        return None


def wait_for_table(model: kindred.Model, folder: pathlib.Path) -> None:
    """A CPU engine first answers by full scans, until its derived table is there; a large one is kept in a file."""
    if not model.device.startswith("cpu"):
        return
    table = folder.with_name(f"{folder.name}.{platform.machine()}.cpu-table")
    most = 300 if len(model) * model.dim >= 50_000_000 else 3
    started = time.perf_counter()
    while not table.exists() and time.perf_counter() - started < most:
        model.nearest_rows(range(64))
    print(f"table {'there' if table.exists() else 'not in a file'} after {time.perf_counter() - started:.1f} s", flush=True)


def overhead(model: kindred.Model, word: str) -> None:
    for _ in range(20):
        model.nearest(word)
    times = max(20, min(300, int(2 / measured(lambda: model.nearest(word)))))
    for _ in range(3):
        call = in_turns({"kindred": lambda: model.nearest(word)}, times)["kindred"]
        inside = model._model.timed(word, times)
        queue, engine, whole = (statistics.median(column) for column in zip(*inside))
        print(
            f"one call: {call * 1e6:.1f} us from Python, {whole * 1e6:.1f} us from Rust; in the queue {queue * 1e6:.1f} us, in the engine "
            f"{engine * 1e6:.1f} us",
            flush=True,
        )


def one_query(model: kindred.Model, words: list[str], peers: list[str]) -> None:
    calls: dict[str, Callable[[], object]] = {}
    turn = iter(words * 100)
    calls["kindred"] = lambda: model.nearest(next(turn))
    if peer("gensim", peers):
        from gensim.models import KeyedVectors

        theirs = KeyedVectors(model.dim)
        theirs.add_vectors(list(model.words), model.vectors)
        theirs.fill_norms()
        calls["gensim"] = lambda: theirs.most_similar(next(turn))
        import kindred.gensim

        ours = kindred.gensim.KeyedVectors(model)
        calls["kindred.gensim"] = lambda: ours.most_similar(next(turn))
    show("one word, 10 neighbours", in_turns(calls, 30))


def batch(model: kindred.Model, peers: list[str], sizes: list[int], n: int = 1024) -> None:
    rng = np.random.default_rng(0)
    vectors = model.vectors[rng.integers(len(model), size=n)].copy()
    noise = rng.normal(size=vectors.shape) * np.linalg.norm(vectors, axis=1, keepdims=True) * 0.3 / model.dim**0.5
    vectors += noise.astype(np.float32)
    calls: dict[str, Callable[[], object]] = {"kindred": lambda: model.nearest(vectors)}
    if faiss := peer("faiss", peers):
        unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        index = flat(faiss, model)
        for size in sizes:
            parts = [unit[start : start + size] for start in range(0, n, size)]
            calls[f"faiss by {size}"] = lambda parts=parts: [index.search(part, 10) for part in parts]
    # Beside a peer few calls of each, because its are long; alone as many as two seconds take.
    if len(calls) > 1:
        show(f"{n} vectors as an array, each", in_turns(calls, 1 if len(model) > 1_000_000 else 3), n)
        return
    times = max(3, min(200, int(2 / measured(calls["kindred"]))))
    show(f"{n} vectors as an array, each", in_turns(calls, times), n)
    with ThreadPoolExecutor(2) as threads:

        def both() -> None:
            for made in [threads.submit(model.nearest, vectors) for _ in range(2 * times)]:
                made.result()

        both()
        show(f"{n} vectors as an array, from two threads", {"kindred": measured(both)}, 2 * times * n)


def flat(faiss, model: kindred.Model):
    unit = model.vectors.copy()
    faiss.normalize_L2(unit)
    index = faiss.IndexFlatIP(model.dim)
    index.add(unit)
    return index


def graph(model: kindred.Model, peers: list[str], k: int = 10) -> None:
    rows = len(model)
    took = {"kindred": measured(lambda: model.knn_graph(k))}
    some = min(20_000, rows)
    if faiss := peer("faiss", peers):
        index = flat(faiss, model)
        unit = index.reconstruct_n(0, some)
        took[f"faiss, from {some}"] = measured(lambda: index.search(unit, k + 1)) * rows / some
        del index
    if peer("sklearn", peers):
        from sklearn.neighbors import NearestNeighbors

        found = NearestNeighbors(n_neighbors=k + 1, algorithm="brute", metric="cosine").fit(model.vectors)
        few = some // 4
        took[f"scikit-learn, from {few}"] = measured(lambda: found.kneighbors(model.vectors[:few])) * rows / few
    if pynndescent := peer("pynndescent", peers):
        # Without the time that numba needs to compile it.
        pynndescent.NNDescent(model.vectors[:2000].copy(), metric="cosine", n_neighbors=k + 1).neighbor_graph
        made = []
        vectors = np.array(model.vectors)
        took["pynndescent"] = measured(
            lambda: made.append(pynndescent.NNDescent(vectors, metric="cosine", n_neighbors=k + 1, random_state=0).neighbor_graph)
        )
        theirs, checked = made[0][0], np.arange(0, rows, 20)
        exact = model.nearest_rows(checked, k).indices
        right = sum(len(np.intersect1d(ours, theirs[row])) for ours, row in zip(exact, checked))
        print(f"pynndescent's recall: {right / (k * len(checked)):.4f}", flush=True)
    show(f"graph of {rows} rows, each", took, rows)


def measured(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--graph", action="store_true")
    parser.add_argument("--peers", default="gensim,faiss,sklearn,pynndescent")
    parser.add_argument("--faiss-batches", default="64,1024", help="sizes of the batches that FAISS gets")
    arguments = parser.parse_args()
    peers = arguments.peers.split(",")
    model = kindred.open(arguments.model, device=arguments.device)
    print(model, model.device, f"{len(os.sched_getaffinity(0))} cores", flush=True)
    if faiss := peer("faiss", peers):
        level = faiss.SIMDConfig.get_level_name() if hasattr(faiss, "SIMDConfig") else faiss.get_compile_options().strip()
        print(f"FAISS {faiss.__version__}: {level}, {faiss.omp_get_max_threads()} threads", flush=True)
    wait_for_table(model, arguments.model)
    if arguments.graph:
        graph(model, peers)
        return
    words = model.words.of(np.random.default_rng(1).integers(1000, min(len(model), 50_000), size=50))
    overhead(model, "frog" if "frog" in model else words[0])
    one_query(model, words, peers)
    batch(model, peers, [int(size) for size in arguments.faiss_batches.split(",")])


if __name__ == "__main__":
    main()
