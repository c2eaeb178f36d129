"""What sets groups apart: scores less the mean of all groups, and the figure of them."""

from __future__ import annotations

import numpy as np
import pytest
from tests.reporting.pages import Page

from biassay.results.run_data import split_by_model
from biassay.runs.reports import render_report
from biassay.runs.run import Run
from biassay.studies.stereotypes.findings import center_scores, select_singles
from biassay.studies.stereotypes.results import find_closest_measure

from .asked_models import Place, measures

pytestmark = pytest.mark.extras


@pytest.fixture(scope="module")
def found(asked_place: Place) -> Run:
    return asked_place(human=asked_place.human, n_bootstrap=20)


def test_scores_are_centred_over_groups_pair_by_pair(found: Run) -> None:
    for record in measures(found):
        profiles = select_singles(record)
        apart = np.array(list(center_scores(profiles).values()))
        assert apart.sum(axis=0) == pytest.approx(0.0, abs=1e-12)
        scores = np.array([row.scores for row in profiles])
        # Differences between groups stay what they were.
        assert apart - apart[0] == pytest.approx(scores - scores[0], abs=1e-12)
        assert center_scores(profiles[:1]) == {profiles[0].group: profiles[0].scores}  # with none to compare with


def test_the_figure_names_the_traits_by_which_every_group_stands_out(found: Run) -> None:
    best, inputs = find_closest_measure(split_by_model(found)[0]), found.manifest.inputs
    assert best is not None
    profiles = {p.group: p for p in best["profiles"] if not p.parts}
    scores = np.array([profile.scores for profile in profiles.values()])
    apart = dict(zip(profiles, scores - scores.mean(axis=0), strict=True))
    page = Page(render_report(found))
    strips = [strip for strip in page.strips if "rather than" in strip]
    by_strength = sorted(profiles, key=lambda group: -np.abs(apart[group]).max())
    domains = dict.fromkeys(profiles[group].domain for group in by_strength)
    order = [group for domain in domains for group in by_strength if profiles[group].domain == domain]
    assert len(strips) == 5 * len(order)
    for place, strip in enumerate(strips):
        group, rank = order[place // 5], place % 5
        pair = int(np.argsort(-np.abs(apart[group]))[rank])
        beyond, score = apart[group][pair], profiles[group].scores[pair]
        left, right = inputs.traits[inputs.pairs[pair]]
        trait, other = (right, left) if beyond > 0 else (left, right)
        assert strip.startswith(f"{group}: {trait} rather than {other}, {abs(beyond):.2f} above the mean of 6 groups\n")
        assert f"as measured {abs(score):.2f} towards {right if score > 0 else left}" in strip
        human = (profiles[group].human or {pair: None})[pair]
        assert (f"{human if beyond > 0 else 100 - human:.0f} of 100 towards {trait}" in strip) if human else True
    agreements = [strip for strip in page.strips if strip not in strips]
    assert len(agreements) == len(measures(found))  # of all people, one a measure
