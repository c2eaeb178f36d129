"""Does a family of models work on this machine? Each is tried on a tiny model that is made for it and then deleted.

Weights are random, so the vectors mean nothing; the way from texts to vectors is that of a real model. Nothing is
asked of any other machine.
"""

from __future__ import annotations

import json
import os
import pickle
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from biassay.encoders.base import Encoder
from biassay.encoders.registry import FAMILIES, is_installed, open_encoder
from biassay.errors import MeasurementError

__all__ = ["SELFTESTS", "Letters", "Outcome", "check", "device", "self_test"]

# Of two lengths, so that one is padded when both are in a batch.
TEXTS = ("this is the red rose", "joy")
_WORDS = ("this", "is", "the", "red", "rose", "joy")
# Numbers of 24 bits, summed in another order when the batch is another, differ by some 1e-6 of the largest. Padding
# that takes part, or a state carried over from one text to the next, makes a difference of 1e-2 and more.
_TOLERANCE = 1e-4
_SIZE, _HIDDEN = 8, 6
_OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
_KEY = "BIASSAY_SELFTEST_KEY"
_SHOWN = 300  # characters of an error


@dataclass(frozen=True)
class Outcome:
    """What came of a self-test: ``seconds`` is None if it was not made, ``error`` is one line and empty if none."""

    family: str
    status: Literal["PASS", "FAIL", "skipped"]
    seconds: float | None = None
    error: str = ""


def self_test(family: str) -> Outcome:
    """Try one family. Whatever goes wrong is part of the outcome."""
    if FAMILIES[family].missing:
        return Outcome(family, "skipped")
    began = time.perf_counter()
    try:
        with tempfile.TemporaryDirectory(prefix="biassay-selftest-") as folder, _apart(Path(folder)):
            (Path(folder) / family).mkdir()
            with SELFTESTS[family](Path(folder) / family) as model:
                check(open_encoder(model))
    except Exception as error:  # a broken installation fails in every way there is
        return Outcome(family, "FAIL", time.perf_counter() - began, _in_one_line(error))
    return Outcome(family, "PASS", time.perf_counter() - began)


@contextmanager
def _apart(folder: Path) -> Iterator[None]:
    """No hub is asked, and what a family may keep is not kept in the user's cache."""
    own = {"BIASSAY_CACHE": str(folder / "cache"), "TORCHINDUCTOR_CACHE_DIR": str(folder / "torch"), _KEY: "none"}
    changed = {**_OFFLINE, **own}
    before = {name: os.environ.get(name) for name in changed}
    os.environ.update(changed)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _in_one_line(error: Exception) -> str:
    line = " ".join(f"{type(error).__name__}: {error}".split())
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"


def check(encoder: Encoder) -> None:
    """Encode two texts together and alone: shapes, finite numbers, and the same vectors up to rounding."""
    encoder.prepare(TEXTS)
    encoded = encoder.encode(TEXTS)
    together, alone = encoded.vectors, [encoder.encode([text]).vectors for text in TEXTS]
    size = together.shape[-1]
    shapes = [together.shape, *(vectors.shape for vectors in alone)]
    if size == 0 or shapes != [(2, size), (1, size), (1, size)]:
        raise MeasurementError(f"two texts together, then each alone, gave arrays of shape {shapes}")
    if not all(np.isfinite(vectors).all() for vectors in (together, *alone)):
        raise MeasurementError("a vector is not finite")
    if any(encoded.unknown):
        raise MeasurementError("words that the model has were not found in it")
    largest = np.abs(together).max()
    if np.abs(together[0] - together[1]).max() <= _TOLERANCE * largest:
        raise MeasurementError("two texts that differ have the same vector")
    off = np.abs(together - np.concatenate(alone)).max()
    if off > _TOLERANCE * largest:
        raise MeasurementError(f"a vector depends on its batch: off by {off:.2g}, where the largest is {largest:.2g}")


def device() -> str | None:
    """What torch computes on, in words; None: torch is not installed."""
    if not is_installed("torch"):
        return None
    try:
        import torch

        if torch.cuda.is_available():
            return f"CUDA: {torch.cuda.get_device_name()}"
    except Exception as error:  # the driver's and the linker's errors are of many kinds
        return f"not known: {_in_one_line(error)}"
    return "CPU; torch finds no CUDA GPU"


# One small function per family: makes a model in an empty folder, and says how to name it.


@contextmanager
def _use(_: Path) -> Iterator[str]:
    yield "use"


@contextmanager
def _glove(_: Path) -> Iterator[str]:
    yield "glove"


@contextmanager
def _vectors(folder: Path) -> Iterator[str]:
    yield f"vectors:{_write_vectors(folder)}"


@contextmanager
def _hf(folder: Path) -> Iterator[str]:
    yield f"hf:{_write_bert(folder)}"


