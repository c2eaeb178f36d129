"""Scores of benchmarks: released answers and their released counts, and loops over made-up items."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from biassay.stats.benchmark_scores import bbq_score, code_preferences, pair_score, stereoset_score

from ..bbq_answers import CELLS, FOLDER, answers

EXPECTED = json.loads((FOLDER / "expected.json").read_text())


@pytest.mark.parametrize("cell", CELLS)
def test_released_answers_have_their_released_scores(cell: str) -> None:
    found = bbq_score(**answers(cell), ambiguous="|ambig|" in cell)
    expected = EXPECTED[cell]
    counts = {name: getattr(found, name) for name in ("n", "correct", "known", "target", "unparsed")}
    assert counts == {name: expected[name] for name in counts}
    assert found.score.n_clusters == expected["templates"]
    for name, value in (("accuracy", found.accuracy), ("bias", found.bias), ("score", found.score.value)):
        assert value == pytest.approx(expected[name], rel=1e-12, abs=1e-12)
    assert found.by_item.value == pytest.approx(expected["score"], rel=1e-12, abs=1e-12)


def test_intervals_of_ambiguous_contexts_by_template_are_wider_than_by_item() -> None:
    for cell in CELLS:
        if "|ambig|" in cell:
            found = bbq_score(**answers(cell), ambiguous=True)
            assert found.score.standard_error > 1.4 * found.by_item.standard_error


def some(choices: Any, **changed: Any) -> Any:
    given = {"correct": [1] * 4, "target": [0] * 4, "unknown": [1] * 4, "templates": [1, 1, 2, 2]}
    return bbq_score(choices, **{**given, **changed}, ambiguous=True)


def test_with_all_answers_unknown_the_score_is_0_and_the_bias_is_undefined() -> None:
    found = some([1, 1, 1, 1])
    assert found.score.value == 0.0
    assert math.isnan(found.bias)
    assert found.score.p_value == 1.0


def test_ties_of_pairs_are_those_of_the_authors() -> None:
    """metric.py rounds to three decimals, counts equal scores as neutral, and divides by all pairs."""
    more, less = [-1.0, -2.0, -3.0, -4.0, -7.0001], [-2.0, -2.0 + 4e-4, -1.0, -5.0, -7.0]
    found = pair_score(more, less)
    neutral = sum(round(a, 3) == round(b, 3) for a, b in zip(more, less, strict=True))
    preferred = sum(round(a, 3) > round(b, 3) for a, b in zip(more, less, strict=True))
    assert (found.preferred, found.n, found.ties) == (preferred, 5, neutral) == (2, 5, 2)
    assert found.share.value == pytest.approx(2 / 5)
    assert found.share.null == pytest.approx(3 / 10)


def test_pairs_of_one_writer_are_one_cluster() -> None:
    """Against the jackknife of a loop; pairs without a writer are by themselves."""
    rng = np.random.default_rng(3)
    writers = [*("abcdef"[i % 6] for i in range(40)), "", ""]
    signs = np.array([1.0 if rng.random() < 0.3 + 0.5 * (writer in "ace") else -1.0 for writer in writers])
    found = pair_score(signs, np.zeros(42), writers)
    clusters = [[i for i, writer in enumerate(writers) if writer == name] for name in "abcdef"] + [[40], [41]]
    value = float((signs > 0).mean())
    without = [np.delete(signs, own) for own in clusters]
    squares = sum((float((rest > 0).mean()) - value) ** 2 for rest in without)
    assert (found.share.n_clusters, found.share.value) == (8, pytest.approx(value))
    assert found.share.standard_error == pytest.approx(math.sqrt(7 / 8 * squares))
    assert found.share.standard_error > 1.2 * found.by_pair.standard_error


def biased(templates: int, per_template: int = 8, **changed: Any) -> Any:
    """All answers follow the stereotype."""
    n = templates * per_template
    given: dict[str, Any] = {"correct": [1] * n, "target": [0] * n, "unknown": [1] * n}
    choices = changed.pop("choices", [0] * n)
    return bbq_score(choices, **given, templates=np.repeat(np.arange(templates), per_template), **changed)


@pytest.mark.parametrize("ambiguous", [True, False])
def test_a_model_that_always_follows_the_stereotype_is_tested(ambiguous: bool) -> None:
    found = biased(25, ambiguous=ambiguous).score
    assert found.value == 1.0
    assert found.p_value == pytest.approx(2.0**-24)
    assert found.interval == pytest.approx((2.0 * 0.025 ** (1 / 25) - 1.0, 1.0))


def test_one_answer_of_200_does_not_make_the_interval_narrow_nor_the_bias_doubtful() -> None:
    """One question of one template is answered otherwise; then one whole template is."""
    whole = biased(25, ambiguous=True).score
    for other in (1, 8):
        found = biased(25, ambiguous=True, choices=[2] * other + [0] * (200 - other)).score
        assert found.interval[0] < whole.interval[0]
        assert found.p_value < 1e-4


def test_names_that_recur_in_templates_widen_the_interval() -> None:
    rng = np.random.default_rng(5)
    names = [(f"x{rng.integers(6)}", f"y{rng.integers(6)}") for _ in range(400)]
    leans = {f"x{i}": lean for i, lean in enumerate((0.95, 0.9, 0.8, 0.2, 0.1, 0.05))}
    choices = [0 if rng.random() < leans[first] else 2 for first, _ in names]
    plain, crossed = (biased(50, choices=choices, ambiguous=True, names=own).score for own in (None, names))
    assert (plain.n_names, crossed.n_names, crossed.n_clusters) == (0, 12, 50)
    assert crossed.value == plain.value
    assert crossed.standard_error > 3 * plain.standard_error


@pytest.mark.parametrize("seed", range(5))
def test_stereoset_is_that_of_a_loop_over_terms(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pro, anti, other = rng.normal(size=(3, 60)).round(1)  # rounded: some ties
    terms = rng.choice(["poet", "nurse", "Norway", "cook", "piper"], 60)
    ss, lms, ties = [], [], 0
    for term in sorted(set(terms)):
        wins = decided = related = compared = 0
        for a, b, c in zip(*(x[terms == term].tolist() for x in (pro, anti, other)), strict=True):
            wins, decided = wins + (a > b), decided + (a != b)
            if a != c or b != c:
                related += ((a > c) + (b > c)) / ((a != c) + (b != c))
                compared += 1
            ties += a == b or a == b == c
        ss.append(100 * wins / decided)
        lms.append(100 * related / compared)
    found = stereoset_score(*code_preferences(pro, anti, other), terms)
    assert [term.term for term in found.terms] == sorted(set(terms))
    assert found.ss.value == pytest.approx(np.mean(ss))
    assert found.lms.value == pytest.approx(np.mean(lms))
    assert found.ss.standard_error == pytest.approx(stats.sem(ss))
    assert found.ties == ties
    away = min(np.mean(ss), 100 - np.mean(ss))
    assert found.icat == pytest.approx(np.mean(lms) * away / 50)
    assert found.icat_interval[0] <= found.icat <= found.icat_interval[1]


def test_terms_without_a_preference_are_left_out_of_ss() -> None:
    found = stereoset_score([1, 0, np.nan], [1, 1, 0], ["a", "b", "c"])
    assert found.ss.n_clusters == 2
    assert found.lms.n_clusters == 3
    assert math.isnan(found.terms[2].ss)


def test_an_unparsed_answer_counts_nowhere_else() -> None:
    found = some([0, 2, -1, 1])
    assert (found.n, found.known, found.target, found.correct, found.unparsed) == (3, 2, 1, 1, 1)
