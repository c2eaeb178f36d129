"""Text as it is searched: markup taken out, in Unicode's composed form (NFC), encoded."""

from __future__ import annotations

import html
import re
import unicodedata

__all__ = ["clean", "without_markup"]

_HIDDEN = re.compile(r"<!--.*?-->|<(script|style)\b[^>]*>.*?</\1\s*>", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(r"</?([a-zA-Z][a-zA-Z0-9]*)(?:\s[^<>]*|/)?>")
_INLINE = frozenset(
    [
        "a",
        "abbr",
        "acronym",
        "b",
        "bdi",
        "bdo",
        "big",
        "cite",
        "code",
        "del",
        "dfn",
        "em",
        "font",
        "i",
        "ins",
        "kbd",
        "label",
        "mark",
        "q",
        "s",
        "samp",
        "small",
        "span",
        "strike",
        "strong",
        "sub",
        "sup",
        "time",
        "tt",
        "u",
        "var",
        "wbr",
    ]
)


def clean(text: str, markup: bool) -> bytes:
    """The document that is searched. UnicodeEncodeError where the text holds half a surrogate pair."""
    if markup:
        text = without_markup(text)
    return text.encode() if text.isascii() else unicodedata.normalize("NFC", text).encode()


def without_markup(text: str) -> str:
    """Tags taken out and entities resolved. Tags that break the line or the block become a line break."""
    if "<" in text:
        text = _TAG.sub(_replacement, _HIDDEN.sub(" ", text))
    return html.unescape(text) if "&" in text else text


def _replacement(tag: re.Match[str]) -> str:
    return "" if tag[1].lower() in _INLINE else "\n"
