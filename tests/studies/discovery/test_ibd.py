"""biassay.ibd and biassay.eibd on arrays: reference values, loops in the test, and what they refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import biassay
from biassay.errors import BiassayError, DegenerateError, UsageError, VectorError

Vectors = NDArray[np.float64]
WORDS = np.array([f"w{i:02d}" for i in range(98)])


class Case:
    """The reference: vectors of six groups and of 98 words, scores, and what is expected of them."""

    def __init__(self, folder: Path) -> None:
        with np.load(folder / "vectors.npz") as arrays:
            self.words = arrays["words"]
            self.groups = {name: arrays[name] for name in ("AF", "AM", "EF", "EM", "LF", "LM")}
        with np.load(folder / "scores.npz") as arrays:
            self.scores = {name: arrays[name] for name in arrays.files}
        self.expected: dict[str, Any] = json.loads((folder / "expected.json").read_text())

    def pooled(self, letter: str) -> Vectors:
        return np.concatenate([rows for name, rows in self.groups.items() if letter in name])

    def of(self, target: str) -> dict[str, Any]:
        pairs = [pair.split("-") for pair in self.expected["pairs"]["constituent"][target]]
        return {
            "words": self.words,
            "target": self.groups[target],
            "others": [self.groups[p.split("-")[1]] for p in self.expected["pairs"]["intersectional"][target]],
            "constituents": [(self.pooled(a), self.pooled(b)) for a, b in pairs],
        }

    def truth(self, target: str, kind: str) -> NDArray[np.bool_]:
        return np.isin(WORDS, self.expected["labels"]["truth"][f"{target}_{kind}"])


@pytest.fixture(scope="module")
def case(reference: Path) -> Case:
    return Case(reference / "ibd")


@pytest.mark.parametrize("target", ["AF", "LF"])
def test_reference_scores(case: Case, target: str) -> None:
    found = biassay.eibd(**case.of(target), threshold=1.0)
    for kind, scores in (("intersectional", found.scores), ("constituent", found.constituent_scores)):
        assert scores is not None
        expected = np.stack([case.scores[pair] for pair in case.expected["pairs"][kind][target]], axis=1)
        np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-12)  # rounding of two ways to add up


@pytest.mark.parametrize("target", ["AF", "LF"])
def test_reference_sets_at_six_thresholds(case: Case, target: str) -> None:
    arrays = case.of(target)
    pairs = {key: arrays.pop(key) for key in ("constituents",)}
    assert len(case.expected["detected"]) == 6
    for threshold, sets in case.expected["detected"].items():
        t = float(threshold)
        assert WORDS[biassay.ibd(**arrays, threshold=t).detected].tolist() == sets[target]["IBD"]
        for rule, name in (("all", "EIBD"), ("any", "EIBD_drop_if_any")):
            found = biassay.eibd(**arrays, **pairs, threshold=t, rule=rule)  # type: ignore[arg-type]
            assert WORDS[found.detected].tolist() == sets[target][name]


def test_the_released_second_branch_is_ibd_without_one_comparison(case: Case) -> None:
    others = [case.groups[name] for name in ("EF", "LM", "EM", "AF")]  # EM stands there twice, AM never
    differing = 0
    for threshold, sets in case.expected["detected"].items():
        found = biassay.ibd(case.words, case.groups["LF"], others, threshold=float(threshold))
        assert WORDS[found.detected].tolist() == sets["LF"]["IBD_released_fault"]
        differing += sets["LF"]["IBD_released_fault"] != sets["LF"]["IBD"]
    assert differing


@pytest.mark.parametrize("target", ["AF", "LF"])
@pytest.mark.parametrize(("name", "kind"), [("IBD", "intersectional"), ("EIBD", "emergent")])
def test_reference_curves_and_chosen_thresholds(case: Case, target: str, name: str, kind: str) -> None:
    found = biassay.eibd(**case.of(target), threshold=0.0)
    dropping = found.constituent_scores if name == "EIBD" else None
    curve = biassay.detection_curve(found.scores, case.truth(target, kind), constituents=dropping, rule="all")
    expected = case.expected["correct"]
    points = expected["roc"][f"{target}_{name}"]
    np.testing.assert_array_equal(curve.thresholds, points["threshold"])
    for counts in ("tp", "fp", "fn", "tn"):
        assert getattr(curve, counts).tolist() == points[counts]
    for rates in ("tpr", "fpr", "accuracy"):
        np.testing.assert_allclose(getattr(curve, rates), points[rates], rtol=1e-15)
    for positive_only, key in ((False, "chosen_threshold"), (True, "chosen_threshold_positive_only")):
        chosen = expected[key][f"{target}_{name}"]
        at = curve.best(positive_only=positive_only)
        assert [curve.thresholds[at]] == chosen["thresholds"]
        assert (curve.tp[at], curve.tpr[at], curve.fpr[at]) == (chosen["tp"], chosen["tpr"], chosen["fpr"])


def test_released_emergent_curves_are_those_of_ibd_against_the_emergent_words(case: Case) -> None:
    for target in ("AF", "LF"):
        arrays = case.of(target)
        found = biassay.ibd(case.words, arrays["target"], arrays["others"], threshold=0.0)
        curve = biassay.detection_curve(found.scores, case.truth(target, "emergent"))
        released = case.expected["released_script"]["roc"][f"{target}_EIBD"]
        assert curve.tp.tolist() == released["tp"]
        np.testing.assert_allclose(curve.fpr, released["fpr"], rtol=1e-15)


def some(seed: int, *sizes: int, d: int = 12) -> list[Vectors]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(n, d)) for n in sizes]


def test_scores_are_those_of_a_loop_over_words_and_names() -> None:
    words, target, one, other = some(1, 7, 4, 3, 6)

    def cosine(a: Vectors, b: Vectors) -> float:
        return float(a @ b / np.sqrt((a @ a) * (b @ b)))

    found = biassay.ibd(words, target, [one, other], threshold=0.3)
    for w, word in enumerate(words):
        for g, group in enumerate((one, other)):
            a, b = [cosine(word, row) for row in target], [cosine(word, row) for row in group]
            expected = (np.mean(a) - np.mean(b)) / np.std(a + b, ddof=1)
            assert found.scores[w, g] == pytest.approx(expected, abs=1e-12)
    np.testing.assert_array_equal(found.detected, [any(score > 0.3 for score in row) for row in found.scores])


WORDS_, TARGET, OTHER, THIRD = some(3, 5, 4, 4, 4)
BOTH = np.concatenate([TARGET, THIRD])


@pytest.mark.parametrize(
    ("change", "message", "kind"),
    [
        ({"target": TARGET[:1]}, "target has one name", UsageError),
        ({"others": [OTHER, OTHER[:1]]}, r"others\[1\] has one name", UsageError),
        ({"others": []}, "at least one group", UsageError),
        ({"others": [OTHER, BOTH]}, r"row 0 of target is also in others\[1\]", UsageError),
        ({"constituents": []}, "at least one pair", UsageError),
        ({"constituents": [(THIRD, OTHER)]}, r"constituents\[0\]\[0\] does not contain the target: row 0", UsageError),
        ({"constituents": [(BOTH, np.concatenate([OTHER, TARGET[2:3]]))]}, r"contains row 2 of target", UsageError),
        ({"constituents": [(BOTH, OTHER, THIRD)]}, "must be a pair", UsageError),
        ({"constituents": [(BOTH[:, :5], OTHER)]}, "same dimension", VectorError),
        ({"others": [OTHER[:, :5]]}, "same dimension", VectorError),
        ({"words": np.zeros((2, 12))}, "the vector of row 0 is zero", VectorError),
        ({"words": np.full((2, 12), np.nan)}, "not finite", VectorError),
        ({"threshold": float("nan")}, "threshold is NaN", UsageError),
        ({"rule": "most"}, "unknown rule 'most'", UsageError),
    ],
)
def test_bad_arrays_are_refused_with_what_is_wrong(
    change: dict[str, Any], message: str, kind: type[BiassayError]
) -> None:
    arguments: dict[str, Any] = {
        "words": WORDS_,
        "target": TARGET,
        "others": [OTHER],
        "constituents": [(BOTH, OTHER)],
        "threshold": 1.0,
    }
    biassay.eibd(**arguments)
    with pytest.raises(kind, match=message):
        biassay.eibd(**(arguments | change))


def test_single_precision_copies_of_the_target_count_as_the_target() -> None:
    found = biassay.eibd(
        WORDS_, TARGET, [OTHER], constituents=[(BOTH.astype(np.float32), OTHER.astype(np.float32))], threshold=0.0
    )
    assert found.detected.shape == (5,)


def test_a_word_as_far_from_every_name_has_no_score() -> None:
    names = np.eye(6)[:, :6]
    with pytest.raises(DegenerateError, match="word 1 has the same cosine"):
        biassay.ibd([names[0], np.ones(6)], names[:3], [names[3:]], threshold=0.0)
