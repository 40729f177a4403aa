"""What do vectors of texts find? Compares them with BM25, alone and together with it, by judgements:

    python documents.py --words models/glove.6B.50d --static models/static --documents cran.all.1400.xml \\
        --queries cran.qry.xml --qrels cranqrel.trec.txt --query-ids position

Needs `pip install ./bindings/python bm25s PyStemmer ir_measures`. Models are folders made by `kindred prepare`.
"""

import argparse
from functools import partial
from itertools import product

import bm25s
import kindred
import numpy as np
import Stemmer
from judged import Comparison, add_arguments, measure, read

K1, B = (0.6, 1.2, 2.5, 5.0), (0.3, 0.5, 0.75, 0.9)
WEIGHTS = (0.05, 0.1, 0.2, 0.5, 1.0)  # of a cosine beside BM25, whose best score of a query is 1
SIF, RANK_FUSION = 1e-3, 60  # the constants of both papers
all_words_of = partial(bm25s.tokenize, token_pattern=r"[^\W_]+", stopwords=None, return_ids=False, show_progress=False)
words_of = partial(all_words_of, stopwords="en_plus")
terms_of = partial(words_of, stemmer=Stemmer.Stemmer("porter"))


def unit(vectors):
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def encoded(model, texts):
    """The vectors of texts, zero for a text without one."""
    vectors = np.zeros((len(texts), model.dim), np.float32)
    for place, text in enumerate(texts):
        try:
            vectors[place] = model.encode(text)
        except kindred.KindredError as error:
            print(f"without a vector: text {place}: {error}")
    return unit(vectors)


def means(model, texts, weights):
    """The means of the vectors of each text's words, with a weight for each row of the model."""

    def mean(words):
        rows = [model.row(word) for word in words if word in model]
        return weights[rows] @ model.vectors[rows] / len(rows) if rows else np.zeros(model.dim)

    return np.array([mean(words) for words in texts])


def smooth_inverse_frequency(model, documents, texts):
    """Means in which frequent words weigh less (Arora, Liang and Ma 2017). Frequencies follow the rows, as Zipf has it."""
    frequency = 1 / np.arange(1, len(model) + 1)
    weights = SIF / (SIF + frequency / frequency.sum())
    both = [means(model, all_words_of(some), weights) for some in (documents, texts)]
    common = np.linalg.svd(both[0], full_matrices=False)[2][0]
    return [unit(some - np.outer(some @ common, common)) for some in both]  # without what all texts have in common


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
add_arguments(parser)
parser.add_argument("--words", help="a model of words, the most frequent first")
parser.add_argument("--static", help="a static model")
parser.add_argument("--vectors", nargs=2, metavar=("DOCUMENTS.npy", "QUERIES.npy"), help="vectors made elsewhere")
options = parser.parse_args()
document_ids, documents, relevant, texts = read(options, parser)
vectors = {}
if options.words:
    model = kindred.open(options.words, device="cpu")
    of_words = [means(model, words_of(some), np.ones(len(model))) for some in (documents, texts)]
    vectors["mean without stop words"] = [unit(some) for some in of_words]
    vectors["sum of unit vectors"] = encoded(model, documents), encoded(model, texts)
    vectors["SIF"] = smooth_inverse_frequency(model, documents, texts)
if options.static:
    model = kindred.open(options.static, device="cpu")
    vectors["static"] = encoded(model, documents), encoded(model, texts)
if options.vectors:
    vectors["given"] = tuple(unit(np.load(path)) for path in options.vectors)

# BM25 with every choice of its parameters, and for each query the best score is 1.
document_terms, query_terms = terms_of(documents), terms_of(texts)
bm25 = []
for k1, b in product(K1, B):
    index = bm25s.BM25(method="lucene", k1=k1, b=b)
    index.index(document_terms, show_progress=False)
    scores = np.array([index.get_scores(terms) if terms else np.zeros(len(documents)) for terms in query_terms])
    bm25.append(scores / np.maximum(scores.max(axis=1, keepdims=True), 1e-12))


def measured(scores):
    return measure(scores, document_ids, relevant)


def ranks(scores):
    return np.argsort(np.argsort(-scores, axis=1, kind="stable"), axis=1) + 1


comparison = Comparison(len(texts))
alone = np.array([measured(scores) for scores in bm25])
comparison.show("BM25", comparison.chosen(alone))
best = bm25[alone[:, :, 0].mean(axis=1).argmax()]
for name, (of_documents, of_queries) in vectors.items():
    cosines = of_queries @ of_documents.T
    # Any cosine is a rank; none is below what has no score at all.
    comparison.show(name, measured(cosines + 2))
    fused = 1 / (RANK_FUSION + ranks(best)) + 1 / (RANK_FUSION + ranks(cosines))  # (Cormack, Clarke and Buettcher 2009)
    comparison.show(f"BM25 and {name}, ranks fused", measured(fused))
    sums = np.array([measured(best + weight * cosines + 1) for weight in WEIGHTS])
    comparison.show(f"BM25 + weight × cosine of {name}", comparison.chosen(sums))
