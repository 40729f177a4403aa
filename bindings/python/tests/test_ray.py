"""Bulk work on a Ray cluster of three nodes, compared with a single process."""

from __future__ import annotations

import math
import os
import pathlib
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest

import kindred

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    ray = pytest.importorskip("ray")
    pytest.importorskip("ray.data")
    import kindred.ray
    from kindred.ray import _answers, _source

# Ray leaves sockets and files to the end of the process, and warns about its own plans.
pytestmark = pytest.mark.filterwarnings("ignore")

os.environ.update(
    RAY_USAGE_STATS_ENABLED="0",
    # What other programs on this machine do with its memory must not end these.
    RAY_memory_monitor_refresh_ms="0",
    RAY_DEDUP_LOGS="0",
)


class Nodes:
    """Three nodes of one CPU each, on loopback addresses. The first is the cluster's head, which a cluster can't lose."""

    def __init__(self):
        from ray.cluster_utils import Cluster

        # A killed node is noticed after a refused connection or two, a slow one not before a minute.
        detection = {"health_check_period_ms": 500, "health_check_timeout_ms": 30_000, "health_check_failure_threshold": 2}
        # A worker takes seconds of imports: none is started before it is needed, or ended because it waits.
        workers = {
            "enable_worker_prestart": False,
            "prestart_worker_first_driver": False,
            "num_workers_soft_limit": 8,
            "idle_worker_killing_time_threshold_ms": 600_000,
        }
        of_each = {"num_cpus": 1, "object_store_memory": 80_000_000}
        head = {"node_ip_address": "127.0.0.2", "include_dashboard": False, "_system_config": detection | workers}
        self.cluster = Cluster(initialize_head=True, head_node_args={**of_each, **head})
        self.others = [self.cluster.add_node(node_ip_address=f"127.0.0.{3 + n}", **of_each) for n in range(2)]
        ray.init(address=self.cluster.address, log_to_driver=False)

    def kill_one(self):
        self.cluster.remove_node(self.others.pop(), allow_graceful=False)

    def stop(self):
        ray.shutdown()
        self.cluster.shutdown()


@pytest.fixture(scope="module")
def nodes():
    nodes = Nodes()
    yield nodes
    nodes.stop()


@pytest.fixture(scope="module")
def model():
    return kindred.demo(device="cpu")


def some_texts(model, count):
    """Texts of the model's words, and some odd ones."""
    rng = np.random.default_rng(3)
    texts = [" ".join(model.words[int(row)] for row in rng.integers(0, 20_000, size=1 + n % 9)) for n in range(count)]
    texts[1::97] = [None] * len(texts[1::97])
    texts[2::89] = ["zzzqx qqqqzz"] * len(texts[2::89])
    texts[3::83] = [""] * len(texts[3::83])
    texts[4::79] = ["a zzzqx film"] * len(texts[4::79])
    return texts


@pytest.fixture(scope="module")
def texts(model):
    return some_texts(model, 9_000)


@pytest.fixture(scope="module")
def source(tmp_path_factory, texts):
    """Three files with texts of three string types, and row groups of odd sizes."""
    folder = tmp_path_factory.mktemp("texts")
    kinds = (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string()))
    ends = (0, 2_500, 2_501, len(texts))
    for n, (first, end) in enumerate(zip(ends, ends[1:])):
        column = pa.array(texts[first:end], pa.string()).cast(kinds[n])
        ids = pa.array([f"id-{row}" for row in range(first, end)])
        pq.write_table(pa.table({"id": ids, "text": column}), folder / f"part-{n}.parquet", row_group_size=700)
    (folder / "_ignored.parquet").write_bytes(b"no Parquet")
    return folder


def results(out):
    """What a job wrote, in the order of its files."""
    return pa.concat_tables([pq.read_table(file) for file in sorted(out.glob("rows-*.parquet"))])


def same_bits(a, b):
    """Whether numbers are the same to the bit."""
    return np.array_equal(np.asarray(a, np.float64).view(np.int64), np.asarray(b, np.float64).view(np.int64))


def check_classified(table, texts, model):
    """Compares results with those of a single process, row by row."""
    answers = model.classify([text or "" for text in texts])
    columns = table.to_pydict()
    assert columns["label"] == [answer.labels[0].name if answer.labels else None for answer in answers]
    for name in ("probability", "score"):
        expected = [getattr(answer.labels[0], name) for answer in answers if answer.labels]
        assert same_bits([value for value in columns[name] if value is not None], expected)
    for row, (text, answer) in enumerate(zip(texts, answers)):
        error = columns["error"][row]
        if answer.labels:
            assert (columns["unknown"][row], columns["is_cut"][row], error) == (answer.unknown, answer.is_cut, None)
        else:
            assert columns["unknown"][row] is None and error.startswith("the value is null" if text is None else "the text has no word")


