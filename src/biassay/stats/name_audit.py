"""Compare scores and selection between groups of names that were put into documents.

Every name is put into every document, or into some. Names are nested in groups and crossed with documents, and both are
samples: a claim about a group of people has to hold for other names and other documents of the same kinds. So a
difference of groups is compared with how much names of one group differ, and with how much the difference of the groups
varies between documents. Tests over name-document pairs ignore both, and reject a true null hypothesis in most audits.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from biassay.errors import UnknownNameError, UsageError
from biassay.stats.agreement_bounds import share_bounds
from biassay.stats.alignment import nan_mean
from biassay.stats.association import FLAT
from biassay.stats.crossed import VarianceComponents, fisher_exact, satterthwaite_df
from biassay.stats.multiple_testing import holm
from biassay.stats.permutation import Rng, permutation_test, sign_flip_p_value
from biassay.stats.power import ALPHA, POWER, CrossedDesign, find_smallest
from biassay.stats.skewness import invert_steadily, transform_steadily

LEAST_DF = 1.0
"""Degrees of freedom for a p-value and an interval."""
LEAST_DOCUMENTS = 4
"""Documents for a p-value and an interval. With two or three that happen to agree, t rejects too often."""
FOUR_FIFTHS = 0.8
"""Impact ratio below which US agencies look for adverse impact (29 CFR 1607.4 D)."""
N_SPLITS = 500
N_PERMUTATIONS = 9_999
_N_FAIR = 1_000  # simulated fair audits
_AGREEMENT = 1e-6  # a standard error this small relative to the difference is rounding
_SKEWED = 0.25  # skewness of D from documents, from where t rejects too often
_DRAWS = 10**6  # random numbers in memory at a time
_FAR_MORE = 2  # times as many names on one side, from where t rejects too often if names are skewed
_MAX_LOG = 700.0  # largest logarithm of a float
_UNLIMITED = 10**12  # size of the second set of columns, which an audit does not have, in a crossed design

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Value = TypeVar("Value")


@dataclass(frozen=True)
class AuditComponents:
    """Variance components of scores.

    Attributes
    ----------
    names : float
        Variance of names within a group.
    documents : float
        Variance of a group's difference from the other groups between documents.
    residual : float
        Variance of a single score beyond its name, its document and their groups.
    document_means : float
        Variance of the mean score between documents. It cancels out of differences of groups.

    Notes
    -----
    Estimates of `names` and `documents` are differences and may be negative; they then count as 0.
    """

    names: float
    documents: float
    residual: float
    document_means: float = 0.0

    @property
    def shares(self) -> tuple[float, float, float] | None:
        """Shares of names, documents and the residual in the variance of a single score within a document."""
        return _divide_parts(self.names, self.documents, self.residual)


def _divide_parts(names: float, documents: float, residual: float) -> tuple[float, float, float] | None:
    parts = max(names, 0.0), max(documents, 0.0), residual
    total = sum(parts)
    return (parts[0] / total, parts[1] / total, parts[2] / total) if total > 0.0 else None


@dataclass(frozen=True)
class AuditDesign:
    """Design of an audit: variance components and numbers of names per group, documents and groups.

    Attributes
    ----------
    components : AuditComponents
    n_names, n_documents, n_groups : int
    alpha : float
        Significance level, before correction for several groups.
    """

    components: AuditComponents
    n_names: int
    n_documents: int
    n_groups: int = 2
    alpha: float = ALPHA

    def __post_init__(self) -> None:
        for what, size, least in (
            ("names per group", self.n_names, 2),
            ("documents", self.n_documents, LEAST_DOCUMENTS),
            ("groups", self.n_groups, 2),
        ):
            if size < least:
                raise UsageError(f"the power of an audit needs at least {least} {what}, got {size}")

    def power(self, effect: float) -> float:
        """Return the probability that a group whose true D is `effect` has a p-value of at most alpha."""
        return self._crossed.power(effect, self.alpha)

    def smallest_effect(self, power: float = POWER) -> float | None:
        """Return the smallest D that is found with this power, or None if there are too few names or documents."""
        return self._crossed.smallest_difference(self.alpha, power)

    def names_needed(self, effect: float, power: float = POWER) -> int | None:
        """Return the number of names per group that finds D = `effect`; None if 10,000 are not enough."""
        return find_smallest(lambda n: replace(self, n_names=n).power(effect) >= power)

    def documents_needed(self, effect: float, power: float = POWER) -> int | None:
        """Return the number of documents that finds D = `effect`; None if 10,000 are not enough."""
        needed = find_smallest(lambda m: replace(self, n_documents=max(m, LEAST_DOCUMENTS)).power(effect) >= power)
        return None if needed is None else max(needed, LEAST_DOCUMENTS)

    @cached_property
    def _crossed(self) -> CrossedDesign:
        others = self.n_groups - 1
        documents = self.components.documents * self.n_groups / others
        components = VarianceComponents(self.components.names, documents, self.components.residual)
        return CrossedDesign(components, (self.n_names, others * self.n_names, self.n_documents, _UNLIMITED))


@dataclass(frozen=True, eq=False)
class GroupContrast:
    """Difference of a group of names from other groups.

    Attributes
    ----------
    group : str
    others : tuple of str
    effect_size : float
        D: the mean score of the group minus the equally weighted mean of the others, within documents.
    standardized : float or None
        D divided by the standard deviation of mean scores between documents. None if documents do not differ.
    standard_error, df, p_value, ci_low, ci_high : float or None
        Of the t test with names and documents as samples, larger and wider for skewed data; see the notes of
        `name_audit`. None if it is undefined; see `reason`.
    p_adjusted : float or None
        Holm's correction over the groups of the audit. With two groups there is one test. None for chosen pairs.
    v_names, v_documents, v_residual : float or None
        Contributions of names, documents and the residual to the variance of D.
    n_names, n_others, n_documents : int
        Names (or units) of the group and of the others, and documents with a name of each group.
    by_document : (documents,) float64
        D in every document; NaN in documents that lack one of the groups.
    alpha : float
        1 - alpha is the confidence of the interval.
    reason : str
        Why the p-value or the interval is missing, or what the p-value is instead; "" for a t test.
    """

    group: str
    others: tuple[str, ...]
    effect_size: float
    standardized: float | None
    standard_error: float | None
    df: float | None
    p_value: float | None
    p_adjusted: float | None
    ci_low: float | None
    ci_high: float | None
    v_names: float | None
    v_documents: float | None
    v_residual: float | None
    n_names: int
    n_others: int
    n_documents: int
    by_document: Floats = field(repr=False)
    alpha: float
    reason: str
    _means: Floats = field(repr=False)  # means of units, over documents
    _weights: Floats = field(repr=False)  # weights of units in D
    _seed: int = field(repr=False)

    @property
    def shares(self) -> tuple[float, float, float] | None:
        """Shares of names, documents and the residual in the variance of D."""
        if self.v_names is None or self.v_documents is None or self.v_residual is None:
            return None
        return _divide_parts(self.v_names - self.v_residual, self.v_documents - self.v_residual, self.v_residual)

    @cached_property
    def fixed_documents_p_value(self) -> float:
        """P-value of names permuted among the groups, two-sided: it says nothing about other documents.

        The statistic is the difference of names' means over documents. Permuting is exact (see `permutation_test`) if
        all other groups have equally many names. Otherwise the weights of names differ, and the p-value is that of
        9,999 random permutations and the observed one.
        """
        return _permute_names(self._means, self._weights, self._seed)

    @cached_property
    def power_80(self) -> float | None:
        """Smallest D that this design finds with 80% power at `alpha`; None if there is none."""
        if self.shares is None or self.n_documents < LEAST_DOCUMENTS:
            return None
        assert self.v_names is not None
        assert self.v_documents is not None
        assert self.v_residual is not None
        # One set of columns is the limit of two of which the second is large.
        others = self._weights[self._weights < 0.0]
        sizes = self.n_names, round(1.0 / float(others @ others)), self.n_documents, _UNLIMITED
        rows = 1.0 / sizes[0] + 1.0 / sizes[1]
        components = VarianceComponents(
            (self.v_names - self.v_residual) / rows,
            (self.v_documents - self.v_residual) * self.n_documents,
            self.v_residual * self.n_documents / rows,
        )
        return CrossedDesign(components, sizes).smallest_difference(self.alpha)


@dataclass(frozen=True)
class GroupSelection:
    """Selection rate of a group, its ratio to the other groups, and its impact ratio.

    Attributes
    ----------
    group : str
    rate : float
        Share of the group's name-document pairs that are selected. If scores are missing, the mean of this share over
        the documents with names of all groups, so that no group is compared in other documents.
    ratio : float or None
        Rate divided by the mean rate of the other groups. None if nothing of the other groups is selected.
    df, p_value, ci_low, ci_high : float or None
        Of the t test of the log ratio with names and documents as samples; a significant p is at least that of two
        exact tests. None if undefined; see `reason`. If nothing is selected on one side, an exact bound by name.
    p_adjusted : float or None
        Holm's correction over the groups of the audit.
    impact_ratio : float or None
        Rate divided by the highest rate. 1 for the group with the highest rate.
    impact_ci_low, impact_ci_high : float or None
        At a confidence of 1 - alpha / [G (G - 1) / 2] for G groups, because the highest group is chosen by looking.
        None for the group with the highest rate.
    reason, impact_reason : str
        Why an interval or a p-value is missing, or what it is instead; "" for a t test.
    """

    group: str
    rate: float
    ratio: float | None
    df: float | None
    p_value: float | None
    p_adjusted: float | None
    ci_low: float | None
    ci_high: float | None
    impact_ratio: float | None
    impact_ci_low: float | None
    impact_ci_high: float | None
    reason: str
    impact_reason: str


@dataclass(frozen=True, eq=False)
class Selection:
    """Selection rates of all groups if a share `top` of all pairs is selected, or as the system decided.

    Attributes
    ----------
    top : float or None
        None for the system's own decisions.
    thresholds : tuple of float
        Lowest selected score of every query. Empty for the system's own decisions.
    highest : str
        Group with the highest rate; the first one if several have it.
    groups : mapping of str to GroupSelection
    chance_below_80 : float or None
        Probability that some impact ratio falls below .8 in an audit of this size if all groups are treated equally.
        None with a single document, or with fewer than two names per group and document: names then cannot be told
        from their documents.

    Notes
    -----
    `chance_below_80` is simulated from the variance components of the 0/1 selections: every name's rate is drawn from
    a beta distribution with the overall rate as mean and the variance of names, and the rate of a group is the mean of
    its names plus normal noise of documents and residual.
    """

    top: float | None
    thresholds: tuple[float, ...]
    highest: str
    groups: Mapping[str, GroupSelection]
    chance_below_80: float | None
    _data: _RateTable = field(repr=False)

    @property
    def threshold(self) -> float | None:
        """Lowest selected score; None if there are several queries, or for the system's own decisions."""
        return self.thresholds[0] if len(self.thresholds) == 1 else None

    def __getitem__(self, group: str) -> GroupSelection:
        return _look_up(group, self.groups)


