"""Words seen before, by their hashes: a set of the words is the witness."""

from __future__ import annotations

import numpy as np
import pytest

from biassay.models import seen
from biassay.models.seen import SeenWords


def by_set(pieces: list[list[str]]) -> list[list[bool]]:
    known: set[str] = set()
    found = []
    for piece in pieces:
        found.append([])
        for word in piece:
            found[-1].append(word not in known)
            known.add(word)
    return found


def pieces_of(words: int, pieces: int) -> list[list[str]]:
    rng = np.random.default_rng(0)
    return [[f"w{i}" for i in rng.integers(0, words, rng.integers(0, 200))] for _ in range(pieces)]


@pytest.mark.parametrize(("words", "longest"), [(50, 1 << 18), (5000, 1 << 18), (5000, 256)])
def test_a_word_is_new_once(words: int, longest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen, "_LONGEST", longest)
    pieces, known = pieces_of(words, 60), SeenWords()
    assert [known.new(piece).tolist() for piece in pieces] == by_set(pieces)


def test_words_that_share_one_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    def colliding(words: list[str]) -> np.ndarray:
        return np.array([len(word) if not word.endswith(" ") else hash(word) for word in words], dtype=np.int64)

    monkeypatch.setattr(seen, "_hashes", colliding)
    pieces, known = pieces_of(500, 60), SeenWords()
    assert [known.new(piece).tolist() for piece in pieces] == by_set(pieces)
