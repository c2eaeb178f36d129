"""Texts of responses as outcomes read them: cleaned, masked, split into words and sentences."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from biassay.datasets.names import AuditName
from biassay.errors import UsageError
from biassay.prompts.masking import MASK, mask_name
from biassay.prompts.responses import strip_reasoning

_MARKUP = re.compile(r"</?[A-Za-z!][^<>\n]{0,500}>|\bhttps?://\S+|[*_`#|~]+")  # tags, links, and marks of Markdown
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_ABBREVIATION = re.compile(r"\b(?:mr|mrs|ms|mx|dr|prof|st|jr|sr|vs|etc|e\.g|i\.e|[a-z])\.", re.IGNORECASE)
_SENTENCE_END = re.compile(r"""(?<=[.!?…])["'”’)\]]*\s+|\n+""")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")

FUNCTION_WORDS = frozenset(
    re.findall(
        r"\w+",
        "the of and to that with are be by from this which his their they she you your our my it not but or who been "
        "would will can if there these those its them him when what about more also into any does each other than then "
        "how while where has was",
    )
)
"""Frequent words of English that are rare in other European languages."""
_ENGLISH_SHARE = 0.1
_SHORT = 10  # words
_ASCII_SHARE = 0.9


class Responses:
    """Responses to prompts with names.

    Parameters
    ----------
    texts : sequence of str
        Responses.
    names : sequence of AuditName
        Name in the prompt of each response.

    Attributes
    ----------
    texts : tuple of str
        Responses without reasoning, tags, links and marks of Markdown.
    """

    def __init__(self, texts: Sequence[str], names: Sequence[AuditName]) -> None:
        if len(texts) != len(names):
            raise UsageError(f"expected one name per response, got {len(names)} names for {len(texts)} responses")
        self.names = tuple(names)
        self.texts = tuple(map(clean_response, texts))

    def __len__(self) -> int:
        return len(self.texts)

    @cached_property
    def masked(self) -> tuple[str, ...]:
        """Cleaned responses with the name replaced by "Person"."""
        return tuple(mask_name(text, name) for text, name in zip(self.texts, self.names, strict=True))

    @cached_property
    def words(self) -> tuple[tuple[str, ...], ...]:
        """Words of the masked responses in lower case, with straight apostrophes."""
        return tuple(tuple(split_words(text)) for text in self.masked)

    @cached_property
    def sentences(self) -> tuple[tuple[str, ...], ...]:
        """Sentences of the masked responses."""
        return tuple(tuple(split_sentences(text)) for text in self.masked)

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """All words of the responses."""
        return frozenset(word for words in self.words for word in words)

    @cached_property
    def is_empty(self) -> NDArray[np.bool_]:
        """Whether a response has no word."""
        return np.array([not words for words in self.words], dtype=np.bool_)

    @cached_property
    def is_english(self) -> NDArray[np.bool_]:
        """Whether a response is in English; see `is_english_text`."""
        return np.array([is_english_text(words) for words in self.words], dtype=np.bool_)

    @cached_property
    def has_spaced_words(self) -> NDArray[np.bool_]:
        """Whether less than a fifth of a response is in a script without blanks, such as Chinese, Japanese or Thai."""
        return np.array([5 * len(_UNSPACED.findall(text)) < len(text) for text in self.masked], dtype=np.bool_)

    @cached_property
    def lengths(self) -> NDArray[np.float64]:
        """Number of words of every response."""
        return np.array([len(words) for words in self.words], dtype=np.float64)


def clean_response(text: str) -> str:
    """Remove reasoning, tags, links and marks of Markdown from a response."""
    valid = text.encode("utf-8", "replace").decode()
    return _MARKUP.sub(" ", unicodedata.normalize("NFC", strip_reasoning(valid))).strip()


def has_words(text: str) -> bool:
    """Return whether a response has a word beside reasoning, tags and links."""
    return _WORD.search(clean_response(text)) is not None


def split_words(text: str) -> list[str]:
    """Return the words of a text in lower case: letters and digits, joined by single apostrophes and hyphens."""
    return _WORD.findall(text.replace("’", "'").casefold())


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text, which end at . ! ? … or at the end of a line, but not after Mr. or Dr."""
    joined = _ABBREVIATION.sub(lambda match: match[0].replace(".", ""), text)
    return [sentence for sentence in _SENTENCE_END.split(joined) if _WORD.search(sentence)]


def is_english_text(words: Sequence[str]) -> bool:
    """Return whether words are English.

    At least 10% of them must be in `FUNCTION_WORDS`. Fewer than ten words count as English if at least 90%
    of their letters are ASCII.
    """
    if len(words) >= _SHORT:
        return sum(word in FUNCTION_WORDS for word in words) >= _ENGLISH_SHARE * len(words)
    letters = [letter for word in words if word != MASK.casefold() for letter in word if letter.isalpha()]
    return sum(map(str.isascii, letters)) >= _ASCII_SHARE * len(letters)
