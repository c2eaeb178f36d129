"""Name audits: reference values, brute force, designs that leave something undefined, and bad input."""

from __future__ import annotations

import json
import math
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy

import biassay
from biassay.errors import UsageError
from biassay.stats.crossed import crossed_rows
from biassay.stats.name_audit import AuditComponents, AuditDesign
from biassay.stats.permutation import permutation_test
from biassay.studies.audit.responses import draw_candidates

REFERENCE = Path(__file__).parents[1] / "reference" / "audit"
CASES: dict[str, Any] = json.loads((REFERENCE / "expected.json").read_text())
CLOSE: dict[str, Any] = {"rel": 1e-9, "abs": 1e-12}
audit_names: Any = biassay.name_audit  # results that are None fail a test by themselves


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def reference_audit(case: str, **options: Any) -> Any:
    arrays = np.load(REFERENCE / "cases.npz")
    tables = [arrays[f"{case}/{g}"] for g in range(CASES[case]["groups"])]
    groups = [str(g) for g, table in enumerate(tables) for _ in table]
    return audit_names(np.concatenate(tables), groups, rng=0, **options)


@pytest.mark.parametrize("case", CASES)
def test_reference_differences(case: str) -> None:
    audit, expected = reference_audit(case), CASES[case]
    found = {str(g): entry for g, entry in enumerate(expected["against_others"])}
    pairs = {name: audit.pair(*name.split("-")) for name in expected.get("pairs", {})}
    contrasts = {**{group: audit[group] for group in found}, **pairs}
    assert contrasts.keys() == found.keys() | expected.get("pairs", {}).keys()
    for name, entry in (found | expected.get("pairs", {})).items():
        contrast = contrasts[name]
        assert contrast.standard_error is not None
        numbers = {
            "D": contrast.effect_size,
            "V": contrast.standard_error**2,
            "V_names": contrast.v_names,
            "V_documents": contrast.v_documents,
            "V_residual": contrast.v_residual,
            "t": contrast.effect_size / contrast.standard_error,
        } | {key: getattr(contrast, key) for key in ("df", "p_value", "ci_low", "ci_high")}
        assert numbers == pytest.approx(entry, **CLOSE)
    if "by_name" in expected:
        p = expected["by_name"]["p_value"]
        assert [audit[group].fixed_documents_p_value for group in "01"] == pytest.approx([p, p], **CLOSE)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("top", [0.1, 0.2, 0.5])
def test_reference_selection(case: str, top: float) -> None:
    selection, expected = reference_audit(case).selection(top), CASES[case]["selection"][str(top)]
    groups = [selection[str(g)] for g in range(CASES[case]["groups"])]
    assert selection.threshold == pytest.approx(expected["threshold"], **CLOSE)
    assert [group.rate for group in groups] == pytest.approx(expected["rates"], **CLOSE)
    assert selection.highest == str(expected["highest"])
    for group, ratio, impact in zip(groups, expected["against_others"], expected["impact"], strict=True):
        assert group.ratio == (None if ratio["ratio"] is None else pytest.approx(ratio["ratio"], **CLOSE))
        if ratio["low"] is not None:
            numbers = group.ci_low, group.ci_high, group.df, group.p_value
            assert numbers == pytest.approx([ratio[key] for key in ("low", "high", "df", "p_value")], **CLOSE)
        if impact is None:
            assert (group.impact_ratio, group.impact_ci_low, group.impact_ci_high) == (1.0, None, None)
            continue
        assert group.impact_ratio == pytest.approx(impact["ratio"], **CLOSE)
        if impact["low"] is not None:
            assert (group.impact_ci_low, group.impact_ci_high) == pytest.approx(
                [impact["low"], impact["high"]], **CLOSE
            )


def draw_scores(rng: np.random.Generator, sizes: list[int], m: int, *, names: float = 0.2) -> tuple[Any, list[str]]:
    """Scores of names of groups a, b, c ... in documents that differ, without any difference of groups."""
    groups = [chr(ord("a") + g) for g, size in enumerate(sizes) for _ in range(size)]
    n = len(groups)
    scores = rng.normal(0, names, (n, 1)) + rng.normal(size=m) + rng.normal(0, 0.3, (n, m))
    return scores, groups


