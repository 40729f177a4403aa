"""Following PostgreSQL, measured: the snapshot beside COPY to a file, the stream at full speed, the lag at 500 rows/s; and searches
beside PostgreSQL's: pgvector's exact plan, and its HNSW index with the recall of that. All processes are on this machine.

    scripts/install-python-packages                     # PostgreSQL 18 with pgvector among them
    PYTHONPATH=bindings/python/python:bindings/python/tests KINDRED_EXECUTABLE=target/release/kindred \\
        .tools/python/bin/python bindings/python/benches/follow.py [ROWS [DIM]]      400000 300
"""

from __future__ import annotations

import json
import re
import socket
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from followers import Tables
from postgres import Follower, Postgres, follow, with_pgvector

ROWS, DIM = (int(number) for number in [*sys.argv[1:], *("400000", "300")[len(sys.argv) - 1 :]][:2])
ATTRIBUTES = ["--attributes", "category,price"]


def timed(what, work):
    begun = time.perf_counter()
    result = work()
    took = time.perf_counter() - begun
    print(f"{what}: {took:.2f} s", flush=True)
    return took, result


def percentile(times, part):
    return sorted(times)[min(len(times) - 1, int(len(times) * part))] * 1e3


def vectors(rows, seed):
    """Vectors near a subspace of 30 dimensions, as embeddings are: evenly random ones would be the hardest for an index."""
    basis = np.random.default_rng(0).standard_normal((30, DIM))
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((rows, 30)) @ basis + 0.3 * rng.standard_normal((rows, DIM))).astype(np.float32)


def text(vector):
    return f"[{','.join(map(str, vector))}]"


def make(server):
    """Vectors, a category of 0 to 99 and a price."""
    with server.connect() as connection:
        connection.execute("CREATE EXTENSION vector")
        connection.execute(f"CREATE TABLE items (id bigint PRIMARY KEY, embedding vector({DIM}), category int, price numeric)")
        with connection.cursor().copy("COPY items FROM STDIN") as copy:
            for first in range(0, ROWS, 1000):
                for row, vector in enumerate(vectors(min(1000, ROWS - first), first + 1), first):
                    copy.write(f"{row}\t{text(vector)}\t{row % 100}\t{row % 1000 / 10}\n")
        connection.execute("CREATE INDEX by_category ON items (category)")
        connection.execute("VACUUM ANALYZE items")


def main():
    folder = tempfile.mkdtemp()
    server, service = Postgres(with_pgvector(), shared_buffers="1GB", max_wal_size="8GB"), Tables(folder)
    print(f"{ROWS} rows of {DIM} components", flush=True)
    try:
        timed("filling the table", lambda: make(server))
        file = Path(folder) / "copy"
        query = "COPY (SELECT id, embedding, category, price FROM items) TO STDOUT (FORMAT binary)"

        def copied():
            with server.connect() as connection, file.open("wb") as out, connection.cursor().copy(query) as copy:
                for block in copy:
                    out.write(block)

        copies = [timed("COPY to a file", copied)[0] for _ in range(3)]
        columns = dict(vector="embedding")
        took, (code, said) = timed("snapshot, with the start", lambda: follow(server, service, "items", *ATTRIBUTES, **columns))
        assert code == 0, said
        print(f"  {ROWS / took:,.0f} rows/s, {statistics.median(copies) / took:.2f} of COPY", flush=True)

        client = service.client("items")
        # Full speed: changes that are there before it looks, each its own transaction.
        changed = min(30_000, ROWS)
        with server.connect() as connection:
            connection.execute("SET synchronous_commit = off")
            more = text([0.01] * DIM)
            with connection.pipeline():
                for row in range(changed):
                    connection.execute("UPDATE items SET embedding = embedding + %s::vector, price = 5 WHERE id = %s", (more, row))
        took, (code, said) = timed(f"stream of {changed} transactions of a row, with the start",
                                   lambda: follow(server, service, "items", *ATTRIBUTES, **columns))  # fmt: skip
        assert code == 0, said
        print(f"  {changed / took:,.0f} rows/s", flush=True)

        follower = Follower(server, service, "items", *ATTRIBUTES, **columns)
        while "following" not in follower.log():
            time.sleep(0.05)
        lags, ends = [], time.monotonic() + 20
        with server.connect() as connection:
            begun, done = time.monotonic(), 0
            while time.monotonic() < ends:
                while done < (time.monotonic() - begun) * 500:
                    connection.execute("UPDATE items SET price = %s WHERE id = %s", (done, done % ROWS))
                    done += 1
                lsn = connection.execute("SELECT pg_current_wal_insert_lsn()::text").fetchone()[0]
                asked = time.perf_counter()
                client.after(f"postgres:{lsn}").count("key = 1")
                lags.append(time.perf_counter() - asked)
                time.sleep(0.01)
        print(f"lag at {done / 20:.0f} rows/s: p50 {percentile(lags, 0.5):.0f} ms, p99 {percentile(lags, 0.99):.0f} ms", flush=True)
        assert follower.stop() == 0, follower.said

        # So many changes begin a fold, which would be beside the searches.
        client.fold()
        searches(server, service)
    finally:
        service.close()
        server.close()


