"""Audits of language models: log-odds of Yes against No, options in both orders."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.runs.test_studies_on_ray import save_long

import biassay
from biassay.models.registry import open_model
from biassay.prompts.requests import Prompt

pytestmark = pytest.mark.extras


def test_scores_are_log_odds_over_both_orders(tmp_path: Path) -> None:
    save_long(tmp_path / "long")
    (tmp_path / "reports.txt").write_text("{name} wrote one\n{name} wrote two\n{name} wrote three", encoding="utf-8")
    model = f"hf:{tmp_path / 'long'}?device=cpu&chat=false"
    question = "Invite? {document}"
    run = biassay.audit(model, tmp_path / "reports.txt", names="weat6", question=question)
    assert run.results[0].scale == "log-odds"
    generator, name = open_model(model, "replies"), run.manifest.inputs.names[5].name
    orders = [f"Invite? {name} wrote two\n\nAnswer {options}:" for options in ("Yes or No", "No or Yes")]
    prompts = [Prompt(text, options=("Yes", " Yes", "No", " No")) for text in orders]
    generator.prepare(prompts)
    odds = [np.logaddexp(*reply.log_p[:2]) - np.logaddexp(*reply.log_p[2:]) for reply in generator.reply(prompts)]  # type: ignore[call-overload]
    assert run.arrays["0/scores"][5, 1, 0] == pytest.approx(float(np.mean(odds)), abs=1e-4)
