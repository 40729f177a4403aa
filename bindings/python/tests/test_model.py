"""Questions to a model in process."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import DEVICE, best, cosines, dots, fasttext_file

import kindred
from kindred import _kindred
from kindred._options import OF_WORDS, AnalogyOptions, NearestOptions, RankOptions


def test_scores_are_the_contracts_to_the_bit(array, points):
    queries = np.random.default_rng(1).normal(size=(20, 37)).astype(np.float32)
    found = array.nearest(queries, k=25)
    assert found.indices.dtype == np.int64 and found.scores.dtype == np.float64
    for query, indices, scores in zip(queries, *found):
        rows, expected = best(cosines(points, query), 25)
        assert indices.tolist() == rows
        assert scores.tolist() == expected


def test_a_single_vector_a_batch_and_a_word_give_the_same_bits(demo):
    frog = demo.vector("frog")
    row = demo.row("frog")
    single = demo.nearest(frog, k=4)
    batch = demo.nearest(np.stack([frog, demo.vector("toad")]), k=4)
    assert [one.row for one in single] == batch.indices[0].tolist()
    assert [one.score for one in single] == batch.scores[0].tolist()
    assert single[0] == ("frog", pytest.approx(1.0), row)
    # A word is not its own neighbour, and a vector may be.
    assert demo.nearest("frog", k=3) == single[1:]
    assert demo.nearest_rows(row, k=3) == single[1:]
    assert demo.nearest_rows([row], k=3).indices[0].tolist() == [one.row for one in single[1:]]


def test_arrays_of_more_than_a_pass(array, points):
    everything = array.nearest(points[[row for row in range(3000) if row != 17]], k=3)
    assert everything.indices.shape == (2999, 3)
    by_row = array.nearest_rows(np.arange(3000), k=2)
    # Row 17 is zero: it has no neighbours, and is nobody's.
    assert by_row.indices[17].tolist() == [-1, -1] and np.isnan(by_row.scores[17]).all()
    assert 17 not in by_row.indices
    # Rows 80 and 90 are equal: the lower one first.
    assert by_row.indices[90, 0] == 80 and by_row.indices[80, 0] == 90
    several = [0, 79, 90, 2999]
    for row in several:
        rows, scores = best(cosines(points, points[row]), 2, left_out=[row])
        assert (by_row.indices[row].tolist(), by_row.scores[row].tolist()) == (rows, scores)


def test_fewer_neighbours_than_k_are_filled_up():
    model = kindred.from_array(np.eye(3, dtype=np.float32), device=DEVICE)
    found = model.nearest(np.float32([[1, 0, 0]]), k=5)
    assert found.indices.tolist() == [[0, 1, 2, -1, -1]]
    assert found.scores[0, :3].tolist() == [1, 0, 0] and np.isnan(found.scores[0, 3:]).all()
    assert len(model.nearest([1.0, 0.0, 0.0], k=5)) == 3


def test_no_queries_have_no_neighbours(array):
    assert array.nearest(np.zeros((0, 37), dtype=np.float32), k=3).indices.shape == (0, 3)
    assert array.nearest_rows(np.zeros(0, dtype=int), k=3).scores.shape == (0, 3)


def test_float64_and_float16_vectors_are_rounded_to_float32(array, points):
    query = np.random.default_rng(3).normal(size=37)
    for kind in (np.float64, np.float16):
        of_kind = query.astype(kind)
        assert array.nearest(of_kind, k=5) == array.nearest(of_kind.astype(np.float32), k=5)
        both = np.asfortranarray(np.stack([of_kind, of_kind]))
        assert array.nearest(both[:, ::1], k=5).scores[1].tolist() == [one.score for one in array.nearest(of_kind, k=5)]
    assert array.nearest(list(query), k=2) == array.nearest(query, k=2)
    assert array.nearest([1] * 37, k=2) == array.nearest(np.ones(37, dtype=np.float32), k=2)


def test_dot_products_with_biases(points):
    biases = np.random.default_rng(4).normal(size=3000).astype(np.float32)
    model = kindred.from_array(points, metric="dot", biases=biases, device=DEVICE)
    assert model.metric == "dot"
    query = points[5]
    rows, scores = best(dots(points, query) + biases.astype(np.float64), 10)
    found = model.nearest(query[None], k=10)
    assert (found.indices[0].tolist(), found.scores[0].tolist()) == (rows, scores)


@pytest.mark.parametrize(
    ("options", "check"),
    [
        ({"exclude": ["toad"]}, lambda words, scores: "toad" not in words),
        ({"include_query": True}, lambda words, scores: words[0] == "frog"),
        ({"vocab_limit": 5000}, lambda words, scores: len(words) == 10),
        ({"min_score": 0.6}, lambda words, scores: 0 < len(words) < 10 and min(scores) >= 0.6),
        ({"max_score": 0.5}, lambda words, scores: max(scores) <= 0.5),
        ({"filter": "key != frogs"}, lambda words, scores: len(words) == 10 and "frogs" not in words),
        ({"offset": 2}, lambda words, scores: len(words) == 10 and "frogs" not in words and scores[0] < 0.65),
        ({"fold_case": True}, lambda words, scores: len({word.lower() for word in words}) == 10),
        ({"timeout_ms": 60_000}, lambda words, scores: len(words) == 10),
        ({"unknown": "skip", "exclude": None}, lambda words, scores: len(words) == 10),
    ],
)
def test_filters(demo, options, check):
    found = demo.nearest("frog", **options)
    assert check([one.word for one in found], [one.score for one in found])
    if not OF_WORDS & options.keys():
        arrays = demo.nearest_rows([demo.row("frog")], k=10, **options)
        assert arrays.indices[0, : len(found)].tolist() == [one.row for one in found]
        assert (arrays.indices[0, len(found) :] == -1).all()


def test_analogies(demo):
    king = demo.analogy("king - man + woman", k=2)
    assert [one.word for one in king] == ["queen", "princess"]
    assert demo.analogy(positive=["king", "woman"], negative=["man"], k=2) == king
    assert demo.analogy(positive=[("king", 1.0), ("woman", 1)], negative="man", k=2) == king
    for method in ("3cosmul", "pairdirection"):
        answer = demo.analogy("king - man + woman", k=5, method=method)
        assert "queen" in [one.word for one in answer]
    each = demo.analogy(["king - man + woman", "paris - france + japan"], k=2)
    assert each[0] == king and each[1][0].word == "tokyo"
    assert demo.analogy("0.5*frog + (toad - 2*lizard)", k=1)


def test_explanations_add_up(demo):
    answer = demo.explain("king - man + woman", k=3)
    for neighbor in answer.neighbors:
        assert sum(term.part for term in neighbor.terms) == pytest.approx(neighbor.score, abs=1e-6)
        assert {term.kind for term in neighbor.terms} == {"contribution"}
    assert [one.word for one in answer.inputs] == ["king", "man", "woman"]
    product = demo.explain("king - man + woman", k=1, method="3cosmul").neighbors[0]
    assert np.prod([term.part for term in product.terms]) == pytest.approx(product.score, rel=1e-6)
    assert len(demo.explain(text="a quick brown fox", k=2).neighbors) == 2


def test_ranks_are_places_among_all_neighbours(demo):
    ranked = demo.rank(["toad", "piano"], "frog")
    top = demo.nearest("frog", k=1000)
    assert top[ranked[0].rank - 1].word == "toad" and top[ranked[0].rank - 1].score == ranked[0].score
    assert demo.rank("toad", demo.vector("frog"))[0].rank == ranked[0].rank + 1
    assert demo.rank("queen", [("king", 1), ("man", -1), ("woman", 1)])[0].rank == 1


def test_scores_without_a_search(demo):
    score = demo.nearest("frog", k=1)[0]
    assert demo.similarity("frog", score.word) == score.score
    assert demo.similarity(["frog", "toad"], ["toad", "frog"]) == pytest.approx(1)
    assert demo.similarities([("frog", score.word), ("frog", "frog")]).tolist() == [score.score, 1.0]
    odd = demo.odd_one_out(["breakfast", "lunch", "dinner", "piano"])
    assert odd.word == "piano" and odd.ranked[-1][0] == "piano"


def test_scores_of_all_rows_are_the_contracts(array, points):
    scores = array.scores(points[5])
    assert np.array_equal(scores, cosines(points, points[5]), equal_nan=True) and np.isnan(scores[17])
    with pytest.raises(kindred.ZeroVectorError):
        array.scores(points[17])


def test_words(demo):
    words = demo.words
    assert len(words) == len(demo) == 30_000 and words[-1] == list(words)[-1]
    assert words[1:4] == [words[1], words[2], words[3]] and words[3:0:-2] == [words[3], words[1]]
    assert words.rows(["frog", "no such"]).tolist() == [words.index("frog"), -1]
    assert words.of([words.index("frog"), 0]) == ["frog", "the"]
    assert "frog" in demo and "no such" not in demo and 5 not in demo
    assert demo.suggestions("frogg")[0] == "frog"
    assert all(word.startswith("fro") for word in demo.words_with_prefix("fro", 5))
    with pytest.raises(ValueError, match="no such"):
        words.index("no such")
    with pytest.raises(IndexError):
        words[30_000]


def test_vectors_are_views_that_nobody_can_change(demo):
    vectors = demo.vectors
    assert vectors.shape == demo.shape == (30_000, 100) and vectors.base is not None
    assert demo["frog"].tolist() == vectors[demo.row("frog")].tolist()
    with pytest.raises(ValueError, match="read-only"):
        vectors[0, 0] = 1
    with pytest.raises(ValueError, match="WRITEABLE"):
        vectors.flags.writeable = True


def test_views_outlive_their_model():
    model = kindred.from_array(np.ones((3, 2), dtype=np.float32), device=DEVICE)
    vectors = model.vectors
    del model
    assert vectors.sum() == 6


def test_heads(demo):
    one = demo.classify("a moving and funny film")
    assert one.labels[0].name == "positive" and one.unknown == []
    several = demo.classify(["a moving and funny film", "?!", "a dull, lifeless mess"])
    assert several[0] == one and several[1].labels == [] and several[2].labels[0].name == "negative"
    terms = demo.expand("cheap flights", top=5)
    assert len(terms.terms) == 5 and terms.terms[0].weight >= terms.terms[-1].weight > 0
    assert demo.expand(["cheap flights", "?!"], top=5)[0] == terms
    of_vectors = demo.expand(np.stack([demo["cheap"], demo["flights"]]), top=5)
    assert of_vectors.terms[0].token is None


def test_a_model_without_a_head_says_so(array):
    with pytest.raises(kindred.InvalidValueError, match="no built-in head; give head=FOLDER"):
        array.classify("anything")


def test_reports(demo, tmp_path):
    questions = tmp_path / "royals.txt"
    questions.write_text(": royals\nman king woman queen\nfrance paris japan tokyo\n")
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("frog,toad,9\nfrog,car,1\nfrog,lizard,7\n")
    report = demo.evaluate(analogies=questions, similarities=[pairs], methods=["3cosadd"])
    assert report["analogies"][0]["total"]["methods"]["3CosAdd"]["right"] == 2
    assert report["similarities"][0]["found"] == 3
    with pytest.raises(kindred.ModelError, match="no such file|No such file"):
        demo.evaluate(analogies=tmp_path / "missing.txt")


def test_graphs(array, tmp_path):
    graph = array.knn_graph(4)
    by_row = array.nearest_rows(np.arange(3000), k=4)
    assert graph.shape == (3000, 3000) and graph.nnz == 2999 * 4
    assert graph.indices[: 17 * 4].tolist() == by_row.indices[:17].ravel().tolist()
    assert graph.data[17 * 4 :].tolist() == by_row.scores[18:].ravel().tolist()
    assert graph[17].nnz == 0
    seen = []
    file = tmp_path / "graph.npz"
    made = array.write_graph(file, 4, progress=lambda done, rows: seen.append((done, rows)))
    assert made["edges"] == graph.nnz and seen[-1] == (3000, 3000)
    with np.load(file) as saved:
        assert saved["indices"].tolist() == by_row.indices.tolist()
        assert np.array_equal(saved["scores"], by_row.scores, equal_nan=True)
    with pytest.raises(kindred.ModelError, match="exists"):
        array.write_graph(file, 4)


@pytest.mark.parametrize(("question", "typed"), [("nearest", NearestOptions), ("analogy", AnalogyOptions), ("rank", RankOptions)])
def test_every_option_of_the_engine_is_typed(question, typed):
    # Arguments of their own, or methods of their own.
    elsewhere = {"k", "with_vectors", "with_text", "with_attributes", "explain"}
    of_values = {"whole": "int", "number": "float", "switch": "bool", "words": "Sequence[str]", "text": "str", "name": "str"}
    options = [name for name in _kindred.OPTIONS_OF[question] if name not in elsewhere]
    expected = {name: f"{of_values[_kindred.OPTIONS[name][0]]} | None" for name in options}
    assert {name: hint.__forward_arg__ for name, hint in typed.__annotations__.items()} == expected


def test_the_default_k_is_the_engines(demo):
    import inspect

    assert inspect.signature(demo.nearest).parameters["k"].default == _kindred.DEFAULT_K
    assert len(demo.nearest("frog")) == _kindred.DEFAULT_K


def test_no_word_is_unknown_to_a_fasttext_model(tmp_path):
    words, buckets = ["frog", "toad", "pond", "néné"], 50
    content, rows = fasttext_file(words, 8, buckets)
    (tmp_path / "m.bin").write_bytes(content)
    kindred.prepare(tmp_path / "m.bin", tmp_path / "m")

    def by_definition(word, own=()):
        parts = [*own]
        bracketed = f"<{word}>"
        for start in range(len(bracketed)):
            for end in range(start + 3, min(start + 5, len(bracketed)) + 1):
                value = 2166136261
                for byte in bracketed[start:end].encode():
                    signed = byte - 256 if byte > 127 else byte
                    value = (value ^ (signed & 0xFFFFFFFF)) * 16777619 & 0xFFFFFFFF
                parts.append(rows[len(words) + value % buckets])
        total = np.zeros(8, np.float32)
        for part in parts:
            total += part
        return total * np.float32(1 / len(parts))

    with kindred.open(tmp_path / "m") as model:
        for row, word in enumerate(words):
            assert model.vector(word).tobytes() == by_definition(word, [rows[row]]).tobytes()
        for word in ["frogs", "nénés", "東京都", " "]:
            vector = model.vector(word)
            assert vector.tobytes() == by_definition(word).tobytes() and not vector.flags.writeable
            assert word not in model
            assert model.nearest(word, k=3) == model.nearest(vector, k=3)
        assert model.nearest(["frogs", "frog"], k=2) == [model.nearest("frogs", k=2), model.nearest("frog", k=2)]
        assert model.similarity("frogs", "frog") == pytest.approx(cosines(model.vectors, model.vector("frogs"))[0])
        with pytest.raises(kindred.UnknownWordError):
            model.nearest("frogs", unknown="error")
        with pytest.raises(kindred.UnknownWordError):
            model.vector("x" * 65_537)
        with pytest.raises(kindred.UnknownWordError):
            model.row("frogs")
