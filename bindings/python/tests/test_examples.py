"""The scripts of examples/python, each run as its user would."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).parents[3] / "examples/python"


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


def test_each_script_has_a_test():
    tests = pathlib.Path(__file__).read_text()
    assert all(f'"{script.name}"' in tests for script in EXAMPLES.glob("*.py"))
