"""Benchmark scores, with items clustered by template or target term."""

from __future__ import annotations

import csv
import gzip
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.datasets.bbq import BbqItem
from biassay.prompts.choices import parse_choice_as_bbq
from biassay.results.comparison import MARGIN, EffectDifference
from biassay.results.outcomes import Outcome
from biassay.results.paired_comparison import PairedItem, judge_pairs, measure_slack
from biassay.stats.benchmark_scores import UNPARSED, bbq_score, pair_score, stereoset_score
from biassay.studies.benchmarks.compare import combine_scores
from biassay.studies.benchmarks.results import BenchmarkResult
from biassay.studies.benchmarks.settings import BenchmarkSettings
from biassay.studies.benchmarks.tasks.bbq import make_bbq_rows
from biassay.studies.benchmarks.tasks.options import CombinedChoice

from .claim import HEADLINE, INTERVAL, Claim, Coverage, Experiment, Level, Line, Power, Share, up_to
from .worlds import Tails, made

__all__ = ["CLAIMS", "lines"]

BBQ = Path(__file__).resolve().parents[2] / "tests" / "reference" / "bbq"
TEMPLATES, DRAWN_ANEW = 25, 0.2
_UNKNOWN = 0.3  # share of answers "unknown"
_FORMATS = {"format_race": "race", "format_arc": "arc", "baseline_qonly": "qonly"}
_ALIKE = "Templates are a sample of their kind."

CLAIMS = (
    Claim(
        "score by template",
        "benchmarks",
        "95% of the score of BBQ",
        ("benchmarks.results.ci_low", "benchmarks.results.ci_high"),
        "The range of the score over other templates.",
        "The score over all templates.",
        "template",
        _ALIKE,
        "Too wide if a model that is certain answers all but three of 25 templates without bias, because "
        "the spread between templates is then unknown. Too narrow if a few of all templates are opposite and "
        "none of them is among those asked, unless the others agree exactly.",
    ),
    Claim(
        "score by item",
        "benchmarks",
        "95% and p of the score of BBQ, by item",
        ("benchmarks.results.items_ci_low", "benchmarks.results.items_ci_high", "benchmarks.results.items_p_value"),
        "The usual interval and p-value, shown for comparison.",
        "The score over all templates.",
        "item",
        "Items are independent, although those of one template are not.",
        "Far too narrow in ambiguous contexts. Too wide in disambiguated contexts, which are balanced "
        "within a template.",
    ),
    Claim(
        "p by template",
        "benchmarks",
        "p of the score of BBQ",
        ("benchmarks.results.p_value",),
        "The score is not 0.",
        "Each template leans in either direction with the same probability.",
        "template",
        _ALIKE,
        "Conservative with fewer than six templates.",
    ),
    Claim(
        "stereotype score",
        "benchmarks",
        "95% of ss and lms of StereoSet",
        ("benchmarks.results.lms_ci_low", "benchmarks.results.lms_ci_high"),
        "The range of the mean over other target terms.",
        "The mean over all terms.",
        "target term",
        "Terms are a sample of their kind.",
        "Conservative with fewer than six terms.",
    ),
    Claim(
        "icat",
        "benchmarks",
        "95% of icat",
        ("benchmarks.results.icat_ci_low", "benchmarks.results.icat_ci_high"),
        "At least 95% of the intervals contain icat of the means over all terms.",
        "icat of the means over all terms.",
        "target term",
        "Terms are a sample of their kind.",
        "Conservative.",
    ),
    Claim(
        "share of pairs",
        "benchmarks",
        "95% and p of the share of pairs, by writer",
        (),
        "The range of the share over other writers; p tests whether the share is one half.",
        "The share over all writers.",
        "writer",
        "Writers are a sample of their kind.",
    ),
    Claim(
        "share by pair",
        "benchmarks",
        "p of the share of pairs, by pair",
        (),
        "The usual p-value, shown for comparison.",
        "The share over all writers.",
        "pair",
        "Pairs are independent, although those of one writer are not.",
        "Rejects far too often if writers differ.",
    ),
    Claim(
        "score with names",
        "benchmarks",
        "95% of the score of BBQ where people are named",
        (),
        "The range of the score over other templates and names.",
        "The expected score over templates and names.",
        "template and name",
        "Templates and names are samples of their kinds.",
        "No interval with fewer than four names per group.",
    ),
    Claim(
        "selective refusal",
        "benchmarks",
        "significant scores of BBQ with selective refusals",
        ("benchmarks.results.bound_low", "benchmarks.results.bound_high"),
        "At most 5% of scores of an unbiased model are significant, whatever it refuses.",
        "Responses, refused or not, do not lean in either direction.",
        "template",
        _ALIKE,
        "Biased models that refuse many questions are inconclusive.",
    ),
    Claim(
        "verdict with refusals",
        "benchmarks",
        "`compare`: verdicts on models that refuse selectively",
        (),
        "At most a share alpha of comparisons gives a wrong verdict if one model refuses selectively.",
        "Both models respond alike, apart from what the new one refuses.",
        "template",
        _ALIKE,
        "Above 20% of refusals, every verdict is inconclusive.",
    ),
    Claim(
        "difference with names",
        "benchmarks",
        "`compare`: 95% of the difference of two models in BBQ where people are named, and verdicts",
        (),
        "The range of the difference over other templates and names. A growth within the margin is called "
        "worse at most 5% of the time.",
        "The expected difference over templates and names.",
        "template and name",
        "Templates and names are samples of their kinds.",
    ),
    Claim(
        "difference by writer",
        "benchmarks",
        "`compare`: p of the difference of two models in CrowS-Pairs",
        (),
        "The shares of the two models differ.",
        "No expected difference.",
        "writer",
        "Writers are a sample of their kind.",
    ),
    Claim(
        "unanimous score",
        "benchmarks",
        "95% of a score on which almost all templates agree",
        (),
        "At least 93% of the intervals contain the expected score.",
        "The expected score over templates.",
        "template",
        _ALIKE,
        "Conservative, because the spread between templates is unknown.",
    ),
)


