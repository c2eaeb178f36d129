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
from biassay.studies.stereotypes.results import find_closest_measure

from .asked_models import Place, measures

pytestmark = pytest.mark.extras
HOSTILE = "<script>alert(1)</script>"
MARKUP = "[bold]x[/bold]"


@pytest.fixture(scope="module")
def found(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Run:
    cache = tmp_path_factory.mktemp("answers")
    return place(human=place.human, annotators=[("Gender", "Man")], intersections=True, cache=cache)


@pytest.fixture(scope="module")
def page(found: Run) -> Page:
    return Page(render_report(found))


def changed(run: Run, table: str, change: Callable[[Any], dict[str, Any]]) -> Run:
    """With other values in all rows of a table."""
    rows = tuple(dataclasses.replace(row, **change(row)) for row in run.tables[table])
    return dataclasses.replace(run, tables={**run.tables, table: rows})


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
