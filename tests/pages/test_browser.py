"""Reports in a real browser: what a reader sees, points at, sorts, filters and prints."""

from __future__ import annotations

import dataclasses
import math
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.pages.browser import Opened, chromium, violations
from tests.results.made_runs import with_rows
from tests.studies.showing import page_of

import biassay
from biassay.pages.formats import decimals, format_p
from biassay.results.data import RunData
from biassay.runs.run import Run
from biassay.runs.showing import compared, render_report
from biassay.studies.associations.families import with_corrections
from biassay.studies.associations.lead import d_interval, effect_of
from biassay.studies.associations.marks import lead_p, mark_of, p_by_word
from biassay.studies.associations.records import Result

pytestmark = pytest.mark.extras
HOSTILE = '</script><script>window.hacked = 1</script><img src=x onerror="window.hacked = 2">'
TESTS = ["weat6", "weat1", "sent-weat6", "sent-weat9", "weat9", "angry_black_woman_stereotype_b", "I1"]
HEAD_DISPLAYS = "[...document.querySelectorAll('thead button')].map((one) => getComputedStyle(one).display)"
MARKS = {"·": (False, False), "*": (True, False), "**": (True, True)}
MAIN = ("effect", "interval", "p", "p, Holm", "p for these attribute words", "random sets")


@pytest.fixture(scope="module")
def tab() -> Iterator[Opened]:
    with chromium() as browser:
        one = Opened(browser)
        yield one
        one.close()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A real run, and a second model made from it by noise."""
    found = biassay.run("glove", tests=TESTS, cache=tmp_path_factory.mktemp("vectors"))
    return with_models(found, 2)


def with_models(found: Run, count: int) -> Run:
    """The run on ``count`` models, all but the first made by noise from it."""
    rng = np.random.default_rng(0)
    results = list(found.results)
    records = list(found.manifest.models)
    for number in range(1, count):
        records.append(dataclasses.replace(records[0], text=f"noisy {number}", name=f"noisy {number}"))
        results += [noisy(r, f"noisy {number}", rng) for r in found.results]
    return with_rows(found, with_corrections(results, found.manifest.settings), models=tuple(records))


def noisy(result: Result, model: str, rng: np.random.Generator) -> Result:
    p = float(10.0 ** -rng.exponential(3.0))
    numbers: dict[str, Any] = {} if result.effect_size is None else {
        "effect_size_by_word": float(rng.normal()),
        "p_value_crossed": None if result.p_value_crossed is None else p,
        "associations": {
            role: {word: value + float(rng.normal(0.0, 0.02)) for word, value in words.items()}
            for role, words in result.associations.items()
        },
    }  # fmt: skip
    return dataclasses.replace(result, model=model, **numbers)


@pytest.fixture(scope="module")
def nine(run: Run) -> Run:
    return with_models(run, 9)


@pytest.fixture(scope="module")
def written(run: Run, nine: Run, tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Pages that several tests open, by the identity of their run."""
    folder = tmp_path_factory.mktemp("pages")
    paths = {id(run): folder / "two models.html", id(nine): folder / "nine models.html"}
    for found in (run, nine):
        paths[id(found)].write_text(render_report(found), encoding="utf-8")
    return paths


