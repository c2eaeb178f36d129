"""Opening ELMo: identity, settings, and folders that are not right."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from biassay.errors import ModelError, UnknownNameError, UsageError
from biassay.models.registry import open_encoder

from . import elmo_models
from .elmo_models import OPTIONS, opened, options, write_model

pytestmark = pytest.mark.extras

folder = elmo_models.folder


def test_identity_is_that_of_the_files_and_the_settings(tmp_path: Path, folder: Path) -> None:
    identity = opened(folder, "&layers=concat").identity
    assert (identity.name, identity.family) == ("elmo:tiny", "elmo")
    assert identity.settings == (("pool", "mean"), ("layers", "concat"))
    moved = tmp_path / "moved"
    moved.symlink_to(folder)
    assert opened(moved, "&layers=concat").identity.key == identity.key
    assert opened(moved).identity.key != identity.key
    other = options(cell_clip=2)
    assert opened(write_model(tmp_path / "other", other)).identity.revision != identity.revision


def test_the_folder_one_stands_in_has_a_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert opened(Path(".")).identity.name == "elmo:tiny"


def test_files_may_carry_the_model_name(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model")
    (folder / "options.json").rename(folder / "elmo_2x6_options.json")
    (folder / "weights.hdf5").rename(folder / "elmo_2x6_weights.hdf5")
    assert opened(folder).encode(["a word"]).vectors.shape == (1, 12)


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


def test_cuda_asked_for_and_absent(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(UsageError, match=r"device=cuda was requested"):
        open_encoder(f"elmo:{folder}?device=cuda")
    open_encoder(f"elmo:{folder}?device=auto").prepare(["a"])


# Folders that are not right.


def test_folder_layouts_that_are_wrong(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"absent: no such folder; elmo:DIR is a folder with options.json"):
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


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[" * 100_000])
def test_options_that_are_no_json(tmp_path: Path, content: bytes) -> None:
    folder = write_model(tmp_path / "model")
    (folder / "options.json").write_bytes(content)
    with pytest.raises(ModelError, match=r"options.json: not a JSON file"):
        open_encoder(f"elmo:{folder}")


@pytest.mark.parametrize("content", ["3", "[]", "{}", '{"lstm": 1, "char_cnn": {"n_characters": 262}}'])
def test_options_of_something_else(tmp_path: Path, content: str) -> None:
    folder = write_model(tmp_path / "model")
    (folder / "options.json").write_text(content)
    with pytest.raises(ModelError, match=r"options.json: the field char_cnn.* is missing; is this the options file"):
        open_encoder(f"elmo:{folder}")


@pytest.mark.parametrize("name", [f"{part}.{field}" for part in OPTIONS for field in OPTIONS[part]])
def test_a_missing_field_is_named(tmp_path: Path, name: str) -> None:
    folder, (part, field) = write_model(tmp_path / "model"), name.split(".")
    less = options()
    del less[part][field]
    (folder / "options.json").write_text(json.dumps(less))
    with pytest.raises(ModelError, match=rf"the field {name}.* is missing"):
        open_encoder(f"elmo:{folder}")


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("n_characters", 5000, "char_cnn.n_characters must be 261 or 262, got 5000"),
        ("activation", "gelu", "char_cnn.activation must be 'relu' or 'tanh', got 'gelu'"),
        ("filters", [], r"char_cnn.filters must be a list of \[width, count\], got \[\]"),
        ("filters", [[1, 2], [3]], "char_cnn.filters must be a list"),
        ("filters", [[0, 2]], "char_cnn.filters must be a list"),
        ("filters", [[51, 2]], "a filter is 51 characters wide, but words have only 50"),
        ("embedding", {"dim": 0}, "char_cnn.embedding.dim must be a whole number of at least 1, got 0"),
        ("n_highway", -1, "char_cnn.n_highway must be a whole number of at least 0, got -1"),
        ("max_characters_per_token", 2, "max_characters_per_token must be a whole number of at least 3, got 2"),
        ("n_layers", "2", "lstm.n_layers must be a whole number of at least 1, got '2'"),
        ("dim", True, "lstm.dim must be a whole number of at least 1, got True"),
        ("projection_dim", 6.5, "lstm.projection_dim must be a whole number of at least 1, got 6.5"),
        ("cell_clip", 0, "lstm.cell_clip must be a number above 0, or null for no clipping, got 0"),
        ("proj_clip", "3", "lstm.proj_clip must be a number above 0"),
        ("use_skip_connections", 1, "lstm.use_skip_connections must be True or False, got 1"),
    ],
)
def test_a_field_out_of_range_is_named(tmp_path: Path, field: str, value: Any, message: str) -> None:
    folder = write_model(tmp_path / "model")
    (folder / "options.json").write_text(json.dumps(options(**{field: value})))
    with pytest.raises(ModelError, match=message):
        open_encoder(f"elmo:{folder}")
