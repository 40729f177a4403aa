"""Threads, signals, forks and pools."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from conftest import DEVICE

import kindred


@pytest.fixture
def folder(tmp_path):
    source = tmp_path / "vectors.txt"
    rows = np.random.default_rng(5).normal(size=(500, 8))
    source.write_text("".join(f"w{n} {' '.join(map(str, row))}\n" for n, row in enumerate(rows)))
    seen = []
    summary = kindred.prepare(source, tmp_path / "model", progress=lambda done, of: seen.append((done, of)))
    assert (summary["rows"], summary["dim"], summary["format"]) == (500, 8, "glove text")
    assert seen and seen[-1][0] <= seen[-1][1] == source.stat().st_size
    return tmp_path / "model"


def run(program, **environment):
    """Runs a program in a new interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_prepare_does_not_replace_unless_it_is_told_to(folder):
    source = folder.parent / "vectors.txt"
    with pytest.raises(kindred.ModelError, match="already holds a model; .*add `replace`"):
        kindred.prepare(source, folder)
    assert kindred.prepare(source, folder, replace=True)["rows"] == 500


def test_prepare_says_which_line_is_wrong(tmp_path):
    source = tmp_path / "vectors.txt"
    source.write_text("a 1 2\nb 1 x\n")
    with pytest.raises(kindred.ModelError, match="line 2"):
        kindred.prepare(source, tmp_path / "model")
    assert kindred.prepare(source, tmp_path / "model", skip_bad_rows=True)["bad_rows_skipped"] == 1


def test_prepare_tells_what_it_left_out(tmp_path):
    source = tmp_path / "vectors.txt"
    source.write_text("2 2\na 1 2\nb 1 2\n")
    assert kindred.prepare(source, tmp_path / "whole")["warnings"] == []
    source.write_text("3 2\na 1 2\nb 1 2\n\n")
    warnings = kindred.prepare(source, tmp_path / "model")["warnings"]
    assert [part in " ".join(warnings) for part in ("empty lines at its end (1)", "announces 3 rows")] == [True, True]
    source.write_text("9 2\na 1 2\nb 1 2\n")
    with pytest.raises(kindred.ModelError, match=r"tail .* \| kindred prepare - --format glove --dim 2 --out DIR"):
        kindred.prepare(source, tmp_path / "other")


def test_prepare_takes_numbers_for_words_only_if_it_is_told_to(tmp_path):
    source = tmp_path / "vectors.txt"
    source.write_text("0.5 1 2\n-1.5 1 2\n")
    with pytest.raises(kindred.ModelError, match="`words` FILE.*add `allow_numeric_words`"):
        kindred.prepare(source, tmp_path / "model")
    assert kindred.prepare(source, tmp_path / "model", allow_numeric_words=True)["dim"] == 2


def test_prepare_reads_the_rows_encoding_and_separator_that_are_named(tmp_path):
    source = tmp_path / "vectors.tsv"
    source.write_bytes("café\t1\t0\nroute 66\t0\t1\nx\tbad\t1\n".encode("latin1"))
    named = dict(encoding="latin1", separator="tab")
    with pytest.raises(kindred.ModelError, match="line 3"):
        kindred.prepare(source, tmp_path / "model", **named)
    summary = kindred.prepare(source, tmp_path / "model", limit=2, **named)
    assert summary["format"] == "glove text separated by tabs, windows-1252, first 2 rows"
    assert list(kindred.open(tmp_path / "model", device=DEVICE).words) == ["café", "route 66"]
    with pytest.raises(kindred.ModelError, match="`encoding`"):
        kindred.prepare(source, tmp_path / "other", separator="tab")
    for wrong in [dict(encoding="latin-1"), dict(separator=";")]:
        with pytest.raises(kindred.InvalidValueError, match=next(iter(wrong))):
            kindred.prepare(source, tmp_path / "other", **wrong)
    source.write_text("2 2\nroute 66 1 0\ncat 0 1\n")
    with pytest.raises(kindred.ModelError, match="`allow_numeric_words`"):
        kindred.prepare(source, tmp_path / "other")
    assert kindred.prepare(source, tmp_path / "other", allow_numeric_words=True)["rows"] == 2


def test_prepare_puts_attributes_beside_the_rows(tmp_path):
    source, table = tmp_path / "vectors.txt", tmp_path / "attributes.csv"
    source.write_text("a 1 2\nbad 1 x\nb 2 1\na 3 3\n")
    table.write_text("price,zip\n1.5,007\n2,1\n,2\n3,3\n")
    how = dict(skip_bad_rows=True, replace=True)
    summary = kindred.prepare(source, tmp_path / "model", attributes=table, types={"zip": "integer"}, **how)
    assert summary["attributes"] == [
        {"name": "price", "type": "number", "distinct": 1, "missing": 1},
        {"name": "zip", "type": "integer", "distinct": 2, "missing": 0},
    ]
    assert summary["format"].endswith(", attributes of attributes.csv")
    table.write_text("w,n\nb,1\n")
    summary = kindred.prepare(source, str(tmp_path / "model"), attributes=str(table), key="w", **how)
    assert summary["attributes"] == [{"name": "n", "type": "integer", "distinct": 1, "missing": 1}]
    assert kindred.prepare(source, tmp_path / "model", **how)["attributes"] == []
    with pytest.raises(kindred.ModelError, match="it has 1 lines of attributes, .* with `key`$"):
        kindred.prepare(source, tmp_path / "model", attributes=table, **how)
    with pytest.raises(kindred.ModelError, match="which `types` names; it has n"):
        kindred.prepare(source, tmp_path / "model", attributes=table, key="w", types={"m": "text"}, **how)
    for wrong, field in [
        (dict(key="w"), "attributes"),
        (dict(types={"n": "text"}), "attributes"),
        (dict(attributes=table, types={"n": "float"}), "types"),
    ]:
        with pytest.raises(kindred.InvalidValueError, match=field):
            kindred.prepare(source, tmp_path / "model", **wrong, **how)


