"""Association tests in words, shared by the terminal and the page."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Sequence

from biassay.pages.formats import counted, decimals, format_p, size_word, stars
from biassay.pages.section import Statement
from biassay.results.data import RunData
from biassay.results.labels import ModelKey, model_key, model_labels
from biassay.studies.associations.intervals import interval_of
from biassay.studies.associations.records import Result
from biassay.studies.associations.words_contexts import by_samples
from biassay.studies.associations.words_found import (
    effect_by_word,
    found_by_text,
    found_by_word,
    known_by_word,
    other_way,
    without_words,
)

__all__ = [
    "LEGEND",
    "MEANING",
    "OTHER_WAY",
    "association",
    "cannot_reach",
    "concept",
    "headline",
    "p_by_text",
    "p_by_word",
    "p_text",
    "summary",
    "unfinished",
]

LEGEND = (
    "* p at or below alpha   ** also after Holm's correction over all rows of its column   "
    "‡ too few words: no split of them could bring p by word down to alpha"
)
MEANING = (
    "A positive effect size says that the first targets lean to the first attributes and the second targets to the "
    "second, in standard deviations over all targets (by convention 0.2 is called small, 0.5 medium, 0.8 large). A "
    "small p-value says that a random split of the same targets would hardly do as well. Unless a run is two-sided, "
    "tests look in one direction: a p-value near 1 beside a clearly negative effect says that the association runs the "
    "other way. Of many tests some come out significant by chance; those that stand up to correction are unlikely to. "
    "All of it speaks of these words; and a test that finds nothing does not show that the model is free of bias."
)
OTHER_WAY = "the other way, which these tests do not look for: "


_JOINT = re.compile(r"(?<=[a-z])(?=[A-Z])")
_NAMED = 8
_MANY = 12


def concept(label: str) -> str:
    """The name of a set of words as it is read: MaleNames are Male Names."""
    return _JOINT.sub(" ", label)


def association(result: Result) -> str:
    """What an effect size by word says: which set leans to which."""
    first, second = concept(result.attr1), concept(result.attr2)
    if effect_by_word(result) < 0.0:
        first, second = second, first
    return f"{concept(result.targ1)} lean to {first}, {concept(result.targ2)} to {second}"


def p_by_text(result: Result) -> str:
    """The p-value over texts with its stars."""
    return p_text(result) + stars(result.significant, result.significant_holm)


def p_text(result: Result) -> str:
    """The p-value over texts; of the paper's over contexts no more than that it is very small."""
    if result.contextual is not None and result.p_value is not None and result.p_value < 1e-30:
        return "<1e-30"
    return format_p(result.p_value, result.log10_p_value)


def p_by_word(result: Result) -> str:
    """The p-value over words with its stars, or the sign that no star was possible."""
    text = format_p(result.p_value_by_word, result.log10_p_value_by_word)
    if cannot_reach(result):
        return f"{text}‡"
    return text + stars(result.significant_by_word, result.significant_by_word_holm)


def cannot_reach(result: Result) -> bool:
    """Has the test too few words for any result to be significant by word?"""
    return result.significant_by_word is False and (result.p_floor_by_word or 0.0) > result.alpha


def headline(run: RunData) -> str:
    """One line: what was run."""
    tests = len({r.test for r in run.results})
    counts = f"{counted(tests, 'test')} on {counted(len(model_labels(run)), 'model')}"
    over = run.manifest.inputs.contexts
    protocols = list(dict.fromkeys(r.protocol for r in run.results)) or [run.manifest.settings.protocol]
    how = (
        f"protocol {' and '.join(protocols)}"
        if over is None
        else f"over contexts, {run.manifest.settings.n_samples:,} samples"
    )
    return f"{counts}, {how}, alpha {run.manifest.settings.alpha:g}"


def unfinished(run: RunData, name: str = "") -> str:
    """Said of a run that was interrupted; nothing of one that is complete."""
    if run.manifest.status == "complete":
        return ""
    total = len(run.manifest.models) * len(run.manifest.inputs.tests)
    return f"The run{f' {name}' if name else ''} is not finished: {len(run.results)} of {total} results are there."


def summary(run: RunData) -> list[Statement]:
    """What a run found, some sentences a model, in plain words; of very many models what they have in common."""
    otherwise = _by_text if run.manifest.inputs.contexts is None else by_samples
    labels = model_labels(run)
    if len(labels) > _MANY:
        return [_about_many(run, len(labels))]
    by_model: dict[ModelKey, list[Result]] = {key: [] for key in labels}
    for result in run.results:
        by_model[model_key(result)].append(result)
    return [_about_model(labels[key], rows, run.manifest.settings.alpha, otherwise) for key, rows in by_model.items()]


