"""The nearest ten of the same words in the same table, by Kindred and by what people use in its place.

Each runs in a process of its own, on the same number of threads, in process and without HTTP. A line
says how many of its rows are Kindred's, whose answers are exact: others rank in float32 or in 8 bits.

    benches/peers/compare MODEL_DIR [--queries 64] [--threads 2] [--only numpy,faiss]
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

K = 10
PASSES = 5


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODEL_DIR", help="a model folder, as `kindred prepare` or `kindred synth` writes it")
    parser.add_argument("--queries", type=int, default=64, help="asked one by one, then in one batch [default: 64]")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="[default: one for each core]")
    parser.add_argument("--only", help="some of: " + ", ".join(PEERS))
    parser.add_argument("--kindred", required=True, help="the example time_search of cpu-core, as built")
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.peer:
        table, words = read_model(asked.model)
        print(json.dumps(PEERS[asked.peer](table, words, query_rows(asked, len(table)), asked.threads)))
        return
    unknown = [name for name in (asked.only or "").split(",") if name and name not in PEERS]
    if unknown:
        sys.exit(f"compare: no such peer: {', '.join(unknown)}; there are {', '.join(PEERS)}")
    vectors, _ = read_header(asked.model)
    rows = query_rows(asked, vectors["shape"][0])
    run = subprocess.run([asked.kindred, asked.model, str(asked.threads), *map(str, rows)], stdout=subprocess.PIPE)
    if run.returncode != 0:
        sys.exit("compare: Kindred's own part failed")
    kindred = json.loads(run.stdout)
    lines = [("one read of the table, float32", {"one": kindred["read_float32"]}),
             ("one read of the derived table", {"one": kindred["read_8_bit"]}),
             (kindred["name"], kindred)]
    for name in asked.only.split(",") if asked.only else PEERS:
        print(f"{name} …", file=sys.stderr)
        lines.append((name, run_peer(name, asked)))
    print_table(lines, kindred)


def print_table(lines, kindred):
    print(f"| | one query, ms | p90, ms | times Kindred's | {len(kindred['rows'])} in a batch, queries/s | rows like Kindred's |")
    print("|---|---|---|---|---|---|")
    ours = statistics.median(kindred["one"])
    for name, times in lines:
        if "failed" in times:
            print(f"| {name} | {times['failed']} | | | | |")
            continue
        cells = ["", "", "", "", ""]
        if "one" in times:
            one = sorted(times["one"])
            cells[:3] = [f"{statistics.median(one) * 1e3:.1f}", f"{one[int(len(one) * 0.9)] * 1e3:.1f}",
                         f"{statistics.median(one) / ours:.2f}"]
        if "batch" in times:
            cells[3] = f"{len(kindred['rows']) / statistics.median(times['batch']):.1f}"
        if "rows" in times:
            pairs = list(zip(times["rows"], kindred["rows"]))
            cells[4] = f"{sum(len(set(a) & set(b)) for a, b in pairs)} of {sum(len(b) for _, b in pairs)}"
        print(f"| {times.get('name', name)} | {' | '.join(cells)} |")


def run_peer(name, asked):
    """In a process of its own: libraries of threads disagree, and each copies the table."""
    environment = dict(os.environ)
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        environment[variable] = str(asked.threads)
    command = [sys.executable, __file__, asked.model, "--queries", str(asked.queries),
               "--threads", str(asked.threads), "--kindred", "", "--peer", name]
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    if run.returncode == 0:
        return json.loads(run.stdout)
    last = run.stderr.strip().splitlines()[-1:] or ["no word"]
    return {"failed": f"did not run: {last[0]}"}


def query_rows(asked, rows):
    """Spread over the table, the same for everyone."""
    return [(i * 6151 + 17) % rows for i in range(asked.queries)]


def read_header(folder):
    """The tensor `vectors`, and where the file's data starts."""
    path = os.path.join(folder, "vectors.safetensors")
    try:
        with open(path, "rb") as file:
            length = int.from_bytes(file.read(8), "little")
            return json.loads(file.read(length))["vectors"], 8 + length
    except OSError as error:
        sys.exit(f"compare: {error}; MODEL_DIR is a folder that `kindred prepare` or `kindred synth` wrote")