def test_a_node_is_killed_in_the_middle_and_no_row_is_lost_or_doubled(nodes, source, texts, model, tmp_path):
    out, seen = tmp_path / "out", []

    def progress(done, rows):
        seen.append(done)
        if done > 0 and len(nodes.others) == 2:
            nodes.kill_one()

    summary = kindred.ray.classify(source, out, column="text", keep=["id"], block_rows=300, progress=progress)
    assert (summary.rows, summary.blocks, summary.resumed) == (9_000, 30, 0)
    assert seen == sorted(seen) and seen[-1] == 9_000 and len(nodes.others) == 1
    table = results(out)
    assert table["row"].to_pylist() == list(range(9_000))
    assert table["id"].to_pylist() == [f"id-{row}" for row in range(9_000)]
    check_classified(table, texts, model)
    assert summary.errors == 9_000 - table["error"].null_count > 0
    assert [name for name in os.listdir(out) if name.endswith(".part")] == []
    # Readers of Parquet see the results alone.
    assert pq.read_table(out).num_rows == 9_000

    # A second call finds all there. What is lost, damaged or of another job is done again, to the same bytes.
    again = lambda: kindred.ray.classify(source, out, column="text", keep="id", block_rows=300)  # noqa: E731
    assert (again().resumed, again().rounds) == (30, 0)
    files = sorted(out.glob("rows-*.parquet"))
    before = [file.read_bytes() for file in files]
    files[3].unlink()
    damaged = bytearray(before[7])
    damaged[len(damaged) // 3] ^= 1
    files[7].write_bytes(damaged)
    files[8].write_bytes(before[8][:-100])
    files[9].write_bytes(before[10])
    (out / ".rows-000000000000900.parquet.1.part").write_bytes(b"half")
    summary = again()
    assert (summary.resumed, summary.rounds) == (26, 1)
    assert [file.read_bytes() for file in files] == before
    assert not list(out.glob(".*.part"))

    # Other work is refused, and so is a folder with something else in it.
    with pytest.raises(kindred.InvalidValueError, match="block_rows was 300, and is 200"):
        kindred.ray.classify(source, out, keep=["id"], block_rows=200)
    with pytest.raises(kindred.InvalidValueError, match="what was classify, and is expand"):
        kindred.ray.expand(source, out, keep=["id"], block_rows=300)
    with pytest.raises(kindred.InvalidValueError, match="engine was cpu, and is cuda"):
        kindred.ray.classify(source, out, keep=["id"], block_rows=300, device="cuda:0")
    table = pq.read_table(source / "part-1.parquet")
    pq.write_table(table.set_column(1, "text", pa.array(["another"], pa.large_string())), source / "part-1.parquet")
    with pytest.raises(kindred.InvalidValueError, match="the source's files have changed"):
        kindred.ray.classify(source, out, keep=["id"], block_rows=300)
    with pytest.raises(kindred.InvalidValueError, match="is not empty"):
        kindred.ray.classify(source, source, keep=["id"])


def test_another_version_of_the_model_is_refused_and_a_missing_one_named(nodes, tmp_path):
    def prepare(seed):
        rows = np.random.default_rng(seed).normal(size=(300, 8))
        (tmp_path / "v.txt").write_text("".join(f"w{n} {' '.join(map(str, row))}\n" for n, row in enumerate(rows)))
        kindred.prepare(tmp_path / "v.txt", tmp_path / "model", replace=True)

    prepare(1)
    opened = kindred.open(tmp_path / "model", device="cpu")
    out = tmp_path / "graph"
    summary = kindred.ray.graph(out, model=tmp_path / "model", k=7, first_rows=250, block_rows=100)
    assert summary[:5] == (250, 0, 3, 0, 1) and 0 < summary.seconds < 60
    table, expected = results(out), opened.nearest_rows(np.arange(250), 7, vocab_limit=250)
    assert table["row"].to_pylist() == list(range(250))
    assert table["neighbor_rows"].to_pylist() == expected.indices.tolist()
    assert same_bits(table["scores"].to_pylist(), expected.scores)
    del opened

    prepare(2)
    with pytest.raises(kindred.InvalidValueError, match="model was .*, and is "):
        kindred.ray.graph(out, model=tmp_path / "model", k=7, first_rows=250, block_rows=100)
    with pytest.raises(kindred.ModelError, match=r"node .* \(127\.0\.0\.\d\).*nowhere.*on each node"):
        kindred.ray.graph(tmp_path / "other", model=tmp_path / "nowhere")
    # A worker's own look at it, where only some nodes lack the folder or have another one.
    from kindred.ray._workers import Opening

    with pytest.raises(kindred.ModelError, match=r"^node .*nowhere.*use a shared disk"):
        Opening(os.fspath(tmp_path / "nowhere"), "cpu", 1).open()
    with pytest.raises(kindred.ModelError, match="^node .*another model"):
        Opening(os.fspath(tmp_path / "model"), "cpu", 1, "0123456789abcdef").open()


def test_a_worker_that_fails_ends_the_job_with_its_error(nodes, source, tmp_path):
    with pytest.raises(kindred.ModelError, match=r"^node .*no-head"):
        kindred.ray.classify(source, tmp_path / "out", head=tmp_path / "no-head")
    with pytest.raises(kindred.EngineError, match=r"^node .*"):
        kindred.ray.expand(source, tmp_path / "out", device="cuda:0", actors=1)
    with pytest.raises(kindred.InvalidValueError, match="no node has room for a worker of 2 CPUs and 0 GPUs: .* 1 CPUs"):
        kindred.ray.expand(source, tmp_path / "out", device="cpu", cpus=2)
    with pytest.raises(kindred.InvalidValueError, match="no node has room .* GPUs") as refused:
        kindred.ray.expand(source, tmp_path / "out", device="cuda:0", gpus=1)
    assert refused.value.field == "gpus"


def test_a_dataset_gets_columns(nodes, model, texts):
    dataset = ray.data.from_arrow([pa.table({"n": range(50), "text": texts[:50]}), pa.table({"n": range(50, 90), "text": texts[50:90]})])
    answered = kindred.ray.classify(dataset, actors=1, all_labels=True)
    table = pa.concat_tables(ray.get(answered.to_arrow_refs())).sort_by("n")
    assert table["n"].to_pylist() == list(range(90)) and table["text"].to_pylist() == texts[:90]
    check_classified(table, texts[:90], model)
    for labels, scores, text in zip(table["labels"].to_pylist(), table["scores"].to_pylist(), texts):
        answer = model.classify(text or "")
        assert (labels or []) == [label.name for label in answer.labels]
        assert same_bits(scores or [], [label.score for label in answer.labels])


def single(call):
    """What a single process answers: neighbours, or the text of its error."""
    try:
        return call()
    except kindred.KindredError as error:
        return str(error)


@pytest.mark.parametrize("options", [{}, {"include_query": True, "max_score": 0.7}, {"fold_case": True}, {"exclude": ["toad"]}])
def test_words_have_the_neighbours_and_the_errors_of_a_single_process(model, options):
    words = ["frog", "frogg", "piano", None, "", "the", "Frog", "zzzqx"] * 3
    table = pa.table(_answers.Nearest(5, options).answer(model, pa.array(words), "word"))
    for word, row in zip(words, table.to_pylist()):
        found = "the value is null" if word is None else single(lambda: model.nearest(word, 5, **options))  # noqa: B023
        if isinstance(found, str):
            assert row == {"neighbors": None, "neighbor_rows": None, "scores": None, "error": found}
        else:
            assert list(zip(row["neighbors"], row["scores"], row["neighbor_rows"])) == found and row["error"] is None


@pytest.mark.parametrize("metric", ["cosine", "dot"])
def test_vectors_have_the_neighbours_and_the_errors_of_a_single_process(metric):
    points = np.random.default_rng(1).normal(size=(400, 6)).astype(np.float32)
    points[3] = 0
    opened = kindred.from_array(points, metric=metric, device="cpu")
    vectors = [*points[:5].tolist(), None, [1.0, 2.0], [0.0] * 6, [math.nan] * 6, [1.0] * 5 + [math.inf], points[9].tolist()]
    for kind in (pa.list_(pa.float32()), pa.large_list(pa.float64())):
        table = pa.table(_answers.Nearest(3).answer(opened, pa.array(vectors, kind), "v"))
        for vector, row in zip(vectors, table.to_pylist()):
            if vector is None or len(vector) != 6:
                assert row["error"].startswith("the value is null" if vector is None else "the vector has 2 components, but")
                continue
            found = single(lambda: opened.nearest(np.array(vector, kind.value_type.to_pandas_dtype()), 3))  # noqa: B023
            if isinstance(found, str):
                # In a batch, the message may count the vector.
                assert row["neighbors"] is None and row["error"]
            else:
                assert list(zip(row["neighbors"], row["scores"], row["neighbor_rows"])) == found and row["error"] is None
    if metric == "cosine":
        # A zero row has no direction, also if its word is asked for.
        table = pa.table(_answers.Nearest(3).answer(opened, pa.array(["3", "4"]), "word"))
        assert table["error"].to_pylist() == [single(lambda: opened.nearest("3", 3)), None]


def test_terms_are_those_of_a_single_process(model, texts):
    table = pa.table(_answers.Expand(None, 7, 0.0, 0.0).answer(model, pa.array(texts[:300]), "text"))
    for text, row in zip(texts, table.to_pylist()):
        answer = model.expand(text or "", top=7)
        assert list(zip(row["terms"] or [], row["weights"] or [], row["term_rows"] or [])) == [term[:3] for term in answer.terms]
        assert (row["unknown"] or []) == answer.unknown and (row["error"] is None) == (row["terms"] is not None)


def test_a_text_that_is_not_utf_8_is_an_error_of_its_row(model):
    buffer = pa.array([b"a fine film", b"\xff\xfe", None, b"a bad film"])
    column = pa.Array.from_buffers(pa.string(), 4, buffer.buffers())
    table = pa.table(_answers.Classify(None, False).answer(model, column, "text"))
    assert table["error"].to_pylist() == [None, "the text is not UTF-8", "the value is null", None]


def test_any_range_of_rows_is_read_as_it_is(nodes, source):
    files = _source.look_at(_source.paths_of(source), ["id"])
    rows = _source.Rows(files, ["id"])
    for first, end in [(0, 10), (10, 30), (30, 2_600), (5, 6), (2_499, 2_502), (8_990, 9_000), (6_000, 6_001), (6_001, 7_777)]:
        for step in (7, 1_000):
            assert rows.read(first, end, step)["id"].to_pylist() == [f"id-{row}" for row in range(first, end)]


def test_columns_that_do_not_fit_are_refused(nodes, source, tmp_path):
    refused = lambda **options: pytest.raises(kindred.InvalidValueError, **options)  # noqa: E731
    with refused(match="has no column `txt`; it has id, text"):
        kindred.ray.classify(source, tmp_path / "out", column="txt")
    numbers = tmp_path / "numbers.parquet"
    pq.write_table(pa.table({"text": [1, 2], "label": ["a", "b"], "row": [5, 6]}), numbers)
    with refused(match=r"numbers.parquet: the column `text` must have strings, but has int64"):
        kindred.ray.classify(numbers, tmp_path / "out")
    for name in ("label", "row"):
        with refused(match=f"column `{name}` has the name of an answer's column"):
            kindred.ray.classify(numbers, tmp_path / "out", column="label", keep=[name])
    with refused(match="files need `out`"):
        kindred.ray.classify(numbers)
    with refused(match="a Dataset has no fixed blocks"):
        kindred.ray.classify(ray.data.from_items([{"text": "a"}]), tmp_path / "out")
    with pytest.raises(kindred.ModelError, match="has no Parquet files"):
        kindred.ray.classify(tmp_path / "*.pq", tmp_path / "out")
    with pytest.raises(kindred.ModelError, match=r"node .* can't read .*none.parquet"):
        kindred.ray.classify(tmp_path / "none.parquet", tmp_path / "out")
    with pytest.raises(TypeError, match="no option `gpu`"):
        kindred.ray.classify(numbers, tmp_path / "out", gpu=1)
    assert not (tmp_path / "out").exists()


def test_the_programs_of_the_document_print_what_they_say(nodes, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    document = (pathlib.Path(__file__).parents[3] / "docs/python-ray.md").read_text()
    known: dict[str, object] = {}
    for program in re.findall(r"```python\n(.*?)```", document, re.DOTALL):
        said = re.findall(r"print\(.*\)  # (.*)", program)
        exec(program, known)
        assert capsys.readouterr().out.splitlines() == said != []


def test_impossible_workers_are_refused(source, tmp_path):
    for options in ({"actors": 0}, {"cpus": -1}, {"gpus": float("nan")}, {"device": "auto"}, {"block_rows": 0}):
        (name,) = options
        with pytest.raises(kindred.InvalidValueError, match=f"`{name}` must be") as refused:
            kindred.ray.graph(tmp_path / "out", **options)
        assert refused.value.field == name and not (tmp_path / "out").exists()
    with pytest.raises(kindred.InvalidValueError, match="`k` must be"):
        kindred.ray.graph(tmp_path / "out", k=0)


def test_ray_is_imported_on_demand_and_its_lack_is_explained():
    program = """
import sys
import kindred
assert not {"ray", "pyarrow"} & set(sys.modules)
sys.modules["ray"] = None
try:
    import kindred.ray
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert "pip install 'kindred-vectors[ray]'" in done.stdout
