"""Matching against its rule written as regular expressions, on generated text."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from biassay.corpus.matcher import StimulusMatcher
from biassay.corpus.reader import PackedDocuments
from biassay.errors import StimulusError

pytestmark = pytest.mark.extras

STIMULI = (
    *("she", "will", "Will", "short", "short-term", "all-American", "African American", "African", "love", "can"),
    *("NASA", "éclair", "U.S.", "unpleasant", "unpleasantness", "woman of color", "woman", "competence", "naïve"),
    *("rock'n'roll", "x", "don", "ärger", "straße", "twelve12", "eightchr", "eightchrs", "中文", "Ⅷ"),
)
HYPHENS = "-\u2010\u2011"
NOT_BEFORE = rf"(?<!\w)(?<!\w[{HYPHENS}])"
NOT_AFTER = rf"(?!\w)(?!(?<=\w)[{HYPHENS}]\w)(?!['’][tT](?!\w))"
OPENS = re.compile(r"(?:\A|[\n\r.!?…])[ \t\xa0\"'“”‘’«»„‚()\[\]{}]*\Z")


def brute_force(text: str, stimulus: str, ignore_case: bool, openings: bool) -> list[int]:
    """Find a stimulus in a text by one regular expression per spelling."""
    if ignore_case:
        small = "".join(c.lower() if len(c.lower().encode()) == len(c.encode()) else c for c in text)
        wanted = "".join(c.lower() if len(c.lower().encode()) == len(c.encode()) else c for c in stimulus)
        return [m.start() for m in re.finditer(f"(?={NOT_BEFORE}{re.escape(wanted)}{NOT_AFTER})", small)]
    found = [m.start() for m in re.finditer(f"(?={NOT_BEFORE}{re.escape(stimulus)}{NOT_AFTER})", text)]
    capital = stimulus[0].upper() + stimulus[1:]
    if openings and stimulus == stimulus.lower() != capital:
        there = (m.start() for m in re.finditer(f"(?={NOT_BEFORE}{re.escape(capital)}{NOT_AFTER})", text))
        found += [at for at in there if OPENS.search(text[:at])]
    return sorted(found)


def ours(
    texts: list[str], ignore_case: bool = False, openings: bool = True, stimuli: tuple[str, ...] = STIMULI
) -> set[tuple[str, int, int]]:
    documents = PackedDocuments.pack(texts, range(len(texts)))
    matches = StimulusMatcher(stimuli, ignore_case, openings).find(documents)
    return {
        (stimuli[stimulus], int(document), len(documents.data[documents.starts[document] : start].decode()))
        for stimulus, document, start in zip(*matches, strict=True)
    }


pieces = st.sampled_from(
    [
        *STIMULI,
        *(stimulus.capitalize() for stimulus in STIMULI),
        *(stimulus.upper() for stimulus in STIMULI),
        *(" ", " ", " ", "-", "--", "\u2010", "\u2011", "—", "'", "’", "'t", "’t", "'T", "'tis", ".", ". ", "! ", "…"),
        *("\n", "\r", "\0", "\t", "\x01", "\xa0", '"', "“", "”", "(", ")", "_", "9", "é", "e\u0301", "ß", "İ", "K"),
        *("\u200b", "\u00ad", "😀", "के", "a", "s", "S", "٣", "ʼ", "\x85", "\u2028", "𝒳", "½", "term", "  ", ", "),
    ]
)
documents = st.lists(pieces | st.characters(codec="utf-8"), max_size=14).map(
    lambda parts: unicodedata.normalize("NFC", "".join(parts))
)


@settings(max_examples=300, deadline=None)
@given(st.lists(documents, max_size=4), st.booleans(), st.booleans())
@example(["she", "African", "American"], False, True)
@example(["can", "'t"], False, True)
@example(["x-", "-x", "x\u2010", "\u2010x"], False, True)
@example([". ", "She"], False, True)
@example([". ", "She", "x. She", "Will"], False, False)
@example(["x. She"], True, False)
def test_rule(texts: list[str], ignore_case: bool, openings: bool) -> None:
    expected = {
        (stimulus, number, at)
        for number, text in enumerate(texts)
        for stimulus in STIMULI
        for at in brute_force(text, stimulus, ignore_case, openings)
    }
    assert ours(texts, ignore_case, openings) == expected


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a short-term love-story", {"short-term"}),
        ("she--She love- -can", {"she", "love", "can"}),
        ("John's she's can't she’s don’t", {"she"}),
        ("He said: Will they, or will they not", {"Will", "will"}),
        ("Unpleasant. “Love” it. Then Love", {"unpleasant", "love"}),
        ("African American", {"African", "African American"}),
        ("African  American, African\nAmerican, African-American", {"African"}),
        ("an all-American, an all-American-x", {"all-American"}),
        ("U.S. and U.S.A", {"U.S."}),
        ("a U.S.-led war", {"U.S."}),
    ],
)
def test_examples(text: str, found: set[str]) -> None:
    assert {stimulus for stimulus, _, _ in ours([text])} == found


def test_the_look_back_has_no_end() -> None:
    assert ours(["x. " + '"' * 5000 + "She"]) == {("x", 0, 0), ("she", 0, 5003)}
    assert ours(["x, " + '"' * 5000 + "She"]) == {("x", 0, 0)}


@pytest.mark.parametrize("stimulus", ["", "-", " she", "a\0b"])
def test_what_cannot_be_looked_for_is_refused(stimulus: str) -> None:
    with pytest.raises(StimulusError, match="cannot search for the stimulus"):
        StimulusMatcher([stimulus])
