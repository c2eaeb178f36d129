"""Linear probes: agreement with refitted classifiers, the level by chance, and the coverage of intervals."""

from __future__ import annotations

import numpy as np
import pytest

from biassay.errors import UsageError
from biassay.stats import probe
from biassay.stats.probe import Floats, compare_probes, fit_linear_probe, probe_classes


def draw(rng: np.random.Generator, n: int, shift: float, d: int = 12, classes: int = 2) -> tuple[Floats, list[int]]:
    labels = [label for label in range(classes) for _ in range(n)]
    vectors = rng.normal(size=(n * classes, d))
    vectors[np.arange(len(labels)), labels] += shift
    return vectors, labels


def classify_by_refitting(vectors: Floats, labels: list[int], folds: list[np.ndarray], penalty: float) -> np.ndarray:
    """Return whether ridge regressions that leave each fold out classify it correctly."""
    targets = np.eye(max(labels) + 1)[labels]
    correct = np.zeros(len(labels), dtype=bool)
    for fold in folds:
        rest = np.setdiff1d(np.arange(len(labels)), fold)
        centre = vectors[rest].mean(axis=0)
        rows = vectors[rest] - centre
        weights = np.linalg.solve(rows.T @ rows + penalty * np.eye(rows.shape[1]), rows.T @ (targets[rest] - 0.5))
        predicted = (vectors[fold] - centre) @ weights + targets[rest].mean(axis=0)
        correct[fold] = predicted.argmax(axis=1) == np.array(labels)[fold]
    return correct


@pytest.mark.parametrize("classes", [2, 3])
def test_held_out_classes_are_those_of_refitted_ridge_regressions(classes: int) -> None:
    vectors, labels = draw(np.random.default_rng(0), 15, 1.5, classes=classes)
    rng = np.random.default_rng(1)
    targets = probe._encode_labels(labels)
    centred = vectors - vectors.mean(axis=0)
    penalty = probe._PENALTY * float((centred**2).sum()) / len(vectors)
    folds = probe._draw_folds(targets, rng)
    quick = probe._classify(probe._invert_kernel(vectors), targets, np.arange(len(labels))[None], folds)[0]
    assert quick.tolist() == classify_by_refitting(vectors, labels, folds, penalty).tolist()
    assert all(np.bincount(np.array(labels)[fold]).std() == 0.0 for fold in folds)


def test_a_probe_finds_classes_and_nothing_in_noise() -> None:
    rng = np.random.default_rng(2)
    found = probe_classes(*draw(rng, 30, 3.0), rng=0)
    assert found.accuracy > 0.95
    assert found.p_value == pytest.approx(1 / 501)
    assert found.chance == pytest.approx(0.5, abs=0.02)
    assert found.ci_low < found.accuracy <= found.ci_high
    p_values = [probe_classes(*draw(rng, 20, 0.0), n_repeats=1, n_permutations=99, rng=i).p_value for i in range(100)]
    assert sum(p <= 0.1 for p in p_values) <= 19  # at most .19 of 100 with probability .998 if the level is .1


def test_intervals_cover_the_mean_over_samples_of_words() -> None:
    rng, runs = np.random.default_rng(3), []
    for i in range(100):
        vectors, labels = draw(rng, 30, 1.5, d=60)
        less = vectors.copy()
        less[:, :2] *= 0.4
        both = [probe_classes(one, labels, n_repeats=2, n_permutations=60, rng=i) for one in (vectors, less)]
        runs.append((both[0], compare_probes(*both)))
    mean, change = (np.mean(values) for values in zip(*((a.accuracy, b.value) for a, b in runs), strict=True))
    assert sum(one.ci_low <= mean <= one.ci_high for one, _ in runs) >= 90  # a 95% interval: with probability .99
    assert sum(one.ci_low <= change <= one.ci_high for _, one in runs) >= 90
    naive = np.std([one.accuracy for one, _ in runs]) / np.sqrt(mean * (1.0 - mean) / 60)
    assert naive > 1.05  # folds share words: a binomial interval would be too narrow


def test_equal_probes_do_not_differ_and_their_interval_has_a_width() -> None:
    found = probe_classes(*draw(np.random.default_rng(4), 12, 9.0), rng=0)
    same = compare_probes(found, found)
    assert found.accuracy == 1.0
    assert (same.value, same.p_value) == (0.0, 1.0)
    assert same.ci_low < 0.0 < same.ci_high


def test_weights_are_those_of_a_ridge_regression() -> None:
    vectors, labels = draw(np.random.default_rng(5), 20, 2.0)
    centred = vectors - vectors.mean(axis=0)
    penalty = probe._PENALTY * float((centred**2).sum()) / len(vectors)
    targets = np.eye(2)[labels] - 0.5
    expected = np.linalg.solve(centred.T @ centred + penalty * np.eye(12), centred.T @ targets).T
    assert fit_linear_probe(vectors, labels) == pytest.approx(expected)


def test_classes_of_unequal_size_are_refused() -> None:
    with pytest.raises(UsageError, match="equal size"):
        probe_classes(np.eye(3), [0, 0, 1])
