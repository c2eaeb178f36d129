"""Corrections over a vocabulary, and how many emergent words are chance in worlds in which it is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import biassay
from biassay.datasets.catalogue import select_grouping
from biassay.datasets.groups import Grouping
from biassay.stats.multiple_testing import FdrAccumulator, benjamini_hochberg
from biassay.studies.discovery.measure import GroupNameVectors, RankedWords, VocabularySearch
from biassay.studies.discovery.results import count_needed_at_floor, find_needed_permutations
from biassay.studies.discovery.settings import DiscoverySettings

from .planted_words import GROUPS, NAMES, discovered, with_counts, write_groups

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


@pytest.mark.parametrize(
    ("words", "grain", "lost"), [(3000, 1000, 0.1), (3000, 10**9, 0.1), (40, 20, 1.0), (40, 5, 0.0)]
)
@pytest.mark.parametrize("alpha", [0.05, 0.4])
def test_counts_of_p_values_give_the_correction_of_all(words: int, grain: int, lost: float, alpha: float) -> None:
    rng = np.random.default_rng(words + grain)
    p = np.ceil(rng.beta(0.2, 1.0, (words, 2)) * grain).clip(1) / grain
    p[rng.random(words) < lost] = np.nan
    p[rng.random(words) < lost / 3, 1] = np.nan
    marks = rng.random((words, 3)) < [0.7, 0.5, 0.6]
    family = FdrAccumulator(alpha)
    for at in range(0, words, 170):
        family.add(p[at : at + 170], marks[at : at + 170])
    found = family.correct()

    q = benjamini_hochberg(p[:, 0], alpha).adjusted
    above, every, eibd = (marks & (q <= alpha)[:, None]).T
    q_excess = benjamini_hochberg(np.where(eibd | np.isnan(p[:, 1]), p[:, 1], 1.0), alpha).adjusted
    np.testing.assert_array_equal(found.q(p[:, 0]), q)
    np.testing.assert_array_equal(found.q_excess(p[:, 1], eibd), q_excess)
    assert (family.num_words, family.num_above) == (words, marks[:, 0].sum())
    assert (found.num_associated, found.num_every) == (above.sum(), (above & every).sum())
    assert (found.num_eibd, found.num_emergent) == (eibd.sum(), (q_excess <= alpha).sum())


@pytest.fixture(scope="module")
def found(place: Path) -> biassay.Run:
    return discovered(place, ["red-women", "blue-men"])


def test_a_finding_counts_the_words_of_a_group_and_names_the_first(found: biassay.Run) -> None:
    for finding, row in zip(found.findings(), found.tables["groups"], strict=True):
        words = [word.word for word in found.results if word.group == row.group and word.associated]
        assert len(words) == row.n_associated >= 5
        assert (finding.model, finding.item, finding.title) == ("v.txt", row.group, row.title)
        assert (finding.topic, finding.about, finding.evidence) == ("colour, gender", "people", "significant")
        assert (finding.effect, finding.unit, finding.words) == (len(words), "words", tuple(words[:5]))


@pytest.mark.parametrize(
    ("n_permutations", "associated", "together", "wanted"),
    [
        (9_999, 0, 40, 79_835),  # 19,959 words at 0.05: 39 at 1 / 10,000 are not found, 40 are
        (9_999, 80, 40, 79_835),
        (9_999, 400, 40, None),
        (79_834, 0, 6, 79_835),
        (79_835, 0, 5, None),
        (99_999, 0, 4, None),
    ],
)
def test_so_few_permutations_that_words_hang_on_the_seed(
    found: biassay.Run, n_permutations: int, associated: int, together: int, wanted: int | None
) -> None:
    settings = DiscoverySettings(n_permutations=n_permutations, alpha=0.05)
    row = with_counts(found.tables["groups"][0], words=19_959, associated=associated)
    assert (count_needed_at_floor(row, settings), find_needed_permutations(row, settings)) == (together, wanted)
