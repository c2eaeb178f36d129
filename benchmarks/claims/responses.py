"""Audits of responses: models that differ by name but not by group, with new names, prompts and responses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import scipy.stats
from numpy.typing import NDArray

from biassay.datasets.names import AuditName
from biassay.results.outcomes import Outcome as ResultOutcome
from biassay.stats.name_audit import AuditComponents, AuditDesign, name_audit
from biassay.stats.word_use import compare_word_use
from biassay.studies.audit.inputs import AuditInputs, AuditInputsRecord
from biassay.studies.audit.measure import ResponseMeasure
from biassay.studies.audit.response_rows import UnparsedResponses
from biassay.studies.audit.responses import Observations, draw_candidates, rotate
from biassay.studies.audit.results import AuditResult
from biassay.studies.audit.settings import AuditSettings

from .claim import Claim, Coverage, Experiment, Level, Line, Power, Share, up_to

__all__ = ["CLAIMS", "lines"]

_WORDS = "Names are samples; the word is used for at least half of them, and was chosen before looking."
CLAIMS = (
    Claim(
        "word p",
        "audit",
        "p of a word that texts for a group use more often",
        ("audit.words.p_value",),
        "Texts for the group use the word more or less often. The result generalizes to other names.",
        "The same expected frequency in all groups.",
        "name",
        _WORDS,
        "The table shows the words that differ most: read the adjusted p-value there.",
    ),
    Claim(
        "word interval",
        "audit",
        "interval of a word's log-odds",
        ("audit.words.ci_low", "audit.words.ci_high"),
        "The range of the difference of log-odds over other names.",
        "The same expected frequency in all groups.",
        "name",
        _WORDS,
        "Too narrow for the words that are shown because they differ most.",
    ),
    Claim(
        "word FDR",
        "audit",
        "p of words, false discovery rate",
        ("audit.words.p_adjusted",),
        "In at most 10% of audits some word is significant although none differs.",
        "The same expected frequencies in all groups.",
        "name",
        "Names are samples.",
        "Nominally 5%: above it with four groups of ten names, because tails of few names are not normal.",
    ),
    Claim(
        "selective refusals",
        "audit",
        "p of a group's difference, if refusals are selective",
        (),
        "A difference that selective refusals could explain is called inconclusive, whatever its p-value.",
        "The same decisions about all groups, some of which are refused for one group.",
        "name and document",
        "At most 20% of responses are missing.",
    ),
)
Outcome = Literal["score", "refusal", "count", "choice"]
_LEVEL = up_to(0.065, 0.02)
_COVERED = (0.93, 1.0)


@dataclass(frozen=True)
class _World:
    """Sizes; standard deviations of names, and of groups by prompt, in units of those of responses; and D."""

    outcome: Outcome = "score"
    n: int = 20
    m: int = 8
    responses: int = 5
    groups: int = 2
    candidates: int = 1
    names: float = 0.3
    prompts: float = 0.1
    D: float = 0.0

    def __str__(self) -> str:
        each = f"{self.responses} response{'s' * (self.responses > 1)}"
        about = f"{self.groups} groups of {self.n} names, {self.m} prompts, {each}, names SD {self.names:g}"
        kinds = {
            "score": "",
            "refusal": "; 0 or 1, 10% are 1",
            "count": "; counts of words, 2 on average",
            "choice": f"; choices between {self.candidates} candidates",
        }
        return f"{about}{kinds[self.outcome]}{f'; D {self.D:g}' if self.D else ''}"


def _respond(rng: np.random.Generator, world: _World) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Return outcomes (names, prompts, responses), and the group of every name."""
    groups = np.repeat(np.arange(world.groups), world.n)
    latent = world.names * rng.normal(size=(len(groups), 1)) + rng.normal(size=(1, world.m))
    latent = latent + world.prompts * rng.normal(size=(world.groups, world.m))[groups]
    latent[groups == 0] += world.D
    if world.outcome == "choice":
        return _choose(rng, world, latent, groups), groups
    shape = (*latent.shape, world.responses)
    if world.outcome == "score":
        return latent[:, :, None] + rng.normal(size=shape), groups
    if world.outcome == "refusal":
        chance = 1.0 / (1.0 + np.exp(2.2 - latent))
        return (rng.random(shape) < chance[:, :, None]).astype(np.float64), groups
    return rng.poisson(2.0 * np.exp(0.3 * latent)[:, :, None], shape).astype(np.float64), groups


