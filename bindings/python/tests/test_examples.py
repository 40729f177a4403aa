"""The scripts of examples/python, each run as its user would."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

import kindred

EXAMPLES = pathlib.Path(__file__).parents[3] / "examples/python"
PARTS = ["judged.py"]
"""Files that scripts import."""


def run(script, *arguments):
    done = subprocess.run([sys.executable, EXAMPLES / script, *arguments], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_map_of_words(tmp_path):
    pytest.importorskip("matplotlib")
    assert "500 words" in run("map_of_words.py", str(tmp_path / "map.png"), "500")
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")


def test_training_a_splade_head():
    pytest.importorskip("torch")
    of_heads = [run("train_splade.py", "--steps", "3", "--texts", "16", "--head", head) for head in ("kindred", "logits")]
    losses = [lines.split("loss ")[1].split(",")[0] for lines in of_heads]
    assert losses[0] == losses[1]


def test_a_splade_head_of_pairs_is_saved(tmp_path):
    pytest.importorskip("torch")
    requests = (EXAMPLES.parent / "requests.tsv").read_text()
    (tmp_path / "pairs.tsv").write_text(requests)
    said = run("train_splade.py", "--pairs", tmp_path / "pairs.tsv", "--steps", "3", "--texts", "16", "--save", tmp_path / "head")
    assert "pairs have known words on both sides" in said and "kindred serve --head " in said
    terms = kindred.demo(device="cpu").expand("cheap flights", head=tmp_path / "head").terms
    assert {"cheap", "flights"} <= {term.word for term in terms}


def test_expansions_are_measured(tmp_path):
    for package in ("bm25s", "Stemmer", "ir_measures", "scipy"):
        pytest.importorskip(package)
    animals = ["frog", "toad", "salamander", "lizard", "snake", "turtle"]
    rivers = ["river", "lake", "creek", "stream", "ocean", "coast"]
    texts = [f"the {one} and the {other}" for words in (animals, rivers) for one, other in zip(words, words[1:])]
    documents = "".join(f"<doc><docno>d{n}</docno><text>{text}</text></doc>\n" for n, text in enumerate(texts))
    queries = [words[n] for words in (animals, rivers) for n in range(5)]
    topics = "".join(f"<top><num>{7 * n}</num><title>a {query}</title></top>\n" for n, query in enumerate(queries))
    (tmp_path / "documents").write_text(documents)
    (tmp_path / "queries").write_text(topics)
    (tmp_path / "qrels").write_text("".join(f"{n + 1} 0 d{n} 1\n" for n in range(10)))
    files = [word for name in ("documents", "queries", "qrels") for word in (f"--{name}", str(tmp_path / name))]
    said = run("retrieval.py", *files, "--query-ids", "position")
    rows = [line.split(" | ") for line in said.splitlines()[2:]]
    assert [row[0] for row in rows] == ["| BM25", "| rm3", "| neighbours", "| centroid"]
    # A query's own document has its word.
    assert float(rows[0][1]) > 0.5 and float(rows[0][5]) == 1
    # Vectors of texts, alone and beside BM25, on the same files.
    axes = [" ".join(str(int(row == column)) for column in range(12)) for row in range(12)]
    lines = [f"{word} {axis}" for word, axis in zip(animals + rivers, axes)]
    (tmp_path / "words.txt").write_text("\n".join(lines))
    kindred.prepare(tmp_path / "words.txt", tmp_path / "words")
    said = run("documents.py", *files, "--query-ids", "position", "--words", str(tmp_path / "words"))
    rows = {line.split(" | ")[0]: line.split(" | ") for line in said.splitlines() if line.startswith("| ")}
    assert float(rows["| sum of unit vectors"][1]) > 0.5 and float(rows["| BM25"][5]) == 1
    assert "| BM25 and SIF, ranks fused" in rows and "| BM25 + weight × cosine of SIF" in rows
    # The numbers of the judgements are not the queries' ids.
    refused = subprocess.run([sys.executable, EXAMPLES / "retrieval.py", *files], capture_output=True, text=True, timeout=300)
    assert refused.returncode != 0 and "--query-ids position" in refused.stderr


def test_classifying_by_mpi(tmp_path):
    pytest.importorskip("mpi4py")
    # That of PyPI's MPICH is beside the interpreter. Open MPI's refuses to run as root.
    mpirun = pathlib.Path(sys.executable).parent / "mpirun"
    if not mpirun.exists():
        pytest.skip("no mpirun beside the interpreter: pip install mpich")
    texts = ["a moving and funny film", "zzqx", "", "a dull mess"] * 50
    (tmp_path / "texts.txt").write_text("".join(f"{text}\n" for text in texts))
    for processes in (1, 3):
        command = [mpirun, "-n", str(processes), sys.executable, EXAMPLES / "classify_mpi.py", tmp_path / "texts.txt", tmp_path / f"{processes}.tsv"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.stdout == f"200 lines by {processes} processes\n", done.stderr
    answers = kindred.demo(device="cpu").classify(texts)
    labels = ["\t".join([answer.labels[0].name, repr(answer.labels[0].probability)]) if answer.labels else "\t" for answer in answers]
    assert (tmp_path / "1.tsv").read_text() == (tmp_path / "3.tsv").read_text() == "".join(f"{label}\n" for label in labels)


def test_each_script_has_a_test():
    tests = pathlib.Path(__file__).read_text()
    scripts = [script.name for script in EXAMPLES.glob("*.py") if script.name not in PARTS]
    assert all(f'"{script}"' in tests for script in scripts)
