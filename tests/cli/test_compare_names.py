"""``biassay compare`` of models and folders with long, hostile or equal names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from biassay.runs.run import Run

from .conftest import Cli
from .shown_runs import renamed


@pytest.mark.parametrize("model", ["\x1b[2Jgone", "a\x9bb", "\u202eabc"])
def test_a_name_cannot_steer_the_terminal(model: str, cli: Cli, glove: Run, mine: Run, tmp_path: Path) -> None:
    runs = glove.save(tmp_path / "one"), renamed(mine, model).save(tmp_path / "two")
    code, stdout, _ = cli("compare", *runs)
    assert code == 0
    assert not re.search(r"[\x1b\x9b\u202e]", stdout)