def searches(server, service):
    """Ten rows, of all and of one category, 1 %: milliseconds, and the part of the right ones that pgvector's index finds."""
    queries = vectors(100, -1 % 2**32)
    sent = socket.create_connection(("127.0.0.1", service.port))
    sent.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def answer_to(request):
        """The bytes of a JSON answer."""
        sent.sendall(request)
        received = b""
        while True:
            received += sent.recv(1 << 20)
            head, end, body = received.partition(b"\r\n\r\n")
            if end and len(body) == int(re.search(rb"(?i)content-length: (\d+)", head)[1]):
                assert head.startswith(b"HTTP/1.1 200"), received
                return body
    of_one = "SELECT id FROM items WHERE category = %s ORDER BY embedding <=> %s::vector LIMIT 10"
    of_all = "SELECT id FROM items ORDER BY embedding <=> %s::vector LIMIT 10"

    def ours(what, is_filtered):
        times, found = [], []
        for n, query in enumerate(queries):
            # The request is bytes before the clock begins, as the statement is a text.
            body = {"vector": query.tolist(), "k": 10, **({"filter": f"category = {n}"} if is_filtered else {})}
            body = json.dumps(body)
            head = f"POST /models/items/nearest HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
            request = f"{head}\r\n\r\n{body}".encode()
            begun = time.perf_counter()
            answer = answer_to(request)
            times.append(time.perf_counter() - begun)
            found.append([neighbor["word"] for neighbor in json.loads(answer)["neighbors"]])
        print(f"{what}: p50 {percentile(times, 0.5):.2f} ms, p99 {percentile(times, 0.99):.2f} ms", flush=True)
        return found

    def theirs(what, is_filtered, expected, count=100):
        times, right, returned = [], 0, 0
        for n, query in enumerate(queries[:count]):
            statement, given = (of_one, (n, text(query))) if is_filtered else (of_all, (text(query),))
            begun = time.perf_counter()
            rows = connection.execute(statement, given).fetchall()
            times.append(time.perf_counter() - begun)
            right += len({str(row[0]) for row in rows} & set(expected[n]))
            returned += len(rows)
        took = f"p50 {percentile(times, 0.5):.2f} ms, p99 {percentile(times, 0.99):.2f} ms"
        print(f"{what}: {took}, recall {right / count / 10:.3f}, {returned / count:.1f} of 10 rows", flush=True)

    unfiltered = ours("nearest", False)
    with server.connect() as connection:
        connection.execute("SET max_parallel_workers_per_gather = 0")
        theirs("pgvector's exact plan", False, unfiltered, 10)
        # In turns, and the first of each is the one that warms up.
        for _ in range(5):
            filtered = ours("nearest at 1 %", True)
            theirs("pgvector's exact plan at 1 %", True, filtered)
        connection.execute("SET maintenance_work_mem = '1500MB'")
        timed("pgvector's HNSW index", lambda: connection.execute("CREATE INDEX ON items USING hnsw (embedding vector_cosine_ops)"))
        connection.execute("VACUUM ANALYZE items")
        theirs("pgvector's index", False, unfiltered)
        # With it, the planner takes the exact plan at 1 %. For conditions without an index there is only the other.
        connection.execute("DROP INDEX by_category")
        # A plan that reads all rows is not the index's.
        connection.execute("SET enable_seqscan = off")
        theirs("pgvector's index at 1 %", True, filtered)
        connection.execute("SET hnsw.iterative_scan = strict_order")
        theirs("pgvector's index at 1 %, iterative", True, filtered)


main()
