"""Word associations of models that lean by word, group word, order and answer, but not by pole: a short simulation.

The long one is benchmarks/claims/word_association.py.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

BENCHMARKS = str(Path(__file__).resolve().parents[2] / "benchmarks")
REPETITIONS = 150
MOST = 0.06 + 3 * np.sqrt(0.06 * 0.94 / REPETITIONS)


@pytest.fixture(scope="module")
def claims() -> Iterator[ModuleType]:
    sys.path.insert(0, BENCHMARKS)
    from claims import word_association as found

    yield found
    sys.path.remove(BENCHMARKS)


@pytest.mark.parametrize(
    "world",
    [
        "word association wat-racism answers",
        "word association wat-islam opposite",
        "word association wat-science pairs",
        "word association wat-science opposite",
        "word association 4 words, 6 pairs coins by pair",
    ],
)
def test_level(claims: ModuleType, world: str) -> None:
    experiment = next(line.experiment for line in claims.lines() if line.experiment.name == world)
    drawn = [experiment.draw(np.random.default_rng([1, i])) for i in range(REPETITIONS)]
    p = np.array([one["p"] for one in drawn], dtype=float)
    assert np.mean(p <= 0.05) <= MOST
    # Where words of a pole go together, by answer or by pair, words alone say too much.
    assert np.mean([one["exact"] <= 0.05 for one in drawn]) > np.mean(p <= 0.05)


def drawn(claims: ModuleType, name: str, n: int) -> list[Mapping[str, Any]]:
    experiment = next(line.experiment for line in claims.lines() if line.experiment.name == name)
    return [experiment.draw(np.random.default_rng([3, i])) for i in range(n)]


@pytest.mark.parametrize("how", ["negative to the stigmatised", "positive to the default", "stereotyped replies"])
def test_selective_refusal(claims: ModuleType, how: str) -> None:
    leaning = drawn(claims, f"word association wat-science withheld {how} 1.5", 60)
    assert not any(one["wrong"] for one in leaning)
    assert all(one["bound low"] <= 0.0 <= one["bound high"] for one in leaning)
    null = drawn(claims, f"word association wat-science withheld {how}", 60)
    assert np.mean([one["p"] <= 0.05 for one in null]) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 60)


def test_conclusions_about_order_and_maximal_bias(claims: ModuleType) -> None:
    assert not any(one["concluded"] for one in drawn(claims, "word association concluded wat-science order", 60))
    assert all(one["concluded"] for one in drawn(claims, "word association concluded 4 words, 6 pairs words 14", 60))


def test_an_effect_is_found(claims: ModuleType) -> None:
    found = [claims._asked(np.random.default_rng([2, i]), "wat-science", "pairs", 4.0)["p"] for i in range(30)]
    assert np.mean(np.array(found) <= 0.05) > 0.8


def test_every_claim_has_a_simulation(claims: ModuleType) -> None:
    lines = claims.lines()
    assert {line.claim for line in lines} == {claim.name for claim in claims.CLAIMS}
    worlds = {line.experiment.name: line.experiment.simulated for line in lines}
    assert all(worlds[line.experiment.name] == line.experiment.simulated for line in lines)
    assert len({(line.claim, line.experiment.name, line.note) for line in lines}) == len(lines)