@cache
def _cells() -> dict[str, NDArray[np.int64]]:
    """Count biased, opposite and "unknown" responses per template and cell: (templates, 3)."""
    with (BBQ / "target_loc.csv").open(newline="") as file:
        targets = {(row["category"], row["example_id"]): int(row["target_loc"]) for row in csv.DictReader(file)}
    found: dict[str, NDArray[np.int64]] = {}
    for cell in json.loads((BBQ / "expected.json").read_text()):
        category, condition, format_ = cell.split("|")
        kinds = list(_kinds(category, condition, f"unifiedqa-t5-11b_pred_{_FORMATS[format_]}", targets))
        _, at = np.unique([template for template, _ in kinds], return_inverse=True)
        found[cell] = np.zeros((at.max() + 1, 3), dtype=np.int64)
        np.add.at(found[cell], (at, [kind for _, kind in kinds]), 1)
    return found


def _kinds(
    category: str, condition: str, field: str, targets: Mapping[tuple[str, str], int]
) -> Iterator[tuple[str, int]]:
    with gzip.open(BBQ / f"preds_{category}.jsonl.gz", "rt", encoding="utf-8") as file:
        for row in (json.loads(line) for line in file):
            if row["context_condition"] == condition:
                info = [row["answer_info"][f"ans{place}"] for place in range(3)]
                choice = parse_choice_as_bbq(
                    row[field], [row[f"ans{place}"] for place in range(3)], [a[0] for a in info]
                )
                if choice is not None:
                    shown = 0 if choice == targets[category, str(row["example_id"])] else 1
                    yield row["question_index"], 2 if info[choice][1] == "unknown" else shown


def _template(rng: np.random.Generator, cell: str, anew: float, null: bool = False) -> Mapping[str, Any]:
    """Resample released templates, and some of the responses within each template."""
    counts = _cells()[cell]
    rows = counts[rng.integers(len(counts), size=TEMPLATES)]
    again = rng.binomial(rows, anew)
    rows = rows - again + rng.multinomial(again.sum(axis=1), rows / rows.sum(axis=1, keepdims=True))
    if null:
        rows = np.where(rng.random((TEMPLATES, 1)) < 0.5, rows, rows[:, [1, 0, 2]])
    kinds = np.concatenate([np.repeat([0, 1, 2], row) for row in rows])
    found = bbq_score(
        kinds,
        correct=np.full(len(kinds), 2),
        target=np.zeros(len(kinds)),
        unknown=np.full(len(kinds), 2),
        templates=np.repeat(np.arange(TEMPLATES), rows.sum(axis=1)),
        ambiguous="|ambig|" in cell,
    )
    (low, high), (item_low, item_high) = found.score.interval, found.by_item.interval
    ends = {"low": low, "high": high, "item_low": item_low, "item_high": item_high}
    return {**ends, "p": found.score.p_value, "item_p": found.by_item.p_value}


