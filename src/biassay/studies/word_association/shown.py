"""Words and counts that pages, terminal and papers share about word association tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from biassay.pages.formats import concept, decimals, format_p, interval_text, percent
from biassay.pages.section import Statement
from biassay.results.data import RunData
from biassay.results.labels import ModelKey, model_key, model_labels
from biassay.studies.word_association.records import Missing, Result

__all__ = ["KINDS", "answered", "caption_of", "counts_of", "label_of"]

KINDS: Mapping[str, str] = {
    "complete": "give every word to a group",
    "partial": "give some of the words to a group",
    "refused": "refuse",
    "filtered": "were filtered by the endpoint",
    "failed": "failed after retries",
    "unparsed": "could not be read",
    "undecided": "give both tasks to one person",
}

_LABELS = {"filtered": "filtered by the endpoint", "failed": "failed after retries"}
_SHOWN_IF_ANY = ("filtered", "failed", "undecided")


def label_of(kind: str) -> str:
    """Return what a count of replies is followed by: 12 filtered by the endpoint."""
    return _LABELS.get(kind, kind)


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
    """Count the replies of a model by form of prompt and kind; kinds of `_SHOWN_IF_ANY` only if there are any."""
    found: dict[str, dict[str, int]] = {}
    for row in run.tables.get("replies", ()):
        if model_key(row) == model:
            counts = found.setdefault(row.form, dict.fromkeys(KINDS, 0))
            for kind in KINDS:
                counts[kind] += getattr(row, kind)
    return {
        form: {kind: n for kind, n in counts.items() if n or kind not in _SHOWN_IF_ANY}
        for form, counts in found.items()
        if sum(counts.values())
    }


def answered(run: RunData) -> Iterator[Statement]:
    """Of every model what was answered, by kind; by log-odds nothing is to be read."""
    for key, label in model_labels(run).items():
        told = []
        for form, counts in counts_of(run, key).items():
            of = f"{sum(counts.values()):,} {'decisions' if form == 'decision' else 'replies'}"
            told.append(f"of {of} {', '.join(f'{n:,} {label_of(kind)}' for kind, n in counts.items() if n)}")
            if form == "decision" and not counts["complete"]:
                told.append("nothing was decided, so that there is no share")
        if told:
            yield Statement(f"{label}: {'; '.join(told)}.", (), label)
        own = [row for row in run.results if model_key(row) == key]
        if not told:
            yield from _unanswered(own, label)
        warnings = [
            *_order_warning(own),
            *_missing_warning(own),
            *_selective_warnings([row for row in run.tables.get("missing", ()) if model_key(row) == key], own),
        ]
        yield from (Statement(f"{label}: {warning}", (), label) for warning in warnings)


def _unanswered(results: Sequence[Result], label: str) -> Iterator[Statement]:
    """Count prompts without an answer where log-odds were asked for, so that there are no replies to count."""
    lost = [f"{n:,} {text}" for kind, text in _LABELS.items() if (n := sum(getattr(row, kind) or 0 for row in results))]
    if lost:
        yield Statement(f"{label}: of {sum(row.answers for row in results):,} prompts {', '.join(lost)}.", (), label)


def _order_warning(results: Sequence[Result]) -> Iterator[str]:
    tests = [f"{row.test} ({decimals(row.first)} to the first)" for row in results if row.follows_order]
    if tests:
        yield (
            "the responses follow the order of the group words rather than their meaning, so these tests show neither "
            f"bias nor its absence: {', '.join(tests)}."
        )


def _missing_warning(results: Sequence[Result]) -> Iterator[str]:
    """Tests whose missing responses could turn the sign of the difference."""
    tests = [
        f"{row.test} ({interval_text(row.bound_low, row.bound_high)})"
        for row in results
        if row.missing_rate
        and row.evidence == "inconclusive"
        and row.bound_low is not None
        and row.bound_high is not None
        and row.bound_low <= 0.0 <= row.bound_high
    ]
    if tests:
        yield (
            "missing responses (refused, filtered, failed, unparsed or left out) could turn the sign of the "
            "difference, so these tests are inconclusive; with all of them counted either way it is: "
            f"{', '.join(tests)}."
        )


def _selective_warnings(missing: Sequence[Missing], results: Sequence[Result]) -> Iterator[str]:
    """Factors on which the rate of missing responses depends, by an exact test corrected for the factors of a test."""
    alphas = {row.test: row.alpha for row in results}
    by_factor: dict[tuple[str, str], list[Missing]] = {}
    for row in missing:
        by_factor.setdefault((row.test, row.factor), []).append(row)
    for (test, factor), rows in by_factor.items():
        n_factors = sum(name == test for name, _ in by_factor)
        p = rows[0].p_value
        if p is not None and p <= alphas[test] / n_factors:
            rates = ", ".join(f"{row.level} {percent(round(row.rate, 3))}" for row in rows)
            yield f"missing responses of {test} depend on the {factor}: {rates} (exact p = {format_p(p)})."
