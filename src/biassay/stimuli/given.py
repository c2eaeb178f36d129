"""Finished texts of a file: the texts themselves and, where the file states them, the word of each and its span."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from biassay.stimuli.fields import FieldReader, kind
from biassay.stimuli.model import GivenText

__all__ = ["GIVEN_FIELDS", "given_fields", "read_given"]

GIVEN_FIELDS = frozenset({"examples", "words", "spans"})


def read_given(reader: FieldReader, fields: Mapping[str, Any], where: str) -> tuple[GivenText, ...]:
    """The texts in ``examples``, with ``words`` and ``spans``, lists of the same length, where there are such."""
    texts = reader.strings(fields.get("examples"), f"{where}.examples")
    words: Sequence[str | None] = [None] * len(texts)
    spans: Sequence[Any] = words
    if "words" in fields:
        words = reader.strings(fields["words"], f"{where}.words")
        _check_length(reader, words, texts, f"{where}.words")
    if "spans" in fields:
        spans = fields["spans"] if isinstance(fields["spans"], list) else []
        _check_length(reader, spans, texts, f"{where}.spans")
        spans = [_span(reader, s, text, f"{where}.spans") for s, text in zip(spans, texts, strict=True)]
    given = tuple(GivenText(*of) for of in zip(texts, words, spans, strict=True))
    seen = set()
    for text in given:
        if (text.text, text.word) in seen:
            reader.fail(f"{where}.examples", f"the text {text.text!r} appears twice")
        seen.add((text.text, text.word))
    return given


def given_fields(given: Sequence[GivenText]) -> dict[str, list[Any]]:
    """What `read_given` reads back."""
    fields: dict[str, list[Any]] = {"examples": [text.text for text in given]}
    if all(text.word is not None for text in given):
        fields["words"] = [text.word for text in given]
    if all(text.span is not None for text in given):
        fields["spans"] = [list(text.span or ()) for text in given]
    return fields


def _check_length(reader: FieldReader, found: Sequence[Any], texts: Sequence[str], where: str) -> None:
    if len(found) != len(texts):
        reader.fail(where, f"expected a list with one entry for each of the {len(texts)} examples, got {len(found)}")


def _span(reader: FieldReader, value: Any, text: str, where: str) -> tuple[int, int]:
    numbers = isinstance(value, list) and len(value) == 2 and all(type(n) is int for n in value)
    if not numbers or not 0 <= value[0] < value[1] <= len(text):
        reader.fail(where, f"expected [first, after the last] character of the word in {text!r}, got {kind(value)}")
    return value[0], value[1]
