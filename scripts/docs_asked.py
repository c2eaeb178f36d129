"""Pages of the catalogue for tests that models answer, one for each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from biassay.datasets.schema import load_topics
from biassay.datasets.word_associations import WordAssociationTest, select_published, select_wordings
from biassay.studies.word_association.prompts import make_association_prompts
from docs_criticism import as_list, known_criticism

__all__ = ["asked_pages", "asked_section", "escaped"]

_ROLES = {
    "default": "group words, the default",
    "stigmatised": "group words, the stigmatised",
    "positive": "attribute words, positive or of the default",
    "negative": "attribute words, negative or of the stigmatised",
}


def escaped(text: str) -> str:
    """Plain text as Markdown."""
    return re.sub(r"([\\`*_{}\[\]<>|$~#])", r"\\\1", text)


def asked_pages() -> dict[str, str]:
    """By its name under docs/generated, the page of every test."""
    return {f"catalogue/{test.name}.md": _page(test) for test in select_published()}


def asked_section() -> str:
    """A list of them for the index."""
    tests = select_published()
    listed = "".join(
        f"- [{escaped(test.title)}](<{test.name}.md>) (`{test.name}`, {test.topic}"
        f"{', descriptive' if test.is_descriptive() else ''})\n"
        for test in tests
    )
    head = "## For chat or instruct models"
    note = (
        "They need no vectors: [word associations](../../word-associations.md). Descriptive tests have too few pairs "
        "of group words for a p-value of .05, and `biassay ask` runs them only if you name them."
    )
    return f"{head}\n\n{note}\n\n{listed}"


def _page(test: WordAssociationTest) -> str:
    words = "\n".join(
        f"- **{escaped(concept.label)}** ({_ROLES[role]}): {escaped(', '.join(concept.words))}"
        for role, concept in test.concepts.items()
    )
    source = test.source
    facts = {
        "topic": f"{test.topic}: {load_topics()[test.topic]}",
        "about": "people" if test.about == "people" else "no people: it checks that the method works on a model",
        "asked of": "chat or instruct models",
        "published as": escaped(test.published_as),
        "pairs of group words": escaped("; ".join(" or ".join(pair) for pair in test.pairs)),
        "source": f"{escaped(source.citation)} [doi:{source.doi}](https://doi.org/{source.doi})",
        "note": escaped(source.note),
        "licence": escaped(source.licence),
        "version": source.version,
    }
    rows = "".join(f"| {name} | {value} |\n" for name, value in facts.items() if value)
    (prompt, *_) = make_association_prompts(test, 2, wordings=select_wordings("bai2025"))
    sections = {
        "Words": words,
        "For example": f"One of the prompts, in the published wording:\n\n```text\n{prompt.text}\n```",
        "What it can show": _shows(test),
        "What is said against it": as_list([one for one in known_criticism()["asked"] if _concerns(one, test)]),
        "Run it": f"```text\nbiassay ask MODEL --tests {test.name}\n```",
    }
    parts = [f"# {escaped(test.title)}\n", f"| test | `{test.name}` |\n|---|---|\n{rows}"]
    return "\n".join([*parts, *(f"## {head}\n\n{content}\n" for head, content in sections.items())])


def _shows(test: WordAssociationTest) -> str:
    method = "[what is promised](../../word-associations.md#what-is-promised)"
    n = len(test.pairs)
    if n == 1:
        return (
            f"There is one pair of group words. The p-value is over words and responses, and holds for this pair only, "
            f"not for other words for these groups: {method}."
        )
    floor = test.smallest_p_value
    if test.is_descriptive():
        return (
            f"The test is descriptive: with {n} pairs of group words no p-value over pairs can be below {floor:g}, so "
            f"at .05 it can show nothing about other group words, and `biassay ask` does not run it by default. "
            f"`p_these_groups` tests these very group words: {method}."
        )
    return f"The p-value is over words and the {n} pairs of group words; it can be as small as {floor:.1g}: {method}."


def _concerns(remark: Mapping[str, Any], test: WordAssociationTest) -> bool:
    fits = {
        "tests": lambda patterns: any(fnmatchcase(test.name, pattern) for pattern in patterns),
        "topics": lambda named: test.topic in named,
        "labels": lambda named: {concept.label for concept in test.concepts.values()} >= set(named),
        "pairs": lambda n: len(test.pairs) == n,
    }
    return all(fits[condition](remark[condition]) for condition in fits.keys() & remark.keys())