def test_an_exception_in_progress_ends_the_work(folder):
    class Enough(Exception):
        pass

    def progress(done, of):
        raise Enough

    with pytest.raises(Enough):
        kindred.prepare(folder.parent / "vectors.txt", folder.parent / "other", progress=progress)
    assert not (folder.parent / "other").exists()


def test_many_threads_ask_one_model(demo):
    expected = {word: demo.nearest(word, k=20) for word in ("frog", "piano", "king", "blue")}
    wrong = []

    def ask():
        for _ in range(20):
            for word, answer in expected.items():
                if demo.nearest(word, k=20) != answer:
                    wrong.append(word)

    threads = [threading.Thread(target=ask) for _ in range(16)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert wrong == []


def test_long_lists_of_many_threads_wait_for_room(array):
    """Together they ask for more than the queue holds."""
    words = [str(row) for row in range(1000) if row != 17]
    answers = []
    ask = lambda: answers.append(len(array.nearest(words, k=2)))  # noqa: E731
    threads = [threading.Thread(target=ask) for _ in range(24)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert answers == [999] * 24


def test_other_threads_run_while_one_waits(array):
    """A call that works does not hold the interpreter's lock."""
    ticks = 0
    is_over = threading.Event()

    def tick():
        nonlocal ticks
        while not is_over.is_set():
            ticks += 1
            time.sleep(0.001)

    ticking = threading.Thread(target=tick)
    ticking.start()
    started = time.monotonic()
    while time.monotonic() - started < 0.5:
        array.nearest_rows(np.arange(3000), k=100)
    is_over.set()
    ticking.join()
    assert ticks > 50


def test_ctrl_c_ends_a_long_call(array):
    program = f"""
import numpy as np, kindred, os, signal, threading, time
model = kindred.from_array(np.random.default_rng(0).normal(size=(60000, 64)).astype(np.float32), device={DEVICE!r})
# A shell starts background jobs with it ignored, and Python leaves it so.
signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
started = time.monotonic()
try:
    for _ in range(100):
        model.nearest_rows(np.arange(60000), k=100)
except KeyboardInterrupt:
    print("ended", time.monotonic() - started < 5)
print(model.nearest_rows(5, k=1)[0].row >= 0)
"""
    assert run(program).split() == ["ended", "True", "True"]


def test_a_model_is_pickled_as_its_path(folder):
    model = kindred.open(folder, device=DEVICE)
    again = pickle.loads(pickle.dumps(model))
    assert again.nearest("w7", k=3) == model.nearest("w7", k=3)


def test_a_model_over_an_array_is_pickled_with_its_numbers():
    model = kindred.from_array(np.eye(3, dtype=np.float32), ["a", "b", "c"], name="axes", device=DEVICE)
    again = pickle.loads(pickle.dumps(model))
    assert again.version == model.version and again.name == "axes" and list(again.words) == ["a", "b", "c"]


def _nearest(model, word):
    return [one.row for one in model.nearest(word, k=3)]


def test_pools_that_spawn_open_it_again(folder):
    model = kindred.open(folder, device=DEVICE, threads=1)
    expected = [_nearest(model, f"w{n}") for n in range(6)]
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert pool.starmap(_nearest, [(model, f"w{n}") for n in range(6)]) == expected


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_before_the_first_model_is_safe():
    program = f"""
import kindred, os
child = os.fork()
assert kindred.demo(device={DEVICE!r}).nearest("frog", k=1)[0].word == "frogs"
if child:
    assert os.waitpid(child, 0)[1] == 0
    print("both")
"""
    assert run(program).split() == ["both"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_of_an_open_model_is_a_clear_error_and_never_hangs():
    program = f"""
import kindred, os, signal
model = kindred.demo(device={DEVICE!r})
child = os.fork()
if child == 0:
    signal.alarm(20)
    for ask in (lambda: model.nearest("frog"), lambda: kindred.demo(), lambda: model.knn_graph(1)):
        try:
            ask()
            os._exit(1)
        except kindred.ForkError as error:
            assert "spawn" in str(error)
    # What needs no engine still works.
    assert model.similarity("frog", "toad") > 0.5 and model.word(0) if hasattr(model, "word") else True
    del model
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print(model.nearest("frog", k=1)[0].word)
"""
    assert run(program).split() == ["frogs"]


def test_the_interpreter_ends_with_models_open():
    program = f"import kindred; models = [kindred.demo(device={DEVICE!r}) for _ in range(3)]; print(models[0].nearest('frog', k=1)[0].word)"
    assert run(program).split() == ["frogs"]


def test_import_is_light():
    """Neither NumPy nor typing helpers: a program that only might ask pays nothing."""
    out = run("import sys, kindred; print('numpy' in sys.modules, 'scipy' in sys.modules, 'httpx' in sys.modules)")
    assert out.split() == ["False"] * 3


def test_the_program_runs():
    done = subprocess.run([sys.executable, "-m", "kindred", "--version"], capture_output=True, text=True)
    if "built without the program" in done.stderr:
        pytest.skip("this build has no program")
    assert done.returncode == 0 and done.stdout.startswith("kindred ")
    done = subprocess.run([sys.executable, "-m", "kindred", "nearest", "frog", "--json"], capture_output=True, text=True)
    assert "frogs" in done.stdout
