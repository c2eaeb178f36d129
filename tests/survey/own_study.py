"""A study file in which every field stands, to be changed and written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from biassay.errors import StimulusError
from biassay.survey.study import read_study

OWN = """\
name = "own"
researcher = "Ada"
contact = "ada@example.org"
approval = "Board 7"
society = "Utopia"
texts = "english"
minimum_age = 16
minutes = 5
groups = ["cats", "dogs", "birds"]
pairs = [["cold", "warm"], ["poor", "wealthy"]]

[target]
annotations = 7
groups_per_participant = 2

[quality]
which_group = false
high_low = true
self_agreement = 0.75
tolerance = 5
spread = 3
seconds_per_group = 2.5

[session]
minutes = 30

[privacy]
link_demographics = true

[pool]
parameter = "PID"
required = true
signed = true
completion_url = "https://pool.example/?cc={code}"
completion_code = "C1"

[demographics.Gender]
choices = ["Woman", "Man"]

[demographics.Race]
several = true
choices = ["A", "B"]

[demographics.State]
most = 40
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "own.toml"
    path.write_text(text, encoding="utf-8")
    return path


def refusal(path: Path) -> str:
    with pytest.raises(StimulusError) as error:
        read_study(path)
    return str(error.value)


def toml_value(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def toml(table: dict[str, Any], name: str = "") -> str:
    """A table and those within it."""
    lines = [f"[{name}]"] if name else []
    lines += [f"{key} = {toml_value(value)}" for key, value in table.items() if not isinstance(value, dict)]
    deeper = {key: value for key, value in table.items() if isinstance(value, dict)}
    return "\n".join([*lines, *(toml(value, f"{name}.{key}" if name else key) for key, value in deeper.items())])
