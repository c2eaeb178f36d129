"""Questions with options, shown in every order, and what was answered over all orders."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from biassay.errors import UsageError

__all__ = ["Averaged", "averaged_options", "option_orders", "options_prompt"]

Order = tuple[int, ...]
_TIE = 1e-9  # probabilities that differ by less are equal


@dataclass(frozen=True)
class Averaged:
    """Options over several orders.

    ``probabilities`` are means over orders, of options in their own order; ``chosen`` is the most probable option, None
    if two are equally so. ``agreement`` is the share of orders that choose it.
    """

    probabilities: tuple[float, ...]
    chosen: int | None
    agreement: float


def option_orders(n: int) -> tuple[Order, ...]:
    """All orders of n options; the first is their own. ``order[k]`` is the option that stands at place k."""
    return tuple(permutations(range(n)))


def options_prompt(context: str, question: str, options: Sequence[str], order: Order, letters: str = "ABC") -> str:
    """A context, a question and its options in some order, labelled by letters."""
    lines = [f"{letter}. {options[place]}" for letter, place in zip(letters, order, strict=True)]
    return "\n".join([context, "", f"Question: {question}", *lines])


def averaged_options(log_probabilities: Mapping[Order, Sequence[float]]) -> Averaged:
    """Average over orders in which the options were shown.

    ``log_probabilities`` has for every order one number for each place. They are scaled to sum to 1 within an order, so
    that an order in which the model would rather say something else counts as much as the others; a model that
    prefers a place, not an option, comes out undecided.
    """
    if not log_probabilities:
        raise UsageError("expected at least one order")
    rows = []
    for order, given in log_probabilities.items():
        if sorted(order) != list(range(len(given))) or any(math.isnan(value) for value in given):
            raise UsageError(f"expected one log-probability for each option of the order {order}, got {list(given)}")
        if all(value == -math.inf for value in given):
            raise UsageError(f"no option has any probability in the order {order}")
        raised = np.exp(np.array(given, dtype=np.float64) - max(given))
        rows.append((raised / raised.sum())[np.argsort(order)])
    table = np.array(rows)
    means = table.mean(axis=0)
    chosen = _largest(means)
    agreement = math.nan if chosen is None else float(np.mean([_largest(row) == chosen for row in table]))
    return Averaged(tuple(means.tolist()), chosen, agreement)


def _largest(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> int | None:
    order = np.argsort(values)
    return None if len(values) > 1 and values[order[-1]] - values[order[-2]] <= _TIE else int(order[-1])