def random_mask(rng: np.random.Generator, scores: Any, share: float) -> Any:
    """Scores of which a share is missing, at least three a name."""
    masked = np.where(rng.random(scores.shape) < share, math.nan, scores)
    masked[:, :3] = scores[:, :3]
    return masked


def jackknife_by_loops(scores: Any, groups: list[str], weights: dict[str, float]) -> dict[str, float]:
    """D and the parts of its variance, leaving out names and documents one by one."""

    def compute(names: list[int], documents: list[int]) -> float:
        values = []
        for d in documents:
            value = 0.0
            for group, weight in weights.items():
                cells = [scores[i, d] for i in names if groups[i] == group and not math.isnan(scores[i, d])]
                value += weight * (sum(cells) / len(cells) if cells else math.nan)
            if not math.isnan(value):
                values.append(value)
        return sum(values) / len(values)

    names, documents = list(range(len(groups))), list(range(scores.shape[1]))
    documents = [d for d in documents if all(_has_name(scores[:, d], groups, group) for group in weights)]
    m = len(documents)
    without_document = [compute(names, [e for e in documents if e != d]) for d in documents]
    v_documents = (m - 1) / m * sum((value - np.mean(without_document)) ** 2 for value in without_document)
    v_names = v_residual = 0.0
    for group in weights:
        own = [i for i in names if groups[i] == group]
        n = len(own)
        without_name = np.array([compute([j for j in names if j != i], documents) for i in own])
        both = np.array(
            [[compute([j for j in names if j != i], [e for e in documents if e != d]) for d in documents] for i in own]
        )
        both = both - both.mean(axis=0) - both.mean(axis=1, keepdims=True) + both.mean()
        v_names += (n - 1) / n * float(((without_name - without_name.mean()) ** 2).sum())
        v_residual += (n - 1) / n * (m - 1) / m * float((both**2).sum())
    return {
        "D": compute(names, documents),
        "names": float(v_names),
        "documents": float(v_documents),
        "residual": float(v_residual),
    }


def _has_name(scores: Any, groups: list[str], group: str) -> bool:
    return any(g == group and not math.isnan(score) for g, score in zip(groups, scores, strict=True))


@pytest.mark.parametrize("missing", [0.0, 0.2, 0.6])
def test_variances_are_those_of_a_jackknife(rng: np.random.Generator, missing: float) -> None:
    scores, groups = draw_scores(rng, [3, 4, 3], 9)
    masked = random_mask(rng, scores, missing)
    audit = audit_names(masked, groups, rng=0)
    for contrast, weights in (
        (audit["b"], {"b": 1.0, "a": -0.5, "c": -0.5}),
        (audit.pair("c", "a"), {"c": 1.0, "a": -1.0}),
    ):
        expected = jackknife_by_loops(masked, groups, weights)
        found = [contrast.effect_size, contrast.v_names, contrast.v_documents, contrast.v_residual]
        assert found == pytest.approx(list(expected.values()), rel=1e-9)


def test_two_groups_are_the_crossed_test(rng: np.random.Generator) -> None:
    scores, groups = draw_scores(rng, [7, 5], 11)
    contrast, crossed = audit_names(scores, groups, rng=0)["a"], crossed_rows(scores, 7)
    assert crossed.interval is not None
    assert [contrast.effect_size, contrast.df, contrast.p_value, contrast.ci_low, contrast.ci_high] == pytest.approx(
        [crossed.D, crossed.df, crossed.p_value, *crossed.interval], rel=1e-9
    )
    assert contrast.shares == pytest.approx(crossed.variance_shares, rel=1e-9)


