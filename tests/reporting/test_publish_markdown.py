"""Pipe tables: round trip through a Markdown parser."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from tests.studies.associations.publish_runs import (
    NASTY,
    SCRIPT,
    changed,
    measured_in_words,
    on_models,
)

from biassay.reporting.document import Table
from biassay.reporting.formats import clean_line
from biassay.reporting.markdown import escape, to_markdown
from biassay.runs.run import Run
from biassay.studies.associations.report import associations_table

PARSER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
TAGS = {"table", "thead", "tbody", "tr", "th", "td", "p", "em", "strong"}


class Read(HTMLParser):
    """Cells and paragraphs of the rendered table."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.rows: list[list[str]] = []
        self.paragraphs: list[str] = []
        self.tags: set[str] = set()
        self.inside = ""
        self.feed(PARSER.render(text))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
            self.inside = "cell"
        elif tag == "p":
            self.paragraphs.append("")
            self.inside = "p"

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th", "p"):
            self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside == "cell":
            self.rows[-1][-1] += data
        elif self.inside == "p":
            self.paragraphs[-1] += data


def content(table: Table) -> list[list[str]]:
    """The rows that must come out."""
    header = [*table.stub]
    header += [f"{s.title}: {c}" if c else s.title for s in table.models for c in s.columns]
    rows = [header]
    for group in table.groups:
        rows += [[group.title] + [""] * (len(header) - 1)] if group.title else []
        rows += [[*row.stub, *(cell.text + cell.mark for cell in row.cells)] for row in group.rows]
    return rows


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return measured_in_words(tmp_path_factory.mktemp("vectors"))


def assert_read_back(table: Table) -> Read:
    read = Read(to_markdown(table))
    assert read.rows == content(table)
    assert read.tags <= TAGS
    assert read.paragraphs[0].startswith(table.caption)
    assert read.paragraphs[1:] == list(table.notes)
    return read


def test_cells_read_back_are_those_of_the_table(run: Run) -> None:
    read = assert_read_back(associations_table(run))
    numbers = {row[0].split(": ")[0]: row[1:] for row in read.rows}
    for r in run.results:
        size = r.effect_size
        assert numbers[r.test][0] == ("–" if size is None else f"{size:.2f}")


def test_hostile_and_long_names_are_read_back(run: Run) -> None:
    assert_read_back(associations_table(on_models(run, NASTY)))
    for field in ("test", "title", "options"):
        for nasty in (*NASTY, SCRIPT):
            assert_read_back(associations_table(changed(run, **{field: nasty})))


@given(st.text(max_size=40))
def test_any_text_is_read_back_from_a_cell_and_from_a_paragraph(text: str) -> None:
    read = Read(f"| x | {escape(text)} |\n|---|---|\n\n{escape('a ' + text)}\n")
    assert read.rows == [["x", clean_line(text)]]
    assert read.paragraphs == [clean_line("a " + text)]


@given(st.text(alphabet="\\|`*_[]<>&;#~!$-+1. ", max_size=20))
def test_any_markup_is_read_back_from_a_paragraph_of_its_own(text: str) -> None:
    expected = [clean_line(text)] if clean_line(text) else []
    if set(clean_line(text)) <= set("-*_ =+"):
        return  # a rule or an empty item: no caption, note or finding is made of these alone
    assert Read(escape(text)).paragraphs == expected


def test_addresses_do_not_become_links() -> None:
    linking = MarkdownIt("gfm-like", {"linkify": False}).enable("table")
    assert "://" not in escape("see https://example.org")
    assert "www." not in escape("www.example.org")
    assert "<a" not in linking.render(escape("[x](https://example.org) <https://example.org>"))
