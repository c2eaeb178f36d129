"""Reports in a browser: display, tooltips, printing and accessibility."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest
from tests.models.api_server import no_key  # noqa: F401
from tests.reporting.browser import Opened, violations
from tests.results.made_runs import altered, with_rows
from tests.studies.answered_runs import asked, bbq, sentences
from tests.studies.showing import page_of

from biassay.runs.reports import compare_models, render_report
from biassay.runs.run import Run

pytestmark = pytest.mark.extras

HOSTILE = '</script><script>window.hacked = 1</script><img src=x onerror="window.hacked = 2">'
HEAD_DISPLAYS = "[...document.querySelectorAll('thead button')].map((one) => getComputedStyle(one).display)"


def test_the_page_opens_without_complaint_request_or_shift(run: Run, opened: Callable[..., Opened]) -> None:
    page = opened(run, folded=True).page
    page.wait_for_timeout(200)
    assert page.evaluate("window.shifted") == 0
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_the_theme_follows_the_system_until_it_is_chosen(run: Run, opened: Callable[..., Opened]) -> None:
    one = opened(run, dark=True)
    ground = "getComputedStyle(document.body).backgroundColor"
    ink = "getComputedStyle(document.querySelector('#texts-figure .axis text')).fill"
    dark, dark_ink = one.page.evaluate(ground), one.page.evaluate(ink)
    assert dark == "rgb(13, 17, 23)"
    button = one.page.get_by_role("button", name="Theme")
    button.click()
    assert one.page.evaluate(ground) == "rgb(255, 255, 255)"
    assert one.page.evaluate(ink) != dark_ink  # figures change with the page
    button.click()
    assert one.page.evaluate(ground) == dark
    button.click()
    assert button.get_attribute("aria-label") == "Theme: as the system"


@pytest.mark.parametrize("width", [320, 390, 768])
def test_a_narrow_screen_scrolls_one_way_only(width: int, run: Run, opened: Callable[..., Opened]) -> None:
    for found in (run, renamed(run, "a-very-long-name-of-a-model" * 20)):
        page = opened(found, width=width).page
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def renamed(run: Run, name: str) -> Run:
    models = tuple(dataclasses.replace(m, name=name if m.name == "glove" else m.name) for m in run.manifest.models)
    results = tuple(altered(r, model=name) if r.model == "glove" else r for r in run.results)
    return with_rows(run, results, models=models)


def test_printing_shows_everything_and_no_controls(nine: Run, opened: Callable[..., Opened]) -> None:
    one = opened(nine, dark=True)
    one.page.emulate_media(media="print")
    one.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert len(one.table("#texts-tests .numbers table")) == len(nine.results)
    assert one.page.locator("nav").is_hidden()
    assert one.page.locator(".controls").first.is_hidden()
    assert one.page.evaluate("[...document.querySelectorAll('details')].every((one) => one.open)")
    assert one.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    # Chromium prints a button on the first page of a table only.
    assert set(one.page.evaluate(HEAD_DISPLAYS)) == {"contents"}
    assert one.page.pdf(format="A4").startswith(b"%PDF")
    one.page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert len(one.table("#texts-tests .numbers table")) == 25


def test_hostile_names_run_nothing(run: Run, opened: Callable[..., Opened]) -> None:
    fields = ("model", "options", "title", "targ1", "targ2", "attr1", "attr2")
    results = tuple(
        altered(
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
    for strip in one.page.locator("#texts-figure .strip").all()[:3]:
        strip.hover()
        assert HOSTILE in (one.tip or "")
    one.page.locator("#texts-tests .numbers").get_by_label("Find").fill(HOSTILE)
    assert one.page.evaluate("window.hacked") is None
    assert HOSTILE in one.page.locator("#texts-words").inner_text()
    assert one.page.locator("script").count() == 2
    assert one.page.locator("img").count() == 0


@pytest.mark.parametrize("width", [390, 1280])
def test_the_figure_is_seen_first_and_tables_on_demand(width: int, run: Run, opened: Callable[..., Opened]) -> None:
    page = opened(run, width=width, folded=True).page
    box = page.locator("#texts-figure .strip").first.bounding_box()
    assert box is not None
    assert box["y"] + box["height"] < 900  # the height of the screen
    assert page.locator("#texts-figure .strip .mark").first.is_visible()
    assert not page.locator("#texts-tests table").first.is_visible()
    page.evaluate("location.hash = '#texts-tests'")
    page.wait_for_selector("#texts-tests table >> nth=0", state="visible")


@pytest.mark.parametrize("width", [390, 1280])
def test_the_axis_stays_visible_while_the_figure_scrolls(width: int, nine: Run, opened: Callable[..., Opened]) -> None:
    page = opened(nine, width=width).page
    page.locator("#texts-figure .strip").last.evaluate("(row) => row.scrollIntoView({block: 'start'})")
    first = page.locator("#texts-figure .strip").first.bounding_box()
    axis = page.locator("#texts-figure .axis").first.bounding_box()
    assert first is not None
    assert axis is not None
    assert first["y"] < axis["y"]  # the first row has scrolled away
    assert 0 <= axis["y"] < 900


def test_the_figure_shows_every_effect_where_it_is(run: Run, opened: Callable[..., Opened]) -> None:
    page = opened(run).page
    rows = page.evaluate(
        "[...document.querySelectorAll('.effects .row')].map((row) => [row.querySelector('small').textContent,"
        " [...row.querySelectorAll('use')].map((mark) => parseFloat(mark.getAttribute('x')))])"
    )
    measured = {r.test: [o.effect_size for o in run.results if o.test == r.test] for r in run.results}
    assert dict(rows).keys() == {test for test, effects in measured.items() if None not in effects}
    reach = max(2.0, *(abs(effect) for effects in measured.values() for effect in effects if effect is not None))
    for test, places in rows:
        assert [(place - 50.0) / 48.0 * reach for place in places] == pytest.approx(measured[test], abs=0.003)


def test_rows_of_the_figure_are_walked_with_the_keyboard(run: Run, opened: Callable[..., Opened]) -> None:
    one = opened(run)
    one.page.locator(".effects .strip").first.focus()
    first = one.tip
    one.page.keyboard.press("ArrowDown")
    assert first is not None
    assert one.tip is not None
    assert one.tip != first
    one.page.keyboard.press("ArrowUp")
    assert one.tip == first


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 1280])
def test_axe_finds_nothing_against_the_page(run: Run, opened: Callable[..., Opened], width: int, dark: bool) -> None:
    assert violations(opened(run, width=width, dark=dark)) == []


def test_axe_finds_nothing_against_a_comparison(run: Run, opened: Callable[..., Opened]) -> None:
    found = {"both": run}
    assert violations(opened(page_of(found, compare_models(found)))) == []


CUT_LABELS = "[...document.querySelectorAll('.label, th')].filter((one) => one.scrollWidth > one.clientWidth + 1)"
SHOWN = ("words", "bbq", "stereoset", "compared")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Pages by what they show."""
    folder = tmp_path_factory.mktemp("answered")
    old, new = bbq(folder, "old", 20), bbq(folder, "new", 200)
    runs = {"old": old, "new": new}
    pages: dict[str, Run] = {
        "words": asked(folder, "mild", 100),
        "bbq": old,
        "stereoset": sentences(folder, "stereoset"),
    }
    return {
        **{name: render_report(run) for name, run in pages.items()},
        "compared": page_of(runs, compare_models(runs)),
    }


@pytest.mark.parametrize("name", SHOWN)
def test_axe_finds_nothing_and_no_label_is_cut(made: dict[str, str], opened: Callable[..., Opened], name: str) -> None:
    for width, dark in ((1280, False), (390, True)):
        one = opened(made[name], width=width, dark=dark)
        assert violations(one) == []
        assert one.page.evaluate(f"{CUT_LABELS}.map((one) => one.textContent)") == []
        assert one.page.evaluate("document.documentElement.scrollWidth") <= width
