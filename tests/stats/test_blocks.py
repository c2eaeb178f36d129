"""Tables that are read in blocks give the numbers that whole tables give."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from biassay.stats import association
from biassay.stats.crossed import CrossedResult, crossed_rows, crossed_test, effects_without, p_value_without
from biassay.stats.crossed_effect import crossed_effect

N, M, n, k = 23, 19, 11, 8
CLOSE: dict[str, Any] = {"rel": 1e-9, "abs": 1e-12}


def table(seed: int) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    values = rng.normal(0.1, 0.1, (N, M)) + rng.normal(0.0, 0.1, (N, 1)) + rng.normal(0.0, 0.1, M)
    values[:n, :k] += 0.1 * seed
    return values


def numbers(found: CrossedResult) -> list[float]:
    fields = dataclasses.asdict(found)
    values = [found.p_skew, *fields.pop("interval"), *fields.pop("components").values(), *fields.pop("sizes")]
    return [*values, *fields.values()]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("cells", [1, 60, 200])
def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch, seed: int, cells: int) -> None:
    values = table(seed)
    whole = crossed_test(values, n, k), crossed_rows(values, n)
    effect, without = crossed_effect(values, n, k), effects_without(values, n, k)
    p_values = [p_value_without(values, n, k, place) for place in range(N + M)]
    monkeypatch.setattr(association, "BLOCK_SIZE", cells)
    assert not association.fits_one_block(values)
    for found, expected in zip((crossed_test(values, n, k), crossed_rows(values, n)), whole, strict=True):
        assert numbers(found) == pytest.approx(numbers(expected), **CLOSE)
    assert dataclasses.astuple(crossed_effect(values, n, k)) == pytest.approx(dataclasses.astuple(effect), **CLOSE)
    assert effects_without(values, n, k) == pytest.approx(without, **CLOSE)
    assert [p_value_without(values, n, k, place) for place in range(N + M)] == pytest.approx(p_values, **CLOSE)


def test_large_products_are_single_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    rows, columns = rng.normal(size=(7, 5)), rng.normal(size=(9, 5))
    assert association.inner_products(rows, columns).dtype == np.float64
    monkeypatch.setattr(association, "BLOCK_SIZE", 20)
    found = association.inner_products(rows, columns)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, (rows @ columns.T).astype(np.float32))
    assert association.as_float_table(found) is found
