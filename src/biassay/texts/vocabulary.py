"""Frequent words that stand for nothing in particular, by themselves and in a plain sentence."""

from __future__ import annotations

from functools import cache
from importlib import resources

from biassay.stimuli.model import Test

__all__ = ["SCALE_TEMPLATES", "frequent_words", "random_texts"]

SCALE_TEMPLATES = ("This is {}.", "That is {}.")
"""Sentences in which frequent words give the scale of sentence tests; most classes of words have them."""
_SENTENCE = "This is {}."


def random_texts(test: Test) -> tuple[str, ...]:
    """Texts of random attribute words, put as the attributes of a test are: by themselves or in a sentence."""
    in_sentences = test.attributes is not None or bool(test.A.given or test.B.given)
    return _in_sentences() if in_sentences else frequent_words()


@cache
def frequent_words() -> tuple[str, ...]:
    """Return the frequent English words of the random baseline."""
    lines = (resources.files("biassay.stimuli") / "data" / "vocabulary.txt").read_text(encoding="utf-8").splitlines()
    return tuple(line for line in lines if line and not line.startswith("#"))


@cache
def _in_sentences() -> tuple[str, ...]:
    return tuple(_SENTENCE.format(word) for word in frequent_words())