@pytest.mark.parametrize("sizes", [[3, 4], [3, 3, 3], [2, 3, 2]])
def test_permutation_of_names(rng: np.random.Generator, sizes: list[int]) -> None:
    """All distinct assignments of names to groups, by enumeration; random ones where other groups differ in size."""
    scores, groups = draw_scores(rng, sizes, 6)
    scores[: sizes[0]] += 0.3
    means, audit = scores.mean(axis=1), audit_names(scores, groups, rng=0)
    for group in dict.fromkeys(groups):

        def statistic(assigned: tuple[str, ...], group: str = group) -> float:
            by_group = {g: means[[a == g for a in assigned]].mean() for g in dict.fromkeys(groups)}
            return float(by_group[group] - np.mean([mean for g, mean in by_group.items() if g != group]))

        observed = abs(statistic(tuple(groups)))
        assignments = set(permutations(groups))
        p = float(np.mean([abs(statistic(assigned)) >= observed - 1e-12 for assigned in assignments]))
        exact = len({size for g, size in zip(dict.fromkeys(groups), sizes, strict=True) if g != group}) == 1
        assert audit[group].fixed_documents_p_value == pytest.approx(p, abs=1e-12 if exact else 0.015)


def test_fixed_documents_compare_names_in_different_documents(rng: np.random.Generator) -> None:
    """Names are compared within documents, so that a name is not low because its documents are."""
    documents = np.array([0.0, 0.0, 0.0, 50.0, 50.0, 50.0])
    scores = documents + rng.normal(0, 0.1, (8, 6))
    scores[[0, 1, 4, 5], 3:] = math.nan
    scores[[2, 3, 6, 7], :3] = math.nan
    audit = audit_names(scores, list("aaaabbbb"), rng=0)
    assert np.ptp(audit.name_means) < 1.0
    assert abs(audit["a"].effect_size) < 0.2


@pytest.mark.parametrize(("scale", "shift"), [(1000.0, 5.0), (1e-9, 0.0), (-2.0, 1.0)])
def test_units_of_scores_do_not_matter(rng: np.random.Generator, scale: float, shift: float) -> None:
    scores, groups = draw_scores(rng, [5, 6, 7], 10)
    audit, other = (audit_names(values, groups, rng=0) for values in (scores, scale * scores + shift))
    for group in "abc":
        assert other[group].effect_size == pytest.approx(scale * audit[group].effect_size, rel=1e-6)
        assert other[group].p_value == pytest.approx(audit[group].p_value, rel=1e-6)
        assert other[group].standardized == pytest.approx(np.sign(scale) * audit[group].standardized, rel=1e-6)


def test_holm_over_groups(rng: np.random.Generator) -> None:
    scores, groups = draw_scores(rng, [5, 5, 5, 5], 12)
    audit = audit_names(scores, groups, rng=0)
    expected = biassay.holm([audit[group].p_value for group in audit.groups]).adjusted
    assert [audit[group].p_adjusted for group in audit.groups] == pytest.approx(expected.tolist())
    assert audit.pair("a", "b").p_adjusted is None
    ratios = audit.selection(0.5)
    expected = biassay.holm([ratios[group].p_value for group in audit.groups]).adjusted
    assert [ratios[group].p_adjusted for group in audit.groups] == pytest.approx(expected.tolist())


def test_names_that_share_a_unit_count_once(rng: np.random.Generator) -> None:
    scores, groups = draw_scores(rng, [6, 6], 12)
    repeats = rng.integers(1, 4, 12)
    units = [f"unit {i}" for i in np.repeat(np.arange(12), repeats)]
    repeated = np.repeat(scores, repeats, axis=0)
    audit = audit_names(repeated, np.repeat(groups, repeats).tolist(), units=units, rng=0)
    assert audit.units == tuple(f"unit {i}" for i in range(12))
    assert audit["a"].p_value == pytest.approx(audit_names(scores, groups, rng=0)["a"].p_value, rel=1e-9)
    rates = {unit: (row >= audit.selection(0.2).threshold).mean() for unit, row in zip(units, repeated, strict=True)}
    by_unit = list(rates.values())
    assert audit.selection(0.2)["a"].rate == pytest.approx(np.mean(by_unit[:6]), rel=1e-9)


