"""The page of a run over contexts: its numbers, its figures, and what it must not let through."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from biassay.encoders.base import Identity
from biassay.measures.contextual import ContextSettings, measure_in_contexts
from biassay.report.distribution import figure_of
from biassay.report.html import render_report, write_report
from biassay.report.words import LEGEND
from biassay.report.words_contexts import COLUMNS
from biassay.results.making import contextual_result_of, finished, identified, new_manifest
from biassay.results.records import ContextsRecord
from biassay.results.run import Run, with_corrections
from biassay.results.samples import SAMPLES, Samples
from biassay.stimuli.catalogue import select_tests
from biassay.stimuli.model import ROLES

HOSTILE = "<script>alert(1)</script>"
N = 120
MODELS = (
    Identity("one", "own", "1", (("layer", "-1"),)),
    Identity("two", "own", None),
)
LABELS = ("one (layer=-1)", "two")
TESTS = select_tests(["C6", "C9", "C10", "C1"])


class Page(HTMLParser):
    """The page taken apart: tables with their headings, figures with their bars; elements must be balanced."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.headings: list[str] = []
        self.rows: list[tuple[str, list[str]]] = []
        self.figures: list[dict[str, Any]] = []
        self.items: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag != "meta":
            self.open.append(tag)
        if tag in ("h2", "h3"):
            self.headings.append("")
        elif tag == "tr":
            self.rows.append((self.headings[-1], []))
        elif tag in ("td", "th"):
            self.rows[-1][1].append("")
        elif tag == "li":
            self.items.append("")
        elif tag == "figure":
            self.figures.append({"heading": self.headings[-1], "bars": [], "titles": [], "lines": {}, "caption": ""})
        elif tag == "rect" and "figure" in self.open:
            self.figures[-1]["bars"].append(dict(attrs))
        elif tag == "line":
            self.figures[-1]["lines"][dict(attrs)["class"]] = dict(attrs)
        elif tag == "title" and "rect" in self.open:
            self.figures[-1]["titles"].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" in self.open:
            return
        self.text += data
        if "title" in self.open and "rect" in self.open:
            self.figures[-1]["titles"][-1] += data
        for tags, kept in (({"h2", "h3"}, self.headings), ({"td", "th"}, self.rows and self.rows[-1][1])):
            if tags & set(self.open):
                kept[-1] += data
        if "strong" in self.open:
            self.figures[-1]["caption"] += data
        if "li" in self.open:
            self.items[-1] += data

    def table(self, heading: str) -> dict[str, list[str]]:
        """Rows under a heading by their first cell, the header row aside."""
        return {cells[0]: cells[1:] for of, cells in self.rows if of == heading and cells[0] != "Test"}


def record(**given: Any) -> ContextsRecord:
    fields: dict[str, Any] = {"file": "c.parquet", "digest": "d" * 32, "rows": 9876, "per_stimulus": 8, "seed": 0}
    fields |= {"documents": 4321, "bytes": 10**6, "n_samples": N, "mode": "random", "window": 9, "dtype": "float16"}
    return ContextsRecord(**fields | {"min_contexts": 5} | given)


@pytest.fixture(scope="module")
def run() -> Run:
    """Four tests on two models. The first four words of every concept lean; C1 has no contexts; C9 loses a word."""
    asked = [(test, "C*") for test in TESTS]
    manifest = new_manifest(tuple(m.name for m in MODELS), asked, "ceat", "two-sided", 0.01, 0.2, 0, record())
    manifest = dataclasses.replace(manifest, models=tuple(identified(m.name, m) for m in MODELS))
    settings = ContextSettings(n_samples=N)
    results, samples = [], {}
    for place, model in enumerate(MODELS):
        rng = np.random.default_rng(place)
        for test in TESTS:
            lean = {"X": 0.5, "Y": -0.5, "A": 0.5, "B": -0.5} if test.name == "C6" else dict.fromkeys(ROLES, 0.0)
            words = {w: rng.normal(lean[role], 1.0, (8, 12)) for role in ROLES for w in test.concept(role).words}
            if test.name == "C9":
                words[test.X.words[0]] = words[test.X.words[0]][:2]
            measured = measure_in_contexts(test, {} if test.name == "C1" else words, settings, model.name)
            results.append(contextual_result_of(test, model, measured, settings))
            if measured.association is not None:
                found = measured.association
                samples[place, test.name] = Samples(found.samples, found.variances, found.sample_p_values)
    corrected = with_corrections(tuple(results), 0.01)
    return Run(finished(manifest, corrected), corrected, samples)