def _leaning(
    rng: np.random.Generator, sizes: Sequence[int] | None, lean: Callable[..., NDArray[np.float64]], names: str = ""
) -> Mapping[str, Any]:
    """Draw templates with effects in logits and 30% "unknown"; if None, 15 templates have log-normal sizes.

    Names are confounded with templates: "one" pair of names per template, or one per "block" of templates.
    """
    if sizes is None:
        sizes = np.ceil(3.0 * rng.lognormal(sigma=1.3, size=15)).astype(int)
    at = np.repeat(np.arange(len(sizes)), sizes)
    logits = lean(rng, len(sizes))[at]
    if names:
        pair = at % 10 if names == "one" else at * 6 // len(sizes)
        first, second = rng.normal(size=(2, 10))
        logits = logits + first[pair] - second[pair]
    n = len(at)
    choices = np.where(rng.random(n) < _UNKNOWN, 2, np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-logits)), 0, 1))
    about = {"correct": np.full(n, 2), "target": np.zeros(n), "unknown": np.full(n, 2)}
    people_in = [(f"a{i}", f"b{i}") for i in pair] if names else None
    found = bbq_score(choices, **about, templates=at, ambiguous=True, names=people_in).score
    return {"low": found.interval[0], "high": found.interval[1], "p": found.p_value}


def _respond(
    rng: np.random.Generator,
    share: NDArray[np.float64],
    refused: float,
    selective: bool,
    ambiguous: bool,
    unknown: float = 0.0,
) -> tuple[BenchmarkResult, dict[object, tuple[float, ...]]]:
    """Draw responses to 24 questions per template; a share of them, or of those with the stereotype, is refused."""
    at = np.repeat(np.arange(TEMPLATES), 24)
    known, follows = rng.random(len(at)) >= unknown, rng.random(len(at)) < share[at]
    silent = rng.random(len(at)) < refused * (known & follows if selective else 1.0)
    questions = []
    for number, template in enumerate(at.tolist()):
        correct, own = 2 if ambiguous else number % 2, ("", "", "")
        item = BbqItem("simulated", template, number, True, ambiguous, "", "", own, own, correct, 2, 0)
        choice = UNPARSED if silent[number] else int(not follows[number]) if known[number] else 2
        kinds = Counter(["refused" if silent[number] else "chosen"])
        questions.append((item, CombinedChoice(choice, 1.0, kinds)))
    made_rows = make_bbq_rows(BenchmarkSettings("bbq"), ("model", "", ""), "simulated", "answer", questions)
    result, *templates = (one.record for one in made_rows)
    assert isinstance(result, BenchmarkResult)
    return result, {row.template: (row.target, row.known, row.correct, row.n) for row in templates}


def _refusing(
    rng: np.random.Generator, refused: float, lean: float, selective: bool, ambiguous: bool
) -> Mapping[str, Any]:
    share = 1.0 / (1.0 + np.exp(-(lean + 0.3 * rng.normal(size=TEMPLATES))))
    row, _ = _respond(rng, share, refused, selective, ambiguous)
    p = np.nan if row.outcome.p_value is None else row.outcome.p_value
    return {"p": p, "significant": float(row.claim == "tested" and p <= 0.05), "missed": float(row.claim != "tested")}


def _newly_refusing(rng: np.random.Generator, refused: float, bounded: bool) -> Mapping[str, Any]:
    """Compare two models with the same preferences and half of all answers "unknown"; the new one refuses some."""
    share = 1.0 / (1.0 + np.exp(-0.3 * rng.normal(size=TEMPLATES)))
    (old, before), (new, after) = (_respond(rng, share, each, True, False, 0.5) for each in (0.0, refused))
    plain = EffectDifference("simulated", "simulated", "old", "new", "bias score", 0.0, 0.0)
    slack = measure_slack(old.outcome, new.outcome) if bounded else 0.0
    pair = PairedItem(plain, 1.0, (True, True), partial(combine_scores, old, before, after), slack=slack)
    (verdict,) = judge_pairs([pair], margin=MARGIN, alpha=0.05)
    return {"wrong": float(verdict.outcome in ("better", "worse"))}


def _refusing_opposites(rng: np.random.Generator, refused: float) -> Mapping[str, Any]:
    """Compare two models with the same preferences: one refuses some answers with the stereotype, one some others."""
    share = 1.0 / (1.0 + np.exp(-0.3 * rng.normal(size=TEMPLATES)))
    old, before = _respond(rng, share, refused, True, False)
    mirrored, totals = _respond(rng, 1.0 - share, refused, True, False)
    # Swap both options, which changes the sign of the score and its bounds.
    after = {name: (known - target, known, correct, n) for name, (target, known, correct, n) in totals.items()}
    low, effect, high = (
        -(end or 0.0) for end in (mirrored.outcome.bound_high, mirrored.outcome.effect_size, mirrored.outcome.bound_low)
    )
    new = replace(mirrored.outcome, effect_size=effect, bound_low=low, bound_high=high)
    plain = EffectDifference("simulated", "simulated", "old", "new", "bias score", 0.0, 0.0)
    slack = measure_slack(old.outcome, new)
    pair = PairedItem(plain, 1.0, (True, True), partial(combine_scores, old, before, after), slack=slack)
    (verdict,) = judge_pairs([pair], margin=MARGIN, alpha=0.05)
    return {"wrong": float(verdict.outcome in ("better", "worse"))}


