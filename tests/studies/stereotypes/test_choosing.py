"""Agreement where templates were chosen, in worlds in which the model knows nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from biassay.datasets.abc_model import SocialGroup
from biassay.datasets.human_ratings import HumanRatings
from biassay.studies.stereotypes.agreement import HumanJudgements, compare_profiles
from biassay.studies.stereotypes.measure import choose_best_templates
from biassay.studies.stereotypes.results import AgreementResult

GROUPS = [SocialGroup(f"g{i}", "d", f"g{i}", f"g{i}s", None, None, None, None, (), i < 4) for i in range(10)]
PAIRS, TEMPLATES = 8, 12


def people(rng: np.random.Generator) -> HumanJudgements:
    """Three annotators who rate ten groups, the first four of the pilot."""
    ratings = rng.uniform(0.0, 100.0, (3, len(GROUPS), PAIRS))
    pilot = np.array([group.pilot for group in GROUPS])
    names = tuple(group.name for group in GROUPS)
    pairs = tuple((f"l{p}", f"r{p}") for p in range(PAIRS))
    rated = HumanRatings(
        Path("human"), ("a", "b", "c"), names, pairs, (), ratings, ratings.mean(axis=0), None, ({},) * 3
    )
    return HumanJudgements(rated, np.arange(len(GROUPS)), pilot, rated.means[pilot], (), ())


def ignorant(rng: np.random.Generator, n: int = 19) -> AgreementResult:
    """A model whose scores have nothing to do with what people say, asked with twelve templates."""
    scores = rng.normal(size=(len(GROUPS), TEMPLATES, PAIRS)) - rng.normal(size=(len(GROUPS), TEMPLATES, PAIRS))
    human = people(rng)
    chosen, pilot_tau = choose_best_templates(scores, [f"t{t}" for t in range(TEMPLATES)], human)
    who = {"model": "m", "options": "", "measure": "ilps"}
    rows = compare_profiles(who, GROUPS, scores[:, chosen].mean(axis=1), human, pilot_tau=pilot_tau, n_bootstrap=n)
    return next(row.record for row in rows if row.table == "alignments")


@pytest.mark.slow
def test_a_choice_of_templates_makes_no_agreement() -> None:
    """Of 80 worlds, in how many the shuffled p is 0.05, its least; and the mean tau with and without the pilot."""
    rng, worlds = np.random.default_rng(3), 80
    found = [ignorant(rng) for _ in range(worlds)]
    low, high = stats.binom.ppf([0.0005, 0.9995], worlds, 0.05)  # type: ignore[misc]
    assert low <= sum((a.outcome.p_value or 1.0) <= 0.05 for a in found) <= high
    outcomes = {False: [a.outcome for a in found], True: [a.alternatives["with_pilot"] for a in found]}
    for biased, own in outcomes.items():
        taus = np.array([outcome.effect_size for outcome in own])
        assert (taus.mean() > 4.0 * taus.std() / np.sqrt(worlds)) is np.bool_(biased)
    assert {(a.outcome.n["groups"], a.outcome.n["cells"]) for a in found} == {(6, 6 * PAIRS)}