@dataclass(frozen=True)
class CombinedRatios:
    """Weighted sum of a group's log selection ratios in two audits.

    Attributes
    ----------
    value : float or None
        None if a rate is 0; see `reason`.
    p_value, low, high : float or None
        Of the t test of the sum, as in `GroupSelection`.
    same : bool
        If True, both systems selected the same pairs.
    n_names, n_documents : int
        Names (or units), and documents with a name of each group.
    reason : str
        Why there is no interval, or what the p-value is instead.
    """

    value: float | None
    p_value: float | None
    low: float | None
    high: float | None
    same: bool
    n_names: int
    n_documents: int
    reason: str


@dataclass(frozen=True)
class Placebo:
    """Differences that names alone make: names of one group split at random into halves.

    Attributes
    ----------
    low, high : float
        Range of 95% of the differences, over the groups.
    by_group : mapping of str to (float, float)
        Range of 95% of the differences within each group.
    n_splits : int
        Number of splits of every group.
    """

    low: float
    high: float
    by_group: Mapping[str, tuple[float, float]]
    n_splits: int


@dataclass(frozen=True, eq=False)
class NameAudit:
    """Result of `name_audit`; ``audit["Black women"]`` is the contrast of a group with the others.

    Attributes
    ----------
    groups : tuple of str
        In the order of their first name.
    contrasts : mapping of str to GroupContrast
        Difference of every group from the equally weighted mean of the others.
    components : AuditComponents or None
        Variance components, pooled over the groups. None with a single document.
    placebo : Placebo
    document_spread : float
        Standard deviation of mean scores between documents; 0 with a single one.
    name_means : (units,) float64
        Mean score of every name (or unit) over documents; without the mean of the document where names are missing in
        some documents.
    units : tuple
        Labels of the rows of `name_means`: those given as `units`, or the number of the name.
    unit_groups : (units,) int
        Index of the group of every unit.
    alpha : float
    """

    groups: tuple[str, ...]
    contrasts: Mapping[str, GroupContrast]
    components: AuditComponents | None
    placebo: Placebo
    document_spread: float
    name_means: Floats = field(repr=False)
    units: tuple[Hashable, ...] = field(repr=False)
    unit_groups: Indices = field(repr=False)
    alpha: float
    _data: _GroupTable = field(repr=False)
    _selections: Mapping[float | None, Selection] = field(repr=False)

    def __getitem__(self, group: str) -> GroupContrast:
        return _look_up(group, self.contrasts)

    def pair(self, first: str, second: str) -> GroupContrast:
        """Return the difference of two groups, first minus second, without correction for several pairs."""
        weights = np.zeros(len(self.groups))
        for group, weight in ((first, 1.0), (second, -1.0)):
            weights[self.groups.index(self[group].group)] += weight
        if first == second:
            raise UsageError(f"a pair needs two different groups, got {first!r} twice")
        return _contrast_groups(self._data, weights)

    def selection(self, top: float | None = None) -> Selection:
        """Return selection rates if a share `top` of all pairs is selected; None: the system's own decisions."""
        if top in self._selections:
            return self._selections[top]
        shares = ", ".join(f"{share:g}" for share in self._selections if share is not None)
        if top is None:
            raise UsageError(f"this audit has no decisions; give `selected`, or ask for a top share ({shares})")
        raise UsageError(f"this audit has no selection of the top {top!r}; it has {shares or 'none'}")

    @property
    def design(self) -> AuditDesign | None:
        """Design of an audit of this size, for power. Groups have the mean number of names.

        None without variance, or with fewer than four documents.
        """
        if self.components is None or self.components.shares is None or self._data.table.shape[1] < LEAST_DOCUMENTS:
            return None
        sizes = len(self.units) // len(self.groups), self._data.table.shape[1], len(self.groups)
        return AuditDesign(self.components, *sizes, self.alpha)