@contextmanager
def _st(folder: Path) -> Iterator[str]:
    _write_bert(folder)
    kinds = {"": "Transformer", "1_Pooling": "Pooling"}
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(kinds.items())
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": _SIZE, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    yield f"st:{folder}"


@contextmanager
def _elmo(folder: Path) -> Iterator[str]:
    from biassay.encoders.elmo import read_options
    from biassay.encoders.elmo_model import data_sets

    cnn = {"activation": "relu", "filters": [[1, 3], [2, 4]], "n_highway": 1, "embedding": {"dim": 4}}
    cnn |= {"n_characters": 262, "max_characters_per_token": 50}
    lstm = {"use_skip_connections": True, "projection_dim": _SIZE, "dim": _HIDDEN, "n_layers": 2}
    lstm |= {"cell_clip": 3, "proj_clip": 3}
    (folder / "options.json").write_text(json.dumps({"lstm": lstm, "char_cnn": cnn}))
    with import_module("h5py").File(folder / "weights.hdf5", "w") as file:
        for name, array in _random(data_sets(read_options(folder / "options.json"))).items():
            file[name] = array
    yield f"elmo:{folder}"


@contextmanager
def _infersent(folder: Path) -> Iterator[str]:
    import torch

    layer = torch.nn.LSTM(_SIZE, _HIDDEN, bidirectional=True)
    _save(folder / "infersent1.pkl", {f"enc_lstm.{name}": t.shape for name, t in layer.state_dict().items()})
    _write_vectors(folder, ("<s>", "</s>"))
    yield f"infersent:{folder}"


@contextmanager
def _gensen(folder: Path) -> Iterator[str]:
    import torch

    words = ("<s>", "<pad>", "</s>", "<unk>", *_WORDS)
    layer = torch.nn.GRU(_SIZE, _HIDDEN, bidirectional=True)
    shapes = {f"encoder.{name}": t.shape for name, t in layer.state_dict().items()}
    _save(folder / "tiny.model", shapes | {"src_embedding.weight": (len(words), _SIZE)})
    vocabulary = {"word2id": {word: number for number, word in enumerate(words)}}
    (folder / "tiny_vocab.pkl").write_bytes(pickle.dumps(vocabulary, protocol=2))
    yield f"gensen:{folder}"


@contextmanager
def _api(_: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Endpoint) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            # The user's own key is for other servers.
            yield f"api:tiny?base_url=http://127.0.0.1:{server.server_port}&key_env={_KEY}&retries=0"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def _python(_: Path) -> Iterator[str]:
    yield f"python:{__name__}:Letters"


SELFTESTS: Mapping[str, Callable[[Path], AbstractContextManager[str]]] = {
    "use": _use,
    "glove": _glove,
    "vectors": _vectors,
    "hf": _hf,
    "st": _st,
    "elmo": _elmo,
    "infersent": _infersent,
    "gensen": _gensen,
    "api": _api,
    "python": _python,
}


class Letters:
    """An encoder as a user may write one: how often each vowel is in a text."""

    def encode(self, texts: Sequence[str]) -> list[list[float]]:
        return [[float(text.count(vowel)) for vowel in "aeiou"] for text in texts]


class _Endpoint(BaseHTTPRequestHandler):
    """Answers as OpenAI's embeddings endpoint does."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        rows = Letters().encode(asked["input"])
        body = json.dumps({"data": [{"index": i, "embedding": row} for i, row in enumerate(rows)]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing of requests."""


def _random(shapes: Mapping[str, Sequence[int]]) -> dict[str, NDArray[np.float32]]:
    rng = np.random.default_rng(0)
    return {name: rng.normal(scale=0.5, size=shape).astype(np.float32) for name, shape in shapes.items()}


def _save(path: Path, shapes: Mapping[str, Sequence[int]]) -> None:
    import torch

    torch.save({name: torch.from_numpy(array) for name, array in _random(shapes).items()}, path)


def _write_vectors(folder: Path, more: Sequence[str] = ()) -> Path:
    path = folder / "vectors.txt"
    rows = _random(dict.fromkeys((*_WORDS, *more), (_SIZE,)))
    path.write_text("".join(f"{word} {' '.join(map(str, row))}\n" for word, row in rows.items()), encoding="utf-8")
    return path


def _write_bert(folder: Path) -> Path:
    import torch

    library: Any = import_module("transformers")
    library.utils.logging.disable_progress_bar()
    vocabulary = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *_WORDS)
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    library.BertTokenizerFast(str(folder / "vocab.txt"), model_max_length=16).save_pretrained(folder)
    sizes = {"hidden_size": _SIZE, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
    config = library.BertConfig(vocab_size=len(vocabulary), max_position_embeddings=16, **sizes)
    model = library.BertModel(config)
    shapes = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    model.load_state_dict({name: torch.from_numpy(array) for name, array in _random(shapes).items()}, strict=False)
    model.save_pretrained(folder)
    return folder
