"""The page and the tables of stereotypes: their numbers, and what they must not let through."""

from __future__ import annotations

import dataclasses
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.pages.pages import Page

from biassay.runs.run import Run
from biassay.runs.showing import print_run, render_report
from biassay.studies.stereotypes.records import AlignmentRow
from biassay.studies.stereotypes.view import MeasureView
from biassay.studies.stereotypes.words import leading_traits

from .asked_models import GROUPS, Place, models

pytestmark = pytest.mark.extras
HOSTILE = "<script>alert(1)</script>"
MARKUP = "[bold]x[/bold]"
NAMES = {"ilps": "ILPS", "ilps-star": "ILPS*", "set": "SeT"}


@pytest.fixture(scope="module")
def place(asked_place: Place) -> Place:
    return asked_place


@pytest.fixture(scope="module")
def found(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Run:
    cache = tmp_path_factory.mktemp("answers")
    return place(human=place.human, annotators=[("Gender", "Man")], intersections=True, cache=cache)


@pytest.fixture(scope="module")
def page(found: Run) -> Page:
    return Page(render_report(found))


def printed(run: Run, width: int = 250) -> str:
    out = io.StringIO()
    print_run(run, Console(file=out, width=width))
    return out.getvalue()


def two(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def span(interval: tuple[float, float] | None) -> str:
    return "–" if interval is None else f"{interval[0]:.2f} to {interval[1]:.2f}"


def shown_p(value: float | None) -> str:
    """As a person would write it: three decimals, or two digits where there would be none."""
    if value is None:
        return "–"
    return f"{value:.3f}" if value >= 0.001 else re.sub(r"e-0*", "e-", f"{value:.1e}")


def changed(run: Run, table: str, change: Callable[[Any], dict[str, Any]]) -> Run:
    """With other values in all rows of a table."""
    rows = tuple(dataclasses.replace(row, **change(row)) for row in run.tables[table])
    return dataclasses.replace(run, tables={**run.tables, table: rows})


def records(run: Run) -> list[tuple[str, str, MeasureView]]:
    return [(r.label, NAMES[record.measure], record) for r in models(run) for record in r.measures]


def test_the_agreement_on_the_page_is_that_of_the_record(found: Run, page: Page) -> None:
    model = models(found)[0].label
    _, *rows = page.rows[model, "Agreement with people", ""]
    expected = []
    for _, name, record in records(found):
        for a in record.alignments:
            numbers = [two(a.tau), span(a.tau_annotators), span(a.tau_groups), span(a.tau_both), shown_p(a.p_value)]
            numbers += [two(a.tau_shuffled), shown_p(a.p_value_shuffled), f"{a.num_groups}, {a.num_cells}"]
            rest = [two(a.precision), span(a.precision_both), two(a.tau_with_pilot), two(a.precision_with_pilot)]
            chosen = f"{as_sentences(found, record)} ({two(a.pilot_tau)})"
            expected.append([name, f"{a.annotators} ({a.num_annotators})", *numbers, *rest, chosen])
    assert rows == expected
    assert len(rows) == 6
    header, *rows = page.rows[model, "Agreement by group", ""]
    assert len(header) == 13
    for place, row in enumerate(rows):
        own = [record.groups_of(record.alignments[0])[place] for _, _, record in records(found)]
        numbers = [cell for g in own for cell in (two(g.tau), span(g.tau_interval), two(g.top), two(g.bottom))]
        assert row == [own[0].group + (" pilot" if own[0].pilot else ""), *numbers]
    assert [row[0] for row in rows] == ["north pilot", "south", "east", "baker pilot", "smith"]


def test_the_profiles_on_the_page_are_those_of_the_record(found: Run, page: Page) -> None:
    for model, name, record in records(found):
        header, *rows = page.rows[model, f"Profiles, {name}", ""]
        assert header == ["Group", *found.manifest.inputs.pairs]
        assert [row[0] for row in rows] == list(GROUPS)  # single groups; those paired are in the files
        for row, profile in zip(rows, record.profiles, strict=False):
            people = profile.human or [None] * len(profile.scores)
            told = [f" {h:.0f}" if h is not None else "" for h in people]
            assert [" ".join(cell.split()) for cell in row[1:]] == [
                f"{score:.2f}{human}" for score, human in zip(profile.scores, told, strict=True)
            ]
        scores = [score for profile in record.profiles if not profile.parts for score in profile.scores]
        shades = page.shades[model, f"Profiles, {name}", ""]
        largest = max(abs(score) for score in scores)
        for shade, score in zip(shades, scores, strict=True):
            assert ("--plus" in shade) is (score >= 0)
            assert float(shade.rpartition(" ")[2]) == pytest.approx(0.6 * abs(score) / largest, abs=0.0051)


def test_paired_groups_have_their_tables(found: Run, page: Page) -> None:
    (result,) = models(found)
    for crossed in result.intersections:
        where = (result.label, f"Paired groups, {NAMES[crossed.measure]}")
        _, *rows = page.rows[(*where, "Which domain a pair follows")]
        assert rows == [
            [
                *(d.domain_a, d.domain_b, str(d.num_pairs), two(d.tau_a), two(d.tau_b), two(d.difference)),
                *(span(d.interval), d.dominates or ""),
            ]
            for d in crossed.dominance
        ]
        _, *rows = page.rows[(*where, "Traits that emerge")]
        assert rows == [
            [
                *(e.group, e.trait, e.direction, f"{e.excess:.3f}", f"{e.bound:.3f}"),
                *(shown_p(e.p_value), shown_p(e.p_value_additive)),
            ]
            for e in crossed.emergent
        ]
        assert len(rows) == len(crossed.emergent) > 0


@pytest.mark.parametrize(("tau", "best"), [(0.0, "set"), (-0.2, "set"), (-0.4, "ilps"), (None, "ilps")])
def test_the_measure_that_agrees_best_is_one_and_the_same_everywhere(tau: float | None, best: str, found: Run) -> None:
    given = {"ilps": -0.3, "ilps-star": -0.5, "set": tau}
    other = changed(found, "alignments", lambda row: {"tau": given[row.measure]})
    (model,) = models(other)
    assert model.closest is not None
    assert model.closest.measure == best
    assert re.findall(r"^hf:.*: (\S+), \".*\"$", printed(other), flags=re.MULTILINE) == [NAMES[best]]
    if tau == 0.0:
        pytest.importorskip("vl_convert")
        drawn = {drawing.where[1] for drawing in Page(render_report(other)).drawings}
        assert drawn == {f"Groups beside people, {NAMES[best]}"}


def test_without_people_there_is_no_agreement(place: Place) -> None:
    plain = place()
    page, shown = Page(render_report(plain)), printed(plain)
    assert {where[1] for where in page.rows} == {f"Profiles, {name}" for name in NAMES.values()}
    assert "About the human judgements" not in page.headings()
    assert "annotators" not in shown
    rows = page.rows[models(plain)[0].label, "Profiles, ILPS", ""]
    assert rows[1][1:] == [f"{score:.2f}" for score in models(plain)[0].measures[0].profiles[0].scores]


def test_the_page_opens_without_a_network(page: Page) -> None:
    assert page.data == {}
    assert "default-src 'none'" in page.policy
    assert not re.search(r"https?://|//\w+\.", page.source)


def test_the_way_through_the_page_names_its_sections(found: Run, page: Page) -> None:
    sections = ["In short", models(found)[0].label, "About the human judgements", "How it was made"]
    assert page.headings() == sections
    assert page.links == ["To the results", *sections]


def test_a_figure_of_every_group_has_what_people_and_the_model_say(found: Run, page: Page) -> None:
    pytest.importorskip("vl_convert")
    (result,) = models(found)
    best = max(result.measures, key=lambda record: record.alignments[0].tau or -1.0)
    rated = [p for p in best.profiles if not p.parts and p.human is not None]
    assert [d.where[1] for d in page.drawings] == [f"Groups beside people, {NAMES[best.measure]}"] * len(rated)
    assert rated
    taus = {g.group: g.tau for g in best.groups_of(best.alignments[0])}
    for drawing, profile in zip(page.drawings, rated, strict=True):
        assert drawing.text.endswith(profile.group)
        assert drawing.caption == f"tau {two(taus[profile.group])}"
        told, sides = [], []
        for pair, score, human in zip(found.manifest.inputs.pairs, profile.scores, profile.human or (), strict=True):
            told += [f"{pair}: people {human:.0f} of 100"] if human is not None else []
            told += [f"{pair}: model {score:+.3g}"] if score is not None else []
            if None not in (human, score):
                sides.append((human - 50) * score > 0)
        assert drawing.tips == told
        assert drawing.label.endswith(f"same side in {sum(sides)} of {len(sides)} pairs")


def test_without_the_library_that_draws_the_page_says_how_to_get_figures(
    found: Run, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("pages.section", "studies.stereotypes.page"):
        monkeypatch.setattr(f"biassay.{module}.can_draw", lambda: False)
    without = Page(render_report(found))
    assert "svg" not in without.tags
    assert without.text.count('pip install "biassay[figures]"') == 1
    assert without.rows == page.rows


def test_what_is_not_defined_is_a_dash(found: Run) -> None:
    kept = ("model", "options", "measure", "annotators", "num_groups", "num_cells")
    numbers = {field.name: None for field in dataclasses.fields(AlignmentRow) if field.name not in kept}
    empty = changed(found, "alignments", lambda _: {**numbers, "num_groups": 0, "num_cells": 0})
    empty = changed(empty, "profiles", lambda _: {"scores": (None,) * 17})
    page, shown = Page(render_report(empty)), printed(empty)
    (model,) = models(found)
    cells = ["ILPS", "all", *["–"] * 7, "0, 0", *["–"] * 4, as_sentences(found, model.measures[0])]
    assert page.rows[model.label, "Agreement with people", ""][1] == cells
    assert page.rows[model.label, "Profiles, ILPS", ""][1] == [GROUPS[0], *["–"] * 17]
    assert not {"nan", "None"} & set(re.findall(r"\w+", page.text + shown))


def as_sentences(found: Run, record: MeasureView) -> str:
    """The templates chosen, with their slots in brackets."""
    texts = (found.manifest.inputs.templates[name] for name in record.chosen)
    return " and ".join('"' + re.sub(r"\{([^}]*)\}", r"[\1]", text) + '"' for text in texts)


def test_leading_traits_are_the_highest_and_the_lowest(found: Run) -> None:
    profile = dataclasses.replace(models(found)[0].measures[0].profiles[0], scores=(0.1, None, -2.0, 3.0, 0.5))
    high, low = leading_traits(profile, ["a", "b", "c", "d", "e"], n=2)
    assert high == "d +3.00, e +0.50"
    assert low == "c -2.00, a +0.10"


def test_hostile_names_go_through_as_text(place: Place, tmp_path: Path) -> None:
    """From a file of groups, traits and templates and from judgements to the page and the terminal."""
    baker, smith = (
        f'domain = "land", singular = "northern {noun}", plural = "northern {noun}s"' for noun in ("baker", "smith")
    )
    own = tmp_path / "hostile.toml"
    own.write_text(
        f"[groups]\n{json.dumps(HOSTILE)} = {{ {baker}, human = [{json.dumps(HOSTILE)}] }}\n"
        f"{json.dumps(MARKUP)} = {{ {smith}, human = ['[red]men'] }}\n"
        "[templates]\n'<b>t[/]' = { kind = 'k', number = 'plural', text = 'All {group} are so {trait} <b>[/].' }\n"
        '[pairs."<i>-[i]x"]\ndimension = "wit"\nleft = "<i>"\nright = "[i]x"\n'
    )
    people = tmp_path / "<u>human.json"
    ratings = {"cold - warm": 30, "poor - wealthy": 60, "dishonest - sincere": 80, "<i> - [i]x": 20}
    rated = {name: {HOSTILE: ratings, "[red]men": ratings, "</p>[/]": ratings} for name in ("a", "b")}
    people.write_text(json.dumps(rated))
    out = tmp_path / "out"
    asked = {"groups": [HOSTILE, MARKUP], "templates": ["<b>t[/]"], "files": [*place.files, own], "out": out}
    made = place(human=people, measures="ilps", **asked)
    text = (out / "report.html").read_text()
    page, shown = Page(text), printed(made)
    assert not {"b", "i", "u"} & set(page.tags)
    assert HOSTILE not in text
    rows = page.rows[models(made)[0].label, "Profiles, ILPS", ""]
    assert [row[0] for row in rows] == ["Group", HOSTILE, MARKUP]
    assert rows[0][-1] == "<i>-[i]x"
    firsts = {line.strip("│").split("│")[0].strip() for line in shown.splitlines() if line.startswith("│")}
    assert {HOSTILE, MARKUP} <= firsts
    for told in ("groups without a match here: </p>[/]", '"All [group] are so [trait] <b>[/]."'):
        assert told in page.text
        assert told in " ".join(shown.split())
    assert str(people) in page.text


@pytest.mark.parametrize("name", ["\x1b[2Jgone", "a\x9bb"])
def test_a_name_cannot_steer_the_terminal(found: Run, name: str) -> None:
    human = dataclasses.replace(found.manifest.inputs.human, notes=(name,))
    inputs = dataclasses.replace(found.manifest.inputs, human=human)
    other = changed(found, "profiles", lambda _: {"group": name})
    shown = printed(dataclasses.replace(other, manifest=dataclasses.replace(found.manifest, inputs=inputs)))
    assert name not in shown


def test_one_model_with_two_settings_is_told_apart(place: Place) -> None:
    twice = place([place.model, f"{place.model}?dtype=bfloat16"], measures="ilps")
    assert len({model.label for model in models(twice)}) == 2
    assert len(Page(render_report(twice)).rows) == 2
