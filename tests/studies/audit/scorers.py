"""Scorers of made-up documents, as a user would write them in a module."""

from __future__ import annotations

import hashlib
import os
import re
import signal
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from biassay.cli import main

GROUPS = ("black female", "black male", "white female", "white male")


def call(*arguments: str) -> object:
    """Run a command in this process and return its exit code."""
    try:
        main(list(arguments))
    except SystemExit as ended:
        return ended.code
    return 0


def hash_to_normal(text: str) -> float:
    """Return a number that looks like a draw from a normal distribution, the same for the same text."""
    digest = hashlib.blake2b(text.encode(), digest_size=64).digest()
    return float((np.frombuffer(digest, dtype=np.uint64) / 2.0**64 - 0.5).sum() * np.sqrt(12.0 / 8.0))


def score(texts: Sequence[str]) -> list[float]:
    """Score documents "NAME wrote report NUMBER": reports differ with an SD of about 1, names of about .1."""
    found = []
    for text in texts:
        name, report = text.split(" wrote ")
        found.append(hash_to_normal(report) + 0.1 * hash_to_normal(name) + 0.1 * hash_to_normal(text))
    return found


score.revision = "1"  # type: ignore[attr-defined]


def biased(texts: Sequence[str]) -> list[float]:
    """Score the same, lower for some names, and less so in some reports."""
    lower = re.compile("Aisha|Keisha|Tamika|Lakisha|Tanisha|Latoya|Kenya|Latonya|Ebony")
    shifts = [(0.8 + 0.1 * hash_to_normal(text[::-1])) if lower.match(text) else 0.0 for text in texts]
    return [value - shift for value, shift in zip(score(texts), shifts, strict=True)]


def pairs(queries: Sequence[str], documents: Sequence[str]) -> list[list[float]]:
    """Score documents for queries, as a column, as some libraries do."""
    return [[hash_to_normal(query + document)] for query, document in zip(queries, documents, strict=True)]


def nan(texts: Sequence[str]) -> list[float]:
    return [float("nan")] * len(texts)


def too_few(texts: Sequence[str]) -> list[float]:
    return [1.0] * (len(texts) - 1)


def yes_or_no(texts: Sequence[str]) -> list[bool]:
    """Accept or reject, as a classifier does."""
    return [value > 0 for value in score(texts)]


def constant(texts: Sequence[str]) -> list[float]:
    return [0.5] * len(texts)


def words(texts: Sequence[str]) -> list[str]:
    return ["high"] * len(texts)


def broken(texts: Sequence[str]) -> list[float]:  # noqa: ARG001
    raise RuntimeError("no GPU left")


_calls = 0


def changing(texts: Sequence[str]) -> list[float]:
    global _calls
    _calls += 1
    return [len(text) + _calls for text in texts]


def centred(texts: Sequence[str]) -> list[float]:
    values = np.array(score(texts))
    return list(values - values.mean())


def killed(texts: Sequence[str]) -> list[float]:
    """Score like `score`, but kill the process in the second large batch unless the file "again" exists."""
    global _calls
    _calls += len(texts) > 100
    if _calls == 2 and not Path("again").exists():
        os.kill(os.getpid(), signal.SIGKILL)
    return score(texts)


killed.revision = "1"  # type: ignore[attr-defined]
