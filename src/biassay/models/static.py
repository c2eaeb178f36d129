"""``vectors:PATH`` and ``glove``: static word vectors. A text is the mean of its words' vectors (CBoW)."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from biassay.errors import UnknownNameError, VectorFileError
from biassay.models.base import Encoded, Identity, Span
from biassay.models.family import Family, ModelName
from biassay.models.vector_files import FORMATS, check_format, file_fingerprint, read_vectors
from biassay.models.vector_text import BEGINNING, WordVectors

if TYPE_CHECKING:
    from biassay.models.vocabulary import Block

__all__ = [
    "GLOVE",
    "VECTORS",
    "StaticEncoder",
    "embedded_vectors",
    "frequent_words",
    "provide",
    "provide_embedded",
    "tokens",
]

# Letters, digits and, beyond the Latin blocks, whatever is neither punctuation nor a symbol: vowel signs, accents.
_LETTER = r"(?:\w|[^\x00-\u02ff\u2000-\u2bff\u3000-\u303f\ufe10-\uff0f\s])"
_TOKEN = re.compile(rf"['’][sS]\b|{_LETTER}+(?:[-'’](?![sS]\b){_LETTER}+)*|\S")
_DATA = resources.files("biassay.models") / "data"
_CASES = ("keep", "fold")
_ENOUGH = 20  # neighbours that tell an alphabetical order from chance


def tokens(text: str) -> list[tuple[str, Span]]:
    """Words, possessive endings and punctuation marks with their places; inner hyphens join."""
    return [(match.group(), match.span()) for match in _TOKEN.finditer(text)]


def provide(model: ModelName) -> StaticEncoder:
    case = model.settings.get("case", "keep")
    if case not in _CASES:
        raise UnknownNameError("case", case, _CASES, "(keep: as written; fold: lower-cased)")
    file_format = model.settings.get("format")
    if file_format is not None:
        check_format(file_format)
    path = Path(model.name).expanduser()
    if not path.is_file():
        raise VectorFileError(f"{path}: no such file of vectors")
    identity = Identity(
        f"vectors:{path.name}",
        "vectors",
        file_fingerprint(path),
        tuple({"case": case, **model.settings}.items()),
        lost_hint="if the vocabulary is lower-cased, add ?case=fold to the model" if case == "keep" else "",
    )

    def load(words: Collection[str]) -> WordVectors:
        found = read_vectors(path, words, file_format)
        _check_unchanged(path, identity)
        return found

    def stream() -> Iterator[Block]:
        from biassay.models.vocabulary import vocabulary_blocks

        yield from vocabulary_blocks(path, file_format)
        _check_unchanged(path, identity)

    return StaticEncoder(identity, load, stream, fold=case == "fold")


def _check_unchanged(path: Path, identity: Identity) -> None:
    if file_fingerprint(path) != identity.revision:
        raise VectorFileError(f"{path}: the file changed while it was read; run again")


def provide_embedded(_: ModelName) -> StaticEncoder:
    provenance = _provenance()
    revision = f"{provenance['vectors']}, {provenance['npz_sha256'][:16]}"
    hint = "the embedded vectors hold 20,000 words and those of the shipped tests; vectors:PATH reads a larger file"
    identity = Identity("glove", "glove", revision, lost_hint=hint)

    def stream() -> Iterator[Block]:
        from biassay.models.vocabulary import array_blocks

        # Not the words that tests added: to have rare words of some kinds only would bend every ranking.
        words, matrix = _embedded()
        return array_blocks(words[: _frequent()], matrix[: _frequent()])

    return StaticEncoder(identity, lambda _: embedded_vectors(), stream, fold=True)


def frequent_words() -> list[str]:
    """The most frequent words of the embedded vectors, most frequent first."""
    return _embedded()[0][: _frequent()]


def _frequent() -> int:
    return int(_provenance()["most_frequent"])


def _provenance() -> dict[str, Any]:
    content: dict[str, Any] = json.loads((_DATA / "glove.json").read_text(encoding="utf-8"))
    return content


def embedded_vectors() -> WordVectors:
    """All embedded GloVe vectors, most frequent words first."""
    words, matrix = _embedded()
    vectors = WordVectors(matrix.shape[1])
    vectors.update(zip(words, matrix, strict=True))
    vectors.places = {word: place for place, word in enumerate(words[: _frequent()], 1)}
    vectors.beginning = words[:BEGINNING]
    return vectors


def _embedded() -> tuple[list[str], NDArray[np.float32]]:
    with (_DATA / "glove.npz").open("rb") as file, np.load(file) as archive:
        return archive["words"].tobytes().decode().split("\n"), archive["vectors"].astype(np.float32)


class StaticEncoder:
    """Mean of word vectors. Words that the vocabulary lacks are left out of the mean and reported as unknown."""

    batch_size = 4096

    def __init__(
        self,
        identity: Identity,
        load: Callable[[Collection[str]], WordVectors],
        stream: Callable[[], Iterator[Block]],
        *,
        fold: bool,
    ) -> None:
        self.identity, self.folds_case = identity, fold
        self._load, self._stream = load, stream
        self._vectors = WordVectors(0)
        self._asked: set[str] = set()

    def _tokens(self, text: str) -> list[tuple[str, Span]]:
        found = tokens(text)
        return [(token.lower(), span) for token, span in found] if self.folds_case else found

    def prepare(self, texts: Sequence[str]) -> None:
        self._ready({token for text in texts for token, _ in self._tokens(text)})

    def _ready(self, words: set[str]) -> None:
        """Vectors of words that were not looked for before."""
        new = words - self._asked
        if new or not self._vectors.dimension:
            found = self._load(new)
            found.update(self._vectors)
            found.places.update(self._vectors.places)
            self._vectors = found
            self._asked |= new

    def encode(self, texts: Sequence[str]) -> Encoded:
        parts_of = [self._tokens(text) for text in texts]
        self._ready({token for parts in parts_of for token, _ in parts})
        vectors = np.zeros((len(texts), self._vectors.dimension), dtype=np.float32)
        unknown = []
        for row, parts in enumerate(parts_of):
            known = [self._vectors[token] for token, _ in parts if token in self._vectors]
            if known:
                vectors[row] = np.mean(known, axis=0, dtype=np.float64)
            unknown.append(tuple(span for token, span in parts if token not in self._vectors))
        return Encoded.of(vectors, unknown)

    def count_tokens(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Words and marks of every text, known or not."""
        return np.array([len(self._tokens(text)) for text in texts], dtype=np.int64)

    def rank_words(self, words: Sequence[str]) -> NDArray[np.float64] | None:
        """Places of words among all words of the file; files hold the most frequent first.

        NaN for words that it lacks, and for texts of several words. None: its words are in order of the alphabet.
        """
        own = [[token for token, _ in self._tokens(word)] for word in words]
        self._ready({tokens[0] for tokens in own if len(tokens) == 1})
        if _is_alphabetical(self._vectors.beginning):
            return None
        places = self._vectors.places
        return np.array([places.get(tokens[0], np.nan) if len(tokens) == 1 else np.nan for tokens in own], dtype=float)

    def vocabulary(self) -> Iterator[Block]:
        """All words as they stand in the file, whatever the case of texts, with their vectors.

        Only the most frequent words of the embedded vectors.
        """
        return self._stream()


def _is_alphabetical(words: Sequence[str]) -> bool:
    """Do nearly all words come before the next one in the alphabet? In order of frequency half of them do."""
    pairs = [first.lower() <= second.lower() for first, second in itertools.pairwise(words)]
    return len(pairs) >= _ENOUGH and sum(pairs) > 0.9 * len(pairs)


@contextmanager
def _selftest_embedded(_: Path) -> Iterator[str]:
    yield "glove"


@contextmanager
def _selftest(folder: Path) -> Iterator[str]:
    from biassay.models.tiny import write_vectors

    yield f"vectors:{write_vectors(folder)}"


GLOVE = Family(
    name="glove",
    form="glove",
    about="GloVe 6B word vectors, shipped with the package",
    texts=provide_embedded,
    splits=False,
    title="GloVe 6B, 100 dimensions",
    work="pennington2014",
    selftest=_selftest_embedded,
)
VECTORS = Family(
    name="vectors",
    form="vectors:PATH",
    about="any file of word vectors",
    settings={
        "case": "keep (the default: words as written) or fold (lower-cased first)",
        "format": f"{', '.join(FORMATS)}; by default what the name and the first lines say",
    },
    texts=provide,
    splits=False,  # the file is read once for all texts
    selftest=_selftest,
)
