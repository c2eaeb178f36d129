"""Small tests in sent-bias format, vectors for their words, and parsers of the printed results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from biassay.prompts.sentences import load_frequent_words

SETS = {"targ1": "x", "targ2": "y", "attr1": "a", "attr2": "b"}


def words(letter: str, count: int) -> list[str]:
    return [f"{letter}{i}" for i in range(count)]


def write_test(path: Path, count: int = 4) -> Path:
    """A test in the sent-bias form with ``count`` words a set."""
    path.write_text(
        json.dumps({key: {"category": key, "examples": words(c, count)} for key, c in SETS.items()}, indent=1)
    )
    return path


def write_vectors(path: Path, count: int = 4, lean: float = 0.0, seed: int = 5, frequent: bool = False) -> Path:
    """Write random vectors of a test's words; ``lean`` moves x to a and y to b. Comparisons need ``frequent`` words."""
    rng = np.random.default_rng(seed)
    to = {"x": lean, "a": lean, "y": -lean, "b": -lean}
    lines = [
        f"{word} " + " ".join(repr(float(v)) for v in rng.normal(to[letter], 1.0, 8))
        for letter in "xyab"
        for word in words(letter, count)
    ]
    others = load_frequent_words() if frequent else ()
    lines += [f"{word} " + " ".join(repr(float(v)) for v in rng.normal(size=8)) for word in others]
    path.write_text("\n".join(lines) + "\n")
    return path


def measured(stdout: str) -> dict[str, dict[str, Any]]:
    return {result["test"]: result for result in json.loads(stdout)["results"]}
