"""``letters:FILE``: a model of letters, counted in a text file. It encodes texts and fills blanks."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from biassay.plugin import (
    BLANK_COLUMNS,
    Blank,
    BlankScores,
    Identity,
    ModelBackend,
    ModelError,
    ModelName,
    Slot,
    TextEmbeddings,
    UsageError,
    content_digest,
    read_text,
)

__all__ = ["BACKEND", "Letters"]

_VERSION = 1  # version of the code below: increase it whenever a vector or a probability changes
_END = 0  # the piece that ends a word: anything but a letter
_SIZE = 512  # n-grams that vectors count
_BATCH = 16  # blanks
_SHARPNESS = 8  # power of the cosine by which sentences count
_SELFTEST = "This is the red rose. He was late and she was not. Joy is a word of three letters."


class Letters:
    """A model of the letters in a file: n-gram counts, and the probability of the next letter.

    The vector of a text counts the n-grams that are most frequent in the file. The probability of a letter is
    interpolated between contexts of all lengths below ``n`` (Witten and Bell), and a sentence of the file has more
    weight if its vector is near that of the text before the blank. The probability of a word is that of its letters
    followed by its end. The text after the blank is ignored.
    """

    kind: Literal["causal"] = "causal"
    has_mask = False
    folds_case = True
    batch_size = 64

    def __init__(self, model: ModelName) -> None:
        self._path, self._n = Path(model.name), _order(model)
        if not self._path.is_file():
            raise ModelError(f"model {model.head!r}: there is no file {self._path}; name a text file")
        revision = f"{content_digest(self._path)} v{_VERSION}"
        self.identity = Identity(model.head, "letters", revision, tuple(model.settings.items()))

    def prepare(self, requests: Sequence[str] | Sequence[Blank]) -> None:  # noqa: ARG002
        if not self._sentences:
            raise ModelError(f"model {self.identity.name!r}: {self._path} contains no text")

    def encode(self, texts: Sequence[str]) -> TextEmbeddings:
        return TextEmbeddings.from_vectors(self._vectors(texts), [self._unknown(text) for text in texts])

    def batches(self, blanks: Sequence[Blank]) -> list[range]:
        return [range(start, min(start + _BATCH, len(blanks))) for start in range(0, len(blanks), _BATCH)]

    def fill(self, blanks: Sequence[Blank]) -> list[BlankScores]:
        return [self._fill(blank) for blank in blanks]

    def _vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        places = {gram: place for place, gram in enumerate(self._frequent)}
        vectors = np.zeros((len(texts), len(places)), dtype=np.float32)
        for row, text in enumerate(texts):
            for gram in _grams(f" {_plain(text)} ", self._n):
                if gram in places:
                    vectors[row, places[gram]] += 1.0
        return vectors

    def _unknown(self, text: str) -> tuple[tuple[int, int], ...]:
        """Return the spans of words with a letter that is not in the file."""
        words = re.finditer(r"\S+", text)
        return tuple(word.span() for word in words if not self._alphabet.issuperset(_plain(word[0])))

    def _fill(self, blank: Blank) -> BlankScores:
        if Slot.MASKED in blank.segments:
            raise UsageError("a model of letters has no mask, so that no group can be masked")
        before, after = map(_plain, blank.halves(""))
        weights = self._nearness(before)
        known = [self._pieces(before, _plain(word), weights) for word in blank.words]
        columns = np.full((sum(map(len, known)), len(BLANK_COLUMNS)), np.nan, dtype=np.float32)
        columns[:, 0] = [log_p for pieces in known for _, log_p in pieces]
        return BlankScores(
            lengths=np.array([len(pieces) for pieces in known], dtype=np.int32),
            pieces=np.array([piece for pieces in known for piece, _ in pieces], dtype=np.int32),
            columns=columns,
            unknown=sum(letter not in self._alphabet for letter in before + after),
            passes=1,
        )

    def _pieces(self, before: str, word: str, weights: NDArray[np.float64]) -> list[tuple[int, float]]:
        """Return the log-probability of each letter of a word and of its end; empty if the word is unknown."""
        if not self._alphabet.issuperset(word):
            return []
        at = [self._probabilities(before + word[:i], weights) for i in range(len(word) + 1)]
        letters = [(ord(letter), math.log(p[letter])) for letter, p in zip(word, at, strict=False)]
        return [*letters, (_END, math.log(sum(p for letter, p in at[-1].items() if not letter.isalpha())))]

    def _probabilities(self, before: str, weights: NDArray[np.float64]) -> dict[str, float]:
        """Compute the probability of every letter after a text."""
        found = dict.fromkeys(sorted(self._alphabet), 1.0 / len(self._alphabet))
        for length in range(min(self._n, len(before) + 1)):
            following = self._following.get(before[len(before) - length :])
            if following is None:
                break
            counts = {letter: float(weights[sentences].sum()) for letter, sentences in following.items()}
            kinds, total = len(counts), sum(counts.values())
            found = {letter: (counts.get(letter, 0.0) + kinds * p) / (total + kinds) for letter, p in found.items()}
        return found

    def _nearness(self, text: str) -> NDArray[np.float64]:
        """Weight every sentence of the file by its similarity to a text; the mean weight is 1."""
        vectors, own = self._sentence_vectors, self._vectors([text])[0].astype(np.float64)
        cosines = vectors @ own / (np.linalg.norm(vectors, axis=1) * np.linalg.norm(own))
        sharpened = cosines**_SHARPNESS
        weights: NDArray[np.float64] = sharpened / sharpened.mean()
        return weights

    @cached_property
    def _sentences(self) -> list[str]:
        return [f" {text} " for text in re.split(r"(?<=[.!?]) ", _plain(read_text(self._path)).strip()) if text]

    @cached_property
    def _sentence_vectors(self) -> NDArray[np.float64]:
        return self._vectors([sentence.strip() for sentence in self._sentences]).astype(np.float64)

    @cached_property
    def _alphabet(self) -> frozenset[str]:
        return frozenset("".join(self._sentences))

    @cached_property
    def _following(self) -> dict[str, dict[str, list[int]]]:
        """Map every context shorter than n to the letters that follow it, and each letter to its sentences."""
        found: dict[str, dict[str, list[int]]] = {}
        for number, sentence in enumerate(self._sentences):
            for length in range(self._n):
                for i in range(length, len(sentence)):
                    found.setdefault(sentence[i - length : i], {}).setdefault(sentence[i], []).append(number)
        return found

    @cached_property
    def _frequent(self) -> list[str]:
        counts = Counter(gram for sentence in self._sentences for gram in _grams(sentence, self._n))
        return sorted(counts, key=lambda gram: (-counts[gram], gram))[:_SIZE]


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", text.lower())


def _grams(text: str, n: int) -> Iterator[str]:
    for length in range(1, n + 1):
        yield from (text[i : i + length] for i in range(len(text) - length + 1))


def _order(model: ModelName) -> int:
    given = model.settings.get("n", "3")
    if given not in map(str, range(1, 9)):
        raise UsageError(f"model {model.head!r}: n must be a whole number from 1 to 8, got {given!r}")
    return int(given)


@contextmanager
def _selftest(folder: Path) -> Iterator[str]:
    (folder / "text.txt").write_text(_SELFTEST, encoding="utf-8")
    yield f"letters:{folder / 'text.txt'}"


BACKEND = ModelBackend(
    name="letters",
    syntax="letters:FILE",
    description="letters counted in a text file",
    settings={"n": "letters that are counted together, from 1 to 8 (default 3)"},
    packages=("biassay-example",),
    texts=Letters,
    blanks=Letters,
    selftest=_selftest,
)
