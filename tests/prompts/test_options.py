"""Options in every order: a model that chooses by position is undecided, one that chooses by option is not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from biassay.errors import UsageError
from biassay.prompts.choices import average_options, list_option_orders


def test_orders() -> None:
    orders = list_option_orders(3)
    assert orders[0] == (0, 1, 2)
    assert len(set(orders)) == 6
    for place in range(3):
        assert sorted(order[place] for order in orders) == [0, 0, 1, 1, 2, 2]


def test_a_model_that_prefers_a_place_is_undecided() -> None:
    found = average_options({order: [0.0, -3.0, -5.0] for order in list_option_orders(3)})
    assert found.probabilities == pytest.approx((1 / 3, 1 / 3, 1 / 3))
    assert found.chosen is None
    assert math.isnan(found.agreement)


def test_a_model_that_prefers_an_option_chooses_it_in_every_order() -> None:
    likes = [-3.0, -5.0, -1.0]
    found = average_options({order: [likes[option] for option in order] for order in list_option_orders(3)})
    expected = np.exp(likes) / np.exp(likes).sum()
    assert found.probabilities == pytest.approx(tuple(expected))
    assert (found.chosen, found.agreement) == (2, 1.0)


def test_mean_of_probabilities_against_a_loop() -> None:
    rng = np.random.default_rng(3)
    given = {order: (rng.normal(size=3) * 4 - 100).tolist() for order in list_option_orders(3)}
    sums = [0.0, 0.0, 0.0]
    for order, values in given.items():
        whole = sum(math.exp(v + 100) for v in values)
        for place, option in enumerate(order):
            sums[option] += math.exp(values[place] + 100) / whole / 6
    assert average_options(given).probabilities == pytest.approx(tuple(sums))


@pytest.mark.parametrize(
    "bad", [{}, {(0, 1): [0.0]}, {(0, 0): [0.0, 0.0]}, {(0,): [math.nan]}, {(0, 1): [-math.inf, -math.inf]}]
)
def test_what_is_refused(bad: dict[tuple[int, ...], list[float]]) -> None:
    with pytest.raises(UsageError):
        average_options(bad)
