"""Findings, comparisons, papers and model cards of stereotypes, from runs made by hand."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from biassay.errors import UsageError
from biassay.reporting import publication as published
from biassay.reporting.model_card import render_model_card
from biassay.reporting.publication import publish
from biassay.results.outcomes import Finding
from biassay.results.run_data import ModelRecord
from biassay.runs.reports import compare_models, group_runs, with_presenters
from biassay.runs.run import Run
from biassay.studies.registry import get_study
from biassay.studies.stereotypes.report import agreement_table
from biassay.studies.stereotypes.results import (
    AgreementResult,
    ContextsRow,
    HumanRecord,
    MeasureRow,
    ProfileRow,
    StereotypeModelRow,
)

from .asked_models import numbers
from .made_runs import alignment, compared_with_people, measured, run_of

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


def make_run(model: str, **changes: Any) -> Run:
    """A run of two measures, with changes of the profile of the second group."""
    tables = measured(model, "ilps", "set")
    rows = (dataclasses.replace(row, **changes) if row.group == "g1" else row for row in tables["profiles"])
    record = ModelRecord(model, model, "hf", None, {}, measured=True)
    return run_of((record,), {**tables, "profiles": tuple(rows)}, human=HumanRecord("human.json", "as given"))


def test_agreement_with_people_is_scipys_tau_over_the_cells_in_common() -> None:
    runs = {"a": make_run("m", scores=(None, 0.5, -0.25, 1.5)), "b": make_run("n")}
    found = compare_models(runs)
    assert (found.baseline, set(found.tables), found.results) == ("m", {"agreements"}, ())
    assert [(row.measure, row.model) for row in found.tables["agreements"]] == [("ilps", "n"), ("set", "n")]
    for row in found.tables["agreements"]:
        profiles = [[one for one in run.tables["profiles"] if one.measure == row.measure] for run in runs.values()]
        one, other = (np.array([numbers(profile.scores) for profile in own]) for own in profiles)
        human = np.array([numbers(profile.human or ()) for profile in profiles[0]])
        kept = ~np.isnan(one + other)
        a, b = (stats.kendalltau(side[kept], human[kept]).statistic for side in (one, other))
        assert (row.tau_baseline, row.tau_model, row.difference) == pytest.approx((a, b, b - a))
        assert row.tau_between == pytest.approx(stats.kendalltau(one[kept], other[kept]).statistic)
        assert (row.num_groups, row.num_cells) == (3, 11)
        assert row.interval_low is not None
        assert row.interval_low < row.difference < row.interval_high
        (shown,) = get_study("stereotypes").presenter.comparison_report(found).tables
        assert all(f"'{value:z.2f}" in repr(shown).replace("−", "-") for value in (a, b, row.interval_low))


def test_groups_that_nobody_rated_have_nothing_to_compare() -> None:
    runs = {name: make_run(name) for name in ("m", "n")}
    for name, run in runs.items():
        rows = tuple(dataclasses.replace(row, human=None) for row in run.tables["profiles"])
        runs[name] = dataclasses.replace(run, tables={**run.tables, "profiles": rows})
    with pytest.raises(UsageError, match="--human FILE"):
        compare_models(runs)


@pytest.fixture(autouse=True)
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published, "can_draw", lambda: False)


def written(folder: Path, **runs: Run) -> set[str]:
    return {path.name for path in publish(folder, with_presenters(group_runs(runs)), None)}


def card_of(run: Run, model: str) -> str:
    return render_model_card(get_study("stereotypes").presenter, run, model)


@pytest.mark.extras
def test_the_hub_reads_the_agreement_of_a_model() -> None:
    hub: Any = pytest.importorskip("huggingface_hub")
    run = compared_with_people()
    read = hub.ModelCard(card_of(run, "m")).data
    numbers = {(e.dataset_type, e.dataset_config, e.metric_type): e.metric_value for e in read.eval_results}
    of = run.manifest.inputs.abc
    assert numbers == {
        (of, "ilps", "kendall_tau"): 0.125,
        (of, "ilps", "precision_at_3"): 0.5,
        (of, "set", "kendall_tau"): -0.5,
    }
    assert card_of(compared_with_people(judged=False), "m").startswith("## Social bias")


def test_runs_of_one_kind_get_tables_and_labels_of_their_own(tmp_path: Path) -> None:
    """LaTeX takes a label once; the second table would be referred to as the first."""
    names = written(tmp_path / "paper", a=compared_with_people(), b=compared_with_people(run_id="other"))
    texts = [(tmp_path / "paper" / name).read_text() for name in names if name.endswith(".tex")]
    labels = [label for text in texts for label in re.findall(r"\\label{(.*?)}", text)]
    assert len(labels) == len(set(labels)) == 4  # each also for one column of two


def test_without_judgements_there_is_no_table(tmp_path: Path) -> None:
    plain = compared_with_people(judged=False, human=None)
    assert agreement_table(plain) is None
    assert "agreement-with-people.tex" not in written(tmp_path / "paper", a=plain)