def changed(run: Run, **given: Any) -> Run:
    return Run(run.manifest, tuple(dataclasses.replace(r, **given) for r in run.results), run.samples)


def is_p(cell: str, value: float) -> bool:
    """Two digits, or three decimals: half a unit in the last place."""
    shown = float(cell.rstrip("*‡"))
    return bool(shown == pytest.approx(value, rel=0.05, abs=0.0005 if value >= 0.001 else 0.0))


def test_the_numbers_on_the_page_are_those_of_results_json(run: Run, tmp_path: Path) -> None:
    run.save(tmp_path)
    page = Page(write_report(run, tmp_path).read_text(encoding="utf-8"))
    results = json.loads((tmp_path / "results.json").read_text())["results"]
    statuses = []
    for label, model in (("one (layer=-1)", "one"), ("two", "two")):
        rows = page.table(label)
        own = [r for r in results if r["model"] == model]
        assert list(rows) == [r["test"] + r["title"] for r in own]
        for r in own:
            cells = rows[r["test"] + r["title"]]
            statuses.append(r["status"])
            if r["status"] == "refused":
                assert cells == ["refused", "", "", "", "–", "", "–", ""]
                continue
            c = r["contextual"]
            assert cells[0] == f"{r['effect_size']:.2f}"
            assert cells[1] == f"{c['interval_low']:.2f} to {c['interval_high']:.2f}"
            assert cells[2] == f"{c['prediction_low']:.2f} to {c['prediction_high']:.2f}"
            assert cells[3] == f"{100 * c['i2']:.0f}%"
            assert is_p(cells[4], r["p_value"])
            assert cells[5] == f"{r['effect_size_by_word']:.2f}"
            assert is_p(cells[6], r["p_value_by_word"])
            assert cells[7:] == ["8 / 8 / 8"]
    assert sorted(statuses) == ["measured"] * 6 + ["refused"] * 2


def test_every_number_has_its_header(run: Run) -> None:
    page = Page(render_report(run))
    headers = [cells for heading, cells in page.rows if heading in LABELS and cells[0] == "Test"]
    names = ["pooled effect", "95% over words", "prediction", "I²", "p, paper's", "effect by word", "p by word"]
    assert headers == [["Test", *names, "contexts a word"]] * 2
    assert {len(cells) for heading, cells in page.rows if heading in LABELS} == {9}
    for name in ("95% over words", "p by word"):
        assert name in dict(COLUMNS)
    text = " ".join(page.text.split())
    assert text.count(f"{' '.join(LEGEND.split())}. Blue: toward the first attributes") == 1
    assert ".. Blue" not in text


def test_the_page_says_how_the_run_was_made(run: Run) -> None:
    text = " ".join(Page(render_report(run)).text.split())
    assert "9,876 in c.parquet (dddddddddddd), at most 8 a stimulus, from 4,321 documents (1.0 MB), seed 0" in text
    assert f"{N}, every model draws its own contexts; windows of 9 words; vectors kept as float16" in text
    assert "a stimulus with fewer than 5 contexts is lost; a test is refused above 20% of a concept" in text
    assert "Holm over all 6 rows with a p-value" in text
    assert "Corpus" not in text
    other = dataclasses.replace(run.manifest, contexts=record(mode="fixed", window=None, dtype="float32"))
    text = " ".join(Page(render_report(Run(other, run.results))).text.split())
    assert f"{N}, all models are given the same contexts; whole sentences; vectors kept as float32" in text


