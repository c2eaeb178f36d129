"""Correction over a streamed vocabulary: the correction of all p-values at once is the witness."""

from __future__ import annotations

import numpy as np
import pytest

from biassay.stats.multiple_testing import FdrAccumulator, benjamini_hochberg


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