@pytest.fixture
def opened(tab: Opened, written: dict[int, Path], tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    """Writes what it is given as a page and opens it from disk; no page may complain."""

    def check() -> None:
        assert tab.complaints == []
        assert [url for url in tab.requests if not url.startswith("file:")] == []
        assert len(tab.requests) <= 1

    def open_(found: RunData | str, **given: Any) -> Opened:
        check()
        path = written.get(id(found))
        if path is None:
            path = tmp_path / "a page.html"
            path.write_text(found if isinstance(found, str) else render_report(found), encoding="utf-8")
        tab.show(path, **given)
        assert len(tab.requests) == 1
        return tab

    yield open_
    check()


def test_the_page_opens_without_complaint_request_or_shift(run: Run, opened: Callable[..., Opened]) -> None:
    page = opened(run).page
    page.wait_for_timeout(200)
    assert page.evaluate("window.shifted") == 0
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def ordered(run: Run) -> list[Result]:
    """As they stand on the page: checks of the method at the end."""
    return [*(r for r in run.results if r.about != "method"), *(r for r in run.results if r.about == "method")]


def test_the_table_of_all_tests_shows_the_numbers_of_the_records(run: Run, opened: Callable[..., Opened]) -> None:
    rows = {row[0].split("\n")[0]: row[1:] for row in opened(run).table("#texts-all_tests table")}
    assert list(rows) == list(dict.fromkeys(r.test for r in ordered(run)))
    for place, model in enumerate(dict.fromkeys(r.model for r in run.results)):
        for r in (r for r in run.results if r.model == model):
            cells = rows[r.test][3 * place : 3 * place + 3]
            if r.effect_size is None:
                assert cells == [r.status, "–", "–"]
                continue
            effect, *interval = cells[0].split("\n")
            assert float(effect) == pytest.approx(r.effect_size_by_word, abs=0.005 + 1e-9)
            assert interval == ([] if r.d_low is None else [d_interval(r)])
            assert cells[1:] == [lead_p(r), p_by_word(r)]


def test_checks_of_the_method_stay_below_their_title(run: Run, opened: Callable[..., Opened]) -> None:
    one = opened(run)
    checks = {r.test for r in run.results if r.about == "method"}
    assert checks
    for column in (1, 2):
        one.page.locator(f"#texts-all_tests thead tr:nth-child(2) th:nth-child({column}) button").click()
        rows = one.page.locator("#texts-all_tests tbody tr").all_inner_texts()
        (title,) = [at for at, row in enumerate(rows) if len(row.split("\n")) == 1 and row not in checks]
        assert {row.split("\n")[0] for row in rows[title + 1 :]} == checks


def test_all_numbers_are_those_of_the_records_on_every_page(nine: Run, opened: Callable[..., Opened]) -> None:
    assert len(nine.results) > 50
    one = opened(nine)
    place = one.page.locator("#texts-numbers")
    rows = one.table("#texts-numbers table")
    while place.get_by_role("button", name="Next").is_enabled():
        place.get_by_role("button", name="Next").click()
        rows += one.table("#texts-numbers table")
    assert len(rows) == len(nine.results)
    for cells, r in zip(rows, ordered(nine), strict=True):
        assert (cells[0].split("\n")[0], cells[1]) == (r.test, r.model)
        if r.effect_size is None:
            assert cells[2:] == [r.status, *["–"] * (len(MAIN) - 1)]
        else:
            assert dict(zip(MAIN, cells[2:], strict=True)) == {
                "effect": decimals(r.effect_size_by_word),
                "interval": "–" if r.d_low is None else d_interval(r),
                "p": lead_p(r),
                "p, Holm": format_p(r.p_value_crossed_holm),
                "p for these attribute words": p_by_word(r),
                "random sets": "–" if r.share_random is None else f"{r.share_random:.1%}",
            }


def test_other_columns_are_shown_when_they_are_asked_for(run: Run, opened: Callable[..., Opened]) -> None:
    one = opened(run)
    place = one.page.locator("#texts-numbers")

    def heads() -> list[str]:
        return [head.replace("\xa0", " ") for head in place.locator("th:visible[scope=col]").all_inner_texts()]

    def chosen(name: str) -> dict[tuple[str, str], dict[str, str]]:
        place.get_by_label("Columns").select_option(label=name)
        rows = one.table("#texts-numbers table")
        return {(row[0].split("\n")[0], row[1]): dict(zip(heads(), row, strict=True)) for row in rows}

    names = place.get_by_label("Columns").locator("option").all_inner_texts()
    shown = {name: chosen(name) for name in names}
    assert set().union(*(next(iter(cells.values())) for cells in list(shown.values())[:-1])) == set(heads())
    for r in run.results:
        if r.effect_size is None or r.D_low is None:
            continue
        cells = shown["all"][r.test, r.model]
        assert (cells["D"], cells["D, 95%"]) == (f"{r.D:.3f}", f"{r.D_low:.3f} to {r.D_high:.3f}")
        assert cells["df"] == decimals(r.df_crossed)
        assert (cells["effect by text"], cells["p by text"]) == (decimals(r.effect_size), format_p(r.p_value))
        shares = [float(cells[name].rstrip("%")) for name in ("target words", "attribute words", "residual")]
        assert shares == pytest.approx(
            [100 * (share or 0.0) for share in (r.share_targets, r.share_attributes, r.share_residual)], abs=0.051
        )


def test_the_matrix_marks_what_is_significant(run: Run, opened: Callable[..., Opened]) -> None:
    few = dataclasses.replace(run.results[0], p_value_crossed=None, significant_crossed=None)
    run = with_rows(run, (few, *run.results[1:]))
    tests = list(dict.fromkeys(r.test for r in ordered(run)))
    found = set()
    for model, *marks in opened(run).table("#texts-matrix table"):
        for test, mark in zip(tests, marks, strict=True):
            r = next(r for r in run.results if (r.model, r.test) == (model, test))
            found.add(mark)
            if mark in MARKS:
                assert MARKS[mark] == (bool(r.significant_crossed), bool(r.significant_crossed_holm))
            else:
                assert mark == ("–" if r.effect_size is None else "‡" if r is few else None)
    assert {*MARKS, "–", "‡"} == found


def test_cells_and_figures_say_their_numbers_to_who_points_at_them(run: Run, opened: Callable[..., Opened]) -> None:
    one = opened(run)
    r = run.results[0]
    numbers = (decimals(r.effect_size_by_word), f"{decimals(r.d_low)} to {decimals(r.d_high)}", lead_p(r), p_by_word(r))
    one.page.locator("#texts-matrix td[data-tip]").first.hover()
    assert one.tip is not None
    assert all(text in one.tip for text in (r.test, r.model, *numbers))
    one.page.mouse.move(1, 1)
    assert one.tip is None
    one.page.locator("#texts-forest svg path[data-tip]").first.hover()
    assert one.tip is not None
    assert one.tip.startswith(f"{r.test} on {r.model}.")
    assert all(text in one.tip for text in numbers)
    assert all(text in one.page.locator("#texts-words").inner_text() for text in numbers)


def test_the_matrix_is_walked_with_the_keyboard(run: Run, opened: Callable[..., Opened]) -> None:
    one = opened(run)
    page = one.page
    page.locator("#texts-matrix [role=region]").focus()
    page.keyboard.press("Tab")
    first = one.tip
    page.keyboard.press("ArrowRight")
    assert one.tip is not None
    assert one.tip != first
    second = ordered(run)[1]
    assert one.tip.startswith(f"{second.test} on {second.model}")
    page.keyboard.press("ArrowDown")
    assert one.tip.startswith(f"{second.test} on noisy 1")
    page.keyboard.press("ArrowDown")  # there is no third model
    assert one.tip.startswith(f"{second.test} on noisy 1")
    page.keyboard.press("Escape")
    assert one.tip is None


def test_sorting_orders_numbers_and_leaves_what_is_missing_at_the_end(run: Run, opened: Callable[..., Opened]) -> None:
    one = opened(run)
    people = {r.test: effect_of(r) for r in run.results if r.model == "glove" and r.about != "method"}
    effects = [effect for effect in people.values() if effect is not None]
    assert 0 < len(effects) < len(people)
    header = one.page.locator("#texts-all_tests thead tr:nth-child(2) th").first
    for direction in ("ascending", "descending"):
        header.get_by_role("button").click()
        assert header.get_attribute("aria-sort") == direction
        shown = [row[1].split("\n")[0] for row in one.table("#texts-all_tests table")][: len(people)]
        assert shown[len(effects) :] == ["refused"] * (len(people) - len(effects))
        numbers = [float(cell) for cell in shown[: len(effects)]]
        assert numbers == sorted(numbers, reverse=direction == "descending")
    p_header = one.page.locator("#texts-numbers th", has_text="p for these").first
    p_header.get_by_role("button").click()
    numbers = [float(row[6]) for row in one.table("#texts-numbers table") if row[6] != "–"]
    assert numbers == sorted(numbers)


def test_filters_keep_what_is_asked_for(run: Run, opened: Callable[..., Opened]) -> None:
    one = opened(run)
    place = one.page.locator("#texts-numbers")
    place.get_by_label("Find").fill("NOISY")
    assert {row[1] for row in one.table("#texts-numbers table")} == {"noisy 1"}
    for sought in ("noisy weat6", "  SENT\tfemale  glove ", "weat pleasant flowers noisy", "1 male"):
        place.get_by_label("Find").fill(sought)
        kept = [(row[0].split("\n")[0], row[1]) for row in one.table("#texts-numbers table")]
        held = [(r, f"{r.model} {r.test} {r.title}".lower()) for r in ordered(run)]
        every = [(r.test, r.model) for r, text in held if all(word in text for word in sought.lower().split())]
        assert kept == every
        assert 0 < len(every) < len(run.results)
    place.get_by_label("Find").fill("")
    choices: dict[str, Callable[[Result], bool]] = {
        "significant": lambda r: bool(r.significant_crossed),
        "after correction": lambda r: bool(r.significant_crossed_holm),
        "for these words only": lambda r: bool(r.significant_by_word) and not r.significant_crossed,
        "not measured": lambda r: r.effect_size is None,
    }
    for label, is_kept in choices.items():
        place.get_by_label("Show").select_option(label=label)
        kept = [(row[0].split("\n")[0], row[1]) for row in one.table("#texts-numbers table")]
        assert kept == [(r.test, r.model) for r in ordered(run) if is_kept(r)]
        assert kept
    place.get_by_label("Find").fill("there is no such test")
    assert one.table("#texts-numbers table") == []
    assert "no results" in place.inner_text()
    one.page.locator("#texts-matrix").get_by_label("Find").fill("glo")
    assert [row[0] for row in one.table("#texts-matrix table")] == ["glove"]


def test_many_models_are_shown_a_page_at_a_time(run: Run, opened: Callable[..., Opened]) -> None:
    many = with_models(run, 120)
    one = opened(many)
    place = one.page.locator("#texts-matrix")
    assert [row[0] for row in one.table("#texts-matrix table")][-1] == "noisy 49"
    assert "1 to 50 of 120 models" in place.inner_text()
    place.get_by_role("button", name="Next").click()
    place.get_by_role("button", name="Next").click()
    assert [row[0] for row in one.table("#texts-matrix table")] == [f"noisy {i}" for i in range(100, 120)]
    place.get_by_label("Order").select_option("1")
    counts = [row.count("**") for row in one.table("#texts-matrix table")]
    assert counts == sorted(counts, reverse=True)
    first = one.table("#texts-matrix table")[0]
    marks = {r.test: mark_of(r) for r in many.results if r.model == first[0]}
    assert first.count("**") == list(marks.values()).count(2)


def test_words_add_up_to_the_effect_size_by_word(run: Run, opened: Callable[..., Opened]) -> None:
    one = opened(run)
    place = one.page.locator("#texts-words")
    for r in (r for r in run.results if r.associations and r.effect_size_by_word is not None and r.model == "glove"):
        place.get_by_label("Test").select_option(label=f"{r.test}: {r.title}")
        shares = place.locator("td.number").all_inner_texts()
        targets = len(r.associations["X"]) + len(r.associations["Y"])
        assert len(shares) == sum(map(len, r.associations.values()))
        # Each share is written to three decimals.
        assert sum(map(float, shares[:targets])) == pytest.approx(r.effect_size_by_word, abs=0.0006 * targets)
        words = place.locator("tbody th").all_inner_texts()
        assert set(words[: len(r.associations["X"])]) == set(r.associations["X"])


def test_the_theme_follows_the_system_until_it_is_chosen(run: Run, opened: Callable[..., Opened]) -> None:
    one = opened(run, dark=True)
    ground = "getComputedStyle(document.body).backgroundColor"
    ink = "getComputedStyle(document.querySelector('#texts-forest svg text')).fill"
    dark, dark_ink = one.page.evaluate(ground), one.page.evaluate(ink)
    assert dark == "rgb(13, 17, 23)"
    button = one.page.get_by_role("button", name="Theme")
    button.click()
    assert one.page.evaluate(ground) == "rgb(255, 255, 255)"
    assert one.page.evaluate(ink) != dark_ink  # figures change with the page
    button.click()
    assert one.page.evaluate(ground) == dark
    button.click()
    assert button.inner_text() == "Theme: as the system"


@pytest.mark.parametrize("width", [320, 390, 768])
def test_a_narrow_screen_scrolls_one_way_only(width: int, run: Run, opened: Callable[..., Opened]) -> None:
    for found in (run, renamed(run, "a-very-long-name-of-a-model" * 20)):
        page = opened(found, width=width).page
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def renamed(run: Run, name: str) -> Run:
    models = tuple(dataclasses.replace(m, name=name if m.name == "glove" else m.name) for m in run.manifest.models)
    results = tuple(dataclasses.replace(r, model=name) if r.model == "glove" else r for r in run.results)
    return with_rows(run, results, models=models)


def test_printing_shows_everything_and_no_controls(nine: Run, opened: Callable[..., Opened]) -> None:
    one = opened(nine, dark=True)
    one.page.emulate_media(media="print")
    one.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert len(one.table("#texts-numbers table")) == len(nine.results)
    assert one.page.locator("nav").is_hidden()
    assert one.page.locator(".controls").first.is_hidden()
    assert one.page.evaluate("[...document.querySelectorAll('details')].every((one) => one.open)")
    assert one.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    # Chromium prints a button on the first page of a table only.
    assert set(one.page.evaluate(HEAD_DISPLAYS)) == {"contents"}
    assert one.page.pdf(format="A4").startswith(b"%PDF")
    one.page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert len(one.table("#texts-numbers table")) == 25


@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="pdftotext is not installed (Debian: poppler-utils)")
def test_heads_of_tables_are_on_every_printed_page(nine: Run, opened: Callable[..., Opened], tmp_path: Path) -> None:
    opened(nine).page.pdf(path=tmp_path / "page.pdf", format="A4")
    subprocess.run(["pdftotext", "-layout", "page.pdf"], cwd=tmp_path, check=True)
    pages = (tmp_path / "page.txt").read_text(encoding="utf-8").split("\f")
    numbers = [page for page in pages if re.search(r"^(sent-)?weat\d +noisy ", page, re.MULTILINE)]
    assert len(numbers) > 1
    assert all(re.search(r"^ *test +model +d ", page, re.MULTILINE) for page in numbers)