def name_audit(
    scores: ArrayLike,
    groups: Sequence[str],
    *,
    top: Sequence[float] = (0.1, 0.2, 0.5),
    units: Sequence[Hashable] | None = None,
    selected: ArrayLike | None = None,
    compared: int = 1,
    alpha: float = ALPHA,
    rng: Rng = None,
) -> NameAudit:
    """Compare scores of documents between groups of names that were put into them.

    Parameters
    ----------
    scores : (names, documents) or (names, documents, queries) array-like
        NaN where a name was not put into a document. Differences are those of the mean over queries.
    groups : (names,) sequence of str
        Group of every name.
    top : sequence of float, default (0.1, 0.2, 0.5)
        Shares of all name-document pairs that count as selected. With several queries, pairs are selected for each.
    units : (names,) sequence, optional
        Sampling unit of every name. Names that depend on each other (Ann, Anna, Anne) share one and count once: their
        scores and selections are averaged. By default, every name is a unit.
    selected : array-like with the shape of `scores`, optional
        The system's own decisions: 1 if it selected the pair, 0 if not.
    compared : int, default 1
        If the system chose one of several candidates at a time, their number; scores are then shares of choices.
    alpha : float, default 0.05
        Significance level; 1 - alpha is the confidence of intervals.
    rng : numpy Generator or seed
        For placebo splits, for simulated fair audits, and for permutations that are not exact.

    Returns
    -------
    NameAudit
        ``audit[group]`` is the difference of a group from the others, ``audit.pair(first, second)`` that of two groups,
        and ``audit.selection(0.2)[group]`` the selection rate with its ratios.

    Notes
    -----
    D is the mean over documents of the group's mean minus the equally weighted mean of the other groups. Its variance
    is that of names plus that of documents minus the residual, which both contain, and at least the larger of both;
    degrees of freedom follow Satterthwaite. The parts come from a jackknife that leaves out a name, a document, or one
    of each. If every name is in every document, this is the crossed test with a single set of columns. Documents that
    lack a group that is compared are left out.

    If D is skewed by differences that are skewed over documents (a skewness above .25, as if a group differs in a few
    documents), p and interval are at least those of Hall's transformation of t: with ten documents and exponential
    differences, t rejects 10% of true null hypotheses. Where the transformation is nearly flat, a line replaces it.

    If one side has more than twice as many names as the other (as with four groups of equal size), a significant p is
    at least that of permuted names, and of groups that are permuted in every document, because few skewed names or
    differences against many make t reject too often: 14% of fair audits of eight groups of five had a significant group
    after correction. The interval is widened to agree.

    Candidates who are compared compete: the choice of one lowers the scores of the others, so that names and responses
    seem to vary less than the difference of groups does. With k candidates, or k groups if these are more, the effect
    of a name on its own score is (k - 1)/k of its effect on the difference, and the variance of a response (k - 1)/k of
    its part. Deviations of names from the means of their groups are rescaled by both; means do not change. Without it,
    t rejects 16% of true null hypotheses for pairs of names that differ.

    Ratios of selection rates have a t interval on the log scale. Its variance is that of the difference between the
    0/1 tables, each divided by the rate it is compared with. Where few names or few documents decide who is selected,
    t rejects up to 15% of true null hypotheses, so a significant p is at least those of permuted names and of flipped
    signs of the documents' differences. A group of which nothing is selected has an exact bound by
    name: with n names and m documents its rate is at most 1 - (alpha / 2)^(1 / min(n, m)) (Clopper and Pearson 1934).
    Its p-value is that of Fisher's exact test, with a name as one observation.

    References
    ----------
    F. E. Satterthwaite (1946). An approximate distribution of estimates of variance components. Biometrics Bulletin 2.
    C. J. Clopper and E. S. Pearson (1934). The use of confidence or fiducial limits illustrated in the case of the
    binomial. Biometrika 26.
    P. Hall (1992). On the removal of skewness by transformation. Journal of the Royal Statistical Society B 54.

    Examples
    --------
    >>> import numpy as np, biassay
    >>> rng = np.random.default_rng(0)
    >>> names, documents = rng.normal(0, 0.1, (20, 1)), rng.normal(0, 1, 12)
    >>> scores = names + documents + rng.normal(0, 0.3, (20, 12))
    >>> scores[:10] -= 0.4
    >>> audit = biassay.name_audit(scores, ["a"] * 10 + ["b"] * 10, rng=0)
    >>> bool(audit["a"].p_value < 0.01), round(audit.selection(0.5)["a"].rate, 2)
    (True, 0.44)
    """
    if not 0.0 < alpha < 1.0:
        raise UsageError(f"alpha must lie between 0 and 1, got {alpha!r}")
    table = _validate_scores(scores, len(groups))
    tables: dict[float | None, tuple[Floats, tuple[float, ...]]] = {k: _select_top(table, k) for k in top}
    if selected is not None:
        tables[None] = _validate_decisions(selected, table), ()
    labels, unit_index = _number_units(units, len(table))
    names, unit_groups = _number_groups([str(group) for group in groups], labels, unit_index)
    generator = np.random.default_rng(rng)
    if compared < 1:
        raise UsageError(f"compared is a number of candidates, at least 1; got {compared!r}")

    def average(values: Floats) -> Floats:
        return _undo_competition(_average_units(values, unit_index), unit_groups, compared)

    data = _GroupTable(average(table), names, unit_groups, alpha, int(generator.integers(2**63)))
    contrasts = [_contrast_groups(data, weights) for weights in _weigh_against_others(len(names))]
    adjusted = _adjust([contrast.p_value for contrast in contrasts])
    return NameAudit(
        groups=names,
        contrasts={c.group: replace(c, p_adjusted=p) for c, p in zip(contrasts, adjusted, strict=True)},
        components=data.parts.components,
        placebo=_split_names(data, generator),
        document_spread=data.document_spread,
        name_means=data.name_means,
        units=labels,
        unit_groups=unit_groups,
        alpha=alpha,
        _data=data,
        _selections={
            k: _compare_rates(data, average(chosen), k, thresholds, generator)
            for k, (chosen, thresholds) in tables.items()
        },
    )


