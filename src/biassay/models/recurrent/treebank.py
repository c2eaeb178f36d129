"""Tokenize texts with NLTK's Treebank tokenizer and locate the tokens.

InferSent and GenSen were trained on such tokens: "doesn't" is "does" and "n't", a full stop is a token.
``nltk.word_tokenize`` first splits sentences with Punkt, a trained model that must be downloaded; here a rule splits
them. The rule decides only whether a full stop inside a text, followed by a space, is split from its word. It can
differ from Punkt

- after an abbreviation that is not on the list below: the rule splits "approx. ten", Punkt may not;
- after an abbreviation, an initial or "U.S." that ends a sentence: the rule never splits, Punkt sometimes does;
- after "..." or "3.": the rule never splits after the first and always after the second, Punkt depends on the context.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from typing import Any

from biassay.models.base import Span

Token = tuple[str, Span]

_SENTENCE_END = re.compile(r"[.?!]+[\"'”’»)\]}]*(?=\s)")
_ABBREVIATIONS = re.compile(
    "mrs?|ms|messrs|dr|prof|rev|hon|gen|col|maj|capt|lt|sgt|gov|sen|rep|st|jr|sr|inc|co|corp|ltd|bros|vs"
    "|jan|feb|mar|apr|aug|sept?|oct|nov|dec"
)


def tokenize_treebank(text: str) -> list[Token]:
    """Return tokens and spans; a double quote becomes `` or '', as in the Treebank."""
    split = _get_tokenizer().tokenize
    return [
        token
        for start, end in find_sentences(text)
        for token in _locate_tokens(split(text[start:end]), text[start:end], start)
    ]


@cache
def _get_tokenizer() -> Any:
    return import_module("nltk.tokenize").NLTKWordTokenizer()


def find_sentences(text: str) -> Iterator[Span]:
    """Yield the spans of sentences, which end at . ? or ! before a space, except after abbreviations and ellipses."""
    start = 0
    for mark in _SENTENCE_END.finditer(text):
        words = text[start : mark.end()].split()
        if not _is_abbreviation(words[-1].rstrip("\"'”’»)]}")):
            yield _trim_span(text, start, mark.end())
            start = mark.end()
    if text[start:].strip():
        yield _trim_span(text, start, len(text))


def _trim_span(text: str, start: int, end: int) -> Span:
    """Strip leading spaces, because the character before a quotation mark decides whether it opens a quotation."""
    return end - len(text[start:end].lstrip()), end


def _is_abbreviation(word: str) -> bool:
    """Return True for "Mr.", "J.", "U.S." and "on...", but not for a single full stop."""
    if not word.endswith("."):
        return False
    body = word[:-1].lstrip("\"'“‘«([{").lower()
    return "." in body or bool(_ABBREVIATIONS.fullmatch(body)) or (len(body) == 1 and body.isalpha())


def _locate_tokens(words: Sequence[str], sentence: str, offset: int) -> Iterator[Token]:
    """Yield tokens with their spans; the tokenizer only drops spaces and rewrites quotes."""
    start = 0
    for word in words:
        while sentence[start].isspace():
            start += 1
        length = len(word)
        if not sentence.startswith(word, start):  # a quotation mark: two apostrophes or one double quote
            length = 2 if sentence.startswith("''", start) else 1
        yield word, (offset + start, offset + start + length)
        start += length
