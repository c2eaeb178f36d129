"""Encode texts with GenSen (`gensen:DIR[+DIR]`): a bidirectional GRU over its own word vectors, or two concatenated.

``expand=PATH`` maps pretrained vectors of out-of-vocabulary words into the model's space by a linear map learned on the
common words. Padding is never pooled, unlike in the released code with pool=max.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from biassay.errors import MissingExtraError, ModelError, UsageError, VectorFileError
from biassay.models.backend import ModelBackend, ModelName, is_installed, read_bool_setting, read_choice_setting
from biassay.models.base import Identity, TextEmbeddings
from biassay.models.devices import DEVICE_HELP, check_device, choose_device
from biassay.models.recurrent.pickled_checkpoints import (
    BidirectionalRnn,
    check_not_external,
    fingerprint_files,
    get_only_file,
    get_tensor,
    load_tensors,
    load_vocabulary,
)
from biassay.models.recurrent.treebank import Token, tokenize_treebank
from biassay.models.vector_files import WordVectors, read_vectors, validate_vector

_START, _END, _UNKNOWN = "<s>", "</s>", "<unk>"
_EMBEDDING = "src_embedding.weight"
_HDF5_SUFFIXES = (".h5", ".hdf5")
_ROWS_PER_READ = 1 << 14
_LAYOUT = (
    "write gensen:DIR for a folder with one NAME.model and its NAME_vocab.pkl, or gensen:DIR/NAME for one of several"
)


@dataclass(frozen=True)
class GenSenFiles:
    """The files of one model."""

    name: str
    weights: Path
    vocabulary: Path


def _find_models(model: ModelName) -> tuple[GenSenFiles, ...]:
    whole = Path(model.name).expanduser()
    paths = [whole] if whole.is_dir() else [Path(part).expanduser() for part in model.name.split("+") if part]
    if not 1 <= len(paths) <= 2:
        raise UsageError(f"model {model.text!r}: expected one model, or two joined by +, got {len(paths)}")
    return tuple(_find_files(path) for path in paths)


def _find_files(path: Path) -> GenSenFiles:
    """Find the files of a model by its folder, or by the common start of their names."""
    stem = path
    if path.is_dir():
        found = get_only_file(path, "*.model in the folder", sorted(path.glob("*.model")), _LAYOUT)
        stem = found.with_suffix("")
    weights, vocabulary = (stem.with_name(stem.name + ending) for ending in (".model", "_vocab.pkl"))
    for file in (weights, vocabulary):
        if not file.is_file():
            there_is = "no" if path.is_dir() else f"neither a folder {path} nor a"
            raise ModelError(f"there is {there_is} file {file}; {_LAYOUT}")
    return GenSenFiles(Path(os.path.abspath(path)).name, weights, vocabulary)


def read_pretrained(path: Path, wanted: Collection[str]) -> WordVectors:
    """Read pretrained vectors of some words from a vector file or from one of the two HDF5 layouts."""
    return _read_hdf5(path, wanted) if path.suffix.lower() in _HDF5_SUFFIXES else read_vectors(path, wanted)


def _read_hdf5(path: Path, wanted: Collection[str]) -> WordVectors:
    """Read ``embedding`` (n, d) and ``words_flatten``, one string with a word per line or an array of strings."""
    try:
        with import_module("h5py").File(path, "r") as file:
            for name in ("words_flatten", "embedding"):
                check_not_external(path, file[name])
            flat = np.asarray(file["words_flatten"][()]).ravel().tolist()
            texts = [t.decode(errors="surrogateescape") if isinstance(t, bytes) else str(t) for t in flat]
            matrix = file["embedding"]
            words = texts[0].split("\n") if len(texts) == 1 else texts
            if matrix.ndim != 2 or matrix.dtype.kind != "f" or len(matrix) != len(words):
                raise VectorFileError(
                    f"{path}: 'embedding' is {matrix.dtype} of shape {matrix.shape}; expected ({len(words)}, d), a row "
                    "for each word of 'words_flatten'"
                )
            vectors = WordVectors(matrix.shape[1])
            missing = set(wanted)
            for start in range(0, len(words), _ROWS_PER_READ):
                block = matrix[start : start + _ROWS_PER_READ]
                for row, word in enumerate(words[start : start + len(block)]):
                    if word in missing:
                        missing.remove(word)
                        where = f"{path}: row {start + row}"
                        vectors[word] = validate_vector(block[row].astype(np.float32), word, where)
            return vectors
    except (OSError, KeyError, RuntimeError) as error:
        raise VectorFileError(
            f"{path}: not an HDF5 file with 'embedding' and 'words_flatten', or a damaged one: {error}"
        ) from error


class LinearMap:
    """Least-squares map with intercept from (n, p) to (n, q)."""

    def __init__(self, source: NDArray[np.float32], target: NDArray[np.float32]) -> None:
        self._from, self._to = source.mean(axis=0, dtype=np.float64), target.mean(axis=0, dtype=np.float64)
        size = source.shape[1]
        # A QR decomposition updated block by block needs little memory.
        triangle = np.empty((0, size + target.shape[1]))
        for start in range(0, len(source), _ROWS_PER_READ):
            rows = slice(start, start + _ROWS_PER_READ)
            block = np.hstack([source[rows] - self._from, target[rows] - self._to])
            triangle = np.linalg.qr(np.vstack([triangle, block])).R
        self._slope = np.linalg.lstsq(triangle[:, :size], triangle[:, size:])[0]

    def __call__(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        """Map a vector."""
        return np.asarray((vector - self._from) @ self._slope + self._to, dtype=np.float32)


class GenSenModel:
    """Word vectors and GRU of one model."""

    def __init__(self, files: GenSenFiles, device: str) -> None:
        tensors = load_tensors(files.weights)
        self._layers = BidirectionalRnn(files.weights, tensors, "GRU", "encoder", device, others=(_EMBEDDING,))
        embedding = get_tensor(files.weights, tensors, _EMBEDDING, (None, self._layers.dimension))
        self._table: NDArray[np.float32] = embedding.numpy()
        self.words = load_vocabulary(files.vocabulary)
        self._check(files)
        self._added: dict[str, NDArray[np.float32]] = {}
        self._map: LinearMap | None = None

    def _check(self, files: GenSenFiles) -> None:
        for word in (_START, _END, _UNKNOWN):
            if word not in self.words:
                raise ModelError(f"{files.vocabulary}: the vocabulary lacks {word!r}")
        for word, number in self.words.items():
            if not 0 <= number < len(self._table):
                rows = f"{_EMBEDDING!r} of {files.weights.name} has {len(self._table)} rows"
                raise ModelError(f"{files.vocabulary}: {word!r} has the number {number}, but {rows}")

    def fit(self, pretrained: WordVectors, path: Path) -> None:
        """Learn the map from pretrained vectors to the model's vectors on all common words."""
        shared = [word for word in self.words if word in pretrained]
        if len(shared) <= pretrained.dimension:
            raise ModelError(
                f"{path}: {len(shared)} words in common with the model are too few to learn a map from "
                f"{pretrained.dimension} dimensions"
            )
        source = np.stack([pretrained[word] for word in shared])
        self._map = LinearMap(source, self._table[[self.words[word] for word in shared]])

    def add(self, pretrained: WordVectors) -> None:
        """Add mapped vectors of out-of-vocabulary words."""
        assert self._map is not None
        self._added.update({w: self._map(vector) for w, vector in pretrained.items() if w not in self.words})

    def knows(self, word: str) -> bool:
        """Return True if a word is in the vocabulary or was added."""
        return word in self.words or word in self._added

    def vector(self, word: str) -> NDArray[np.float32]:
        """Return the vector of a word, or that of ``<unk>``."""
        if word not in self.words and word in self._added:
            return self._added[word]
        row: NDArray[np.float32] = self._table[self.words.get(word, self.words[_UNKNOWN])]
        return row

    def encode(self, texts: Sequence[Sequence[str]], pool: str) -> NDArray[np.float32]:
        """Return one vector per text, given as words."""
        framed = [[_START, *words, _END] for words in texts]
        return self._layers.pool([np.stack([self.vector(word) for word in words]) for words in framed], pool)