def _choose(
    rng: np.random.Generator, world: _World, latent: NDArray[np.float64], groups: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Return the share of choices of every name in every prompt."""
    chosen, shown = np.zeros(latent.shape), np.zeros(latent.shape)
    for d in range(world.m):
        for candidates in draw_candidates([str(g) for g in groups], world.candidates, rng):
            for order in rotate(candidates):
                best = int(np.argmax(latent[list(order), d] + rng.gumbel(size=world.candidates)))
                shown[list(order), d] += 1.0
                chosen[order[best], d] += 1.0
    return (chosen / shown)[:, :, None]


def _draw(rng: np.random.Generator, world: _World) -> Mapping[str, Any]:
    table, groups = _respond(rng, world)
    labels = [f"group {g}" for g in groups]
    scores = table.mean(axis=2)
    audit = name_audit(scores, labels, top=(), compared=world.candidates, rng=rng)
    first = audit["group 0"]
    usual = scipy.stats.ttest_ind(table[groups == 0].ravel(), table[groups != 0].ravel()).pvalue
    numbers = {"p": first.p_value, "usual": float(usual), "low": first.ci_low, "high": first.ci_high}
    if world.outcome == "choice":
        choices = name_audit(scores, labels, top=(), selected=scores, compared=world.candidates, rng=rng)
        numbers["ratio p"] = choices.selection()["group 0"].p_value
    return numbers


@dataclass(frozen=True)
class _Texts:
    """Names per group, words per name, and standard deviation of log frequencies between names."""

    n: int
    length: int
    varies: float
    groups: int = 2

    def __str__(self) -> str:
        return (
            f"{self.groups} groups of {self.n} names, {self.length:,} words per name, frequencies by name SD "
            f"{self.varies:g}"
        )


def _draw_words(rng: np.random.Generator, world: _Texts) -> Mapping[str, Any]:
    groups = np.repeat(np.arange(world.groups), world.n)
    frequencies = 1.0 / np.arange(1, 201)
    rates = frequencies * np.exp(world.varies * rng.normal(size=(len(groups), len(frequencies))))
    counts = np.stack([rng.multinomial(world.length, row / row.sum()) for row in rates]).astype(np.float64)
    kept = counts[:, 2 * np.count_nonzero(counts, axis=0) >= len(groups)]
    use = compare_word_use(kept, [str(g) for g in groups])
    reach = scipy.stats.t.ppf(0.975, use.df) * use.standard_error
    wide = np.full((3, len(frequencies)), np.nan)  # the same number of words in every repetition
    for row, values in zip(wide, (use.p_value[0], (use.log_odds - reach)[0], (use.log_odds + reach)[0]), strict=True):
        row[: len(values)] = values
    p, low, high = wide
    return {"p": p, "low": low, "high": high, "any": float(np.nanmin(use.p_adjusted) <= 0.05)}


@dataclass(frozen=True)
class _Refusals:
    """Fair decisions, the share of some that is refused for one group, and the candidates per prompt."""

    refused: float
    candidates: int = 1
    names: float = 0.8
    n: int = 12
    m: int = 12
    opposite: bool = False  # positive decisions about the other group are refused equally often

    def __str__(self) -> str:
        what = "comparisons that one group would win" if self.candidates > 1 else "negative decisions about one group"
        what += " and of positive decisions about the other" if self.opposite else ""
        return (
            f"2 groups of {self.n} names, {self.m} documents, 2 responses, names SD {self.names:g}; {self.refused:.0%} "
            f"of {what} are refusals"
        )


def _draw_refusals(rng: np.random.Generator, world: _Refusals) -> Mapping[str, Any]:
    groups = np.repeat(np.arange(2), world.n)
    labels = [f"group {g}" for g in groups]
    latent = world.names * rng.normal(size=(len(groups), 1)) + rng.normal(size=(1, world.m))
    rows: list[tuple[int, int, float]] = []  # name, document, value
    for d in range(world.m):
        for candidates in draw_candidates(labels, 2, rng) if world.candidates > 1 else ():
            for order in 2 * list(rotate(candidates)):
                best = order[int(np.argmax(latent[list(order), d] + rng.gumbel(size=2)))]
                is_refused = groups[best] == 1 and rng.random() < world.refused
                rows += [(i, d, np.nan if is_refused else float(i == best)) for i in order]
        for i in range(len(groups)) if world.candidates == 1 else ():
            for _ in range(2):
                yes = rng.random() < 1.0 / (1.0 + np.exp(-latent[i, d]))
                is_open = not yes if groups[i] == 0 else yes and world.opposite
                is_refused = is_open and rng.random() < world.refused
                rows.append((i, d, np.nan if is_refused else float(yes)))
    names, documents, values = np.array(rows).T
    cells = names.astype(np.intp), documents.astype(np.intp)
    zeros, shape = np.zeros(len(rows), dtype=np.intp), (*latent.shape, 1)
    observations = Observations(*cells, zeros, np.arange(len(rows)), zeros, shape)
    scores = observations.average(values)[:, :, 0]
    p_value = name_audit(scores, labels, top=(), compared=world.candidates, rng=rng)["group 0"].p_value
    people = tuple(AuditName(f"name {i}", label, None, f"name {i}") for i, label in enumerate(labels))
    inputs = AuditInputs(AuditSettings(), AuditInputsRecord(), people)
    measure = ResponseMeasure("yes", ends=(0.0, 1.0), compared=world.candidates)
    reasons = ["refused" if np.isnan(value) else "" for value in values]
    common: dict[str, Any] = {
        "model": "",
        "options": "",
        "topic": "",
        "question": "",
        "title": "",
        "status": "measured",
    }
    result = AuditResult(**common, group="group 0", outcome=ResultOutcome(p_value=p_value))
    doubt = UnparsedResponses(inputs, observations, values, measure, reasons).complete(result).doubt
    is_small = p_value is not None and p_value <= 0.05
    claimed_p = p_value if doubt is None else 1.0
    return {"p": p_value, "claimed": float(is_small and doubt is None), "claimed p": claimed_p}


_TEXTS = (_Texts(20, 5000, 0.3), _Texts(20, 500, 0.3), _Texts(8, 5000, 0.6), _Texts(10, 5000, 0.3, groups=4))


_NULL = (
    _World(),
    _World(names=0.1),
    _World(names=0.6),
    _World(responses=1),
    _World(n=8, m=8),
    _World(n=20, m=4),
    _World(groups=4, n=10),
    _World("refusal"),
    _World("refusal", names=0.6),
    _World("count"),
    _World("count", names=0.6),
)
_CHOICES = (
    _World("choice", candidates=2, m=12, names=0.5),
    _World("choice", candidates=2, m=12, names=0.0),
    _World("choice", groups=4, n=10, candidates=4, m=12, names=0.5),
    _World("choice", groups=4, n=10, candidates=2, m=12, names=0.5),
)


def lines() -> list[Line]:
    """List all rows of responses."""
    found = []
    for world in (*_NULL, *_CHOICES):
        drawn = Experiment(f"responses {world}", f"responses: {world}", partial(_draw, world=world), 500)
        found += [
            Line("audit p", drawn, Level("p", _LEVEL)),
            Line("audit interval", drawn, Coverage("low", "high", 0.0, _COVERED)),
            Line("audit p", drawn, Level("usual"), "not its null: the usual t-test over responses"),
        ]
        if world in _CHOICES:
            found.append(Line("audit ratio p", drawn, Level("ratio p", _LEVEL)))
    for world in (replace(_World(names=0.1, prompts=0.07), D=0.15), _World(names=0.3, D=0.3)):
        components = AuditComponents(world.names**2, world.prompts**2, 1.0 / world.responses)
        predicted = AuditDesign(components, world.n, world.m).power(world.D)
        drawn = Experiment(f"responses {world}", f"responses: {world}", partial(_draw, world=world), 500)
        found.append(Line("audit power", drawn, Power("p", predicted)))
    for world in (_Refusals(0.3), _Refusals(0.12), _Refusals(0.3, 2), _Refusals(0.3, 2, names=0.3)):
        drawn = Experiment(f"refusals {world}", f"refusals: {world}", partial(_draw_refusals, world=world), 400)
        found += [
            Line("selective refusals", drawn, Share("claimed", 0.05)),
            Line("selective refusals", drawn, Level("p"), "p alone"),
        ]
    for share in (0.12, 0.3):
        world = _Refusals(share, opposite=True)
        drawn = Experiment(f"refusals {world}", f"refusals: {world}", partial(_draw_refusals, world=world), 400)
        note = "a known limit: refusals equally frequent for both groups"
        found.append(Line("selective refusals", drawn, Level("claimed p"), note))
    for texts in _TEXTS:
        drawn = Experiment(f"word use {texts}", f"word use: {texts}", partial(_draw_words, world=texts), 300)
        found += [
            Line("word p", drawn, Level("p", up_to(0.07, 0.02))),
            Line("word interval", drawn, Coverage("low", "high", 0.0, (0.93, 0.99))),
            Line("word FDR", drawn, Share("any", 0.1)),
        ]
    return found
