"""The page and the tables of stereotypes: their numbers, and what they must not let through."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.reporting.pages import Page
from tests.studies.showing import printed

from biassay.results.outcomes import Outcome
from biassay.runs.reports import render_report
from biassay.runs.run import Run
from biassay.studies.stereotypes.results import by_group, closest, models_of

from .asked_models import GROUPS, Place, measures
from .made_runs import decided

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


def two(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def span(interval: tuple[float, float] | None) -> str:
    return "–" if interval is None else f"{interval[0]:.2f} to {interval[1]:.2f}"


def ends(row: Any) -> str:
    return "–" if row.ci_low is None else span((row.ci_low, row.ci_high))


def shown_p(value: float | None) -> str:
    """As a person would write it: three decimals, or two digits where there would be none."""
    if value is None:
        return "–"
    return f"{value:.3f}" if value >= 0.001 else re.sub(r"e-0*", "e-", f"{value:.1e}")


def changed(run: Run, table: str, change: Callable[[Any], dict[str, Any]]) -> Run:
    """With other values in all rows of a table."""
    rows = tuple(dataclasses.replace(row, **change(row)) for row in run.tables[table])
    return dataclasses.replace(run, tables={**run.tables, table: rows})


def label_of(run: Run) -> str:
    return models_of(run)[0].label


def table_of(page: Page, *where: str) -> list[dict[str, str]]:
    """Rows of a table of the page, by the labels of its columns."""
    header, *rows = page.rows[where]  # type: ignore[index]
    return [dict(zip(header, row, strict=True)) for row in rows]


def turned_of(page: Page, *where: str) -> list[dict[str, str]]:
    """The same of a table whose columns stand below each other, each with what it holds."""
    rows = page.rows[where]  # type: ignore[index]
    columns, *others = zip(*rows, strict=True)
    return [dict(zip(columns, cells, strict=True)) for cells in others]


def told(row: dict[str, str], label: str) -> str:
    """The first cell of a label, whatever is said about it."""
    return next(cell for name, cell in row.items() if name == label or name.startswith(f"{label} "))


def profiles_of(page: Page, run: Run, name: str) -> tuple[dict[str, dict[str, str]], list[str]]:
    """Cells of profiles by group and pair, from the tables of all dimensions; and their shades, in the same order."""
    inputs, cells, shades = run.manifest.inputs, {}, {}
    for dimension in dict.fromkeys(inputs.dimensions.values()):
        where = (label_of(run), f"Profiles, {name}", dimension[:1].upper() + dimension[1:])
        (_, *heads), *rows = page.rows[where]
        own = [pair for pair in inputs.pairs if inputs.dimensions[pair] == dimension]
        assert heads == [" – ".join(inputs.traits[pair]) for pair in own]
        marks = iter(page.shades.get(where, ()))
        for group, *line in rows:
            found = dict(zip(own, (" ".join(cell.split()) for cell in line), strict=True))
            cells.setdefault(group, {}).update(found)
            if group != "Mean of all groups":
                shades.update({(group, pair): next(marks) for pair in own if found[pair] != "–"})
    ordered = {group: {pair: line[pair] for pair in inputs.pairs} for group, line in cells.items()}
    return ordered, [shades[group, pair] for group in ordered for pair in inputs.pairs if (group, pair) in shades]


def test_the_agreement_on_the_page_is_that_of_the_record(found: Run, page: Page) -> None:
    rows = turned_of(page, label_of(found), "Agreement with people", "")
    assert len(rows) == len(found.tables["alignments"]) == 6
    for row, a in zip(rows, found.tables["alignments"], strict=True):
        assert [told(row, name) for name in ("measure", "annotators", "people")] == [
            *(NAMES[a.measure], a.annotators, str(a.outcome.n["annotators"])),
        ]
        assert [told(row, name) for name in ("tau", "95%, both", "p, shuffled", "p, cells")] == [
            *(two(a.outcome.effect_size), span((a.outcome.ci_low, a.outcome.ci_high))),
            *(shown_p(a.outcome.p_value), shown_p(a.alternatives["cells"].p_value)),
        ]
        assert [told(row, name) for name in ("groups shuffled", "P@3")] == [
            *(two(a.tau_shuffled), two(a.alternatives["precision"].effect_size)),
        ]
        assert [told(row, name) for name in ("tau with pilot", "tau on the pilot")] == [
            *(two(a.alternatives[name].effect_size) for name in ("with_pilot", "pilot")),
        ]
    for measure in measures(found):
        rows = table_of(page, label_of(found), f"Agreement by group, {NAMES[measure.label]}", "")
        assert [row["group"] for row in rows] == ["north", "south", "east", "baker", "smith"]
        for row, own in zip(rows, by_group(measure), strict=True):
            assert (row["tau"], row["95%"], row["P@3 top"]) == (two(own.effect_size), ends(own), two(own.top))
            assert row["pilot"] == ("yes" if own.pilot else "no")


def test_the_profiles_on_the_page_are_those_of_the_record(found: Run, page: Page) -> None:
    for record in measures(found):
        cells, shades = profiles_of(page, found, NAMES[record.label])
        assert list(cells) == ["Mean of all groups", *GROUPS]  # single groups; those paired are in the files
        profiles = {p.group: p for p in record["profiles"] if not p.parts}
        scores = np.array([profiles[group].scores for group in GROUPS])
        means = scores.mean(axis=0)
        assert [float(cell) for cell in cells["Mean of all groups"].values()] == pytest.approx(means, abs=0.0051)
        for group in GROUPS:
            people = profiles[group].human or [None] * len(means)
            shown = [f" {h:.0f}" if h is not None else "" for h in people]
            assert list(cells[group].values()) == [
                f"{score:.2f}{human}" for score, human in zip(profiles[group].scores, shown, strict=True)
            ]
        apart = (scores - means).ravel()
        assert len(shades) == apart.size
        for shade, beyond in zip(shades, apart, strict=True):
            assert abs(beyond) < 1e-12 or ("--plus" in shade) == (beyond > 0)
            assert float(shade.rpartition(" ")[2]) == pytest.approx(0.5 * abs(beyond) / abs(apart).max(), abs=0.0051)


def test_paired_groups_have_their_tables(found: Run, page: Page) -> None:
    for measure in measures(found):
        where = (label_of(found), f"Paired groups, {NAMES[measure.label]}")
        rows = table_of(page, *where, "Which domain a pair follows")
        assert [(row["difference"], row["95%"]) for row in rows] == [
            (two(d.effect_size), ends(d)) for d in measure["dominance"]
        ]
        rows = table_of(page, *where, "Traits that emerge")
        shown = [(row["group"], row["trait"], row["direction"], row["beyond both by"], row["p"]) for row in rows]
        emergent = measure["emergent"]
        assert shown == [(e.group, e.trait, e.direction, two(e.effect_size), shown_p(e.p_value)) for e in emergent]
        rows, order = table_of(page, *where, "Paired groups and their order"), measure.first("orders")
        taus = (order.tau_first, order.tau_second, order.tau_reversed, order.tau_closest)
        assert [row["tau"] for row in rows] == list(map(two, taus))


@pytest.mark.parametrize(("tau", "best"), [(0.0, "set"), (-0.2, "set"), (-0.4, "ilps"), (None, "ilps")])
def test_the_measure_that_agrees_best_is_one_and_the_same_everywhere(tau: float | None, best: str, found: Run) -> None:
    given = {"ilps": -0.3, "ilps-star": -0.5, "set": tau}
    other = changed(found, "alignments", lambda row: {"outcome": Outcome(effect_size=given[row.measure])})
    other = decided(other)
    chosen = closest(models_of(other)[0])
    assert chosen is not None
    assert chosen.label == best
    assert {finding.title.rpartition(" ")[2] for finding in other.findings() if finding.item in GROUPS} == {NAMES[best]}
    if tau == 0.0:
        pytest.importorskip("vl_convert")
        drawn = {drawing.where[1] for drawing in Page(render_report(other)).drawings}
        assert drawn == {f"Groups beside people, {NAMES[best]}"}


def test_without_people_there_is_no_agreement(place: Place) -> None:
    plain = place()
    page, shown = Page(render_report(plain)), printed(plain, 250)
    assert {where[1] for where in page.rows} == {*(f"Profiles, {name}" for name in NAMES.values()), "What was asked"}
    assert "annotators" not in shown
    cells, _ = profiles_of(page, plain, "ILPS")
    first = plain.tables["profiles"][0]
    assert list(cells[first.group].values()) == [f"{score:.2f}" for score in first.scores]


def test_a_figure_of_every_group_has_what_people_and_the_model_say(found: Run, page: Page) -> None:
    pytest.importorskip("vl_convert")
    best = closest(models_of(found)[0])
    assert best is not None
    rated = [p for p in best["profiles"] if not p.parts and p.human is not None]
    assert [d.where[1] for d in page.drawings] == [f"Groups beside people, {NAMES[best.label]}"] * len(rated)
    assert rated
    own = {g.group: g for g in by_group(best)}
    for drawing, profile in zip(page.drawings, rated, strict=True):
        assert drawing.text.endswith(profile.group)
        pilot = ", a pilot group" if own[profile.group].pilot else ""
        assert drawing.caption == f"tau {two(own[profile.group].effect_size)}{pilot}"
        shown, sides = [], []
        for pair, score, human in zip(found.manifest.inputs.pairs, profile.scores, profile.human or (), strict=True):
            shown += [f"{pair}: people {human:.0f} of 100"] if human is not None else []
            shown += [f"{pair}: model {score:+.3g}"] if score is not None else []
            if None not in (human, score):
                sides.append((human - 50) * score > 0)
        assert drawing.tips == shown
        assert drawing.label.endswith(f"same side in {sum(sides)} of {len(sides)} pairs")


def test_without_the_library_that_draws_the_page_says_how_to_get_figures(
    found: Run, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("biassay.reporting.document.can_draw", lambda: False)
    without = Page(render_report(found))
    assert without.drawings == []
    assert without.text.count('pip install "biassay[figures]"') == 1
    assert without.rows == page.rows


def test_what_is_not_defined_is_a_dash(found: Run) -> None:
    none = {"outcome": Outcome(n={"groups": 0, "cells": 0}), "tau_shuffled": None}
    empty = changed(
        found, "alignments", lambda row: {**none, "alternatives": dict.fromkeys(row.alternatives, Outcome())}
    )
    empty = decided(changed(empty, "profiles", lambda _: {"scores": (None,) * 17}))
    page, shown = Page(render_report(empty)), printed(empty, 250)
    row = turned_of(page, label_of(found), "Agreement with people", "")[0]
    assert [told(row, name) for name in ("groups", "cells")] == ["0", "0"]
    # A column in which nothing stands is left out.
    assert not [name for name in row if name.startswith(("tau", "p,", "P@3"))]
    cells, _ = profiles_of(page, empty, "ILPS")
    assert list(cells[GROUPS[0]].values()) == ["–"] * 17
    assert not {"nan", "None"} & set(re.findall(r"\w+", page.text + shown))


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
    page, shown = Page(text), printed(made, 250)
    assert not {"b", "i", "u"} & set(page.tags)
    assert HOSTILE not in text
    rows = page.rows[label_of(made), "Profiles, ILPS", "Wit"]
    assert [row[0] for row in rows] == ["Group", "Mean of all groups", HOSTILE, MARKUP]
    assert rows[0][-1] == "<i> – [i]x"
    assert len([strip for strip in page.strips if strip.startswith((f"{HOSTILE}: ", f"{MARKUP}: "))]) == 10
    firsts = {re.split(r" {2,}", line.strip())[0] for line in shown.splitlines()}
    assert {HOSTILE, MARKUP} <= firsts
    for text_ in ("groups without a match here: </p>[/]", '"All [group] are so [trait] <b>[/]."'):
        assert text_ in page.text
        assert text_ in " ".join(shown.split())
    assert str(people) in page.text


@pytest.mark.parametrize("name", ["\x1b[2Jgone", "a\x9bb"])
def test_a_name_cannot_steer_the_terminal(found: Run, name: str) -> None:
    human = dataclasses.replace(found.manifest.inputs.human, notes=(name,))
    inputs = dataclasses.replace(found.manifest.inputs, human=human)
    other = changed(found, "profiles", lambda _: {"group": name})
    shown = printed(dataclasses.replace(other, manifest=dataclasses.replace(found.manifest, inputs=inputs)), 250)
    assert name not in shown
