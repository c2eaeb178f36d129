"""Write the catalogue pages of the word association tests for chat and instruct models."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from biassay.datasets.schema import load_topics
from biassay.datasets.word_associations import WordAssociationTest, select_published, select_wordings
from biassay.studies.word_association.prompts import make_association_prompts
from docs_criticism import format_remarks, load_criticism

__all__ = ["escape_markdown", "make_word_association_list", "make_word_association_pages"]

_ROLES = {
    "default": "group words, the default",
    "stigmatised": "group words, the stigmatised",
    "positive": "attribute words, positive or of the default",
    "negative": "attribute words, negative or of the stigmatised",
}


def escape_markdown(text: str) -> str:
    """Escape plain text for Markdown."""
    return re.sub(r"([\\`*_{}\[\]<>|$~#])", r"\\\1", text)


def make_word_association_pages() -> dict[str, str]:
    """Return the page of every test by its name under docs/generated."""
    return {f"catalogue/{test.name}.md": _make_page(test) for test in select_published()}


def make_word_association_list() -> str:
    """Return the section of the index that lists the tests."""
    items = "".join(
        f"- [{escape_markdown(test.title)}](<{test.name}.md>) (`{test.name}`, {test.topic}"
        f"{', descriptive' if test.is_descriptive() else ''})\n"
        for test in select_published()
    )
    note = (
        "These tests need no vectors: [word associations](../../word-associations.md). Descriptive tests have too few "
        "pairs of group words for a p-value of .05; `biassay ask` runs them only if you name them."
    )
    return f"## For chat or instruct models\n\n{note}\n\n{items}"


def _make_page(test: WordAssociationTest) -> str:
    words = "\n".join(
        f"- **{escape_markdown(concept.label)}** ({_ROLES[role]}): {escape_markdown(', '.join(concept.words))}"
        for role, concept in test.concepts.items()
    )
    source = test.source
    facts = {
        "topic": f"{test.topic}: {load_topics()[test.topic]}",
        "kind": "social-bias test" if test.about == "people" else "sanity check",
        "models": "chat or instruct models",
        "published as": escape_markdown(test.published_as),
        "pairs of group words": escape_markdown("; ".join(" or ".join(pair) for pair in test.pairs)),
        "source": f"{escape_markdown(source.citation)} [doi:{source.doi}](https://doi.org/{source.doi})",
        "note": escape_markdown(source.note),
        "licence": escape_markdown(source.licence),
        "version": source.version,
    }
    rows = "".join(f"| {name} | {value} |\n" for name, value in facts.items() if value)
    (prompt, *_) = make_association_prompts(test, 2, wordings=select_wordings("bai2025"))
    remarks = [remark for remark in load_criticism()["asked"] if _fits(remark, test)]
    sections = {
        "Words": words,
        "Example": f"One of the prompts, in the published wording:\n\n```text\n{prompt.text}\n```",
        "What it can show": _describe_scope(test),
        "Known criticism": format_remarks(remarks),
        "Run it": f"```text\nbiassay ask MODEL --tests {test.name}\n```",
    }
    parts = [f"# {escape_markdown(test.title)}\n", f"| test | `{test.name}` |\n|---|---|\n{rows}"]
    return "\n".join([*parts, *(f"## {head}\n\n{content}\n" for head, content in sections.items())])


def _describe_scope(test: WordAssociationTest) -> str:
    method = "[p-values and intervals](../../word-associations.md#p-values-and-intervals)"
    n = len(test.pairs)
    if n == 1:
        return (
            f"The test has one pair of group words. The p-value generalizes to other words and responses with this "
            f"pair, not to other words for these groups: {method}."
        )
    floor = test.smallest_p_value
    if test.is_descriptive():
        return (
            f"The test is descriptive: with {n} pairs of group words, no p-value over pairs can be below {floor:g}, so "
            f"the test cannot be significant at .05 for other group words. `biassay ask` does not run it by default. "
            f"`fixed_groups_p_value` tests these group words only: {method}."
        )
    return (
        f"The p-value generalizes to other words and other pairs of group words. With {n} pairs it cannot be below "
        f"{floor:.1g}: {method}."
    )


def _fits(remark: Mapping[str, Any], test: WordAssociationTest) -> bool:
    checks = {
        "tests": lambda patterns: any(fnmatchcase(test.name, pattern) for pattern in patterns),
        "topics": lambda topics: test.topic in topics,
        "labels": lambda labels: {concept.label for concept in test.concepts.values()} >= set(labels),
        "pairs": lambda n: len(test.pairs) == n,
    }
    return all(checks[condition](remark[condition]) for condition in checks.keys() & remark.keys())
