"""Model cards and results for the hub, read as the hub's own library reads them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt
from tests.results.made_runs import altered, as_refused, with_rows
from tests.studies.associations.publish_runs import (
    NASTY,
    SCRIPT,
    changed,
    measured_in_words,
    on_models,
    with_first,
)
from tests.studies.showing import card_of as model_card
from tests.studies.showing import write_all

import biassay
from biassay.errors import UnknownNameError, UsageError
from biassay.reporting import publication as published
from biassay.reporting.findings import make_points
from biassay.reporting.model_card import CardMetric, IndexEntry, format_eval_results, format_scalar
from biassay.results.run_data import model_labels
from biassay.runs.run import Run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return measured_in_words(tmp_path_factory.mktemp("vectors"))


@pytest.fixture(scope="module")
def discovery(tmp_path_factory: pytest.TempPathFactory) -> Run:
    cache = tmp_path_factory.mktemp("vectors")
    return biassay.discover("glove", ["african-american-females"], n_permutations=199, alpha=0.5, keep=5, cache=cache)


def section(card: str) -> str:
    return card[card.index("## Social bias (biassay)") :]


def index_of(card: str) -> tuple[str, dict[tuple[str, str | None, str], float]]:
    """Name and numbers as the hub's library reads them, and after it has written them again."""
    hub: Any = pytest.importorskip("huggingface_hub")
    read = hub.ModelCard(card)
    numbers = {(e.dataset_type, e.dataset_config, e.metric_type): e.metric_value for e in read.data.eval_results}
    assert len(numbers) == len(read.data.eval_results)
    again = hub.ModelCard(f"---\n{read.data.to_yaml()}\n---\n{read.text}")
    assert again.data.eval_results == read.data.eval_results
    assert read.text.lstrip().startswith("## Social bias (biassay)")
    return read.data.model_name, numbers


def numbers_of(run: Run, model: str) -> dict[tuple[str, str | None, str], float]:
    names = ("effect_size", "ci_low", "ci_high", "p_value", "fixed_words_p_value")
    values = {(r.test, None, name): getattr(r, name) for r in run.results if r.model == model for name in names}
    return {place: digits(value) for place, value in values.items() if value is not None and math.isfinite(value)}


def digits(value: float) -> float:
    """The six that are written."""
    return float(f"{value:.6g}")


@pytest.mark.extras
def test_the_hub_reads_the_numbers_of_a_run(run: Run) -> None:
    name, numbers = index_of(model_card(run))
    assert name == "glove"
    assert numbers == numbers_of(run, "glove")
    assert all(isinstance(value, float) for value in numbers.values())


@pytest.mark.extras
def test_the_helper_of_the_hub_makes_the_same_entry(run: Run) -> None:
    hub: Any = pytest.importorskip("huggingface_hub")
    one = next(e for e in hub.ModelCard(model_card(run)).data.eval_results if e.dataset_type == "weat6")
    made = hub.metadata_eval_result(
        model_pretty_name="glove",
        task_pretty_name=one.task_name,
        task_id=one.task_type,
        metrics_pretty_name=one.metric_name,
        metrics_id=one.metric_type,
        metrics_value=one.metric_value,
        dataset_pretty_name=one.dataset_name,
        dataset_id=one.dataset_type,
    )
    (index,) = made["model-index"]
    assert index["name"] == "glove"
    assert index["results"][0]["metrics"][0]["value"] == one.metric_value
    assert index["results"][0]["dataset"] == {"type": "weat6", "name": one.dataset_name}


@pytest.mark.extras
@pytest.mark.parametrize("nasty", [*NASTY, SCRIPT, "---", "- a: b", "!!python/object:x", "'", "null", "\u2028", "1e5"])
def test_hostile_names_are_read_as_names(run: Run, nasty: str) -> None:
    hostile = changed(run, model=nasty, title=nasty, source=nasty)
    (label,) = model_labels(hostile).values()
    card = model_card(hostile)
    name, numbers = index_of(card)
    assert name == "".join(c if c.isprintable() else "\ufffd" for c in label)
    assert list(numbers.values()) == list(numbers_of(run, "glove").values())
    rendered = MarkdownIt("commonmark", {"html": True}).render(section(card))
    assert "<script" not in rendered
    one = next(r for r in hostile.results if r.effect_size is not None)
    _, other = index_of(model_card(with_rows(hostile, (altered(one, test=nasty),))))
    assert len(other) == 5


@pytest.mark.extras
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, None])
def test_what_is_no_number_is_left_out_and_told(run: Run, value: float | None) -> None:
    other = with_first(run, fixed_words_p_value=value)
    card = model_card(other)
    _, numbers = index_of(card)
    test = next(r.test for r in run.results if r.effect_size is not None)
    assert (test, None, "fixed_words_p_value") not in numbers
    assert (test, None, "p_value") in numbers
    assert f"fixed_words_p_value of {test}." in section(card).replace("\\_", "_")
    assert "Not in the metadata" not in section(model_card(run))


def test_the_section_is_made_from_the_findings(run: Run) -> None:
    text = section(model_card(run)).replace("\\_", "_")
    items = [line for line in text.partition("**Not measured")[0].splitlines() if line.startswith("- ")]
    assert len(items) == len(make_points(run.findings())) > 0
    assert all(item.endswith(name) for item, (_, name) in zip(items, make_points(run.findings()), strict=True))
    assert ", ".join(r.test for r in run.results if r.status == "skipped") in text
    assert "Semantics derived automatically" in text


def test_one_of_several_models_must_be_named(run: Run) -> None:
    two = on_models(run, ("one", "two"))
    with pytest.raises(UsageError, match="several models, name one: one, two"):
        model_card(two)
    with pytest.raises(UnknownNameError, match="did you mean 'two'"):
        model_card(two, "tow")
    assert '- name: "two"' in model_card(two, "two")
    with pytest.raises(UsageError, match="no results"):
        model_card(with_rows(run, ()))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1e-05, "1.0e-05"),
        (1.5e-09, "1.5e-09"),
        (1.7178163929724604, "1.71782"),
        (0.25, "0.25"),
        (-2.0, "-2.0"),
        (7, "7"),
        ("a", '"a"'),
    ],
)
def test_scalars_are_what_every_reader_takes_them_for(value: float | str, text: str) -> None:
    assert format_scalar(value) == text


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
