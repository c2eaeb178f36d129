"""The page and the tables of a discovery: their numbers, their figures, and what they must not let through."""

from __future__ import annotations

import dataclasses
import io
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from tests.reporting.pages import Page

import biassay
from biassay.results.outcomes import Outcome
from biassay.results.views import RunGroup
from biassay.runs.reports import render_report
from biassay.runs.run import Run
from biassay.studies.discovery.report import MEANING, RULES, DiscoveryPresenter, curve_of, notes_of
from biassay.studies.discovery.results import DUAL_USE, GroupView, group_of, groups_of

from .planted_words import with_counts

HOSTILE = "<script>alert(1)</script>"
MARKUP = "[bold]x[/bold]"
FEMALES, MALES = "african-american-females", "european-american-males"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Two groups in the embedded vectors. With so few permutations half of the words reported may be chance.

    No excess is significant; that of every other word of EIBD is made so here.
    """
    cache = tmp_path_factory.mktemp("vectors")
    made = biassay.discover("glove", [FEMALES, MALES], n_permutations=499, alpha=0.5, keep=150, cache=cache)
    words = [dataclasses.replace(w, emergent=w.eibd and i % 2 == 0) for i, w in enumerate(made.results)]
    counts = {group: sum(w.emergent for w in words if w.group == group) for group in (FEMALES, MALES)}
    groups = [with_counts(row, emergent=counts[row.group]) for row in made.tables["groups"]]
    return with_tables(made, results=words, groups=groups)


def with_tables(run: Run, **tables: Iterable[Any]) -> Run:
    return dataclasses.replace(run, tables={**run.tables, **{name: tuple(rows) for name, rows in tables.items()}})


@pytest.fixture(scope="module")
def page(found: Run) -> Page:
    return Page(render_report(found))


def printed(discovery: Run, width: int = 200, **given: Any) -> str:
    out = io.StringIO()
    DiscoveryPresenter().print(RunGroup(discovery, {}), Console(file=out, width=width), **given)
    return out.getvalue()


def cells(line: str) -> list[str]:
    return re.split(r" {2,}", line.strip())


def with_lost(run: Run, **given: Any) -> Run:
    return with_tables(run, models=[dataclasses.replace(run.tables["models"][0], **given)])


def with_one_word(run: Run, **given: Any) -> Run:
    """The first group, and of its words the first."""
    word = dataclasses.replace(run.results[0], associated=True, **given)
    return with_tables(run[FEMALES], results=[word])


def curves(findings: GroupView) -> list[tuple[str, Any]]:
    return [(RULES[row.task], curve_of(findings, row)) for row in findings.curves]


def test_the_words_on_the_page_are_those_of_the_record(found: Run, page: Page) -> None:
    for findings in groups_of(found):
        for heading, kind in (("Associated words", "associated"), ("Emergent words", "emergent")):
            words = [word for word in findings.words if getattr(word, kind)]
            header, *rows = page.table(findings.row.title, heading)
            assert header == ["word", "score", "against", "p", "q", "categories", "EIBD", "q excess"]
            shown = min(100, len(words))
            assert len(rows) == 2 * shown + 1 > 1  # then the header of their scores against every group
            for row, word in zip(rows[:shown], words, strict=False):
                numbers = (word.effect_size, max(word.constituents.values()))
                assert [row[0], row[1], row[5]] == [word.word, *(f"{number:z.2f}" for number in numbers)]
                p_values = (word.p_value, word.p_adjusted, word.excess_p_adjusted)
                assert [float(row[i]) for i in (3, 4, 7)] == pytest.approx(p_values, rel=0.1, abs=6e-4)
                most = max(word.scores, key=word.scores.__getitem__)
                assert (row[2], row[6]) == (found.manifest.inputs.labels[most], "yes" if word.eibd else "no")
            for row, word in zip(rows[shown + 1 :], words, strict=False):
                scores = (*word.scores.values(), *word.constituents.values())
                assert row == [word.word, *(f"{score:z.2f}" for score in scores)]
    assert max(len(rows) for rows in page.rows.values()) == 202  # twice a hundred words and the header


def test_the_figure_shows_the_leading_words_of_every_group_and_which_are_emergent(found: Run, page: Page) -> None:
    leading = [word for view in groups_of(found) for word in [w for w in view.words if w.associated][:15]]
    assert [word.emergent for word in leading].count(True) > 0
    assert len(page.strips) == len(leading)
    for strip, word in zip(page.strips, leading, strict=True):
        most = found.manifest.inputs.labels[max(word.scores, key=word.scores.__getitem__)]
        assert strip.startswith(f"{word.word}: score {word.effect_size:.2f} against {most}, ")
        assert ("emergent" in strip) is word.emergent
    bars = [style for tag, name, style in page.attributes if (tag, name) == ("span", "style")]
    largest = max(word.effect_size or 0.0 for word in leading)
    widths = [float(style.removeprefix("width: ").removesuffix("%")) for style in bars]
    assert widths == pytest.approx([100 * (word.effect_size or 0.0) / largest for word in leading], abs=0.051)
    assert page.text.count("◆") == 1 + sum(word.emergent for word in leading)  # one explains it


def test_a_sentence_a_group_counts_its_words(found: Run, page: Page) -> None:
    for row in found.tables["groups"]:
        (said,) = [item for item in page.items if f"with the names of {row.title}" in item]
        assert said.startswith(f"{row.n_associated:,} of {row.n_words:,} words ")
        assert f"{row.n_every or 'none'} of them more than with those of every other group" in said
        assert f"{row.n_emergent} of them emergent" in said


def test_the_validation_on_the_page_is_that_of_the_counts(found: Run, page: Page) -> None:
    for findings in groups_of(found):
        (_, *rules), *rows = page.table(findings.row.title, "Words with known truth")
        shown = {rule: [row[place] for row in rows[:8]] for place, rule in enumerate(rules, start=1)}
        for name, curve in curves(findings):
            at = curve.thresholds.index(curve.chosen)
            tp, fp, fn, tn = (int(counts[at]) for counts in (curve.tp, curve.fp, curve.fn, curve.tn))
            everything = tp + fp + fn + tn
            shares = [(tp + tn), (fp + tn), (tp / (tp + fp) * everything), (tp / (tp + fn) * everything), (tp + fn)]
            assert everything == len(findings.validated)
            percents = [f"{100 * share / everything:.1f}%" for share in shares]
            detected = f"{tp} of {tp + fn}, and {fp} others"
            assert shown[name] == [f"{curve.outcome.effect_size:.2f}", f"{curve.chosen:.2f}", detected, *percents]
        marked, scored = rows[9 : 9 + everything], rows[10 + everything :]
        for word, marks, scores in zip(findings.validated, marked, scored, strict=True):
            is_so = (word.of_group, word.emergent_of_group, word.detected, word.detected_emergent)
            assert marks == [word.word, *("yes" if mark else "no" for mark in is_so)]
            numbers = (*word.scores.values(), *word.constituents.values())
            assert scores == [word.word, *(f"{score:z.2f}" for score in numbers)]


@pytest.mark.extras
def test_the_points_of_a_figure_are_the_rates_of_the_counts(found: Run, page: Page) -> None:
    pytest.importorskip("vl_convert")
    assert [drawing.where[:2] for drawing in page.drawings] == [
        (findings.row.title, "Words with known truth") for findings in groups_of(found)
    ]
    for drawing, findings in zip(page.drawings, groups_of(found), strict=True):
        tips = []
        for name, curve in curves(findings):
            counts = zip(curve.thresholds, curve.tp, curve.fp, curve.fn, curve.tn, strict=True)
            tips += [
                f"{name}, threshold {at:g}: true positive rate {tp / (tp + fn):.2f}, "
                f"false positive rate {fp / (fp + tn):.2f}"
                for at, tp, fp, fn, tn in counts
            ]
            assert f"{name} has an area under the curve of {curve.outcome.effect_size:.2f}" in drawing.label
        tips += [f"{name}: the threshold in use, {curve.chosen:g}" for name, curve in curves(findings)]
        assert drawing.tips == tips
        assert len(tips) == 162  # two curves of 80 thresholds, and two rings
        places = [tuple(map(float, given["transform"][10:-1].split(","))) for _, given in drawing.marks]
        for (_, curve), ring in zip(curves(findings), places[-2:], strict=True):
            assert ring == pytest.approx((260 * curve.false_positive_rate, 260 * (1 - curve.recall)))
        assert drawing.label.startswith(f"{findings.row.title}: ")


def test_without_the_library_that_draws_the_page_says_how_to_get_figures(
    found: Run, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("biassay.reporting.document.can_draw", lambda: False)
    without = Page(render_report(found))
    assert without.drawings == []
    assert without.text.count('pip install "biassay[figures]"') == len(groups_of(found))
    assert without.rows == page.rows


def test_the_note_and_what_was_lost_stand_on_the_page_and_in_the_terminal(found: Run, page: Page) -> None:
    (lost,) = found.tables["models"]
    for shown in (page.text, " ".join(printed(found).split())):
        for said in (DUAL_USE, MEANING, *map(", ".join, (*lost.names_lost.values(), lost.validation_lost))):
            assert said in shown


def notes(run: Run) -> list[str]:
    return notes_of(run, groups_of(run))


def test_notes_are_about_what_was_lost_and_what_rests_on_little(found: Run) -> None:
    one = with_tables(found[FEMALES], curves=[])
    (lost,), settings = one.tables["models"], dataclasses.replace(one.manifest.settings, n_permutations=999_999)
    nothing = {"names_lost": dict.fromkeys(lost.names_lost, ()), "validation_lost": ()}
    sound = dataclasses.replace(
        with_lost(one, **nothing), manifest=dataclasses.replace(one.manifest, settings=settings)
    )
    assert notes(sound) == []
    curves = [row for row in found[FEMALES].tables["curves"] if row.task == "ibd"]
    for area, rated, count in ((0.9, True, 0), (0.55, True, 1), (0.9, False, 1)):
        validated = [dataclasses.replace(row, of_group=row.of_group and rated) for row in one.tables["validated"]]
        rows = [dataclasses.replace(row, outcome=Outcome(effect_size=area)) for row in curves]
        assert len(notes(with_tables(sound, curves=rows, validated=validated))) == count
    many = [with_counts(row, associated=row.n_words // 5) for row in sound.tables["groups"]]
    assert [note.count("20%") for note in notes(with_tables(sound, groups=many))] == [1]
    (note,) = notes(with_lost(sound, words_lost=tuple(f"w{i}." for i in range(45)), vocabulary="my.txt"))
    assert [f"w{i}." in note for i in (0, 39, 40)] == [True, True, False]
    assert note.startswith("45 ")


def test_a_lost_word_cannot_steer_the_terminal(found: Run) -> None:
    assert "\x1b" not in printed(with_lost(found, words_lost=("\x1b[2Jgone",)))


def test_what_was_not_computed_is_a_dash(found: Run) -> None:
    word = found.results[0]
    numbers = dict.fromkeys(("effect_size", "p_value", "p_adjusted", "excess_p_value", "excess_p_adjusted"))
    numbers |= {"scores": dict.fromkeys(word.scores), "constituents": dict.fromkeys(word.constituents)}
    without = with_one_word(found, word="odd", **numbers, eibd=False, emergent=False)
    label = group_of(found, FEMALES).row.title
    row = Page(render_report(without)).table(label, "Associated words")[1]
    assert row == ["odd", "–", "", "–", "–", "–", "no", "–"]
    (row,) = [cells(line) for line in printed(without).splitlines() if line.startswith("odd ")]
    assert row == ["odd", "–", "–", "–", "–", "no", "–"]
    curves = [dataclasses.replace(row, precision=None) for row in found.tables["curves"]]
    assert "nan" not in printed(with_tables(found, curves=curves)).split()


def test_hostile_words_and_labels_go_through_as_text(tmp_path: Path) -> None:
    """From a file of vectors and of groups to the page and the terminal."""
    rng, axes = np.random.default_rng(2), np.eye(12)
    table, parts = {}, ['[grouping]\ntitle = "<i>title</i>"\n']
    for place, (one, two) in enumerate([("<b>", "[red]"), ("<b>", "z"), ("y", "[red]"), ("y", "z")]):
        names = [f"name{place}{i}" for i in range(6)]
        table |= {name: axes[place] + rng.normal(0, 0.1, 12) for name in names}
        belongs = f"belongs = {{ p = {json.dumps(one)}, q = {json.dumps(two)} }}"
        label = json.dumps(HOSTILE if place == 0 else f"{MARKUP}{place}")
        parts.append(f"[groups.g{place}]\n{belongs}\nlabel = {label}\nnames = {json.dumps(names)}\nbiases = ['w0']\n")
    words = [HOSTILE, MARKUP, "w0", "[/]", "&amp;", "a\"b'c", "[link=x]y"]
    table |= {word: axes[0] + rng.normal(0, 0.05, 12) for word in words}
    table |= {f"w{i}": rng.normal(size=12) for i in range(1, 9)}
    lines = (f"{word} " + " ".join(f"{x:.5f}" for x in vector) for word, vector in table.items())
    (tmp_path / "v.txt").write_text("\n".join(lines) + "\n")
    (tmp_path / "g.toml").write_text("\n".join(parts))
    out = tmp_path / "out"
    made = biassay.discover(
        *(f"vectors:{tmp_path / 'v.txt'}", "g0"), grouping=tmp_path / "g.toml", n_permutations=999, alpha=0.2, out=out
    )
    assert {word.word for word in made.results if word.associated} >= set(words)
    text = (out / "report.html").read_text()
    page = Page(text)
    assert not {"b", "i"} & set(page.tags)
    assert HOSTILE not in text
    assert {row[0] for row in page.table(HOSTILE, "Associated words")} >= set(words)
    shown = printed(made, width=300)
    first = [cells(line)[0] for line in shown.splitlines()]
    assert set(first) >= set(words)
    assert f"{MARKUP}1" in shown


@pytest.mark.parametrize("word", [":smile:", "back\\", "[red]x"])
def test_words_in_the_terminal_are_as_they_are(word: str, found: Run) -> None:
    assert f"\n{word} " in printed(with_one_word(found, word=word))


@pytest.mark.parametrize("word", ["\x1b[2Jgone", "a\x9bb", "\u202eabc", "x\ty"])
def test_a_word_cannot_steer_the_terminal(word: str, found: Run) -> None:
    shown = printed(with_one_word(found, word=word))
    assert word not in shown
    assert re.sub(r"[\x1b\x9b\u202e\t]", "\ufffd", word) in shown
