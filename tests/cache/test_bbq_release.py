"""Answers as the authors of BBQ released them: their counts and scores, and files that are refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import biassay
from biassay.errors import UsageError
from biassay.studies.benchmarks.logs import read_logs

FOLDER = Path(__file__).parents[1] / "reference" / "bbq"
FILES = sorted(FOLDER.glob("preds_*.jsonl.gz"))
FORMATS = {"format_race": "race", "format_arc": "arc", "baseline_qonly": "qonly"}
EXPECTED: dict[str, dict[str, float]] = json.loads((FOLDER / "expected.json").read_text())


@pytest.fixture(scope="module")
def run() -> biassay.Run:
    return biassay.import_logs(FILES)


@pytest.mark.parametrize("cell", EXPECTED)
def test_released_answers_have_their_released_scores(run: biassay.Run, cell: str) -> None:
    category, condition, format_ = cell.split("|")
    (row,) = (
        row
        for row in run.results
        if row.category == category
        and row.condition.startswith(condition)
        and f"task={FORMATS[format_]}" in row.options
    )
    expected = EXPECTED[cell]
    assert (row.n_items, row.undecided, row.n_units) == (expected["n"], expected["unparsed"], expected["templates"])
    for ours, name in {"accuracy": "accuracy", "bias": "bias", "effect_size": "score"}.items():
        assert getattr(row, ours) == pytest.approx(expected[name], rel=1e-12, abs=1e-12)


def test_questions_shown_without_the_context_that_answers_them_do_not_count(run: biassay.Run) -> None:
    inputs = run.manifest.inputs
    assert len(run.results) == len(EXPECTED)
    assert inputs.unmapped == sum(json.loads(line)["context_condition"] == "disambig" for line in _lines(*FILES))


def test_a_format_is_a_model_and_files_are_read_together() -> None:
    found = read_logs(FILES)
    assert [(log.model, log.task) for log in found] == [("unifiedqa-t5-11b", name) for name in ("race", "qonly", "arc")]
    assert {log.digest for log in found} == {log.digest for log in read_logs(FILES[::-1])}
    (one,) = {log.digest for log in read_logs(FILES[:1])}
    assert one != found[0].digest


def test_an_answer_that_is_missing_is_counted_and_one_that_names_no_option_is_undecided(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in _lines(FILES[0])][:8]
    del rows[0]["unifiedqa-t5-11b_pred_race"]
    rows[2]["unifiedqa-t5-11b_pred_race"] = "nobody at all"
    run = biassay.import_logs(_written(tmp_path / "preds_Religion.jsonl", rows))
    found = [row for row in run.results if "task=race" in row.options]
    assert sum(row.items for row in found) == 7
    assert sum(row.undecided for row in found) == 1


def test_a_file_without_answers_is_refused(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in _lines(FILES[0])][:2]
    bare = [{name: value for name, value in row.items() if "_pred_" not in name} for row in rows]
    with pytest.raises(UsageError, match="MODEL_pred_FORMAT"):
        biassay.import_logs(_written(tmp_path / "preds_Religion.jsonl", bare))
    empty = [row | {"unifiedqa-t5-11b_pred_race": ""} for row in bare]
    with pytest.raises(UsageError, match="no answer of"):
        biassay.import_logs(_written(tmp_path / "preds_Religion.jsonl", empty))


def _lines(*files: Path) -> list[str]:
    return [line for file in files for line in gzip.decompress(file.read_bytes()).decode().splitlines()]


def _written(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path
