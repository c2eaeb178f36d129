"""The page and the tables of stereotypes: their numbers, and what they must not let through."""

from __future__ import annotations

import dataclasses
import io
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.studies.stereotypes.asked_models import GROUPS, Place
from tests.report.pages import Page

from biassay.results.stereotypes import MeasureRecord, Stereotypes
from biassay.studies.presenters import render_report, write_report
from biassay.studies.stereotypes.terminal import print_stereotypes
from biassay.studies.stereotypes.words import MEANING_OF_PROFILES, leading_traits, stereotypes_summary

pytestmark = pytest.mark.extras
HOSTILE = "<script>alert(1)</script>"
MARKUP = "[bold]x[/bold]"
NAMES = {"ilps": "ILPS", "ilps-star": "ILPS*", "set": "SeT"}


@pytest.fixture(scope="module")
def place(asked_place: Place) -> Place:
    return asked_place


@pytest.fixture(scope="module")
def found(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Stereotypes:
    cache = tmp_path_factory.mktemp("answers")
    return place(human=place.human, annotators=[("Gender", "Man")], intersections=True, cache=cache)


@pytest.fixture(scope="module")
def page(found: Stereotypes) -> Page:
    return Page(render_report(found))


def printed(stereotypes: Stereotypes, width: int = 250) -> str:
    out = io.StringIO()
    print_stereotypes(stereotypes, Console(file=out, width=width))
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


def changed(stereotypes: Stereotypes, **given: Any) -> Stereotypes:
    """With other values in all measures of the first model."""
    (result,) = stereotypes.results
    measures = tuple(dataclasses.replace(record, **given) for record in result.measures)
    return Stereotypes(stereotypes.manifest, (dataclasses.replace(result, measures=measures),))


def records(stereotypes: Stereotypes) -> list[tuple[str, str, MeasureRecord]]:
    return [(r.model, NAMES[record.measure], record) for r in stereotypes.results for record in r.measures]


def test_the_agreement_on_the_page_is_that_of_the_record(found: Stereotypes, page: Page) -> None:
    model = found.results[0].model
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
        own = [record.alignments[0].groups[place] for _, _, record in records(found)]
        numbers = [cell for g in own for cell in (two(g.tau), span(g.tau_interval), two(g.top), two(g.bottom))]
        assert row == [own[0].group + (" pilot" if own[0].pilot else ""), *numbers]
    assert [row[0] for row in rows] == ["north pilot", "south", "east", "baker pilot", "smith"]


def test_the_profiles_on_the_page_are_those_of_the_record(found: Stereotypes, page: Page) -> None:
    for model, name, record in records(found):
        header, *rows = page.rows[model, f"Profiles, {name}", ""]
        assert header == ["Group", *found.manifest.pairs]
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


def test_paired_groups_have_their_tables(found: Stereotypes, page: Page) -> None:
    (result,) = found.results
    for crossed in result.intersections:
        where = (result.model, f"Paired groups, {NAMES[crossed.measure]}")
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


def test_sentences_and_notes_stand_on_the_page_and_in_the_terminal(found: Stereotypes, page: Page) -> None:
    assert found.manifest.human_notes
    for shown in (page.text, " ".join(printed(found).split())):
        for sentence in (*stereotypes_summary(found), *found.manifest.human_notes, MEANING_OF_PROFILES):
            assert sentence in shown
    made = found.manifest
    for told in (made.created, made.abc_digest, made.citation, str(made.models[0].revision), str(made.human)):
        assert told in page.text


def strongest(found: Stereotypes, measure: str) -> str:
    """The five scores of single groups that are farthest from zero, in order."""
    (record,) = [m for m in found.results[0].measures if m.measure == measure]
    scores = {
        (profile.group, pair): score
        for profile in record.profiles
        if not profile.parts
        for pair, score in zip(found.manifest.pairs, profile.scores, strict=True)
        if score is not None and math.isfinite(score)
    }
    five = sorted(scores, key=lambda cell: abs(scores[cell]), reverse=True)[:5]
    return "; ".join(f"{group}: {pair} {scores[group, pair]:+.2f}" for group, pair in five)


def test_agreement_comes_first_and_then_what_is_tied_most_strongly(found: Stereotypes, place: Place) -> None:
    (result,) = found.results
    told = stereotypes_summary(found)
    taus = {m.measure: m.alignments[0].tau for m in result.measures}
    assert len(taus) == len(NAMES) > 1
    for sentence, tau in zip(told, taus.values(), strict=False):
        assert f"tau {tau:.2f}" in sentence
    best = max(taus, key=lambda measure: taus[measure] or 0.0)
    assert strongest(found, best) in told[len(taus)]
    plain = place()
    assert strongest(plain, next(iter(NAMES))) in stereotypes_summary(plain)[0]


@pytest.mark.parametrize(("tau", "best"), [(0.0, "set"), (-0.2, "set"), (-0.4, "ilps"), (None, "ilps")])
def test_the_measure_that_agrees_best_is_one_and_the_same_everywhere(
    tau: float | None, best: str, found: Stereotypes
) -> None:
    (result,) = found.results
    given = {"ilps": -0.3, "ilps-star": -0.5, "set": tau}
    measures = tuple(
        dataclasses.replace(m, alignments=(dataclasses.replace(m.alignments[0], tau=given[m.measure]),))
        for m in result.measures
    )
    other = Stereotypes(found.manifest, (dataclasses.replace(result, measures=measures),))
    assert strongest(other, best) in stereotypes_summary(other)[3]
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
    rows = page.rows[plain.results[0].model, "Profiles, ILPS", ""]
    assert rows[1][1:] == [f"{score:.2f}" for score in plain.results[0].measures[0].profiles[0].scores]


def test_the_page_opens_without_a_network(page: Page) -> None:
    assert page.data == {}
    assert "default-src 'none'" in page.policy
    assert not re.search(r"https?://|//\w+\.", page.source)


def test_the_way_through_the_page_names_its_sections(found: Stereotypes, page: Page) -> None:
    sections = ["In short", found.results[0].label, "About the human judgements", "How it was made"]
    assert page.headings() == sections
    assert page.links == ["To the results", *sections]


def test_a_figure_of_every_group_has_what_people_and_the_model_say(found: Stereotypes, page: Page) -> None:
    pytest.importorskip("vl_convert")
    (result,) = found.results
    best = max(result.measures, key=lambda record: record.alignments[0].tau or -1.0)
    rated = [p for p in best.profiles if not p.parts and p.human is not None]
    assert [d.where[1] for d in page.drawings] == [f"Groups beside people, {NAMES[best.measure]}"] * len(rated)
    assert rated
    taus = {g.group: g.tau for g in best.alignments[0].groups}
    for drawing, profile in zip(page.drawings, rated, strict=True):
        assert drawing.text.endswith(profile.group)
        assert drawing.caption == f"tau {two(taus[profile.group])}"
        told, sides = [], []
        for pair, score, human in zip(found.manifest.pairs, profile.scores, profile.human or (), strict=True):
            told += [f"{pair}: people {human:.0f} of 100"] if human is not None else []
            told += [f"{pair}: model {score:+.3g}"] if score is not None else []
            if None not in (human, score):
                sides.append((human - 50) * score > 0)
        assert drawing.tips == told
        assert drawing.label.endswith(f"same side in {sum(sides)} of {len(sides)} pairs")


def test_without_the_library_that_draws_the_page_says_how_to_get_figures(
    found: Stereotypes, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("report.section", "studies.stereotypes.page"):
        monkeypatch.setattr(f"biassay.{module}.can_draw", lambda: False)
    without = Page(render_report(found))
    assert "svg" not in without.tags
    assert without.text.count('pip install "biassay[figures]"') == 1
    assert without.rows == page.rows


def test_what_is_not_defined_is_a_dash(found: Stereotypes) -> None:
    numbers = {field.name: None for field in dataclasses.fields(found.results[0].measures[0].alignments[0])}
    kept = {"annotators": "all", "num_annotators": None, "num_groups": 0, "num_cells": 0, "groups": ()}
    record = found.results[0].measures[0]
    alignment = dataclasses.replace(record.alignments[0], **(numbers | kept))
    profile = dataclasses.replace(record.profiles[0], scores=(None,) * 17)
    empty = changed(found, alignments=(alignment,), profiles=(profile,))
    page, shown = Page(render_report(empty)), printed(empty)
    model = found.results[0].model
    cells = ["ILPS", "all", *["–"] * 7, "0, 0", *["–"] * 4, as_sentences(found, record)]
    assert page.rows[model, "Agreement with people", ""][1] == cells
    assert page.rows[model, "Profiles, ILPS", ""][1] == [profile.group, *["–"] * 17]
    assert not {"nan", "None"} & set(re.findall(r"\w+", page.text + shown))


def as_sentences(found: Stereotypes, record: MeasureRecord) -> str:
    """The templates chosen, with their slots in brackets."""
    texts = (found.manifest.templates[name] for name in record.chosen)
    return " and ".join('"' + re.sub(r"\{([^}]*)\}", r"[\1]", text) + '"' for text in texts)


def test_the_measure_that_agrees_best_is_printed(found: Stereotypes) -> None:
    taus = {name: record.alignments[0].tau for _, name, record in records(found)}
    best = max(taus, key=lambda name: taus[name] or -1.0)
    titles = re.findall(r"^hf:.*: (\S+), \".*\"$", printed(found), flags=re.MULTILINE)
    assert titles == [best]


def test_leading_traits_are_the_highest_and_the_lowest(found: Stereotypes) -> None:
    profile = dataclasses.replace(found.results[0].measures[0].profiles[0], scores=(0.1, None, -2.0, 3.0, 0.5))
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
    rows = page.rows[made.results[0].model, "Profiles, ILPS", ""]
    assert [row[0] for row in rows] == ["Group", HOSTILE, MARKUP]
    assert rows[0][-1] == "<i>-[i]x"
    firsts = {line.strip("│").split("│")[0].strip() for line in shown.splitlines() if line.startswith("│")}
    assert {HOSTILE, MARKUP} <= firsts
    for told in ("groups without a match here: </p>[/]", '"All [group] are so [trait] <b>[/]."'):
        assert told in page.text
        assert told in " ".join(shown.split())
    assert str(people) in page.text


@pytest.mark.parametrize("name", ["\x1b[2Jgone", "a\x9bb"])
def test_a_name_cannot_steer_the_terminal(found: Stereotypes, name: str) -> None:
    record = found.results[0].measures[0]
    profile = dataclasses.replace(record.profiles[0], group=name)
    manifest = dataclasses.replace(found.manifest, human_notes=(name,))
    shown = printed(Stereotypes(manifest, changed(found, profiles=(profile,)).results))
    assert name not in shown


def test_one_model_with_two_settings_is_told_apart(place: Place) -> None:
    twice = place([place.model, f"{place.model}?dtype=bfloat16"], measures="ilps")
    assert twice.results[0].options != twice.results[1].options
    assert len(Page(render_report(twice)).rows) == 2


def test_write_report_puts_one_file_into_the_folder(found: Stereotypes, tmp_path: Path) -> None:
    path = write_report(found, tmp_path)
    assert [path] == list(tmp_path.iterdir())
    assert path.read_text(encoding="utf-8") == render_report(found)
