"""The command line, called in this process."""

from __future__ import annotations

from collections.abc import Callable

import pytest

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
