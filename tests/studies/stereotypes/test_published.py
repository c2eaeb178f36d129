"""Stereotypes in a paper and in a model card: the numbers of the records."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from biassay.reporting import publication as published
from biassay.reporting.model_card import render_model_card
from biassay.reporting.publication import publish
from biassay.runs.reports import group_runs, with_presenters
from biassay.runs.run import Run
from biassay.studies.registry import get_study
from biassay.studies.stereotypes.report import agreement_table

from .made_runs import compared_with_people


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
