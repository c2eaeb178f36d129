"""``elmo:DIR``: ELMo, characters to two-layer biLSTM, from the published options.json and weights.hdf5."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from biassay.errors import ModelError, UnknownNameError, VectorError
from biassay.models.base import Encoded, Encoder, Identity, WordEncoder
from biassay.models.family import Family, ModelName
from biassay.models.hub import DEVICE_HELP, choose_device
from biassay.models.pooling import check_texts
from biassay.models.static import tokens
from biassay.models.vector_files import file_fingerprint

if TYPE_CHECKING:
    from torch import Tensor

    from biassay.models.elmo_model import ElmoModel

__all__ = ["CHARACTERS", "FAMILY", "ElmoEncoder", "Options", "chosen", "provide", "read_options"]

CHARACTERS = 261  # 256 bytes, text begin and end, word begin and end, filling
_POOLS = ("mean", "max")
_ACTIVATIONS = ("relu", "tanh")
_T = TypeVar("_T")


@dataclass(frozen=True)
class Options:
    """What options.json says of a network; ``filters`` holds (width, count), a clip of None does not clip."""

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


def provide(model: ModelName) -> ElmoEncoder:
    pool = chosen(model, "pool", _POOLS, "mean")
    folder = Path(os.path.abspath(Path(model.name).expanduser()))  # so that "elmo:." has a name
    if not folder.is_dir():
        raise ModelError(f"{folder}: no such folder; elmo:DIR is a folder with options.json and weights.hdf5")
    options_path, weights_path = _file(folder, "options", ".json"), _file(folder, "weights", ".hdf5")
    options = read_options(options_path)
    layers = chosen(model, "layers", ("sum", "concat", *map(str, range(options.layers + 1))), "sum")
    asked = model.settings.get("device", "auto")
    device = asked if asked == "auto" else choose_device(model)
    prints = file_fingerprint(options_path) + file_fingerprint(weights_path)
    identity = Identity(
        f"elmo:{folder.name}",
        "elmo",
        hashlib.blake2b(prints.encode(), digest_size=16).hexdigest(),
        (("pool", pool), ("layers", layers)),
    )
    return ElmoEncoder(identity, options, weights_path, pool=pool, layers=layers, device=device)


def chosen(model: ModelName, setting: str, allowed: Sequence[str], default: str) -> str:
    value = model.settings.get(setting, default)
    if value not in allowed:
        hint = f"(model {model.text!r}; one of {', '.join(allowed)})"
        raise UnknownNameError(setting, value, allowed, hint)
    return value


def _file(folder: Path, word: str, suffix: str) -> Path:
    """The file named ``word + suffix``, or else the only one whose name has the word in it."""
    exact = folder / f"{word}{suffix}"
    found = [exact] if exact.is_file() else sorted(p for p in folder.glob(f"*{word}*{suffix}") if p.is_file())
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(p.name for p in found)
        raise ModelError(f"{folder}: several files could be {exact.name}: {names}; keep one model in a folder")
    names = ", ".join(sorted(p.name for p in folder.iterdir())[:10]) or "nothing"
    raise ModelError(f"{folder}: no {exact.name} (nor *{word}*{suffix}) in the folder; it holds {names}")


def read_options(path: Path) -> Options:
    """Read and check options.json; an error names the field."""
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:  # not JSON, or not UTF-8
        raise ModelError(f"{path}: not a JSON file: {error}") from error
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror or error}") from error
    fields = _Fields(path, content)
    # The published files count 261 characters, or 262 with a row for padding that the weights do not hold.
    fields.one_of("char_cnn.n_characters", (CHARACTERS, CHARACTERS + 1))
    options = Options(
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
        raise ModelError(f"{path}: a filter is {widest} characters wide, a word has only {options.word_length}")
    return options


class _Fields:
    """Checked values out of nested JSON, by dotted name."""

    def __init__(self, path: Path, content: object) -> None:
        self._path, self._content = path, content

    def _get(self, name: str) -> Any:
        value = self._content
        for part in name.split("."):
            if not isinstance(value, dict) or part not in value:
                raise ModelError(f"{self._path}: the field {name} is missing; is this the options file of an ELMo?")
            value = value[part]
        return value

    def _refuse(self, name: str, wanted: str) -> ModelError:
        return ModelError(f"{self._path}: {name} must be {wanted}, got {self._get(name)!r}")

    def whole(self, name: str, least: int = 1, null: int | None = None) -> int:
        value = self._get(name)
        if value is None and null is not None:
            return null
        if not _is_whole(value, least):
            raise self._refuse(name, f"a whole number of at least {least}")
        return int(value)

    def one_of(self, name: str, allowed: Sequence[_T]) -> _T:
        value = self._get(name)
        for candidate in allowed:
            if type(value) is type(candidate) and value == candidate:
                return candidate
        raise self._refuse(name, " or ".join(map(repr, allowed)))

    def clip(self, name: str) -> float | None:
        value = self._get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
            raise self._refuse(name, "a number above 0, or null for no clipping")
        return float(value)

    def filters(self, name: str) -> tuple[tuple[int, int], ...]:
        value = self._get(name)
        if not isinstance(value, list) or not value or not all(_is_filter(pair) for pair in value):
            raise self._refuse(name, "a list of [width, count]")
        return tuple((width, count) for width, count in value)


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_filter(pair: object) -> bool:
    return isinstance(pair, list) and len(pair) == 2 and all(_is_whole(number, 1) for number in pair)


class ElmoEncoder:
    """Words through characters and a biLSTM; a text is pooled over its words, then over the layers.

    Every text starts from a zero state. The published code carries the state of one text over to the next.
    """

    batch_size = 512

    def __init__(
        self, identity: Identity, options: Options, weights: Path, *, pool: str, layers: str, device: str
    ) -> None:
        self.identity = identity
        self._options, self._weights = options, weights
        self._pool, self._layers, self._device = pool, layers, device
        self._loaded: ElmoModel | None = None

    def _model(self) -> ElmoModel:
        if self._loaded is None:
            from biassay.models.elmo_model import ElmoModel, data_sets, read_weights

            weights = read_weights(self._weights, data_sets(self._options))
            self._loaded = ElmoModel(self._options, weights, self._device)
        return self._loaded

    def _words(self, text: str) -> list[str]:
        words = [word for word, _ in tokens(text)]
        if not words:
            raise VectorError(f"model {self.identity.name!r}: the text {text!r} has no words, so it has no vector")
        return words

    def prepare(self, texts: Sequence[str]) -> None:
        for text in texts:
            self._words(text)
        self.load()

    def encode(self, texts: Sequence[str]) -> Encoded:
        import torch

        rows = [self._words(text) for text in texts]
        pooled = {row: self._pooled(states) for row, states in self.run(rows)}
        return Encoded.of(torch.stack([pooled[row] for row in range(len(texts))]).cpu().numpy())

    def _pooled(self, states: Tensor) -> Tensor:
        return self.joined(states.mean(dim=1) if self._pool == "mean" else states.amax(dim=1))

    def joined(self, by_layer: Tensor) -> Tensor:
        """One vector of the layers (layers + 1, d) as asked for."""
        if self._layers == "sum":
            return by_layer.sum(dim=0)
        return by_layer.flatten() if self._layers == "concat" else by_layer[int(self._layers)]

    def layers(self, tokens: Sequence[Sequence[str]]) -> list[NDArray[np.float32]]:
        """All layers of every word in its context.

        Parameters
        ----------
        tokens : texts as sequences of words
            Taken as they are, without the marks of begin and end.

        Returns
        -------
        list of (layers + 1, words, 2 * projection) arrays
            First the word vector without context (twice), then the layers of the biLSTM, forward beside backward.
        """
        found = {row: np.array(states.cpu().numpy()) for row, states in self.run(tokens)}
        return [found[row] for row in range(len(tokens))]

    def run(self, tokens: Sequence[Sequence[str]]) -> Iterator[tuple[int, Tensor]]:
        """The same on the device, each text with its row, in the order in which they are done."""
        return self._model().run(tokens)

    def load(self) -> None:
        self._model()


def _texts(model: ModelName) -> Encoder:
    check_texts(model)
    return provide(model)


def _words(model: ModelName) -> WordEncoder:
    from biassay.models.elmo_words import provide

    return provide(model)


@contextmanager
def _selftest(folder: Path) -> Iterator[str]:
    from biassay.models.elmo_model import data_sets
    from biassay.models.tiny import HIDDEN, SIZE, random_arrays

    cnn = {"activation": "relu", "filters": [[1, 3], [2, 4]], "n_highway": 1, "embedding": {"dim": 4}}
    cnn |= {"n_characters": 262, "max_characters_per_token": 50}
    clips = {"cell_clip": 3, "proj_clip": 3}
    lstm = {"use_skip_connections": True, "projection_dim": SIZE, "dim": HIDDEN, "n_layers": 2, **clips}
    (folder / "options.json").write_text(json.dumps({"lstm": lstm, "char_cnn": cnn}))
    with import_module("h5py").File(folder / "weights.hdf5", "w") as file:
        for name, array in random_arrays(data_sets(read_options(folder / "options.json"))).items():
            file[name] = array
    yield f"elmo:{folder}"


FAMILY = Family(
    name="elmo",
    form="elmo:DIR",
    about="ELMo from options.json and weights.hdf5",
    settings={
        "pool": "texts: mean (the default) or max over the words",
        "word": "words in contexts: last (the default), first or mean of the tokens of a word",
        "layers": "sum (the default), concat, or the number of one layer",
        "device": DEVICE_HELP,
    },
    extra="elmo",
    needs=("torch", "h5py"),
    packages=("torch", "h5py"),
    texts=_texts,
    words=_words,
    selftest=_selftest,
)
