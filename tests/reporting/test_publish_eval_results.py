"""Results for the folder .eval_results of a repository on the hub, read as the hub's own library reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.results.made_runs import as_refused, with_rows
from tests.studies.associations.publish_runs import measured_in_words
from tests.studies.showing import write_all

from biassay.reporting import publication as published
from biassay.reporting.model_card import CardMetric, IndexEntry, format_eval_results
from biassay.runs.run import Run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return measured_in_words(tmp_path_factory.mktemp("vectors"))


@pytest.fixture
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published, "can_draw", lambda: False)


def entries(text: str) -> list[Any]:
    yaml = pytest.importorskip("yaml")
    hub = pytest.importorskip("huggingface_hub")
    content = yaml.safe_load(text)
    for one in content:
        assert {*one} == {"dataset", "value", "date", "notes"}
        assert {*one["dataset"]} == {"id", "task_id"}
    return list(hub.parse_eval_result_entries(content))


@pytest.mark.extras
@pytest.mark.usefixtures("no_figures")
def test_the_hubs_library_reads_effects_and_dates(run: Run, tmp_path: Path) -> None:
    write_all(tmp_path / "paper", {"": run})
    (file,) = (tmp_path / "paper" / ".eval_results").iterdir()
    found = entries(file.read_text(encoding="utf-8"))
    measured = {row.test: row for row in run.results if row.effect_size is not None}
    assert {one.task_id: one.value for one in found} == {
        test: float(f"{row.effect_size:.6g}") for test, row in measured.items()
    }
    for one in found:
        assert one.dataset_id == "biassay/associations"
        assert one.date == run.manifest.finished
        assert f"{measured[one.task_id].p_value:.6g}" in one.notes


@pytest.mark.usefixtures("no_figures")
def test_what_is_no_number_is_no_result(run: Run, tmp_path: Path) -> None:
    write_all(tmp_path / "paper", {"": with_rows(run, [as_refused(row) for row in run.results])})
    assert not (tmp_path / "paper" / ".eval_results").exists()
    metrics = (CardMetric("a", "A", float("nan")), CardMetric("b", "B", 1.0))
    assert format_eval_results([IndexEntry("t", "T", "d", "D", "", {}, metrics)], "x/y", "2026-01-01") == ""
