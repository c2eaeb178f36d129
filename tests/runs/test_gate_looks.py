"""The always-valid gate: alpha is spent over looks, which the folder of the baseline counts."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.cli.small_tests import write_test, write_vectors

import biassay
from biassay.cli import main
from biassay.runs.compare import spend_alpha, take_look


def test_alpha_is_spent_over_all_looks() -> None:
    """All intervals share alpha, and one of four ends is a false alarm: 1% of all sequences at most."""
    assert spend_alpha(0.05, 1) == pytest.approx(0.02)
    assert sum(spend_alpha(0.05, look) for look in range(1, 10_000)) / 4.0 == pytest.approx(0.01, rel=1e-3)


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    model, test = f"vectors:{write_vectors(tmp_path / 'v.txt')}", str(write_test(tmp_path / "own.json"))
    for name in ("old", "new"):
        biassay.run(model, test, out=tmp_path / name, cache=tmp_path / "cache")
    return tmp_path / "old", tmp_path / "new"


def test_every_new_release_is_a_look_and_the_same_release_is_not(
    folders: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = map(str, folders)
    other = folders[1].parent / "other"
    model = f"other=vectors:{folders[1].parent / 'v.txt'}"
    biassay.run(model, str(folders[1].parent / "own.json"), out=other, cache=folders[1].parent / "cache")
    printed = []
    for release in (new, new, str(other)):
        with pytest.raises(SystemExit) as ended:
            main(["compare", old, release, "--always-valid", "--json"])
        assert ended.value.code == 0
        printed.append(capsys.readouterr().err)
    assert ["look 1 at this baseline: alpha 0.02" in text for text in printed] == [True, True, False]
    assert "look 2 at this baseline: alpha 0.00667" in printed[2]
    assert len(json.loads((folders[0] / "looks.json").read_text())["looks"]) == 2
    assert biassay.load(old).results  # the folder is still a run


def test_a_label_is_the_same_look_and_other_tests_are_another(
    folders: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = map(str, folders)
    name = biassay.load(old).results[0].test
    printed = []
    for arguments in ((old, new), (f"old={old}", f"new={new}"), (old, new, "--tests", name)):
        with pytest.raises(SystemExit) as ended:
            main(["compare", *arguments, "--always-valid", "--quiet"])
        assert ended.value.code == 0
        printed.append(capsys.readouterr().err)
    assert ["look 1 at" in text for text in printed] == [True, True, False]
    assert "look 2 at" in printed[2]


def test_gates_at_the_same_time_take_different_looks(folders: tuple[Path, Path]) -> None:
    def take(_: int) -> int:
        return take_look(str(folders[0]), "glove")

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(take, range(24))) == list(range(1, 25))


def test_a_copy_of_the_baseline_goes_on_counting(folders: tuple[Path, Path]) -> None:
    assert [take_look(str(folders[0]), "glove") for _ in range(2)] == [1, 2]
    copy = shutil.copytree(folders[0], folders[0].parent / "copy")
    assert take_look(str(copy), "glove") == 3


def test_what_cannot_be_counted_is_an_error(folders: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    old, new = map(str, folders)
    for arguments, message in (
        (["glove", new], "--always-valid needs the run folder of the old model, got 'glove'"),
        ([old, new, new], "compares one new model with one baseline"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(["compare", *arguments, "--always-valid"])
        assert ended.value.code == 2
        assert message in capsys.readouterr().err
    for damaged in (b"[]", b"", b'{"looks": [', b"\xff\xfe", b'{"looks": [1]}'):
        (folders[0] / "looks.json").write_bytes(damaged)
        with pytest.raises(SystemExit) as ended:
            main(["compare", old, new, "--always-valid"])
        assert ended.value.code == 2
        assert "looks.json: " in capsys.readouterr().err
        assert (folders[0] / "looks.json").read_bytes() == damaged
