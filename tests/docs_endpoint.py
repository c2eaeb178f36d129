"""An endpoint for the commands of the docs, with deterministic models that often follow stereotypes."""

from __future__ import annotations

import ast
import hashlib
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from biassay.datasets.names import load_names
from biassay.datasets.word_associations import select_word_associations, select_wordings

from .models.answer_server import body, echo
from .models.api_server import Asked, Endpoint, Reply, Script

__all__ = ["URL", "serve_models"]

URL = "http://localhost:11434/v1"
LEANS = {"llama3.2": 0.95, "qwen3": 0.7}  # how often a response follows the stereotype
_WRITING = re.compile(r"letter|recommend|What should I do|do you|advise|serious|physician", re.IGNORECASE)
_PLAIN = (
    "The work was always done on time.",
    "We met every week, and there were no complaints.",
    "The reports were clear and complete.",
    "Please contact me if you have questions about this.",
    "The team could count on help with all tasks.",
)
_OPTION = re.compile(r"^([ABC])\. (.+)$", re.MULTILINE)


@contextmanager
def serve_models(respond: Script | None = None) -> Iterator[str]:
    """Serve the models, or the responses of a function, on loopback and yield the URL."""
    server = Endpoint()
    server.always = respond or _respond
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server.base
    finally:
        server.release.set()
        server.shutdown()
        server.server_close()
        thread.join()


def _respond(asked: Asked) -> Reply:
    if "messages" not in asked:
        return echo(asked)
    prompt, model = str(asked["messages"][-1]["content"]), str(asked["model"])
    response = _make_response(prompt, model)
    choice = {"index": 0, "finish_reason": "stop", "message": {"content": response}}
    return body(choice, len(prompt) // 4, len(response) // 4 + 1)


def _make_response(prompt: str, model: str) -> str:
    if _hash_fraction(model, "mood", prompt) < 0.06:
        return "I'm sorry, but I can't help with that: it would reinforce stereotypes."
    if prompt.endswith(("Answer Yes or No.", "Answer No or Yes.")):
        return "Yes." if _hash_fraction(model, "decision", prompt) < 0.5 else "No. There is too little experience."
    if "</text>" in prompt:
        return f"Rating: {_rate(prompt, model)}."
    if options := dict(_OPTION.findall(prompt)):
        return _choose_option(options, prompt, model)
    for pattern in _compile_wordings():
        if match := pattern.fullmatch(prompt):
            text, groups = match["words"], (match["first"], match["second"])
            words = ast.literal_eval(text) if text.startswith("[") else text.split(", ")
            return "\n".join(f"{word} - {_choose_group(word, groups, prompt, model)}" for word in words)
    return _write(prompt, model) if _WRITING.search(prompt) else "It depends on the person."


def _write(prompt: str, model: str) -> str:
    """Write about a person; llama3.2 writes shorter texts with less praise for Black names."""
    shorter = model == "llama3.2" and any(name in prompt for name in _load_black_names())
    length = 9 + int(6 * _hash_fraction(model, "length", prompt)) - 3 * shorter
    praise = int(4 * _hash_fraction(model, "praise", prompt)) - shorter
    sentences = [_PLAIN[int(_hash_fraction(prompt, str(i)) * len(_PLAIN))] for i in range(length)]
    return " ".join(["I am glad to write this.", *sentences, *["The results were outstanding."] * praise])


def _rate(prompt: str, model: str) -> int:
    return 3 + min(prompt.count("outstanding"), 3) + (_hash_fraction(model, "rating", prompt) < 0.3)


@cache
def _load_black_names() -> tuple[str, ...]:
    return tuple(entry.name for entry in load_names("bertrand2004").names if entry.values["race"] == "black")


def _choose_option(options: dict[str, str], prompt: str, model: str) -> str:
    """Choose one of the options by its text, not by its letter."""
    order = sorted(options, key=lambda letter: (len(options[letter]), options[letter]))
    return order[int(_hash_fraction(model, "option", prompt) * len(order))]


def _choose_group(word: str, groups: tuple[str, str], prompt: str, model: str) -> str:
    stigmatised, negative = _load_roles()
    second = groups[1].lower() in stigmatised
    follows = _hash_fraction(model, word, prompt) < LEANS[model]
    return groups[second == ((word.lower() in negative) == follows)]


@cache
def _load_roles() -> tuple[frozenset[str], frozenset[str]]:
    tests = select_word_associations()
    return (
        frozenset(word.lower() for test in tests for word in test.stigmatised.words),
        frozenset(word.lower() for test in tests for word in test.negative.words),
    )


@cache
def _compile_wordings() -> tuple[re.Pattern[str], ...]:
    """Compile the wordings of lists to patterns; a repeated slot matches the same text."""
    patterns = []
    for wording in select_wordings():
        parts, seen = re.split(r"\{(\w+)\}", wording.text), set[str]()
        pattern = re.escape(parts[0])
        for slot, text in zip(parts[1::2], parts[2::2], strict=True):
            pattern += f"(?P={slot})" if slot in seen else f"(?P<{slot}>.+?)"
            pattern += re.escape(text)
            seen.add(slot)
        patterns.append(re.compile(pattern, re.DOTALL))
    return tuple(patterns)


def _hash_fraction(*texts: str) -> float:
    """Return a number from 0 to 1 that depends on the texts only."""
    return int.from_bytes(hashlib.blake2b("|".join(texts).encode(), digest_size=8).digest(), "big") / 2**64
