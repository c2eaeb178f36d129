"""Arrays of another model, test or run: every command rejects them, even with a matching digest."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import biassay
from biassay.io import dump_json_with_digest
from biassay.results.run_folder import ArrayFile, save_arrays

from .conftest import Cli
from .small_tests import write_test, write_vectors

COUNT = 16
Edit = Callable[[dict[str, Any]], None]


def pack(arrays: Mapping[str, Any]) -> tuple[bytes, ArrayFile]:
    """Return the content of an array file and its description."""
    with tempfile.TemporaryDirectory() as folder:
        described = save_arrays(Path(folder), "0", arrays)
        return (Path(folder) / "arrays" / "0.npz").read_bytes(), described


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run an old model, a model that moves x to a and y to b, and both, with their cache."""
    place = tmp_path_factory.mktemp("measured")
    own = write_test(place / "own.json", COUNT)
    models = {
        name: f"{name}=vectors:{write_vectors(place / name, COUNT, lean, frequent=True)}"
        for name, lean in {"old": 0.0, "biased": 2.0}.items()
    }
    asked = {"old": models["old"], "biased": models["biased"], "both": list(models.values())}
    for name, model in asked.items():
        biassay.run(model, str(own), out=place / f"run-{name}", cache=place / "cache")
    return place


@pytest.fixture
def folders(measured: Path, tmp_path: Path, own_cache: Path) -> dict[str, Path]:
    shutil.copytree(measured, tmp_path, dirs_exist_ok=True)
    shutil.copytree(measured / "cache", own_cache, dirs_exist_ok=True)
    return {name: tmp_path / f"run-{name}" for name in ("old", "biased", "both")}


def get_arrays(folder: Path, index: int = 0) -> Path:
    return folder / "arrays" / f"{index}.npz"


def edit_results(folder: Path, edit: Edit) -> None:
    """Change results.json on purpose: its own digest fits again."""
    content = json.loads((folder / "results.json").read_text())
    del content["digest"]
    edit(content)
    (folder / "results.json").write_text(dump_json_with_digest(content))


def with_digest_of(folder: Path, index: int = 0) -> None:
    """Give the array file that is there the digest that results.json has."""
    digest = hashlib.sha256(get_arrays(folder, index).read_bytes()).hexdigest()
    edit_results(folder, lambda content: content["arrays"][str(index)].update(sha256=digest))


def refuse(cli: Cli, folders: dict[str, Path], named: Path) -> str:
    """All commands reject the run, name the file and suggest a remedy."""
    commands = (
        ("compare", folders["old"], folders["biased"], "--fail-if", "worse"),
        ("report", named.parents[1 if named.suffix == ".npz" else 0], "--out", folders["old"] / "page.html"),
    )
    for command in commands:
        code, stdout, stderr = cli(*command)
        said = " ".join(stderr.split())
        assert (code, stdout) == (2, "")
        assert f"{named}: " in said
        assert "make the run again" in said
    return said


def test_arrays_of_another_run_are_refused(cli: Cli, folders: dict[str, Path]) -> None:
    gate = ("compare", folders["old"], folders["biased"], "--fail-if", "worse")
    assert cli(*gate)[0] == 3
    shutil.copy(get_arrays(folders["old"]), get_arrays(folders["biased"]))
    assert "digest" in refuse(cli, folders, get_arrays(folders["biased"]))
    with_digest_of(folders["biased"])
    assert "give D = " in refuse(cli, folders, get_arrays(folders["biased"]))


def test_a_link_to_the_arrays_of_another_run_is_refused(cli: Cli, folders: dict[str, Path]) -> None:
    get_arrays(folders["biased"]).unlink()
    get_arrays(folders["biased"]).symlink_to(get_arrays(folders["old"]))
    assert "digest" in refuse(cli, folders, get_arrays(folders["biased"]))


def test_arrays_of_another_model_of_the_run_are_refused(cli: Cli, folders: dict[str, Path]) -> None:
    both = folders["both"]
    first, second = get_arrays(both, 0).read_bytes(), get_arrays(both, 1).read_bytes()
    get_arrays(both, 0).write_bytes(second)
    get_arrays(both, 1).write_bytes(first)
    for fits in (False, True):
        if fits:
            with_digest_of(both, 0)
            with_digest_of(both, 1)
        code, _, stderr = cli("compare", both, "--fail-if", "worse")
        assert (code, str(get_arrays(both, 0)) in stderr) == (2, True)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda cosines: cosines / 2.0, "give D = "),
        (lambda cosines: cosines[::-1], "give D = "),
        (lambda cosines: np.roll(cosines, 1, axis=0)[:, ::-1] * -1.0, "give D = |other associations"),
        (lambda cosines: np.concatenate([cosines[1:COUNT], cosines[:1], cosines[COUNT:]]), "other associations"),
        (lambda cosines: cosines[:-1], "its shape is"),
        (lambda cosines: cosines * np.nan, "not finite"),
    ],
    ids=["halved", "sets exchanged", "signs", "words exchanged", "a word less", "nan"],
)
def test_arrays_that_give_another_effect_are_refused(
    change: Callable[[Any], Any], said: str, folders: dict[str, Path]
) -> None:
    """A change of cosines, shapes and digest is detected by the effect."""
    folder = folders["biased"]
    run = biassay.load(folder)
    name = f"{run.results[0].test}/cosines"
    arrays = run.get_arrays(0) | {name: np.ascontiguousarray(change(run.arrays[f"0/{name}"]))}
    content, described = pack(arrays)
    get_arrays(folder).write_bytes(content)
    edit_results(
        folder, lambda found: found["arrays"].update({"0": json.loads(json.dumps(dataclasses.asdict(described)))})
    )
    with pytest.raises(biassay.errors.RunFolderError, match=said):
        biassay.load(folder)


