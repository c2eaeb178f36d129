"""``biassay stereotypes`` as a user types it, on a tiny model that knows the words of the sentences."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from biassay.studies.stereotypes.results import TABLES

from .asked_models import GROUPS, Place, save_masked
from .conftest import Cli

pytestmark = pytest.mark.extras
Refused = Callable[..., str]


@pytest.fixture
def refused(cli: Cli, place: Place, tmp_path: Path) -> Refused:
    """Runs a command that must be refused without a trace; returns what it said."""

    def call(*args: object, model: object = None) -> str:
        before = sorted(tmp_path.rglob("*"))
        models = (place.model,) if model is None else (model,) if model else ()
        own = ("--files", place.files[0], "--out", tmp_path / "refused")
        code, stdout, stderr = cli("stereotypes", *models, *own, *args)
        assert (code, stdout) == (2, ""), stderr
        assert "Traceback" not in stderr
        assert sorted(tmp_path.rglob("*")) == before
        return " ".join(stderr.split())

    return call


def test_a_file_of_ones_own_adds_groups_traits_and_templates(cli: Cli, place: Place, tmp_path: Path) -> None:
    more = tmp_path / "more.toml"
    more.write_text(
        '[groups]\nwest = { domain = "land", singular = "western baker", plural = "western bakers" }\n'
        '[pairs.slow-quick]\ndimension = "wit"\nleft = "slow"\nright = "quick"\n'
    )
    own = ("--files", place.files[0], "--files", more, "--groups", "west", "--templates", "own-so", "--json")
    code, stdout, _ = cli("stereotypes", place.model, *own, "--measures", "ilps")
    printed = json.loads(stdout)
    inputs = printed["manifest"]["inputs"]
    assert code == 1  # nothing of the model could be measured: it does not know the group
    assert inputs["groups"] == ["west"]
    assert inputs["pairs"][-2:] == ["dull-witty", "slow-quick"]
    assert inputs["templates"] == {"own-so": "I know {group}, so {trait}!"}
    assert printed["models"][0]["unknown_adjectives"] == ["slow"]
    assert printed["profiles"][0]["scores"][-1] is None


def cells(line: str) -> list[str]:
    return re.split(r" {2,}", line.strip())


def test_the_best_measure_is_printed_group_by_group(cli: Cli, place: Place) -> None:
    options = ("--files", place.files[0], "--groups", "land,craft", "--templates", "mine", "--n-bootstrap", 20)
    human = ("--human", place.human, "--annotators", "Gender=Woman", "--measures", "ilps", "--all")
    code, stdout, _ = cli("stereotypes", place.model, *options, *human)
    assert code == 0
    found = place(human=place.human, annotators=[("Gender", "Woman")], measures="ilps", n_bootstrap=20)
    rows = [cells(line) for line in stdout.splitlines()]
    specs = {spec.name: spec for spec in TABLES}
    turned = {row[0]: row[1:] for row in reversed(rows)}  # a wide table stands on its side
    labels = {column.name: column.label for column in specs["alignments"].get_columns(found)} | {"effect_size": "tau"}
    frame = found.to_frame("alignments")
    for name in ("effect_size", "tau_shuffled", "precision_effect_size", "with_pilot_effect_size"):
        assert turned[labels[name]] == [f"{value:.2f}" for value in frame[name]]
    shown = {row[0]: row for row in reversed(rows) if row[0] in GROUPS}  # the first table of groups
    taus: dict[str, Any] = {row.group: row for row in found.tables["group_alignments"] if row.annotators == "all"}
    assert set(shown) == set(GROUPS)
    profiles, inputs = found.tables["profiles"], found.manifest.inputs
    means = np.mean([profile.scores for profile in profiles], axis=0)
    for profile in profiles:
        row, tau = shown[profile.group], taus.get(profile.group)
        apart = np.array(profile.scores) - means
        most = int(np.argmax(np.abs(apart)))
        assert row[1].split(", ")[0] == inputs.traits[inputs.pairs[most]][int(apart[most] > 0)]
        expected = (
            [f"{tau.effect_size:.2f}", f"{tau.precision:.2f}", "yes" if tau.pilot else "no"] if tau else ["–"] * 3
        )
        assert row[2:] == expected


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--annotators", "Gender=Woman"), "--human"),
        (("--annotators", "Woman", "--human", "h.json"), "FIELD=VALUE, got 'Woman'"),
        (("--human", "/none/h.json"), "/none/h.json"),
        (("--n-bootstrap", "3"), "n_bootstrap must be at least 10 and at most 1,000,000, got 3"),
        (("--resume", "run", "--measures", "ilps"), "--measures"),
    ],
)
def test_bad_input_is_one_plain_sentence(refused: Refused, args: tuple[str, ...], words: str) -> None:
    assert words in refused(*args)


def test_models_that_cannot_be_asked(refused: Refused, place: Place, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert "MODEL" in refused(model=())
    assert "hf:NAME" in refused(model="glove")
    assert "pool=" in refused(model=f"{place.model}?pool=mean")
    missing = tmp_path_factory.mktemp("models") / "none"
    assert str(missing) in refused(model=f"hf:{missing}")
    headless = save_masked(missing.parent / "m", place.abc, head=False)
    few = ("--groups", "north", "--templates", "own-so", "--measures", "ilps")
    assert "cls.predictions" in refused(*few, model=f"hf:{headless}")