def test_queries_are_averaged_and_select_each(rng: np.random.Generator) -> None:
    scores, groups = draw_scores(rng, [6, 6], 12)
    queries = np.stack([scores, 10.0 + 3.0 * rng.normal(size=scores.shape)], axis=2)
    audit = audit_names(queries, groups, rng=0)
    mean = audit_names(queries.mean(axis=2), groups, rng=0)
    assert audit["a"].p_value == pytest.approx(mean["a"].p_value, rel=1e-9)
    selection, each = audit.selection(0.2), [audit_names(queries[:, :, q], groups, rng=0) for q in (0, 1)]
    assert selection.threshold is None
    assert selection.thresholds == pytest.approx([one.selection(0.2).threshold for one in each])
    assert selection["a"].rate == pytest.approx(np.mean([one.selection(0.2)["a"].rate for one in each]))


def test_own_decisions(rng: np.random.Generator) -> None:
    """Decisions that are those of a threshold give the figures of that threshold."""
    scores, groups = draw_scores(rng, [6, 6, 6], 12)
    top = audit_names(scores, groups, rng=0).selection(0.2)
    audit = audit_names(scores, groups, selected=scores >= top.threshold, top=(), rng=0)
    assert (audit.selection().top, audit.selection().threshold) == (None, None)
    for group in "abc":
        found, expected = audit.selection()[group], top[group]
        assert (found.rate, found.ci_low, found.p_value) == (expected.rate, expected.ci_low, expected.p_value)


def test_rates_compare_groups_in_the_same_documents(rng: np.random.Generator) -> None:
    """Few pairs of a group that is mostly in documents with low scores are selected; its rate is not low."""
    documents = np.repeat([0.0, 10.0], 12)
    scores = documents + 5.0 * rng.normal(size=24) + rng.normal(0, 0.5, (20, 24))
    scores[:8, 12:] = scores[12:, :12] = math.nan
    audit = audit_names(scores, ["a"] * 10 + ["b"] * 10, top=(0.5,), rng=0)
    selection = audit.selection(0.5)
    chosen = np.where(np.isnan(scores), math.nan, scores >= selection.threshold)
    for group, rows in (("a", chosen[:10]), ("b", chosen[10:])):
        assert selection[group].rate == pytest.approx(np.mean(np.nanmean(rows, axis=0)))
    assert np.nanmean(chosen[:10]) < 0.7 * np.nanmean(chosen[10:])
    assert 0.8 < selection["a"].ratio < 1.25
    assert selection["a"].ci_low < 1.0 < selection["a"].ci_high
    ratio, weights = selection["a"], {"a": 1.0 / selection["a"].rate, "b": -1.0 / selection["b"].rate}
    parts = jackknife_by_loops(chosen, ["a"] * 10 + ["b"] * 10, weights)
    V = max(parts["names"] + parts["documents"] - parts["residual"], parts["names"], parts["documents"])
    reach = -scipy.stats.t.ppf(0.025, ratio.df) * math.sqrt(V)
    assert ratio.ci_low == pytest.approx(ratio.ratio * math.exp(-reach), rel=1e-9)


def test_ties_at_the_threshold_are_selected() -> None:
    scores = np.array([[3.0, 2.0, 2.0], [2.0, 1.0, 1.0], [2.0, 1.0, 0.0], [1.0, 1.0, 0.0]])
    selection = audit_names(scores, list("aabb"), top=(0.2,), rng=0).selection(0.2)
    assert selection.threshold == 2.0
    assert (selection["a"].rate, selection["b"].rate) == (pytest.approx(4 / 6), pytest.approx(1 / 6))


@pytest.mark.parametrize(("top", "count"), [(0.1, 3), (0.2, 6), (0.25, 8)])
def test_top_share_of_pairs(rng: np.random.Generator, top: float, count: int) -> None:
    """.1 of 30 pairs are 3, although 0.1 * 30 is a little more; .25 of them are 7.5, so 8."""
    scores = rng.normal(size=(6, 5))
    selection = audit_names(scores, list("aaabbb"), top=(top,), rng=0).selection(top)
    assert selection.threshold == np.sort(scores.ravel())[-count]


