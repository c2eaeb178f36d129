"""``infersent:DIR``: InferSent V1 or V2. Word vectors, one bidirectional LSTM, maximum over the words.

Version 1 as released lets the padding of a batch take part in the maximum; here it never does, which is what that code
gives with one sentence at a time. The first line of a fastText file, "count dimension", is not read as a word.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from biassay.errors import ModelError, UnknownNameError, UsageError
from biassay.models.base import Encoded, Identity, Span
from biassay.models.family import Family, ModelName
from biassay.models.hub import DEVICE_HELP, check_device, choose_device
from biassay.models.old_checkpoints import BiRnn, fingerprint, load_tensors
from biassay.models.treebank import Token, treebank_tokens
from biassay.models.vector_files import read_vectors
from biassay.models.vector_text import WordVectors

__all__ = ["FAMILY", "InferSentEncoder", "infersent_tokens", "provide"]

_MARKERS = {"1": ("<s>", "</s>"), "2": ("<p>", "</p>")}
_CHECKPOINTS = (".pkl", ".pickle", ".pt")
_VECTORS = (".txt", ".vec", ".bin", ".npy", ".txt.gz", ".vec.gz", ".bin.gz")
_LAYOUT = f"an InferSent folder holds one checkpoint ({', '.join(_CHECKPOINTS)}) and one file of word vectors"


def provide(model: ModelName) -> InferSentEncoder:
    folder = Path(model.name).expanduser()
    if not folder.is_dir():
        raise ModelError(f"model {model.text!r}: there is no folder {folder}; {_LAYOUT}")
    checkpoint = _only(folder, "checkpoint", _CHECKPOINTS)
    vectors = _only(folder, "file of word vectors", _VECTORS)
    version = _version(model, checkpoint)
    check_device(model)
    return InferSentEncoder(model, checkpoint, vectors, version)


def _only(folder: Path, kind: str, endings: tuple[str, ...]) -> Path:
    found = [file for file in sorted(folder.iterdir()) if file.name.lower().endswith(endings) and file.is_file()]
    if any(file.suffix.lower() == ".npy" for file in found):
        found = [file for file in found if file.name != "words.txt"]  # the words of the array beside it
    if len(found) != 1:
        names = ", ".join(file.name for file in found) or "none"
        raise ModelError(
            f"{folder}: expected one {kind} ({' '.join('*' + e for e in endings)}), got {names}; {_LAYOUT}"
        )
    return found[0]


def _version(model: ModelName, checkpoint: Path) -> str:
    """The version asked for, or that in the file's name; neither tensors nor word vectors show which it is."""
    named = re.search(r"infersent[ _.-]?v?([12])(?!\d)", checkpoint.name.lower())
    version = model.settings.get("version", named[1] if named else None)
    if version is None:
        raise UsageError(
            f"model {model.text!r}: the name {checkpoint.name!r} does not show its version; add ?version=1 (trained on "
            "GloVe) or ?version=2 (trained on fastText)"
        )
    if version not in _MARKERS:
        raise UnknownNameError(f"version of model {model.text!r}:", version, _MARKERS, "(1 or 2)")
    return version


def infersent_tokens(text: str, version: str) -> list[Token]:
    """Words and their places, without the markers of start and end. Version 2 has "doesn 't" for "does n't"."""
    return treebank_tokens(text) if version == "1" else _moses(treebank_tokens(text))


def _moses(tokens: list[Token]) -> list[Token]:
    """What replacing " n't " by "n 't " does to the words joined by blanks: nothing to the first and the last."""
    found, free = list(tokens), 1
    for i in range(1, len(tokens) - 1):
        if i < free or tokens[i][0] != "n't":
            continue
        (word, (start, _)), (_, (middle, end)) = found[i - 1], found[i]
        found[i - 1 : i + 1] = [(word + "n", (start, middle + 1)), ("'t", (middle + 1, end))]
        free = i + 2  # the blank behind is used up, so that an n't right there stays
    return found


class InferSentEncoder:
    """A word without a vector is dropped and reported. A text of such words only has the vector of its markers."""

    batch_size = 256

    def __init__(self, model: ModelName, checkpoint: Path, vectors: Path, version: str) -> None:
        self._model, self._checkpoint, self._path, self._version = model, checkpoint, vectors, version
        self._layers: BiRnn | None = None
        self._vectors = WordVectors(0)
        self._asked: set[str] = set()
        self.identity = Identity(
            f"infersent:{Path(os.path.abspath(checkpoint)).parent.name}",
            "infersent",
            fingerprint([checkpoint, vectors]),
            (("version", version),),
            lost_hint=f"words are looked up as written: is {vectors.name} complete, and does it keep capitals?",
        )

    def prepare(self, texts: Sequence[str]) -> None:
        self._ready({word for text in texts for word, _ in infersent_tokens(text, self._version)})

    def _ready(self, words: Collection[str]) -> BiRnn:
        """Weights, and the vectors of words that were not looked for before."""
        if self._layers is None:
            tensors = load_tensors(self._checkpoint)
            self._layers = BiRnn(self._checkpoint, tensors, "LSTM", "enc_lstm", choose_device(self._model))
        new = ({*words, *_MARKERS[self._version]}) - self._asked
        if new:
            found = read_vectors(self._path, new)
            if found.dimension != self._layers.dimension:
                raise ModelError(
                    f"{self._path}: word vectors of {found.dimension} values, and {self._checkpoint.name} takes "
                    f"{self._layers.dimension}; are they the vectors it was trained on?"
                )
            self._vectors.update(found)
            self._asked |= new
        return self._layers

    def encode(self, texts: Sequence[str]) -> Encoded:
        cut = [infersent_tokens(text, self._version) for text in texts]
        layers = self._ready({word for tokens in cut for word, _ in tokens})
        start, end = _MARKERS[self._version]
        used = [[w for w in (start, *(word for word, _ in tokens), end) if w in self._vectors] for tokens in cut]
        rows = [row for row, words in enumerate(used) if words]
        found = layers.pooled([np.stack([self._vectors[word] for word in used[row]]) for row in rows], "max")
        vectors = np.zeros((len(texts), found.shape[1]), dtype=np.float32)
        vectors[rows] = found
        return Encoded.of(vectors, [self._unknown(text, tokens) for text, tokens in zip(texts, cut, strict=True)])

    def _unknown(self, text: str, tokens: Sequence[Token]) -> tuple[Span, ...]:
        unknown = tuple(span for word, span in tokens if word not in self._vectors)
        return unknown if len(unknown) < len(tokens) else ((0, len(text)),)


@contextmanager
def _selftest(folder: Path) -> Iterator[str]:
    import torch

    from biassay.models.tiny import HIDDEN, SIZE, save_tensors, write_vectors

    layer = torch.nn.LSTM(SIZE, HIDDEN, bidirectional=True)
    save_tensors(folder / "infersent1.pkl", {f"enc_lstm.{name}": t.shape for name, t in layer.state_dict().items()})
    write_vectors(folder, ("<s>", "</s>"))
    yield f"infersent:{folder}"


FAMILY = Family(
    name="infersent",
    form="infersent:DIR",
    about="InferSent V1 or V2 from its checkpoint and word vectors",
    settings={
        "version": "1 (trained on GloVe) or 2 (trained on fastText), where the name of the checkpoint does not show it",
        "device": DEVICE_HELP,
    },
    extra="infersent",
    needs=("torch", "nltk"),
    packages=("torch", "nltk"),
    texts=provide,
    selftest=_selftest,
)
