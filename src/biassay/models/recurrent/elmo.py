"""Encode texts and words in context with ELMo (`elmo:DIR`)."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from biassay.errors import ModelError, VectorError
from biassay.models.backend import ModelBackend, ModelName, read_choice_setting
from biassay.models.base import ContextEmbeddings, Identity, Span, TextEmbeddings, check_spans
from biassay.models.devices import DEVICE_HELP, check_device, choose_device
from biassay.models.representation import check_text_settings, check_word_settings
from biassay.models.vector_files import file_fingerprint
from biassay.models.word_vectors import tokenize

if TYPE_CHECKING:
    from torch import Tensor

    from biassay.models.recurrent.elmo_network import ElmoNetwork


__all__ = [
    "BACKEND",
    "NOT_COVERED",
    "N_CHARACTERS",
    "ElmoEncoder",
    "ElmoOptions",
    "ElmoWordEncoder",
    "open_text_encoder",
    "open_word_encoder",
    "read_elmo_options",
]


N_CHARACTERS = 261  # 256 bytes, start and end of text, start and end of word, padding
_POOLS = ("mean", "max")
_ACTIVATIONS = ("relu", "tanh")
_T = TypeVar("_T")


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


def open_text_encoder(model: ModelName) -> ElmoEncoder:
    """Open ``elmo:DIR`` as a text encoder."""
    check_text_settings(model)
    return _open_encoder(model)


def _open_encoder(model: ModelName) -> ElmoEncoder:
    pool = read_choice_setting(model, "pool", _POOLS, "mean")
    folder = Path(os.path.abspath(Path(model.name).expanduser()))  # so that "elmo:." has a name
    if not folder.is_dir():
        raise ModelError(f"{folder}: no such folder; elmo:DIR is a folder with options.json and weights.hdf5")
    options_path, weights_path = _find_file(folder, "options", ".json"), _find_file(folder, "weights", ".hdf5")
    options = read_elmo_options(options_path)
    layers = read_choice_setting(model, "layers", ("sum", "concat", *map(str, range(options.layers + 1))), "sum")
    device = "auto" if check_device(model) == "auto" else choose_device(model)
    fingerprints = file_fingerprint(options_path) + file_fingerprint(weights_path)
    identity = Identity(
        f"elmo:{folder.name}",
        "elmo",
        hashlib.blake2b(fingerprints.encode(), digest_size=16).hexdigest(),
        (("pool", pool), ("layers", layers)),
    )
    return ElmoEncoder(identity, options, weights_path, pool=pool, layers=layers, device=device)


def _find_file(folder: Path, word: str, suffix: str) -> Path:
    """Return the file named ``word + suffix``, or else the only file whose name contains the word."""
    exact = folder / f"{word}{suffix}"
    files = [exact] if exact.is_file() else sorted(p for p in folder.glob(f"*{word}*{suffix}") if p.is_file())
    if len(files) == 1:
        return files[0]
    if files:
        names = ", ".join(p.name for p in files)
        raise ModelError(f"{folder}: several files could be {exact.name}: {names}; keep one model in a folder")
    names = ", ".join(sorted(p.name for p in folder.iterdir())[:10]) or "nothing"
    raise ModelError(f"{folder}: no {exact.name} (nor *{word}*{suffix}) in the folder; it holds {names}")


def read_elmo_options(path: Path) -> ElmoOptions:
    """Read and check options.json; errors name the field."""
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:  # not JSON, or not UTF-8
        raise ModelError(f"{path}: not a JSON file: {error}") from error
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror or error}") from error
    fields = _OptionReader(path, content)
    # Published files have 261 characters, or 262 with a padding row that the weights do not contain.
    fields.one_of("char_cnn.n_characters", (N_CHARACTERS, N_CHARACTERS + 1))
    options = ElmoOptions(
        embedding=fields.whole("char_cnn.embedding.dim"),
        filters=fields.filters("char_cnn.filters"),
        highways=fields.whole("char_cnn.n_highway", least=0, null=0),
        activation=fields.one_of("char_cnn.activation", _ACTIVATIONS),
        word_length=fields.whole("char_cnn.max_characters_per_token", least=3),
        layers=fields.whole("lstm.n_layers"),
        cell=fields.whole("lstm.dim"),
        projection=fields.whole("lstm.projection_dim"),
        cell_clip=fields.clip("lstm.cell_clip"),
        projection_clip=fields.clip("lstm.proj_clip"),
        skip=fields.one_of("lstm.use_skip_connections", (True, False)),
    )
    widest = max(width for width, _ in options.filters)
    if widest > options.word_length:
        raise ModelError(f"{path}: a filter is {widest} characters wide, but words have only {options.word_length}")
    return options


class _OptionReader:
    """Read and check values of nested JSON by dotted name."""

    def __init__(self, path: Path, content: object) -> None:
        self._path, self._content = path, content

    def _get(self, name: str) -> Any:
        value = self._content
        for part in name.split("."):
            if not isinstance(value, dict) or part not in value:
                raise ModelError(f"{self._path}: the field {name} is missing; is this the options file of an ELMo?")
            value = value[part]
        return value

    def _make_error(self, name: str, wanted: str) -> ModelError:
        return ModelError(f"{self._path}: {name} must be {wanted}, got {self._get(name)!r}")

    def whole(self, name: str, least: int = 1, null: int | None = None) -> int:
        value = self._get(name)
        if value is None and null is not None:
            return null
        if not _is_whole(value, least):
            raise self._make_error(name, f"a whole number of at least {least}")
        return int(value)

    def one_of(self, name: str, allowed: Sequence[_T]) -> _T:
        value = self._get(name)
        for candidate in allowed:
            if type(value) is type(candidate) and value == candidate:
                return candidate
        raise self._make_error(name, " or ".join(map(repr, allowed)))

    def clip(self, name: str) -> float | None:
        value = self._get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
            raise self._make_error(name, "a number above 0, or null for no clipping")
        return float(value)

    def filters(self, name: str) -> tuple[tuple[int, int], ...]:
        value = self._get(name)
        if not isinstance(value, list) or not value or not all(_is_filter(pair) for pair in value):
            raise self._make_error(name, "a list of [width, count]")
        return tuple((width, count) for width, count in value)


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_filter(pair: object) -> bool:
    return isinstance(pair, list) and len(pair) == 2 and all(_is_whole(number, 1) for number in pair)


class ElmoEncoder:
    """Encode texts with a character CNN and a biLSTM, pooled over the words and then over the layers.

    Every text starts from a zero state. The published code carries the state of one text over to the next.
    """

    batch_size = 512

    def __init__(
        self, identity: Identity, options: ElmoOptions, weights: Path, *, pool: str, layers: str, device: str
    ) -> None:
        self.identity = identity
        self._options, self._weights = options, weights
        self._pool, self._layers, self._device = pool, layers, device
        self._loaded: ElmoNetwork | None = None

    def _model(self) -> ElmoNetwork:
        if self._loaded is None:
            from biassay.models.recurrent.elmo_network import ElmoNetwork, list_datasets, read_weights

            weights = read_weights(self._weights, list_datasets(self._options))
            self._loaded = ElmoNetwork(self._options, weights, self._device)
        return self._loaded

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
            for row, states in self.run([self._words(text) for text in texts])
        }
        return TextEmbeddings.from_vectors(torch.stack([pooled[row] for row in range(len(texts))]).cpu().numpy())

    def join_layers(self, by_layer: Tensor) -> Tensor:
        """Combine vectors (layers + 1, d) into one, as the setting ``layers`` says."""
        if self._layers == "sum":
            return by_layer.sum(dim=0)
        return by_layer.flatten() if self._layers == "concat" else by_layer[int(self._layers)]

    def layers(self, tokens: Sequence[Sequence[str]]) -> list[NDArray[np.float32]]:
        """Return all layers of every word in context.

        Parameters
        ----------
        tokens : sequence of sequences of str
            Texts as words, without boundary markers.

        Returns
        -------
        list of ndarray, shape (layers + 1, words, 2 * projection)
            The context-free word vector (twice), then the biLSTM layers, each forward and backward concatenated.
        """
        states = {row: np.array(tensor.cpu().numpy()) for row, tensor in self.run(tokens)}
        return [states[row] for row in range(len(tokens))]

    def run(self, tokens: Sequence[Sequence[str]]) -> Iterator[tuple[int, Tensor]]:
        """Yield row and states of each text as in `layers`, on the device and in any order."""
        return self._model().run(tokens)

    def load(self) -> None:
        """Load the weights."""
        self._model()


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


def open_word_encoder(model: ModelName) -> ElmoWordEncoder:
    """Open ``elmo:DIR`` as an encoder of words in context."""
    check_word_settings(model)
    part = read_choice_setting(model, "word", ("last", "first", "mean"), "last")
    return ElmoWordEncoder(_open_encoder(model), part)


class ElmoWordEncoder:
    """Encode a word in context as its last token, its first token, or the mean of all its tokens."""

    def __init__(self, encoder: ElmoEncoder, part: str) -> None:
        self._encoder, self._part = encoder, part
        settings = {"word": part} | {name: value for name, value in encoder.identity.settings if name != "pool"}
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
        states = self._encoder.run([tokens for tokens, _ in located])
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
    description="ELMo from options.json and weights.hdf5",
    settings={
        "pool": "texts: mean (default) or max over the words",
        "word": "words in context: last (default), first or mean of the word's tokens",
        "layers": "sum (default), concat, or the number of one layer",
        "device": DEVICE_HELP,
    },
    extra="elmo",
    needs=("torch", "h5py"),
    packages=("torch", "h5py"),
    texts=open_text_encoder,
    words=open_word_encoder,
    selftest=_selftest,
)