def read_model(folder):
    import numpy as np

    vectors, start = read_header(folder)
    table = np.memmap(os.path.join(folder, "vectors.safetensors"), dtype="<f4", mode="r",
                      offset=start + vectors["data_offsets"][0], shape=tuple(vectors["shape"]))
    return table, lambda: open(os.path.join(folder, "words.txt"), encoding="utf-8").read().split("\n")[: len(table)]


def timed(work, times=PASSES):
    took = []
    for _ in range(times):
        started = time.perf_counter()
        result = work()
        took.append(time.perf_counter() - started)
    return took, result


def one_by_one(search, rows):
    """Times and answers of single queries, after one that warms up; a query's own row is left out."""
    search(rows[0])
    took, answers = [], []
    for row in rows:
        (seconds,), found = timed(lambda: search(row), 1)
        took.append(seconds)
        answers.append([int(other) for other in found if other != row][:K])
    return took, answers


def unit_rows(table):
    import numpy as np

    table = np.array(table)
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    return table


def numpy_peer(table, words, rows, threads):
    import numpy as np

    unit = unit_rows(table)

    def search(row):
        scores = unit @ unit[row]
        best = np.argpartition(-scores, K + 1)[: K + 1]
        return best[np.argsort(-scores[best])]

    one, answers = one_by_one(search, rows)
    queries = np.array(unit[rows])
    batch, _ = timed(lambda: queries @ unit.T)
    return {"name": f"numpy {np.__version__}: unit rows @ query, argpartition; the batch is the product alone",
            "one": one, "batch": batch, "rows": answers}


def gensim_peer(table, words, rows, threads):
    import gensim
    import numpy as np

    vectors = gensim.models.KeyedVectors(table.shape[1])
    vectors.vectors = np.array(table)
    vectors.index_to_key = words()
    vectors.key_to_index = {word: row for row, word in enumerate(vectors.index_to_key)}
    vectors.fill_norms()
    row_of = vectors.key_to_index

    def search(row):
        return [row_of[word] for word, _ in vectors.most_similar(vectors.index_to_key[row], topn=K)]

    one, answers = one_by_one(search, rows)
    return {"name": f"gensim {gensim.__version__}: most_similar", "one": one, "rows": answers}


def faiss_peer(table, words, rows, threads):
    import faiss
    import numpy as np

    faiss.omp_set_num_threads(threads)
    unit = unit_rows(table)
    index = faiss.IndexFlatIP(table.shape[1])
    index.add(unit)
    queries = np.array(unit[rows])
    one, answers = one_by_one(lambda row: index.search(unit[row : row + 1], K + 1)[1][0], rows)
    batch, _ = timed(lambda: index.search(queries, K + 1), 3)
    return {"name": f"FAISS {faiss.__version__}: IndexFlatIP", "one": one, "batch": batch, "rows": answers}


def usearch_peer(table, words, rows, threads):
    import numpy as np
    import usearch
    from usearch.index import MetricKind, search as exact_search

    # Eight bits by one scale for all, as its own quantisation does.
    unit = unit_rows(table)
    small = np.clip(np.rint(unit * 127), -127, 127).astype(np.int8)
    del unit

    def search(row):
        return exact_search(small, small[row], K + 1, MetricKind.Cos, exact=True, threads=threads).keys

    one, answers = one_by_one(search, rows)
    queries = np.array(small[rows])
    batch, _ = timed(lambda: exact_search(small, queries, K + 1, MetricKind.Cos, exact=True, threads=threads), 3)
    return {"name": f"usearch {usearch.__version__}: exact search of int8", "one": one, "batch": batch, "rows": answers}


def torch_peer(table, words, rows, threads):
    import torch

    torch.set_num_threads(threads)
    unit = torch.from_numpy(unit_rows(table))
    one, answers = one_by_one(lambda row: torch.topk(unit @ unit[row], K + 1).indices.tolist(), rows)
    queries = unit[rows]
    batch, _ = timed(lambda: torch.topk(queries @ unit.T, K + 1))
    return {"name": f"PyTorch {torch.__version__} on the CPU: matmul, topk", "one": one, "batch": batch, "rows": answers}


PEERS = {"numpy": numpy_peer, "gensim": gensim_peer, "faiss": faiss_peer, "usearch": usearch_peer, "torch": torch_peer}

if __name__ == "__main__":
    main()
