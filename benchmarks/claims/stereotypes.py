"""Stereotypes: agreement of models with people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

import biassay
from biassay.stats.alignment import alignment_intervals, choose_templates, permute_groups
from biassay.stats.kendall import tau_difference

from .claim import INTERVAL, Claim, Coverage, Experiment, Level, Line, up_to
from .worlds import Floats, Tails, made

__all__ = ["CLAIMS", "lines"]

GROUPS, PAIRS, ANNOTATORS, DRAWS = 21, 8, 20, 300
_ALIGNMENTS = "stereotypes.alignments"
_SAMPLE = "Domains of groups, and annotators, are a sample of their kind."
REAL = (5, 2, 5, 4, 2, 3)
"""Groups per domain in the released judgements, without those of the pilot."""

CLAIMS = (
    Claim(
        "shuffled p",
        "stereotypes",
        "p, shuffled",
        (f"{_ALIGNMENTS}.p_value",),
        "The model's ratings match groups beyond what all groups share.",
        "Ratings could belong to any domain, and within a domain to any group.",
        "domain, and group within it",
        "Domains are exchangeable, and so are groups within a domain. Exact if domains have the same size.",
    ),
    Claim(
        "cell p",
        "stereotypes",
        "p of tau",
        (f"{_ALIGNMENTS}.cells_p_value", f"{_ALIGNMENTS}.with_pilot_p_value", "stereotypes.group_alignments.p_value"),
        "The paper's p-value: tau is not 0 if cells are independent.",
        "Cells of the model and of people are unrelated (for one group: pairs).",
        "cell",
        "Cells are independent, although those of a group and of a pair are not.",
        "Rejects far too often if the model reflects only what all groups share, or if templates were selected.",
    ),
    Claim(
        "tau, annotators",
        "stereotypes",
        "95% of tau and P@3, people",
        (
            f"{_ALIGNMENTS}.annotators_ci_low",
            f"{_ALIGNMENTS}.annotators_ci_high",
            f"{_ALIGNMENTS}.precision_annotators_ci_low",
            f"{_ALIGNMENTS}.precision_annotators_ci_high",
        ),
        "The range of tau (P@3) over other annotators, for these groups.",
        "Expected tau and P@3 of these groups with this number of annotators.",
        "annotator, within a group",
        "Annotators are a sample.",
        "Slightly too narrow: the interval of tau covers 92% with 20 annotators.",
    ),
    Claim(
        "tau, groups",
        "stereotypes",
        "95% of tau and P@3, groups",
        (
            f"{_ALIGNMENTS}.groups_ci_low",
            f"{_ALIGNMENTS}.groups_ci_high",
            f"{_ALIGNMENTS}.precision_groups_ci_low",
            f"{_ALIGNMENTS}.precision_groups_ci_high",
        ),
        "The range of tau (P@3) over other groups.",
        "Expected tau and P@3 with this number of groups and annotators.",
        "domain of groups",
        _SAMPLE,
    ),
    Claim(
        "tau, both",
        "stereotypes",
        "95% of tau and P@3, both",
        (
            f"{_ALIGNMENTS}.ci_low",
            f"{_ALIGNMENTS}.ci_high",
            f"{_ALIGNMENTS}.precision_ci_low",
            f"{_ALIGNMENTS}.precision_ci_high",
        ),
        "The range of tau (P@3) over other groups and annotators.",
        "Expected tau and P@3 with this number of groups and annotators.",
        "domain of groups, and annotator",
        _SAMPLE,
        "Conservative, because annotators count twice.",
    ),
    Claim(
        "tau of a group",
        "stereotypes",
        "95% of tau of one group",
        ("stereotypes.group_alignments.ci_low", "stereotypes.group_alignments.ci_high"),
        "The range of the group's tau over other annotators.",
        "Expected tau of this group with this number of annotators.",
        "annotator",
        "Annotators are a sample.",
        "Slightly too narrow: with few pairs and few annotators, tau is less smooth than resampling assumes.",
    ),
    Claim(
        "agreement difference",
        "stereotypes",
        "`compare`: 95% of the difference of tau",
        ("stereotypes.compare.interval_low", "stereotypes.compare.interval_high"),
        "The range of the difference of two models' tau over other groups.",
        "Expected difference: 0 for models that differ only by noise.",
        "domain of groups",
        "Domains are a sample; ratings are treated as fixed.",
    ),
)


@cache
def _common() -> Floats:
    """Draw scores that all groups share, in the model and in people."""
    return np.random.default_rng(3).normal(size=PAIRS)


def _alike(rng: np.random.Generator, sizes: Sequence[int], alike: float, tails: Tails, *more: int) -> Floats:
    """Draw profiles (..., groups, pairs) of variance 1; groups of a domain share this part of it."""
    domain = np.repeat(np.arange(len(sizes)), sizes)
    shared = made(rng, tails, *more, len(sizes), PAIRS)[..., domain, :]
    return np.asarray(np.sqrt(alike) * shared + np.sqrt(1.0 - alike) * made(rng, tails, *more, len(domain), PAIRS))


def _sides(rng: np.random.Generator, groups: int, tails: Tails, link: float, models: int = 1) -> tuple[Floats, Floats]:
    """Draw scores of models (models, groups, pairs) and mean human ratings (groups, pairs)."""
    own = made(rng, tails, groups, PAIRS)
    noise = made(rng, tails, models, groups, PAIRS)
    return 0.5 * _common() + link * own + np.sqrt(1.0 - link**2) * noise, 50.0 + 15.0 * (0.5 * _common() + own)


def _rated(rng: np.random.Generator, people: Floats) -> Floats:
    return np.clip(people + 20.0 * rng.normal(size=(ANNOTATORS, *people.shape)), 0.0, 100.0)


def _shuffled(rng: np.random.Generator, tails: Tails) -> Mapping[str, Any]:
    (model,), people = _sides(rng, GROUPS, tails, 0.0)
    human = _rated(rng, people).mean(axis=0)
    found = biassay.kendall_alignment(model, human)
    p = permute_groups(model, human, n=199, rng=rng)[1]
    return {"shuffled": p, "p": found.p_value, "group p": found.group_p}


def _of_domains(rng: np.random.Generator, sizes: Sequence[int], alike: float, tails: Tails) -> Mapping[str, Any]:
    """Draw groups that are alike within a domain, in the model and in people, without agreement between both."""
    model, human = (0.5 * _common() + _alike(rng, sizes, alike, tails) for _ in range(2))
    domains = np.repeat(np.arange(len(sizes)), sizes)
    return {"shuffled": permute_groups(model, human, n=199, rng=rng, domains=domains)[1]}


def _independent(rng: np.random.Generator) -> Mapping[str, Any]:
    """Draw independent scores; with a pilot, choose two of ten templates on four groups and test on all."""
    human, templates = rng.normal(size=(GROUPS, PAIRS)), rng.normal(size=(10, GROUPS, PAIRS))
    found = biassay.kendall_alignment(templates[0], human)
    chosen = choose_templates(templates[:, :4], human[:4], [str(i) for i in range(10)])
    pilot = biassay.kendall_alignment(templates[list(chosen.indices)].mean(axis=0), human)
    return {"p": found.p_value, "group p": found.group_p, "pilot": pilot.p_value}


@cache
def _these() -> tuple[Floats, Floats]:
    return _sides(np.random.default_rng(7), GROUPS, "normal", 0.5)


def _aligned(rng: np.random.Generator, redrawn: bool, groups: int = GROUPS) -> Mapping[str, Any]:
    (model,), people = _sides(rng, groups, "normal", 0.5) if redrawn else _these()
    return _intervals(rng, model, people, None)


def _aligned_domains(rng: np.random.Generator, sizes: Sequence[int], alike: float, tails: Tails) -> Mapping[str, Any]:
    """Draw groups that are alike within a domain, with some agreement between model and people."""
    own, noise = (_alike(rng, sizes, alike, tails) for _ in range(2))
    people = 50.0 + 15.0 * (0.5 * _common() + own)
    model = 0.5 * _common() + 0.5 * own + np.sqrt(0.75) * noise
    return _intervals(rng, model, people, np.repeat(np.arange(len(sizes)), sizes))


def _intervals(rng: np.random.Generator, model: Floats, people: Floats, domains: Any) -> Mapping[str, Any]:
    ratings = _rated(rng, people)
    found = alignment_intervals(model, ratings, n=DRAWS, rng=rng, domains=domains)
    tau = biassay.kendall_alignment(model, ratings.mean(axis=0))
    numbers = {
        "tau": tau.tau,
        "precision": biassay.precision_at(model, ratings.mean(axis=0)).overall,
        "group tau": tau.group_tau,
        "group low": found.group_tau[:, 0],
        "group high": found.group_tau[:, 1],
    }
    for name in ("annotators", "groups", "both"):
        spans = getattr(found, name)
        numbers |= {f"{name} {end}": spans.tau[i] for i, end in enumerate(("low", "high"))}
        numbers |= {f"{name} P {end}": spans.precision[i] for i, end in enumerate(("low", "high"))}
    return numbers


def _compared(rng: np.random.Generator, sizes: Sequence[int], alike: float) -> Mapping[str, Any]:
    own, (one, other) = _alike(rng, sizes, alike, "normal"), _alike(rng, sizes, alike, "normal", 2)
    first, second = (0.5 * _common() + 0.5 * own + np.sqrt(0.75) * noise for noise in (one, other))
    human = _rated(rng, 50.0 + 15.0 * (0.5 * _common() + own)).mean(axis=0)
    domains = np.repeat(np.arange(len(sizes)), sizes)
    found = tau_difference(first, second, human, domains=domains)
    return {"low": found.low, "high": found.high, "difference": found.difference}


def _spans(kind: str, world: Experiment, note: str, keys: str) -> list[Line]:
    return [
        Line(kind, world, Coverage(f"{keys} low", f"{keys} high", "tau", INTERVAL), f"tau{note}"),
        Line(kind, world, Coverage(f"{keys} P low", f"{keys} P high", "precision", INTERVAL), f"P@3{note}"),
    ]


def lines() -> list[Line]:
    about = f"{GROUPS} groups, {PAIRS} pairs, {ANNOTATORS} annotators"
    knows = f"{about}; the model knows what all groups share"
    shuffled = {
        tails: Experiment(f"shuffled {tails}", f"{knows}, {tails}", partial(_shuffled, tails=tails), 600)
        for tails in ("normal", "t3")
    }
    alike = {
        f"{name} {tails} {share}": (sizes, share, tails)
        for name, sizes, share, tails in (
            ("7 domains", (3,) * 7, 0.3, "normal"),
            ("7 domains", (3,) * 7, 0.6, "t3"),
            ("6 uneven domains", REAL, 0.6, "normal"),
            ("6 uneven domains", REAL, 0.9, "normal"),
            ("6 uneven domains", REAL, 0.6, "t3"),
        )
    }
    domains = [
        Experiment(
            f"domains alike, {name}",
            f"{sum(sizes)} groups of {len(sizes)} domains ({', '.join(map(str, sizes))}), correlation {share} within, "
            f"in the model and in people, {tails}",
            partial(_of_domains, sizes=sizes, alike=share, tails=tails),
            1500,
        )
        for name, (sizes, share, tails) in alike.items()
    ]
    domains_aligned = [
        Experiment(
            f"aligned domains, {name}",
            f"{sum(sizes)} groups of {len(sizes)} domains ({', '.join(map(str, sizes))}), correlation {share} within, "
            f"in the model and in people, {tails}; all redrawn",
            partial(_aligned_domains, sizes=sizes, alike=share, tails=tails),
            1000,
        )
        for name, (sizes, share, tails) in alike.items()
    ]
    cells = Experiment("cells", f"{GROUPS} groups, {PAIRS} pairs; independent cells", _independent, 2000)
    these = Experiment("these groups", f"{about}; annotators redrawn", partial(_aligned, redrawn=False), 1000)
    others = Experiment("other groups", f"{about}; groups and annotators redrawn", partial(_aligned, redrawn=True), 400)
    few = Experiment(
        "few groups", f"8 groups, {PAIRS} pairs; all redrawn", partial(_aligned, redrawn=True, groups=8), 400
    )
    models = [
        Experiment(
            f"two models {name}",
            f"{sum(sizes)} groups of {len(sizes)} domains, correlation {share} within; two models that differ by noise",
            partial(_compared, sizes=sizes, alike=share),
            400,
        )
        for name, sizes, share in (
            ("8", (1,) * 8, 0.0),
            ("21", (1,) * 21, 0.0),
            ("7 domains", (3,) * 7, 0.6),
            ("6 uneven domains", REAL, 0.6),
        )
    ]
    return [
        *(Line("shuffled p", world, Level("shuffled", up_to(0.065))) for world in shuffled.values()),
        *(Line("shuffled p", world, Level("shuffled", up_to(0.065))) for world in domains),
        Line("cell p", cells, Level("p", up_to(0.06)), "over all cells"),
        Line("cell p", cells, Level("group p", up_to(0.06)), "of one group"),
        Line("cell p", cells, Level("pilot"), "with pilot: not its null, templates are chosen on 4 of the groups"),
        Line("cell p", shuffled["normal"], Level("p"), "over all cells: not its null, groups share a profile"),
        Line("cell p", shuffled["normal"], Level("group p"), "of one group: not its null, groups share a profile"),
        *_spans("tau, annotators", these, "", "annotators"),
        *_spans("tau, groups", others, f", {GROUPS} groups", "groups"),
        *_spans("tau, groups", few, ", 8 groups", "groups"),
        *(line for world in domains_aligned for line in _spans("tau, groups", world, ", domains alike", "groups")),
        *_spans("tau, both", others, f", {GROUPS} groups", "both"),
        *_spans("tau, both", few, ", 8 groups", "both"),
        *(line for world in domains_aligned for line in _spans("tau, both", world, ", domains alike", "both")),
        Line("tau of a group", these, Coverage("group low", "group high", "group tau", INTERVAL)),
        *(Line("agreement difference", world, Coverage("low", "high", 0.0, INTERVAL)) for world in models),
    ]