def test_selection_that_few_documents_decide_is_not_significant(rng: np.random.Generator) -> None:
    """In 3 of 40 documents all names of one group are selected, which other documents may turn around."""
    selected = np.zeros((40, 40))
    selected[:20, :3] = 1.0
    selected[20, 3] = 1.0
    scores, groups = rng.normal(size=(40, 40)), ["a"] * 20 + ["b"] * 20
    found = audit_names(scores, groups, selected=selected, top=(), rng=0).selection()["a"]
    differences = selected[:20].mean(axis=0) - selected[20:].mean(axis=0)
    flipped = [abs(np.dot(signs, differences[:4])) for signs in product((-1, 1), repeat=4)]
    p = np.mean([value >= abs(differences.sum()) - 1e-12 for value in flipped])
    assert found.p_value >= p > 0.05
    assert found.ci_low is not None
    assert found.ci_low <= 1.0 <= found.ci_high


def test_groups_that_agree_completely_have_an_exact_p() -> None:
    """Every name of a group has the same score: 2 of 20 splits of names, and 2 of 16 choices of signs."""
    audit = audit_names(np.repeat([[1.0], [0.0]], 3, axis=0) + np.zeros(5), list("aaabbb"), rng=0)
    found = audit["a"]
    assert (found.effect_size, found.p_value, found.ci_low, found.standard_error) == (
        1.0,
        pytest.approx(0.1),
        None,
        None,
    )
    assert "exact" in found.reason


def test_one_document_has_no_variance_between_documents(rng: np.random.Generator) -> None:
    scores, groups = draw_scores(rng, [5, 5], 1)
    audit = audit_names(scores, groups, rng=0)
    found, selection = audit["a"], audit.selection(0.2)
    assert (found.p_value, found.ci_low, found.v_names, audit.components, audit.design) == (None,) * 5
    assert (
        found.fixed_documents_p_value == permutation_test(scores[:5, 0], scores[5:, 0], alternative="two-sided").value
    )
    assert "too few documents" in found.reason
    assert selection.chance_below_80 is None


def test_names_in_few_documents_count_less(rng: np.random.Generator) -> None:
    """One name of six is in all documents, the others in a tenth: the group has the variance of about two names."""
    scores, groups = draw_scores(rng, [6, 6], 40)
    scores += np.r_[rng.normal(size=6), np.zeros(6)][:, None]
    present = np.ones(scores.shape, dtype=bool)
    for i in range(1, 6):
        present[i] = np.arange(40) % 10 == i
    shares = (present[:6] / present[:6].sum(axis=0)).mean(axis=1)
    audit = audit_names(np.where(present, scores, math.nan), groups, rng=0)
    assert 1.0 / (shares @ shares) < 2.5
    assert (audit["a"].df or 0.0) < 1.5
    assert audit_names(scores, groups, rng=0)["a"].df > 4.0


def test_fair_audits_of_sparse_scores_are_not_simulated(rng: np.random.Generator) -> None:
    """With one name per group and document, 28% of fair audits had a ratio below .8 where the simulation gave 13%."""
    scores, groups = draw_scores(rng, [8, 8], 24)
    rows, documents = np.indices(scores.shape)
    for per_document in (1, 2):
        sparse = np.where((rows + documents) % 8 < per_document, scores, math.nan)
        chance = audit_names(sparse, groups, rng=0).selection(0.5).chance_below_80
        assert (chance is None) == (per_document == 1)


@pytest.mark.parametrize("m", [2, 3])
def test_few_documents_have_no_p(rng: np.random.Generator, m: int) -> None:
    scores, groups = draw_scores(rng, [5, 5], m)
    audit = audit_names(scores, groups, rng=0)
    found, crossed = audit["a"], crossed_rows(scores, 5)
    assert (found.p_value, found.ci_low, found.power_80, audit.design) == (None, None, None, None)
    assert found.reason == f"{m} documents for the groups; a test needs at least 4"
    assert found.standard_error == pytest.approx(math.sqrt(crossed.V))


