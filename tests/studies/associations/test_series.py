"""Series of checkpoints: the trend against a fit cell by cell, the band, and the command."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from tests.results.made_runs import altered, as_refused, with_rows
from tests.studies.associations.compared_runs import calibrated, in_common, keeping, of, other_model, without_clusters

import biassay
from biassay.cli import main
from biassay.datasets.schema import ROLES
from biassay.errors import UsageError
from biassay.results.comparison import Comparison
from biassay.runs.run import Run
from biassay.stats.model_difference import compare_tables


@pytest.fixture(scope="module")
def checkpoints(first: Run) -> list[Run]:
    """Four runs; the last knows fewer words of weat7."""
    runs = [without_clusters(run) for run in (first, *(other_model(first, f"step{i}", i, 0.3) for i in (1, 2, 3)))]
    runs = [with_rows(run, (altered(row, direction=1) for row in run.results)) for run in runs]
    runs[3] = keeping(runs[3], "weat7", X=list(of(runs[3], "weat7").associations["X"])[2:])
    return runs


@pytest.fixture(scope="module")
def comparison(checkpoints: list[Run]) -> Comparison:
    return biassay.compare(*checkpoints, series=True, margin=0.3, alpha=0.04)


def test_the_trend_is_the_line_through_the_cosines_of_all_checkpoints(
    comparison: Comparison, checkpoints: list[Run]
) -> None:
    assert comparison.models == ["step3 (trend over 4 checkpoints)"]
    assert len(comparison.verdicts) == 4
    for verdict in comparison.verdicts:
        last = checkpoints[3]
        common = in_common(of(checkpoints[0], verdict.test), of(last, verdict.test))
        tables = np.array([calibrated(run, verdict.test, common)[0] for run in checkpoints])
        slope, start = np.polyfit(np.arange(4), tables.reshape(4, -1), 1)
        old, new = (line.reshape(tables.shape[1:]) for line in (start, start + 3 * slope))
        n, k, level = len(common["X"]), len(common["A"]), 1 - 0.04 / (2 * 3)
        expected = compare_tables(old, new, n, k, direction="positive", margin=0.3, confidence=level)
        assert (verdict.effect_baseline, verdict.effect_model) == pytest.approx((expected.old, expected.new))
        growth = expected.growth
        assert (verdict.growth, verdict.low, verdict.high) == pytest.approx((growth.value, growth.low, growth.high))
        assert verdict.outcome == expected.verdict


def test_points_share_alpha_over_tests_and_checkpoints(comparison: Comparison, checkpoints: list[Run]) -> None:
    for point in comparison.points:
        runs = checkpoints[0], checkpoints[point.step]
        common = in_common(of(runs[0], point.test), of(runs[1], point.test))
        old, new = (calibrated(run, point.test, common)[0] for run in runs)
        n, k, level = len(common["X"]), len(common["A"]), 1 - 0.04 / (3 * 3)
        growth = compare_tables(old, new, n, k, direction="positive", margin=1.0, confidence=level).growth
        assert (point.growth, point.low, point.high) == pytest.approx((growth.value, growth.low, growth.high))
    own = [point for point in comparison.points if point.test == "weat6"]
    assert [(point.checkpoint, point.step) for point in own] == [("glove", 0), ("step1", 1), ("step2", 2), ("step3", 3)]
    (verdict,) = [verdict for verdict in comparison.verdicts if verdict.test == "weat6"]
    assert np.diff([point.trend for point in own]) == pytest.approx(np.full(3, verdict.growth / 3))
    assert own[0].trend == pytest.approx(verdict.effect_baseline - own[0].effect)


class Growing:
    """Random vectors of any dimension, with a share of the words of weat6 that depends on the step."""

    def __init__(self, size: float, dimension: int = 30) -> None:
        self.size, self.dimension = size, dimension
        (test,) = biassay.select_tests("weat6")
        self.sides = {word: side for role, side in zip(ROLES, (1, -1, 1, -1), strict=True)
                      for word in test.concept(role).words}  # fmt: skip

    def encode(self, texts: list[str]) -> np.ndarray:
        rows = [np.random.default_rng(list(text.encode())).normal(size=self.dimension) for text in texts]
        for row, text in zip(rows, texts, strict=True):
            row[0] += self.size * self.sides.get(text, 0)
        return np.array(rows, dtype=np.float32)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("series")
    for step, size in enumerate((0.0, 1.0, 2.0, 3.0)):
        model = {f"step{step}": Growing(size)}
        biassay.run(model, ["weat6", "weat7"], random_sets=0, out=folder / f"step{step}")
    return sorted(folder.iterdir())


def test_the_command_judges_the_trend(folders: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["compare", *map(str, folders), "--series", "--out", str(tmp_path / "page.html")]
    with pytest.raises(SystemExit) as ended:
        main([*asked, "--json", "--fail-if", "worse"])
    assert ended.value.code == 3
    told = json.loads(capsys.readouterr().out)
    assert told["checkpoints"] == ["step0", "step1", "step2", "step3"]
    assert {one["test"]: one["outcome"] for one in told["verdicts"]}["weat6"] == "worse"
    growth = [point["growth"] for point in told["points"] if point["test"] == "weat6"]
    assert growth == sorted(growth)
    assert growth[0] == 0.0
    with pytest.raises(SystemExit):
        main(asked)
    assert "step3 (trend over 4 checkpoints) is worse (closer to the stereotype) than step0" in " ".join(
        capsys.readouterr().out.split()
    )
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "Growth at each checkpoint" in page
    assert "they do not generalize to other training runs" in page


@pytest.mark.extras
def test_the_figure_has_a_panel_per_test(folders: list[Path], tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        main(["compare", *map(str, folders), "--series", "--publish", str(tmp_path / "paper"), "--quiet"])
    (spec,) = [json.loads(file.read_text("utf-8")) for file in (tmp_path / "paper").rglob("*series*.vl.json")]
    values = spec["data"]["values"]
    assert [value["checkpoint"] for value in values[:4]] == ["step0", "step1", "step2", "step3"]
    assert {value["panel"].split(":")[0] for value in values} == {"weat6", "weat7"}
    assert all(value["low"] <= value["growth"] <= value["high"] for value in values)


def test_checkpoints_of_other_dimensions_are_compared_by_their_cosines() -> None:
    models = {f"d{d}": Growing(3.0 * step, d) for step, d in enumerate((30, 60, 120))}
    comparison = biassay.compare(biassay.run(models, "weat6", random_sets=0), series=True)
    assert [verdict.outcome for verdict in comparison.verdicts] == ["worse"]
    assert any("d120 (trend over 3 checkpoints) spreads cosines differently" in remark for remark in comparison.remarks)


def test_a_peak_without_a_trend_is_named(first: Run) -> None:
    peak, last = (other_model(first, name, 1, 0.0) for name in ("peak", "last"))
    shift = np.outer(*(np.repeat([1.0, -1.0], [len(of(first, "weat6").associations[r]) for r in sides])
                       for sides in ("XY", "AB")))  # fmt: skip
    noise = np.random.default_rng(0).normal(0.3, 0.01, shift.shape)
    arrays = {**peak.arrays, "0/weat6/cosines": peak.arrays["0/weat6/cosines"] + shift * noise}
    comparison = biassay.compare(first, dataclasses.replace(peak, arrays=arrays), last, tests="weat6", series=True)
    assert comparison.verdicts[0].outcome != "worse"
    (remark,) = [remark for remark in comparison.remarks if "peak" in remark]
    assert "but peak is worse than glove: growth" in remark


def test_bad_series_are_refused(checkpoints: list[Run]) -> None:
    with pytest.raises(UsageError, match=r"at least 3 checkpoints, got 2 \(glove, step1\)"):
        biassay.compare(*checkpoints[:2], series=True)
    with pytest.raises(UsageError, match="a series has no --baseline"):
        biassay.compare(*checkpoints, series=True, baseline="step1")
    discovered = biassay.discover("glove", "african-american-females", n_permutations=10)
    with pytest.raises(UsageError, match="only association tests"):
        biassay.compare(discovered, series=True)


def test_a_checkpoint_without_a_test_is_missing(checkpoints: list[Run]) -> None:
    rows = (as_refused(row) if row.test == "weat6" else row for row in checkpoints[1].results)
    comparison = biassay.compare(checkpoints[0], with_rows(checkpoints[1], rows), checkpoints[2], series=True)
    outcomes = {verdict.test: verdict.outcome for verdict in comparison.verdicts}
    assert outcomes["weat6"] == "missing"
    assert outcomes["weat7"] != "missing"
    assert not [point for point in comparison.points if point.test == "weat6"]


def test_one_run_of_several_models_is_a_series_in_its_order() -> None:
    run = biassay.run({f"m{i}": Growing(0.5 * i) for i in range(3)}, "weat6", random_sets=0)
    assert run.compare(baseline="m0").models == ["m1", "m2"]
    assert biassay.compare(run, series=True).checkpoints == ("m0", "m1", "m2")