class GenSenEncoder:
    """Encode texts with one or two models; a word that one of them lacks is ``<unk>`` there and reported."""

    batch_size = 256

    def __init__(self, model: ModelName) -> None:
        pool = read_choice_setting(model, "pool", ("last", "max"), "last")
        lower = read_bool_setting(model, "lower")
        expand = Path(model.settings["expand"]).expanduser() if "expand" in model.settings else None
        if expand is not None and not expand.is_file():
            raise VectorFileError(f"{model.label}: there is no file of vectors {expand}")
        if expand is not None and expand.suffix.lower() in _HDF5_SUFFIXES and not is_installed("h5py"):
            raise MissingExtraError(f"the {model.label}", "gensen")
        check_device(model)
        self._model, self._files, self._pool, self._lower, self._expand = (
            model,
            _find_models(model),
            pool,
            lower,
            expand,
        )
        self._models: list[GenSenModel] = []
        self._requested: set[str] = set()
        settings = {"pool": pool, **({"lower": "1"} if lower else {}), **({"expand": expand.name} if expand else {})}
        used = [path for each in self._files for path in (each.weights, each.vocabulary)]
        hints = ["the vocabulary is mostly lower-cased: add ?lower=1"] * (not lower)
        hints += ["?expand=PATH adds words from a word-vector file"] * (expand is None)
        self.identity = Identity(
            "gensen:" + "+".join(each.name for each in self._files),
            "gensen",
            fingerprint_files([*used, *([expand] if expand else [])]),
            tuple(settings.items()),
            oov_hint="; ".join(hints),
        )

    def _tokens(self, text: str) -> list[Token]:
        """Tokenize a text; lower-case after tokenization, as the authors did, so that spans stay valid."""
        tokens = tokenize_treebank(text)
        return [(word.lower(), span) for word, span in tokens] if self._lower else tokens

    def prepare(self, texts: Sequence[str]) -> None:
        """Load the weights and the vectors of all words."""
        self._load({word for text in texts for word, _ in self._tokens(text)})

    def _load(self, words: set[str]) -> None:
        """Load the weights and the vectors of words that were not requested before."""
        first = not self._models
        if first:
            device = choose_device(self._model)
            self._models = [GenSenModel(files, device) for files in self._files]
        new = words - self._requested
        if self._expand is not None and (first or new):
            self._add_words(self._expand, new, first)
        self._requested |= new

    def _add_words(self, path: Path, new: set[str], first: bool) -> None:
        vocabulary = {word for model in self._models for word in model.words} if first else set()
        pretrained = read_pretrained(path, vocabulary | new)
        wanted = WordVectors(pretrained.dimension)
        wanted.update({word: pretrained[word] for word in new if word in pretrained})
        for model in self._models:
            if first:
                model.fit(pretrained, path)
            model.add(wanted)

    def encode(self, texts: Sequence[str]) -> TextEmbeddings:
        """Return one vector per text, with its out-of-vocabulary words."""
        token_lists = [self._tokens(text) for text in texts]
        self._load({word for tokens in token_lists for word, _ in tokens})
        words = [[word for word, _ in tokens] for tokens in token_lists]
        vectors = np.hstack([model.encode(words, self._pool) for model in self._models])
        unknown = [
            tuple(span for word, span in tokens if not all(model.knows(word) for model in self._models))
            for tokens in token_lists
        ]
        return TextEmbeddings.from_vectors(vectors, unknown)


