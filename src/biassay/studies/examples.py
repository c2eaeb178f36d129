"""Replies to be read by a person: the first ones of every kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TypeVar

from biassay.results.tables import Column

__all__ = ["REPLY", "first_of_each", "trimmed"]

_OF_A_KIND = 3
_LONGEST = 500  # characters
_Reply = TypeVar("_Reply")


def first_of_each(replies: Iterable[tuple[str, _Reply]], taken: Counter[str] | None = None) -> Iterator[_Reply]:
    """Of replies with their kinds, the first three of every kind; ``taken`` were before."""
    seen = Counter[str]() if taken is None else taken
    for kind, reply in replies:
        seen[kind] += 1
        if seen[kind] <= _OF_A_KIND:
            yield reply


def trimmed(text: str) -> str:
    """The beginning of a reply, of characters that can be written."""
    text = text[:_LONGEST] if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    return text.encode("utf-8", "replace").decode()


REPLY = Column(
    "reply",
    "reply",
    f"Its first {_LONGEST} characters; ⏎ ends a line.",
    get=lambda row: " ⏎ ".join(row.reply.splitlines()),
)
"""A reply in a table."""