def test_few_names_against_many_are_permuted(rng: np.random.Generator) -> None:
    """One skewed group of five against 35: p is at least that of all splits of the names, and the interval agrees."""
    means = np.r_[rng.exponential(size=5) * 0.1 + 1.9, rng.exponential(size=35)]
    scores, groups = means[:, None] + rng.normal(0, 0.01, (40, 12)), ["a"] * 5 + ["b"] * 35
    found, t = audit_names(scores, groups, rng=0)["a"], crossed_rows(scores, 5)
    by_name = found.fixed_documents_p_value
    assert t.p_value is not None
    assert t.p_value < by_name == found.p_value
    assert (found.p_value <= 0.05) == (found.ci_low > 0.0)
    for alpha in (0.99 * by_name, 1.01 * by_name):
        wider = audit_names(scores, groups, alpha=alpha, rng=0)["a"]
        assert (wider.ci_low > 0.0) == (by_name <= alpha)


def test_differences_skewed_over_documents_widen_the_interval(rng: np.random.Generator) -> None:
    """Hall's transformation of t (1992), solved by a root finder, where it is more cautious than t."""
    scores, groups = rng.normal(0, 0.05, (12, 10)), ["a"] * 6 + ["b"] * 6
    scores[:6] += rng.lognormal(0, 1, 10) - 3.0
    found, t = audit_names(scores, groups, rng=0)["a"], crossed_rows(scores, 6)
    differences = found.by_document
    skewness = scipy.stats.skew(differences, bias=False) / math.sqrt(10) * (differences.var(ddof=1) / 10 / t.V) ** 1.5
    error = math.sqrt(t.V)

    def transform(value: float) -> float:
        """Hall's cubic, and its tangent between skewness * ratio / 3 = -1/2 and where they meet again at -2."""
        ratio = (t.D - value) / error
        at = -1.5 / skewness if -2.0 < skewness * ratio / 3 < -0.5 else ratio
        cubic = at + skewness * at**2 / 3 + skewness / 6 + skewness**2 * at**3 / 27
        return float(cubic + (ratio - at) / 4)

    assert -6.0 < skewness * t.D / error < -1.5  # the tangent
    reach = scipy.stats.t.ppf(0.975, t.df)
    high = scipy.optimize.brentq(lambda value: transform(value) + reach, t.D, t.D + 50 * error)
    assert found.p_value == pytest.approx(2 * scipy.stats.t.sf(abs(transform(0.0)), t.df), rel=1e-9)
    assert t.interval is not None
    assert (found.ci_low, found.ci_high) == pytest.approx((t.interval[0], high), rel=1e-9)
    assert high > t.interval[1]
    assert "skewed over documents" in found.reason
    mirrored = audit_names(-scores, groups, rng=0)["a"]
    assert (mirrored.ci_low, mirrored.ci_high) == pytest.approx((-found.ci_high, -found.ci_low), rel=1e-9)


def test_a_large_difference_is_found_although_documents_differ() -> None:
    """Half of the responses about one group are refused, in one document hardly any: t alone has p = .0003."""
    refused = np.zeros((36, 8))
    for document, number in enumerate((1, 6, 9, 9, 9, 11, 7, 12)):
        refused[:number, document] = 1.0
    refused[:18] = np.random.default_rng(0).permuted(refused[:18], axis=0)
    found = audit_names(refused, ["a"] * 18 + ["b"] * 18, rng=0)["a"]
    assert "skewed over documents" in found.reason
    assert found.p_value is not None
    assert found.p_value < 0.05
    assert found.ci_low is not None
    assert found.ci_low > 0.0


def test_groups_are_permuted_in_documents() -> None:
    """One group against two with more names: p is at least that of all choices of a group in every document."""
    rng = np.random.default_rng(14)
    by_group = rng.exponential(size=(3, 6)) * np.array([0.3, 1.0, 1.0])[:, None]
    scores = np.repeat(by_group, [3, 6, 6], axis=0) + rng.normal(0, 0.001, (15, 6))
    found = audit_names(scores, ["a"] * 3 + ["b"] * 6 + ["c"] * 6, rng=0)["a"]
    differences = by_group - (by_group.sum(axis=0) - by_group) / 2
    chosen = np.array([np.mean([differences[g, d] for d, g in enumerate(one)]) for one in product(range(3), repeat=6)])
    p = float(np.mean(np.abs(chosen) >= abs(differences[0].mean()) - 1e-9))
    t = 2 * scipy.stats.t.sf(abs(found.effect_size) / found.standard_error, found.df)
    assert max(t, found.fixed_documents_p_value) < 0.05 < p
    assert found.p_value == pytest.approx(p, abs=0.01)
    assert found.ci_low < 0.0 < found.ci_high


