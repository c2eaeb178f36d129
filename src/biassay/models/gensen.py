"""``gensen:DIR[+DIR]``: GenSen, a bidirectional GRU over its own word vectors; two models side by side.

``expand=PATH`` gives words that the model lacks a vector from pretrained ones, through a linear map learnt on the words
that both have. The padding of a batch never takes part in anything, unlike in the released code with pool=max.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from biassay.errors import MissingExtraError, ModelError, UnknownNameError, UsageError, VectorFileError
from biassay.models.base import Encoded, Identity
from biassay.models.family import Family, ModelName, is_installed
from biassay.models.hub import DEVICE_HELP, check_device, choose_device
from biassay.models.old_checkpoints import (
    BiRnn,
    check_stored_inside,
    fingerprint,
    load_tensors,
    load_vocabulary,
    tensor,
)
from biassay.models.treebank import Token, treebank_tokens
from biassay.models.vector_files import read_vectors
from biassay.models.vector_text import WordVectors, checked_vector

__all__ = ["FAMILY", "GenSenEncoder", "provide", "read_pretrained"]

_START, _END, _UNKNOWN = "<s>", "</s>", "<unk>"
_EMBEDDING = "src_embedding.weight"
_POOLS = ("last", "max")
_HDF5 = (".h5", ".hdf5")
_ROWS = 1 << 14
_LAYOUT = (
    "write gensen:DIR for a folder with one NAME.model and its NAME_vocab.pkl, or gensen:DIR/NAME for one of several"
)


@dataclass(frozen=True)
class Files:
    """The files of one model."""

    name: str
    weights: Path
    vocabulary: Path


def provide(model: ModelName) -> GenSenEncoder:
    pool = model.settings.get("pool", "last")
    if pool not in _POOLS:
        raise UnknownNameError(f"pool of model {model.text!r}:", pool, _POOLS, f"(one of {', '.join(_POOLS)})")
    lower = model.settings.get("lower", "0")
    if lower not in ("0", "1", "true", "false"):
        raise UsageError(f"model {model.text!r}: lower is 1 (lower-case the words) or 0 (leave them), got {lower!r}")
    expand = Path(model.settings["expand"]).expanduser() if "expand" in model.settings else None
    if expand is not None and not expand.is_file():
        raise VectorFileError(f"model {model.text!r}: there is no file of vectors {expand}")
    if expand is not None and expand.suffix.lower() in _HDF5 and not is_installed("h5py"):
        raise MissingExtraError(f"the model {model.text!r}", "gensen")
    check_device(model)
    return GenSenEncoder(model, _locate(model), pool, lower in ("1", "true"), expand)  # type: ignore[arg-type]


def _locate(model: ModelName) -> tuple[Files, ...]:
    whole = Path(model.name).expanduser()
    places = [whole] if whole.is_dir() else [Path(part).expanduser() for part in model.name.split("+") if part]
    if not 1 <= len(places) <= 2:
        raise UsageError(f"model {model.text!r}: one model or two with + between them, got {len(places)}")
    return tuple(_files(place) for place in places)


def _files(place: Path) -> Files:
    """A folder with one model, or the beginning of the names of its files."""
    stem = _stem(place) if place.is_dir() else place
    weights, vocabulary = (stem.with_name(stem.name + ending) for ending in (".model", "_vocab.pkl"))
    for file in (weights, vocabulary):
        if not file.is_file():
            there_is = "no" if place.is_dir() else f"neither a folder {place} nor a"
            raise ModelError(f"there is {there_is} file {file}; {_LAYOUT}")
    return Files(Path(os.path.abspath(place)).name, weights, vocabulary)


def _stem(folder: Path) -> Path:
    found = sorted(folder.glob("*.model"))
    if len(found) != 1:
        names = ", ".join(file.name for file in found) or "none"
        raise ModelError(f"{folder}: expected one *.model in the folder, got {names}; {_LAYOUT}")
    return found[0].with_suffix("")


def read_pretrained(path: Path, wanted: Collection[str]) -> WordVectors:
    """Pretrained vectors of the wanted words, from any file of vectors or from one of the two HDF5 layouts."""
    return _read_hdf5(path, wanted) if path.suffix.lower() in _HDF5 else read_vectors(path, wanted)


def _read_hdf5(path: Path, wanted: Collection[str]) -> WordVectors:
    """``embedding`` (n, d) and ``words_flatten``: one string with a word a line, or an array of strings."""
    try:
        with import_module("h5py").File(path, "r") as file:
            for name in ("words_flatten", "embedding"):
                check_stored_inside(path, file[name])
            flat = np.asarray(file["words_flatten"][()]).ravel().tolist()
            texts = [t.decode(errors="surrogateescape") if isinstance(t, bytes) else str(t) for t in flat]
            matrix = file["embedding"]
            words = texts[0].split("\n") if len(texts) == 1 else texts
            if matrix.ndim != 2 or matrix.dtype.kind != "f" or len(matrix) != len(words):
                raise VectorFileError(
                    f"{path}: 'embedding' is {matrix.dtype} of shape {matrix.shape}; expected ({len(words)}, d), a row "
                    "for each word of 'words_flatten'"
                )
            blocks = ((start, matrix[start : start + _ROWS]) for start in range(0, len(words), _ROWS))
            return _chosen(path, words, blocks, frozenset(wanted), matrix.shape[1])
    except (OSError, KeyError, RuntimeError) as error:
        raise VectorFileError(
            f"{path}: not an HDF5 file with 'embedding' and 'words_flatten', or a damaged one: {error}"
        ) from error


def _chosen(
    path: Path,
    words: Sequence[str],
    blocks: Iterable[tuple[int, NDArray[np.floating]]],
    wanted: frozenset[str],
    dimension: int,
) -> WordVectors:
    found = WordVectors(dimension)
    for start, block in blocks:
        for row, word in enumerate(words[start : start + len(block)]):
            if word in wanted and word not in found:
                found[word] = checked_vector(block[row].astype(np.float32), word, f"{path}: row {start + row}")
    return found


class LinearMap:
    """Least squares with an intercept: (n, p) to (n, q)."""

    def __init__(self, source: NDArray[np.float32], target: NDArray[np.float32]) -> None:
        self._from, self._to = source.mean(axis=0, dtype=np.float64), target.mean(axis=0, dtype=np.float64)
        size = source.shape[1]
        # The triangle of a QR decomposition, updated block by block, stands for all rows: memory stays small.
        triangle = np.empty((0, size + target.shape[1]))
        for start in range(0, len(source), _ROWS):
            rows = slice(start, start + _ROWS)
            block = np.hstack([source[rows] - self._from, target[rows] - self._to])
            triangle = np.linalg.qr(np.vstack([triangle, block])).R
        self._slope = np.linalg.lstsq(triangle[:, :size], triangle[:, size:])[0]

    def __call__(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.asarray((vector - self._from) @ self._slope + self._to, dtype=np.float32)


class GenSenModel:
    """One model: words to vectors, vectors through the GRU."""

    def __init__(self, files: Files, device: str) -> None:
        tensors = load_tensors(files.weights)
        self._layers = BiRnn(files.weights, tensors, "GRU", "encoder", device, others=(_EMBEDDING,))
        embedding = tensor(files.weights, tensors, _EMBEDDING, (None, self._layers.dimension))
        self._table: NDArray[np.float32] = embedding.numpy()
        self.words = load_vocabulary(files.vocabulary)
        self._check(files)
        self._added: dict[str, NDArray[np.float32]] = {}
        self._map: LinearMap | None = None

    def _check(self, files: Files) -> None:
        for word in (_START, _END, _UNKNOWN):
            if word not in self.words:
                raise ModelError(f"{files.vocabulary}: the vocabulary lacks {word!r}")
        for word, number in self.words.items():
            if not 0 <= number < len(self._table):
                rows = f"{_EMBEDDING!r} of {files.weights.name} has {len(self._table)} rows"
                raise ModelError(f"{files.vocabulary}: {word!r} has the number {number}, and {rows}")

    def fit(self, pretrained: WordVectors, path: Path) -> None:
        """Learn how pretrained vectors become the model's own, from all words that both have."""
        shared = [word for word in self.words if word in pretrained]
        if len(shared) <= pretrained.dimension:
            raise ModelError(
                f"{path}: {len(shared)} words in common with the model are too few to learn a map from vectors of "
                f"{pretrained.dimension} values"
            )
        source = np.stack([pretrained[word] for word in shared])
        self._map = LinearMap(source, self._table[[self.words[word] for word in shared]])

    def add(self, pretrained: WordVectors) -> None:
        """Give vectors to words that the model lacks."""
        assert self._map is not None
        self._added.update({w: self._map(vector) for w, vector in pretrained.items() if w not in self.words})

    def knows(self, word: str) -> bool:
        return word in self.words or word in self._added

    def vector(self, word: str) -> NDArray[np.float32]:
        if word not in self.words and word in self._added:
            return self._added[word]
        row: NDArray[np.float32] = self._table[self.words.get(word, self.words[_UNKNOWN])]
        return row

    def pooled(self, texts: Sequence[Sequence[str]], pool: Literal["last", "max"]) -> NDArray[np.float32]:
        framed = [[_START, *words, _END] for words in texts]
        return self._layers.pooled([np.stack([self.vector(word) for word in words]) for words in framed], pool)


