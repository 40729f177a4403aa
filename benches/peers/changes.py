"""Rows that change, in Kindred's service and in others: upserts, batches, deletes, and searches beside a writer.

All have the same rows, with one integer attribute, and keep them in a folder on the same disk. Programs take turns,
each in its own process; figures are medians of the rounds. Kindred is asked over HTTP, the others in process.

    benches/peers/changes MODEL_DIR [--rows 100000] [--rounds 3] [--folder DIR]
"""
import argparse
import http.client
import io
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from compare import K, read_model, unit_rows

SINGLES, BATCH, BATCHES, SEARCHES = 200, 1000, 20, 40
RATE, TOGETHER = 1000, 10  # rows/s of the writer beside searches, and rows of each of its batches


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODEL_DIR", help="a model folder, as `kindred synth` writes it")
    parser.add_argument("--kindred", required=True, help="the program")
    parser.add_argument("--rows", type=int, default=100_000, help="rows before the first change [default: %(default)s]")
    parser.add_argument("--rounds", type=int, default=3, help="of all programs [default: %(default)s]")
    parser.add_argument("--folder", help="on the disk to be measured [default: that of temporary files]")
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.peer:
        with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
            print(json.dumps(measure(PEERS[asked.peer], asked, folder)))
        return
    found = {name: [] for name in PEERS}
    for name in list(PEERS) * asked.rounds:
        run = subprocess.run([sys.executable, __file__, *sys.argv[1:], "--peer", name], stdout=subprocess.PIPE)
        if run.returncode != 0:
            sys.exit(f"changes: {name} failed")
        found[name].append(json.loads(run.stdout))
        print(f"{name}: {found[name][-1]}", file=sys.stderr)
    names = [rounds[0]["name"] for rounds in found.values()]
    print("| | " + " | ".join(names) + " |\n|---|" + "---|" * len(names))
    for figure, form in FIGURES.items():
        medians = (statistics.median(one[figure] for one in rounds) for rounds in found.values())
        print(f"| {figure} | " + " | ".join(form.format(value) for value in medians) + " |")


FIGURES = {"one row, p50, ms": "{:.2f}", "one row, p99, ms": "{:.2f}", f"batches of {BATCH:,}, rows/s": "{:,.0f}",
           f"deletes by {BATCH:,} keys, rows/s": "{:,.0f}", "search, p50, ms": "{:.1f}",
           "search beside a writer, p50, ms": "{:.1f}"}


