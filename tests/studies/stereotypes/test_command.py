"""``biassay stereotypes`` as a user types it, on a tiny model that knows the words of the sentences."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from .asked_models import Place, save_masked
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
