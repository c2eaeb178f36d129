"""A search that was killed goes on and finds the same: bit for bit, with words from a file, a list and the model."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import biassay
from biassay.errors import UsageError
from biassay.runs.progress import NullListener

from .planted_words import TABLE, WORDS, discovered, planted, write_vectors

BOTH = ["red-women", "blue-men"]
# What kills its own process when a step of a model is first heard of.
KILLED = """
import os, signal, sys
from biassay.cli.progress import ProgressLog

def kill(self, who, unit, done, total):
    if (who, unit) == (sys.argv[1], sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)

ProgressLog.progress = kill
from biassay.cli import main
main(sys.argv[3:])
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models; the second lacks some of the names."""
    folder = planted(tmp_path_factory.mktemp("resuming"))
    write_vectors(folder / "w.txt", {word: v for word, v in TABLE.items() if word not in ("redmen2", "bluemen0")})
    (folder / "words.txt").write_text("\n".join([*WORDS, "nowhere"]))
    return folder


def models(place: Path) -> list[str]:
    return [f"vectors:{place / name}" for name in ("v.txt", "w.txt")]


class Stopping(NullListener):
    """Ctrl-C when a step of a model is first heard of."""

    def __init__(self, model: str, unit: str) -> None:
        self.step = model, unit

    def progress(self, who: str, unit: str, done: int, total: int) -> None:  # noqa: ARG002
        if (who, unit) == self.step:
            raise KeyboardInterrupt


def same(one: biassay.Run, other: biassay.Run) -> bool:
    arrays = ({name: array.tobytes() for name, array in run.arrays.items()} for run in (one, other))
    return one.tables == other.tables and len({tuple(sorted(of.items())) for of in arrays}) == 1


@pytest.mark.parametrize(
    ("model", "step", "listed"),
    [(0, "texts", True), (1, "texts", False), (0, "words", True), (1, "words", True), (1, "bytes", False)],
)
def test_a_search_killed_at_any_point_goes_on_to_the_same(
    model: int, step: str, listed: bool, place: Path, tmp_path: Path
) -> None:
    given: dict[str, Any] = {"grouping": place / "own.toml", "n_permutations": 49, "seed": 2}
    given |= {"words": place / "words.txt"} if listed else {}
    expected = biassay.discover(models(place), BOTH, **given)
    named, out = models(place), tmp_path / "out"
    options = [part for name, value in given.items() for part in (f"--{name.replace('_', '-')}", str(value))]
    options += [part for group in BOTH for part in ("--groups", group)]
    command = [sys.executable, "-c", KILLED, Path(named[model]).name, step, "discover", *named, *options]
    environment = {**os.environ, "BIASSAY_CACHE": str(tmp_path / "cache")}
    ended = subprocess.run([*command, "--out", str(out)], env=environment, capture_output=True, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert [m.measured for m in biassay.load(out).manifest.models] == [place < model for place in range(2)]
    found = biassay.resume(out, cache=tmp_path / "cache")
    assert found.manifest.status == "complete"
    assert same(found, expected)
    assert same(biassay.load(out), expected)
    assert (out / "report.html").is_file()


@pytest.mark.parametrize("changed", ["own.toml", "words.txt"])
def test_other_groups_or_words_than_before_are_refused(changed: str, tmp_path: Path) -> None:
    place = planted(tmp_path)
    (place / "words.txt").write_text("\n".join(WORDS))
    with pytest.raises(KeyboardInterrupt):
        discovered(place, words=place / "words.txt", out=place / "out", listener=Stopping("v.txt", "words"))
    text = (place / changed).read_text()
    (place / changed).write_text(text.replace("random3", "random4"))
    with pytest.raises(UsageError, match="digest"):
        biassay.resume(place / "out", cache=place / "cache")
    (place / changed).write_text(text)
    assert biassay.resume(place / "out", cache=place / "cache").manifest.status == "complete"


def test_several_models_are_those_of_several_runs(place: Path) -> None:
    given: dict[str, Any] = {"grouping": place / "own.toml", "n_permutations": 49, "cache": place / "cache"}
    both = biassay.discover({"one": models(place)[0], "two": models(place)[1]}, BOTH, **given)
    for number, name in enumerate(("one", "two")):
        alone = biassay.discover({name: models(place)[number]}, BOTH, **given)
        for table, rows in both.tables.items():
            assert [row for row in rows if row.model == name] == list(alone.tables[table])
        for key, array in alone.arrays.items():
            np.testing.assert_array_equal(both.arrays[f"{number}/{key.partition('/')[2]}"], array)
    assert [(f.model, f.item) for f in both.findings()] == [(m, g) for m in ("one", "two") for g in BOTH]
    (first, second) = both.compare().tables["words"]
    assert (first.baseline, first.model, first.group, second.group) == ("one", "two", *BOTH)
    page = both.report(place / "page.html").read_text()
    assert all(f"red-women in {name}" in page for name in ("one", "two"))
