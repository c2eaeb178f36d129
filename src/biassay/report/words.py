"""Numbers and findings in words, shared by the terminal and the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from biassay.report.words_contexts import by_samples
from biassay.results.records import Result
from biassay.results.run import Run

__all__ = [
    "LEGEND",
    "MEANING",
    "cannot_reach",
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
    "small p-value says that a random split of the same targets would hardly do as well. Both speak of these words; "
    "and a test that finds nothing does not show that the model is free of bias."
)


def model_labels(run: Run) -> dict[tuple[str, str, str | None], str]:
    """A label for every model of a run; models that differ in nothing but their weights get a number."""
    labels: dict[tuple[str, str, str | None], str] = {}
    for result in run.results:
        if model_key(result) not in labels:
            label = f"{result.model} ({result.options})" if result.options else result.model
            same = sum(known[:2] == (result.model, result.options) for known in labels)
            labels[model_key(result)] = f"{label} #{same + 1}" if same else label
    return labels


def model_key(result: Result) -> tuple[str, str, str | None]:
    """What tells the models of a run apart."""
    return result.model, result.options, result.model_revision


def size_word(effect_size: float) -> str:
    """The customary names of effect sizes."""
    size = abs(effect_size)
    return "large" if size >= 0.8 else "medium" if size >= 0.5 else "small" if size >= 0.2 else "negligible"


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
    if log10 is None:
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


def summary(run: Run) -> list[str]:
    """What a run found, some sentences a model, in plain words."""
    otherwise = _by_text if run.manifest.contexts is None else by_samples
    return [
        _about_model(label, [r for r in run.results if model_key(r) == key], run.manifest.alpha, otherwise)
        for key, label in model_labels(run).items()
    ]


def _about_model(label: str, rows: Sequence[Result], alpha: float, otherwise: Callable[[Sequence[Result]], str]) -> str:
    """``otherwise`` says what the result would be with the observations that the papers count."""
    measured = [r for r in rows if r.status == "measured"]
    refused = ", ".join(r.test for r in rows if r.status != "measured")
    if not measured:
        return f"{label}: no test could be measured ({refused})."
    by_word = [r for r in measured if r.significant_by_word]
    corrected = [r for r in measured if r.significant_by_word_holm]
    text = (
        f"{label}: with words as observations, {len(by_word)} of {_count(len(measured), 'test')} found the association "
        f"at p <= {alpha:g}, {len(corrected)} of them also after correction for the number of tests. "
        + otherwise(measured)
    )
    if corrected:
        largest = max(corrected, key=lambda r: abs(r.effect_size or 0.0))
        text += (
            f" The largest that stands up to correction: {largest.test} ({largest.title}), {largest.effect_size:.2f}."
        )
    return f"{text} Not measured: {refused}." if refused else text


def _by_text(measured: Sequence[Result]) -> str:
    counts = (sum(bool(getattr(r, name)) for r in measured) for name in ("significant", "significant_holm"))
    return f"With every text as an observation it would be {' and '.join(map(str, counts))}."


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
