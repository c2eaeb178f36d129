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

from biassay.results.run_data import split_by_model
from biassay.runs.reports import render_report
from biassay.runs.run import Run
from biassay.studies.stereotypes.results import find_closest_measure, list_group_agreements

from .asked_models import GROUPS, Place, measures

pytestmark = pytest.mark.extras
HOSTILE = "<script>alert(1)</script>"
MARKUP = "[bold]x[/bold]"


NAMES = {"ilps": "ILPS", "ilps-star": "ILPS*", "set": "SeT"}


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
    return "–" if interval is None else f"[{interval[0]:.2f}, {interval[1]:.2f}]"


def shown_p(value: float | None) -> str:
    """As a person would write it: three decimals, or two digits where there would be none."""
    if value is None:
        return "–"
    return f"{value:.3f}" if value >= 0.001 else re.sub(r"e-0*", "e-", f"{value:.1e}")


def changed(run: Run, table: str, change: Callable[[Any], dict[str, Any]]) -> Run:
    """With other values in all rows of a table."""
    rows = tuple(dataclasses.replace(row, **change(row)) for row in run.tables[table])
    return dataclasses.replace(run, tables={**run.tables, table: rows})


def turned_of(page: Page, *where: str) -> list[dict[str, str]]:
    """The same of a table whose columns stand below each other."""
    rows = page.rows[where]  # type: ignore[index]
    columns, *others = zip(*rows, strict=True)
    return [dict(zip(columns, cells, strict=True)) for cells in others]


def profiles_of(page: Page, run: Run, name: str) -> tuple[dict[str, dict[str, str]], list[str]]:
    """Cells of profiles by group and pair, from the tables of all dimensions; and their shades, in the same order."""
    cells: dict[Any, Any] = {}
    inputs, shades = run.manifest.inputs, dict[Any, Any]()
    where = ("All traits", f"Profiles, {name}", "")
    marks, own = iter(page.shades.get(where, ())), []
    for first, *line in page.rows[where]:
        if first == "Group":
            (dimension,) = line
        elif " – " in first:
            own = [pair for pair in inputs.pairs if inputs.dimensions[pair].lower() == dimension.lower()]
            assert [first, *line] == [" – ".join(inputs.traits[pair]) for pair in own]
        else:
            found = dict(zip(own, (" ".join(cell.split()) for cell in line), strict=True))
            cells.setdefault(first, {}).update(found)
            if first != "Mean of all groups":
                shades.update({(first, pair): next(marks) for pair in own if found[pair] != "–"})
    ordered = {group: {pair: line[pair] for pair in inputs.pairs} for group, line in cells.items()}
    return ordered, [shades[group, pair] for group in ordered for pair in inputs.pairs if (group, pair) in shades]


