"""The nearest ten of the same words among rows that meet a filter, by Kindred and by others, on one core.

The filter is `a < LIMIT`; `a` is uniform in 0 to 999. Each program has the form of it that suits it best: a
set (Kindred), a bitmap (FAISS), an index of `a` (Qdrant edge), the rows' numbers (numpy). All of them are
made before the clock starts. Programs take turns, each in its own process; times are medians of all rounds.

    benches/peers/filters MODEL_DIR [--queries 64] [--rounds 3]
"""
import argparse
import importlib.metadata
import json
import os
import statistics
import subprocess
import sys
import tempfile

from compare import K, query_rows, read_header, read_model, timed, unit_rows

LIMITS = (1000, 500, 100, 10, 1)
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODEL_DIR", help="a model folder, as `kindred synth` writes it")
    parser.add_argument("--queries", type=int, default=64, help="asked one by one, then in one batch [default: 64]")
    parser.add_argument("--rounds", type=int, default=3, help="of all programs [default: 3]")
    parser.add_argument("--kindred", required=True, help="the example time_members of cpu-core, as built")
    parser.add_argument("--peer", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.peer:
        print(json.dumps(run_peer(asked)))
        return
    count = read_header(asked.model)[0]["shape"][0]
    with tempfile.TemporaryDirectory() as folder:
        values = os.path.join(folder, "values")
        write_values(values, count)
        rows = map(str, query_rows(asked, count))
        commands = {"kindred": [asked.kindred, asked.model, values, ",".join(map(str, LIMITS)), *rows]}
        for peer in PEERS:
            commands[peer] = [sys.executable, __file__, asked.model, "--queries", str(asked.queries),
                              "--kindred", "", "--peer", peer, values]
        found = {name: [] for name in commands}
        for name in list(commands) * asked.rounds:
            run = subprocess.run(commands[name], stdout=subprocess.PIPE, env=os.environ | ONE_THREAD)
            if run.returncode != 0:
                sys.exit(f"filters: {name} failed")
            found[name].append(json.loads(run.stdout))
    print("| | " + " | ".join(f"{limit / 10:g} %" for limit in LIMITS) + " | rows like Kindred's |")
    print("|---" * (len(LIMITS) + 2) + "|")
    print_part(found, "one", lambda seconds: f"{seconds * 1e3:.3g}", "one query, ms")
    print_part(found, "batch", lambda seconds: f"{asked.queries / seconds:,.0f}", "together, queries/s")


def print_part(found, which, shown, title):
    """A line for each program, with its times as multiples of Kindred's."""
    print(f"| **{title}** |" + " |" * (len(LIMITS) + 1))
    ours = found["kindred"][0]["sets"]
    for name, rounds in found.items():
        cells = []
        for i in range(len(LIMITS)):
            own, of_kindred = (statistics.median(seconds for one in of for seconds in one["sets"][i][which] or [0])
                               for of in (rounds, found["kindred"]))
            cells.append(shown(own) + ("" if name == "kindred" else f" ({own / of_kindred:.2f} ×)") if own else "")
        pairs = [pair for a, b in zip(ours, rounds[0]["sets"]) for pair in zip(a["rows"], b["rows"])]
        alike = sum(len(set(a) & set(b)) for a, b in pairs)
        print(f"| {rounds[0]['name']} | {' | '.join(cells)} | {alike} of {sum(len(a) for a, _ in pairs)} |")


def write_values(path, rows):
    import numpy as np

    np.random.default_rng(1).integers(0, 1000, rows).astype("<u2").tofile(path)


def run_peer(asked):
    """For each limit: times of single queries and of batches, and the rows that single queries found."""
    import numpy as np

    peer, values = asked.peer[0], np.fromfile(asked.peer[1], dtype="<u2")
    unit = unit_rows(read_model(asked.model)[0])
    rows, sets = query_rows(asked, len(unit)), []
    name, searches = PEERS[peer](unit, values, unit[rows])
    for search, batch in searches:
        search(unit[rows[0]])
        runs = [timed(lambda: search(unit[row]), 1) for row in rows]
        sets.append({"one": [took[0] for took, _ in runs], "batch": timed(batch)[0] if batch else None,
                     "rows": [list(map(int, found)) for _, found in runs]})
    return {"name": name, "sets": sets}


def faiss_peer(unit, values, queries):
    import faiss
    import numpy as np

    faiss.omp_set_num_threads(1)
    index = faiss.IndexFlatIP(unit.shape[1])
    index.add(unit)

    def of(limit):
        selector = faiss.IDSelectorBitmap(np.packbits(values < limit, bitorder="little"))
        params = None if limit == LIMITS[0] else faiss.SearchParameters(sel=selector)
        return (lambda query: index.search(query[None], K, params=params)[1][0],
                lambda: index.search(queries, K, params=params))

    return f"FAISS {faiss.__version__}: IndexFlatIP, IDSelectorBitmap", map(of, LIMITS)


def qdrant_peer(unit, values, queries):
    import qdrant_edge as edge

    folder = tempfile.TemporaryDirectory()
    vectors = edge.EdgeVectorParams(size=unit.shape[1], distance=edge.Distance.Cosine)
    shard = edge.EdgeShard.create(folder.name, edge.EdgeConfig(vectors=vectors, max_search_threads=1))
    shard.update(edge.UpdateOperation.create_field_index("a", edge.PayloadSchemaType.Integer))
    for first in range(0, len(unit), 10_000):
        some = range(first, min(first + 10_000, len(unit)))
        points = [edge.Point(row, unit[row].tolist(), {"a": int(values[row])}) for row in some]
        shard.update(edge.UpdateOperation.upsert_points(points))

    def of(limit, _folder=folder):
        lower = edge.Filter(must=[edge.FieldCondition("a", range=edge.RangeFloat(lt=float(limit)))])
        options = {"limit": K, "filter": None if limit == LIMITS[0] else lower, "params": edge.SearchParams(exact=True)}
        nearest = lambda query: edge.QueryRequest(query=edge.Query.Nearest(query.tolist()), **options)
        return lambda query: [point.id for point in shard.query(nearest(query))], None

    return f"Qdrant edge {importlib.metadata.version('qdrant-edge-py')}: exact, payload index", map(of, LIMITS)


def numpy_peer(unit, values, queries):
    import numpy as np

    def of(limit):
        members = None if limit == LIMITS[0] else np.flatnonzero(values < limit)

        def search(queries):
            scores = queries @ (unit if members is None else unit[members]).T
            best = np.argpartition(-scores, min(K, scores.shape[-1]) - 1)[..., :K]
            return best if members is None else members[best]

        return search, lambda: search(queries)

    return f"numpy {np.__version__}: take the rows, product, argpartition", map(of, LIMITS)


PEERS = {"faiss": faiss_peer, "qdrant": qdrant_peer, "numpy": numpy_peer}

if __name__ == "__main__":
    main()