def _about_many(run: RunData, models: int) -> Statement:
    measured = [r for r in run.results if r.status == "measured"]
    known, reverse = known_by_word(measured), other_way(measured, run.manifest.settings.alpha)
    found, corrected = (found_by_word(measured, corrected=holm) for holm in (False, True))
    unmeasured = len(run.results) - len(measured)
    text = (
        f"With words as observations, {len(found):,} of {len(known):,} results found the association at p <= "
        f"{run.manifest.settings.alpha:g}, {len(corrected):,} of them also after correction for the number of results; "
        f"{len(reverse):,} found the opposite, {len(measured) - len(known):,} have no p by word, "
        f"{unmeasured:,} could not be measured."
    )
    by_test: dict[str, list[Result]] = {}
    for r in corrected or found:
        by_test.setdefault(r.test, []).append(r)
    often = sorted(by_test.values(), key=lambda rows: -len(rows))[:_NAMED]
    return Statement(text, tuple(_over_models(rows, models, corrected=bool(corrected)) for rows in often))


def _over_models(rows: Sequence[Result], models: int, *, corrected: bool) -> str:
    median = decimals(statistics.median(r.effect_size or 0.0 for r in rows))
    after = "after correction " if corrected else ""
    return (
        f"{association(rows[0])}: {after}in {len(rows):,} of {models:,} models, median effect {median} ({rows[0].test})"
    )


def _about_model(
    label: str, rows: Sequence[Result], alpha: float, otherwise: Callable[[Sequence[Result]], str]
) -> Statement:
    """``otherwise`` says what the result would be with the observations that the papers count."""
    measured = [r for r in rows if r.status == "measured"]
    refused = ", ".join(r.test for r in rows if r.status != "measured")
    if not measured:
        return Statement(f"{label}: no test could be measured ({refused}).", about=label)
    known = known_by_word(measured)
    by_word, corrected = (found_by_word(measured, corrected=holm) for holm in (False, True))
    counts = (
        f"with words as observations, {len(by_word)} of {counted(len(known), 'test')} found the association they look "
        f"for at p <= {alpha:g}, {len(corrected)} of them also after correction for the number of tests."
    )
    sentences = [counts if known else "", _checks(known), without_words(measured), otherwise(measured)]
    text = f"{label}: " + " ".join(filter(None, [*sentences, f"Not measured: {refused}." if refused else ""]))
    points = _named(corrected or by_word, "" if corrected else "before correction only: ")
    return Statement(text, (*points, *_named(other_way(measured, alpha), OTHER_WAY)), label)


def _checks(measured: Sequence[Result]) -> str:
    """Tests that are not about people show that the method works on a model; they are no findings about it."""
    checks = [r for r in measured if r.about == "method"]
    if not checks:
        return ""
    found, corrected = (len(found_by_word(checks, corrected=holm)) for holm in (False, True))
    targets = dict.fromkeys(f"{concept(r.targ1)} and {concept(r.targ2)}" for r in checks)
    return f"{found} and {corrected} of these are checks of the method and not about people ({', '.join(targets)})."


def _named(results: Sequence[Result], begin: str) -> tuple[str, ...]:
    """The largest of them in words; a test in words and in sentences that says the same is one line."""
    lines: dict[str, list[Result]] = {}
    for r in sorted(results, key=lambda r: -abs(effect_by_word(r))):
        lines.setdefault(association(r), []).append(r)
    shown = [
        f"{begin}{said}{_examples(rows[0])}: {size_word(effect_by_word(rows[0]))}, " + ", ".join(map(_number, rows))
        for said, rows in list(lines.items())[:_NAMED]
    ]
    return (*shown, f"{begin}and {len(lines) - _NAMED} more") if len(lines) > _NAMED else tuple(shown)


def _number(result: Result) -> str:
    pooled = "" if result.contextual is None else f", pooled over contexts {decimals(result.effect_size or 0.0)}"
    found = None if result.contextual is not None else interval_of(result)
    interval = (
        "" if found is None or found.low is None else f", 95% {decimals(found.low)} to {decimals(found.high or 0.0)}"
    )
    return f"{decimals(effect_by_word(result))} ({result.test}{interval}{pooled})"


def _examples(result: Result) -> str:
    """Some words, where the name of the attributes says no more than whose they are."""
    if result.targ1 not in result.attr1:
        return ""
    roles = ("A", "B") if effect_by_word(result) >= 0.0 else ("B", "A")
    words = [", ".join(list(result.associations.get(role, {}))[:3]) for role in roles]
    return f" (such as {words[0]}; {words[1]})" if all(words) else ""


def _by_text(measured: Sequence[Result]) -> str:
    found, corrected = (len(found_by_text(measured, corrected=holm)) for holm in (False, True))
    of = counted(len(measured), "test")
    return f"With every text as an observation {found} of {of} found their association, {corrected} after correction."
