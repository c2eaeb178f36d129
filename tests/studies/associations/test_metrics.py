"""Metrics of association tests: a similarity by pairs is WEAT, a score of four sets is split in all ways."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.cli.small_tests import write_test, write_vectors

import biassay
from biassay.cli import main
from biassay.errors import UnknownNameError, UsageError
from biassay.studies.associations import metrics
from biassay.studies.associations.metrics import SetScore, Similarity, get_metric, metric_names
from biassay.studies.associations.weat import AssociationOptions as How  # or pytest takes it for tests

Vectors = NDArray[np.floating]


def cosine(one: Vectors, other: Vectors) -> NDArray[np.float64]:
    first, second = (m / np.linalg.norm(m, axis=1, keepdims=True) for m in (one, other))
    return np.asarray(first @ second.T, dtype=np.float64)


def centres(X: Vectors, Y: Vectors, A: Vectors, B: Vectors) -> float:
    x, y, a, b = (m.mean(axis=0) for m in (X, Y, A, B))
    return float((x - y) @ (a - b))


OWN = Similarity("own-cosine", "cosine again", cosine)
CENTRES = SetScore("centres", "product of differences of centres", centres)


@pytest.fixture
def sets() -> dict[str, Vectors]:
    rng = np.random.default_rng(7)
    return {role: rng.normal(size=(n, 6)) for role, n in zip("XYAB", (4, 5, 3, 6), strict=True)}


@pytest.mark.parametrize("alternative", ["greater", "two-sided"])
@pytest.mark.parametrize("by_word", [False, True])
def test_a_cosine_matrix_is_weat(sets: dict[str, Vectors], alternative: str, by_word: bool) -> None:
    words = (["a", "a", "b", "c"], ["d", "e", "e", "f", "g"]) if by_word else None
    how = How(alternative=alternative, words=words)  # type: ignore[arg-type]
    found, expected = OWN.associate(sets, how), get_metric("cosine").associate(sets, how)
    for name in ("effect_size", "statistic", "p_value", "effect_size_by_word", "p_value_by_word"):
        ours, theirs = getattr(found, name), getattr(expected, name)
        assert ours == theirs or ours == pytest.approx(theirs, rel=1e-12, abs=1e-12), name
    assert np.allclose(found.x, expected.x, rtol=0, atol=1e-12)
    attributes = OWN.attribute_scores(sets), get_metric("cosine").attribute_scores(sets)
    assert all(np.allclose(attributes[0][role], attributes[1][role], rtol=0, atol=1e-12) for role in "AB")


@pytest.mark.parametrize("alternative", ["greater", "two-sided"])
def test_the_p_value_of_a_score_is_its_place_among_all_splits(sets: dict[str, Vectors], alternative: str) -> None:
    found = CENTRES.associate(sets, How(alternative=alternative))  # type: ignore[arg-type]
    targets = np.concatenate([sets["X"], sets["Y"]])
    splits = [
        centres(targets[list(x)], np.delete(targets, x, axis=0), sets["A"], sets["B"])
        for x in itertools.combinations(range(9), 4)
    ]
    observed = centres(sets["X"], sets["Y"], sets["A"], sets["B"])
    assert found.effect_size == pytest.approx(observed)
    sided = [abs(s) >= abs(observed) - 1e-12 if alternative == "two-sided" else s >= observed - 1e-12 for s in splits]
    assert found.p_value == pytest.approx(np.mean(sided))
    assert found.by_word is None
    assert found.leave_one_out is None
    assert found.floor == pytest.approx(1 / len(splits))


def test_texts_of_a_word_move_together_under_a_score(sets: dict[str, Vectors]) -> None:
    words = (["a", "a", "b", "b"], ["c", "c", "d", "d", "d"])
    found = CENTRES.associate(sets, How(words=words))
    assert found.p_value_by_word in [k / 6 for k in range(1, 7)]  # two of four words
    assert found.leave_one_out is not None
    without = centres(sets["X"][2:], sets["Y"], sets["A"], sets["B"])
    assert found.leave_one_out["X"]["a"] == pytest.approx(without)
    assert list(found.leave_one_out["Y"]) == ["c", "d"]


def test_a_matrix_of_another_shape_is_refused(sets: dict[str, Vectors]) -> None:
    for wrong in (lambda a, b: cosine(b, a), lambda a, b: cosine(a, b) * np.nan):
        with pytest.raises(UsageError, match="'odd'"):
            Similarity("odd", "odd", wrong).associate(sets, How())


def test_a_metric_is_named_in_the_run_and_an_unknown_one_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "_load_plugin_metrics", lambda: {OWN.name: OWN, CENTRES.name: CENTRES})
    model, test = f"vectors:{write_vectors(tmp_path / 'v.txt')}", str(write_test(tmp_path / "own.json"))
    plain, own, scored = (biassay.run(model, test, metric=name) for name in ("cosine", OWN.name, CENTRES.name))
    assert set(metric_names()) >= {"cosine", OWN.name}
    assert [run.results[0].metric for run in (plain, own, scored)] == ["cosine", OWN.name, CENTRES.name]
    assert own.results[0].effect_size == pytest.approx(plain.results[0].effect_size, rel=1e-6)
    assert scored.results[0].effect_size != plain.results[0].effect_size
    (finding,) = scored.findings()
    row = scored.results[0]
    assert (finding.effect, finding.low, finding.unit) == (row.effect_size, None, "score")
    with pytest.raises(UsageError, match="may2019"):
        biassay.run(model, test, metric=CENTRES.name, protocol="may2019")
    two = biassay.run({"a": model, "b": model}, test, metric=CENTRES.name)
    (difference,) = two.compare().tables["associations"]
    assert (difference.difference, difference.interval_low) == (0.0, None)
    with pytest.raises(UnknownNameError, match="cosin"):
        biassay.run(model, test, metric="cosin")
    with pytest.raises(UsageError, match="metric"):
        biassay.compare(plain, own)


def test_a_score_has_a_sign_and_may_use_one_attribute_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Distances are smaller where X is nearer to A: the effect has the sign of the association, whatever B holds."""

    def distance(X: Vectors, Y: Vectors, A: Vectors) -> float:
        x, y, a = (rows.mean(axis=0) for rows in (X, Y, A))
        return float(np.linalg.norm(x - a) - np.linalg.norm(y - a))

    known = {
        "nearness": SetScore("nearness", "nearness to A", lambda X, Y, A: -distance(X, Y, A), attribute_sets=1),
        "distance": SetScore("distance", "distance from A", distance, sign=-1, attribute_sets=1),
    }
    monkeypatch.setattr(metrics, "_load_plugin_metrics", lambda: known)
    effects = []
    for name, test in (("nearness", "weat6"), ("distance", "weat6"), ("distance", "weat7")):
        with pytest.raises(SystemExit) as ended:
            main(["run", "glove", "--tests", test, "--metric", name, "--cache", str(tmp_path), "--json"])
        assert ended.value.code == 0
        (row,) = json.loads(capsys.readouterr().out)["results"]
        effects.append(row["outcome"]["effect_size"])
    assert effects[0] == effects[1] > 0.0  # male names are nearer to career, as by WEAT
    assert effects[2] != effects[1]
