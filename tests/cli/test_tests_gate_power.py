"""``biassay tests power --gate``: what a gate detects, before there is a new model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import biassay
from biassay.cli import main
from biassay.datasets.catalogue import load_catalogue
from biassay.datasets.variance_priors import calibrated_components
from biassay.stats.crossed import VarianceComponents
from biassay.stats.model_difference import gate_power


def asked(capsys: pytest.CaptureFixture[str], *args: object) -> tuple[int, str, str]:
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        main(["tests", "power", "--gate", *map(str, args)])
    said = capsys.readouterr()
    return int(stop.value.code or 0), said.out, said.err


def records(capsys: pytest.CaptureFixture[str], *args: object) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(asked(capsys, *args, "--json")[1])
    return found


def difference(parts: VarianceComponents, agreement: float) -> VarianceComponents:
    share = 2.0 * (1.0 - agreement)
    return VarianceComponents(share * parts.targets, share * parts.attributes, share * parts.residual)


def test_figures_are_those_of_typical_words(capsys: pytest.CaptureFixture[str]) -> None:
    settings = ("--family", 5, "--alpha", 0.1, "--margin", 0.1, "--agreement", 0.8)
    (found,) = records(capsys, "weat4", *settings)
    parts = difference(calibrated_components(load_catalogue().tests["weat4"]), 0.8)
    expected = gate_power(parts, (16, 16, 25, 25), 0.1, 0.01)
    assert found["growths"][0] == {"growth": 0.2, "power": pytest.approx(expected.at_twice_margin)}
    assert found["detectable_growth"] == pytest.approx(expected.detectable)
    assert 0.05 < found["growths"][0]["power"] < 0.95
    assert [one["growth"] for one in found["growths"]] == [0.2, 0.5]


def test_the_family_are_questions(capsys: pytest.CaptureFixture[str]) -> None:
    found = records(capsys, "weat1", "weat4", "weat6", "sent-weat6")
    assert [(record["name"], record["family"]) for record in found] == [("weat4", 2), ("weat6", 2), ("sent-weat6", 2)]
    powers = [records(capsys, "weat4", "--family", family)[0]["growths"][0]["power"] for family in (1, 50)]
    assert powers[0] > powers[1]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (("--margin", 0), "the margin must be above 0"),
        (("--alpha", 1), "alpha must be between 0 and 1"),
        (("--family", 0), "at least 1"),
        (("--agreement", 1.0), "below 1"),
        (("--effect", -0.5), "a growth above 0"),
        (("--power", 1), "power must lie between 0 and 1"),
    ],
)
def test_wrong_usage_is_refused(wrong: tuple[object, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, stderr = asked(capsys, "weat6", *wrong)
    assert code == 2
    assert said in stderr
    assert "sanity checks" in asked(capsys, "weat1")[2]


def test_every_test_has_a_line_that_fits(capsys: pytest.CaptureFixture[str]) -> None:
    code, stdout, _ = asked(capsys, "gender")
    assert code == 0
    assert max(map(len, stdout.splitlines())) <= 110
    assert "weat6" in {line.split()[0] for line in stdout.splitlines() if line.strip()}


def test_the_old_model_says_how_its_words_vary(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    run = biassay.run("glove", ["weat1", "weat4", "weat6"], cache=tmp_path)
    folder = run.save(tmp_path / "old")
    found = {record["name"]: record for record in records(capsys, "--run", folder)}
    assert list(found) == ["weat4", "weat6"]
    for row in run.results[1:]:
        parts = [max(part, 0.0) / row.cosine_sd**2 for part in (row.var_targets, row.var_attributes, row.var_residual)]
        sizes = row.num_targ1, row.num_targ2, row.num_attr1, row.num_attr2  # one text per word
        expected = gate_power(difference(VarianceComponents(*parts), 0.9), sizes, 0.2, 0.05 / 4)
        assert found[row.test]["growths"][0] == {"growth": 0.4, "power": pytest.approx(expected.at_twice_margin)}
        assert found[row.test]["detectable_growth"] == pytest.approx(expected.detectable)
    assert "no test is named weat7" in asked(capsys, "weat7", "--run", folder)[2]
