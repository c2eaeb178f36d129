"""What a run of stereotypes shows, as records."""

from __future__ import annotations

from typing import Any

import pytest

from biassay.results.outcomes import Finding
from biassay.results.run_data import ModelRecord
from biassay.runs.run import Run
from biassay.studies.stereotypes.results import AgreementResult, ContextsRow, MeasureRow, ProfileRow, StereotypeModelRow

from .made_runs import alignment, run_of

WHO: dict[str, Any] = {"model": "m", "options": "head=masked"}
PAIRS = ("poor-wealthy", "cold-warm")
TRAITS = {"poor-wealthy": ("poor", "wealthy"), "cold-warm": ("cold", "warm")}


def agreement(measure: str, tau: float | None, p: float | None) -> AgreementResult:
    return alignment("m", measure, tau, options=WHO["options"], interval=(-0.1, 0.4), p_value=p)


def profile(measure: str, group: str, *scores: float | None, parts: tuple[str, ...] = ()) -> ProfileRow:
    return ProfileRow(**WHO, measure=measure, group=group, domain="land", parts=parts, scores=scores, human=None)


def found(
    alignments: tuple[AgreementResult, ...], profiles: tuple[ProfileRow, ...], unknown: tuple[str, ...] = ()
) -> tuple[Run, dict[str, Finding]]:
    names = dict.fromkeys(row.measure for row in profiles)
    tables = {
        "models": (StereotypeModelRow(**WHO, kind="masked", prior="mask", skipped_templates=(), unknown_adjectives=(),
                            unknown_groups=unknown, num_questions=1, num_passes=1, num_asked=1),),
        "measures": tuple(MeasureRow(**WHO, measure=n, groups=(), templates=(), chosen=(), undefined=0) for n in names),
        "profiles": profiles,
        "alignments": alignments,
        "contexts": (ContextsRow(**WHO, words_options="", groups={"east": 1}, adjectives={}, few_groups=("east",),
                                 few_adjectives=()),),
    }  # fmt: skip
    record = ModelRecord("hf:m", "m", "hf", None, {"head": "masked"}, measured=True)
    run = run_of((record,), tables, pairs=PAIRS, traits=TRAITS)
    return run, {finding.item: finding for finding in run.findings()}


def test_a_measure_stands_by_the_p_value_of_shuffled_groups_corrected_for_all_measures() -> None:
    given = (agreement("ilps", 0.3, 0.01), agreement("set", 0.2, 0.04), agreement("ilps-star", 0.1, 0.5))
    rows = tuple(profile(row.measure, "north", 1.0, 2.0) for row in (*given, agreement("ceat", None, None)))
    _, by = found((*given, agreement("ceat", None, None)), rows)
    assert {item: by[item].evidence for item in ("ilps", "set", "ilps-star", "ceat")} == {
        "ilps": "significant",
        "set": "uncorrected",
        "ilps-star": "inconclusive",
        "ceat": "skipped",
    }
    assert (by["ilps"].unit, by["ilps"].effect, by["ilps"].low, by["ilps"].high) == ("tau", 0.3, -0.1, 0.4)
    assert by["ilps"].p_values["groups shuffled, corrected"] == pytest.approx(0.03)
    # Cells of a group are not independent: the p-value that takes them so is no part of a finding.
    assert set(by["ceat"].p_values.items()) == {("groups shuffled", None), ("groups shuffled, corrected", None)}
    assert {finding.about for finding in by.values()} == {"people"}


def test_a_group_is_described_by_its_strongest_traits_under_the_closest_measure() -> None:
    rows = (profile("ilps", "north", 9.0, 9.0), profile("set", "north", 0.5, -2.0), profile("set", "south", None, None))
    pair = profile("set", "northern smith", 8.0, 8.0, parts=("north", "smith"))
    given = (agreement("ilps", 0.1, 0.5), agreement("set", 0.2, 0.5))
    _, by = found(given, (*rows, pair), unknown=("south",))
    assert set(by) == {"ilps", "set", "north", "south"}
    north = by["north"]
    assert (north.evidence, north.words, north.effect, north.topic) == (
        "descriptive",
        ("cold", "wealthy"),
        2.0,
        "land",
    )
    assert (by["south"].evidence, by["south"].words) == ("skipped", ())
    assert by["south"].reason is not None
