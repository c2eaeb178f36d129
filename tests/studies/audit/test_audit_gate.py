"""Comparing two audits: paired differences, and the gate."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy
from tests.studies.audit import scorers

import biassay
from biassay.stats.crossed import crossed_rows
from biassay.studies.audit.compare import PairedAudits


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of a fair scorer, of the same again, and of a biased one."""
    folder = tmp_path_factory.mktemp("gate")
    lines = [f"{{name}} wrote report {number}" for number in range(40)]
    (folder / "reports.txt").write_text("\n".join(lines), encoding="utf-8")
    for name, model in (("old", scorers.score), ("same", scorers.score), ("new", scorers.biased)):
        biassay.audit({name: model}, folder / "reports.txt", names="bertrand2004", out=folder / name)
    return folder


def test_a_planted_change_fails_the_gate(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert scorers.call("compare", str(place / "old"), str(place / "new"), "--fail-if", "worse") == 3
    captured = capsys.readouterr()
    assert captured.out.startswith("new is worse")
    assert "Black female" in captured.err


def test_the_same_scores_pass(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert scorers.call("compare", str(place / "old"), str(place / "same"), "--fail-if", "inconclusive") == 0
    assert "no worse" in capsys.readouterr().out


def test_differences_are_paired_and_in_standard_deviations_of_documents(place: Path) -> None:
    found = biassay.compare(place / "old", place / "new")
    old, new = (biassay.load(place / name) for name in ("old", "new"))
    names = old.manifest.inputs.names
    groups, units = [one.group for one in names], [one.unit for one in names]
    tables = [run.arrays["0/scores"].mean(axis=2) for run in (old, new)]
    scaled = [table / table.mean(axis=0).std(ddof=1) for table in tables]  # four groups of 9, 9, 9 and 9 names
    contrast = biassay.name_audit(scaled[1] - scaled[0], groups, units=units, top=()).contrasts["black female"]
    row = next(one for one in found.tables["differences"] if one.item == "black female")
    assert row.difference == pytest.approx(contrast.effect_size, rel=1e-6)
    assert (row.interval_low, row.interval_high) == pytest.approx((contrast.ci_low, contrast.ci_high), rel=1e-6)
    ratio = next(one for one in found.tables["differences"] if one.item == "white male: selection")
    rates = [{one.group: one.rate for one in run.tables["selection"] if one.top == "0.2"} for run in (old, new)]
    logs = [np.log(one["white male"] / np.mean([one[g] for g in one if g != "white male"])) for one in rates]
    assert ratio.difference == pytest.approx(logs[1] - logs[0], rel=1e-9)


def test_the_interval_of_a_changed_ratio_is_that_of_the_crossed_test() -> None:
    """The test compares both tables of selections, each divided by the rates of its groups."""
    rng = np.random.default_rng(0)
    old = rng.normal(size=(24, 30))
    new = old + rng.normal(size=(24, 30)) - (np.arange(24) < 12)[:, None]
    labels = np.repeat(["a", "b"], 12)
    pair = PairedAudits(old[:, :, None], new[:, :, None], labels.tolist(), list(map(str, range(24))), [0.5])
    change = pair.combine_log_ratios("a", -1.0, 0.95)
    selected = [scores >= np.median(scores) for scores in (old, new)]
    rates = [(table[:12].mean(), table[12:].mean()) for table in selected]
    relative = [table / np.repeat(own, 12)[:, None] for table, own in zip(selected, rates, strict=True)]
    crossed = crossed_rows(relative[1] - relative[0], 12)
    (old_a, old_b), (new_a, new_b) = rates
    assert change.value == pytest.approx(np.log(new_a / new_b * old_b / old_a))
    reach = scipy.stats.t.ppf(0.975, crossed.df) * np.sqrt(crossed.V)
    assert (change.low, change.high) == pytest.approx((change.value - reach, change.value + reach), rel=1e-9)
    assert change.p_value is not None
    assert change.p_value < 0.01
    nothing = replace(pair, old=np.where(labels == "a", -9.0, 0.0)[:, None, None] + old[:, :, None])
    assert nothing.combine_log_ratios("a", -1.0, 0.95).missing_reason == "nothing is selected in a group"


def test_a_report_of_several_audits_and_files_for_a_paper(place: Path, tmp_path: Path) -> None:
    folders = [str(place / name) for name in ("old", "new")]
    assert (
        scorers.call("report", *folders, "--out", str(tmp_path / "page.html"), "--publish", str(tmp_path / "paper"))
        == 0
    )
    methods = (tmp_path / "paper" / "methods.md").read_text(encoding="utf-8")
    assert "Bertrand and Mullainathan 2004" in methods
    card = (tmp_path / "paper" / "model-card-new.md").read_text(encoding="utf-8")
    assert re.search(r"The mean score is 0\.\d\d SD lower for Black female names", card)


def test_runs_of_other_documents_cannot_be_compared(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(place / "reports.txt", place / "others.txt")
    text = (place / "others.txt").read_text(encoding="utf-8").replace("report 7", "report seven")
    (place / "others.txt").write_text(text, encoding="utf-8")
    if not (place / "others").exists():
        biassay.audit({"others": scorers.score}, place / "others.txt", names="bertrand2004", out=place / "others")
    assert scorers.call("compare", str(place / "old"), str(place / "others")) == 2
    stderr = capsys.readouterr().err
    assert "the runs cannot be compared: documents: 8 " in stderr  # the id of the only other text
    assert "queries" not in stderr


def test_logged_scores_and_a_model_differ_in_texts_only(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = biassay.load(place / "old")
    names, documents = run.manifest.inputs.names, run.manifest.inputs.documents
    rows = [
        f"{document.id},{name.full_name},{name.group},{run.arrays['0/scores'][i, j, 0]}"
        for i, name in enumerate(names)
        for j, document in enumerate(documents)
    ]
    (place / "scores.csv").write_text("\n".join(["document,name,group,score", *rows]), encoding="utf-8")
    assert scorers.call("audit", "--scores", str(place / "scores.csv"), "--out", str(place / "logged")) == 0
    capsys.readouterr()
    assert scorers.call("compare", str(place / "old"), str(place / "logged")) == 2
    stderr = capsys.readouterr().err
    assert "documents: 40, for example" in stderr
    assert "(text not logged)" in stderr
    assert "queries" not in stderr
    assert scorers.call("compare", str(place / "old"), str(place / "logged"), "--mixed") == 0
    stdout = capsys.readouterr().out
    assert "Black female: selection ratio (log, top 20%)  " in stdout