def _selftest(folder: Path) -> AbstractContextManager[str]:
    import torch

    from biassay.models.selftest import TINY_HIDDEN_SIZE, TINY_SIZE, TINY_VOCABULARY, save_tensors

    words = (_START, "<pad>", _END, _UNKNOWN, *TINY_VOCABULARY)
    layer = torch.nn.GRU(TINY_SIZE, TINY_HIDDEN_SIZE, bidirectional=True)
    shapes = {f"encoder.{name}": t.shape for name, t in layer.state_dict().items()}
    save_tensors(folder / "tiny.model", shapes | {_EMBEDDING: (len(words), TINY_SIZE)})
    vocabulary = {"word2id": {word: number for number, word in enumerate(words)}}
    (folder / "tiny_vocab.pkl").write_bytes(pickle.dumps(vocabulary, protocol=2))
    return nullcontext(f"gensen:{folder}")


BACKEND = ModelBackend(
    name="gensen",
    syntax="gensen:DIR[+DIR]",
    description="GenSen, one model or two",
    settings={
        "pool": "last (default) or max over the words",
        "expand": "word-vector file for out-of-vocabulary words",
        "lower": "1 to lower-case the words (default 0)",
        "device": DEVICE_HELP,
    },
    extra="gensen",
    needs=("torch", "nltk"),
    packages=("torch", "nltk"),
    texts=GenSenEncoder,
    selftest=_selftest,
)
