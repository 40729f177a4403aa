"""Fixtures of all tests: models, services, clients. The contract's score, as NumPy computes it."""

from __future__ import annotations

import os
import struct

import numpy as np
import pytest
from clients import KINDS
from followers import Tables
from postgres import Postgres
from service import Fake, Service

import kindred

# A GPU, if there is one, is for those who ask for it.
DEVICE = os.environ.get("KINDRED_TEST_DEVICE", "cpu")
# Of tables.
NAMES = iter(range(1000))


@pytest.fixture(scope="session")
def demo():
    return kindred.demo(device=DEVICE)


@pytest.fixture(scope="session")
def points():
    points = np.random.default_rng(7).normal(size=(3000, 37)).astype(np.float32)
    points[17] = 0
    points[90] = points[80]
    return points


@pytest.fixture(scope="session")
def array(points):
    return kindred.from_array(points, device=DEVICE)


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """A service with a folder of tables."""
    service = Tables(str(tmp_path_factory.mktemp("tables")))
    yield service
    service.close()


@pytest.fixture(scope="module")
def postgres():
    """A server of PostgreSQL."""
    server = Postgres()
    yield server
    server.close()


@pytest.fixture
def name():
    """The name of a table that nobody else has."""
    return f"t{next(NAMES)}"


@pytest.fixture
def items(postgres, name):
    """A table of PostgreSQL with a few rows."""
    postgres.run(
        f"CREATE TABLE {name} (id bigint PRIMARY KEY, v real[], price numeric, label text, body text)",
        f"INSERT INTO {name} SELECT g, ARRAY[g, 0.1, -1e-30], g / 8.0, 'l' || g % 3, NULL FROM generate_series(1, 100) g",
    )
    return name


@pytest.fixture(scope="module")
def service():
    service = Service()
    yield service
    service.stop()


@pytest.fixture(params=KINDS, ids=["sync", "async"])
def client(request, service):
    with request.param(service.url) as client:
        yield client


@pytest.fixture
def fake():
    made = []

    def make(*answers):
        made.append(Fake(*answers))
        return made[-1]

    yield make
    [one.close() for one in made]


def dots(rows, query):
    """The dot products of rows ``[n, dim]`` with a query, in the contract's order of summation."""
    products = rows.astype(np.float64) * query.astype(np.float64)
    width = -products.shape[1] % 32
    lanes = np.zeros((len(rows), 32))
    padded = np.pad(products, ((0, 0), (0, width)))
    for start in range(0, padded.shape[1], 32):
        lanes += padded[:, start : start + 32]
    for step in (16, 8, 4, 2, 1):
        lanes = lanes[:, :step] + lanes[:, step : 2 * step]
    return lanes[:, 0]


def cosines(rows, query):
    """The contract's scores of all rows; NaN for rows of norm zero."""
    norms = np.sqrt([dots(row[None], row)[0] for row in rows])
    with np.errstate(invalid="ignore"):
        return np.clip(dots(rows, query) / (np.sqrt(dots(query[None], query)[0]) * norms), -1, 1)


def best(scores, k, left_out=()):
    """Rows and scores of the k best, ties to the lower row."""
    usable = [row for row in range(len(scores)) if not np.isnan(scores[row]) and row not in left_out]
    usable.sort(key=lambda row: (-scores[row], row))
    return usable[:k], [scores[row] for row in usable[:k]]


def fasttext_file(words, dim, buckets):
    """A small fastText model, of version 12, with n-grams of 3 to 5 characters; and the rows of its words and n-grams."""
    rows = np.random.default_rng(5).normal(size=(len(words) + buckets, dim)).astype(np.float32)
    skipgram = 2
    head = struct.pack("<14i", 793712314, 12, dim, 5, 5, 1, 5, 1, 2, skipgram, buckets, 3, 5, 100) + struct.pack("<d", 1e-4)
    counts = struct.pack("<3i2q", len(words), len(words), 0, 1000, -1)
    entries = b"".join(word.encode() + b"\0" + struct.pack("<qb", 9, 0) for word in words)
    matrices = [struct.pack("<2q", len(array), dim) + array.tobytes() for array in (rows, rows[: len(words)])]
    return head + counts + entries + b"\0" + b"\0".join(matrices), rows


def fasttext_classifier(words, labels, dim):
    """A small classifier of fastText with softmax, without n-grams; the rows of its words and of its labels."""
    generator = np.random.default_rng(6)
    rows, output = (generator.normal(size=(len(some), dim)).astype(np.float32) for some in (words, labels))
    supervised, softmax = 3, 3
    head = struct.pack("<14i", 793712314, 12, dim, 5, 5, 1, 5, 1, softmax, supervised, 0, 0, 0, 100) + struct.pack("<d", 1e-4)
    counts = struct.pack("<3i2q", len(words) + len(labels), len(words), len(labels), 1000, -1)
    named = [(word, 0) for word in words] + [(f"__label__{label}", 1) for label in labels]
    entries = b"".join(name.encode() + b"\0" + struct.pack("<qb", 9, kind) for name, kind in named)
    matrices = [struct.pack("<2q", len(array), dim) + array.tobytes() for array in (rows, output)]
    return head + counts + entries + b"\0" + b"\0".join(matrices), rows, output
