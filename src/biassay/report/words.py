"""Numbers and findings in words, shared by the terminal and the page."""

from __future__ import annotations

import math
from collections.abc import Sequence

from biassay.results.records import Result
from biassay.results.run import Run

__all__ = ["LEGEND", "MEANING", "format_p", "headline", "mark", "model_label", "size_word", "summary"]

LEGEND = (
    "*  p at or below alpha.   ** also after Holm's correction over all rows.   "
    "†  only if every sentence counts as an observation of its own: by words p is above alpha."
)
MEANING = (
    "A positive effect size says that the first targets lean to the first attributes and the second to the second, "
    "in standard deviations (about 0.2 is small, 0.5 medium, 0.8 large; 2 is the most there can be). "
    "A significant association shows that the model holds it for these words. A missing one does not show "
    "that the model is free of it: the tests can find bias, not its absence."
)


def model_label(result: Result) -> str:
    return f"{result.model} ({result.options})" if result.options else result.model


def size_word(effect_size: float) -> str:
    """The customary names of effect sizes."""
    size = abs(effect_size)
    return "large" if size >= 0.8 else "medium" if size >= 0.5 else "small" if size >= 0.2 else "negligible"


def mark(result: Result) -> str:
    """Stars for significance, a dagger where words do not bear out what sentences say."""
    stars = "**" if result.significant_holm else "*" if result.significant else ""
    dagger = "†" if result.significant and result.significant_by_word is False else ""
    return stars + dagger


def format_p(value: float | None, log10: float | None) -> str:
    """A p-value to two digits, from its logarithm where it is too small for a float."""
    if value is None or log10 is None:
        return "–"
    if math.isnan(value):
        return "NaN"
    if value >= 0.001:
        return f"{value:.3f}"
    if math.isinf(log10):
        return "0"
    exponent = math.floor(log10)
    digits = round(10 ** (log10 - exponent), 1)
    if digits >= 10.0:
        digits, exponent = 1.0, exponent + 1
    return f"{digits:.1f}e{exponent}"


def headline(run: Run) -> str:
    """One line: what was run."""
    models = len({(r.model, r.options) for r in run.results})
    tests = len({r.test for r in run.results})
    counts = f"{_count(tests, 'test')} on {_count(models, 'model')}"
    return f"{counts}, protocol {run.manifest.protocol}, alpha {run.manifest.alpha:g}"


def summary(run: Run) -> list[str]:
    """What a run found, a sentence a model, in plain words."""
    sentences = []
    for label in dict.fromkeys(model_label(r) for r in run.results):
        rows = [r for r in run.results if model_label(r) == label]
        sentences.append(_about_model(label, rows))
    return sentences


def _about_model(label: str, rows: Sequence[Result]) -> str:
    measured = [r for r in rows if r.status == "measured"]
    corrected = [r for r in measured if r.significant_holm]
    by_word = [r for r in measured if r.significant_by_word]
    text = (
        f"{label}: of {_count(len(measured), 'measured test')}, {len([r for r in measured if r.significant])} show an "
        f"association at the chosen level, {len(corrected)} of them after correction for the number of tests; "
        f"with words as the observations it is {len(by_word)}."
    )
    if corrected:
        largest = max(corrected, key=lambda r: abs(r.effect_size or 0.0))
        text += f" The largest corrected one is {largest.test} ({largest.title}; {largest.effect_size:.2f})."
    refused = [r for r in rows if r.status != "measured"]
    if refused:
        text += f" Not measured: {', '.join(r.test for r in refused)}."
    return text


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
