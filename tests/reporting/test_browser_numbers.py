"""The numbers of a page in a real browser: tables, matrix, filters, words."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.reporting.browser import Opened
from tests.reporting.many_models import with_models
from tests.results.made_runs import ordered

from biassay.reporting.formats import format_decimal, format_p, format_p_relation
from biassay.results.outcomes import Result
from biassay.runs.run import Run
from biassay.studies.associations.findings import format_d_interval, format_fixed_words_p, format_main_p, get_mark

pytestmark = pytest.mark.extras

MARKS = {"·": (False, False), "*": (True, False), "**": (True, True)}
MAIN = ("effect", "interval", "p", "p, Holm", "p (these words only)", "random sets")


def test_all_numbers_are_those_of_the_records_on_every_page(nine: Run, opened: Callable[..., Opened]) -> None:
    assert len(nine.results) > 50
    one = opened(nine)
    place = one.page.locator("#texts-tests .numbers")
    rows = one.table("#texts-tests .numbers table")
    while place.get_by_role("button", name="Next").is_enabled():
        place.get_by_role("button", name="Next").click()
        rows += one.table("#texts-tests .numbers table")
    assert len(rows) == len(nine.results)
    for cells, r in zip(rows, ordered(nine), strict=True):
        assert (cells[0].split("\n")[-1], cells[1]) == (r.test, r.model)
        if r.effect_size is None:
            assert cells[2:] == [r.status, *["–"] * (len(MAIN) - 1)]
        else:
            assert dict(zip(MAIN, cells[2:], strict=True)) == {
                "effect": format_decimal(r.effect_size),
                "interval": "–" if r.ci_low is None else format_d_interval(r),
                "p": format_main_p(r),
                "p, Holm": format_p(r.p_adjusted),
                "p (these words only)": format_fixed_words_p(r),
                "random sets": "–" if r.share_random is None else f"{r.share_random:.1%}",
            }


def test_other_columns_are_shown_when_they_are_asked_for(run: Run, opened: Callable[..., Opened]) -> None:
    one = opened(run)
    place = one.page.locator("#texts-tests .numbers")

    def heads() -> list[str]:
        return [head.replace("\xa0", " ") for head in place.locator("th:visible[scope=col]").all_inner_texts()]

    def chosen(name: str) -> dict[tuple[str, str], dict[str, str]]:
        place.get_by_label("Columns").select_option(label=name)
        rows = one.table("#texts-tests .numbers table")
        return {(row[0].split("\n")[-1], row[1]): dict(zip(heads(), row, strict=True)) for row in rows}

    names = place.get_by_label("Columns").locator("option").all_inner_texts()
    shown = {name: chosen(name) for name in names}
    assert set().union(*(next(iter(cells.values())) for cells in list(shown.values())[:-1])) == set(heads())
    for r in run.results:
        if r.effect_size is None or r.cosine_ci_low is None:
            continue
        cells = shown["all"][r.test, r.model]
        assert (cells["D"], cells["D, 95%"]) == (
            f"{r.cosine_difference:.3f}",
            f"[{r.cosine_ci_low:.3f}, {r.cosine_ci_high:.3f}]",
        )
        assert cells["df"] == format_decimal(r.df)
        assert (cells["sentence-level effect"], cells["sentence-level p"]) == (
            format_decimal(r.sentences_effect_size),
            format_p(r.sentences_p_value),
        )
        shares = [float(cells[name].rstrip("%")) for name in ("target words", "attribute words", "residual")]
        assert shares == pytest.approx(
            [100 * (share or 0.0) for share in (r.share_targets, r.share_attributes, r.share_residual)], abs=0.051
        )


def test_cells_and_figures_say_their_numbers_to_who_points_at_them(
    run: Run, many: Run, opened: Callable[..., Opened]
) -> None:
    r = run.results[0]
    effect, interval = format_decimal(r.effect_size), format_d_interval(r)
    one = opened(run)
    one.page.locator(f".effects .strip[aria-label*='({r.test})']").first.hover()
    tip = one.tip
    assert tip is not None
    assert all(text in tip for text in (r.test, r.model, effect, interval, format_p_relation(r.p_value)))
    one.page.mouse.move(1, 1)
    assert one.tip is None
    words = one.page.locator("#texts-words").inner_text()
    assert all(text in words for text in (effect, interval, format_main_p(r), format_fixed_words_p(r)))
    one = opened(many)
    one.page.locator("#texts-tests .matrix td[data-tip]").first.hover()
    assert one.tip is not None
    assert all(
        text in one.tip for text in (r.test, r.model, effect, interval, format_main_p(r), format_fixed_words_p(r))
    )


def test_the_matrix_is_walked_with_the_keyboard(many: Run, opened: Callable[..., Opened]) -> None:
    one = opened(many)
    page = one.page
    page.locator("#texts-tests .matrix [role=region]").focus()
    page.keyboard.press("Tab")
    first = one.tip
    page.keyboard.press("ArrowRight")
    assert one.tip is not None
    assert one.tip != first
    second = ordered(many)[1]
    assert one.tip.startswith(f"{second.test} on {second.model}")
    page.keyboard.press("ArrowDown")
    assert one.tip.startswith(f"{second.test} on noisy 1")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")  # there is no model above the first
    assert one.tip.startswith(f"{second.test} on {second.model}")
    page.keyboard.press("Escape")
    assert one.tip is None


def test_sorting_orders_numbers_and_leaves_what_is_missing_at_the_end(run: Run, opened: Callable[..., Opened]) -> None:
    one = opened(run)
    measured = [r for r in run.results if r.effect_size is not None]
    effect = one.page.locator("#texts-tests .numbers th[scope=col]").nth(2)
    for direction in ("ascending", "descending"):
        effect.get_by_role("button").click()
        assert effect.get_attribute("aria-sort") == direction
        shown = [row[2] for row in one.table("#texts-tests .numbers table")]
        assert shown[len(measured) :] == ["skipped"] * (len(run.results) - len(measured))
        numbers = [float(cell) for cell in shown[: len(measured)]]
        assert numbers == sorted(numbers, reverse=direction == "descending")
    p_header = one.page.locator("#texts-tests .numbers th", has_text="p (these").first
    p_header.get_by_role("button").click()
    numbers = [float(row[6]) for row in one.table("#texts-tests .numbers table") if row[6] != "–"]
    assert numbers == sorted(numbers)


def test_filters_keep_what_is_asked_for(run: Run, opened: Callable[..., Opened]) -> None:
    one = opened(run)
    place = one.page.locator("#texts-tests .numbers")
    place.get_by_label("Find").fill("NOISY")
    assert {row[1] for row in one.table("#texts-tests .numbers table")} == {"noisy 1"}
    for sought in ("noisy weat6", "  SENT\tfemale  glove ", "weat pleasant flowers noisy", "1 male"):
        place.get_by_label("Find").fill(sought)
        kept = [(row[0].split("\n")[-1], row[1]) for row in one.table("#texts-tests .numbers table")]
        held = [(r, f"{r.model} {r.test} {r.title}".lower()) for r in ordered(run)]
        every = [(r.test, r.model) for r, text in held if all(word in text for word in sought.lower().split())]
        assert kept == every
        assert 0 < len(every) < len(run.results)
    place.get_by_label("Find").fill("")
    choices: dict[str, Callable[[Result], bool]] = {
        "significant": lambda r: bool(r.significant),
        "before correction only": lambda r: r.evidence == "uncorrected",
        "for these words only": lambda r: (r.fixed_words_p_value or 1.0) <= 0.05 and not (r.p_value or 1.0) <= 0.05,
        "not measured": lambda r: r.effect_size is None,
    }
    for label, is_kept in choices.items():
        place.get_by_label("Show").select_option(label=label)
        kept = [(row[0].split("\n")[-1], row[1]) for row in one.table("#texts-tests .numbers table")]
        assert kept == [(r.test, r.model) for r in ordered(run) if is_kept(r)]
        assert kept
    place.get_by_label("Find").fill("there is no such test")
    assert one.table("#texts-tests .numbers table") == []
    assert "no results" in place.inner_text()


def test_many_models_are_shown_a_page_at_a_time(run: Run, opened: Callable[..., Opened]) -> None:
    many = with_models(run, 120)
    one = opened(many)
    place = one.page.locator("#texts-tests .matrix")
    assert [row[0] for row in one.table("#texts-tests .matrix table")][-1] == "noisy 49"
    assert "1 to 50 of 120 models" in place.inner_text()
    place.get_by_role("button", name="Next").click()
    place.get_by_role("button", name="Next").click()
    assert [row[0] for row in one.table("#texts-tests .matrix table")] == [f"noisy {i}" for i in range(100, 120)]
    place.get_by_label("Order").select_option("1")
    counts = [row.count("**") for row in one.table("#texts-tests .matrix table")]
    assert counts == sorted(counts, reverse=True)
    first = one.table("#texts-tests .matrix table")[0]
    marks = {r.test: get_mark(r) for r in many.results if r.model == first[0]}
    assert first.count("**") == list(marks.values()).count(2)