class GenSenEncoder:
    """A word that one of the models lacks is its ``<unk>`` there, and is reported."""

    batch_size = 256

    def __init__(
        self, model: ModelName, files: tuple[Files, ...], pool: Literal["last", "max"], lower: bool, expand: Path | None
    ) -> None:
        self._model, self._files, self._pool, self._lower, self._expand = model, files, pool, lower, expand
        self._models: list[GenSenModel] = []
        self._asked: set[str] = set()
        settings = {"pool": pool, **({"lower": "1"} if lower else {}), **({"expand": expand.name} if expand else {})}
        used = [path for each in files for path in (each.weights, each.vocabulary)]
        hints = ["the vocabulary is mostly lower-cased: ?lower=1"] * (not lower)
        hints += ["?expand=PATH takes missing words from a file of vectors"] * (expand is None)
        self.identity = Identity(
            "gensen:" + "+".join(each.name for each in files),
            "gensen",
            fingerprint([*used, *([expand] if expand else [])]),
            tuple(settings.items()),
            lost_hint="; ".join(hints),
        )

    def _tokens(self, text: str) -> list[Token]:
        """Lower-cased after cutting, as its authors did, and so that places stay true."""
        tokens = treebank_tokens(text)
        return [(word.lower(), span) for word, span in tokens] if self._lower else tokens

    def prepare(self, texts: Sequence[str]) -> None:
        self._ready({word for text in texts for word, _ in self._tokens(text)})

    def _ready(self, words: set[str]) -> None:
        """Weights, and vectors of words that were not looked for before."""
        first = not self._models
        if first:
            device = choose_device(self._model)
            self._models = [GenSenModel(files, device) for files in self._files]
        new = words - self._asked
        if self._expand is not None and (first or new):
            self._learn(self._expand, new, first)
        self._asked |= new

    def _learn(self, path: Path, new: set[str], first: bool) -> None:
        taught = {word for model in self._models for word in model.words} if first else set()
        pretrained = read_pretrained(path, taught | new)
        wanted = WordVectors(pretrained.dimension)
        wanted.update({word: pretrained[word] for word in new if word in pretrained})
        for model in self._models:
            if first:
                model.fit(pretrained, path)
            model.add(wanted)

    def encode(self, texts: Sequence[str]) -> Encoded:
        cut = [self._tokens(text) for text in texts]
        self._ready({word for tokens in cut for word, _ in tokens})
        words = [[word for word, _ in tokens] for tokens in cut]
        vectors = np.hstack([model.pooled(words, self._pool) for model in self._models])
        unknown = [tuple(span for word, span in tokens if not self._knows(word)) for tokens in cut]
        return Encoded.of(vectors, unknown)

    def _knows(self, word: str) -> bool:
        return all(model.knows(word) for model in self._models)


@contextmanager
def _selftest(folder: Path) -> Iterator[str]:
    import torch

    from biassay.models.tiny import HIDDEN, SIZE, WORDS, save_tensors

    words = (_START, "<pad>", _END, _UNKNOWN, *WORDS)
    layer = torch.nn.GRU(SIZE, HIDDEN, bidirectional=True)
    shapes = {f"encoder.{name}": t.shape for name, t in layer.state_dict().items()}
    save_tensors(folder / "tiny.model", shapes | {_EMBEDDING: (len(words), SIZE)})
    vocabulary = {"word2id": {word: number for number, word in enumerate(words)}}
    (folder / "tiny_vocab.pkl").write_bytes(pickle.dumps(vocabulary, protocol=2))
    yield f"gensen:{folder}"


FAMILY = Family(
    name="gensen",
    form="gensen:DIR[+DIR]",
    about="GenSen, one model or two side by side",
    settings={
        "pool": "last (the default) or max over the words",
        "expand": "a file of word vectors for words that the model lacks",
        "lower": "1: lower-case the words; the default is 0",
        "device": DEVICE_HELP,
    },
    extra="gensen",
    needs=("torch", "nltk"),
    packages=("torch", "nltk"),
    texts=provide,
    selftest=_selftest,
)
