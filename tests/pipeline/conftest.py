"""Tests of studies that have not moved yet share what tests of runs use."""

from __future__ import annotations

from tests.runs.conftest import FILLERS, corpus, other_model, test_file, tiny_model, tiny_models

__all__ = ["FILLERS", "corpus", "other_model", "test_file", "tiny_model", "tiny_models"]
