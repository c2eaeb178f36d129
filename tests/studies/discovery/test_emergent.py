"""Words that are called emergent: how many of them are chance, in worlds in which it is known."""

from __future__ import annotations

import numpy as np
import pytest

from biassay.datasets.catalogue import select_grouping
from biassay.datasets.groups import Grouping
from biassay.stats.multiple_testing import benjamini_hochberg
from biassay.studies.discovery.measure import GroupNameVectors, RankedWords, VocabularySearch
from biassay.studies.discovery.settings import DiscoverySettings

from .planted_words import GROUPS, NAMES, write_groups

EACH, ALPHA, TARGET = 8, 0.05, "red-women"
PLACES = np.repeat(np.arange(len(GROUPS)), EACH)
RED, WOMEN = (np.isin(PLACES, places).astype(float) for places in ([0, 1], [0, 2]))
OWN = (PLACES == 0).astype(float)


@pytest.fixture(scope="module")
def grouping(tmp_path_factory: pytest.TempPathFactory) -> Grouping:
    assert list(GROUPS) == ["red-women", "red-men", "blue-women", "blue-men"]
    assert {len(names) for names in NAMES.values()} == {EACH}
    return select_grouping(str(write_groups(tmp_path_factory.mktemp("emergent") / "own.toml", {})))


def searched(grouping: Grouping, cosines: np.ndarray, rng: np.random.Generator) -> RankedWords:
    """Names at right angles to each other, so that words can have any cosines with them."""
    n, m = cosines.shape
    panel = GroupNameVectors(grouping, np.eye(m), np.arange(m), PLACES, {}, {})
    target = next(group for group in grouping.groups if group.name == TARGET)
    limits = {TARGET: (0.8, 0.8)}
    search = VocabularySearch(panel, [target], limits, DiscoverySettings(n_permutations=999, alpha=ALPHA, keep=n), rng)
    search.add([str(word) for word in range(n)], cosines)
    return search.ranked()[TARGET]


def false_shares(grouping: Grouping, strong: np.ndarray, seed: int, worlds: int = 20) -> tuple[float, float, float]:
    """Share of words without an excess among those emergent, and if words were chosen after the correction.

    A fifth of 500 words have the excess ``strong``, the others what their categories contribute. Third: mean number of
    emergent words.
    """
    rng, rows = np.random.default_rng(seed), []
    true = np.arange(500) < 100
    for _ in range(worlds):
        sums = np.outer(rng.normal(size=500), RED) + np.outer(rng.normal(size=500), WOMEN)
        found = searched(grouping, rng.normal(size=(500, 32)) + np.where(true[:, None], strong, 0.7 * sums), rng)
        real = true[found.words.astype(int)]
        after = found.eibd & (benjamini_hochberg(found.p_excess, ALPHA).adjusted <= ALPHA)
        rows.append([*((chosen & ~real).sum() / max(1, chosen.sum()) for chosen in (found.emergent, after)),
                     found.corrected.num_emergent])  # fmt: skip
    one, other, number = np.mean(rows, axis=0)
    return float(one), float(other), float(number)


def test_words_whose_excess_eibd_drops_lend_no_credit_to_others(grouping: Grouping) -> None:
    """Strong categories: their words have an excess, and are not EIBD's. What is left after correction is chance."""
    emergent, after, number = false_shares(grouping, 1.6 * OWN + 1.6 * RED + 1.6 * WOMEN, seed=3)
    assert after > 0.2
    assert emergent <= 0.08
    assert number < 1.0


def test_words_of_the_group_alone_are_found_and_few_others(grouping: Grouping) -> None:
    emergent, _, number = false_shares(grouping, 2.5 * OWN - 1.0 * RED - 1.0 * WOMEN, seed=4)
    assert emergent <= 0.08
    assert number > 20.0
