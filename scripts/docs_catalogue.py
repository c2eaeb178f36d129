"""Write the list of all tests into docs/catalogue.md."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from biassay.datasets.catalogue import load_catalogue
from biassay.datasets.schema import ROLES, Concept, Test, load_topics
from biassay.datasets.word_associations import WordAssociationTest, select_published
from docs_word_associations import escape_markdown

PAGE = Path(__file__).resolve().parents[1] / "docs" / "catalogue.md"
BEGIN, END = "<!-- tests: scripts/docs_catalogue.py -->\n", "<!-- end of tests -->\n"


def with_test_list(page: str) -> str:
    """Replace the list between the markers of the page."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n{_list_tests()}\n{END}{rest.partition(END)[2]}"


def _list_tests() -> str:
    tests = [test for test in load_catalogue().tests.values() if test.alias_of is None]
    by_topic = {topic: [test for test in tests if test.topic == topic] for topic in load_topics()}
    parts = [
        f"### {topic.capitalize()}\n\n{_make_table([_make_row(test, _show_words(test)) for test in rows])}"
        for topic, rows in by_topic.items()
        if rows
    ]
    rows = [_make_row(test, _show_sets(test.concepts.values())) for test in select_published()]
    parts.append(f"### For chat or instruct models\n\nRun these tests with `biassay ask`.\n\n{_make_table(rows)}")
    return "\n".join(parts)


def _make_table(rows: list[str]) -> str:
    return "\n".join(["| test | question | words | source |", "|---|---|---|---|", *rows, ""])


def _make_row(test: Test | WordAssociationTest, words: str) -> str:
    source = re.match(r".*?\b\d{4}\b", test.source.citation)
    citation = source[0] if source else test.source.citation
    return f"| `{test.name}` | {escape_markdown(test.title)} | {words} | {escape_markdown(citation)} |"


def _show_words(test: Test) -> str:
    if test.variant_of:
        return f"those of `{test.variant_of}`, in sentences"
    return _show_sets([test.concept(role) for role in ROLES])


def _show_sets(concepts: Iterable[Concept]) -> str:
    return escape_markdown("; ".join(map(_show_set, concepts)))


def _show_set(concept: Concept) -> str:
    words = [*concept.words[:2], *["…"][: len(concept.words) > 2]]
    return f"{', '.join(words)} ({len(concept.words)})"


if __name__ == "__main__":
    PAGE.write_text(with_test_list(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
