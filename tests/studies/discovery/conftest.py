"""A folder of planted words."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Cli, cli

from .planted_words import planted

__all__ = ["Cli", "cli"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return planted(tmp_path_factory.mktemp("planted"))
