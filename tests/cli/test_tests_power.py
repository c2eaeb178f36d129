"""``biassay tests power`` and `biassay.power`: figures of the catalogue and of a user's own tests."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import biassay
from biassay.cli import main
from biassay.datasets.catalogue import load_catalogue
from biassay.datasets.schema import ROLES
from biassay.datasets.variance_priors import list_measured_models, typical_components
from biassay.stats.crossed import VarianceComponents
from biassay.stats.power import CrossedDesign

Cli = Callable[..., tuple[int, str, str]]
OWN = {"X": ["cat", "kitten"], "Y": ["dog", "puppy"], "A": ["love", "peace"], "B": ["war", "hate"]}


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs the command in this process: exit code, stdout, stderr."""

    def call(*args: object) -> tuple[int, str, str]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main(["tests", "power", *map(str, args)])
        said = capsys.readouterr()
        return int(stop.value.code or 0), said.out, said.err

    return call


def records(cli: Cli, *args: object) -> list[dict[str, Any]]:
    code, stdout, _ = cli(*args, "--json")
    assert code == 0
    found: list[dict[str, Any]] = json.loads(stdout)
    return found


def test_every_test_of_the_main_collections_has_a_line_that_fits(cli: Cli) -> None:
    code, stdout, _ = cli()
    assert code == 0
    names = {line.split()[0] for line in stdout.splitlines() if line.strip()}
    assert {test.name for test in load_catalogue().main_tests} <= names
    assert max(map(len, stdout.splitlines())) <= 100


def test_components_of_every_test_were_measured_on_every_model_or_most() -> None:
    assert len(list_measured_models()) == 3
    for test in load_catalogue().main_tests:
        of = typical_components(test)
        assert of.residual > 0.0
        n_attributes = 1 / len(test.A.words) + 1 / len(test.B.words)
        assert 0.5 < of.targets + n_attributes * of.residual < 2.0  # 1 on every model; medians are near it
    assert typical_components(load_catalogue().tests["C6"]) == typical_components(load_catalogue().tests["weat6"])


def test_records(cli: Cli) -> None:
    (found,) = records(cli, "weat6", "--power", 0.9, "--alpha", 0.01, "--effect", 0.7)
    test = load_catalogue().tests["weat6"]
    design = CrossedDesign(VarianceComponents(**found["components"]), (8, 8, 8, 8))
    assert design.components == typical_components(test)
    assert found["sizes"] == [len(test.concept(role).words) for role in ROLES]
    assert design.power(design.D_from_d(found["smallest_d"]), 0.01) == pytest.approx(0.9, abs=1e-4)
    (effect,) = found["effects"]
    D = design.D_from_d(0.7)
    assert effect["power"] == pytest.approx(design.power(D, 0.01))
    needed = effect["words"]
    powers = [CrossedDesign(design.components, (words,) * 4).power(D, 0.01) for words in (needed - 1, needed)]
    assert powers[0] < 0.9 <= powers[1]
    assert effect["targets"] is None  # eight attributes limit it


def test_the_function_agrees_with_the_command(cli: Cli) -> None:
    (found,) = records(cli, "sent-weat7", "--effect", 0.8)
    result = biassay.power("sent-weat7", effect=0.8)
    assert (result.smallest_d, result.largest_d) == (found["smallest_d"], found["largest_d"])
    expected = {name: getattr(result, name) for name in ("effect", "power", "words", "targets", "attributes")}
    assert found["effects"] == [expected]


def test_own_tests(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "pets.toml"
    sets = "".join(f"[concepts.{role}]\nwords = {json.dumps(words)}\n" for role, words in OWN.items())
    file.write_text(f'{sets}[tests.pets]\ntitle = "Pets"\nX = "X"\nY = "Y"\nA = "A"\nB = "B"\n')
    (found,) = records(cli, file)
    assert found["smallest_d"] is None  # with two words a set there is no p-value
    assert found["note"]
    assert found["components"] == vars(typical_components())
    assert found["effects"][0]["words"] > 2
    assert cli(file)[0] == 0


@pytest.mark.parametrize(
    "args", [("--power", 1), ("--power", 0), ("--alpha", 0), ("--alpha", 0.9), ("--effect", 0), ("--effect", 2)]
)
def test_bad_options(cli: Cli, args: tuple[object, ...]) -> None:
    code, _, stderr = cli("weat6", *args)
    assert code == 2
    assert str(args[0]).strip("-") in stderr


def test_texts_whose_words_are_not_known(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "pets.json"
    sets = zip(("targ1", "targ2", "attr1", "attr2"), OWN.values(), strict=True)
    content = {name: {"category": name, "examples": [f"This is {w}." for w in words]} for name, words in sets}
    file.write_text(json.dumps(content))
    (found,) = records(cli, file)
    assert (found["sizes"], found["smallest_d"], found["effects"]) == (None, None, [])
    assert found["note"]
    assert cli(file)[0] == 0


def test_an_effect_that_d_cannot_reach(cli: Cli) -> None:
    (small, large) = records(cli, "weat6", "weat1", "--effect", 1.95)
    assert small["effects"][0]["words"] is None
    assert large["effects"][0]["words"] is not None
