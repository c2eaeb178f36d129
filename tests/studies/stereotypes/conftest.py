"""The command line, called in this process, and tiny models."""

from __future__ import annotations

import pytest
from tests.cli.conftest import Cli, cli
from tests.models.tiny_models import save_tiny

from .asked_models import Place

__all__ = ["Cli", "cli"]


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A byte-level model, which knows every word."""
    pytest.importorskip("transformers")
    return f"hf:{save_tiny('roberta', tmp_path_factory.mktemp('model'))}"


@pytest.fixture(scope="session")
def causal_model(tmp_path_factory: pytest.TempPathFactory) -> str:
    pytest.importorskip("transformers")
    return f"hf:{save_tiny('gpt2', tmp_path_factory.mktemp('causal'), head=True)}"


@pytest.fixture(scope="module")
def place(asked_place: Place) -> Place:
    return asked_place
