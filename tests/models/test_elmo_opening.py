"""Opening ELMo: identity, settings, and folders that are not right."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from biassay.errors import ModelError, UnknownNameError
from biassay.models.registry import open_encoder

from . import elmo_models
from .elmo_models import opened, options, write_model

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
        ("layers=-1", r"unknown layers of model .*: '-1'"),
        ("device=gpu", r"unknown device of model .*: 'gpu'.*auto, cpu, cuda"),
        ("pooling=mean", r"'pooling'; did you mean 'pool'\?"),
    ],
)
def test_settings_that_there_are_not(folder: Path, settings: str, message: str) -> None:
    with pytest.raises(UnknownNameError, match=message):
        open_encoder(f"elmo:{folder}?{settings}")


# Folders that are not right.


def test_folder_layouts_that_are_wrong(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"there is no folder .*absent; elmo:DIR is a folder with options.json"):
        open_encoder(f"elmo:{tmp_path / 'absent'}")
    with pytest.raises(ModelError, match=r"no options.json \(nor \*options\*.json\) in the folder; it holds nothing"):
        open_encoder(f"elmo:{tmp_path}")
    folder = write_model(tmp_path / "model")
    (folder / "weights.hdf5").rename(folder / "model.hdf5")
    with pytest.raises(ModelError, match=r"no weights.hdf5 .* it holds model.hdf5, options.json"):
        open_encoder(f"elmo:{folder}")
    for name in ("a_weights.hdf5", "b_weights.hdf5"):
        (folder / name).touch()
    with pytest.raises(ModelError, match=r"several files could be weights.hdf5: a_weights.hdf5, b_weights.hdf5"):
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
