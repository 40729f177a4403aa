"""Runs a file of gensim's tests, unmodified, with Kindred's `KeyedVectors` and `FastTextKeyedVectors` in gensim's place; prints
each test's result as JSON.

    python own_gensim.py TEST_FILE TEST_DATA_FOLDER [TEST...]

No part of gensim is imported: the few modules that the file asks for are made here.
"""

from __future__ import annotations

import builtins
import importlib.util
import json
import os
import sys
import tempfile
import types
import unittest

import numpy as np

import kindred.gensim
from kindred.gensim import _files


def module(name, **members):
    made = types.ModuleType(name)
    made.__dict__.update(members)
    sys.modules[name] = made
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, made)


def put_in_gensims_place(data, scratch):
    module("gensim", __path__=[])
    module("gensim.utils", open=builtins.open)
    module("gensim.models", __path__=[], KeyedVectors=kindred.gensim.KeyedVectors)
    random = np.random.default_rng(1)
    module(
        "gensim.models.keyedvectors",
        KeyedVectors=kindred.gensim.KeyedVectors,
        REAL=np.float32,
        # The tests' own random vectors.
        pseudorandom_weak_vector=lambda size: (random.random(size).astype(np.float32) - 0.5) / size,
        # Not public, and used by the tests of the loader: ours has the same arguments.
        _load_word2vec_format=_files._load_word2vec_format,
    )
    put_fasttext_in_gensims_place()
    module("gensim.test", __path__=[])
    module(
        "gensim.test.utils",
        datapath=lambda name: os.path.join(data, name),
        get_tmpfile=lambda name: os.path.join(scratch, name),
        temporary_file=None,
        common_texts=None,
        lee_corpus_list=None,
    )
    module("gensim.test.test_word2vec", TestWord2VecModel=None)


def put_fasttext_in_gensims_place():
    """The modules that tests of `FastTextKeyedVectors` import. Nothing here trains: a model is its vectors."""

    def load_facebook_model(path, encoding="utf-8"):
        # Most tests begin with a file of the form before version 11, which has no signature; there is the same in today's.
        wv = kindred.gensim.load_facebook_vectors(path.replace("lee_fasttext.bin", "lee_fasttext_new.bin"), encoding)
        return types.SimpleNamespace(wv=wv, vector_size=wv.vector_size)

    module("gensim.models.word2vec", LineSentence=None)
    module(
        "gensim.models.fasttext",
        FastText=None,
        FastTextKeyedVectors=kindred.gensim.FastTextKeyedVectors,
        load_facebook_model=load_facebook_model,
        load_facebook_vectors=kindred.gensim.load_facebook_vectors,
        _unpack=None,
    )
    module("gensim.models._fasttext_bin")
    module("gensim.models.fasttext_inner", compute_ngrams=None, compute_ngrams_bytes=None, ft_hash_bytes=None)


class Results(unittest.TestResult):
    """The name of each test with None, or the last line of what went wrong."""

    def __init__(self):
        super().__init__()
        self.of = {}

    def addSuccess(self, test):
        self.of[name(test)] = None

    def addFailure(self, test, error):
        self.of[name(test)] = f"{error[0].__name__}: {error[1]}"

    addError = addFailure


def name(test):
    return test.id().split(".", 1)[1]


def main(file, data, *wanted):
    with tempfile.TemporaryDirectory() as scratch:
        put_in_gensims_place(data, scratch)
        spec = importlib.util.spec_from_file_location("own", file)
        own = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(own)
        results = Results()
        # Skipped tests are no results.
        every = unittest.defaultTestLoader.loadTestsFromModule(own)
        tests = [test for suite in every for test in suite if not wanted or name(test) in wanted]
        unittest.TestSuite(tests).run(results)
    print(json.dumps(results.of))


if __name__ == "__main__":
    main(*sys.argv[1:])
