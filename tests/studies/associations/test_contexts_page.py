"""The page of a run over contexts: its numbers, its figures, and what it must not let through."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.reporting.pages import Drawing, Page
from tests.results.made_runs import altered, contexts, d_span, decided, with_rows, with_settings
from tests.studies.associations.publish_runs import measured_in_contexts

from biassay.datasets.catalogue import select_tests
from biassay.datasets.schema import ROLES
from biassay.models.base import Identity
from biassay.reporting.formats import format_p
from biassay.results.outcomes import Result
from biassay.results.views import model_key, model_labels
from biassay.runs.reports import render_report, write_report
from biassay.runs.run import Run
from biassay.studies.associations.diagnostics import count_contexts, list_lost_words
from biassay.studies.associations.measure import make_contextual_result, measure_over_contexts
from biassay.studies.associations.results import SAMPLE_ARRAYS, get_samples
from biassay.studies.associations.settings import AssociationSettings
from biassay.studies.associations.signs import format_fixed_words_p, format_published_p

HOSTILE = "<script>alert(1)</script>"
N = 120
LABELS = ("one", "two")
TESTS = select_tests(["C6", "C9", "C10", "C1"])


@pytest.fixture(scope="module")
def run() -> Run:
    return measured_in_contexts()


@pytest.fixture(scope="module")
def page(run: Run) -> Page:
    return Page(render_report(run))


def is_p(cell: str, value: float) -> bool:
    """Two digits, or three decimals: half a unit in the last place. Of a very small one no more than that it is."""
    if value < 1e-30:
        return cell.rstrip("*") == "<1e-30"
    shown = float(cell.rstrip("*‡"))
    return bool(shown == pytest.approx(value, rel=0.05, abs=0.0005 if value >= 0.001 else 0.0))


def ordered(run: Run) -> list[Result]:
    """As they stand on the page: checks of the method at the end."""
    return [*(r for r in run.results if r.about != "method"), *(r for r in run.results if r.about == "method")]


def test_the_numbers_on_the_page_are_those_of_results_json(run: Run, tmp_path: Path) -> None:
    run.save(tmp_path)
    page = Page(write_report(run, tmp_path).read_text(encoding="utf-8"))
    results = json.loads(run.to_json())["results"]
    first, heads, *rows = page.table("All tests")
    assert first == ["Test", *LABELS]
    assert len(heads) == 6
    by_test = {row[0].split()[-1]: row[1:] for row in rows if len(row) > 1}
    assert list(by_test) == ["C6", "C9", "C10", "C1"]
    statuses = []
    for r in results:
        effect, p, by_word = by_test[r["test"]][3 * (r["model"] == "two") :][:3]
        statuses.append(r["status"])
        if r["status"] == "skipped":
            assert (effect, p, by_word) == ("skipped", "–", "–")
            continue
        assert effect == f"{r['effect_size']:.2f} {d_span(r['ci_low'], r['ci_high'], r['num_words'])}"
        assert is_p(p, r["p_value"])
        assert p.count("*") == (r["p_value"] <= 0.05) + r["significant"]
        assert is_p(by_word, r["fixed_words_p_value"])
    assert sorted(statuses) == ["measured"] * 6 + ["skipped"] * 2


def cells_of(page: Page, place: int) -> dict[str, str]:
    """A row of all numbers, by its columns."""
    data = page.data["contexts"]
    return dict(zip([label for label, _ in data["columns"]], data["rows"][place][4:], strict=True))


def test_the_numbers_of_the_script_are_those_of_the_results(run: Run, page: Page) -> None:
    data = page.data["contexts"]
    assert data["models"] == list(LABELS)
    for place, (row, r) in enumerate(zip(data["rows"], ordered(run), strict=True)):
        assert (data["models"][row[0]], data["tests"][row[1]][0]) == (LABELS[r.model == "two"], r.test)
        if r.n_samples is None:
            assert row[2:] == [4, 0, "skipped"]
            continue
        cells = cells_of(page, place)
        assert cells["d"] == f"{r.effect_size:.2f}"
        assert cells["95% interval"] == d_span(r.ci_low, r.ci_high, r.num_words)
        assert is_p(cells["p"], r.p_value or 0.0)
        assert is_p(cells["p, corrected"], r.p_adjusted or 0.0)
        assert is_p(cells["p (these words only)"], r.fixed_words_p_value or 0.0)
        assert cells["D, 95%"] == f"{r.cosine_ci_low:.3f} to {r.cosine_ci_high:.3f}"
        assert cells["pooled effect (CES)"] == f"{r.pooled_effect_size:.2f}"
        assert cells["new contexts"] == f"{r.new_contexts_low:.2f} to {r.new_contexts_high:.2f}"
        assert is_p(cells["p, paper's"], r.pooled_p_value or 0.0)
        assert cells["contexts a word"] == "8 / 8 / 8"


@pytest.mark.parametrize(
    ("log10", "shown"),
    [(-400.3, "<1e-30"), (-30.5, "<1e-30"), (-29.5, "3.2e-30"), (-2.0, "0.010"), (None, "–")],
)
def test_of_the_papers_p_no_more_is_told_than_that_it_is_very_small(log10: float | None, shown: str, run: Run) -> None:
    p = None if log10 is None else 10**log10
    one = altered(run.results[0], pooled_p_value=p, pooled_log10_p_value=log10)
    assert format_published_p(decided(one)) == shown
    words = altered(one, fixed_words_p_value=p, fixed_words_log10_p_value=log10)
    assert format_fixed_words_p(decided(words)) == format_p(p, log10)


def distributions(page: Page) -> list[Drawing]:
    return [drawing for drawing in page.drawings if drawing.where[0] == "How the effect varies over contexts"]


@pytest.mark.extras
def test_the_bars_of_a_figure_hold_all_samples(run: Run, page: Page) -> None:
    pytest.importorskip("vl_convert")
    drawn, labels = distributions(page), model_labels(run)
    names = [(label, test) for label in LABELS for test in ("C6", "C9", "C10")]
    assert [drawing.where[1] for drawing in drawn] == [label for label, _ in names]
    for drawing, (label, test) in zip(drawn, names, strict=True):
        place = LABELS.index(label)
        (result,) = [r for r in run.results if r.test == test and labels[model_key(r)] == label]
        assert drawing.label.startswith(f"{test}: {N} effect sizes, pooled {result.pooled_effect_size:.2f};")
        assert drawing.caption == result.title
        assert drawing.text.endswith(test)  # its title
        kept = get_samples(run, place, test)
        assert kept is not None
        counts = []
        for tag, bar in drawing.marks:
            if tag != "path":
                assert bar["data-tip"] == f"pooled effect {result.pooled_effect_size:.2f}"
                continue
            found = re.fullmatch(r"(-?\d\.\d\d) to (-?\d\.\d\d): ([\d,]+) samples, mean p (\S+)", bar["data-tip"])
            assert found is not None
            low, high = float(found[1]), float(found[2])
            inside = (kept.effect_sizes >= low - 1e-9) & (kept.effect_sizes < high - 1e-9)
            counts.append(int(found[3].replace(",", "")))
            assert counts[-1] == inside.sum() > 0
            exact = float(kept.p_values[inside].mean())
            assert float(found[4]) == pytest.approx(exact, rel=0.05)
            assert bar["fill"] == f"var(--p{sum(exact >= level for level in (0.001, 0.01, 0.05))})"
        assert sum(counts) == N


def test_without_the_samples_there_are_no_distributions(run: Run) -> None:
    with_samples = Page(render_report(run))
    without = Page(render_report(dataclasses.replace(run, arrays={})))
    name = "How the effect varies over contexts"
    assert distributions(without) == []
    assert [h for h in with_samples.headings() if h not in without.headings()] == [name]
    assert without.rows == with_samples.rows
    assert without.data == with_samples.data


def test_the_contexts_that_were_found(page: Page) -> None:
    rows = page.table("Contexts found")[1:]
    assert [row[:2] for row in rows] == [[test.name, label] for label in LABELS for test in TESTS]
    by_test = {row[0]: row[2:] for row in rows}
    sizes = {t.name: sum(len(t.concept(role).words) for role in ROLES) for t in TESTS}
    lost = next(t for t in TESTS if t.name == "C9").X.words[0]
    assert by_test["C6"] == [f"{sizes['C6']} of {sizes['C6']}", "8 / 8 / 8", ""]
    assert by_test["C9"] == [f"{sizes['C9'] - 1} of {sizes['C9']}", "8 / 8 / 8", f"{lost} 2"]
    assert by_test["C1"][:2] == [f"0 of {sizes['C1']}", ""]
    assert "aster, clover" in by_test["C1"][2]


def test_words_the_corpus_lacks_are_told_from_those_a_model_could_not_place(run: Run) -> None:
    test, settings, model = TESTS[0], AssociationSettings(n_samples=10), Identity("one", "own", "1")
    rare, unplaced = test.X.words[0], test.Y.words[0]
    rng = np.random.default_rng(1)
    words = {w: rng.normal(size=(8, 5)) for role in ROLES for w in test.concept(role).words}
    words |= {rare: words[rare][:2], unplaced: words[unplaced][:3]}
    found = {w: len(rows) for w, rows in words.items()} | {unplaced: 8}
    measured = measure_over_contexts(test, words, settings, model.name, found.__getitem__)
    result = make_contextual_result(test, model, measured, settings)
    nothing: dict[str, tuple[str, ...]] = dict.fromkeys(ROLES, ())
    assert result.lost == nothing | {"X": (rare,), "Y": (unplaced,)}
    assert result.too_rare == nothing | {"X": (rare,)}
    one = with_rows(run, (result,))
    in_corpus, by_model = list_lost_words(one)
    assert in_corpus.endswith(f": {rare} ({test.name})")
    assert by_model.endswith(f": {unplaced} ({test.name})")
    (cell,) = [row.lost for row in count_contexts(one, model_labels(one))]
    assert cell.startswith(f"{rare} 2; {unplaced} 3 (")


@pytest.mark.extras
def test_hostile_names_in_figures_and_the_manifest_are_escaped(run: Run) -> None:
    """Model, test, title, files and a quote that would leave an attribute."""
    pytest.importorskip("vl_convert")
    nasty = f'{HOSTILE}" onload="alert(1)'
    models = tuple(dataclasses.replace(m, name=nasty, revision=nasty, settings={}) for m in run.manifest.models[:1])
    given = {"file": nasty, "corpus": (nasty,), "found_with": {nasty: nasty}}
    inputs = dataclasses.replace(run.manifest.inputs, contexts=contexts(**given))
    made = with_settings(run, contexts=nasty, vectors=nasty).manifest
    made = dataclasses.replace(made, inputs=inputs, models=models, versions={nasty: nasty})
    lost = dict.fromkeys(ROLES, ()) | {"X": (nasty,)}
    counts = {role: {nasty: 1, "other": 8} for role in ROLES}
    one = altered(
        run.results[0],
        num_contexts=counts,
        model=nasty,
        options="",
        model_revision=nasty,
        test=nasty,
        title=nasty,
        lost=lost,
    )
    arrays = {f"0/{nasty}/{name}": run.arrays[f"0/C6/{name}"] for name in SAMPLE_ARRAYS}
    text = render_report(Run(made, with_rows(run, (one,)).tables, arrays))
    page = Page(text)
    assert HOSTILE not in text
    assert page.explained("Corpus") == [f"{nasty}; {nasty} {nasty}"]
    (drawing,) = distributions(page)
    assert drawing.where[1] == drawing.caption == nasty
    assert drawing.text.endswith(nasty)
    assert drawing.label.startswith(f"{nasty}: {N} effect sizes")


def test_nan_and_infinity_are_shown_as_such(run: Run) -> None:
    """And reach no coordinate of a figure."""
    ends = {"new_contexts_low": -math.inf, "new_contexts_high": math.inf}
    names = ("pooled_effect_size", "pooled_p_value", "effect_size", "fixed_words_p_value", "p_value")
    numbers: dict[str, Any] = dict.fromkeys(names, math.nan)
    one = altered(run.results[0], **ends, ci_low=None, ci_high=None, **numbers)
    page = Page(render_report(with_rows(run, (one,))))
    assert [cell.rstrip("*") for cell in page.table("All tests")[2][1:]] == ["NaN", "NaN", "NaN"]
    cells = cells_of(page, 0)
    assert [cells[name].rstrip("*") for name in ("d", "p", "p, paper's", "pooled effect (CES)")] == ["NaN"] * 4
    assert cells["new contexts"] == "-inf to inf"
    assert "95% interval" not in cells
    coordinates = ("x", "y", "x1", "x2", "y1", "y2", "width", "height", "d", "transform")
    assert not [value for _, name, value in page.attributes if name in coordinates and "nan" in value.casefold()]


@pytest.mark.parametrize("bound", [math.nan, math.inf])
def test_an_interval_that_is_no_number_does_not_stop_the_page(bound: float, run: Run) -> None:
    ends = {
        "new_contexts_low": -bound,
        "new_contexts_high": bound,
        "ci_low": -bound,
        "ci_high": bound,
        "cosine_ci_low": -bound,
        "cosine_ci_high": bound,
    }
    one = altered(run.results[0], **ends)
    assert "In words" in Page(render_report(with_rows(run, (one,)))).headings()
