"""Make blanks from text: ``{trait}`` is the blank, ``{mask}`` a masked group."""

from __future__ import annotations

import re

from biassay.prompts.requests import Blank, Segments, Slot

_SLOTS = {"{trait}": Slot.BLANK, "{mask}": Slot.MASKED}


def segments_of(text: str) -> Segments:
    return tuple(_SLOTS.get(part, part) for part in re.split(r"(\{trait\}|\{mask\})", text) if part)


def text_of(segments: Segments) -> str:
    names = {slot: name for name, slot in _SLOTS.items()}
    return "".join(names[part] if isinstance(part, Slot) else part for part in segments)


def blank(text: str, *words: str) -> Blank:
    return Blank(segments_of(text), words)
