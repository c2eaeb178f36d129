"""The page and the table a person reads."""

from __future__ import annotations

import dataclasses
import io
import math
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import biassay
from biassay.report.html import render_report, write_report
from biassay.report.terminal import print_run
from biassay.report.words import format_p, headline, model_labels, p_by_text, p_by_word, size_word, summary
from biassay.results.records import Manifest, Result
from biassay.results.run import Run

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A real run: measured, refused, with words lost, in sentences and in words."""
    tests = ["weat6", "weat1", "sent-weat6", "sent-weat9", "sent-weat8", "I1"]
    return biassay.run("glove", tests=tests, max_lost=0.05, cache=tmp_path_factory.mktemp("vectors"))


def changed(run: Run, **given: Any) -> Run:
    return Run(run.manifest, tuple(dataclasses.replace(r, **given) for r in run.results))


def printed(run: Run, width: int = 160) -> str:
    out = io.StringIO()
    print_run(run, Console(file=out, width=width))
    return out.getvalue()


def as_refused(result: Result) -> Result:
    numbers = ("effect_size", "statistic", "p_", "log10_p_", "significant")
    nothing = {f.name: None for f in dataclasses.fields(Result) if f.name.startswith(numbers)}
    return dataclasses.replace(result, **nothing, status="refused", reason="too many words", leaning={})


def test_the_page_is_balanced_and_has_no_script(measured: Run) -> None:
    page = Page(render_report(measured))
    assert page.tags.count("html") == page.tags.count("body") == page.tags.count("table") == 1
    assert "script" not in page.tags
    assert "iframe" not in page.tags


def test_the_page_opens_without_a_network(measured: Run) -> None:
    text = render_report(measured)
    page = Page(text)
    assert "link" not in page.tags
    assert not [address for address in page.addresses if not address.startswith(("#", "data:"))]
    assert "default-src 'none'" in text


def test_the_numbers_on_the_page_are_those_of_the_results(measured: Run) -> None:
    page = Page(render_report(measured))
    rows = {row[0].partition(r.title)[0]: row[1:] for r in measured.results for row in page.rows if r.title in row[0]}
    assert set(rows) == {r.test for r in measured.results}
    statuses = set()
    for r in measured.results:
        effect, by_text, by_word = rows[r.test]
        statuses.add(r.status)
        if r.effect_size is None:
            assert (effect, by_text, by_word) == (r.status, "–", "–")
            continue
        assert effect == f"{r.effect_size:.2f}"
        for cell, p in ((by_text, r.p_value), (by_word, r.p_value_by_word)):
            assert p is not None
            # two digits, or three decimals: half a unit in the last place
            assert float(cell.rstrip("*‡")) == pytest.approx(p, rel=0.05, abs=0.0005 if p >= 0.001 else 0.0)
    assert statuses == {"measured", "refused"}


def test_the_numbers_in_the_terminal_are_those_of_the_results(measured: Run) -> None:
    lines = printed(measured).splitlines()
    for r in measured.results:
        row = next(line for line in lines if re.match(rf"│ {re.escape(r.test)} ", line))
        cells = [cell.strip() for cell in row.strip("│").split("│")]
        if r.effect_size is None:
            assert cells[1:] == [r.status, "–", "–"]
        else:
            assert cells[1] == f"{r.effect_size:.2f}"
            assert cells[2] == p_by_text(r)
            assert cells[3] == p_by_word(r)


def test_refusals_say_why_on_the_page_and_in_the_terminal(measured: Run) -> None:
    refused = [r for r in measured.results if r.reason]
    assert refused
    for shown in (Page(render_report(measured)).text, " ".join(printed(measured).split())):
        for r in refused:
            assert " ".join(str(r.reason).split()) in shown


def test_the_page_says_how_the_run_was_made(measured: Run) -> None:
    text = Page(render_report(measured)).text
    made = measured.manifest
    for told in (made.created, str(made.finished), made.protocol, f"seed {made.seed}", str(made.models[0].revision)):
        assert told in text
    for name, version in made.versions.items():
        assert f"{name} {version}" in text
    for citation in {t.citation for t in made.tests}:
        assert text.count(citation) == 1
    with_p = sum(r.p_value is not None for r in measured.results)
    assert f"Holm over all {with_p} rows" in text


def test_sections_stand_only_where_there_is_data(measured: Run) -> None:
    always = ["In short", "All tests", "How it was made"]
    sections = {
        "Where sentences and words disagree": [
            r for r in measured.results if r.significant and r.significant_by_word is False
        ],
        "Not measured": [r for r in measured.results if r.status != "measured"],
        "Words a model does not know": [r for r in measured.results if any(r.lost.values())],
    }
    assert all(sections.values())
    assert set(Page(render_report(measured)).headings) == {*always, *sections}
    for name, rows in sections.items():
        without = Run(measured.manifest, tuple(r for r in measured.results if r not in rows))
        assert without.results
        assert name not in Page(render_report(without)).headings
    plain = [r for r in measured.results if not any(r in rows for rows in sections.values())]
    assert plain
    assert Page(render_report(Run(measured.manifest, tuple(plain)))).headings == always


@pytest.mark.parametrize("field", ["test", "model", "options", "title", "targ1", "attr1", "reason", "p_route"])
def test_hostile_names_are_escaped(field: str, measured: Run) -> None:
    text = render_report(changed(measured, **{field: HOSTILE}))
    page = Page(text)
    assert HOSTILE not in text
    assert "script" not in page.tags
    if field in ("test", "model", "options", "title", "reason"):
        assert HOSTILE in page.text


def test_hostile_names_from_a_file_are_escaped_end_to_end(tmp_path: Path) -> None:
    words = {"X": ["cat", "lion"], "Y": ["dog", "wolf"], "A": ["love", "joy"], "B": ["war", "<b>grief</b>"]}
    concepts = "".join(
        f'[concepts.{role}]\nlabel = "{HOSTILE}{role}"\nwords = {given!r}\n' for role, given in words.items()
    )
    roles = "".join(f'{role} = "{role}"\n' for role in words)
    source = f'[source]\nname = "{HOSTILE}"\ncitation = "{HOSTILE}"\nlicence = "{HOSTILE}"\nversion = "1"\n'
    path = tmp_path / "own.toml"
    path.write_text(f'{source}{concepts}[tests."{HOSTILE}"]\ntitle = "{HOSTILE}"\n{roles}')
    run = biassay.run("glove", tests=str(path), max_lost=0.5, out=tmp_path / "run")
    assert [r.test for r in run.results] == [HOSTILE]
    text = (tmp_path / "run" / "report.html").read_text()
    page = Page(text)
    assert HOSTILE not in text
    assert "script" not in page.tags
    assert "b" not in page.tags
    assert HOSTILE in page.text
    assert HOSTILE in printed(run)


def test_hostile_models_and_versions_in_the_manifest_are_escaped(measured: Run) -> None:
    record = dataclasses.replace(
        measured.manifest.models[0], name=HOSTILE, revision=HOSTILE, settings={HOSTILE: HOSTILE}
    )
    made = dataclasses.replace(measured.manifest, models=(record,), versions={HOSTILE: HOSTILE}, created=HOSTILE)
    text = render_report(Run(made, measured.results))
    assert HOSTILE not in text
    assert "script" not in Page(text).tags


def test_an_attribute_cannot_be_broken_out_of(measured: Run) -> None:
    nasty = '" onmouseover="alert(1)'
    run = Run(measured.manifest, tuple(dataclasses.replace(as_refused(r), reason=nasty) for r in measured.results))
    assert nasty in Page(render_report(run)).text


def test_an_empty_run_is_shown(measured: Run) -> None:
    empty = Run(measured.manifest)
    assert "no model" in Page(render_report(empty)).text
    assert "0 tests on 0 models" in printed(empty)


def test_a_run_with_nothing_but_refusals_is_shown(measured: Run) -> None:
    run = Run(measured.manifest, tuple(as_refused(r) for r in measured.results))
    page = Page(render_report(run))
    assert "Not measured" in page.headings
    assert "no test could be measured" in page.text
    assert printed(run).count("too many words") == len(run.results)


def test_a_running_manifest_is_shown_as_not_finished(measured: Run) -> None:
    running = dataclasses.replace(measured.manifest, status="running", finished=None)
    assert "not finished" in Page(render_report(Run(running, measured.results))).text


def test_nan_is_shown_as_nan_and_not_as_a_number(measured: Run) -> None:
    run = changed(Run(measured.manifest, measured.results[:1]), effect_size=math.nan, p_value=math.nan)
    (row,) = [row for row in Page(render_report(run)).rows if row[0].startswith("weat6")]
    assert row[1].casefold().startswith("nan")
    assert row[2].startswith("NaN")
    assert "NaN" in printed(run)


def test_two_models_stand_side_by_side(measured: Run) -> None:
    half = measured.results[: len(measured.results) // 2]
    other = tuple(dataclasses.replace(r, model="other") for r in half)
    page = Page(render_report(Run(measured.manifest, (*measured.results, *other))))
    assert page.rows[0] == ["Test", "glove", "other"]
    assert page.rows[1] == ["effect", "p by text", "p by word"] * 2
    assert {len(row) for row in page.rows[2:]} == {7}
    assert [row[4] for row in page.rows[2:]].count("") == len(measured.results) - len(half)


def test_models_told_apart_by_revision_only_are_both_shown(measured: Run) -> None:
    one = measured.results[0]
    two = dataclasses.replace(one, model_revision="another", effect_size=-0.77)
    page = Page(render_report(Run(measured.manifest, (one, two))))
    shown = [cell for row in page.rows[2:] for cell in row]
    assert any(cell.startswith(f"{one.effect_size:.2f}") for cell in shown)
    assert any(cell.startswith("-0.77") for cell in shown)
    assert headline(Run(measured.manifest, (one, two))).startswith("1 test on 2 models")


def test_write_report_puts_one_file_into_the_folder(measured: Run, tmp_path: Path) -> None:
    path = write_report(measured, tmp_path)
    assert [path] == list(tmp_path.iterdir())
    assert path.read_text(encoding="utf-8") == render_report(measured)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "–"),
        (math.nan, "NaN"),
        (1.0, "1.000"),
        (0.0123, "0.012"),
        (0.001, "0.001"),
        (0.00099, "9.9e-4"),
        (9.97e-5, "1.0e-4"),
        (1.4536675772573553e-09, "1.5e-9"),
        (0.0, "0"),
    ],
)
def test_p_values_are_written_to_two_digits(value: float | None, shown: str) -> None:
    log10 = None if value is None else -math.inf if value == 0 else math.log10(value)
    assert format_p(value, log10) == shown


def test_a_p_value_too_small_for_a_float_is_written_from_its_logarithm() -> None:
    assert format_p(0.0, -400.0 + math.log10(3.2)) == "3.2e-400"


@pytest.mark.parametrize(("size", "word"), [(0.1, "negligible"), (-0.2, "small"), (0.5, "medium"), (-0.8, "large")])
def test_effect_sizes_have_their_customary_names(size: float, word: str) -> None:
    assert size_word(size) == word


@pytest.mark.parametrize(("significant", "holm", "stars"), [(True, True, "**"), (True, False, "*"), (False, False, "")])
def test_each_p_value_has_its_own_stars(significant: bool, holm: bool, stars: str, measured: Run) -> None:
    one = dataclasses.replace(
        measured.results[0], p_value=0.5, log10_p_value=-0.301, significant=True, significant_holm=True
    )
    given = {"p_value_by_word": 0.25, "log10_p_value_by_word": -0.602, "p_floor_by_word": 1e-4}
    one = dataclasses.replace(one, **given, significant_by_word=significant, significant_by_word_holm=holm)
    assert p_by_word(one) == f"0.250{stars}"
    assert p_by_text(one) == "0.500**"


def test_too_few_words_to_be_significant_are_marked(measured: Run) -> None:
    few = dataclasses.replace(
        measured.results[0], p_value_by_word=1 / 70, log10_p_value_by_word=-1.845, p_floor_by_word=1 / 70
    )
    few = dataclasses.replace(few, significant_by_word=False, significant_by_word_holm=False)
    assert p_by_word(few) == "0.014‡"
    assert p_by_word(dataclasses.replace(few, alpha=0.05, significant_by_word=True)) == "0.014*"
    page = Page(render_report(Run(measured.manifest, (dataclasses.replace(few, significant=True),))))
    assert "Where sentences and words disagree" not in page.headings


def test_the_summary_counts_what_was_found(measured: Run) -> None:
    (sentence,) = summary(measured)
    rows = [r for r in measured.results if r.status == "measured"]
    by_word, corrected, by_text, by_text_corrected = (
        sum(bool(getattr(r, f"significant{f}")) for r in rows) for f in ("_by_word", "_by_word_holm", "", "_holm")
    )
    assert f"{by_word} of {len(rows)} tests found the association at p <= 0.01, {corrected} of them" in sentence
    assert f"it would be {by_text} and {by_text_corrected}." in sentence
    assert sentence.endswith(f"Not measured: {', '.join(r.test for r in measured.results if r not in rows)}.")
    largest = max((r for r in rows if r.significant_by_word_holm), key=lambda r: abs(r.effect_size or 0))
    assert f"The largest that stands up to correction: {largest.test} " in sentence


def test_the_headline_counts_tests_and_models(measured: Run) -> None:
    made: Manifest = dataclasses.replace(measured.manifest, protocol="may2019", alpha=0.05)
    assert headline(Run(made, measured.results)) == "6 tests on 1 model, protocol may2019, alpha 0.05"


def test_a_label_names_the_options(measured: Run) -> None:
    folded = dataclasses.replace(measured.results[0], options="case=fold")
    assert list(model_labels(Run(measured.manifest, (folded,))).values()) == ["glove (case=fold)"]
    plain = dataclasses.replace(measured.results[0], options="")
    other = dataclasses.replace(plain, model_revision="another")
    assert list(model_labels(Run(measured.manifest, (plain, other))).values()) == ["glove", "glove #2"]