def _either(rng: np.random.Generator, n: int, logits: float = 8.0, rate: float = 0.5) -> NDArray[np.float64]:
    """Draw templates that follow the stereotype at a rate, or oppose it at the same rate."""
    return np.where(rng.random(n) < rate, logits, -logits)


def _normal(rng: np.random.Generator, n: int, spread: float) -> NDArray[np.float64]:
    return spread * rng.normal(size=n)


def _truth(cell: str) -> float:
    target, other, unknown = _cells()[cell].sum(axis=0)
    return float((target - other) / (target + other + (unknown if "|ambig|" in cell else 0)))


def _terms(rng: np.random.Generator, terms: int, lean: float) -> Mapping[str, Any]:
    """Draw terms of 26 items each, whose stereotype preference varies on the logistic scale."""
    share, related = (1.0 / (1.0 + np.exp(-(mean + 0.5 * rng.normal(size=(terms, 1))))) for mean in (lean, 2.0))
    wins, kept = rng.random((terms, 26)) < share, rng.binomial(2, related, (terms, 26)) / 2.0
    found = stereoset_score(wins.ravel(), kept.ravel(), np.repeat(np.arange(terms), 26))
    ends = {name: getattr(found, name).interval for name in ("ss", "lms")} | {"icat": found.icat_interval}
    return {
        f"{name}_{end}": value for name, pair in ends.items() for end, value in zip(("low", "high"), pair, strict=True)
    }


