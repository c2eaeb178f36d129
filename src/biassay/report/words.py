"""Numbers and findings in words, shared by the terminal and the page."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from biassay.report.words_contexts import by_samples
from biassay.results.labels import ModelKey, model_key, model_labels
from biassay.results.records import Result
from biassay.results.run import Run

__all__ = [
    "LEGEND",
    "MEANING",
    "Finding",
    "association",
    "cannot_reach",
    "concept",
    "decimals",
    "format_p",
    "format_plain_p",
    "headline",
    "model_key",
    "model_labels",
    "p_by_text",
    "p_by_word",
    "printable",
    "size_word",
    "summary",
]

LEGEND = (
    "* p at or below alpha   ** also after Holm's correction over all rows of its column   "
    "‡ too few words: no split of them could bring p by word down to alpha"
)
MEANING = (
    "A positive effect size says that the first targets lean to the first attributes and the second targets to the "
    "second, in standard deviations over all targets (by convention 0.2 is called small, 0.5 medium, 0.8 large). A "
    "small p-value says that a random split of the same targets would hardly do as well. Of many tests some come out "
    "significant by chance; what stands up to correction hardly does. All of it speaks of these words; and a test that "
    "finds nothing does not show that the model is free of bias."
)


_JOINT = re.compile(r"(?<=[a-z])(?=[A-Z])")
_NAMED = 5
_MANY = 12


def size_word(effect_size: float) -> str:
    """The customary names of effect sizes."""
    size = abs(effect_size)
    return "large" if size >= 0.8 else "medium" if size >= 0.5 else "small" if size >= 0.2 else "negligible"


def decimals(value: float) -> str:
    """A number to two decimals."""
    return "NaN" if math.isnan(value) else f"{value:.2f}"


def concept(label: str) -> str:
    """The name of a set of words as it is read: MaleNames are Male Names."""
    return _JOINT.sub(" ", label)


def association(result: Result) -> str:
    """What an effect size says: which set leans to which."""
    first, second = concept(result.attr1), concept(result.attr2)
    if (result.effect_size or 0.0) < 0.0:
        first, second = second, first
    return f"{concept(result.targ1)} lean to {first}, {concept(result.targ2)} to {second}"


def p_by_text(result: Result) -> str:
    """The p-value over texts with its stars."""
    return format_p(result.p_value, result.log10_p_value) + _stars(result.significant, result.significant_holm)


def p_by_word(result: Result) -> str:
    """The p-value over words with its stars, or the sign that no star was possible."""
    text = format_p(result.p_value_by_word, result.log10_p_value_by_word)
    if cannot_reach(result):
        return f"{text}‡"
    return text + _stars(result.significant_by_word, result.significant_by_word_holm)


def cannot_reach(result: Result) -> bool:
    """Has the test too few words for any result to be significant by word?"""
    return result.significant_by_word is False and (result.p_floor_by_word or 0.0) > result.alpha


def _stars(significant: bool | None, corrected: bool | None) -> str:
    return "**" if corrected else "*" if significant else ""


def format_p(value: float | None, log10: float | None) -> str:
    """A p-value to two digits, from its logarithm where it is too small for a float."""
    if value is None or log10 is None:
        return "–"
    return format_plain_p(value, log10)


def format_plain_p(value: float, log10: float | None = None) -> str:
    """The same for a p-value that is there; its logarithm is needed only if it is too small for a float."""
    if math.isnan(value):
        return "NaN"
    if value >= 0.001:
        return f"{value:.3f}"
    if log10 is None or math.isnan(log10):
        log10 = math.log10(value) if value > 0.0 else -math.inf
    if math.isinf(log10):
        return "0"
    exponent = math.floor(log10)
    digits = round(10 ** (log10 - exponent), 1)
    if digits >= 10.0:
        digits, exponent = 1.0, exponent + 1
    return f"{digits:.1f}e{exponent}"


def printable(text: str) -> str:
    """A text as it may be shown: what steers a terminal is not sent to it."""
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


def headline(run: Run) -> str:
    """One line: what was run."""
    tests = len({r.test for r in run.results})
    counts = f"{_count(tests, 'test')} on {_count(len(model_labels(run)), 'model')}"
    over = run.manifest.contexts
    how = f"protocol {run.manifest.protocol}" if over is None else f"over contexts, {over.n_samples:,} samples"
    return f"{counts}, {how}, alpha {run.manifest.alpha:g}"


@dataclass(frozen=True)
class Finding:
    """What was found in a sentence or two, and the associations that it speaks of, one a line."""

    text: str
    points: tuple[str, ...] = ()


def summary(run: Run) -> list[Finding]:
    """What a run found, some sentences a model, in plain words; of very many models what they have in common."""
    otherwise = _by_text if run.manifest.contexts is None else by_samples
    labels = model_labels(run)
    if len(labels) > _MANY:
        return [_about_many(run, len(labels))]
    by_model: dict[ModelKey, list[Result]] = {key: [] for key in labels}
    for result in run.results:
        by_model[model_key(result)].append(result)
    return [_about_model(labels[key], rows, run.manifest.alpha, otherwise) for key, rows in by_model.items()]


def _about_many(run: Run, models: int) -> Finding:
    measured = [r for r in run.results if r.status == "measured"]
    found, corrected = ([r for r in measured if getattr(r, f"significant_by_word{end}")] for end in ("", "_holm"))
    unmeasured = len(run.results) - len(measured)
    text = (
        f"With words as observations, {len(found):,} of {len(measured):,} results found the association at p <= "
        f"{run.manifest.alpha:g}, {len(corrected):,} of them also after correction for the number of results; "
        f"{unmeasured:,} could not be measured."
    )
    by_test: dict[str, list[Result]] = {}
    for r in corrected or found:
        by_test.setdefault(r.test, []).append(r)
    often = sorted(by_test.values(), key=lambda rows: -len(rows))[:_NAMED]
    return Finding(text, tuple(_over_models(rows, models, corrected=bool(corrected)) for rows in often))


def _over_models(rows: Sequence[Result], models: int, *, corrected: bool) -> str:
    median = decimals(statistics.median(r.effect_size or 0.0 for r in rows))
    after = "after correction " if corrected else ""
    return (
        f"{association(rows[0])}: {after}in {len(rows):,} of {models:,} models, median effect {median} ({rows[0].test})"
    )


def _about_model(
    label: str, rows: Sequence[Result], alpha: float, otherwise: Callable[[Sequence[Result]], str]
) -> Finding:
    """``otherwise`` says what the result would be with the observations that the papers count."""
    measured = [r for r in rows if r.status == "measured"]
    refused = ", ".join(r.test for r in rows if r.status != "measured")
    if not measured:
        return Finding(f"{label}: no test could be measured ({refused}).")
    by_word = [r for r in measured if r.significant_by_word]
    corrected = [r for r in measured if r.significant_by_word_holm]
    text = (
        f"{label}: with words as observations, {len(by_word)} of {_count(len(measured), 'test')} found the association "
        f"at p <= {alpha:g}, {len(corrected)} of them also after correction for the number of tests. "
        + otherwise(measured)
    )
    if refused:
        text += f" Not measured: {refused}."
    if corrected:
        return Finding(f"{text} After correction:", _named(corrected))
    return Finding(f"{text} Without correction:", _named(by_word)) if by_word else Finding(text)


def _named(results: Sequence[Result]) -> tuple[str, ...]:
    """The largest of them in words; a test in words and in sentences that says the same is one line."""
    lines: dict[str, list[Result]] = {}
    for r in sorted(results, key=lambda r: -abs(r.effect_size or 0.0)):
        lines.setdefault(association(r), []).append(r)
    shown = [
        f"{said}: {size_word(rows[0].effect_size or 0.0)}, "
        + ", ".join(f"{decimals(r.effect_size or 0.0)} ({r.test})" for r in rows)
        for said, rows in list(lines.items())[:_NAMED]
    ]
    return (*shown, f"and {len(lines) - _NAMED} more") if len(lines) > _NAMED else tuple(shown)


def _by_text(measured: Sequence[Result]) -> str:
    counts = (sum(bool(getattr(r, name)) for r in measured) for name in ("significant", "significant_holm"))
    return f"With every text as an observation it would be {' and '.join(map(str, counts))}."


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