def test_the_page_names_the_corpus_and_how_it_was_read(run: Run) -> None:
    def shown(**given: Any) -> str:
        """What follows "Corpus", up to the next term."""
        made = dataclasses.replace(run.manifest, contexts=record(**given))
        return Page(render_report(Run(made, run.results))).text.partition("Corpus")[2].partition("Samples")[0].strip()

    names = tuple(f"{number}.jsonl" for number in range(25))
    assert shown(corpus=("a.txt",)) == "a.txt"
    how = {"field": "body", "openings": "True"}
    assert shown(corpus=("a.txt", "b.csv.gz"), found_with=how) == "a.txt, b.csv.gz; field body; openings True"
    assert shown(corpus=names[:20], found_with=how) == f"{', '.join(names[:20])}; field body; openings True"
    assert shown(corpus=names, found_with=how) == f"{', '.join(names[:20])} and 5 more files; field body; openings True"


def test_the_bars_of_a_figure_hold_all_samples(run: Run) -> None:
    page = Page(render_report(run))
    assert [(f["heading"], f["caption"]) for f in page.figures] == [
        (label, test) for label in LABELS for test in ("C6", "C9", "C10")
    ]
    for figure in page.figures:
        place = LABELS.index(figure["heading"])
        kept = run.samples[place, figure["caption"]]
        counts = []
        for title, bar in zip(figure["titles"], figure["bars"], strict=True):
            found = re.fullmatch(r"(-?\d\.\d\d) to (-?\d\.\d\d): ([\d,]+) samples, mean p (\S+)", title)
            assert found is not None
            low, high, mean_p = float(found[1]), float(found[2]), float(found[4])
            inside = (kept.effect_sizes >= low - 1e-9) & (kept.effect_sizes < high - 1e-9)
            counts.append(int(found[3].replace(",", "")))
            assert counts[-1] == inside.sum() > 0
            assert mean_p == pytest.approx(kept.p_values[inside].mean(), rel=0.05)
            exact = float(kept.p_values[inside].mean())
            assert bar["class"] == f"p{sum(exact >= level for level in (0.001, 0.01, 0.05))}"
            assert float(bar["x"]) == pytest.approx(75.0 * (low + 2.0), abs=0.01)
            assert float(bar["y"]) + float(bar["height"]) == pytest.approx(110.0)
        assert sum(counts) == N
        heights = [float(bar["height"]) for bar in figure["bars"]]
        assert heights == pytest.approx([106.0 * count / max(counts) for count in counts], abs=0.01)
        (result,) = [r for r in run.results if r.test == figure["caption"] and r.model == MODELS[place].name]
        assert result.effect_size is not None
        assert float(figure["lines"]["pooled"]["x1"]) == pytest.approx(75.0 * (result.effect_size + 2.0), abs=0.05)
        assert figure["lines"]["zero"]["x1"] == "150.0"


