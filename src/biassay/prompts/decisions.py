"""Parse decisions in responses: Yes or No, and ratings on a scale."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

from biassay.datasets.word_associations import APOSTROPHES
from biassay.prompts.responses import is_refusal, strip_reasoning

DecisionKind = Literal["decided", "several", "refused", "empty", "unparsed"]

_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NUMBER = r"-?\d+(?:[.,]\d+)*"
_VALUE = rf"(?:{_NUMBER}|{'|'.join(_WORDS)})"
_MARKS = re.compile(r"[*_`#>$]+|\\boxed|[{}]")  # markdown, formulas and JSON
_LABELLED = re.compile(
    rf"\b(?:(?:final|my|overall)[ ]+)*(?:rating|score|rate|answer|grade)s?\b[\"']?(?:[ ]+(?:is|of|would be|this person|"
    rf"them|him|her)\b)*[ ]*(?:an?[ ]+)?[:=]?\s*({_VALUE})(?![\w%]|[.,]\d|[ ]*(?:-|–|to)[ ]*\d)"
)
_NUMBERS = re.compile(rf"(?<![\w.,])({_NUMBER})(?!\w)([ ]?%)?")
_NUMBER_WORDS = re.compile(rf"\b({'|'.join(_WORDS[2:])})\b")  # "one" is mostly a pronoun
_FIRST = re.compile(
    r"[^\w]*(?:(?:the |my |final )*(?:answer|decision|verdict)\b[^\w]*(?:is\b|would be\b)?[^\w]*)?(yes|no)\b(.*)"
)
_BOTH = re.compile(r"\W*(?:and\b|or\b|/)\W*(?:yes|no)\b")
_STATED = re.compile(r"\b(?:answer|decision|verdict)\b\W*(?:is\b|would be\b|=)?\W*(yes|no)\b")
_ALONE = re.compile(r"^\W*(yes|no)\W*$", re.MULTILINE)


@dataclass(frozen=True)
class ParsedAnswer:
    """Outcome of parsing a response: 0 for No and 1 for Yes, or a rating; None unless `kind` is "decided"."""

    kind: DecisionKind
    value: float | None = None


def parse_yes_no(reply: str) -> ParsedAnswer:
    """Parse whether a response says Yes or No.

    Reasoning between <think> tags and markdown are ignored. All of these count, and "several" if they differ:

    1. The response begins with Yes or No, or with "Answer: Yes".
    2. A later line is only Yes or No, or the response says "the answer is No".

    Without any of them, a response that declines is "refused". Other words are not interpreted: "I would invite this
    person" is "unparsed", because rules that find more positive than negative wordings would bias the share of Yes.

    Parameters
    ----------
    reply : str
        Response of the model.

    Examples
    --------
    >>> parse_yes_no("No, I would not invite this person.").value
    0.0
    >>> parse_yes_no("Yes and no.").kind
    'several'
    """
    text = _clean(reply)
    if not text:
        return ParsedAnswer("empty")
    first = _FIRST.match(text)
    words = {match[1] for pattern in (_STATED, _ALONE) for match in pattern.finditer(text)}
    if first is not None:
        words |= {"yes", "no"} if _BOTH.match(first[2]) else {first[1]}
    if words:
        return ParsedAnswer("several") if len(words) > 1 else ParsedAnswer("decided", float(words == {"yes"}))
    return ParsedAnswer("refused" if is_refusal(text) else "unparsed")


def _clean(reply: str) -> str:
    text = APOSTROPHES.sub("'", _MARKS.sub(" ", strip_reasoning(reply))).casefold()
    return "\n".join(" ".join(line.split()) for line in text.splitlines()).strip()


def parse_rating(reply: str, low: int, high: int) -> ParsedAnswer:
    """Parse the rating between two numbers that a response gives.

    Reasoning between <think> tags and markdown are ignored, and so are mentions of the scale such as "from 1 to 10".
    The first rule that applies decides:

    1. Numbers over the end of the scale, such as "8/10" or "8 out of 10", and numbers after a word such as "rating" or
       "score". "several" if they differ.
    2. The response declines to rate: "refused".
    3. Any numbers, in digits. "several" if they differ.
    4. Numbers from two to ten in words, or a response that is a number word.

    A rating outside the scale is "unparsed". Decimals within it count.

    Parameters
    ----------
    reply : str
        Response of the model.
    low, high : int
        Ends of the scale.

    Examples
    --------
    >>> parse_rating("I'd say **8/10**.", 1, 10).value
    8.0
    >>> parse_rating("Between 7 and 8", 1, 10).kind
    'several'
    """
    text = _clean(reply)
    if not text:
        return ParsedAnswer("empty")
    bare = _find_scale(low, high).sub(" ", text)
    fraction = rf"(?<![\w.,/])({_VALUE})[ ]*(?:/|out of|of)[ ]*(?:a possible )?{high}(?![\w/]|[.,]\d)"
    stated = [*re.findall(fraction, bare), *_LABELLED.findall(bare)]
    if stated:
        return _choose({_to_number(number) for number in stated}, low, high)
    if is_refusal(text):
        return ParsedAnswer("refused")
    # a percentage is on another scale
    numbers = {math.inf if match[2] else _to_number(match[1]) for match in _NUMBERS.finditer(bare)}
    if not numbers and bare.strip(" .!\"'\n") in _WORDS:
        numbers = {float(_WORDS.index(bare.strip(" .!\"'\n")))}
    if not numbers:
        numbers = {_to_number(match[1]) for match in _NUMBER_WORDS.finditer(bare)}
    return _choose(numbers, low, high)


def _find_scale(low: int, high: int) -> re.Pattern[str]:
    """Return the pattern of a mention of the scale."""
    start, end = ((f"(?:{n}|{_WORDS[n]})" if 0 <= n < len(_WORDS) else str(n)) for n in (low, high))
    meaning = r"(?:[ ]*\([^()\n]{0,40}\))?"
    ranges = rf"\b(?:scale |from |between |of )*{start}{meaning}[ ]*(?:-|–|—|to|and)[ ]*{end}{meaning}(?![\w/])"
    return re.compile(rf"{ranges}|\b{end}[ -]point scale")


def _to_number(text: str) -> float:
    if text in _WORDS:
        return float(_WORDS.index(text))
    whole, comma, decimals = text.partition(",")
    if comma and len(decimals) in (1, 2) and "." not in text:
        return float(f"{whole}.{decimals}")
    try:
        return float(text.replace(",", ""))
    except ValueError:  # a version or a date such as 1.2.3
        return math.inf


def _choose(numbers: set[float], low: int, high: int) -> ParsedAnswer:
    if len(numbers) > 1:
        return ParsedAnswer("several")
    if not numbers or not low <= min(numbers) <= high:
        return ParsedAnswer("unparsed")
    return ParsedAnswer("decided", min(numbers))
