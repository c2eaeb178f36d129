"""ELMo's weights that are not right; they are read in ``prepare``, before anything is encoded."""

from __future__ import annotations

import json
from pathlib import Path

import h5py
import numpy as np
import pytest

from biassay.errors import ModelError

from .elmo_models import OPTIONS, opened, options, random_weights, write_model

pytestmark = pytest.mark.extras


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