@dataclass(frozen=True, eq=False)
class _GroupTable:
    """Values (units, documents) of names in groups; NaN where missing."""

    table: Floats
    names: tuple[str, ...]
    unit_groups: Indices
    alpha: float
    seed: int

    @cached_property
    def parts(self) -> _GroupParts:
        return _GroupParts.from_table(self.table, self.unit_groups)

    @cached_property
    def name_means(self) -> Floats:
        """Mean of each name over documents, after subtracting document means if values are missing."""
        document_means = nan_mean(_average_groups(self.table, self.unit_groups), axis=0)
        is_complete = not np.isnan(self.table).any()
        adjusted = self.table if is_complete else self.table - document_means + document_means.mean()
        return nan_mean(adjusted.T, axis=0)

    @cached_property
    def document_spread(self) -> float:
        complete = self.parts.means.mean(axis=0)
        spread = float(complete.std(ddof=1)) if len(complete) > 1 else 0.0
        return 0.0 if spread <= FLAT * float(np.nanmax(np.abs(self.table))) else spread

    def estimate(self, weights: Floats) -> _Estimate:
        """Estimate a weighted sum of group means within documents."""
        if np.isnan(self.table).any():
            return _jackknife(self.table, self.unit_groups, weights)
        return self.parts.contrast(weights)


@dataclass(frozen=True, eq=False)
class _RateTable(_GroupTable):
    """Selections in documents that have all groups, and the selection rates of the groups."""

    rates: Floats

    def reference(self, weights: Floats) -> Floats:
        """Return what to divide every group's rate by: the rate itself, or that of all groups with negative weights."""
        others = weights < 0.0
        return np.select([others, weights > 0.0], [-weights[others] @ self.rates[others], self.rates], 1.0)

    def exact_p_value(self, weights: Floats) -> float:
        """Return the larger p-value of permuted names and of flipped signs of the documents' differences."""
        involved = weights[self.unit_groups] != 0.0
        by_name = (weights / np.bincount(self.unit_groups))[self.unit_groups[involved]]
        means = _average_groups(self.table, self.unit_groups)[weights != 0.0]
        relative = nan_mean((self.table - means.mean(axis=0))[involved].T, axis=0)
        documents = sign_flip_p_value(weights[weights != 0.0] @ means)
        return max(_permute_names(np.nan_to_num(relative), by_name, self.seed), documents)


def _weigh_against_others(n_groups: int) -> Floats:
    """Return weights (groups, groups) of every group against the equally weighted mean of the others."""
    return np.asarray((np.eye(n_groups) * n_groups - 1.0) / (n_groups - 1))


@dataclass(frozen=True, eq=False)
class _Estimate:
    """A contrast of groups, and the parts of its variance; NaN if undefined."""

    by_document: Floats  # NaN where a group is missing
    names: Floats  # by group
    residuals: Floats  # by group
    dfs: list[float]  # degrees of freedom of names, documents and residuals

    @property
    def value(self) -> float:
        return float(np.nanmean(self.by_document))

    @property
    def n_documents(self) -> int:
        return int(np.count_nonzero(~np.isnan(self.by_document)))

    @cached_property
    def documents(self) -> float:
        values = self.by_document[~np.isnan(self.by_document)]
        return float(values.var(ddof=1)) / len(values) if len(values) > 1 else math.nan

    @cached_property
    def V(self) -> float:
        names, residual = float(self.names.sum()), float(self.residuals.sum())
        return max(names + self.documents - residual, names, self.documents)

    @property
    def df(self) -> float:
        return satterthwaite_df(self.V, [*self.names, self.documents, *self.residuals], self.dfs)

    @property
    def skewness(self) -> float:
        """Skewness of the value that differences skewed over documents cause."""
        values = self.by_document[~np.isnan(self.by_document)]
        n, deviations = len(values), values - values.mean()
        if n < LEAST_DOCUMENTS or not self.documents > 0.0:
            return 0.0
        third_moment = float((deviations**3).mean()) * n * n / ((n - 1) * (n - 2))
        return float(third_moment / n**2 / self.V**1.5)


