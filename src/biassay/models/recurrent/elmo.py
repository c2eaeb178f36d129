"""Encode texts and words in context with ELMo (`elmo:DIR`)."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from biassay.errors import ModelError, VectorError
from biassay.models.backend import ModelBackend, ModelName, read_choice_setting
from biassay.models.base import (
    ContextEmbeddings,
    Identity,
    Span,
    TextEmbeddings,
    check_spans,
    reject_settings,
)
from biassay.models.devices import DEVICE_HELP, check_device, choose_device
from biassay.models.recurrent.pickled_checkpoints import get_only_file
from biassay.models.vector_files import file_fingerprint
from biassay.models.word_vectors import tokenize

if TYPE_CHECKING:
    from torch import Tensor

    from biassay.models.recurrent.elmo_network import ElmoNetwork


N_CHARACTERS = 261  # 256 bytes, start and end of text, start and end of word, padding
_LAYOUT = "an ELMo folder has options.json and weights.hdf5, of one model"
_ACTIVATIONS = ("relu", "tanh")


@dataclass(frozen=True)
class ElmoOptions:
    """Architecture from options.json; `filters` holds (width, count), and a clip of None does not clip."""

    embedding: int
    filters: tuple[tuple[int, int], ...]
    highways: int
    activation: str
    word_length: int
    layers: int
    cell: int
    projection: int
    cell_clip: float | None
    projection_clip: float | None
    skip: bool


def _find_file(folder: Path, word: str, suffix: str) -> Path:
    """Return the file named ``word + suffix``, or else the only file whose name contains the word."""
    exact = folder / f"{word}{suffix}"
    files = [exact] if exact.is_file() else sorted(p for p in folder.glob(f"*{word}*{suffix}") if p.is_file())
    return get_only_file(folder, f"{exact.name} or *{word}*{suffix}", files, _LAYOUT)


def read_elmo_options(path: Path) -> ElmoOptions:
    """Read and check options.json."""
    try:
        content = json.loads(path.read_bytes())
        cnn, lstm = content["char_cnn"], content["lstm"]
        options = ElmoOptions(
            embedding=cnn["embedding"]["dim"],
            filters=tuple((width, count) for width, count in cnn["filters"]),
            highways=cnn["n_highway"] or 0,
            activation=cnn["activation"],
            word_length=cnn["max_characters_per_token"],
            layers=lstm["n_layers"],
            cell=lstm["dim"],
            projection=lstm["projection_dim"],
            cell_clip=lstm["cell_clip"],
            projection_clip=lstm["proj_clip"],
            skip=bool(lstm["use_skip_connections"]),
        )
        # Published files have 261 characters, or 262 with a padding row that the weights do not contain.
        is_known = cnn["n_characters"] in (N_CHARACTERS, N_CHARACTERS + 1) and options.activation in _ACTIVATIONS
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ModelError(f"{path}: not the options file of an ELMo: {error!r}") from error
    sizes = (options.embedding, options.word_length, options.layers, options.cell, options.projection)
    if not (is_known and options.filters and all(type(size) is int and size > 0 for size in sizes)):
        raise ModelError(
            f"{path}: expected {N_CHARACTERS} or {N_CHARACTERS + 1} characters, filters, the activation "
            f"{' or '.join(_ACTIVATIONS)}, and whole numbers above 0; is this the options file of an ELMo?"
        )
    widest = max(width for width, _ in options.filters)
    if widest > options.word_length:
        raise ModelError(f"{path}: a filter is {widest} characters wide, but words have only {options.word_length}")
    return options


class ElmoEncoder:
    """Encode texts with a character CNN and a biLSTM, pooled over the words and then over the layers.

    Every text starts from a zero state. The published code carries the state of one text over to the next.
    """

    batch_size = 512

    def __init__(self, model: ModelName) -> None:
        reject_settings(model, "word")
        folder = Path(os.path.abspath(Path(model.name).expanduser()))  # so that "elmo:." has a name
        if not folder.is_dir():
            raise ModelError(f"{model.label}: there is no folder {model.name}; {_LAYOUT}")
        options_path, self._weights = _find_file(folder, "options", ".json"), _find_file(folder, "weights", ".hdf5")
        self._options = read_elmo_options(options_path)
        layers = ("sum", "concat", *map(str, range(self._options.layers + 1)))
        self._pool = read_choice_setting(model, "pool", ("mean", "max"), "mean")
        self._layers = read_choice_setting(model, "layers", layers, "sum")
        self._device = "auto" if check_device(model) == "auto" else choose_device(model)
        self._network: ElmoNetwork | None = None
        fingerprints = file_fingerprint(options_path) + file_fingerprint(self._weights)
        self.identity = Identity(
            f"elmo:{folder.name}",
            "elmo",
            hashlib.blake2b(fingerprints.encode(), digest_size=16).hexdigest(),
            (("pool", self._pool), ("layers", self._layers)),
        )

    def load(self) -> ElmoNetwork:
        """Return the network; the first call reads the weights."""
        if self._network is None:
            from biassay.models.recurrent.elmo_network import ElmoNetwork, list_datasets, read_weights

            weights = read_weights(self._weights, list_datasets(self._options))
            self._network = ElmoNetwork(self._options, weights, self._device)
        return self._network

    def _words(self, text: str) -> list[str]:
        words = [word for word, _ in tokenize(text)]
        if not words:
            raise VectorError(f"model {self.identity.name!r}: the text {text!r} has no words, so it has no vector")
        return words

    def prepare(self, texts: Sequence[str]) -> None:
        """Check that every text has words; load the weights."""
        for text in texts:
            self._words(text)
        self.load()

    def encode(self, texts: Sequence[str]) -> TextEmbeddings:
        """Return one vector per text."""
        import torch

        pooled = {
            row: self.join_layers(states.mean(dim=1) if self._pool == "mean" else states.amax(dim=1))
            for row, states in self.load().run([self._words(text) for text in texts])
        }
        return TextEmbeddings.from_vectors(torch.stack([pooled[row] for row in range(len(texts))]).cpu().numpy())

    def join_layers(self, by_layer: Tensor) -> Tensor:
        """Combine vectors (layers + 1, d) into one, as the setting ``layers`` says."""
        if self._layers == "sum":
            return by_layer.sum(dim=0)
        return by_layer.flatten() if self._layers == "concat" else by_layer[int(self._layers)]


def _selftest(folder: Path) -> AbstractContextManager[str]:
    from biassay.models.recurrent.elmo_network import list_datasets
    from biassay.models.selftest import TINY_HIDDEN_SIZE, TINY_SIZE, make_random_arrays

    cnn = {"activation": "relu", "filters": [[1, 3], [2, 4]], "n_highway": 1, "embedding": {"dim": 4}}
    cnn |= {"n_characters": 262, "max_characters_per_token": 50}
    clips = {"cell_clip": 3, "proj_clip": 3}
    lstm = {"use_skip_connections": True, "projection_dim": TINY_SIZE, "dim": TINY_HIDDEN_SIZE, "n_layers": 2, **clips}
    (folder / "options.json").write_text(json.dumps({"lstm": lstm, "char_cnn": cnn}))
    with import_module("h5py").File(folder / "weights.hdf5", "w") as file:
        for name, array in make_random_arrays(list_datasets(read_elmo_options(folder / "options.json"))).items():
            file[name] = array
    return nullcontext(f"elmo:{folder}")


NOT_COVERED = "no token covers the word"
_PLACEHOLDER_TOKENS = ["."]  # replaces a text without the word; its vector is never used


class ElmoWordEncoder:
    """Encode a word in context as its last token, its first token, or the mean of all its tokens."""

    def __init__(self, model: ModelName) -> None:
        reject_settings(model, "pool")
        self._part = read_choice_setting(model, "word", ("last", "first", "mean"), "last")
        self._encoder = encoder = ElmoEncoder(model.drop_setting("word"))
        settings = {"word": self._part} | {name: value for name, value in encoder.identity.settings if name != "pool"}
        self.identity = dataclasses.replace(encoder.identity, settings=tuple(settings.items()))
        self.batch_size = encoder.batch_size

    def prepare(self) -> None:
        """Load the weights."""
        self._encoder.load()

    def encode_words(self, texts: Sequence[str], spans: Sequence[Span]) -> ContextEmbeddings:
        """Return one vector per text, that of the word at its span."""
        import torch

        check_spans(texts, spans)
        located = [_locate_word(text, span) for text, span in zip(texts, spans, strict=True)]
        states = self._encoder.load().run([tokens for tokens, _ in located])
        by_row = {row: self._pool_word(tensor, located[row][1]) for row, tensor in states}
        vectors = torch.stack([by_row[row] for row in range(len(texts))]).cpu().numpy()
        missing = [None if positions else NOT_COVERED for _, positions in located]
        return ContextEmbeddings.from_vectors(self.identity.name, texts, np.asarray(vectors, dtype=np.float32), missing)

    def _pool_word(self, states: Tensor, positions: list[int]) -> Tensor:
        """Pool the states (layers + 1, words, d) of a word's tokens."""
        first, last = (positions[0], positions[-1]) if positions else (0, 0)
        if self._part == "mean":
            return self._encoder.join_layers(states[:, first : last + 1].mean(dim=1))
        return self._encoder.join_layers(states[:, last if self._part == "last" else first])


def _locate_word(text: str, span: Span) -> tuple[list[str], list[int]]:
    """Return the tokens of a text and the positions of those that overlap a span."""
    start, end = span
    tokens = tokenize(text)
    positions = [i for i, (_, (a, b)) in enumerate(tokens) if a < end and start < b]
    return ([token for token, _ in tokens], positions) if positions else (_PLACEHOLDER_TOKENS, [])


BACKEND = ModelBackend(
    name="elmo",
    syntax="elmo:DIR",
    description="ELMo",
    settings={
        "pool": "texts: mean (default) or max over the words",
        "word": "words in context: last (default), first or mean of the word's tokens",
        "layers": "sum (default), concat, or the number of one layer",
        "device": DEVICE_HELP,
    },
    extra="elmo",
    needs=("torch", "h5py"),
    packages=("torch", "h5py"),
    texts=ElmoEncoder,
    words=ElmoWordEncoder,
    selftest=_selftest,
)
