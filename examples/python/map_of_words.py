"""Draws the most frequent words as maps, from one exact graph of nearest neighbours: python map_of_words.py [PICTURE [WORDS]]

Needs `pip install ./bindings/python[sklearn] matplotlib umap-learn`; without umap-learn it draws t-SNE's map alone.
"""

from __future__ import annotations

import sys

import numpy as np
from sklearn.cluster import HDBSCAN
from sklearn.manifold import TSNE

import kindred
from kindred.sklearn import KNeighborsTransformer


def main(picture: str, count: int) -> None:
    model = kindred.demo()
    # The first hundred words, such as `the`, are near to everything.
    words, points = model.words[100 : 100 + count], model.vectors[100 : 100 + count]

    # Each method takes the same graph: distances to the nearest neighbours of each word.
    graph = KNeighborsTransformer(n_neighbors=100, metric="euclidean_of_unit").fit_transform(points)
    maps = {"t-SNE": TSNE(metric="precomputed", init="random", random_state=0, n_jobs=1).fit_transform(graph)}
    try:
        from umap import UMAP
    except ImportError:
        print("without umap-learn, there is no map by UMAP", file=sys.stderr)
    else:
        maps["UMAP"] = UMAP(metric="precomputed", n_neighbors=30, random_state=0, n_jobs=1).fit_transform(both_ways(graph))
    groups = HDBSCAN(metric="precomputed", min_cluster_size=8, copy=True).fit_predict(connected(graph))
    print(f"{count} words, {graph.nnz} distances, {groups.max() + 1} groups")
    draw(picture, maps, groups, words)


def both_ways(graph):
    """The graph with each distance in both directions, as UMAP and HDBSCAN want it."""
    return graph.maximum(graph.T)


def connected(graph):
    """The graph in one piece, as HDBSCAN wants it: words that are in no other's reach are far from the first."""
    graph = both_ways(graph).tolil()
    graph[1:, 0] = graph[0, 1:] = 2.0
    return graph.tocsr()


def draw(picture: str, maps: dict, groups, words) -> None:
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(maps), figsize=(6.5 * len(maps), 6), squeeze=False)
    for axis, (name, places) in zip(axes[0], maps.items()):
        is_in = groups >= 0
        axis.scatter(*places[~is_in].T, s=2, color="#bbbbbb")
        axis.scatter(*places[is_in].T, s=4, c=groups[is_in], cmap="tab20")
        for group in range(groups.max() + 1):
            # Its most frequent word stands for a group.
            first = int(np.argmax(groups == group))
            axis.annotate(words[first], places[first], fontsize=7)
        axis.set(title=f"{name} of {len(words)} words, from one graph", xticks=[], yticks=[])
    figure.tight_layout()
    figure.savefig(picture, dpi=90)


if __name__ == "__main__":
    picture, count, *_ = *sys.argv[1:], *["map_of_words.png", "3000"][len(sys.argv) - 1 :]
    main(picture, int(count))
