"""An outcome of responses of another package, by the entry point that the example declares."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from biassay.datasets.names import AuditName
from biassay.studies.audit.outcomes import get_outcome, outcome_names

pytestmark = pytest.mark.usefixtures("declared")
Cli = Callable[..., tuple[int, str, str]]


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
