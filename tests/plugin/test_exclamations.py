"""An outcome of responses of another package, by the entry point that the example declares."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest

from biassay import packages
from biassay.datasets.names import AuditName
from biassay.studies.audit.outcomes import get_outcome, outcome_names

PROJECT = Path(__file__).resolve().parents[2] / "examples" / "plugin" / "pyproject.toml"
Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def declared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entry points as the file of the example declares them, also if an earlier version of it is installed."""
    groups = tomllib.loads(PROJECT.read_text("utf-8"))["project"]["entry-points"]
    points = tuple(
        metadata.EntryPoint(name, value, "biassay.outcomes") for name, value in groups["biassay.outcomes"].items()
    )
    original = packages._get_entry_points
    monkeypatch.setattr(packages, "_get_entry_points", lambda g: points if g == "biassay.outcomes" else original(g))
    monkeypatch.setattr(packages, "_loaded", {})


def test_the_outcome_is_listed_and_shown(cli: Cli) -> None:
    assert "exclamations" in outcome_names()
    code, stdout, stderr = cli("outcomes")
    assert (code, stderr) == (0, "")
    assert "Exclamation marks per 100 words." in stdout
    described = json.loads(cli("outcomes", "exclamations", "--json")[1])
    assert (described["source"], described["unit"]) == ("biassay-example", "per 100 words")


def test_the_outcome_scores_responses() -> None:
    joy = AuditName("Joy", "female", "female", "Joy")
    scores = get_outcome("exclamations").score(["Joy is great! We agree.", "", "No."], [joy] * 3)
    assert scores.values[[0, 2]].tolist() == [20.0, 0.0]
    assert scores.reasons == ("", "empty", "")
