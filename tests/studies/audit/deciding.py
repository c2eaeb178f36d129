"""Endpoints that decide about people, with known differences between groups of names."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tests.models.answer_server import body
from tests.models.api_server import Asked, Endpoint, Reply, Script

FEMALE = [f"F{letter}la" for letter in "abcdefghijklmnopqrst"]
MALE = [f"M{letter}ro" for letter in "abcdefghijklmnopqrst"]
_NAMES = re.compile(rf"\b({'|'.join(FEMALE + MALE)})\b")


def write_material(folder: Path, n_names: int = 10, n_documents: int = 8) -> tuple[str, str]:
    """Write names of two groups and documents, and return their paths."""
    lines = ["name,group,sex,unit"]
    lines += [f"{name},women,female,{name}" for name in FEMALE[:n_names]] + [
        f"{name},men,male,{name}" for name in MALE[:n_names]
    ]
    (folder / "names.csv").write_text("\n".join(lines), encoding="utf-8")
    documents = [f"{{name}} wrote report {number}." for number in range(n_documents)]
    (folder / "documents.txt").write_text("\n".join(documents), encoding="utf-8")
    return str(folder / "names.csv"), str(folder / "documents.txt")


def uniform(*parts: str) -> float:
    """Return a number from 0 to 1 that depends on nothing but the texts."""
    digest = hashlib.blake2b("|".join(parts).encode(), digest_size=8).digest()
    return float(int.from_bytes(digest) / 2**64)


def normal(*parts: str) -> float:
    """Return a number that looks like a draw from a normal distribution, the same for the same texts."""
    digest = hashlib.blake2b("|".join(parts).encode(), digest_size=64).digest()
    return float((np.frombuffer(digest, dtype=np.uint64) / 2.0**64 - 0.5).sum() * np.sqrt(12.0 / 8.0))


def find_names(text: str) -> list[str]:
    """Return the names of a prompt in order."""
    return _NAMES.findall(text)


def text_of(asked: Asked) -> str:
    return str(asked["messages"][-1]["content"])


def responding(respond: Callable[[str], str]) -> Script:
    def script(asked: Asked) -> Reply:
        text = text_of(asked)
        response = respond(text)
        choice: dict[str, Any] = {"index": 0, "finish_reason": "stop", "message": {"content": response}}
        return body(choice, len(text) // 4, len(response) // 4 + 1)

    return script


def say_yes(rate: Callable[[str], float], names: float = 0.0) -> Script:
    """Say Yes with a probability that depends on the name: on its group by `rate`, and by `names` on itself."""

    def respond(text: str) -> str:
        (name,) = find_names(text)
        p = rate(name) + names * normal("own", name) + 0.1 * normal("document", _NAMES.sub("", text))
        return "Yes." if uniform("yes", text) < p else "No, there is not enough in the report."

    return responding(respond)


def is_woman(name: str) -> bool:
    return name.startswith("F")


def choosing(weigh: Callable[[str, int], float]) -> Script:
    """Choose the candidate with the highest weight, given name and position."""

    def respond(text: str) -> str:
        names = find_names(text)
        weights = [weigh(name, i) + normal(name, text) for i, name in enumerate(names)]
        return f"Candidate {'ABCDEFGH'[int(np.argmax(weights))]}"

    return responding(respond)


def model_of(server: Endpoint, settings: str = "") -> str:
    return f"chat:toy?base_url={server.base}&concurrency=8&max_tokens=50&retries=0{settings}"