def test_components_are_estimated(rng: np.random.Generator) -> None:
    """Mean estimates over many audits, with and without missing cells."""
    names, interaction, residual = 0.3, 0.2, 0.5
    for share in (0.0, 0.4):
        found = []
        for _ in range(150):
            scores = rng.normal(0, names, (18, 1)) + rng.normal(size=12) + rng.normal(0, residual, (18, 12))
            scores += np.repeat(rng.normal(0, interaction, (3, 12)), 6, axis=0)
            components = audit_names(random_mask(rng, scores, share), list("abc" * 6), top=(), rng=0).components
            assert components is not None
            found.append((components.names, components.residual, components.document_means))
        means = np.mean(found, axis=0)
        assert means[0] == pytest.approx(names**2, abs=0.02)
        assert means[2] == pytest.approx(1.0, abs=0.15)
        if not share:
            assert means[1] == pytest.approx(residual**2 + interaction**2 * 0.75, rel=0.3)


def test_placebo_splits_names_into_halves() -> None:
    """With 1, 0, 0, 0 the halves differ by a half in every split; with equal names by nothing."""
    scores = np.array([1.0, 0.0, 0.0, 0.0, 2.0, 2.0, 2.0, 2.0])[:, None] + np.zeros(5)
    placebo = audit_names(scores, list("aaaabbbb"), rng=0).placebo
    assert placebo.by_group == {"a": (-0.5, 0.5), "b": (0.0, 0.0)}
    assert (placebo.low, placebo.high, placebo.n_splits) == (-0.5, 0.5, 500)


def test_power_needs_are_consistent() -> None:
    design = AuditDesign(AuditComponents(names=0.02, documents=0.01, residual=0.1), 20, 24, 4)
    effect = design.smallest_effect()
    assert effect is not None
    assert design.power(effect) == pytest.approx(0.8, abs=1e-6)
    assert (design.names_needed(effect), design.documents_needed(effect)) == (20, 24)
    assert design.names_needed(effect / 100) is None
    assert AuditDesign(design.components, 200, 200, 4).power(0.0) == pytest.approx(0.05, abs=0.01)


def test_power_of_large_audits_is_that_of_a_normal_distribution() -> None:
    """With known variances: 4/3 (names / n + documents / m + residual / (n m)) for four groups."""
    components = AuditComponents(names=0.02, documents=0.01, residual=0.1)
    spread = math.sqrt(4 / 3 * (0.02 / 800 + 0.01 / 900 + 0.1 / 720_000))
    expected = scipy.stats.norm.sf(1.96 - 0.018 / spread)
    assert AuditDesign(components, 800, 900, 4).power(0.018) == pytest.approx(expected, abs=0.005)


SCORES = np.arange(24.0).reshape(6, 4)
GROUPS = list("aabbcc")


