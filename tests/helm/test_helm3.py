"""Helm 3 renders what Helm 4 does, and refuses the same."""

import shutil

import pytest

from chart import CHART, HELM3, helm, render
from matrix import MATRIX

needs_helm3 = pytest.mark.skipif(not shutil.which(HELM3), reason="no helm 3 (run scripts/install-helm)")


@needs_helm3
def test_it_is_helm_3():
    said = helm("version", "--short", program=HELM3).stdout
    assert said.startswith("v3."), said


@needs_helm3
@pytest.mark.parametrize("name", MATRIX)
def test_the_same_objects(name):
    assert render(MATRIX[name], program=HELM3) == render(MATRIX[name])


@needs_helm3
@pytest.mark.parametrize(
    "values",
    [
        {"replicaCount": "3"},
        {"config": {"thread": 3}},
        {"strategy": {"maxSurge": 0}},
        {"resources": {"limits": {"memory": "575Mi"}}},
        {"resources": {"limits": {"memory": 603979775}}},
        {"models": [{"name": "en", "path": "a"}]},
    ],
)
def test_the_same_refusals(values):
    done = helm("template", "k", str(CHART), values=values, program=HELM3)
    assert done.returncode != 0, f"accepted: {values}"


@needs_helm3
def test_lint_finds_no_fault():
    for values in ({}, MATRIX["everything-fetched"], MATRIX["everything-on-volume"]):
        done = helm("lint", "--strict", str(CHART), values=values, program=HELM3)
        assert done.returncode == 0 and "0 chart(s) failed" in done.stdout, done.stdout + done.stderr
