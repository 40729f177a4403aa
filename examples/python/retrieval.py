"""Does query expansion help your search? Compares ways to expand queries with BM25 alone, by judgements:

    python retrieval.py --model models/glove.6B.50d --documents cran.all.1400.xml --queries cran.qry.xml \\
        --qrels cranqrel.trec.txt --query-ids position

Needs `pip install ./bindings/python bm25s PyStemmer ir_measures scipy`. Without --model, it takes the demo's vectors.
"""

import argparse
from functools import partial
from itertools import chain, product

import bm25s
import kindred
import numpy as np
import Stemmer
from judged import REPETITIONS, Comparison, add_arguments, measure, read
from scipy import sparse

# The parameters to choose from: those of BM25, of RM3, and of words that a model adds.
K1, B = (0.6, 1.2, 2.5, 5.0), (0.3, 0.5, 0.75, 0.9)
RM3_DOCUMENTS, RM3_TERMS, RM3_WEIGHTS = (5, 10, 20), (20, 50, 100), (0.3, 0.5, 0.7)
ADDED_WORDS, ADDED_WEIGHTS = (1, 2, 5, 10, 20), (0.02, 0.1, 0.4)
# Words are letters and digits, in lower case, without the English stop words of NLTK. Terms are their stems.
words_of = partial(bm25s.tokenize, token_pattern=r"[^\W_]+", stopwords="en_plus", return_ids=False, show_progress=False)
terms_of = partial(words_of, stemmer=Stemmer.Stemmer("porter"))


def matrix(rows, vocabulary):
    """A sparse matrix from rows that are lists of terms with weights. The weights of equal terms add up."""
    found = [(i, vocabulary[term], weight) for i, row in enumerate(rows) for term, weight in row if term in vocabulary]
    row, column, weight = np.array(found).reshape(-1, 3).T
    return sparse.csr_array((weight, (row.astype(int), column.astype(int))), shape=(len(rows), len(vocabulary)))


def largest(weights, count):
    """A sparse matrix with only the largest weights of each row, divided by their sum."""
    rows = weights.toarray()
    rows[rows < np.sort(rows, axis=1)[:, -count:][:, :1]] = 0
    return sparse.csr_array(rows / np.maximum(rows.sum(axis=1, keepdims=True), 1e-9))


def rm3(queries, documents, bm25):
    """Interpolates the queries with terms of the best documents that they find (pseudo-relevance feedback)."""
    for best, count in product(RM3_DOCUMENTS, RM3_TERMS):
        feedback = largest(largest(queries @ bm25, best) @ documents, count)
        yield from ((1 - weight) * queries + weight * feedback for weight in RM3_WEIGHTS)


def added(queries, query_terms, lists, vocabulary):
    """Adds the first words of each query's lists, with their weights, except words whose terms the query has."""
    for count in ADDED_WORDS:
        rows = []
        for own, own_lists in zip(query_terms, lists):
            first = [item for found in own_lists for item in found[:count]]
            terms = zip(first, terms_of([item[0] for item in first]))
            rows.append([(term, item[1] / len(own)) for item, found in terms for term in found if term not in own])
        yield from (queries + weight * matrix(rows, vocabulary) for weight in ADDED_WEIGHTS)


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
add_arguments(parser)
parser.add_argument("--model", help="a folder made by `kindred prepare`")
parser.add_argument("--expander", nargs="+", default=[], help="folders of heads that expand")
options = parser.parse_args()
document_ids, documents, relevant, texts = read(options, parser)
document_terms, query_terms = terms_of(documents), terms_of(texts)
vocabulary = {term: number for number, term in enumerate(sorted(set(chain(*document_terms))))}
numbers = [[vocabulary[term] for term in terms] for terms in document_terms]
# A term's weight is its share of the document or query.
documents = matrix([[(term, 1 / len(terms)) for term in terms] for terms in document_terms], vocabulary)
queries = matrix([[(term, 1 / len(terms)) for term in terms] for terms in query_terms], vocabulary)
model = kindred.open(options.model, device="cpu") if options.model else kindred.demo(device="cpu")
known = [[word for word in words if word in model] for words in words_of(texts)]
lists = {"neighbours": [model.nearest(words, k=max(ADDED_WORDS)) if words else [] for words in known]}
lists["centroid"] = [[model.nearest_text(" ".join(words), k=max(ADDED_WORDS))] if words else [] for words in known]
for folder in options.expander:
    expanded = model.expand([" ".join(words) for words in known], top=max(ADDED_WORDS), head=folder)
    lists[folder] = [[[(term.word, term.weight / of.terms[0].weight) for term in of.terms]] for of in expanded]
with_words = {name: list(added(queries, query_terms, of, vocabulary)) for name, of in lists.items()}
# What each term gives to each document. BM25 is linear, so that queries times this matrix are the scores.
bm25 = []
for k1, b in product(K1, B):
    index = bm25s.BM25(method="lucene", k1=k1, b=b)
    index.index((numbers, vocabulary), create_empty_token=False, show_progress=False)
    arrays = tuple(index.scores[name] for name in ("data", "indices", "indptr"))
    bm25.append(sparse.csc_array(arrays, shape=documents.shape).T)

# First the parameters of BM25 are chosen, then those of the expansion.
comparison = Comparison(len(texts))
figures = np.array([measure((queries @ scores).toarray(), document_ids, relevant) for scores in bm25])
chosen = comparison.best(figures)
for name in ("BM25", "rm3", *lists):
    means = np.zeros(figures.shape[1:])
    for base in set(chosen):
        ways = {"BM25": [queries], "rm3": rm3(queries, documents, bm25[base]), **with_words}[name]
        figures = np.array([measure((way @ bm25[base]).toarray(), document_ids, relevant) for way in ways])
        for fold, best, own in zip(comparison.folds, comparison.best(figures), chosen):
            if own == base:
                means[fold] += figures[best, fold] / REPETITIONS
    comparison.show(name, means)
