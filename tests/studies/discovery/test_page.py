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
from tests.studies.showing import write_all

import biassay
from biassay.reporting.charts.roc import RocCurve
from biassay.runs.reports import print_run, render_report
from biassay.runs.run import Run
from biassay.studies.discovery.report import RULES, make_curve
from biassay.studies.discovery.results import DUAL_USE, GroupView, list_group_views

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
    print_run(discovery, Console(file=out, width=width), **given)
    return out.getvalue()


def cells(line: str) -> list[str]:
    return re.split(r" {2,}", line.strip())


def with_one_word(run: Run, **given: Any) -> Run:
    """The first group, and of its words the first."""
    word = dataclasses.replace(run.results[0], associated=True, **given)
    return with_tables(run[FEMALES], results=[word])


def curves(findings: GroupView) -> list[tuple[str, RocCurve]]:
    return [(RULES[row.task], make_curve(findings, row)) for row in findings.curves]


def test_the_words_on_the_page_are_those_of_the_record(found: Run, page: Page) -> None:
    for findings in list_group_views(found):
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
                most = max(word.scores, key=word.scores.__getitem__)  # type: ignore[arg-type]
                assert (row[2], row[6]) == (found.manifest.inputs.labels[most], "yes" if word.eibd else "no")
            for row, word in zip(rows[shown + 1 :], words, strict=False):
                scores = (*word.scores.values(), *word.constituents.values())
                assert row == [word.word, *(f"{score:z.2f}" for score in scores)]
    assert max(len(rows) for rows in page.rows.values()) == 202  # twice a hundred words and the header


def test_the_figure_shows_the_leading_words_of_every_group_and_which_are_emergent(found: Run, page: Page) -> None:
    leading = [word for view in list_group_views(found) for word in [w for w in view.words if w.associated][:15]]
    assert [word.emergent for word in leading].count(True) > 0
    for strip, word in zip(page.strips, leading, strict=True):
        most = found.manifest.inputs.labels[max(word.scores, key=word.scores.__getitem__)]  # type: ignore[arg-type]
        assert strip.startswith(f"{word.word}: score {word.effect_size:.2f} against {most}, ")
        assert ("emergent" in strip) is word.emergent
    bars = [style for tag, name, style in page.attributes if (tag, name) == ("span", "style")]
    largest = max(word.effect_size or 0.0 for word in leading)
    widths = [float(style.removeprefix("width: ").removesuffix("%")) for style in bars]
    assert widths == pytest.approx([100 * (word.effect_size or 0.0) / largest for word in leading], abs=0.051)
    assert page.text.count("◆") == 1 + sum(word.emergent for word in leading)  # one explains it


def test_detection_of_rated_words_comes_first_with_its_counts(found: Run, page: Page) -> None:
    assert page.headings()[1:3] == ["Findings", "Detection of rated words"]
    for findings in list_group_views(found):
        _, *rows = page.table("Detection of rated words", findings.row.title)
        shown = {row[0]: row[1:] for row in rows}
        for name, curve in curves(findings):
            at = curve.thresholds.index(curve.chosen)
            tp, fp, fn, tn = (int(counts[at]) for counts in (curve.tp, curve.fp, curve.fn, curve.tn))
            everything = tp + fp + fn + tn
            shares = [(tp + tn), (fp + tn), (tp / (tp + fp) * everything), (tp / (tp + fn) * everything), (tp + fn)]
            assert everything == len(findings.validated)
            percents = [f"{100 * share / everything:.1f}%" for share in shares]
            detected = f"{tp} of {tp + fn}, and {fp} others"
            assert shown[name] == [f"{curve.area:.2f}", f"{curve.chosen:.2f}", detected, *percents]
        _, *rows = page.table(findings.row.title, "Rated words")
        marked, scored = rows[:everything], rows[1 + everything :]
        for word, marks, scores in zip(findings.validated, marked, scored, strict=True):
            is_so = (word.of_group, word.emergent_of_group, word.detected, word.detected_emergent)
            assert marks == [word.word, *("yes" if mark else "no" for mark in is_so)]
            numbers = (*word.scores.values(), *word.constituents.values())
            small = {score for score in numbers if score is not None and 1e-9 < abs(score) < 0.005}
            shown_scores = (f"{score:.2g}" if score in small else f"{score:z.2f}" for score in numbers)
            assert scores == [word.word, *shown_scores]


def test_published_files_have_a_table_of_words(found: Run, tmp_path: Path) -> None:
    write_all(tmp_path, {"run": found})
    for view in list_group_views(found):
        title, *lines = (tmp_path / f"words-{view.row.group}.md").read_text().splitlines()
        rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("|")][2:]
        words = [word for word in view.words if word.associated][:25]
        assert DUAL_USE in title
        assert [row[0] for row in rows] == [word.word + " †" * word.emergent for word in words]
        assert [float(row[2]) for row in rows] == pytest.approx([word.effect_size for word in words], abs=0.0051)


def test_hostile_words_and_labels_go_through_as_text(tmp_path: Path) -> None:
    """From a file of vectors and of groups to the page and the terminal."""
    rng, axes = np.random.default_rng(2), np.eye(12)
    table: dict[str, Any] = {}
    parts = ['[grouping]\ntitle = "<i>title</i>"\n']
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
    shown = printed(made, width=300, max_lines=None)
    first = [cells(line)[0] for line in shown.splitlines()]
    assert set(first) >= set(words)
    assert f"{MARKUP}1" in shown


@pytest.mark.parametrize("word", ["\x1b[2Jgone", "a\x9bb", "\u202eabc", "x\ty"])
def test_a_word_cannot_steer_the_terminal(word: str, found: Run) -> None:
    shown = printed(with_one_word(found, word=word))
    assert word not in shown
    assert re.sub(r"[\x1b\x9b\u202e\t]", "\ufffd", word) in shown
    lost = dataclasses.replace(found.tables["models"][0], oov_words=(word,))
    assert word not in printed(with_tables(found, models=[lost]))
