"""A transformer for scikit-learn: exact nearest neighbours as a sparse graph, for UMAP, t-SNE, HDBSCAN and others.

It has the interface of `sklearn.neighbors.KNeighborsTransformer`, so pipelines take it in its place. Needs scikit-learn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

import kindred

if TYPE_CHECKING:
    import numpy.typing as npt


class KNeighborsTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Transforms points into a sparse graph of their nearest neighbours among the points that it was fitted on.

    Args:
        mode: ``distance``, or ``connectivity`` for ones. With ``distance`` each point is its own first neighbour, and one more
            than ``n_neighbors`` is stored, as scikit-learn does.
        n_neighbors: 1 to 999.
        metric: ``cosine`` (the distance 1 - cosine), ``angular`` (the angle, in radians) or ``euclidean_of_unit`` (the distance of
            the normalised points). All have the same neighbours.
        device: as in `kindred.open`.
        n_jobs: threads of the CPU engine; None or -1 for one per core.

    >>> import numpy
    >>> from kindred.sklearn import KNeighborsTransformer
    >>> points = numpy.random.default_rng(0).normal(size=(100, 8))
    >>> graph = KNeighborsTransformer(n_neighbors=5).fit_transform(points)
    >>> graph.shape, graph.nnz
    ((100, 100), 600)
    """

    def __init__(
        self, *, mode: str = "distance", n_neighbors: int = 5, metric: str = "cosine", device: str = "auto", n_jobs: int | None = None
    ) -> None:
        self.mode = mode
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.device = device
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> KNeighborsTransformer:
        """Keeps the points ``[n_samples, n_features]``."""
        if self.mode not in ("distance", "connectivity"):
            raise ValueError(f"`mode` must be 'distance' or 'connectivity', not {self.mode!r}")
        if self.metric not in _DISTANCES:
            raise ValueError(f"`metric` must be one of {', '.join(_DISTANCES)}, not {self.metric!r}")
        X = validate_data(self, X, dtype=[np.float32, np.float64])
        threads = 0 if self.n_jobs is None or self.n_jobs < 1 else self.n_jobs
        self.model_ = kindred.from_array(X, device=self.device, threads=threads)
        self.n_samples_fit_ = X.shape[0]
        return self

    def transform(self, X: Any) -> csr_matrix:
        """The graph from the points ``[n_queries, n_features]`` to their neighbours: ``[n_queries, n_samples_fit]``."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float32, np.float64], reset=False)
        # In the graph of distances, a point that was fitted is its own neighbour, and does not count.
        k = min(self.n_neighbors + (self.mode == "distance"), self.n_samples_fit_)
        indices, scores = self._nearest(np.asarray(X), k)
        return self._graph(indices, scores)

    def fit_transform(self, X: Any, y: Any = None) -> csr_matrix:
        """The graph of the points among themselves."""
        return self.fit(X).transform(X)

    def _nearest(self, X: npt.NDArray[Any], k: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        vectors = X.astype(np.float32)
        # A zero vector has no direction, and so no neighbours.
        has_direction = vectors.any(axis=1)
        indices = np.full((len(X), k), -1, dtype=np.int64)
        scores = np.full((len(X), k), np.nan)
        if has_direction.any():
            indices[has_direction], scores[has_direction] = self.model_.nearest(vectors[has_direction], k)
        return indices, scores

    def _graph(self, indices: npt.NDArray[np.int64], scores: npt.NDArray[np.float64]) -> csr_matrix:
        is_there = indices >= 0
        ends = np.concatenate([[0], np.cumsum(is_there.sum(axis=1))])
        if self.mode == "connectivity":
            data = np.ones(is_there.sum())
        else:
            cosines = scores[is_there]
            # Rounding may put the cosine of a vector with itself a little below 1; its distance is 0.
            data = _DISTANCES[self.metric](np.where(cosines > 1 - 1e-15, 1.0, cosines))
        shape = (len(indices), self.n_samples_fit_)
        return csr_matrix((data, indices[is_there], ends), shape=shape)

    @property
    def _n_features_out(self) -> int:
        return int(self.n_samples_fit_)


# Cosines are at most 1, so no distance is negative.
_DISTANCES: dict[str, Callable[[Any], Any]] = {
    "cosine": lambda cosine: 1.0 - cosine,
    "angular": np.arccos,
    "euclidean_of_unit": lambda cosine: np.sqrt(2.0 - 2.0 * cosine),
}
