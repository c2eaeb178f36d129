"""The small study on which the tests of ``biassay survey`` type commands, and its database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.survey.people import opened

from biassay.survey.store import Store
from biassay.survey.study import read_study

from .conftest import Cli

STUDY = """\
name = "pets"
society = "Utopia"
groups = ["cats", "dogs", "[red]birds"]
pairs = [["cold", "warm"], ["poor", "wealthy"]]
[target]
annotations = 2
groups_per_participant = 2
[quality]
seconds_per_group = 0
[privacy]
link_demographics = true
[demographics.Gender]
choices = ["Woman", "Man"]
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Databases are made in the folder in which a command is typed."""
    monkeypatch.chdir(tmp_path)
    for name in ("BIASSAY_SURVEY_TOKEN", "BIASSAY_SURVEY_DATABASE", "BIASSAY_SURVEY_LINK_KEY"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def study(here: Path) -> Path:
    path = here / "pets.toml"
    path.write_text(STUDY, encoding="utf-8")
    return path


@pytest.fixture
def store(study: Path, here: Path) -> Iterator[Store]:
    """The database that commands on ``pets.toml`` use if none is named."""
    with opened(f"sqlite:///{here / 'pets.sqlite'}", read_study(study)) as made:
        yield made


def refused(cli: Cli, *args: object) -> str:
    code, stdout, stderr = cli("survey", *args)
    assert (code, stdout) == (2, ""), stderr
    assert "Traceback" not in stderr
    return " ".join(stderr.split())
