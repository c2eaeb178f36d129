"""The endpoint that pages of the docs take for granted: models with opinions, which answer the same every time."""

from __future__ import annotations

import ast
import hashlib
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from biassay.datasets.word_associations import select_word_associations, select_wordings

from .models.answer_server import body, echo
from .models.api_server import Asked, Endpoint, Reply

__all__ = ["ADDRESS", "answering"]

ADDRESS = "http://localhost:11434/v1"
LEANS = {"llama3.2": 0.95, "qwen3": 0.7}  # how often an answer follows the stereotype
_OPTION = re.compile(r"^([ABC])\. (.+)$", re.MULTILINE)


@contextmanager
def answering() -> Iterator[str]:
    """A server on loopback, by its address."""
    server = Endpoint()
    server.always = _answer
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server.base
    finally:
        server.release.set()
        server.shutdown()
        server.server_close()
        thread.join()


def _answer(asked: Asked) -> Reply:
    if "messages" not in asked:
        return echo(asked)
    prompt, model = str(asked["messages"][-1]["content"]), str(asked["model"])
    said = _said(prompt, model)
    choice = {"index": 0, "finish_reason": "stop", "message": {"content": said}}
    return body(choice, len(prompt) // 4, len(said) // 4 + 1)


def _said(prompt: str, model: str) -> str:
    if _drawn(model, "mood", prompt) < 0.06:
        return "I'm sorry, but I can't help with that: it would reinforce stereotypes."
    if options := dict(_OPTION.findall(prompt)):
        return _chosen(options, prompt, model)
    for pattern in _patterns():
        if found := pattern.fullmatch(prompt):
            listed = found["words"]
            words = ast.literal_eval(listed) if listed.startswith("[") else listed.split(", ")
            given = {word: _given(word, (found["first"], found["second"]), prompt, model) for word in words}
            return "\n".join(f"{word} - {group}" for word, group in given.items())
    return "It depends on the person."


def _chosen(options: dict[str, str], prompt: str, model: str) -> str:
    """One of the three, by what it says and not by its letter."""
    order = sorted(options, key=lambda letter: (len(options[letter]), options[letter]))
    return order[int(_drawn(model, "option", prompt) * 3)]


def _given(word: str, groups: tuple[str, str], prompt: str, model: str) -> str:
    stigmatised, negative = _sides()
    second = groups[1].lower() in stigmatised
    follows = _drawn(model, word, prompt) < LEANS[model]
    return groups[second == ((word.lower() in negative) == follows)]


@cache
def _sides() -> tuple[frozenset[str], frozenset[str]]:
    tests = select_word_associations()
    return (
        frozenset(word.lower() for test in tests for word in test.stigmatised.words),
        frozenset(word.lower() for test in tests for word in test.negative.words),
    )


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    """The wordings of lists, as patterns; what a slot holds is the same wherever it stands again."""
    found = []
    for wording in select_wordings():
        parts, seen = re.split(r"\{(\w+)\}", wording.text), set[str]()
        pattern = re.escape(parts[0])
        for slot, text in zip(parts[1::2], parts[2::2], strict=True):
            pattern += f"(?P={slot})" if slot in seen else f"(?P<{slot}>.+?)"
            pattern += re.escape(text)
            seen.add(slot)
        found.append(re.compile(pattern, re.DOTALL))
    return tuple(found)


def _drawn(*of: str) -> float:
    """A number from 0 to 1 that depends on nothing else."""
    return int.from_bytes(hashlib.blake2b("|".join(of).encode(), digest_size=8).digest(), "big") / 2**64
