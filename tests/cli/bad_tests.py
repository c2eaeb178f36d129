"""A good test in the sent-bias form, to be spoiled, and encoders that return bad vectors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .small_tests import SETS, words

ENCODERS = """
import numpy as np

def vectors(texts, d=8):
    return np.random.default_rng(0).normal(size=(len(texts), d))

class Zero:
    def encode(self, texts):
        found = vectors(texts)
        found[texts.index("y2")] = 0.0
        return found

class Nan:
    def encode(self, texts):
        found = vectors(texts)
        found[texts.index("y2"), 3] = np.nan
        return found

class NoneRow:
    def encode(self, texts):
        return [None if text == "y2" else vector for text, vector in zip(texts, vectors(texts))]

class NanRow:
    def encode(self, texts):
        found = vectors(texts)
        found[[text == "y2" for text in texts]] = np.nan
        return found

class Cached(NoneRow):
    revision = "1"

class Growing:
    calls = 0
    def encode(self, texts):
        self.calls += 1
        return vectors(texts, 8 + self.calls)
"""


def content(count: int = 4) -> dict[str, Any]:
    return {key: {"category": key.upper(), "examples": words(c, count)} for key, c in SETS.items()}


def write_test(path: Path, given: Any = None) -> Path:
    path.write_text(json.dumps(content() if given is None else given, indent=1))
    return path