@pytest.mark.parametrize("spread", [0.05, 0.6, 4.0])
def test_a_figure_is_a_histogram(spread: float) -> None:
    """By counting one by one; what lies beyond the axis stands in its outermost bars."""
    rng = np.random.default_rng(1)
    sizes, p = rng.normal(0.3, spread, 500), rng.random(500)
    figure = figure_of(Samples(sizes, np.ones(500), p), 0.3, "t")
    bins: dict[int, list[float]] = {}
    for size, value in zip(sizes.tolist(), p.tolist(), strict=True):
        bins.setdefault(min(79, max(0, math.floor((size + 2.0) / 0.05))), []).append(value)
    assert [bar.x for bar in figure.bars] == pytest.approx([3.75 * number for number in sorted(bins)], abs=0.01)
    most = max(map(len, bins.values()))
    for number, bar in zip(sorted(bins), figure.bars, strict=True):
        inside, low = bins[number], 0.05 * number - 2.0
        told = f"{low:.2f} to {low + 0.05:.2f}: {len(inside)} samples, mean p {sum(inside) / len(inside):.2g}"
        assert bar.title.replace("-0.00", "0.00") == told.replace("-0.00", "0.00")
        assert bar.height == pytest.approx(106.0 * len(inside) / most, abs=0.01)
        assert 0.0 <= bar.y < figure.floor
        assert 0.0 <= bar.x < bar.x + bar.width <= figure.width
    ordered = np.sort(sizes)
    for share in (0.05, 0.5, 0.95):  # linear between order statistics
        at = share * 499
        value = ordered[int(at)] + (at % 1) * (ordered[int(at) + 1] - ordered[int(at)])
        assert f" {value:.2f}" in figure.description
    assert figure.description.startswith("t: 500 effect sizes, pooled 0.30;")


def test_p_values_at_a_level_get_the_paler_shade() -> None:
    for p, shade in ((0.0, 0), (0.000999, 0), (0.001, 1), (0.01, 2), (0.049, 2), (0.05, 3), (1.0, 3)):
        (bar,) = figure_of(Samples(np.full(3, 0.42), np.ones(3), np.full(3, p)), 0.42, "t").bars
        assert bar.shade == shade


def test_without_the_samples_there_are_no_figures(run: Run, tmp_path: Path) -> None:
    run.save(tmp_path)
    with_figures = Page(render_report(Run.load(tmp_path)))
    shutil.rmtree(tmp_path / SAMPLES)
    without = Page(render_report(Run.load(tmp_path)))
    assert len(with_figures.figures) == 6
    assert without.figures == []
    assert "svg" not in without.tags
    assert [h for h in with_figures.headings if h not in without.headings] == ["How the effect varies over contexts"]
    assert without.rows == with_figures.rows


def test_refusals_are_listed_with_their_reasons(run: Run) -> None:
    page = Page(render_report(run))
    refused = [r for r in run.results if r.status == "refused"]
    assert {r.test for r in refused} == {"C1"}
    for r, label in zip(refused, LABELS, strict=True):
        assert f"C1 on {label}: {r.reason}" in page.items
        assert "25 of 25 words of Flowers have fewer than 5 usable contexts" in str(r.reason)


def test_the_contexts_that_were_found(run: Run) -> None:
    page = Page(render_report(run))
    rows = [cells for heading, cells in page.rows if heading == "Contexts found"][1:]
    assert [row[:2] for row in rows] == [[test.name, label] for label in LABELS for test in TESTS]
    by_test = {row[0]: row[2:] for row in rows}
    sizes = {t.name: sum(len(t.concept(role).words) for role in ROLES) for t in TESTS}
    lost = next(t for t in TESTS if t.name == "C9").X.words[0]
    assert by_test["C6"] == [f"{sizes['C6']} of {sizes['C6']}", "8 / 8 / 8", ""]
    assert by_test["C9"] == [f"{sizes['C9'] - 1} of {sizes['C9']}", "8 / 8 / 8", f"{lost} 2"]
    assert by_test["C1"][:2] == [f"0 of {sizes['C1']}", ""]
    assert "aster, clover" in by_test["C1"][2]


@pytest.mark.parametrize("field", ["test", "model", "options", "title", "reason", "p_route_by_word"])
def test_hostile_names_are_escaped(field: str, run: Run) -> None:
    text = render_report(changed(run, **{field: HOSTILE}))
    page = Page(text)
    assert HOSTILE not in text
    assert "script" not in page.tags
    if field != "p_route_by_word":
        assert HOSTILE in page.text