@dataclass(frozen=True, eq=False)
class _GroupParts:
    """Means of groups in documents (groups, documents), and their variances from names and the residual."""

    means: Floats
    names: Floats
    residuals: Floats
    sizes: Indices

    @classmethod
    def from_table(cls, table: Floats, unit_groups: Indices) -> _GroupParts:
        """Compute the parts of a table (units, documents), with a jackknife if scores are missing."""
        if np.isnan(table).any():
            group_means = _average_groups(table, unit_groups)
            relative, units = table - group_means.mean(axis=0), np.eye(len(group_means))
            estimates = [_jackknife(relative, unit_groups, unit) for unit in units]
            parts = [
                np.concatenate(values) for values in zip(*((e.names, e.residuals) for e in estimates), strict=True)
            ]
            shared = ~np.isnan(group_means).any(axis=0)
            return cls(group_means[:, shared], parts[0], parts[1], np.bincount(unit_groups))
        m = table.shape[1]
        means, names, residuals = [], [], []
        for g in range(int(unit_groups.max()) + 1):
            deviations = table[unit_groups == g]
            n = len(deviations)
            means.append(deviations.mean(axis=0))
            deviations = deviations - means[-1]
            by_name = deviations.mean(axis=1)
            deviations -= by_name[:, None]
            names.append(float(by_name @ by_name) / ((n - 1) * n))
            squares = float(np.einsum("ij,ij->", deviations, deviations))
            residuals.append(squares / ((n - 1) * (m - 1) * n * m) if m > 1 else math.nan)
        return cls(np.stack(means), np.array(names), np.array(residuals), np.bincount(unit_groups))

    def contrast(self, weights: Floats) -> _Estimate:
        chosen = weights != 0.0
        n, m = self.sizes[chosen] - 1, self.means.shape[1]
        squares = weights[chosen] ** 2
        dfs = [*n.tolist(), m - 1, *(n * (m - 1)).tolist()]
        return _Estimate(weights @ self.means, squares * self.names[chosen], squares * self.residuals[chosen], dfs)

    @property
    def components(self) -> AuditComponents | None:
        """Variance components, pooled over groups; None with fewer than two documents."""
        if np.isnan(self.residuals).any():
            return None
        n_groups, m = self.means.shape
        pool = (self.sizes - 1) / (self.sizes - 1).sum()
        document_means = self.means.mean(axis=0)
        differences = float((self.means - document_means).var(axis=1, ddof=1).sum()) / (n_groups - 1)
        return AuditComponents(
            names=float(pool @ (self.sizes * (self.names - self.residuals))),
            documents=differences - m * float(self.residuals.mean()),
            residual=float(pool @ (self.sizes * self.residuals)) * m,
            document_means=float(document_means.var(ddof=1)),
        )


def _average_groups(table: Floats, unit_groups: Indices) -> Floats:
    """Average the units of every group: (groups, documents); NaN in documents without the group."""
    return np.stack([nan_mean(table[unit_groups == g], axis=0) for g in range(int(unit_groups.max()) + 1)])


def _jackknife(table: Floats, unit_groups: Indices, weights: Floats) -> _Estimate:
    """Estimate a weighted sum of group means within documents, leaving out a name, a document, or one of each.

    Parameters
    ----------
    table : (units, documents) float
        NaN where missing. Without missing values, the result is that of `_GroupParts`.
    unit_groups : (units,) int
    weights : (groups,) float
        Groups with a weight of 0 do not count.

    Returns
    -------
    _Estimate

    Notes
    -----
    Without a name, the value of a document changes by the name's distance from the mean of its group, over the number
    of other names of the group in that document. If there are none, the document is left out, too. Names in few
    documents count less: the degrees of freedom are those of as many equally frequent names as have the same sum of
    squared shares in the mean of the group.
    """
    chosen = np.flatnonzero(weights)
    parts = [table[unit_groups == g] for g in chosen]
    means = np.stack([nan_mean(part, axis=0) for part in parts])
    used = ~np.isnan(means).any(axis=0)
    m = int(used.sum())
    if not m:
        raise UsageError("no document holds a name of every group that is compared; put names of all groups into each")
    by_document = np.where(used, weights[chosen] @ means, math.nan)
    values = by_document[used]
    names, residuals, name_dfs, cell_dfs = [], [], [], []
    for part, mean, weight in zip(parts, means[:, used], weights[chosen], strict=True):
        cells, n = part[:, used], len(part)
        present = ~np.isnan(cells)
        others = present.sum(axis=0) - 1
        alone = present & (others == 0)
        changes = np.where(present, -weight * (cells - mean) / np.maximum(others, 1), 0.0) + (values - values.mean())
        changes[alone] = 0.0
        left, sums = m - alone.sum(axis=1), changes.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):  # a name without which fewer than two documents are left
            without_name = sums / left
            without_both = np.where(alone, without_name[:, None], (sums[:, None] - changes) / (left[:, None] - 1))
        without_both -= without_both.mean(axis=1, keepdims=True)
        without_both -= without_both.mean(axis=0)
        enough = left.min() > 1
        names.append((n - 1) / n * float(((without_name - without_name.mean()) ** 2).sum()) if enough else math.nan)
        residuals.append((n - 1) / n * (m - 1) / m * float((without_both**2).sum()) if enough else math.nan)
        shares = (present / (others + 1)).mean(axis=1)  # of names in the mean of the group
        name_dfs.append(1.0 / float(shares @ shares) - 1.0)
        cell_dfs.append(max(int(present.sum()) - n - m + 1, 1))
    dfs = [*name_dfs, m - 1, *cell_dfs]
    return _Estimate(by_document, np.array(names), np.array(residuals), dfs)


def _test(value: float, estimate: _Estimate, alpha: float, scale: float) -> _Tested:
    """Test a value with the variance of an estimate; values up to `scale` times 1e-12 are rounding."""
    V = estimate.V
    if math.isnan(V):
        return _Tested(reason="too few documents hold names of every group for a variance between documents")
    if not max(FLAT * scale, _AGREEMENT * abs(value)) ** 2 < V:
        return _Tested(reason="all names of a group and all documents agree, so there is no variance", V=0.0)
    df, error = estimate.df, math.sqrt(V)
    if estimate.n_documents < LEAST_DOCUMENTS:
        return _Tested(f"{estimate.n_documents} documents for the groups; a test needs at least {LEAST_DOCUMENTS}", V)
    if df < LEAST_DF:
        return _Tested(reason=f"{df:.2g} degrees of freedom; a test needs at least {LEAST_DF:g}", V=V)
    reach = -float(scipy.special.stdtrit(df, alpha / 2.0)) * error
    p = 2.0 * float(scipy.special.stdtr(df, -abs(value) / error))
    return _Tested("", V, df, p, value - reach, value + reach)


