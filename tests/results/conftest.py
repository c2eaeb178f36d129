"""A run that others are compared with."""

from __future__ import annotations

import pytest
from tests.results.compared_runs import TESTS

import biassay
from biassay.results.run import Run


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return biassay.run("glove", tests=list(TESTS), cache=tmp_path_factory.mktemp("vectors"))
