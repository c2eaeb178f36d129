"""Models compared over and over, with other words each time: how often an interval leaves out what is true."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.results.made_runs import result, run_of
from tests.studies.associations.compared_runs import rows_of

import biassay
from biassay.runs.run import Run


def simulated(rng: np.random.Generator, size: int, tests: int, effect: float) -> list[Run]:
    """Two models that differ by noise alone; every test has other words."""
    side = np.repeat([0.5, -0.5], size)
    words = {role: {f"{role}{i}": 0.0 for i in range(size)} for role in "XYAB"}

    def drawn() -> NDArray[np.float64]:
        targets, attributes = rng.normal(size=2 * size), rng.normal(size=2 * size)
        noise = rng.normal(size=(2 * size, 2 * size))
        return 0.05 * np.outer(targets, side) + 0.05 * np.outer(side, attributes) + 0.08 * noise

    arrays: list[dict[str, NDArray[np.float64]]] = [{}, {}]
    for i in range(tests):
        shared = effect * np.outer(side, side) + math.sqrt(0.7) * drawn()
        for of_model in arrays:
            of_model[f"0/t{i}/cosines"] = shared + math.sqrt(0.3) * drawn()
    rows = [[result(name, f"t{i}", associations=words) for i in range(tests)] for name in ("one", "two")]
    return [run_of(str(i), own, of_model) for i, (own, of_model) in enumerate(zip(rows, arrays, strict=True))]


@pytest.mark.slow
@pytest.mark.parametrize("true", [0.0, 0.08])
def test_models_that_differ_by_noise_alone_are_rarely_told_apart(true: float) -> None:
    """Other words each time, targets and attributes: about one interval in twenty may leave out zero."""
    found = rows_of(biassay.compare(*simulated(np.random.default_rng(5), 8, 600, true)))
    leaving = sum(r.interval_low > 0.0 or r.interval_high < 0.0 for r in found)  # type: ignore[operator]
    assert 0.02 * 600 <= leaving <= 0.07 * 600
    assert sum(r.simultaneous_low > 0.0 or r.simultaneous_high < 0.0 for r in found) <= 1  # type: ignore[operator]