@dataclass(frozen=True)
class _Tested:
    """Result of a t test, or the reason why there is none."""

    reason: str
    V: float | None = None
    df: float | None = None
    p_value: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None

    def get_fields(self) -> dict[str, float | None]:
        """Return the fields that a contrast and a selection have in common."""
        return {"df": self.df, "p_value": self.p_value, "ci_low": self.ci_low, "ci_high": self.ci_high}

    def is_checked(self, alpha: float) -> bool:
        """Return True if the result is significant, or nearly so, and an exact test may contradict it."""
        return self.df is not None and self.p_value is not None and self.p_value < 2.0 * alpha

    def at_least(self, p: float, value: float, alpha: float = 0.0) -> _Tested:
        """Return the result with a p-value of at least `p`, and an interval that is wide enough to agree with it.

        If `p` is at most `alpha`, the interval agrees already: Monte Carlo p-values have a floor that says nothing
        about the size of the difference.
        """
        if self.V is None or self.df is None or self.p_value is None or self.ci_low is None or self.ci_high is None:
            return self
        if p <= self.p_value:
            return self
        if p <= alpha:
            return replace(self, p_value=p)
        widening = max(abs(value) + float(scipy.special.stdtrit(self.df, p / 2.0)) * math.sqrt(self.V), 0.0)
        return replace(self, p_value=p, ci_low=self.ci_low - widening, ci_high=self.ci_high + widening)

    def allow_for_skewness(self, value: float, skewness: float, alpha: float) -> _Tested:
        """Return the larger p-value and the wider interval of t and of Hall's transformation of t."""
        if self.V is None or self.df is None or self.p_value is None or self.ci_low is None or self.ci_high is None:
            return self
        if abs(skewness) <= _SKEWED:
            return self
        error, reach = math.sqrt(self.V), -float(scipy.special.stdtrit(self.df, alpha / 2.0))
        low, high = (value - error * invert_steadily(end, skewness) for end in (reach, -reach))
        p = 2.0 * float(scipy.special.stdtr(self.df, -abs(transform_steadily(value / error, skewness))))
        reason = "the difference is skewed over documents: p and interval are the more cautious ones of t and Hall's t"
        return replace(
            self,
            reason=reason,
            p_value=max(self.p_value, p),
            ci_low=min(self.ci_low, low),
            ci_high=max(self.ci_high, high),
        )

    def exponentiate(self) -> _Tested:
        """Return the result with the interval of a ratio instead of its log."""
        if self.ci_low is None or self.ci_high is None:
            return self
        return replace(self, ci_low=math.exp(self.ci_low), ci_high=math.exp(min(self.ci_high, _MAX_LOG)))


def _contrast_groups(data: _GroupTable, weights: Floats) -> GroupContrast:
    estimate = data.estimate(weights)
    first = int(weights.argmax())
    others = [int(g) for g in np.flatnonzero(weights < 0.0)]
    involved = weights[data.unit_groups] != 0.0
    sizes = np.bincount(data.unit_groups)
    scale = float(np.nanmax(np.abs(data.table)))
    tested = _test(estimate.value, estimate, data.alpha, scale)
    if tested.df is not None:
        tested = tested.allow_for_skewness(estimate.value, estimate.skewness, data.alpha)
    means, by_name = data.name_means[involved], (weights / sizes)[data.unit_groups[involved]]
    n, n_others = int(sizes[first]), int(sizes[others].sum())
    if tested.is_checked(data.alpha) and max(n, n_others) > _FAR_MORE * min(n, n_others):
        p = _permute_names(means, by_name, data.seed)
        if len(others) > 1:
            p = max(p, _permute_groups(data.parts.means, first, data.seed))
        tested = tested.at_least(p, estimate.value, data.alpha)
    known = tested.V is not None
    D = 0.0 if tested.V == 0.0 and abs(estimate.value) <= FLAT * scale else estimate.value
    contrast = GroupContrast(
        group=data.names[first],
        others=tuple(data.names[g] for g in others),
        effect_size=D,
        standardized=D / data.document_spread if data.document_spread > 0.0 else None,
        standard_error=math.sqrt(tested.V) if tested.V else None,
        **tested.get_fields(),
        p_adjusted=None,
        v_names=float(estimate.names.sum()) if known else None,
        v_documents=estimate.documents if known else None,
        v_residual=float(estimate.residuals.sum()) if known else None,
        n_names=n,
        n_others=n_others,
        n_documents=estimate.n_documents,
        by_document=estimate.by_document,
        alpha=data.alpha,
        reason=tested.reason,
        _means=means,
        _weights=by_name,
        _seed=data.seed,
    )
    if tested.V != 0.0 or D == 0.0:
        return contrast
    signs = 0.5 ** (estimate.n_documents - 1)
    reason = "all names of a group and all documents agree; p is the larger one of two exact tests, by name and by sign"
    return replace(contrast, p_value=max(contrast.fixed_documents_p_value, signs), reason=reason)


def _permute_names(means: Floats, weights: Floats, seed: int) -> float:
    """Return the two-sided p-value of the weighted sum of names' means if names are exchangeable among groups."""
    inside = weights > 0.0
    if np.ptp(weights[~inside]) <= FLAT:
        return permutation_test(means[inside], means[~inside], alternative="two-sided").value
    centred = means - means.mean()
    rng = np.random.default_rng(seed)
    permuted = rng.permuted(np.tile(centred, (N_PERMUTATIONS, 1)), axis=1) @ weights
    least = abs(float(centred @ weights)) - FLAT * float(np.abs(centred).max())
    return float(1 + np.count_nonzero(np.abs(permuted) >= least)) / (1 + N_PERMUTATIONS)


