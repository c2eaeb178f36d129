"""Endpoints on loopback whose opinions are known: they read the published prompt as a model would."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Callable
from typing import Any

from tests.models.answer_server import body
from tests.models.api_server import Asked, Endpoint, Reply, Script

from biassay.datasets.word_associations import WordAssociationTest

PUBLISHED = re.compile(r"— (.+?) or (.+?) — .*The words are (\[.*?\])\. Do", re.DOTALL)
Giving = Callable[[str, str, str], str]


def text_of(asked: Asked) -> str:
    return str(asked["messages"][-1]["content"])


def saying(say: Callable[[str], str]) -> Script:
    def script(asked: Asked) -> Reply:
        message: dict[str, Any] = {"message": {"content": say(text_of(asked))}}
        return body({"index": 0, "finish_reason": "stop", **message})

    return script


def words_of(text: str) -> tuple[str, str, list[str]]:
    """The group word that is named first, the second, and the attribute words of the published prompt."""
    found = PUBLISHED.search(text)
    assert found is not None, text
    return found[1], found[2], ast.literal_eval(found[3])


def hash_of(*parts: str) -> int:
    """From 0 to 255, the same for the same."""
    return hashlib.blake2b("|".join(parts).encode(), digest_size=1).digest()[0]


def giving(give: Giving, line: str = "{word} - {group}") -> Script:
    """Every word to one of the two group words, by (word, first, second)."""

    def say(text: str) -> str:
        first, second, words = words_of(text)
        return "\n".join(line.format(word=word, group=give(word, first, second)) for word in words)

    return saying(say)


def stereotyped(*tests: WordAssociationTest, turned: bool = False) -> Giving:
    """Negative words to the stigmatised group, positive ones to the default; or the other way round."""
    stigmatised = {word.lower() for test in tests for word in test.stigmatised.words}
    negative = {word.lower() for test in tests for word in test.negative.words}

    def give(word: str, first: str, second: str) -> str:
        wanted = (word in negative) != turned
        return first if (first in stigmatised) == wanted else second

    return give


def model_of(server: Endpoint, settings: str = "") -> str:
    return f"chat:toy?base_url={server.base}&concurrency=4&max_tokens=200&retries=0{settings}"
