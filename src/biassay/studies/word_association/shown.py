"""Words and counts that pages, terminal and papers share about word association tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from biassay.pages.formats import concept
from biassay.pages.section import Statement
from biassay.results.data import RunData
from biassay.results.labels import ModelKey, model_key, model_labels
from biassay.studies.word_association.findings import goes_by_order

__all__ = ["KINDS", "answered", "caption_of", "counts_of"]

KINDS: Mapping[str, str] = {
    "complete": "give every word to a group",
    "partial": "give some of the words to a group",
    "refused": "refuse",
    "unparsed": "could not be read",
    "undecided": "give both tasks to one person",
}


def caption_of(run: RunData) -> str:
    """What lies right of zero: of one test in its own words, of several by the roles that each of them gives."""
    tests = {row.test: row for row in run.results}
    if len(tests) == 1:
        (row,) = tests.values()
        names = map(concept, (row.stigmatised, row.negative, row.default, row.positive))
        return "Right of zero: {} with {}, {} with {}.".format(*names)
    return (
        "Right of zero: the stigmatised group gets negative words, the default group positive ones. These are roles: "
        "every test says which group and which words have them."
    )


def counts_of(run: RunData, model: ModelKey) -> dict[str, dict[str, int]]:
    """Replies of a model by form of prompt and kind; a kind that has none is there, but "undecided"."""
    found: dict[str, dict[str, int]] = {}
    for row in run.tables.get("replies", ()):
        if model_key(row) == model:
            counts = found.setdefault(row.form, dict.fromkeys(KINDS, 0))
            for kind in KINDS:
                counts[kind] += getattr(row, kind)
    return {
        form: {kind: n for kind, n in counts.items() if n or kind != "undecided"}
        for form, counts in found.items()
        if sum(counts.values())
    }


def answered(run: RunData) -> Iterator[Statement]:
    """Of every model what was answered, by kind; by log-odds nothing is to be read."""
    for key, label in model_labels(run).items():
        told = []
        for form, counts in counts_of(run, key).items():
            of = f"{sum(counts.values()):,} {'decisions' if form == 'decision' else 'replies'}"
            told.append(f"of {of} {', '.join(f'{n:,} {kind}' for kind, n in counts.items() if n)}")
            if form == "decision" and not counts["complete"]:
                told.append("nothing was decided, so that there is no share")
        if told:
            yield Statement(f"{label}: {'; '.join(told)}.", (), label)
        by_order = [row.test for row in run.results if model_key(row) == key and goes_by_order(row)]
        if by_order:
            yield Statement(
                f"{label}: goes by the order of the group words more than by what they mean: {', '.join(by_order)}. A "
                "difference near 0 there says little.",
                (),
                label,
            )
