"""Name audits of fair and unfair systems, with new names and documents for every audit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from math import inf, nan
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from biassay.stats.name_audit import AuditComponents, AuditDesign, NameAudit, name_audit
from biassay.studies.audit.compare import PairedAudits

from .claim import Claim, Coverage, Experiment, Level, Line, Power, Printed, Share, up_to

__all__ = ["CLAIMS", "lines"]

Tails = Literal["normal", "t3", "skewed", "lognormal"]
_TAILS = {"normal": "", "t3": ", t3", "skewed": ", exponential", "lognormal": ", lognormal"}
_TOPS = (0.1, 0.2, 0.5)
_ALIKE = "Names and documents are samples of their kinds."
_TRUTH = "No difference on average over draws of names and documents."
_UNIT = "name and document"
_LEVEL = up_to(0.065, 0.02)
_COVERED = (0.93, 1.0)

CLAIMS = (
    Claim(
        "audit p",
        "audit",
        "p of a group's difference",
        ("audit.results.p_value", "audit.pairs.p_value"),
        "The group's scores differ from those of the other groups. The result generalizes to other names "
        "and documents.",
        _TRUTH,
        _UNIT,
        _ALIKE,
        "Conservative if one side has more than twice as many names, as for one of four or more groups. Too small if "
        "a group differs in a few documents only, or by a few names while those of other groups hardly differ.",
    ),
    Claim(
        "audit interval",
        "audit",
        "interval of a group's difference",
        (
            "audit.results.ci_low",
            "audit.results.ci_high",
            "audit.results.standardized_ci_low",
            "audit.results.standardized_ci_high",
            "audit.pairs.ci_low",
            "audit.pairs.ci_high",
            "audit.queries.ci_low",
            "audit.queries.ci_high",
        ),
        "The range of D over other names and documents.",
        "D of the system.",
        _UNIT,
        _ALIKE,
        "Conservative if one side has more than twice as many names.",
    ),
    Claim(
        "audit p, these documents",
        "audit",
        "p, these documents only",
        ("audit.results.fixed_documents_p_value", "audit.pairs.fixed_documents_p_value"),
        "Names of the group differ from the others in these documents. Exact, or by 9,999 permutations.",
        "Names are exchangeable among groups.",
        "name",
        "Only names differ between groups.",
        "Rejects far too often if the difference between groups varies by document: it says nothing about "
        "other documents.",
    ),
    Claim(
        "audit Holm",
        "audit",
        "p of differences, Holm",
        ("audit.results.p_adjusted", "audit.decisions.p_adjusted"),
        "With 95% probability, no group is falsely significant.",
        _TRUTH,
        _UNIT,
        _ALIKE,
    ),
    Claim(
        "audit ratio p",
        "audit",
        "p of a ratio of selection rates",
        ("audit.selection.p_value",),
        "The group's selection rate differs from that of the others. The result generalizes to other "
        "names and documents.",
        "The same expected rate in all groups.",
        _UNIT,
        _ALIKE,
        "Conservative if few names or few documents decide who is selected.",
    ),
    Claim(
        "audit ratio interval",
        "audit",
        "interval of a ratio of selection rates",
        ("audit.selection.ci_low", "audit.selection.ci_high"),
        "The range of the ratio of expected rates over other names and documents.",
        "Ratio of the expected rates.",
        _UNIT,
        _ALIKE,
        "Conservative.",
    ),
    Claim(
        "audit ratio Holm",
        "audit",
        "p of ratios, Holm",
        ("audit.selection.p_adjusted",),
        "With 95% probability, no group is falsely significant.",
        "The same expected rate in all groups.",
        _UNIT,
        _ALIKE,
    ),
    Claim(
        "audit impact ratio",
        "audit",
        "intervals of impact ratios",
        ("audit.selection.impact_ci_low", "audit.selection.impact_ci_high"),
        "With 95% probability, no interval of an impact ratio excludes 1 in a fair audit.",
        "The same expected rate in all groups.",
        _UNIT,
        _ALIKE,
    ),
    Claim(
        "audit chance below .8",
        "audit",
        "probability of an impact ratio below .8",
        (),
        "The probability that an audit of this size shows an impact ratio below .8 for a fair system.",
        "The same expected rate in all groups.",
        _UNIT,
        "Variance components as estimated.",
        "Correct on average over audits; in a single small audit it is as uncertain as its variance "
        "components. Up to .07 too low if few documents decide who is selected.",
    ),
    Claim(
        "audit ratio change",
        "audit",
        "`compare`: change of a ratio of selection rates",
        (),
        "The range of the change of the ratio between two systems, over other names and documents; p "
        "tests whether it changed.",
        "The same ratio of expected rates in both systems.",
        _UNIT,
        _ALIKE,
        "Conservative if few names or few documents decide who is selected.",
    ),
    Claim(
        "audit power",
        "audit",
        "power, before and after (`power_80`)",
        (),
        "The probability that p is at most .05 for a given D.",
        "D of the system.",
        _UNIT,
        "Variance components are known.",
    ),
)


@dataclass(frozen=True)
class _World:
    """Standard deviations of scores, and numbers of names per group, documents and groups."""

    n: int
    m: int
    groups: int = 2
    names: float = 0.2
    documents: float = 1.0
    interaction: float = 0.1
    residual: float = 0.3
    tails: Tails = "normal"
    D: float = 0.0
    cells: Literal["all", "balanced", "random", "uneven"] = "all"
    copies: int = 1
    others: int = 0  # names in each other group; 0: as many as in the first
    by_document: Tails | None = None  # tails of groups by document, if not those of the rest
    alone: bool = False  # only the first group differs by document
    others_spread: float = 1.0  # standard deviation of names of the other groups, relative to the first

    def __str__(self) -> str:
        sizes = f"{self.n} names against {self.others}" if self.others else f"{self.groups} groups of {self.n} names"
        about = f"{sizes}, {self.m} documents; names {self.names:g}, groups by document {self.interaction:g}"
        tails = _TAILS[self.by_document or self.tails] + (", of one group" if self.alone else "")
        cells = {
            "all": "",
            "balanced": "; 30% of cells, balanced",
            "random": "; 30% of cells, at random",
            "uneven": "; half of the cells, the first group mostly in documents with low scores",
        }[self.cells]
        copies = f"; 1 to {self.copies} variants of every name" if self.copies > 1 else ""
        spread = f"; names of the others {self.names * self.others_spread:g}" if self.others_spread != 1.0 else ""
        return f"{about}{tails}{cells}{copies}{spread}{f'; D {self.D:g}' if self.D else ''}"

    @property
    def components(self) -> AuditComponents:
        return AuditComponents(self.names**2, self.interaction**2, self.residual**2)


def _made(rng: np.random.Generator, tails: Tails, *shape: int) -> NDArray[np.float64]:
    """Draw numbers of mean 0 and variance 1."""
    if tails == "t3":
        return rng.standard_t(3, size=shape) / np.sqrt(3.0)
    if tails == "lognormal":
        return (rng.lognormal(size=shape) - np.exp(0.5)) / np.sqrt((np.e - 1.0) * np.e)
    return rng.exponential(size=shape) - 1.0 if tails == "skewed" else rng.normal(size=shape)


def _scores(rng: np.random.Generator, world: _World) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    sizes = [world.n] + [world.others or world.n] * (world.groups - 1)
    groups = np.repeat(np.arange(world.groups), sizes)
    make = partial(_made, rng, world.tails)
    effects = world.names * make(len(groups), 1) * np.where(groups == 0, 1.0, world.others_spread)[:, None]
    scores = effects + world.documents * make(1, world.m)
    own = _made(rng, world.by_document or world.tails, world.groups, world.m)
    own[1:] *= not world.alone
    scores = scores + world.interaction * own[groups]
    scores = scores + world.residual * make(len(groups), world.m) + world.D * (groups == 0)[:, None]
    if world.cells == "balanced":  # every document gets equally many names of each group, in turn
        present = np.zeros(scores.shape, dtype=bool)
        for g in range(world.groups):
            rows = np.flatnonzero(groups == g)
            per_document = max(1, round(0.3 * len(rows)))
            order = np.concatenate([rng.permutation(rows) for _ in range(world.m * per_document // len(rows) + 1)])
            for d in range(world.m):
                present[order[d * per_document : (d + 1) * per_document], d] = True
        scores[~present] = nan
    if world.cells == "random":
        absent = rng.random(scores.shape) > 0.3
        absent[np.arange(len(groups)), rng.integers(world.m, size=len(groups))] = False
        scores[absent] = nan
    if world.cells == "uneven":
        low = scores.mean(axis=0) < np.median(scores.mean(axis=0))
        absent = rng.random(scores.shape) > np.where(low == (groups == 0)[:, None], 0.8, 0.2)
        for g in range(world.groups):  # every document has a name of every group
            absent[rng.choice(np.flatnonzero(groups == g), world.m), np.arange(world.m)] = False
        scores[absent] = nan
    return scores, groups


def _audit(rng: np.random.Generator, world: _World, tops: tuple[float, ...] = (), clustered: bool = True) -> NameAudit:
    scores, groups = _scores(rng, world)
    units = np.arange(len(groups))
    if world.copies > 1:  # variants differ from their name by a third of its standard deviation
        repeats = rng.integers(1, world.copies + 1, len(groups))
        scores, groups, units = (np.repeat(values, repeats, axis=0) for values in (scores, groups, units))
        scores = scores + world.names / 3.0 * _made(rng, world.tails, len(groups), 1)
    labels = [f"group {g}" for g in groups]
    return name_audit(scores, labels, top=tops, units=units.tolist() if clustered else None, rng=rng)


def _changed(rng: np.random.Generator, world: _World) -> Mapping[str, Any]:
    """Compare the selection ratios of two equally unfair systems that share half of their variance."""
    shared, groups = _scores(rng, world)
    systems = [((shared + _scores(rng, world)[0]) / 2.0)[:, :, None] for _ in range(2)]
    labels, numbers = [f"group {g}" for g in groups], {}
    units = [f"name {index}" for index in range(len(labels))]
    for top in _TOPS:
        pair = PairedAudits(systems[0], systems[1], labels, units, [top])
        change = pair.combine_log_ratios("group 0", -1.0, 0.95)
        numbers |= {f"p {top:g}": _number(change.p_value)}
        numbers |= {f"low {top:g}": math.exp(_number(change.low)), f"high {top:g}": math.exp(_number(change.high))}
    return numbers


def _number(value: float | None) -> float:
    return nan if value is None else value


def _compared(rng: np.random.Generator, world: _World, by_name: bool, clustered: bool) -> Mapping[str, Any]:
    audit = _audit(rng, world, clustered=clustered)
    first = audit["group 0"]
    adjusted = [_number(contrast.p_adjusted) for contrast in audit.contrasts.values()]
    return {
        "p": _number(first.p_value),
        "low": _number(first.ci_low) - world.D,
        "high": _number(first.ci_high) - world.D,
        "pair p": _number(audit.pair("group 1", "group 0").p_value),
        "by name": first.fixed_documents_p_value if by_name else nan,
        "any": bool((np.array(adjusted) <= 0.05).any()),
    }


def _selected(rng: np.random.Generator, world: _World) -> Mapping[str, Any]:
    """Compute p-values and intervals of selection ratios for the top 10%, 20% and 50%."""
    audit, numbers = _audit(rng, world, _TOPS), {}
    for top in _TOPS:
        selection, truth = audit.selection(top), _true_ratio(world, top)
        groups = list(selection.groups.values())
        first = groups[0]
        no_interval = first.ci_low is None and first.ci_high is None
        ends = [(_number(g.impact_ci_low), inf if g.impact_ci_high is None else g.impact_ci_high) for g in groups]
        numbers |= {
            f"p {top:g}": _number(first.p_value),
            f"low {top:g}": nan if no_interval else (first.ci_low or 0.0) / truth,
            f"high {top:g}": nan if no_interval else (inf if first.ci_high is None else first.ci_high) / truth,
            f"any {top:g}": any(_number(g.p_adjusted) <= 0.05 for g in groups),
            f"impact {top:g}": any(low > 1.0 or high < 1.0 for low, high in ends),
            f"below {top:g}": any((1.0 if g.impact_ratio is None else g.impact_ratio) < 0.8 for g in groups),
            f"chance {top:g}": _number(selection.chance_below_80),
        }
    return numbers


@cache
def _true_ratio(world: _World, top: float) -> float:
    """Estimate the ratio of expected rates from many audits of this size."""
    if not world.D:
        return 1.0
    rng, rates = np.random.default_rng(0), []
    for _ in range(1000):
        scores, groups = _scores(rng, world)
        count = int(np.ceil(round(top * scores.size, 6)))
        selected = scores >= np.partition(scores.ravel(), scores.size - count)[scores.size - count]
        rates.append([selected[groups == g].mean() for g in range(world.groups)])
    first, *others = np.mean(rates, axis=0)
    return float(first / np.mean(others))


def _difference(world: _World, repetitions: int = 1000, *, by_name: bool = False, clustered: bool = True) -> Experiment:
    about = f"{world}{'' if clustered else ', each as a name of its own'}"
    draw = partial(_compared, world=world, by_name=by_name, clustered=clustered)
    return Experiment(f"audit {about}", about, draw, repetitions)


def _selection(world: _World, repetitions: int = 400) -> Experiment:
    return Experiment(f"audit rates {world}", str(world), partial(_selected, world=world), repetitions)


_BY_DOCUMENT = _World(20, 12, names=0.05, interaction=0.3, residual=0.1)
_SMALL, _USUAL, _MANY = _World(5, 24), _World(20, 24), _World(5, 24, groups=8)
_NULL = (
    *(replace(_World(5, 10), tails=tails) for tails in ("normal", "t3", "skewed")),
    *(replace(_USUAL, tails=tails) for tails in ("normal", "t3", "skewed")),
    _World(50, 10),
    _World(50, 10, tails="t3"),
    _World(5, 1000),
    _World(5, 50, names=1.0),
    _World(5, 50, names=1.0, tails="skewed"),
    _World(20, 10, names=0.05, interaction=0.3),
    _World(10, 12, names=0.0, interaction=0.0),
    *(replace(_MANY, tails=tails) for tails in ("normal", "t3", "skewed")),
    _World(20, 24, groups=8),
    _World(5, 24, cells="balanced"),
    _World(20, 24, cells="balanced"),
    _World(5, 24, groups=8, cells="balanced"),
    _World(20, 24, cells="random"),
    _World(20, 24, cells="uneven"),
    _World(8, 24, copies=4),
    _World(5, 24, others=30, names=1.0),
    _World(5, 24, others=30, names=1.0, tails="skewed"),
    _World(2, 24),
    _World(2, 24, groups=8),
    _World(20, 4, interaction=0.3),
    _World(10, 24, groups=4, tails="skewed"),
    _World(5, 24, groups=3, tails="skewed"),
    replace(_BY_DOCUMENT, by_document="skewed", alone=True),
    replace(_BY_DOCUMENT, m=24, by_document="skewed", alone=True),
    replace(_BY_DOCUMENT, groups=8, by_document="lognormal"),
)


def lines() -> list[Line]:
    """List all rows of audits."""
    p, interval, fixed, holm, ratio, ratio_interval, ratio_holm, impact, chance, change, power = (
        claim.name for claim in CLAIMS
    )
    found = []
    for world in _NULL:
        drawn = _difference(world, 600 if world.groups > 2 and world.cells != "all" else 1000)
        found += [Line(p, drawn, Level("p", _LEVEL)), Line(interval, drawn, Coverage("low", "high", 0.0, _COVERED))]
        if world.groups > 2:
            found += [Line(holm, drawn, Share("any", 0.05)), Line(p, drawn, Level("pair p", _LEVEL), "a pair")]
    for m in (8, 24):
        drawn = _difference(replace(_BY_DOCUMENT, m=m, by_document="lognormal", alone=True))
        found.append(Line(p, drawn, Level("p"), "a known limit: a few documents decide"))
    for n in (5, 20):
        for skewed in (_World(n, 24, names=0.3, tails="skewed"), _World(n, 24, names=0.3, tails="lognormal")):
            drawn = _difference(replace(skewed, others_spread=0.2))
            found.append(Line(p, drawn, Level("p"), "a known limit: names of one group are skewed"))
    few = _difference(_World(3, 24, others=30, names=0.3, D=0.3))
    found.append(Line(interval, few, Coverage("low", "high", 0.0, None), "a known limit: three names"))
    apart = _difference(_World(8, 24, copies=4), clustered=False)
    found.append(Line(p, apart, Level("p"), "not its null: variants are not independent"))
    for world, own in ((_World(8, 24, interaction=0.0), True), (_World(8, 10, names=0.05, interaction=0.3), False)):
        drawn = _difference(world, 400, by_name=True)
        limits, note = (up_to(0.06), "") if own else (None, "not its null: documents are redrawn")
        found.append(Line(fixed, drawn, Level("by name", limits), note))
    for world in (replace(_USUAL, D=0.2), _World(5, 24, groups=8, D=0.3), _World(20, 24, D=0.2, tails="skewed")):
        drawn = _difference(world)
        found.append(Line(interval, drawn, Coverage("low", "high", 0.0, _COVERED)))
    for world in (
        replace(_USUAL, D=0.2),
        replace(_SMALL, D=0.3),
        _World(10, 100, groups=4, D=0.15),
        _World(5, 24, groups=8, D=0.3),
        _World(20, 12, names=0.05, interaction=0.3, D=0.3),
    ):
        predicted = AuditDesign(world.components, world.n, world.m, world.groups).power(world.D)
        found.append(Line(power, _difference(world), Power("p", predicted)))
    fair = (
        _SMALL,
        _USUAL,
        _World(50, 10),
        _World(20, 24, tails="t3"),
        _World(5, 50, names=1.0),
        _World(20, 24, names=1.0, documents=0.1, tails="skewed"),
        _World(20, 10, names=0.05, interaction=0.3),
        _World(10, 12, names=0.0, interaction=0.0),
        _MANY,
        _World(20, 24, groups=8),
        _World(20, 24, cells="balanced"),
        _World(20, 24, cells="uneven"),
    )
    for world in fair:
        drawn, few_documents = _selection(world, 200 if world.groups > 2 else 400), world.interaction > 0.1
        for top in _TOPS:
            note = f"top {top:.0%}"
            found += [
                Line(ratio, drawn, Level(f"p {top:g}", _LEVEL), note),
                Line(ratio_interval, drawn, Coverage(f"low {top:g}", f"high {top:g}", 1.0, _COVERED), note),
                Line(impact, drawn, Share(f"impact {top:g}", 0.05), note),
                Line(chance, drawn, Printed(f"below {top:g}", f"chance {top:g}", 0.1 if few_documents else 0.05), note),
            ]
            if world.groups > 2:
                found.append(Line(ratio_holm, drawn, Share(f"any {top:g}", 0.05), note))
    for world in (
        _USUAL,
        replace(_USUAL, D=-0.3),
        _World(20, 10, names=0.05, interaction=0.3),
        replace(_MANY, D=-0.2),
        _World(5, 24, names=2.0, documents=0.3),
        replace(_BY_DOCUMENT, m=6, interaction=0.5),
    ):
        drawn = Experiment(f"audit change {world}", f"twice: {world}", partial(_changed, world=world), 300)
        for top in _TOPS:
            found += [
                Line(change, drawn, Coverage(f"low {top:g}", f"high {top:g}", 1.0, _COVERED), f"top {top:.0%}"),
            ]
    for world in (replace(_USUAL, D=-0.3), _World(10, 24, groups=4, D=-0.3)):
        drawn = _selection(world, 1000)
        for top in _TOPS:
            limits = Coverage(f"low {top:g}", f"high {top:g}", 1.0, _COVERED)
            found.append(Line(ratio_interval, drawn, limits, f"top {top:.0%}"))
    return found
