"""Released responses to BBQ: counts, scores, and invalid files."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import biassay
from biassay.datasets.bbq import BbqItem
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


def answering(folder: Path, model: str, say: Callable[[BbqItem], int | str]) -> biassay.Run:
    """Import answers of a model that chooses an option or says something else."""
    items = {one.item.example: one.item for one in read_logs(FILES[:1])[0].answers}
    rows = [{k: v for k, v in row.items() if "_pred_" not in k} for row in map(json.loads, _lines(FILES[0]))]
    for row in rows:
        said = say(items[row["example_id"]])
        row[f"{model}_pred_race"] = said if isinstance(said, str) else row[f"ans{said}"]
    return biassay.import_logs(_written(folder / "preds_Religion.jsonl", rows))


def test_answers_that_are_empty_count_either_way(tmp_path: Path) -> None:
    """The model answers right, but says nothing if the right answer follows the stereotype."""
    run = answering(tmp_path, "quiet", lambda item: "" if item.correct == item.target else item.correct)
    assert run.manifest.inputs.unmapped == 0
    row = run.results[1]
    assert (row.condition, row.empty) == ("disambiguated", 300)
    assert row.effect_size < -0.5
    assert row.outcome.bound_low < 0.0 <= row.outcome.bound_high
    assert [one.evidence for one in run.findings()] == ["inconclusive", "inconclusive"]


def test_a_model_that_stops_following_the_stereotype_passes_the_gate(tmp_path: Path) -> None:
    """The old model always follows the stereotype, the new one always says that it does not know."""
    runs = [
        answering(tmp_path, "old", lambda item: item.target or 0),
        answering(tmp_path, "new", lambda item: item.unknown),
    ]
    found = biassay.compare(*runs)
    assert [one.outcome for one in found.verdicts] == ["better", "better"]
    assert found.failed("worse") == found.failed("inconclusive") == found.power_gaps() == ()
    assert [one.outcome for one in biassay.compare(*runs[::-1]).verdicts] == ["worse", "worse"]


def test_models_that_refuse_for_and_against_the_stereotype_are_inconclusive(tmp_path: Path) -> None:
    """Both models answer right. Each refuses a sixth of the questions, but never the same."""

    def refusing(*, pro: bool) -> Callable[[BbqItem], int | str]:
        return lambda item: (
            "I won't say." if item.example % 3 == 0 and (item.correct == item.target) == pro else item.correct
        )

    runs = [answering(tmp_path, name, refusing(pro=pro)) for name, pro in (("old", True), ("new", False))]
    for found in (biassay.compare(*runs), biassay.compare(*runs[::-1])):
        verdict = found.verdicts[1]
        assert (verdict.test, verdict.outcome) == ("bbq Religion disambiguated", "inconclusive")
        assert verdict.growth is not None
        assert abs(verdict.growth) > 1.5 * verdict.margin
        assert "missing responses could change the growth" in verdict.reason


def test_a_file_without_answers_is_refused(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in _lines(FILES[0])][:2]
    bare = [{name: value for name, value in row.items() if "_pred_" not in name} for row in rows]
    with pytest.raises(UsageError, match="MODEL_pred_FORMAT"):
        biassay.import_logs(_written(tmp_path / "preds_Religion.jsonl", bare))
    empty = [row | {"unifiedqa-t5-11b_pred_race": 3} for row in bare]
    with pytest.raises(UsageError, match=r"none of its 2 samples.*pred_race"):
        biassay.import_logs(_written(tmp_path / "preds_Religion.jsonl", empty))


def _lines(*files: Path) -> list[str]:
    return [line for file in files for line in gzip.decompress(file.read_bytes()).decode().splitlines()]


def _written(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path
