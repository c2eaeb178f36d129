"""Runs of stereotypes that were killed or interrupted go on to the same numbers, bit for bit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import biassay
from biassay.corpus.contexts import get_group_forms
from biassay.datasets.abc_model import select_groups
from biassay.errors import UsageError
from biassay.runs.contexts import find_contexts
from biassay.runs.progress import NullListener
from biassay.runs.run import Run

from .asked_models import Place, save_masked

pytestmark = pytest.mark.extras
GROUPS = ("north", "south", "smith")

# Dies at the so-manieth time that it says how far a step of a model is.
KILLED = """
import json, os, signal, sys
import torch
torch.set_num_threads(1)
import biassay
from biassay.models.transformers import language_model
from biassay.runs.progress import NullListener
language_model._MAX_BATCH_QUERIES = {"cpu": 300}
asked, folder, model, step, times = json.loads(sys.argv[1])
class Deadly(NullListener):
    left = times
    def progress(self, who, unit, done, total):
        self.left -= (who, unit) == (model, step)
        if not self.left:
            os.kill(os.getpid(), signal.SIGKILL)
if asked is None:
    biassay.resume(folder, listener=Deadly(), cache=os.environ["BIASSAY_CACHE"])
else:
    biassay.stereotypes(**asked, out=folder, listener=Deadly())
"""


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("biassay.models.transformers.language_model._MAX_BATCH_QUERIES", {"cpu": 300})


@pytest.fixture
def asked(place: Place, tmp_path: Path) -> dict[str, Any]:
    """Two models that are asked blanks and words in contexts, three of every word."""
    corpus, groups = tmp_path / "c.txt", select_groups(place.abc, GROUPS)
    sides = [side for pair in place.abc.pairs for side in (pair.left_adjectives[0], pair.right_adjectives[0])]
    words = [*(form for group in groups for form in get_group_forms(group)), *sides]
    ways = list(permutations(("that", "is", "so", "there", "i", "know")))[:3]
    corpus.write_text("\n".join(f"{' '.join(way)} {word} and are." for word in words for way in ways))
    find_contexts(corpus, tmp_path / "c.parquet", (), words=words, workers=1)
    return {
        "models": [place.model, f"hf:{save_masked(tmp_path / 'other', place.abc, seed=6)}"],
        "measures": ["ilps", "set", "ceat"],
        "files": [str(file) for file in place.files],
        "groups": list(GROUPS),
        "templates": ["own-that", "own-many"],
        "human": str(place.human),
        "contexts": str(tmp_path / "c.parquet"),
        "min_contexts": 2,
        "n_bootstrap": 10,
        "cache": str(tmp_path / "cache"),
    }


def killed(asked: dict[str, Any] | None, folder: Path, model: str, step: str, times: int, cache: str) -> None:
    given = json.dumps([asked, str(folder), model, step, times])
    paths = {"PYTHONPATH": ":".join(filter(None, sys.path)), "BIASSAY_CACHE": cache, "OMP_NUM_THREADS": "1"}
    # Variables such as OPENBLAS_CORETYPE choose kernels, which differ in the last bit.
    done = subprocess.run(
        [sys.executable, "-c", KILLED, given], env={**os.environ, **paths}, capture_output=True, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()[-2000:]


def same(one: Run, other: Run) -> None:
    assert one.tables == other.tables
    assert one.arrays.keys() == other.arrays.keys()
    for name, array in one.arrays.items():
        np.testing.assert_array_equal(array, other.arrays[name])
    assert [m.texts for m in one.manifest.models] == [m.texts for m in other.manifest.models]


@pytest.mark.slow
def test_a_run_that_is_killed_again_and_again_has_the_same_bits(asked: dict[str, Any], tmp_path: Path) -> None:
    out, cache = tmp_path / "out", asked["cache"]
    whole = biassay.stereotypes(**asked | {"cache": tmp_path / "elsewhere"})
    first, second = (Path(model).name for model in asked["models"])
    killed(asked, out, first, "blanks", 2, cache)
    killed(None, out, first, "contexts", 3, cache)
    assert not biassay.load(out).tables
    killed(None, out, second, "measures", 1, cache)
    assert [model.measured for model in biassay.load(out).manifest.models] == [True, False]
    found = biassay.resume(out, cache=cache)
    assert found.manifest.status == "complete"
    same(found, whole)
    same(biassay.load(out), whole)
    assert [m.encoded for m in whole.manifest.models] == [m.texts for m in whole.manifest.models]
    assert [m.encoded < m.texts for m in found.manifest.models] == [True, True]


class Stopping(NullListener):
    def __init__(self, after: int) -> None:
        self.after = after

    def progress(self, who: str, unit: str, done: int, total: int) -> None:  # noqa: ARG002
        self.after -= unit == "blanks"
        if not self.after:
            raise KeyboardInterrupt


def test_a_run_goes_on_only_with_the_same_inputs(place: Place, asked: dict[str, Any], tmp_path: Path) -> None:
    own, human = tmp_path / "own.toml", tmp_path / "people.json"
    own.write_text(place.files[0].read_text())
    human.write_text(place.human.read_text())
    given = {**asked, "files": [own], "human": human, "measures": "ilps", "contexts": None, "out": tmp_path / "out"}
    with pytest.raises(KeyboardInterrupt):
        biassay.stereotypes(**given, listener=Stopping(1))
    human.write_text(place.human.read_text().replace("100", "99"))
    with pytest.raises(UsageError, match="human judgements"):
        biassay.resume(tmp_path / "out", cache=asked["cache"])
    human.write_text(place.human.read_text())
    own.write_text(place.files[0].read_text().replace("There {group}", "Here {group}"))
    with pytest.raises(UsageError, match="templates"):
        biassay.resume(tmp_path / "out", cache=asked["cache"])