@pytest.mark.parametrize(
    ("scores", "groups", "options", "message"),
    [
        (SCORES, list("aabbbc"), {}, "group 'c' has a single name"),
        (SCORES, list("aaaaaa"), {}, "at least two groups"),
        (SCORES, list("aabb"), {}, "4 groups and 6 names"),
        (SCORES[0], GROUPS, {}, "names x documents"),
        (np.empty((0, 4)), [], {}, "names x documents"),
        ([["high", "low"]], ["a"], {}, "must be numbers"),
        (np.where(SCORES == 9, math.inf, SCORES), GROUPS, {}, "name 2 in document 1 .* infinite"),
        (np.where(SCORES < 4, math.nan, SCORES), GROUPS, {}, "name 0 .* has no score"),
        (np.where(SCORES % 4 == 1, math.nan, SCORES), GROUPS, {}, "document 1 .* has no score"),
        (SCORES, GROUPS, {"top": (0.0,)}, "between 0 and 1.* got 0.0"),
        (SCORES, GROUPS, {"top": (1,)}, "between 0 and 1.* got 1"),
        (SCORES, GROUPS, {"alpha": 2}, "alpha .* got 2"),
        (SCORES, GROUPS, {"units": list("xxyyz")}, "5 units and 6 names"),
        (SCORES, GROUPS, {"units": list("xyyzvw")}, "unit 'y' has names of two groups, 'a' and 'b'"),
        (SCORES, GROUPS, {"units": list("xxyzvw")}, "group 'a' has a single name"),
        (SCORES, GROUPS, {"selected": SCORES[:5]}, "shape of scores"),
        (SCORES, GROUPS, {"selected": SCORES}, "1 .selected. or 0"),
    ],
)
def test_bad_input(scores: Any, groups: list[str], options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        audit_names(scores, groups, **options)


def test_groups_that_share_no_document() -> None:
    scores = SCORES.copy()
    scores[:2, :2] = scores[2:, 2:] = math.nan
    with pytest.raises(UsageError, match="no document holds a name of every group"):
        audit_names(scores, GROUPS)


def test_unknown_groups_and_shares() -> None:
    audit = audit_names(SCORES, GROUPS, top=(0.2,), rng=0)
    with pytest.raises(UsageError, match="unknown group 'd'"):
        audit["d"]
    with pytest.raises(UsageError, match="unknown group 'x'"):
        audit.pair("a", "x")
    with pytest.raises(UsageError, match="two different groups, got 'a' twice"):
        audit.pair("a", "a")
    with pytest.raises(UsageError, match=r"no selection of the top 0.3; it has 0\.2"):
        audit.selection(0.3)
    with pytest.raises(UsageError, match="no decisions"):
        audit.selection()
    with pytest.raises(UsageError, match="unknown group 'd'"):
        audit.selection(0.2)["d"]


@pytest.mark.parametrize(("names", "documents", "groups"), [(1, 5, 2), (5, 3, 2), (5, 5, 1)])
def test_designs_need_enough_of_everything(names: int, documents: int, groups: int) -> None:
    with pytest.raises(UsageError, match=r"needs at least (2|4) .* got (1|3)"):
        AuditDesign(AuditComponents(0.1, 0.1, 0.1), names, documents, groups)


def _compete(values: Any, groups: list[str], k: int, rng: np.random.Generator) -> Any:
    """Return values (names, documents) less the mean of the k candidates in each prompt."""
    table = values.copy()
    for d in range(table.shape[1]):
        for candidates in draw_candidates(groups, k, rng):
            table[list(candidates), d] -= values[list(candidates), d].mean()
    return table


@pytest.mark.parametrize(
    ("k", "n_groups", "names", "noise"),
    [(2, 2, 1.0, 1.0), (2, 2, 0.0, 1.0), (4, 4, 0.5, 3.0), (2, 4, 1.0, 1.0)],
)
def test_the_variance_of_competing_candidates_is_that_of_the_difference(
    k: int, n_groups: int, names: float, noise: float
) -> None:
    rng, n, m = np.random.default_rng(k), 8, 6
    groups = [f"g{g}" for g in range(n_groups) for _ in range(n)]
    found = []
    for _ in range(120):
        values = names * rng.normal(size=(len(groups), 1)) + noise * rng.normal(size=(len(groups), m))
        table = _compete(values, groups, k, rng)
        contrast = audit_names(table, groups, top=(), compared=k, rng=0)["g0"]
        naive = audit_names(table, groups, top=(), rng=0)["g0"]
        assert contrast.effect_size == pytest.approx(naive.effect_size)
        found.append((contrast.effect_size, contrast.standard_error, naive.standard_error))
    effects, errors, naive_errors = np.array(found, dtype=np.float64).T
    ratio = np.sqrt((errors**2).mean()) / effects.std()
    assert 0.85 < ratio < 1.4
    assert np.sqrt((naive_errors**2).mean()) / effects.std() < ratio
