"""Files of an ELMo that are opened, and those that are not right."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from biassay.errors import ModelError, UnknownNameError
from biassay.models.registry import open_encoder

from . import elmo_models
from .elmo_models import OPTIONS, opened, options, random_weights, write_model

pytestmark = pytest.mark.extras

folder = elmo_models.folder


def test_identity_is_that_of_the_files_and_the_settings(tmp_path: Path, folder: Path) -> None:
    identity = opened(folder, "&layers=concat").identity
    assert (identity.name, identity.backend) == ("elmo:tiny", "elmo")
    assert identity.settings == (("pool", "mean"), ("layers", "concat"))
    moved = tmp_path / "moved"
    moved.symlink_to(folder)
    assert opened(moved, "&layers=concat").identity.key == identity.key
    assert opened(moved).identity.key != identity.key
    other = options(cell_clip=2)
    assert opened(write_model(tmp_path / "other", other)).identity.revision != identity.revision


def test_opening_imports_no_heavy_library_and_reads_no_weights(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model")
    (folder / "weights.hdf5").write_bytes(b"not read yet")
    code = (
        "import sys; from biassay.models.registry import open_encoder; "
        f"open_encoder({f'elmo:{folder}'!r}); print([m for m in ('torch', 'h5py') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("pool=median", r"unknown pool of model .*: 'median'.*one of mean, max\)"),
        ("layers=3", r"unknown layers of model .*: '3'.*one of sum, concat, 0, 1, 2\)"),
    ],
)
def test_settings_that_there_are_not(folder: Path, settings: str, message: str) -> None:
    with pytest.raises(UnknownNameError, match=message):
        open_encoder(f"elmo:{folder}?{settings}")


# Folders that are not right.


def test_folder_layouts_that_are_wrong(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"there is no folder .*absent; an ELMo folder has options.json and weights"):
        open_encoder(f"elmo:{tmp_path / 'absent'}")
    with pytest.raises(ModelError, match=r"expected one options.json or \*options\*.json, got none; an ELMo folder"):
        open_encoder(f"elmo:{tmp_path}")
    folder = write_model(tmp_path / "model")
    (folder / "weights.hdf5").rename(folder / "a_weights.hdf5")
    (folder / "b_weights.hdf5").touch()
    with pytest.raises(ModelError, match=r"expected one weights.hdf5 or .*, got a_weights.hdf5, b_weights.hdf5"):
        open_encoder(f"elmo:{folder}")


@pytest.mark.parametrize("content", ["", "[" * 100_000, "3", "[]", "{}", '{"lstm": 1, "char_cnn": {}}'])
def test_options_of_something_else(tmp_path: Path, content: str) -> None:
    folder = write_model(tmp_path / "model")
    (folder / "options.json").write_text(content)
    with pytest.raises(ModelError, match=r"options.json: not the options file of an ELMo"):
        open_encoder(f"elmo:{folder}")


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("n_characters", 5000, "expected 261 or 262 characters"),
        ("activation", "gelu", "relu or tanh"),
        ("filters", [], "expected 261 or 262 characters, filters"),
        ("filters", [[51, 2]], "a filter is 51 characters wide, but words have only 50"),
        ("embedding", {"dim": 0}, "whole numbers above 0"),
        ("n_layers", "2", "whole numbers above 0"),
    ],
)
def test_a_field_out_of_range_is_named(tmp_path: Path, field: str, value: Any, message: str) -> None:
    folder = write_model(tmp_path / "model")
    (folder / "options.json").write_text(json.dumps(options(**{field: value})))
    with pytest.raises(ModelError, match=message):
        open_encoder(f"elmo:{folder}")


def refused(folder: Path, message: str) -> None:
    encoder = opened(folder)
    with pytest.raises(ModelError, match=message):
        encoder.prepare(["a"])


@pytest.mark.parametrize("name", sorted(random_weights(OPTIONS)))
def test_every_missing_data_set_is_named_and_never_made_up(tmp_path: Path, name: str) -> None:
    folder = write_model(tmp_path / "model", OPTIONS, **{name: None})
    refused(folder, rf"weights.hdf5: 1 of 29 data sets are missing; the options require {name} of shape \(")


@pytest.mark.parametrize("name", sorted(random_weights(OPTIONS)))
def test_every_data_set_of_the_wrong_shape_is_named(tmp_path: Path, name: str) -> None:
    wrong = random_weights(OPTIONS)[name][..., :-1]
    folder = write_model(tmp_path / "model", OPTIONS, **{name: wrong})
    refused(folder, rf"{name} has the shape \(.*\); the options require \(")


def test_weights_stored_in_another_file_are_refused(tmp_path: Path) -> None:
    good = random_weights(OPTIONS)["char_embed"].astype(np.float32)
    folder = write_model(tmp_path / "model", OPTIONS, char_embed=None)
    good.tofile(tmp_path / "raw")
    with h5py.File(folder / "weights.hdf5", "a") as file:
        external = [(str(tmp_path / "raw"), 0, good.nbytes)]
        file.create_dataset("char_embed", good.shape, good.dtype, external=external)
    refused(folder, "char_embed is stored in another file")


@pytest.mark.parametrize(
    ("field", "left_over"), [("n_layers", "Cell1/LSTMCell/B"), ("n_highway", "CNN_high_1/W_carry")]
)
def test_layers_that_the_options_forget_are_not_left_out(tmp_path: Path, field: str, left_over: str) -> None:
    folder = write_model(tmp_path / "model")
    (folder / "options.json").write_text(json.dumps(options(**{field: 1})))
    refused(folder, rf"the data set \S*{left_over} is not part of the network that the options describe")


def test_files_that_are_no_hdf5_or_end_early(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model")
    content = (folder / "weights.hdf5").read_bytes()
    for damaged in (b"", b"version https://git-lfs.github.com/spec/v1\n", content[:600], content[: len(content) // 2]):
        (folder / "weights.hdf5").write_bytes(damaged)
        refused(folder, r"weights.hdf5: damaged, or not an HDF5 file: .*; download it again")
