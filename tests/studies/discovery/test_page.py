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
from biassay.runs.reports import print_run, render_report
from biassay.runs.run import Run
from biassay.studies.discovery.results import DUAL_USE, list_group_views

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