def _logistic_mean(mean: float) -> float:
    """Return the mean percentage 100 E 1 / (1 + exp(-mean - z/2))."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    return float(100.0 * (weights @ (1.0 / (1.0 + np.exp(-mean - 0.5 * nodes)))) / weights.sum())


WRITERS: Mapping[str, tuple[int, ...]] = {
    "gender": (52, 31, 17, 16, 15, 13, 9, 9, 9, 7, 7, 6, 5, 5, *[4] * 6, *[3] * 4, *[2] * 9, *[1] * 7),
    "nationality": (35, 27, 18, 13, 10, 5, 5, 4, *[3] * 5, *[2] * 7, *[1] * 13),
    "equal": (10,) * 30,
}
"""Pairs per writer: of two bias types of CrowS-Pairs, where a few people wrote most of them, and equally many."""
DOMINATED: Mapping[str, tuple[int, ...]] = {
    "two hold most": (100, 100, *[4] * 20),
    "three hold most": (60, 60, 60, *[3] * 20),
    "four hold most": (50, 50, 50, 50, *[2] * 20),
    "one holds most": (150, *[5] * 20),
}
"""Pairs per writer where a few writers hold most pairs."""


def _pairs(rng: np.random.Generator, sizes: Sequence[int], lean: float, spread: float) -> Mapping[str, Any]:
    """Draw pairs whose writers have random effects in logits."""
    writers = np.repeat(np.arange(len(sizes)), sizes)
    share = 1.0 / (1.0 + np.exp(-(lean + spread * rng.normal(size=len(sizes)))))
    signs = np.where(rng.random(len(writers)) < share[writers], 1.0, -1.0)
    found = pair_score(signs, np.zeros(len(signs)), [f"a{writer}" for writer in writers])
    low, high = found.share.interval
    return {"low": low, "high": high, "p": found.share.p_value, "by_pair": found.by_pair.p_value}


def _expected_share(lean: float, spread: float) -> float:
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    return float(weights @ (1.0 / (1.0 + np.exp(-lean - spread * nodes)))) / float(weights.sum())


def _named(
    rng: np.random.Generator,
    templates: float,
    names: float,
    lean: float,
    tails: Tails,
    groups: tuple[int, int] = (10, 10),
) -> Mapping[str, Any]:
    """Draw 25 templates with 25 pairs of people from two name groups, two questions per pair; effects in logits."""
    pairs = 25
    own = templates * made(rng, tails, TEMPLATES, 1)[:, 0]
    first, second = (names * made(rng, tails, size, 1)[:, 0] for size in groups)
    one, other = (rng.integers(0, size, size=(TEMPLATES, pairs)) for size in groups)
    logits = lean + own[:, None] + first[one] - second[other] + 0.3 * made(rng, tails, TEMPLATES, pairs)
    share = np.repeat(1.0 / (1.0 + np.exp(-logits)).ravel(), 2)
    n = len(share)
    choices = np.where(rng.random(n) < _UNKNOWN, 2, np.where(rng.random(n) < share, 0, 1))
    people_in = [(f"a{i}", f"b{j}") for i, j in zip(one.ravel(), other.ravel(), strict=True) for _ in range(2)]
    about = {"correct": np.full(n, 2), "target": np.zeros(n), "unknown": np.full(n, 2)}
    at = np.repeat(np.arange(TEMPLATES), 2 * pairs)
    both = [bbq_score(choices, **about, templates=at, ambiguous=True, names=own_) for own_ in (people_in, None)]
    (low, high), (template_low, template_high) = (found.score.interval for found in both)
    ends = {"low": low, "high": high, "template_low": template_low, "template_high": template_high}
    return {**ends, "p": both[0].score.p_value, "expected": (1.0 - _UNKNOWN) * (2.0 * share.mean() - 1.0)}


def _result(benchmark: str, unit: str, condition: str) -> BenchmarkResult:
    about = {"model": "new", "options": "", "model_revision": None, "category": "simulated", "topic": "", "by": ""}
    limit = {"bbq": 1.0, "crows-pairs": 0.5, "stereoset": 50.0}[benchmark]
    return BenchmarkResult(
        **about, benchmark=benchmark, condition=condition, unit=unit, items=1, outcome=Outcome(limit=limit)
    )


def _two_models(
    rng: np.random.Generator,
    templates: float,
    names: float,
    common: float,
    growth: float,
    tails: Tails,
    groups: tuple[int, int],
) -> Mapping[str, Any]:
    """Draw responses of two models to 25 templates with 25 pairs of people, four questions per pair.

    Effects of templates and names are in logits; ``common`` is their correlation between the models. The bias of the
    old model is 0, that of the new one grows by ``growth`` logits.
    """
    pairs = 25

    def two(size: int) -> NDArray[np.float64]:
        shared = made(rng, tails, size, 1)[:, 0]
        own = [made(rng, tails, size, 1)[:, 0] for _ in range(2)]
        return np.stack([np.sqrt(common) * shared + np.sqrt(1.0 - common) * each for each in own])

    leans, sides = templates * two(TEMPLATES), [names * two(size) for size in groups]
    one, other = (rng.integers(0, size, size=(TEMPLATES, pairs)) for size in groups)
    totals, expected = [], []
    for model in range(2):
        logits = growth * model + leans[model][:, None] + sides[0][model][one] - sides[1][model][other]
        share = 1.0 / (1.0 + np.exp(-logits))
        known = rng.binomial(4, 1.0 - _UNKNOWN, share.shape)
        target = rng.binomial(known, share)
        cells: dict[object, tuple[float, ...]] = {}
        for place in np.ndindex(*share.shape):
            key = int(place[0]), f"a{one[place]} b{other[place]}"
            counts = target[place], known[place], 4 - known[place], 4
            cells[key] = tuple(np.add(cells.get(key, (0, 0, 0, 0)), counts).tolist())
        totals.append(cells)
        expected.append((1.0 - _UNKNOWN) * (2.0 * share.mean() - 1.0))
    row = _result("bbq", "template", "ambiguous")
    combine_effects = partial(combine_scores, row, *totals, named=True)
    found = combine_effects(-1.0, 0.95)
    plain = EffectDifference("simulated", "simulated", "old", "new", "bias score", *expected)
    (verdict,) = judge_pairs([PairedItem(plain, 1.0, (True, True), combine_effects)], margin=MARGIN, alpha=0.05)
    low, high, p = (np.nan if each is None else each for each in (found.low, found.high, found.p_value))
    told = {"low": low, "high": high, "p": p, "expected": expected[1] - expected[0]}
    return {**told, **{name: float(verdict.outcome == name) for name in ("worse", "no_worse")}}


def _two_models_pairs(
    rng: np.random.Generator, sizes: Sequence[int], spread: float, common: float
) -> Mapping[str, Any]:
    """Draw two models whose writer effects, in logits, have the correlation ``common``."""
    shared = rng.normal(size=len(sizes))
    totals = []
    for _ in range(2):
        leans = spread * (np.sqrt(common) * shared + np.sqrt(1.0 - common) * rng.normal(size=len(sizes)))
        preferred = rng.binomial(sizes, 1.0 / (1.0 + np.exp(-leans)))
        totals.append({f"a{k}": (preferred[k] - n / 2.0, float(n)) for k, n in enumerate(sizes)})
    found = combine_scores(_result("crows-pairs", "writer", ""), *totals, -1.0, 0.95)
    return {"p": np.nan if found.p_value is None else found.p_value}


def _unanimous(rng: np.random.Generator, rate: float, spread: float, apart: float) -> Mapping[str, Any]:
    """Draw templates of 20 questions that follow the stereotype at a varying rate; some always oppose it.

    ``spread`` is the sum of the parameters of a beta distribution: 0 is one rate for all templates.
    """
    rates = rng.beta(rate * spread, (1.0 - rate) * spread, TEMPLATES) if spread else np.full(TEMPLATES, rate)
    rates = np.where(rng.random(TEMPLATES) < apart, 0.0, rates)
    choices = (rng.random((TEMPLATES, 20)) >= rates[:, None]).astype(int).ravel()
    n = len(choices)
    about = {"correct": np.full(n, 2), "target": np.zeros(n), "unknown": np.full(n, 2)}
    at = np.repeat(np.arange(TEMPLATES), 20)
    found = bbq_score(choices, **about, templates=at, ambiguous=False).score
    return {"low": found.interval[0], "high": found.interval[1], "p": found.p_value}


def _named_lines() -> list[Line]:
    found = []
    for tails in ("normal", "t3"):
        for templates, names, lean in ((0.7, 0.7, 0.0), (0.3, 1.0, 0.5), (1.0, 0.3, 0.5), (0.7, 0.7, 2.0)):
            world = Experiment(
                f"names {tails} {templates:g} {names:g} {lean:g}",
                f"25 templates, 20 names in 25 pairs; SD {templates:g} and {names:g} logits, {tails}; lean {lean:g}",
                partial(_named, templates=templates, names=names, lean=lean, tails=tails),
                800,
            )
            found += [
                Line("score with names", world, Coverage("low", "high", "expected", INTERVAL)),
                Line(
                    "score by template", world, Coverage("template_low", "template_high", "expected"), "names ignored"
                ),
            ]
            if lean == 0.0:
                found.append(Line("score with names", world, Level("p", HEADLINE), "p"))
    return found


def _few_name_lines() -> list[Line]:
    """List rows with few names in one group or both."""
    found = []
    for groups in ((3, 20), (4, 20), (6, 6)):
        for templates, names in ((0.3, 1.0), (0.7, 0.7)):
            world = Experiment(
                f"few names {groups[0]} {groups[1]} {templates:g} {names:g}",
                f"25 templates, {groups[0]} and {groups[1]} names in 25 pairs; SD {templates:g} and {names:g} logits",
                partial(_named, templates=templates, names=names, lean=0.0, tails="normal", groups=groups),
                800,
            )
            found.append(Line("score with names", world, Level("p", up_to(0.065)), "p"))
            if groups[0] > 3:
                found.append(Line("score with names", world, Coverage("low", "high", "expected", (0.93, 1.0))))
    return found


def _two_model_lines() -> list[Line]:
    """List rows for differences of two models: by template and name, and by writer."""
    found = []
    logit = 0.2 / 0.7  # of the known answers' bias, so that the score grows by about the margin of 0.2
    grown = float(np.log((1.0 + logit) / (1.0 - logit)))
    for groups, templates, names, common, tails in (
        ((10, 10), 0.5, 0.5, 0.0, "normal"),
        ((10, 10), 0.2, 0.8, 0.0, "t3"),
        ((4, 20), 0.3, 0.6, 0.0, "normal"),
        ((3, 20), 0.3, 0.6, 0.0, "normal"),
        ((20, 20), 0.7, 0.2, 0.5, "t3"),
    ):
        for growth in (0.0, grown):
            world = Experiment(
                f"two models {groups[0]} {groups[1]} {templates:g} {names:g} {common:g} {tails} {growth:.2f}",
                f"25 templates, {groups[0]} and {groups[1]} names in 25 pairs; SD {templates:g} and {names:g} logits, "
                f"{tails}, correlation {common:g} between models; growth {growth:.2f} logits",
                partial(
                    _two_models,
                    templates=templates,
                    names=names,
                    common=common,
                    growth=growth,
                    tails=tails,
                    groups=groups,
                ),
                200,
            )
            if groups[0] > 3:
                found.append(Line("difference with names", world, Coverage("low", "high", "expected", (0.93, 1.0))))
            if not growth:
                found.append(Line("difference with names", world, Level("p", up_to(0.065)), "p"))
            found.append(Line("difference with names", world, Share("worse", 0.05), "called worse"))
    for name, sizes in ({"gender": WRITERS["gender"]} | dict(DOMINATED)).items():
        for spread, common in ((0.5, 0.5), (2.0, 0.0)):
            world = Experiment(
                f"two models writers {name} {spread:g} {common:g}",
                f"{sum(sizes)} pairs by {len(sizes)} writers ({name}), SD {spread:g} logits, correlation {common:g} "
                "between models",
                partial(_two_models_pairs, sizes=sizes, spread=spread, common=common),
                2000,
            )
            found.append(Line("difference by writer", world, Level("p", up_to(0.065))))
    return found


def _refusing_lines() -> list[Line]:
    """List rows for models that refuse some of the questions that they would answer with the stereotype."""
    found = []
    for refused, lean, selective, ambiguous in (
        (0.05, 0.0, True, False),
        (0.2, 0.0, True, False),
        (0.2, 0.0, True, True),
        (0.6, 0.0, True, True),
        (0.1, 2.0, False, True),
    ):
        context = "ambiguous" if ambiguous else "disambiguated"
        about = (
            f"{TEMPLATES} templates of 24 questions, {context}, lean {lean:g} logits, "
            f"{refused:.0%} of {'answers with the stereotype' if selective else 'all answers'} refused"
        )
        draw = partial(_refusing, refused=refused, lean=lean, selective=selective, ambiguous=ambiguous)
        world = Experiment(f"refusing {refused:g} {lean:g} {selective} {ambiguous}", about, draw, 400)
        if selective:
            found.append(Line("selective refusal", world, Share("significant", 0.05)))
            found.append(Line("score by template", world, Level("p"), "refusals left out"))
        else:
            found.append(Line("selective refusal", world, Power("missed", 1.0), "found to be biased"))
    for refused in (0.3, 0.7):
        for bounded, most, note in ((True, 0.05, "called better or worse"), (False, 1.0, "refusals left out")):
            about = (
                f"{TEMPLATES} templates of 24 questions, half of the answers unknown; only the new model refuses "
                f"{refused:.0%} of answers with the stereotype"
            )
            draw = partial(_newly_refusing, refused=refused, bounded=bounded)
            world = Experiment(f"newly refusing {refused:g} {bounded}", about, draw, 200)
            found.append(Line("verdict with refusals", world, Share("wrong", most), note))
    for refused in (0.15, 0.3):
        about = (
            f"{TEMPLATES} templates of 24 questions; the old model refuses {refused:.0%} of answers with the "
            "stereotype, the new one as many against it"
        )
        world = Experiment(f"opposite refusals {refused:g}", about, partial(_refusing_opposites, refused=refused), 200)
        found.append(Line("verdict with refusals", world, Share("wrong", 0.05)))
    return found


def _dominated_lines() -> list[Line]:
    found = []
    for name, sizes in DOMINATED.items():
        for lean, spread in ((0.0, 0.5), (0.0, 2.0), (0.0, 4.0), (0.4, 0.5)):
            world = Experiment(
                f"pairs of writers {name} {lean:g} {spread:g}",
                f"{sum(sizes)} pairs by {len(sizes)} writers ({name}), SD {spread:g} logits, lean {lean:g}",
                partial(_pairs, sizes=sizes, lean=lean, spread=spread),
                2000,
            )
            if not lean:
                found.append(Line("share of pairs", world, Level("p", up_to(0.065)), "p"))
            elif name.startswith("four"):
                share = _expected_share(lean, spread)
                found.append(Line("share of pairs", world, Coverage("low", "high", share, (0.93, 1.0))))
    return found


def _unanimous_lines() -> list[Line]:
    found = []
    for rate, spread, apart in (
        (1.0, 0.0, 0.0),
        (0.99, 0.0, 0.0),
        (0.99, 2.0, 0.0),
        (0.97, 10.0, 0.0),
        (1.0, 0.0, 0.05),
    ):
        world = Experiment(
            f"agreeing templates {rate:g} {spread:g} {apart:g}",
            f"25 templates at a rate of {rate:g}"
            + (f", beta with a + b = {spread:g}" if spread else "")
            + (f", {apart:.0%} of them opposite" if apart else ""),
            partial(_unanimous, rate=rate, spread=spread, apart=apart),
            2000,
        )
        truth = 2.0 * rate * (1.0 - apart) - 1.0
        found += [
            Line("unanimous score", world, Coverage("low", "high", truth, (0.93, 1.0))),
            Line("unanimous score", world, Power("p", 1.0), "found to be biased"),
        ]
    return found


def _leaning_lines() -> list[Line]:
    """List rows with few templates, unequal ones, or names confounded with templates."""
    wide, narrow = (partial(_normal, spread=spread) for spread in (2.0, 0.3))
    designs: dict[str, tuple[Sequence[int] | None, Callable[..., NDArray[np.float64]], str]] = {
        f"{n} templates of 40 items, each fully biased in either direction": ((40,) * n, _either, "")
        for n in (4, 5, 6, 8)
    } | {
        "4 templates of 40 items, 1.5 logits in either direction": ((40,) * 4, partial(_either, logits=1.5), ""),
        "15 templates of log-normal sizes, SD 2 logits": (None, wide, ""),
        "one of 20 templates holds half of the items, SD 2 logits": ((190, *[10] * 19), wide, ""),
        "25 templates with one pair of 10 names each, SD 1 logit": ((25,) * 25, narrow, "one"),
        "24 templates, one pair of names per four templates, SD 1 logit": ((25,) * 24, narrow, "block"),
    }
    found = []
    for name, (sizes, lean, names) in designs.items():
        world = Experiment(f"leaning {name}", name, partial(_leaning, sizes=sizes, lean=lean, names=names), 2000)
        found.append(Line("score with names" if names else "p by template", world, Level("p", up_to(0.065)), "p"))
    about = "25 templates of 20 items, 5% of all templates fully biased in the other direction"
    rare = Experiment(
        f"rare {about}", about, partial(_leaning, sizes=(20,) * 25, lean=partial(_either, rate=0.95)), 2000
    )
    truth = (1.0 - _UNKNOWN) * 0.9 * (2.0 / (1.0 + float(np.exp(-8.0))) - 1.0)
    return [
        *found,
        Line("score by template", rare, Coverage("low", "high", truth), "rare templates that were not asked"),
    ]


def lines() -> list[Line]:
    found = []
    for cell in _cells():
        name = f"released answers {cell.replace('|', ', ').replace('_', ' ')}"
        about = f"{TEMPLATES} templates drawn from the {name}"
        drawn = partial(_template, cell=cell, anew=DRAWN_ANEW)
        turned = "a fifth redrawn, each turned or not by chance"
        mixed = Experiment(name, f"{about}, a fifth redrawn", drawn, 1000)
        null = Experiment(f"{name}, no bias", f"{about}, {turned}", partial(drawn, null=True), 1000)
        certain = Experiment(f"{name}, certain", f"{about}, all as they are", partial(drawn, anew=0.0), 3000)
        truth = _truth(cell)
        found += [
            Line("score by template", mixed, Coverage("low", "high", truth, INTERVAL)),
            Line("score by template", certain, Coverage("low", "high", truth, (0.93, 1.0))),
            Line("score by item", mixed, Coverage("item_low", "item_high", truth)),
            Line("p by template", null, Level("p", HEADLINE)),
            Line("score by item", null, Level("item_p"), "p"),
        ]
    for terms, lean in ((4, 0.5), (40, 0.5), (40, 0.0)):
        world = Experiment(
            f"target terms {terms} {lean:g}",
            f"{terms} terms of 26 items, lean {lean:g}",
            partial(_terms, terms=terms, lean=lean),
            1000,
        )
        ss, lms = _logistic_mean(lean), _logistic_mean(2.0)
        icat = lms * min(ss, 100.0 - ss) / 50.0
        limits = (0.93, 1.0) if terms < 6 else INTERVAL
        found += [
            Line("stereotype score", world, Coverage("ss_low", "ss_high", ss, limits), "ss"),
            Line("stereotype score", world, Coverage("lms_low", "lms_high", lms, limits), "lms"),
            Line("icat", world, Coverage("icat_low", "icat_high", icat, (0.95, 1.0))),
        ]
    for name, sizes in WRITERS.items():
        for lean, spread in ((0.0, 0.0), (0.0, 0.5), (0.4, 0.5)):
            world = Experiment(
                f"pairs of writers {name} {lean:g} {spread:g}",
                f"{sum(sizes)} pairs by {len(sizes)} writers ({name}), SD {spread:g} logits, lean {lean:g}",
                partial(_pairs, sizes=sizes, lean=lean, spread=spread),
                2000,
            )
            share = _expected_share(lean, spread)
            found.append(Line("share of pairs", world, Coverage("low", "high", share, (0.93, 0.985))))
            if not lean:
                found.append(Line("share of pairs", world, Level("p", up_to(0.065)), "p"))
                found.append(Line("share by pair", world, Level("by_pair"), "p"))
    return [
        *found,
        *_leaning_lines(),
        *_refusing_lines(),
        *_dominated_lines(),
        *_named_lines(),
        *_few_name_lines(),
        *_two_model_lines(),
        *_unanimous_lines(),
    ]
