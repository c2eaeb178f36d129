"""Encode texts with InferSent V1 or V2 (`infersent:DIR`): word vectors, a bidirectional LSTM, maximum over the words.

The released version 1 includes the padding of a batch in the maximum; here it does not, as if sentences were encoded
one at a time. The header of a fastText file, "count dimension", is not read as a word.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import numpy as np

from biassay.errors import ModelError, UnknownNameError, UsageError
from biassay.models.backend import ModelBackend, ModelName
from biassay.models.base import Identity, Span, TextEmbeddings
from biassay.models.devices import DEVICE_HELP, check_device, choose_device
from biassay.models.recurrent.pickled_checkpoints import (
    BidirectionalRnn,
    fingerprint_files,
    get_only_file,
    load_tensors,
)
from biassay.models.recurrent.treebank import Token, tokenize_treebank
from biassay.models.vector_files import WordVectors, read_vectors

_MARKERS = {"1": ("<s>", "</s>"), "2": ("<p>", "</p>")}
_CHECKPOINT_SUFFIXES = (".pkl", ".pickle", ".pt")
_VECTOR_SUFFIXES = (".txt", ".vec", ".bin", ".npy", ".txt.gz", ".vec.gz", ".bin.gz")
_LAYOUT = f"an InferSent folder has one checkpoint ({', '.join(_CHECKPOINT_SUFFIXES)}) and one word-vector file"


def _find_only_file(folder: Path, kind: str, endings: tuple[str, ...]) -> Path:
    files = [file for file in sorted(folder.iterdir()) if file.name.lower().endswith(endings) and file.is_file()]
    if any(file.suffix.lower() == ".npy" for file in files):
        files = [file for file in files if file.name != "words.txt"]  # words of the .npy array
    return get_only_file(folder, f"{kind} ({' '.join('*' + ending for ending in endings)})", files, _LAYOUT)


def _read_version(model: ModelName, checkpoint: Path) -> str:
    """Return the version from the settings or the file name; tensors and word vectors do not show it."""
    match = re.search(r"infersent[ _.-]?v?([12])(?!\d)", checkpoint.name.lower())
    version = model.settings.get("version", match[1] if match else None)
    if version is None:
        raise UsageError(
            f"model {model.text!r}: the name {checkpoint.name!r} does not show its version; add ?version=1 (trained on "
            "GloVe) or ?version=2 (trained on fastText)"
        )
    if version not in _MARKERS:
        raise UnknownNameError(f"version of model {model.text!r}:", version, _MARKERS, "(1 or 2)")
    return version


def tokenize_infersent(text: str, version: str) -> list[Token]:
    """Return words and spans without boundary markers; version 2 has "doesn 't" for "does n't"."""
    return tokenize_treebank(text) if version == "1" else _apply_moses_rule(tokenize_treebank(text))


def _apply_moses_rule(tokens: list[Token]) -> list[Token]:
    """Replace " n't " by "n 't " as in the joined text, which leaves the first and the last word unchanged."""
    result, free = list(tokens), 1
    for i in range(1, len(tokens) - 1):
        if i < free or tokens[i][0] != "n't":
            continue
        (word, (start, _)), (_, (middle, end)) = result[i - 1], result[i]
        result[i - 1 : i + 1] = [(word + "n", (start, middle + 1)), ("'t", (middle + 1, end))]
        free = i + 2  # the replacement consumed the next space, so an n't there stays
    return result


class InferSentEncoder:
    """Encode texts; out-of-vocabulary words are dropped and reported.

    A text of out-of-vocabulary words only has the vector of its boundary markers.
    """

    batch_size = 256

    def __init__(self, model: ModelName) -> None:
        folder = Path(model.name).expanduser()
        if not folder.is_dir():
            raise ModelError(f"{model.label}: there is no folder {folder}; {_LAYOUT}")
        checkpoint = _find_only_file(folder, "checkpoint", _CHECKPOINT_SUFFIXES)
        vectors = _find_only_file(folder, "word-vector file", _VECTOR_SUFFIXES)
        self._model, self._checkpoint, self._path = model, checkpoint, vectors
        self._version = _read_version(model, checkpoint)
        check_device(model)
        self._layers: BidirectionalRnn | None = None
        self._vectors = WordVectors(0)
        self._requested: set[str] = set()
        self.identity = Identity(
            f"infersent:{Path(os.path.abspath(checkpoint)).parent.name}",
            "infersent",
            fingerprint_files([checkpoint, vectors]),
            (("version", self._version),),
            oov_hint=f"words are looked up as written: is {vectors.name} complete, and does it keep capitals?",
        )

    def prepare(self, texts: Sequence[str]) -> None:
        """Load the weights and the vectors of all words."""
        self._load({word for text in texts for word, _ in tokenize_infersent(text, self._version)})

    def _load(self, words: Collection[str]) -> BidirectionalRnn:
        """Load the weights and the vectors of words that were not requested before."""
        if self._layers is None:
            tensors = load_tensors(self._checkpoint)
            self._layers = BidirectionalRnn(self._checkpoint, tensors, "LSTM", "enc_lstm", choose_device(self._model))
        new = ({*words, *_MARKERS[self._version]}) - self._requested
        if new:
            vectors = read_vectors(self._path, new)
            if vectors.dimension != self._layers.dimension:
                raise ModelError(
                    f"{self._path}: the word vectors have {vectors.dimension} dimensions, but {self._checkpoint.name} "
                    f"expects {self._layers.dimension}; use the vectors it was trained on"
                )
            self._vectors.update(vectors)
            self._requested |= new
        return self._layers

    def encode(self, texts: Sequence[str]) -> TextEmbeddings:
        """Return one vector per text, with its out-of-vocabulary words."""
        token_lists = [tokenize_infersent(text, self._version) for text in texts]
        layers = self._load({word for tokens in token_lists for word, _ in tokens})
        start, end = _MARKERS[self._version]
        known = [
            [w for w in (start, *(word for word, _ in tokens), end) if w in self._vectors] for tokens in token_lists
        ]
        rows = [row for row, words in enumerate(known) if words]
        pooled = layers.pool([np.stack([self._vectors[word] for word in known[row]]) for row in rows], "max")
        vectors = np.zeros((len(texts), pooled.shape[1]), dtype=np.float32)
        vectors[rows] = pooled
        return TextEmbeddings.from_vectors(
            vectors, [self._unknown(text, tokens) for text, tokens in zip(texts, token_lists, strict=True)]
        )

    def _unknown(self, text: str, tokens: Sequence[Token]) -> tuple[Span, ...]:
        unknown = tuple(span for word, span in tokens if word not in self._vectors)
        return unknown if len(unknown) < len(tokens) else ((0, len(text)),)


def _selftest(folder: Path) -> AbstractContextManager[str]:
    import torch

    from biassay.models.selftest import TINY_HIDDEN_SIZE, TINY_SIZE, save_tensors, write_tiny_vectors

    layer = torch.nn.LSTM(TINY_SIZE, TINY_HIDDEN_SIZE, bidirectional=True)
    save_tensors(folder / "infersent1.pkl", {f"enc_lstm.{name}": t.shape for name, t in layer.state_dict().items()})
    write_tiny_vectors(folder, ("<s>", "</s>"))
    return nullcontext(f"infersent:{folder}")


BACKEND = ModelBackend(
    name="infersent",
    syntax="infersent:DIR",
    description="InferSent V1 or V2",
    settings={
        "version": "1 (trained on GloVe) or 2 (trained on fastText); by default from the name of the checkpoint",
        "device": DEVICE_HELP,
    },
    extra="infersent",
    needs=("torch", "nltk"),
    packages=("torch", "nltk"),
    texts=InferSentEncoder,
    selftest=_selftest,
)
