"""Tiny ELMo models with random weights, in the published format."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from biassay.models.recurrent.elmo import ElmoEncoder
from biassay.models.registry import open_encoder

Array = NDArray[Any]
CELL = "RNN_{}/RNN/MultiRNNCell/Cell{}/LSTMCell"
TEXTS = [
    "This is a doctor.",
    "she",
    "María's mother-in-law — she does not know — sang 日本語 to everybody in the quiet old garden that evening.",
    "Unbelievablyoverlongwordsthatgoonandonandneverseemtoreachanend are here.",
    "He is here.",
]
OPTIONS: dict[str, dict[str, Any]] = {
    "lstm": {
        "use_skip_connections": True,
        "projection_dim": 6,
        "cell_clip": 0.8,
        "proj_clip": 0.3,
        "dim": 10,
        "n_layers": 2,
    },
    "char_cnn": {
        "activation": "relu",
        "filters": [[1, 3], [3, 4], [7, 5]],
        "n_highway": 2,
        "embedding": {"dim": 4},
        "n_characters": 262,
        "max_characters_per_token": 50,
    },
}


def options(**changes: Any) -> dict[str, dict[str, Any]]:
    """The options with some fields changed, wherever they stand."""
    return {part: {k: changes.get(k, v) for k, v in fields.items()} for part, fields in OPTIONS.items()}


def random_weights(given: dict[str, dict[str, Any]], seed: int = 3) -> dict[str, Array]:
    lstm, cnn = given["lstm"], given["char_cnn"]
    letters, out, cell = cnn["embedding"]["dim"], lstm["projection_dim"], lstm["dim"]
    width = sum(count for _, count in cnn["filters"])
    shapes: dict[str, tuple[int, ...]] = {"char_embed": (261, letters)}
    for i, (size, count) in enumerate(cnn["filters"]):
        shapes |= {f"CNN/W_cnn_{i}": (1, size, letters, count), f"CNN/b_cnn_{i}": (count,)}
    for i in range(cnn["n_highway"] or 0):
        shapes |= {f"CNN_high_{i}/W_{gate}": (width, width) for gate in ("carry", "transform")}
        shapes |= {f"CNN_high_{i}/b_{gate}": (width,) for gate in ("carry", "transform")}
    shapes |= {"CNN_proj/W_proj": (width, out), "CNN_proj/b_proj": (out,)}
    for name in (CELL.format(d, layer) for d in (0, 1) for layer in range(lstm["n_layers"])):
        shapes |= {f"{name}/W_0": (2 * out, 4 * cell), f"{name}/B": (4 * cell,), f"{name}/W_P_0": (cell, out)}
    rng = np.random.default_rng(seed)
    return {name: rng.normal(scale=0.4, size=shape).astype(np.float32) for name, shape in shapes.items()}


def write_model(folder: Path, given: dict[str, Any] = OPTIONS, **changed: Array | None) -> Path:
    """A random model in the published format; ``changed`` replaces data sets, None leaves one out."""
    import h5py

    folder.mkdir(exist_ok=True)
    (folder / "options.json").write_text(json.dumps(given))
    with h5py.File(folder / "weights.hdf5", "w") as file:
        for name, array in (random_weights(given) | changed).items():
            if array is not None:
                file[name] = array
    return folder


def opened(folder: Path, settings: str = "") -> ElmoEncoder:
    encoder = open_encoder(f"elmo:{folder}?device=cpu{settings}")
    assert isinstance(encoder, ElmoEncoder)
    return encoder


def run_layers(encoder: ElmoEncoder, texts: Sequence[Sequence[str]]) -> list[Array]:
    """Layers (layers + 1, words, d) of every text."""
    states = dict(encoder.load().run(texts))
    return [states[row].numpy() for row in range(len(texts))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("models") / "tiny")