def test_hostile_names_run_nothing(run: Run, opened: Callable[..., Opened]) -> None:
    fields = ("model", "options", "title", "targ1", "targ2", "attr1", "attr2")
    results = tuple(
        dataclasses.replace(
            r,
            **dict.fromkeys(fields, HOSTILE),
            test=f"{HOSTILE}{i}",
            reason=None if r.reason is None else HOSTILE,
            associations={
                role: {f"{word}{HOSTILE}": v for word, v in words.items()} for role, words in r.associations.items()
            },
        )
        for i, r in enumerate(run.results)
    )
    models = tuple(dataclasses.replace(m, name=HOSTILE) for m in run.manifest.models)
    one = opened(with_rows(run, results, models=models, versions={HOSTILE: HOSTILE}))
    for cell in one.page.locator("#texts-matrix td[data-tip]").all()[:3]:
        cell.hover()
        assert HOSTILE in (one.tip or "")
    one.page.locator("#texts-forest svg path[data-tip]").first.hover()
    one.page.locator("#texts-numbers").get_by_label("Find").fill(HOSTILE)
    assert one.page.evaluate("window.hacked") is None
    assert HOSTILE in one.page.locator("#texts-words").inner_text()
    assert one.page.locator("script").count() == 2
    assert one.page.locator("img").count() == 0


