"""The letters by which a written answer chooses among labelled options."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from biassay.texts.replies import DENIAL

__all__ = ["letters_said"]

_ONE = r"[(\[]?([A-Z](?=[)\].:,;]|[ \t]+[(–—-]|\s*$)|[B-HJ-Z](?=\s))"  # "the answer is A man" names no letter
_ANSWERS = (  # in the languages of refusals
    "antwort|réponse|respuesta|resposta|risposta|antwoord|odpowiedź|ответ|cevap|"
    "الإجابة|الجواب|उत्तर|答案|答え|回答|정답|답"
)
_ANSWER = re.compile(
    rf"(?:\b(?i:answer)(?i:\s+is)?\s*[:=]?\s*(?:(?i:option|choice|letter)\s+)?|\\boxed\s*(?:\\text\s*)?"
    rf"|(?i:{_ANSWERS})\s*[:：]\s*){_ONE}",
    re.MULTILINE,
)
_OPTION = re.compile(rf"\b(?i:option|choice)(?i:\s+is)?\s*[:=]?\s*{_ONE}", re.MULTILINE)
_LEAD = re.compile(  # by itself, or with a mark behind it: "A" begins a sentence too
    r"^[ \t]*(?:[-•][ \t]+)?[(\[]?(?:([A-Za-z])(?:[)\].:]+(?=\s|$)|[ \t]*$)|([A-Z])(?=[ \t]*[,.:)(\[=–—-]))",
    re.MULTILINE,
)
_JOINED = re.compile(
    rf"[)\].:,;]*\s*(?:and|or|&|/|,)\s*(?:option\s+)?{_ONE}|[)\].:,;]*[ \t]+[(\[]?([A-Z])[)\].]*[ \t]*$", re.MULTILINE
)
_INLINE = re.compile(r"(?<=[\s(\[])([A-Z])[)\].:]+(?=\s)")  # a list of options on one line
_WRONG = "wrong|incorrect|false|not|never"
_DENIED = re.compile(  # by what goes on behind a letter
    r"[)\].:,;(–— \t-]*(?:which |that )?(?:cannot|\w+n't"
    rf"|(?:is|was|are|would|could|can|does|must|should|seems?|looks?)\b[^.,;!?\n]{0, 80}?\b(?:{_WRONG}))\b",
    re.IGNORECASE,
)
_NAME_DENIED = re.compile(  # behind a letter and its text
    r"[)\].:,;(–— \t-]*[^.,;!?\n]{0,200}\b(?:(?:is|was|be|seems?|looks?) (?:wrong|incorrect|false)"
    r"|(?:not|\w+n't) (?:be )?(?:right|correct|true|supported|the (?:\w+ )?answer))\b",
    re.IGNORECASE,
)
_TAKEN_BACK = re.compile(rf"[)\].:,;(–— \t-]*(?:no|nope|{_WRONG})[ \t]*(?:[)\].,;:!]|$)", re.MULTILINE | re.IGNORECASE)
_NEAR = 400  # characters of a reply in which what belongs to a letter is looked for
_CLAUSE = re.compile(r"[.,;!?\n]|\b(?:so|thus|hence|therefore|because)\b", re.IGNORECASE)


@dataclass(frozen=True)
class _Said:
    places: frozenset[int]
    end: int
    final: bool  # said to be the answer, not only named


def letters_said(reply: str, letters: Sequence[str], named: Callable[[str], int | None]) -> frozenset[int]:
    """Places of the options that are chosen by letter; several where letters differ, or a letter and its text.

    A letter counts if it begins a line, by itself or with a mark behind it, or stands behind "answer" (in 15
    languages), "option" or "choice", and is not denied there. Several that only are named are an echo of the options:
    then what is called the answer behind it counts.

    Parameters
    ----------
    reply : str
    letters : sequence of str
        In the order of the options.
    named : callable
        The place of the option with which a text begins, or None.
    """
    found = sorted(_found(reply, list(letters), named), key=lambda said: said.end)
    only_named = _places(said for said in found if not said.final)
    final = [said for said in found if said.final]
    if len(only_named) > 1 and len(_places(final)) == 1 and found[-1].final:
        return _places(final)
    return _places(found)


def _places(found: Iterable[_Said]) -> frozenset[int]:
    return frozenset(place for said in found for place in said.places)


def _found(reply: str, letters: list[str], named: Callable[[str], int | None]) -> Iterator[_Said]:
    ends: set[int] = set()
    for pattern in (_ANSWER, _OPTION, _LEAD, _INLINE):
        for match in pattern.finditer(reply):
            letter, end = match[match.lastindex or 0], match.end(match.lastindex or 0)
            if end in ends or (letter.islower() and match.start() > 0) or letter.upper() not in letters:
                continue
            ends.add(end)
            behind = named(reply[end : end + _NEAR])
            needs_text = pattern is _INLINE or match.lastindex == 2
            before = "" if pattern is _LEAD else _CLAUSE.split(reply[max(0, match.start() - _NEAR) : match.start()])[-1]
            denied = (_DENIED if behind is None else _NAME_DENIED).match(reply, end)
            if (needs_text and behind is None) or denied or DENIAL.search(before):
                continue
            places = {letters.index(letter.upper())} | ({behind} if behind is not None else set())
            if (joined := _JOINED.match(reply, end)) and (other := joined[joined.lastindex or 0]) in letters:
                places.add(letters.index(other))
            if _TAKEN_BACK.match(reply, end):
                places.update(range(len(letters)))
            yield _Said(frozenset(places), end, pattern is _ANSWER)
