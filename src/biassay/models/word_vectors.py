"""The ``vectors:PATH`` and ``glove`` backends: a text is the mean of its word vectors (CBoW)."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.errors import VectorFileError
from biassay.models.backend import ModelBackend, ModelName, read_choice_setting
from biassay.models.base import Identity, Span, TextEmbeddings
from biassay.models.vector_files import (
    FORMATS,
    N_FIRST_WORDS,
    VocabularyBlock,
    WordVectors,
    file_fingerprint,
    iter_arrays,
    iter_file,
    read_vectors,
    validate_format,
)

# Letters, digits and, beyond the Latin blocks, everything except punctuation and symbols: vowel signs, accents.
_LETTER = r"(?:\w|[^\x00-\u02ff\u2000-\u2bff\u3000-\u303f\ufe10-\uff0f\s])"
_TOKEN = re.compile(rf"['’][sS]\b|{_LETTER}+(?:[-'’](?![sS]\b){_LETTER}+)*|\S")
_DATA = resources.files("biassay.models") / "data"
_MIN_PAIRS = 20  # neighbouring words needed to tell alphabetical order from chance


def tokenize(text: str) -> list[tuple[str, Span]]:
    """Split a text into words, possessive endings and punctuation marks with their spans; inner hyphens join."""
    return [(match.group(), match.span()) for match in _TOKEN.finditer(text)]


def open_model(model: ModelName) -> WordVectorEncoder:
    """Open ``vectors:PATH``."""
    case = read_choice_setting(model, "case", ("keep", "fold"), "keep")
    file_format = model.settings.get("format")
    validate_format(file_format)
    path = Path(model.name).expanduser()
    if not path.is_file():
        raise VectorFileError(f"{model.label}: there is no file {path}; check the path")
    identity = Identity(
        f"vectors:{path.name}",
        "vectors",
        file_fingerprint(path),
        tuple({"case": case, **model.settings}.items()),
        oov_hint="if the vocabulary is lower-cased, add ?case=fold to the model" if case == "keep" else "",
    )

    def load(words: Collection[str]) -> WordVectors:
        vectors = read_vectors(path, words, file_format)
        _check_unchanged(path, identity)
        return vectors

    def stream() -> Iterator[VocabularyBlock]:
        yield from iter_file(path, file_format)
        _check_unchanged(path, identity)

    return WordVectorEncoder(identity, load, stream, fold_case=case == "fold")


def _check_unchanged(path: Path, identity: Identity) -> None:
    if file_fingerprint(path) != identity.revision:
        raise VectorFileError(f"{path}: the file changed while it was read; run again")


def open_embedded_model(_: ModelName) -> WordVectorEncoder:
    """Open ``glove``, the vectors shipped with the package."""
    provenance = _read_provenance()
    revision = f"{provenance['vectors']}, {provenance['npz_sha256'][:16]}"
    hint = "use vectors:PATH for more words than the bundled 20,000 and those of the shipped tests"
    identity = Identity("glove", "glove", revision, oov_hint=hint)

    def stream() -> Iterator[VocabularyBlock]:
        # Without the words added for tests: rare words of a few kinds only would distort every ranking.
        words, matrix = _read_embedded()
        n_frequent = _count_frequent()
        return iter_arrays(words[:n_frequent], matrix[:n_frequent])

    return WordVectorEncoder(identity, lambda _: load_embedded_vectors(), stream, fold_case=True)


def frequent_words() -> list[str]:
    """Return the most frequent words of the embedded vectors, most frequent first."""
    return _read_embedded()[0][: _count_frequent()]


def load_embedded_vectors() -> WordVectors:
    """Return all embedded GloVe vectors, most frequent words first."""
    words, matrix = _read_embedded()
    vectors = WordVectors(matrix.shape[1])
    vectors.update(zip(words, matrix, strict=True))
    vectors.ranks = {word: rank for rank, word in enumerate(words[: _count_frequent()], 1)}
    vectors.first_words = words[:N_FIRST_WORDS]
    return vectors


def _count_frequent() -> int:
    return int(_read_provenance()["most_frequent"])


def _read_provenance() -> dict[str, Any]:
    content: dict[str, Any] = json.loads((_DATA / "glove.json").read_text(encoding="utf-8"))
    return content


def _read_embedded() -> tuple[list[str], NDArray[np.float32]]:
    with (_DATA / "glove.npz").open("rb") as file, np.load(file) as archive:
        return archive["words"].tobytes().decode().split("\n"), archive["vectors"].astype(np.float32)


class WordVectorEncoder:
    """Encode texts as means of word vectors.

    Out-of-vocabulary words are left out of the mean and reported as unknown.

    Parameters
    ----------
    identity : Identity
        Name and revision of the model.
    load : callable
        Function from words to their vectors.
    stream : callable
        Function that iterates over the whole vocabulary.
    fold_case : bool
        If True, texts are lower-cased before words are looked up.
    """

    batch_size = 4096

    def __init__(
        self,
        identity: Identity,
        load: Callable[[Collection[str]], WordVectors],
        stream: Callable[[], Iterator[VocabularyBlock]],
        *,
        fold_case: bool,
    ) -> None:
        self.identity, self.folds_case = identity, fold_case
        self._load, self._stream = load, stream
        self._vectors = WordVectors(0)
        self._requested: set[str] = set()

    def _tokenize(self, text: str) -> list[tuple[str, Span]]:
        tokens = tokenize(text)
        return [(token.lower(), span) for token, span in tokens] if self.folds_case else tokens

    def prepare(self, texts: Sequence[str]) -> None:
        """Read the vectors of all words of some texts in one pass over the file."""
        self._load_missing({token for text in texts for token, _ in self._tokenize(text)})

    def _load_missing(self, words: set[str]) -> None:
        """Load the vectors of words that were not requested before."""
        new = words - self._requested
        if new or not self._vectors.dimension:
            vectors = self._load(new)
            vectors.update(self._vectors)
            vectors.ranks.update(self._vectors.ranks)
            self._vectors = vectors
            self._requested |= new

    def encode(self, texts: Sequence[str]) -> TextEmbeddings:
        """Return the mean word vector and the unknown spans of each text."""
        token_lists = [self._tokenize(text) for text in texts]
        self._load_missing({token for tokens in token_lists for token, _ in tokens})
        vectors = np.zeros((len(texts), self._vectors.dimension), dtype=np.float32)
        unknown = []
        for row, tokens in enumerate(token_lists):
            known = [self._vectors[token] for token, _ in tokens if token in self._vectors]
            if known:
                vectors[row] = np.mean(known, axis=0, dtype=np.float64)
            unknown.append(tuple(span for token, span in tokens if token not in self._vectors))
        return TextEmbeddings.from_vectors(vectors, unknown)

    def count_tokens(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return the number of words and punctuation marks of each text, known or not."""
        return np.array([len(self._tokenize(text)) for text in texts], dtype=np.int64)

    def rank_words(self, words: Sequence[str]) -> NDArray[np.float64] | None:
        """Return the position of each word in the file, which lists frequent words first.

        Parameters
        ----------
        words : sequence of str
            Words to look up.

        Returns
        -------
        ndarray of float or None
            Ranks from 1; NaN for out-of-vocabulary words and for texts of several words. None if
            the file is in alphabetical order.
        """
        token_lists = [[token for token, _ in self._tokenize(word)] for word in words]
        self._load_missing({tokens[0] for tokens in token_lists if len(tokens) == 1})
        if _is_alphabetical(self._vectors.first_words):
            return None
        ranks = self._vectors.ranks
        return np.array([ranks.get(t[0], np.nan) if len(t) == 1 else np.nan for t in token_lists], dtype=float)

    def vocabulary(self) -> Iterator[VocabularyBlock]:
        """Iterate over all words as written in the file, whatever the case of texts, with their vectors.

        The embedded model lists only its most frequent words.
        """
        return self._stream()


def _is_alphabetical(words: Sequence[str]) -> bool:
    """Return True if nearly all words precede the next one in the alphabet; by frequency, half of them do."""
    is_ordered = [first.lower() <= second.lower() for first, second in itertools.pairwise(words)]
    return len(is_ordered) >= _MIN_PAIRS and sum(is_ordered) > 0.9 * len(is_ordered)


def _selftest(folder: Path) -> AbstractContextManager[str]:
    from biassay.models.selftest import write_tiny_vectors

    return nullcontext(f"vectors:{write_tiny_vectors(folder)}")


GLOVE = ModelBackend(
    name="glove",
    syntax="glove",
    description="bundled GloVe 6B word vectors",
    texts=open_embedded_model,
    splittable=False,
    title="GloVe 6B, 100 dimensions",
    citation="pennington2014",
    selftest=lambda _: nullcontext("glove"),
)
VECTORS = ModelBackend(
    name="vectors",
    syntax="vectors:PATH",
    description="file of word vectors",
    settings={
        "case": "keep (default: words as written) or fold (lower-case first)",
        "format": f"{', '.join(FORMATS)}; by default detected from the name and the first lines",
    },
    texts=open_model,
    splittable=False,  # the file is read once for all texts
    selftest=_selftest,
)
