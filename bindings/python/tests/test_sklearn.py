"""The transformer for scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest

sklearn = pytest.importorskip("sklearn")
from sklearn.neighbors import KNeighborsTransformer as Reference  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402

from kindred.sklearn import KNeighborsTransformer  # noqa: E402


def failing(estimator):
    """Checks that do not apply, with the reason."""
    return {}


@parametrize_with_checks([KNeighborsTransformer(n_jobs=1, device="cpu")], expected_failed_checks=failing)
@pytest.mark.filterwarnings("default")
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("mode", ["distance", "connectivity"])
def test_it_gives_scikit_learns_graph(mode):
    points = np.random.default_rng(2).normal(size=(400, 20)).astype(np.float32)
    others = np.random.default_rng(3).normal(size=(30, 20)).astype(np.float32)
    ours = KNeighborsTransformer(mode=mode, n_neighbors=7, device="cpu").fit(points)
    theirs = Reference(mode=mode, n_neighbors=7, metric="cosine", algorithm="brute").fit(points)
    for X in (points, others):
        ours_of, theirs_of = ours.transform(X), theirs.transform(X)
        assert ours_of.shape == theirs_of.shape and ours_of.nnz == theirs_of.nnz
        assert abs(ours_of - theirs_of).max() < 1e-5


def test_it_takes_the_place_of_scikit_learns_in_a_pipeline():
    from sklearn.cluster import DBSCAN

    rng = np.random.default_rng(0)
    centres = np.eye(3)[rng.integers(3, size=200)]
    points = centres + 0.01 * rng.normal(size=(200, 3))
    pipeline = make_pipeline(KNeighborsTransformer(n_neighbors=50, device="cpu"), DBSCAN(eps=0.1, metric="precomputed"))
    labels = pipeline.fit_predict(points)
    assert set(labels) == {0, 1, 2}
    for label in range(3):
        assert len(set(centres[labels == label].argmax(axis=1))) == 1


def test_the_distance_to_itself_is_zero():
    points = np.random.default_rng(2).normal(size=(500, 33)).astype(np.float32)
    for metric in ("cosine", "angular", "euclidean_of_unit"):
        graph = KNeighborsTransformer(metric=metric, device="cpu").fit_transform(points)
        assert (graph.diagonal() == 0).all() and graph.data.min() == 0
        assert (graph.indices.reshape(500, 6)[:, 0] == np.arange(500)).all()


def test_distances():
    points = np.random.default_rng(2).normal(size=(50, 8)).astype(np.float32)
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    graph = {
        metric: KNeighborsTransformer(metric=metric, n_neighbors=5, device="cpu").fit_transform(points)
        for metric in ("cosine", "angular", "euclidean_of_unit")
    }
    for row, column in zip(*graph["cosine"].nonzero()):
        cosine = unit[row] @ unit[column]
        assert graph["cosine"][row, column] == pytest.approx(1 - cosine, abs=1e-5)
        assert graph["angular"][row, column] == pytest.approx(np.arccos(min(1, cosine)), abs=1e-3)
        assert graph["euclidean_of_unit"][row, column] == pytest.approx(np.linalg.norm(unit[row] - unit[column]), abs=1e-3)
