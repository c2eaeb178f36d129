"""``biassay tests power --gate``: what a gate will catch, before there is a new model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import biassay
from biassay.cli import main
from biassay.stats.crossed import Components
from biassay.stats.stronger import TwoModels
from biassay.stimuli.catalogue import catalogue
from biassay.stimuli.typical import typical_components


def asked(capsys: pytest.CaptureFixture[str], *args: object) -> tuple[int, str, str]:
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        main(["tests", "power", "--gate", *map(str, args)])
    said = capsys.readouterr()
    return int(stop.value.code or 0), said.out, said.err


def records(capsys: pytest.CaptureFixture[str], *args: object) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(asked(capsys, *args, "--json")[1])
    return found


def test_figures_are_those_of_typical_words(capsys: pytest.CaptureFixture[str]) -> None:
    settings = ("--family", 5, "--level", 0.05, "--margin", 0.1, "--old", 0.8, "--agreement", 0.95, "--power", 0.7)
    (found,) = records(capsys, "weat4", *settings, "--effect", 0.6, "--effect", 1.9)
    parts = typical_components(catalogue().tests["weat4"])
    models = TwoModels(parts, parts, (0.95, 0.95, 0.95), (16, 16, 25, 25), 0.8, 0.99, 0.1)
    assert found["smallest_growth"] == models.smallest(0.7)
    assert found["growths"] == [{"growth": 0.6, "power": models.power(0.6)}, {"growth": 1.9, "power": None}]
    assert 0.05 < found["growths"][0]["power"] < 0.95


def test_the_family_is_that_of_the_tests_about_people(capsys: pytest.CaptureFixture[str]) -> None:
    found = records(capsys, "weat1", "weat4", "weat6")
    assert [(record["name"], record["family"]) for record in found] == [("weat4", 2), ("weat6", 2)]
    powers = [records(capsys, "weat4", "--family", family)[0]["growths"][1]["power"] for family in (1, 50)]
    assert powers[0] > powers[1]


def test_the_old_model_says_how_its_words_vary(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    run = biassay.run("glove", ["weat1", "weat4", "weat6"], cache=tmp_path)
    folder = run.save(tmp_path / "old")
    found = {record["name"]: record for record in records(capsys, "--run", folder, "--effect", 0.4)}
    assert list(found) == ["weat4", "weat6"]
    for row in run.results[1:]:
        parts = Components(row.var_targets, row.var_attributes, row.var_residual)
        sizes = row.num_targ1, row.num_targ2, row.num_attr1, row.num_attr2  # a text a word
        models = TwoModels(parts, parts, (0.9, 0.9, 0.9), sizes, abs(row.effect_size_by_word), 0.995, 0.2)
        assert found[row.test]["growths"] == [{"growth": 0.4, "power": models.power(0.4)}]
        assert found[row.test]["smallest_growth"] == models.smallest()
    (one,) = records(capsys, "weat4", "--run", folder, "--old", 0.3)
    assert (one["family"], one["old"]) == (1, 0.3)
    assert "no test there is named weat7" in asked(capsys, "weat7", "--run", folder)[2]


def test_every_test_has_a_line_that_fits(capsys: pytest.CaptureFixture[str]) -> None:
    code, stdout, _ = asked(capsys, "gender")
    assert code == 0
    assert max(map(len, stdout.splitlines())) <= 100
    assert "weat6" in {line.split()[0] for line in stdout.splitlines() if line.strip()}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (("--margin", 0), "the margin must be above 0"),
        (("--level", 1), "the level must be between 0 and 1"),
        (("--family", 0), "at least 1"),
        (("--agreement", 1.5), "between -1 and 1"),
        (("--old", -1), "at least 0"),
        (("--effect", -0.5), "a growth above 0"),
        (("--power", 1), "power must lie between 0 and 1"),
    ],
)
def test_wrong_usage_is_refused(wrong: tuple[object, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, stderr = asked(capsys, "weat6", *wrong)
    assert code == 2
    assert said in stderr
    assert "checks of the method" in asked(capsys, "weat1")[2]
