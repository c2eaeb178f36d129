"""Relating one measure to another over models: corrected correlations, their coverage, and the command."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

import biassay
from biassay.cli import main
from biassay.datasets.catalogue import select_tests
from biassay.errors import DegenerateError, UsageError
from biassay.stats.errors_in_variables import correlate_with_errors


class Planted:
    """Random vectors in which the words of X and A, and of Y and B, of two tests share a direction by `size`."""

    def __init__(self, size: float) -> None:
        self.size = size
        self.sides: dict[str, float] = {}
        for test in select_tests(["weat6", "weat8"]):
            for role, side in zip("XYAB", (1.0, -1.0, 1.0, -1.0), strict=True):
                self.sides |= dict.fromkeys(test.concept(role).words, side)

    def encode(self, texts: list[str]) -> np.ndarray:
        seeds = [int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) for text in texts]
        vectors = np.array([np.random.default_rng(seed).normal(size=40) for seed in seeds])
        vectors[:, 0] += [3.0 * self.size * self.sides.get(text, 0.0) for text in texts]
        return vectors.astype(np.float32)


def make_models() -> dict[str, Planted]:
    return {f"m{i}": Planted(size) for i, size in enumerate((0.0, 0.15, 0.3, 0.5, 0.75, 1.1))}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("related")
    for test in ("weat6", "weat8"):
        biassay.run(make_models(), test, out=folder / test, random_sets=0)
    return folder / "weat6", folder / "weat8"


def test_the_command_finds_a_planted_relation(folders: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["relate", str(folders[0]), "--with", str(folders[1]), "--json"])
    assert ended.value.code == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["item"], found["other_item"], found["n"]) == ("weat6", "weat8", 6)
    assert found["correlation"] > found["observed_correlation"] > 0.6
    assert found["p_adjusted"] < 0.05
    with pytest.raises(SystemExit):
        main(["relate", str(folders[0]), "--with", str(folders[1])])
    printed = capsys.readouterr()
    assert "1 of 1 correlations over models are significant" in printed.out
    assert "left out" not in printed.err


def test_models_of_one_group_only_are_named(folders: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    models = {f"m{i}": Planted(0.2 * i) for i in range(5)} | {"other": Planted(0.1)}
    part = biassay.run(models, "weat8", random_sets=0).save(folders[0].parent / "part")
    with pytest.raises(SystemExit) as ended:
        main(["relate", str(folders[0]), "--with", str(part)])
    assert ended.value.code == 0
    assert "one group of runs has no number for them: m5, other" in capsys.readouterr().err


def test_the_level_of_a_run_does_not_change_the_errors(folders: tuple[Path, Path]) -> None:
    first, second = map(biassay.load, folders)
    strict = biassay.run(make_models(), "weat6", alpha=0.001, random_sets=0)
    (found,), (expected,) = biassay.relate([strict], [second]), biassay.relate([first], [second])
    assert found.found.reliability_x == pytest.approx(expected.found.reliability_x)


def test_fewer_than_five_models_are_refused(folders: tuple[Path, Path]) -> None:
    first, second = map(biassay.load, folders)
    part = biassay.run({f"m{i}": Planted(0.1 * i) for i in range(4)}, "weat6", random_sets=0)
    with pytest.raises(UsageError, match=r"at least 5 models in both groups of runs, got 4 \(m0, m1, m2, m3\)"):
        biassay.relate([part], [second])
    with pytest.raises(UsageError, match="two runs measured 'weat6' on 'm0'"):
        biassay.relate([first, part], [second])
    with pytest.raises(UsageError, match="no run measured 'weat7'"):
        biassay.relate([first], [second], ["weat7"])


def test_a_measurement_is_not_related_to_itself(folders: tuple[Path, Path]) -> None:
    first, second = map(biassay.load, folders)
    found = biassay.relate([first, second], [first, second])
    assert {(one.item, one.other_item) for one in found} == {("weat6", "weat8"), ("weat8", "weat6")}
    with pytest.raises(UsageError, match="no pair of items"):
        biassay.relate([first], [first])


def test_runs_of_different_models_are_refused(folders: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    others = biassay.run({f"other{i}": Planted(0.1 * i) for i in range(5)}, "weat8", random_sets=0)
    with pytest.raises(UsageError, match=r"got 0; models are matched by label \(LABEL=MODEL\)"):
        biassay.relate([biassay.load(folders[0])], [others])
    with pytest.raises(SystemExit) as ended:
        main(["relate", str(folders[0]), "--with", str(others.save(folders[0].parent / "others"))])
    assert ended.value.code == 2
    assert "at least 5 models in both groups of runs, got 0" in capsys.readouterr().err


def test_words_are_refused(folders: tuple[Path, Path]) -> None:
    words = biassay.discover("glove", ["african-american-females"], n_permutations=19, alpha=0.5, keep=5)
    with pytest.raises(UsageError, match="runs of discovery cannot be related, because their results have no standard"):
        biassay.relate([words], [biassay.load(folders[0])])


def test_without_errors_it_is_pearsons_correlation() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=12)
    y = 0.5 * x + rng.normal(size=12)
    found = correlate_with_errors(x, y, np.zeros(12), np.zeros(12))
    assert found.correlation == pytest.approx(np.corrcoef(x, y)[0, 1], abs=2e-3)
    assert (found.reliability_x, found.reliability_y) == (1.0, 1.0)


def test_the_estimate_maximizes_the_likelihood_of_pairs_with_equal_errors() -> None:
    """With equal errors the covariance of true values is that of measured ones minus the errors on the diagonal."""
    rng = np.random.default_rng(5)
    true = rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], size=40)
    measured = true + 0.5 * rng.normal(size=(40, 2))
    found = correlate_with_errors(measured[:, 0], measured[:, 1], np.full(40, 0.5), np.full(40, 0.5))
    covariance = np.cov(measured.T) - 0.25 * np.eye(2)
    assert found.correlation == pytest.approx(covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1]), abs=2e-3)


def test_bad_input_is_refused() -> None:
    with pytest.raises(UsageError, match="at least 5 models, got 4"):
        correlate_with_errors([1, 2, 3, 4], [1, 2, 3, 5], [0] * 4, [0] * 4)
    with pytest.raises(UsageError, match="must be finite"):
        correlate_with_errors([1, 2, 3, 4, np.nan], [1, 2, 3, 5, 4], [0] * 5, [0] * 5)
    with pytest.raises(DegenerateError, match="nothing to correlate"):
        correlate_with_errors([1] * 5, [1, 2, 3, 5, 4], [0] * 5, [0] * 5)
