"""Which results found the association that their test looks for, and which the opposite one."""

from __future__ import annotations

from collections.abc import Iterable

from biassay.studies.associations.records import Result

__all__ = ["effect_by_word", "found_by_text", "found_by_word", "known_by_word", "other_way", "without_words"]


def effect_by_word(result: Result) -> float:
    """The effect that the p-value by word is of."""
    size = result.effect_size if result.effect_size_by_word is None else result.effect_size_by_word
    return size or 0.0


def known_by_word(results: Iterable[Result]) -> list[Result]:
    """Those with a p-value by word; there is none where the words of finished texts are not known."""
    return [r for r in results if r.p_value_by_word is not None]


def found_by_word(results: Iterable[Result], *, corrected: bool = False) -> list[Result]:
    """Significant by word, in the direction that the test looks for: a two-sided p-value does not tell it."""
    return [
        r
        for r in known_by_word(results)
        if (r.significant_by_word_holm if corrected else r.significant_by_word) and effect_by_word(r) > 0.0
    ]


def found_by_text(results: Iterable[Result], *, corrected: bool = False) -> list[Result]:
    """The same with the papers' observations, texts or samples of contexts."""
    return [r for r in results if (r.significant_holm if corrected else r.significant) and (r.effect_size or 0.0) > 0.0]


def other_way(results: Iterable[Result], alpha: float) -> list[Result]:
    """Significant in the opposite direction; a run that did not compute it claims nothing."""
    return [
        r
        for r in known_by_word(results)
        if (r.p_value_by_word_opposite is not None and r.p_value_by_word_opposite <= alpha)
        or (r.significant_by_word and effect_by_word(r) < 0.0)
    ]


def without_words(measured: Iterable[Result]) -> str:
    """Said of tests that have no p-value by word; nothing where all have one."""
    names = ", ".join(r.test for r in measured if r.p_value_by_word is None)
    return f"p by word was not computed for {names}: the file does not name the words of its texts." if names else ""