def test_numbers_that_are_none_are_shown_as_such(run: Run, opened: Callable[..., Opened]) -> None:
    odd = (math.nan, math.inf, -math.inf)
    results = tuple(
        dataclasses.replace(
            r,
            effect_size=odd[i],
            effect_size_by_word=odd[i],
            p_value=math.nan,
            log10_p_value=math.nan,
            p_value_by_word=math.nan,
            log10_p_value_by_word=math.nan,
            p_value_crossed=math.nan,
            associations={role: dict.fromkeys(words, odd[i]) for role, words in r.associations.items()},
        )
        for i, r in enumerate(ordered(run)[:3])
    )
    one = opened(with_rows(run, with_corrections(results, run.manifest.settings)))
    assert [row[2] for row in one.table("#texts-numbers table")] == ["NaN", "inf", "-inf"]
    assert one.page.locator("#texts-short").is_visible()


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 1280])
def test_axe_finds_nothing_against_the_page(run: Run, opened: Callable[..., Opened], width: int, dark: bool) -> None:
    assert violations(opened(run, width=width, dark=dark)) == []


def test_axe_finds_nothing_against_a_comparison(run: Run, opened: Callable[..., Opened]) -> None:
    found = {"both": run}
    assert violations(opened(page_of(found, compared(found)))) == []