def _permute_groups(means: Floats, group: int, seed: int) -> float:
    """Return the two-sided p-value of a group against the others if groups are exchangeable in every document."""
    differences = (means - means.mean(axis=0)) * len(means) / (len(means) - 1)
    least = abs(float(differences[group].mean())) - FLAT * float(np.abs(differences).max())
    rng, columns = np.random.default_rng(seed), np.arange(means.shape[1])
    reached = done = 0
    while done < N_PERMUTATIONS:
        size = min(max(_DRAWS // len(columns), 1), N_PERMUTATIONS - done)
        drawn = differences[rng.integers(len(means), size=(size, len(columns))), columns].mean(axis=1)
        reached += int(np.count_nonzero(np.abs(drawn) >= least))
        done += size
    return (1 + reached) / (1 + N_PERMUTATIONS)


def _adjust(p_values: Sequence[float | None]) -> list[float | None]:
    """Apply Holm's correction. Two groups have one difference, which either sign tests."""
    if len(p_values) == 2:
        return list(p_values)
    adjusted = holm([math.nan if p is None else p for p in p_values]).adjusted
    return [None if p is None else float(q) for p, q in zip(p_values, adjusted, strict=True)]


def _split_names(data: _GroupTable, rng: np.random.Generator) -> Placebo:
    """Split the names of every group at random into halves, and take the difference of their means."""
    differences = []
    for g in range(len(data.names)):
        means = data.name_means[data.unit_groups == g]
        drawn = rng.permuted(np.tile(means, (N_SPLITS, 1)), axis=1)
        half = len(means) // 2
        differences.append(drawn[:, :half].mean(axis=1) - drawn[:, half:].mean(axis=1))
    by_group = {name: _central_range(drawn) for name, drawn in zip(data.names, differences, strict=True)}
    return Placebo(*_central_range(np.concatenate(differences)), by_group, N_SPLITS)


def _central_range(values: Floats) -> tuple[float, float]:
    low, high = np.quantile(values, (0.025, 0.975)).tolist()
    return low, high


def _compare_rates(
    data: _GroupTable, table: Floats, top: float | None, thresholds: tuple[float, ...], rng: np.random.Generator
) -> Selection:
    """Compare selection rates of groups; `table` (units, documents) holds the share of selected pairs."""
    n_groups = len(data.names)
    means = _average_groups(table, data.unit_groups)
    shared = ~np.isnan(means).any(axis=0)
    rates = means[:, shared].mean(axis=1)
    highest = int(np.round(rates, 12).argmax())
    rate_data = _RateTable(table[:, shared], data.names, data.unit_groups, data.alpha, data.seed, rates)
    against_others = [_compare_rate(rate_data, weights, data.alpha) for weights in _weigh_against_others(n_groups)]
    adjusted = _adjust([tested.p_value for _, tested in against_others])
    groups = {}
    for g, (name, (ratio, tested)) in enumerate(zip(data.names, against_others, strict=True)):
        impact_ratio, impact = (1.0 if rates[g] > 0.0 else None), _Tested("the group with the highest rate")
        if g != highest:
            weights = np.eye(n_groups)[g] - np.eye(n_groups)[highest]
            impact_ratio, impact = _compare_rate(rate_data, weights, data.alpha / math.comb(n_groups, 2))
        groups[name] = GroupSelection(
            group=name,
            rate=float(rates[g]),
            ratio=ratio,
            **tested.get_fields(),
            p_adjusted=adjusted[g],
            impact_ratio=impact_ratio,
            impact_ci_low=impact.ci_low,
            impact_ci_high=impact.ci_high,
            reason=tested.reason,
            impact_reason=impact.reason,
        )
    return Selection(top, thresholds, data.names[highest], groups, _simulate_fair(rate_data, rng), rate_data)


def _compare_rate(data: _RateTable, weights: Floats, alpha: float) -> tuple[float | None, _Tested]:
    """Return the ratio of a group's rate to that of the groups with negative weights, and its test and interval."""
    scale = data.reference(weights)
    rate, reference = float(scale[weights.argmax()]), float(scale[weights.argmin()])
    if not rate > 0.0 or not reference > 0.0:
        return _bound_ratio(data, rate, reference, weights, alpha)
    log_ratio = math.log(rate / reference)
    estimate = data.estimate(weights / scale)
    tested = _test(log_ratio, estimate, alpha, 1.0)
    if tested.is_checked(alpha):
        tested = tested.at_least(data.exact_p_value(weights), log_ratio)
    return rate / reference, tested.exponentiate()


def combine_selections(
    old: Selection, new: Selection, group: str, weight: float = -1.0, *, alpha: float = ALPHA
) -> CombinedRatios:
    """Add the log ratio of selection rates in one audit to that in another, times a weight.

    Parameters
    ----------
    old, new : Selection
        Of the same names, groups and documents. Shared effects cancel.
    group : str
        Group whose rate is divided by the mean rate of the others.
    weight : float, default -1
        Weight of the old log ratio: -1 for the change, 1 for the sum.
    alpha : float, default 0.05
        1 - alpha is the confidence of the interval.

    Returns
    -------
    CombinedRatios
    """
    before, after = old._data, new._data
    rows = before.unit_groups
    if (
        tuple(old.groups) != tuple(new.groups)
        or not np.array_equal(rows, after.unit_groups)
        or before.table.shape != after.table.shape
    ):
        raise UsageError("two audits can be compared if they have the same names, groups and documents")
    same, (n_names, n_documents) = np.array_equal(before.table, after.table), before.table.shape
    weights = _weigh_against_others(len(old.groups))[tuple(old.groups).index(group)]
    scales = [data.reference(weights) for data in (before, after)]
    if min(float(scale.min()) for scale in scales) <= 0.0:
        return CombinedRatios(None, None, None, None, same, n_names, n_documents, "nothing is selected in a group")
    ratios = [math.log(scale[weights.argmax()] / scale[weights.argmin()]) for scale in scales]
    value = ratios[1] + weight * ratios[0]
    table = after.table / scales[1][rows, None] + weight * before.table / scales[0][rows, None]
    tested = _test(value, replace(before, table=table).estimate(weights), alpha, 1.0)
    if tested.is_checked(alpha):
        relative = after.table / after.rates.mean() + weight * before.table / before.rates.mean()
        tested = tested.at_least(replace(before, table=relative).exact_p_value(weights), value)
    return CombinedRatios(
        value, tested.p_value, tested.ci_low, tested.ci_high, same, n_names, n_documents, tested.reason
    )


def _bound_ratio(
    data: _RateTable, rate: float, reference: float, weights: Floats, alpha: float
) -> tuple[float | None, _Tested]:
    """Bound a ratio with a rate of 0, by name: a name that is selected in some documents is part of a success.

    The p-value is Fisher's, and the bound that of Clopper and Pearson, with at most as many names as documents.
    """
    if not max(rate, reference) > 0.0:
        return None, _Tested("nothing is selected in these groups")
    by_group, m = weights**2 / data.parts.sizes, data.table.shape[1]
    n, n_others = (min(int(1.0 / float(by_group[side].sum()) + FLAT), m) for side in (weights > 0.0, weights < 0.0))
    p = fisher_exact(int(rate * n), n, int(reference * n_others), n_others)[0]
    if rate > 0.0:
        low = rate / share_bounds(0, n_others, confidence=1.0 - alpha)[1]
        reason = "nothing is selected in the other groups; the lower end and p are exact by name"
        return None, _Tested(reason, p_value=p, ci_low=low if p <= alpha else min(low, 1.0))
    high = share_bounds(0, n, confidence=1.0 - alpha)[1] / reference
    reason = "nothing is selected in this group; the upper end and p are exact by name"
    return 0.0, _Tested(reason, p_value=p, ci_low=0.0, ci_high=high if p <= alpha else max(high, 1.0))


def _simulate_fair(data: _RateTable, rng: np.random.Generator) -> float | None:
    """Return the probability that some impact ratio is below .8 if all groups have the same expected rate."""
    components, rate = data.parts.components, float(data.rates.mean())
    enough = np.count_nonzero(~np.isnan(data.table)) >= 2 * len(data.rates) * data.table.shape[1]
    if components is None or not enough:
        return None
    if not 0.0 < rate < 1.0:
        return 0.0
    sizes, m = data.parts.sizes, data.table.shape[1]
    names = min(max(components.names, 0.0), (1.0 - _AGREEMENT) * rate * (1.0 - rate))
    n_beta = rate * (1.0 - rate) / names - 1.0 if names > 0.0 else math.inf
    rates = np.empty((_N_FAIR, len(sizes)))
    for g, n in enumerate(sizes.tolist()):
        by_name = rng.beta(rate * n_beta, (1.0 - rate) * n_beta, (_N_FAIR, n)).mean(axis=1) if names > 0.0 else rate
        noise = components.documents / m + components.residual / (n * m)
        rates[:, g] = by_name + math.sqrt(max(noise, 0.0)) * rng.normal(size=_N_FAIR)
    return float((np.maximum(rates.min(axis=1), 0.0) < FOUR_FIFTHS * rates.max(axis=1)).mean())


def _validate_scores(scores: ArrayLike, n_names: int) -> Floats:
    """Return scores (names, documents, queries); a pair without a score for some query counts as missing."""
    try:
        table = np.array(scores, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UsageError(f"scores must be numbers, NaN where a name was not put into a document: {error}") from None
    if table.ndim == 2:
        table = table[:, :, None]
    if table.ndim != 3 or not table.size:
        raise UsageError(f"scores must be an array of names x documents (x queries), got shape {table.shape}")
    if len(table) != n_names:
        raise UsageError(f"expected one group per name (row of scores), got {n_names} groups and {len(table)} names")
    if np.isinf(table).any():
        name, document, _ = np.argwhere(np.isinf(table))[0]
        raise UsageError(f"scores must be finite; that of name {name} in document {document} (from 0) is infinite")
    table[np.isnan(table).any(axis=2)] = np.nan
    for axis, what in ((1, "name"), (0, "document")):
        empty = np.flatnonzero(np.isnan(table[:, :, 0]).all(axis=axis))
        if len(empty):
            raise UsageError(f"{what} {empty[0]} (from 0) has no score; leave it out")
    return table


def _validate_decisions(selected: ArrayLike, table: Floats) -> Floats:
    decisions = np.array(selected, dtype=np.float64)
    if decisions.ndim == 2:
        decisions = decisions[:, :, None]
    if decisions.shape[:2] != table.shape[:2] or decisions.ndim != 3:
        raise UsageError(f"selected must have the shape of scores, {table.shape[:2]}, got {decisions.shape}")
    decisions[np.isnan(table[:, :, 0])] = np.nan
    present = decisions[~np.isnan(table[:, :, 0])]
    if not ((present >= 0.0) & (present <= 1.0)).all():
        raise UsageError("selected must be 1 (selected) or 0 for every pair that has a score")
    return decisions


def _select_top(table: Floats, share: float) -> tuple[Floats, tuple[float, ...]]:
    """Mark the pairs that are among the top share of their query, ties included, and return the thresholds."""
    if not 0.0 < share < 1.0:
        raise UsageError(f"a top share must lie between 0 and 1, such as 0.2 for the top 20%; got {share!r}")
    thresholds = []
    for query in range(table.shape[2]):
        values = table[:, :, query]
        values = values[~np.isnan(values)]
        count = math.ceil(round(share * values.size, 6))  # .1 of 30 pairs is 3.0000000000000004
        thresholds.append(float(np.partition(values, values.size - count)[values.size - count]))
    return np.where(np.isnan(table), np.nan, table >= np.array(thresholds)), tuple(thresholds)


def _number_units(units: Sequence[Hashable] | None, n_names: int) -> tuple[tuple[Hashable, ...], Indices]:
    """Return labels of units in the order of their first name, and the unit of every name."""
    given = range(n_names) if units is None else units
    if len(given) != n_names:
        raise UsageError(f"expected one unit per name, got {len(given)} units and {n_names} names")
    numbers = {unit: number for number, unit in enumerate(dict.fromkeys(given))}
    return tuple(numbers), np.array([numbers[unit] for unit in given], dtype=np.intp)


def _number_groups(
    groups: Sequence[str], units: tuple[Hashable, ...], unit_index: Indices
) -> tuple[tuple[str, ...], Indices]:
    """Return groups in the order of their first name, and the group of every unit."""
    names = tuple(dict.fromkeys(groups))
    if len(names) < 2:
        raise UsageError(f"an audit compares at least two groups of names, got {', '.join(map(repr, names))}")
    unit_groups = np.full(len(units), -1, dtype=np.intp)
    for group, unit in zip(groups, unit_index.tolist(), strict=True):
        number = names.index(group)
        if unit_groups[unit] not in (-1, number):
            raise UsageError(
                f"unit {units[unit]!r} has names of two groups, {names[unit_groups[unit]]!r} and {group!r}; "
                "names that share a unit must belong to one group"
            )
        unit_groups[unit] = number
    for name, size in zip(names, np.bincount(unit_groups).tolist(), strict=True):
        if size < 2:
            raise UsageError(
                f"group {name!r} has a single name (or unit), so the effects of name and group cannot be separated"
                "; give it at least 2 names, better 20, or leave it out"
            )
    return names, unit_groups


def _average_units(table: Floats, unit_index: Indices) -> Floats:
    """Average over queries, and over the names of every unit: (units, documents)."""
    by_name = np.asarray(table.mean(axis=2))
    if len(by_name) == unit_index.max() + 1:
        return by_name
    return np.stack([nan_mean(by_name[unit_index == unit], axis=0) for unit in range(unit_index.max() + 1)])


def _undo_competition(table: Floats, unit_groups: Indices, compared: int) -> Floats:
    """Rescale deviations from the means of groups, as if candidates had not competed for a choice.

    Parameters
    ----------
    table : (units, documents) float
        Shares of choices; NaN where missing.
    unit_groups : (units,) int
    compared : int
        Candidates per choice; with 1, the table does not change.
    """
    if compared == 1:
        return table
    n_groups, rescaled = int(unit_groups.max()) + 1, table.copy()
    k = max(compared, n_groups)  # if candidates are of different groups
    factor = k / (k - 1)
    for g in range(n_groups):
        cells = table[unit_groups == g]
        means = nan_mean(cells, axis=0)
        by_name = nan_mean((cells - means).T, axis=0)
        rest = cells - means - by_name[:, None]
        n, m = len(cells), np.count_nonzero(~np.isnan(cells)) / len(cells)
        observed = float(by_name @ by_name) / (n - 1)
        noise = float(np.nansum(rest**2)) / ((n - 1) * (m - 1) * m) if m > 1.0 else 0.0
        names = max(factor * (factor * observed - (factor - 1.0) * noise), factor * noise)
        stretch = math.sqrt(names / observed) if observed > 0.0 else 1.0
        rescaled[unit_groups == g] = means + stretch * by_name[:, None] + math.sqrt(factor) * rest
    return rescaled


def _look_up(group: str, values: Mapping[str, Value]) -> Value:
    if group not in values:
        raise UnknownNameError("group", group, tuple(values), f"(groups: {', '.join(values)})")
    return values[group]