def test_a_changed_scale_is_refused(folders: dict[str, Path]) -> None:
    folder = folders["biased"]
    run = biassay.load(folder)
    name = next(name for name in run.get_arrays(0) if name.startswith("scales/"))
    content, described = pack(run.get_arrays(0) | {name: run.arrays[f"0/{name}"] * np.float32(4.0)})
    get_arrays(folder).write_bytes(content)
    edit_results(folder, lambda found: found["arrays"]["0"].update(sha256=described.sha256))
    with pytest.raises(biassay.errors.RunFolderError, match=f"{get_arrays(folder)}: {name}: the cosine SD"):
        biassay.load(folder)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda content: content["arrays"]["0"].pop("sha256"), "no digest of arrays/0.npz"),
        (lambda content: content["arrays"].pop("0"), "the array is missing"),
        (lambda content: content["arrays"]["0"]["shapes"].popitem(), "the array is missing"),
        (lambda content: content["arrays"]["0"].update(sha256=3), "sha256: expected a text"),
        (
            lambda content: content["arrays"].update({"../../x": content["arrays"].pop("0")}),
            "'../../x' is not the index",
        ),
        (lambda content: content["arrays"].update({"7": content["arrays"]["0"]}), "'7' is not the index"),
    ],
)
def test_arrays_that_results_do_not_describe_are_refused(
    edit: Edit, said: str, cli: Cli, folders: dict[str, Path]
) -> None:
    edit_results(folders["biased"], edit)
    assert said in refuse(cli, folders, folders["biased"] / "results.json")


def test_a_run_with_exchanged_arrays_is_not_resumed(cli: Cli, folders: dict[str, Path]) -> None:
    shutil.copy(get_arrays(folders["old"]), get_arrays(folders["biased"]))
    before = {path: path.read_bytes() for path in folders["biased"].rglob("*.*")}
    code, _, stderr = cli("resume", folders["biased"])
    assert (code, str(get_arrays(folders["biased"])) in stderr) == (2, True)
    assert {path: path.read_bytes() for path in folders["biased"].rglob("*.*")} == before


@pytest.mark.usefixtures("measured_once")
def test_kept_measurements_with_exchanged_arrays_are_measured_again(
    folders: dict[str, Path], own_cache: Path, tmp_path: Path
) -> None:
    """Also where the digest is that of the other file."""
    kept = sorted(own_cache.glob("measured/*/arrays/0.npz"), key=lambda path: path.read_bytes())
    assert len(kept) == 2
    first, second = (path.read_bytes() for path in kept)
    wanted = biassay.load(folders["biased"])
    asked = "biased=vectors:" + str(tmp_path / "biased")
    assert os.path.exists(tmp_path / "biased")
    for fits in (False, True):
        kept[0].write_bytes(second)
        kept[1].write_bytes(first)
        if fits:
            for path in kept:
                with_digest_of(path.parents[1])
        again = biassay.run(asked, str(tmp_path / "own.json"), cache=own_cache)
        assert again.tables == wanted.tables
        assert all(np.array_equal(array, again.arrays[name]) for name, array in wanted.arrays.items())
        biassay.run("old=vectors:" + str(tmp_path / "old"), str(tmp_path / "own.json"), cache=own_cache)


def test_cached_vectors_of_another_model_are_not_used(
    folders: dict[str, Path], own_cache: Path, tmp_path: Path
) -> None:
    """Vectors of two models that are swapped in the cache are recomputed."""
    first, second = (path.parent for path in own_cache.glob("*/model.json"))
    shutil.rmtree(own_cache / "measured", ignore_errors=True)
    first.rename(own_cache / "exchanged")
    second.rename(first)
    (own_cache / "exchanged").rename(second)
    for name in ("old", "biased"):
        again = biassay.run(f"{name}=vectors:{tmp_path / name}", str(tmp_path / "own.json"), cache=own_cache)
        assert again.tables == biassay.load(folders[name]).tables
