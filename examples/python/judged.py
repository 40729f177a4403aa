"""Collections with judgements of which documents are relevant: reads them, measures rankings, and compares them."""

import html
import json
import re
from pathlib import Path

import ir_measures
import numpy as np

MEASURES = [ir_measures.AP @ 1000, ir_measures.nDCG @ 10, ir_measures.R @ 100]
PARTS = ("docno|num", "title|headline", "text")  # of TREC's documents and topics
FOLDS, REPETITIONS, PERMUTATIONS, SEED = 5, 10, 9_999, 1


def add_arguments(parser):
    for name in ("--documents", "--queries", "--qrels"):
        parser.add_argument(name, required=True)
    parser.add_argument("--query-ids", choices=["file", "position"], help="what the judgements number queries by")


def read_texts(path):
    """The ids and the texts of documents or queries, from TREC's markup or JSON lines."""
    content, found = Path(path).read_text(encoding="utf-8"), []
    if content.startswith("{"):
        for line in map(json.loads, content.strip().split("\n")):
            found.append((str(line.get("id", line.get("_id"))), line.get("title") or "", line["text"]))
    for element in re.findall(r"(?is)<(?:doc|top)>(.*?)</(?:doc|top)>", content):
        parts = [" ".join(re.findall(rf"(?is)<(?:{name})>(.*?)</(?:{name})>", element)) for name in PARTS]
        found.append([" ".join(html.unescape(re.sub(r"</?[a-zA-Z][^<>]*>", " ", part)).split()) for part in parts])
    texts = [text if text.startswith(title) else f"{title} {text}" for _, title, text in found]  # Some repeat it.
    return np.array([part[0] for part in found], dtype=object), texts


def read(options, parser):
    """The ids and texts of the documents, the relevant ones of each judged query, and these queries."""
    (document_ids, documents), (query_ids, queries) = read_texts(options.documents), read_texts(options.queries)
    query_ids = [str(place + 1) for place in range(len(queries))] if options.query_ids == "position" else query_ids
    judged = {}
    for line in Path(options.qrels).read_text(encoding="utf-8").splitlines():
        query, *_, document, relevance = line.split()
        if relevance != "score" and int(relevance) > 0:  # BEIR's header ends in `score`.
            judged.setdefault(query, {})[document] = int(relevance)
    if (not options.query_ids and not set(judged) <= set(query_ids)) or set(judged).isdisjoint(query_ids):
        parser.error("some judged queries are not in the file: choose --query-ids position, or file to leave them out")
    relevant = {query: judged[query] for query in query_ids if query in judged}
    return document_ids, documents, relevant, [text for query, text in zip(query_ids, queries) if query in judged]


def measure(scores, document_ids, relevant):
    """The measures of each query. Ranks are given as scores, so that equal scores keep the order of documents."""
    run = {}
    for query, own, best in zip(relevant, scores, np.argsort(-scores, axis=1, kind="stable")[:, :1000]):
        run[query] = dict(zip(document_ids[best[own[best] > 0]], range(1000, 0, -1)))
    values = {(found.query_id, found.measure): found.value for found in ir_measures.iter_calc(MEASURES, relevant, run)}
    return np.array([[values[query, one] for one in MEASURES] for query in relevant])


class Comparison:
    """Figures of several ways, in lines of a table. The first is the one that all others are compared with.

    Parameters are chosen by cross-validation: a fold takes those that are best on the others.
    """

    def __init__(self, queries):
        random = np.random.default_rng(SEED)
        orders = [random.permutation(queries) % FOLDS for _ in range(REPETITIONS)]
        self.folds = [order == fold for order in orders for fold in range(FOLDS)]
        self.signs = random.choice([-1, 1], size=(PERMUTATIONS, queries))
        self.baseline = None
        print("| | MAP | p | nDCG@10 | p | recall@100 | p |\n|---|---|---|---|---|---|---|")

    def best(self, figures):
        """Of some ways, those with the highest MAP on the other folds, for each fold."""
        return [figures[:, ~fold, 0].mean(axis=1).argmax() for fold in self.folds]

    def chosen(self, figures):
        """The figures of each query by the ways that its folds choose."""
        means = np.zeros(figures.shape[1:])
        for fold, best in zip(self.folds, self.best(figures)):
            means[fold] += figures[best, fold] / REPETITIONS
        return means

    def show(self, name, means):
        self.baseline = means if self.baseline is None else self.baseline
        # A paired permutation test: how often random signs bring the sum of the differences as far from 0.
        difference = means - self.baseline
        as_far = abs(self.signs @ difference) >= abs(difference.sum(axis=0)) - 1e-9
        p = (as_far.sum(axis=0) + 1) / (PERMUTATIONS + 1)
        print(f"| {name} |", " | ".join(f"{mean:.4f} | {chance:.4f}" for mean, chance in zip(means.mean(axis=0), p)), "|")
