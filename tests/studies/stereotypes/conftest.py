"""The command line, called in this process, and tiny models."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.encoders.tiny_models import save_tiny

from biassay.cli import main

Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs a command in this process: exit code, stdout, stderr. Anything but a clean exit fails the test."""

    def call(*args: object) -> tuple[int, str, str]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main([str(arg) for arg in args])
        said = capsys.readouterr()
        return int(stop.value.code or 0), said.out, said.err

    return call


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A byte-level model, which knows every word."""
    pytest.importorskip("transformers")
    return f"hf:{save_tiny('roberta', tmp_path_factory.mktemp('model'))}"


@pytest.fixture(scope="session")
def causal_model(tmp_path_factory: pytest.TempPathFactory) -> str:
    pytest.importorskip("transformers")
    return f"hf:{save_tiny('gpt2', tmp_path_factory.mktemp('causal'), head=True)}"
