"""Fixtures: a real run and its report."""

from __future__ import annotations

import pytest
from tests.reporting.pages import Page
from tests.studies.associations.compared_runs import TESTS, other_model

import biassay
from biassay.runs.reports import render_report
from biassay.runs.run import Run


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A real run: measured, refused, with words lost, in sentences and in words."""
    tests = ["weat6", "weat1", "sent-weat6", "sent-weat9", "sent-weat8", "I1"]
    return biassay.run("glove", tests=tests, max_unknown=0.05, cache=tmp_path_factory.mktemp("vectors"))


@pytest.fixture(scope="module")
def page(measured: Run) -> Page:
    return Page(render_report(measured))


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run that others are compared with."""
    return biassay.run("glove", tests=list(TESTS), cache=tmp_path_factory.mktemp("vectors"))


@pytest.fixture(scope="module")
def second(first: Run) -> Run:
    return other_model(first, "second", 1)
