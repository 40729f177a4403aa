"""gensim's class, if gensim is there: what `kindred.gensim` is compared with."""

from __future__ import annotations

import warnings

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    try:
        from gensim.models.keyedvectors import KeyedVectors as Theirs
    except ImportError:
        Theirs = None

needs_gensim = pytest.mark.skipif(Theirs is None, reason="gensim is not installed: nothing to compare with")
