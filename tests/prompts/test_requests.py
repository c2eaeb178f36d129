"""Requests: a key for each text with its words, and errors for invalid blanks."""

from __future__ import annotations

import pytest
from tests.blanks import blank, segments_of, text_of

from biassay.errors import UsageError
from biassay.prompts.requests import Blank, Slot

TEXTS = [
    "she is {trait}.",
    "she is {trait}",
    "{mask} is {trait}.",
    "{trait} is {mask}.",
    "masked is {trait}.",
    "{trait}",
]


def test_keys_differ_where_anything_differs() -> None:
    words = [(), ("good",), ("good", "bad"), ("good, bad",), ("bad", "good")]
    keys = {Blank(segments_of(text), of).key for text in TEXTS for of in words}
    assert len(keys) == len(TEXTS) * len(words)
    assert blank(TEXTS[0], "good").key == blank(TEXTS[0], "good").key


def test_halves() -> None:
    assert blank("the {mask} is {trait} here").halves("[M]") == ("the [M] is ", " here")
    assert blank("{trait} is {mask}").halves("[M]") == ("", " is [M]")


@pytest.mark.parametrize("segments", [(), ("she",), (Slot.BLANK, Slot.BLANK), (Slot.MASKED, Slot.BLANK, Slot.MASKED)])
def test_texts_without_one_blank_are_refused(segments: tuple[str | Slot, ...]) -> None:
    with pytest.raises(UsageError):
        Blank(segments, ("good",))


@pytest.mark.parametrize("words", [("good", "good"), ("",)])
def test_words_that_are_no_words_or_repeated_are_refused(words: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        Blank(segments_of("she is {trait}."), words)


def test_text_and_segments_are_each_others_inverse() -> None:
    assert [text_of(segments_of(text)) for text in TEXTS] == TEXTS
