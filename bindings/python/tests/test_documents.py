"""Documents in Python: texts are encoded when they are prepared and put, and found by texts."""

from __future__ import annotations

import json

import numpy as np
import pytest

import kindred

DOCS = [("one", "a frog and a toad", 1), ("two", "a river and a lake", 2), ("three", "the king of spain", 3)]


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    folder = tmp_path_factory.mktemp("words")
    axes = ["frog 1 0 0", "toad 1 0.2 0", "river 0 1 0", "lake 0 1 0.2", "king 0 0 1"]
    (folder / "words.txt").write_text("\n".join(axes) + "\n")
    kindred.prepare(folder / "words.txt", folder / "model")
    return folder / "model"


@pytest.fixture
def docs(tmp_path):
    lines = [json.dumps({"id": key, "body": text, "n": n, "more": {}}) + "\n" for key, text, n in DOCS]
    (tmp_path / "docs.jsonl").write_text("".join(lines))
    return tmp_path / "docs.jsonl"


def test_documents_are_prepared_put_and_found(words, docs, tmp_path):
    out = tmp_path / "docs"
    made = kindred.prepare(docs, out, encoder=words, text="body", key="id", keep_text=True)
    assert (made["rows"], made["dim"]) == (3, 3) and "encoded by" in made["format"]
    model = kindred.open(out, device="cpu")
    assert [found.word for found in model.nearest_text("toad", k=2)] == ["one", "two"]
    assert model.encode("lake").argmax() == 1
    with kindred.open_table(out, device="cpu") as table:
        table.put_rows(["four", "five"], ["a small frog", [0.0, 0.0, 2.0]])
        assert {found.word for found in table.nearest_text("frog", k=2)} == {"one", "four"}
        with pytest.raises(kindred.BadRowsError, match="its `text`"):
            table.put_rows(["six"], ["qqqzzz"])


def test_faults_of_documents_are_told(words, docs, tmp_path):
    with pytest.raises(kindred.ModelError, match="it has no `text`, which `text` names"):
        kindred.prepare(docs, tmp_path / "a", encoder=words, key="id")
    with pytest.raises(kindred.InvalidValueError, match="attributes"):
        kindred.prepare(docs, tmp_path / "b", encoder=words, text="body", keep_text=True, attributes=words / "x.jsonl")


def test_vectors_may_be_made_elsewhere(docs, tmp_path):
    vectors = np.array([[1, 0, 0], [0, 2, 0], [0, 0.5, 0.5]], dtype=np.float16)
    np.save(tmp_path / "v.npy", vectors)
    made = kindred.prepare(docs, tmp_path / "docs", vectors=tmp_path / "v.npy", text="body", key="id", keep_text=True)
    assert (made["rows"], made["dim"]) == (3, 3) and [one["name"] for one in made["attributes"]] == ["body"]
    model = kindred.open(tmp_path / "docs", device="cpu")
    assert (model.vectors == vectors.astype(np.float32)).all()
    assert [found.word for found in model.nearest(np.float32([0, 1, 0.1]), k=2)] == ["two", "three"]
    for ask in (lambda: model.nearest_text("one"), lambda: model.encode("one")):
        with pytest.raises(kindred.InvalidValueError, match="no encoder of texts"):
            ask()
    np.save(tmp_path / "v.npy", vectors[:2])
    with pytest.raises(kindred.ModelError, match=r"it has 2 rows, and docs.jsonl 3 records"):
        kindred.prepare(docs, tmp_path / "a", vectors=tmp_path / "v.npy")
    with pytest.raises(kindred.InvalidValueError, match="vectors"):
        kindred.prepare(docs, tmp_path / "b", vectors=tmp_path / "v.npy", encoder=tmp_path)


def test_words_of_texts_may_have_weights(words, docs, tmp_path):
    lines = (words.parent / "words.txt").read_text().splitlines()
    rows = np.array([line.split()[1:] for line in lines], dtype=np.float64)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    (tmp_path / "counts.txt").write_text("frog 90\ntoad 9\nriver 1\nlake 0\nking 0\n")
    harmonic = sum(1 / rank for rank in range(1, 6))
    by_rank = [0.001 / (0.001 + 1 / rank / harmonic) for rank in range(1, 6)]
    by_counts = [0.001 / (0.001 + n / 100) for n in (90, 9, 1, 0, 0)]
    for counts, weights in ((None, by_rank), (tmp_path / "counts.txt", by_counts)):
        kindred.prepare(words.parent / "words.txt", tmp_path / "m", text_weights="sif", counts=counts, replace=True)
        model = kindred.open(tmp_path / "m", device="cpu")
        total = weights[0] * unit[0] + weights[2] * unit[2] + weights[4] * unit[4]
        expected = total / np.linalg.norm(total)
        vector = model.encode("The frog, the river; the king")
        assert np.abs(vector - expected).max() < 1e-7
        assert (model.encode(["The frog, the river; the king"])[0] == vector).all()
        found = model.nearest(vector, k=5)
        by_text = model.nearest_text("The frog, the river; the king", k=5, include_query=True)
        assert [(one.word, one.score) for one in by_text] == [(one.word, one.score) for one in found]
        kindred.prepare(docs, tmp_path / "docs", encoder=tmp_path / "m", text="body", replace=True)
        assert (kindred.open(tmp_path / "docs", device="cpu").vector("3") == model.encode("king")).all()
    (tmp_path / "counts.txt").write_text("frog 90\ntoad -9\n")
    with pytest.raises(kindred.ModelError, match="line 2: the count `-9` is negative"):
        kindred.prepare(words.parent / "words.txt", tmp_path / "a", text_weights="sif", counts=tmp_path / "counts.txt")
    for wrong, match in (({"text_weights": "idf"}, "sif"), ({"counts": tmp_path / "counts.txt"}, "counts")):
        with pytest.raises(kindred.InvalidValueError, match=match):
            kindred.prepare(words.parent / "words.txt", tmp_path / "b", **wrong)