def test_the_agreement_on_the_page_is_that_of_the_record(found: Run, page: Page) -> None:
    rows = turned_of(page, "All groups", "Agreement with people", "")
    assert len(rows) == len(found.tables["alignments"]) == 6
    for row, a in zip(rows, found.tables["alignments"], strict=True):
        assert [row[name] for name in ("measure", "annotators", "people")] == [
            *(NAMES[a.measure], a.annotators, str(a.outcome.n["annotators"])),
        ]
        assert [row[name] for name in ("tau", "95%, both", "p, shuffled", "p, cells")] == [
            *(two(a.outcome.effect_size), span((a.outcome.ci_low, a.outcome.ci_high))),
            *(shown_p(a.outcome.p_value), shown_p(a.alternatives["cells"].p_value)),
        ]
        assert [row[name] for name in ("groups shuffled", "P@3")] == [
            *(two(a.tau_shuffled), two(a.alternatives["precision"].effect_size)),
        ]
        assert [row[name] for name in ("tau with pilot", "tau on the pilot")] == [
            *(two(a.alternatives[name].effect_size) for name in ("with_pilot", "pilot")),
        ]
    header, *lines = page.rows["All groups", "Agreement by group", ""]
    assert len(lines) == len(found.tables["group_alignments"]) > 0
    for line, own in zip(lines, found.tables["group_alignments"], strict=True):
        row = dict(zip(header, line, strict=True))
        assert [row[name] for name in ("measure", "annotators", "group")] == [own.measure, own.annotators, own.group]
        for label, value in (("tau", own.effect_size), ("95%, low", own.ci_low), ("95%, high", own.ci_high)):
            assert row[label] == "–" if value is None else float(row[label]) == pytest.approx(value, abs=0.0051)
        assert (row["P@3 top"], row["pilot"]) == (two(own.top), "yes" if own.pilot else "no")


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
                f"{score:z.2f}{human}" for score, human in zip(profiles[group].scores, shown, strict=True)
            ]
        apart = (scores - means).ravel()
        assert len(shades) == apart.size
        for shade, beyond in zip(shades, apart, strict=True):
            assert abs(beyond) < 1e-12 or ("--plus" in shade) == (beyond > 0)
            assert float(shade.rpartition(" ")[2]) == pytest.approx(0.5 * abs(beyond) / abs(apart).max(), abs=0.0051)


def test_a_figure_of_every_group_has_what_people_and_the_model_say(found: Run, page: Page) -> None:
    pytest.importorskip("vl_convert")
    best = find_closest_measure(split_by_model(found)[0])
    assert best is not None
    rated = [p for p in best["profiles"] if not p.parts and p.human is not None]
    assert [d.where[1] for d in page.drawings] == [f"Groups and people, {NAMES[best.label]}"] * len(rated)
    assert rated
    own = {g.group: g for g in list_group_agreements(best)}
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


def test_the_figure_names_the_traits_by_which_every_group_stands_out(found: Run, page: Page) -> None:
    best, inputs = find_closest_measure(split_by_model(found)[0]), found.manifest.inputs
    assert best is not None
    profiles = {p.group: p for p in best["profiles"] if not p.parts}
    scores = np.array([profile.scores for profile in profiles.values()])
    apart = dict(zip(profiles, scores - scores.mean(axis=0), strict=True))
    strips = [strip for strip in page.strips if "rather than" in strip]
    by_strength = sorted(profiles, key=lambda group: -np.abs(apart[group]).max())
    domains = dict.fromkeys(profiles[group].domain for group in by_strength)
    order = [group for domain in domains for group in by_strength if profiles[group].domain == domain]
    assert len(strips) == 5 * len(order)
    for place, strip in enumerate(strips):
        group, rank = order[place // 5], place % 5
        pair = int(np.argsort(-np.abs(apart[group]))[rank])
        beyond, score = apart[group][pair], profiles[group].scores[pair]
        left, right = inputs.traits[inputs.pairs[pair]]
        trait, other = (right, left) if beyond > 0 else (left, right)
        assert strip.startswith(f"{group}: {trait} rather than {other}, {abs(beyond):.2f} above the mean of 6 groups\n")
        assert f"as measured {abs(score):.2f} towards {right if score > 0 else left}" in strip
        human = (profiles[group].human or {pair: None})[pair]
        assert (f"{human if beyond > 0 else 100 - human:.0f} of 100 towards {trait}" in strip) if human else True
    agreements = [strip for strip in page.strips if strip not in strips]
    assert len(agreements) == len(measures(found))  # of all people, one a measure


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
    made = place(human=people, measures="ilps", **asked)  # type: ignore[arg-type]
    text = (out / "report.html").read_text()
    page, shown = Page(text), printed(made, 250, everything=True)
    assert not {"b", "i", "u"} & set(page.tags)
    assert HOSTILE not in text
    rows = page.rows["All traits", "Profiles, ILPS", ""][-4:]
    assert [row[0] for row in rows[1:]] == ["Mean of all groups", HOSTILE, MARKUP]
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
