"""Words as the NLTK's Treebank tokeniser cuts them, each with its place in the text.

InferSent and GenSen were trained on such words: "doesn't" is "does" and "n't", a full stop is a word of its own.
``nltk.word_tokenize`` first splits sentences by Punkt, a trained model that has to be downloaded; here a rule does it.
The rule matters for one thing only: whether a full stop *inside* a text, with a blank behind it, is cut from its word.
It can differ from Punkt

- after an abbreviation that is not on the list below: the rule cuts "approx. ten", Punkt may not;
- after an abbreviation, an initial or "U.S." that ends a sentence: the rule never cuts there, Punkt sometimes does;
- after "..." or "3.": the rule never cuts after the first and always after the second, Punkt looks at what follows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from typing import Any

from biassay.models.base import Span

__all__ = ["Token", "sentence_spans", "treebank_tokens"]

Token = tuple[str, Span]

_END = re.compile(r"[.?!]+[\"'”’»)\]}]*(?=\s)")
_ABBREVIATIONS = re.compile(
    "mrs?|ms|messrs|dr|prof|rev|hon|gen|col|maj|capt|lt|sgt|gov|sen|rep|st|jr|sr|inc|co|corp|ltd|bros|vs"
    "|jan|feb|mar|apr|aug|sept?|oct|nov|dec"
)


def treebank_tokens(text: str) -> list[Token]:
    """Words of a text and their places. A double quote becomes `` or '', as in the Treebank; nothing else changes."""
    cut = _tokeniser().tokenize
    return [
        token for start, end in sentence_spans(text) for token in _placed(cut(text[start:end]), text[start:end], start)
    ]


@cache
def _tokeniser() -> Any:
    return import_module("nltk.tokenize").NLTKWordTokenizer()


def sentence_spans(text: str) -> Iterator[Span]:
    """Places of the sentences: one ends at . ? or ! before a blank, unless an abbreviation or an ellipsis does."""
    start = 0
    for mark in _END.finditer(text):
        words = text[start : mark.end()].split()
        if not _is_abbreviation(words[-1].rstrip("\"'”’»)]}")):
            yield _trimmed(text, start, mark.end())
            start = mark.end()
    if text[start:].strip():
        yield _trimmed(text, start, len(text))


def _trimmed(text: str, start: int, end: int) -> Span:
    """Without leading blanks: what precedes a quotation mark decides whether it opens a quotation."""
    return end - len(text[start:end].lstrip()), end


def _is_abbreviation(word: str) -> bool:
    """Mr. / J. / U.S. / and so on... / but neither a lone full stop nor a question mark."""
    if not word.endswith("."):
        return False
    body = word[:-1].lstrip("\"'“‘«([{").lower()
    return "." in body or bool(_ABBREVIATIONS.fullmatch(body)) or (len(body) == 1 and body.isalpha())


def _placed(words: Sequence[str], sentence: str, offset: int) -> Iterator[Token]:
    """The tokeniser drops blanks and rewrites quotes, and does nothing else: so its words follow one another."""
    at = 0
    for word in words:
        while sentence[at].isspace():
            at += 1
        size = _size_in(sentence, at, word)
        yield word, (offset + at, offset + at + size)
        at += size


def _size_in(sentence: str, at: int, word: str) -> int:
    if sentence.startswith(word, at):
        return len(word)
    return 2 if sentence.startswith("''", at) else 1  # two apostrophes or one double quote, rewritten
