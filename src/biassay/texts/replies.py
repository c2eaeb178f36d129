"""What all replies have in common, whatever was asked: thoughts before the answer, and words that deny."""

from __future__ import annotations

import re

__all__ = ["DENIAL", "without_thoughts"]

DENIAL = re.compile(
    r"\b(?:no|nope|not|never|neither|nor|none|nobody|cannot|wrong|incorrect|false|unfair|unclear|unsure|unlikely|whether"
    r"|if|unless)\b|n't\b|\b(?:ca|wo|do|does|did|is|are|was|were|has|have|had|would|could|should|must)nt\b",
    re.IGNORECASE,
)
"""A word that denies or leaves open what it stands with, with or without its apostrophe."""

_THOUGHT = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_THOUGHT_END = re.compile(r"\A.*</think(?:ing)?>", re.DOTALL | re.IGNORECASE)  # some servers leave out its beginning


def without_thoughts(text: str) -> str:
    """A reply without what is thought aloud between <think> tags, also where the first or the last tag is missing."""
    return _THOUGHT_END.sub("", _THOUGHT.sub("", text))
