"""The distance of SeT: a solver that walks, an optimiser that knows no formula, and torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import biassay
from biassay.errors import UsageError
from biassay.stats.sensitivity import SortedLogits


def walked(logits: list[float], target: int, norm2: float, margin: float = 1.0) -> float:
    """Sort the gaps and walk down as long as they lie above what the target rises."""
    gaps = sorted((x - logits[target] + margin for i, x in enumerate(logits) if i != target), reverse=True)
    total, k = 0.0, 0
    for n, gap in enumerate(gaps, start=1):
        if gap <= (total + gap) / (n + 1):
            break
        total, k = total + gap, n
    rise = total / (k + 1)
    return float(np.sqrt((rise**2 + sum((gap - rise) ** 2 for gap in gaps[:k])) / norm2))


LOGITS = st.lists(st.integers(-30, 30).map(lambda n: n / 4), min_size=2, max_size=9)


@given(LOGITS, st.data())
def test_equal_to_a_walk_over_sorted_gaps(logits: list[float], data: st.DataObject) -> None:
    target = data.draw(st.integers(0, len(logits) - 1))
    margin = data.draw(st.sampled_from([0.25, 1.0, 3.0]))
    found = biassay.sensitivity([logits], [target], [2.5], margin=margin)
    assert found[0] == pytest.approx(walked(logits, target, 2.5, margin), abs=1e-9)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000))
def test_equal_to_the_smallest_change_that_an_optimiser_finds(seed: int) -> None:
    """Change the whole matrix, with the constraints written out: nothing is known of the solution."""
    rng = np.random.default_rng(seed)
    matrix, state, target = rng.normal(size=(5, 3)), rng.normal(size=3), 1
    others = [i for i in range(5) if i != target]

    def margins(change: np.ndarray) -> np.ndarray:
        logits = (matrix + change.reshape(5, 3)) @ state
        return np.asarray(logits[target] - logits[others] - 1.0)

    untyped: Any = minimize  # the type stubs of SciPy reject these options
    best = untyped(
        lambda change: float(change @ change),
        np.zeros(15),
        jac=lambda change: 2.0 * change,
        constraints={"type": "ineq", "fun": margins},
        options={"ftol": 1e-13, "maxiter": 500},
    )
    found = biassay.sensitivity([matrix @ state], [target], [state @ state])
    assert found[0] == pytest.approx(np.sqrt(best.fun), rel=1e-4, abs=1e-6)


def test_few_sorted_logits_are_enough_and_more_are_taken_where_they_are_not() -> None:
    rng = np.random.default_rng(0)
    logits = np.concatenate([rng.normal(size=(40, 300)), np.zeros((3, 300))])  # all equal: every token must move
    rows = np.repeat(np.arange(43), 5)
    targets = rng.integers(0, 300, len(rows))
    norms = np.full(len(rows), 7.0)
    expected = [walked(logits[row].tolist(), target, 7.0) for row, target in zip(rows, targets, strict=True)]
    for head in (2, 8, 300, 512):
        found = SortedLogits(logits, head).distances(rows, targets, norms)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.extras
def test_torch_gives_what_numpy_gives() -> None:
    import torch

    rng = np.random.default_rng(1)
    logits, targets, norms = rng.normal(0, 3, (20, 900)), rng.integers(0, 900, 20), rng.uniform(1, 9, 20)
    found = SortedLogits(torch.tensor(logits)).distances(
        torch.arange(20), torch.tensor(targets), torch.tensor(norms), margin=0.5
    )
    np.testing.assert_allclose(found.numpy(), biassay.sensitivity(logits, targets, norms, margin=0.5), rtol=1e-12)


@pytest.mark.parametrize(
    ("logits", "targets", "norms", "message"),
    [
        ([1.0, 2.0], [0], [1.0], "shape"),
        ([[1.0]], [0], [1.0], "V at least 2"),
        ([[1.0, 2.0]], [0, 1], [1.0], "expected one target"),
        ([[1.0, 2.0]], [2], [1.0], "from 0 to 1"),
        ([[1.0, 2.0]], [-1], [1.0], "from 0 to 1"),
        ([[1.0, 2.0]], [0.5], [1.0], "from 0 to 1"),
        ([[1.0, np.nan]], [0], [1.0], "finite"),
        ([[1.0, 2.0]], [0], [0.0], "positive"),
    ],
)
def test_bad_arrays_are_refused(logits: object, targets: object, norms: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        biassay.sensitivity(logits, targets, norms)  # type: ignore[arg-type]