def test_hostile_names_in_figures_and_the_manifest_are_escaped(run: Run) -> None:
    """Model, test, title, files and a quote that would leave an attribute."""
    nasty = f'{HOSTILE}" onload="alert(1)'
    models = tuple(dataclasses.replace(m, name=nasty, revision=nasty, settings={}) for m in run.manifest.models[:1])
    contexts = record(file=nasty, corpus=(nasty,), found_with={nasty: nasty}, vectors=nasty)
    made = dataclasses.replace(run.manifest, models=models, contexts=contexts, versions={nasty: nasty})
    lost = dict.fromkeys(ROLES, ()) | {"X": (nasty,)}
    counts = {role: {nasty: 1, "other": 8} for role in ROLES}
    contextual = dataclasses.replace(run.results[0].contextual, num_contexts=counts)  # type: ignore[type-var]
    one = dataclasses.replace(
        run.results[0],
        contextual=contextual,
        model=nasty,
        options="",
        model_revision=nasty,
        test=nasty,
        title=nasty,
        lost=lost,
    )
    text = render_report(Run(made, (one,), {(0, nasty): run.samples[0, "C6"]}))
    page = Page(text)
    assert HOSTILE not in text
    assert "script" not in page.tags
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert f"{nasty}; {nasty} {nasty}" in page.text  # the corpus
    assert [f["caption"] for f in page.figures] == [nasty]
    assert any(name == "aria-label" and (value or "").startswith(nasty) for name, value in page.attributes)


def test_an_empty_run_and_one_of_refusals_are_shown(run: Run) -> None:
    empty = Page(render_report(Run(run.manifest)))
    assert "Associations over contexts in no model" in empty.text
    assert f"0 tests on 0 models, over contexts, {N} samples" in empty.text
    assert empty.figures == []
    refused = Page(render_report(Run(run.manifest, tuple(r for r in run.results if r.status == "refused"))))
    assert refused.items[:2] == [f"{label}: no test could be measured (C1)." for label in LABELS]
    assert "Not measured" in refused.headings
    assert "Holm over all 0 rows" in refused.text


def test_nan_and_infinity_are_shown_as_such(run: Run) -> None:
    """And reach no coordinate of a figure."""
    contextual = dataclasses.replace(
        run.results[0].contextual,  # type: ignore[type-var]
        prediction_low=-math.inf,
        prediction_high=math.inf,
        i2=math.nan,
        interval_low=None,
        interval_high=None,
    )
    names = ("effect_size", "p_value", "effect_size_by_word", "p_value_by_word")
    numbers: dict[str, Any] = dict.fromkeys(names, math.nan)
    one = dataclasses.replace(run.results[0], contextual=contextual, **numbers)
    page = Page(render_report(Run(run.manifest, (one,), run.samples)))
    (cells,) = page.table("one (layer=-1)").values()
    assert cells[:4] == ["nan", "", "-inf to inf", "nan%"]
    assert [cell.rstrip("*‡") for cell in cells[4:7]] == ["NaN", "nan", "NaN"]
    coordinates = ("x", "y", "x1", "x2", "y1", "y2", "width", "height")
    assert not [(name, value) for name, value in page.attributes if name in coordinates and "nan" in str(value)]


def test_an_effect_by_word_that_was_not_computed_is_left_blank(run: Run) -> None:
    one = dataclasses.replace(run.results[0], effect_size_by_word=None)
    (cells,) = Page(render_report(Run(run.manifest, (one,), run.samples))).table("one (layer=-1)").values()
    assert cells[5] == ""
    assert is_p(cells[6], one.p_value_by_word or 0.0)


def test_nothing_is_loaded_from_anywhere(run: Run) -> None:
    text = render_report(run)
    page = Page(text)
    assert "default-src 'none'" in text
    assert not re.search(r"https?://|url\(|@import", text)
    assert not {"script", "link", "img", "iframe", "object", "embed", "use", "image"} & set(page.tags)
    assert not [value for name, value in page.attributes if name in ("src", "href", "xlink:href", "srcset", "data")]
