"""Documents in Python: texts are encoded when they are prepared and put, and found by texts."""

from __future__ import annotations

import json

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
