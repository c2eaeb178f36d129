"""Examples in docstrings of the statistics run as shown."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import biassay.stats


@pytest.mark.parametrize("name", [module.name for module in pkgutil.iter_modules(biassay.stats.__path__)])
def test_examples_run(name: str) -> None:
    module = importlib.import_module(f"biassay.stats.{name}")
    assert doctest.testmod(module).failed == 0
