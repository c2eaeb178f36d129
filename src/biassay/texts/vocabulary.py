"""Frequent words that stand for nothing in particular, by themselves and in a plain sentence."""

from __future__ import annotations

from functools import cache
from importlib import resources

from biassay.stimuli.model import Test

__all__ = ["random_texts"]

_SENTENCE = "This is {}."


def random_texts(test: Test) -> tuple[str, ...]:
    """Texts of random attribute words, put as the attributes of a test are: by themselves or in a sentence."""
    in_sentences = test.attributes is not None or bool(test.A.given or test.B.given)
    return _in_sentences() if in_sentences else _words()


@cache
def _words() -> tuple[str, ...]:
    lines = (resources.files("biassay.stimuli") / "data" / "vocabulary.txt").read_text(encoding="utf-8").splitlines()
    return tuple(line for line in lines if line and not line.startswith("#"))


@cache
def _in_sentences() -> tuple[str, ...]:
    return tuple(_SENTENCE.format(word) for word in _words())