def measure(peer, asked, folder):
    import numpy as np

    unit = np.ascontiguousarray(unit_rows(read_model(asked.model)[0])[: asked.rows])
    random = np.random.default_rng(1)
    fresh = random.standard_normal((BATCH, unit.shape[1])).astype("<f4")
    table = peer(folder, unit.shape[1], asked)
    for first in range(0, len(unit), 10_000):
        rows = unit[first : first + 10_000]
        table.put(range(first, first + len(rows)), rows)
    table.ready()
    one = sorted(seconds(lambda: table.put(next_keys(1), fresh[:1])) for _ in range(SINGLES))
    batches = seconds(lambda: [table.put(next_keys(BATCH), fresh) for _ in range(BATCHES)])
    deletes = seconds(lambda: [table.delete(range(first, first + BATCH)) for first in range(0, BATCHES * BATCH, BATCH)])
    queries = fresh[random.integers(0, BATCH, SEARCHES)]
    search = lambda: statistics.median(seconds(lambda: table.search(query)) for query in queries)
    search()
    idle, over = search(), threading.Event()
    writer = threading.Thread(target=write, args=(table, fresh, over))
    writer.start()
    beside = search()
    over.set()
    writer.join()
    assert len(table.search(queries[0])) == K
    table.close()
    milliseconds = [1e3 * one[len(one) // 2], 1e3 * one[len(one) * 99 // 100]]
    rates = [BATCHES * BATCH / batches, BATCHES * BATCH / deletes]
    return {"name": table.name} | dict(zip(FIGURES, milliseconds + rates + [1e3 * idle, 1e3 * beside]))


keys = 10_000_000


def next_keys(count):
    global keys
    keys += count
    return range(keys - count, keys)


def seconds(work):
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def write(table, fresh, over):
    due = time.perf_counter()
    while not over.is_set():
        table.put(next_keys(TOGETHER), fresh[:TOGETHER])
        due += TOGETHER / RATE
        time.sleep(max(0, due - time.perf_counter()))


class Kindred:
    def __init__(self, folder, dim, asked):
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        arguments = ["serve", "--models-dir", folder, "--device", "cpu", "--listen", f"127.0.0.1:{self.port}"]
        self.service = subprocess.Popen([asked.kindred, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.own = threading.local()
        while True:
            try:
                self.ask("GET", "/health/live")
                break
            except OSError:
                self.own.connection = None
                time.sleep(0.01)
        self.ask("POST", "/models", {"name": "t", "dim": dim, "attributes": {"a": "integer"}})
        self.name = "Kindred over HTTP, synced"

    def ask(self, method, path, body=None, kind="application/json"):
        connection = getattr(self.own, "connection", None)
        if connection is None:
            connection = self.own.connection = http.client.HTTPConnection("127.0.0.1", self.port)
        body = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        connection.request(method, path, body, {"Content-Type": kind} if body else {})
        answer = connection.getresponse()
        text = answer.read()
        assert answer.status < 300, text
        return text

    def put(self, keys, rows):
        import numpy as np

        vectors = io.BytesIO()
        np.save(vectors, rows)
        lines = "\n".join(f'{{"key":"{key}","attributes":{{"a":{key % 1000}}}}}' for key in keys).encode()
        part = b'--b\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n'
        body = part % (b"rows", lines) + part % (b"vectors", vectors.getvalue()) + b"--b--\r\n"
        self.ask("POST", "/rows", body, "multipart/form-data; boundary=b")

    def ready(self):
        self.ask("POST", "/fold")

    def delete(self, keys):
        self.ask("POST", "/rows/delete", {"keys": list(map(str, keys))})

    def search(self, query):
        return json.loads(self.ask("POST", "/nearest", {"vector": query.tolist(), "k": K}))["neighbors"]

    def close(self):
        self.service.terminate()
        self.service.wait()


class SqliteVec:
    def __init__(self, folder, dim, _):
        import sqlite3

        import sqlite_vec

        self.database = sqlite3.connect(os.path.join(folder, "t.db"), check_same_thread=False, isolation_level=None)
        self.database.enable_load_extension(True)
        sqlite_vec.load(self.database)
        self.database.execute("PRAGMA journal_mode = WAL")
        self.database.execute("PRAGMA synchronous = FULL")
        self.database.execute(f"CREATE VIRTUAL TABLE t USING vec0(key INTEGER PRIMARY KEY, v float[{dim}] distance_metric=cosine, a INTEGER)")
        self.lock = threading.Lock()
        self.name = f"sqlite-vec {sqlite_vec.__version__}, synced"

    def in_one(self, statement, rows):
        with self.lock:
            self.database.execute("BEGIN")
            self.database.executemany(statement, rows)
            self.database.execute("COMMIT")

    def put(self, keys, rows):
        # All keys are new: it has no upsert.
        self.in_one("INSERT INTO t VALUES (?, ?, ?)", ((key, row.tobytes(), key % 1000) for key, row in zip(keys, rows)))

    def ready(self):
        pass

    def delete(self, keys):
        self.in_one("DELETE FROM t WHERE key = ?", ((key,) for key in keys))

    def search(self, query):
        with self.lock:
            return self.database.execute("SELECT key FROM t WHERE v MATCH ? AND k = ?", (query.tobytes(), K)).fetchall()

    def close(self):
        self.database.close()


class QdrantEdge:
    def __init__(self, folder, dim, _):
        import importlib.metadata

        import qdrant_edge as edge

        self.edge = edge
        vectors = edge.EdgeVectorParams(size=dim, distance=edge.Distance.Cosine)
        self.shard = edge.EdgeShard.create(folder, edge.EdgeConfig(vectors=vectors))
        self.name = f"Qdrant edge {importlib.metadata.version('qdrant-edge-py')}, not synced"

    def put(self, keys, rows):
        points = [self.edge.Point(key, row.tolist(), {"a": key % 1000}) for key, row in zip(keys, rows)]
        self.shard.update(self.edge.UpdateOperation.upsert_points(points))

    def ready(self):
        pass

    def delete(self, keys):
        self.shard.update(self.edge.UpdateOperation.delete_points(list(keys)))

    def search(self, query):
        exact = self.edge.SearchParams(exact=True)
        return self.shard.query(self.edge.QueryRequest(query=self.edge.Query.Nearest(query.tolist()), limit=K, params=exact))

    def close(self):
        del self.shard


class LanceDb:
    def __init__(self, folder, dim, _):
        import lancedb
        import pyarrow as pa

        self.schema = pa.schema([("key", pa.int64()), ("v", pa.list_(pa.float32(), dim)), ("a", pa.int64())])
        self.table = lancedb.connect(folder).create_table("t", schema=self.schema)
        self.pa, self.name = pa, f"LanceDB {lancedb.__version__}, not synced"

    def put(self, keys, rows):
        keys = list(keys)
        vectors = self.pa.FixedSizeListArray.from_arrays(self.pa.array(rows.reshape(-1)), rows.shape[1])
        columns = [self.pa.array(keys), vectors, self.pa.array([key % 1000 for key in keys])]
        self.table.add(self.pa.Table.from_arrays(columns, schema=self.schema))

    def ready(self):
        self.table.optimize()

    def delete(self, keys):
        self.table.delete(f"key IN ({','.join(map(str, keys))})")

    def search(self, query):
        return self.table.search(query, vector_column_name="v").distance_type("cosine").limit(K).to_list()

    def close(self):
        pass


PEERS = {"kindred": Kindred, "sqlite-vec": SqliteVec, "qdrant": QdrantEdge, "lancedb": LanceDb}

if __name__ == "__main__":
    main()
