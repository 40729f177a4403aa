"""A classifier of fastText as a head: the same labels in process and of a service."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest
from conftest import fasttext_classifier
from service import Service, program

import kindred

WORDS, LABELS = ["</s>", "good", "bad", "film"], ["up", "down", "neither"]


@pytest.fixture(scope="module")
def head(tmp_path_factory):
    folder = tmp_path_factory.mktemp("head")
    content, rows, output = fasttext_classifier(WORDS, LABELS, 8)
    (folder / "labels.bin").write_bytes(content)
    subprocess.run([program(), "import-head", "labels.bin", "--out", "labels"], cwd=folder, check=True, capture_output=True)
    return folder / "labels", rows, output


def expected(text, rows, output):
    """Labels and probabilities by fastText's formula, in NumPy."""
    found = [WORDS.index(word) for word in text.split() if word in WORDS]
    products = output @ rows[[*found, 0]].mean(axis=0)
    shares = np.exp(products - products.max())
    shares = np.minimum(shares / shares.sum() + 1e-5, 1)
    order = np.argsort(-shares)
    return [LABELS[at] for at in order], shares[order]


def test_labels_are_those_of_the_formula_in_process_and_of_a_service(head):
    folder, rows, output = head
    texts = ["good film", "bad bad film", "an unknown film", ""]
    here = kindred.demo().classify(texts, head=folder)
    service = Service("--head", str(folder))
    with kindred.Client(service.url) as client:
        there = client.classify(texts)
    service.stop()
    for text, own, served in zip(texts, here, there, strict=True):
        labels, probabilities = expected(text, rows, output)
        assert [label.name for label in own.labels] == labels
        assert np.allclose([label.probability for label in own.labels], probabilities, atol=1e-6)
        assert own == served
    assert here[2].unknown == ["an", "unknown"]
