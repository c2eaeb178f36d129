"""Benchmarks: scores of items that come from templates or are about target terms."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.stats.benchmark_scores import bbq_score, pair_score, stereoset_score
from biassay.texts.choices import authors_choice

from .claim import HEADLINE, INTERVAL, Claim, Coverage, Experiment, Level, Line

__all__ = ["CLAIMS", "lines"]

BBQ = Path(__file__).resolve().parents[2] / "tests" / "reference" / "bbq"
TEMPLATES, DRAWN_ANEW = 25, 0.2
_FORMATS = {"format_race": "race", "format_arc": "arc", "baseline_qonly": "qonly"}
_ALIKE = "Templates are a sample of their kind."

CLAIMS = (
    Claim(
        "score by template",
        "benchmarks",
        "95% of the score of BBQ",
        ("benchmarks.results.score_low", "benchmarks.results.score_high"),
        "Where the score lies with as many other templates.",
        "The score over all templates.",
        "template",
        _ALIKE,
        "91 of 100 where a model that is certain answers all but three of 25 templates without any bias: these may not "
        "be among those drawn. No interval where none is.",
    ),
    Claim(
        "score by item",
        "benchmarks",
        "95% and p of the score of BBQ, by item",
        ("benchmarks.results.item_low", "benchmarks.results.item_high", "benchmarks.results.p_value_item"),
        "Shown beside the other, as what is usually printed.",
        "The score over all templates.",
        "item",
        "Items are independent; those of one template are not.",
        "Far too narrow in ambiguous contexts, too wide in disambiguated ones, which are balanced within a template.",
    ),
    Claim(
        "p by template",
        "benchmarks",
        "p of the score of BBQ",
        ("benchmarks.results.p_value",),
        "The score is not 0.",
        "Each template leans either way with the same probability.",
        "template",
        _ALIKE,
    ),
    Claim(
        "stereotype score",
        "benchmarks",
        "95% of ss and lms of StereoSet",
        ("benchmarks.results.lms_low", "benchmarks.results.lms_high"),
        "Where the mean over as many other target terms lies.",
        "The mean over all terms.",
        "target term",
        "Terms are a sample of their kind.",
    ),
    Claim(
        "icat",
        "benchmarks",
        "95% of icat",
        ("benchmarks.results.icat_low", "benchmarks.results.icat_high"),
        "At least 95% hold icat of the means over all terms.",
        "icat of the means over all terms.",
        "target term",
        "Terms are a sample of their kind.",
        "Too wide rather than too narrow.",
    ),
    Claim(
        "share of pairs",
        "benchmarks",
        "95% and p of the share of pairs",
        (),
        "Where the share lies with as many other pairs; it is not one half.",
        "The share over all pairs.",
        "pair",
        "Pairs are independent; several are by one writer.",
    ),
)


@cache
def _cells() -> dict[str, NDArray[np.int64]]:
    """Answers of every template that show the bias, its opposite, and that are "unknown", by cell: (templates, 3)."""
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
                choice = authors_choice(row[field], [row[f"ans{place}"] for place in range(3)], [a[0] for a in info])
                if choice is not None:
                    shown = 0 if choice == targets[category, str(row["example_id"])] else 1
                    yield row["question_index"], 2 if info[choice][1] == "unknown" else shown


def _template(rng: np.random.Generator, cell: str, anew: float, null: bool = False) -> Mapping[str, Any]:
    """Templates drawn from the released ones, some of the answers drawn anew within their template."""
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


def _truth(cell: str) -> float:
    target, other, unknown = _cells()[cell].sum(axis=0)
    return float((target - other) / (target + other + (unknown if "|ambig|" in cell else 0)))


def _terms(rng: np.random.Generator, terms: int, lean: float) -> Mapping[str, Any]:
    """Terms that differ in how often their stereotype is preferred, on the logistic scale, each with 26 items."""
    share, related = (1.0 / (1.0 + np.exp(-(mean + 0.5 * rng.normal(size=(terms, 1))))) for mean in (lean, 2.0))
    wins, kept = rng.random((terms, 26)) < share, rng.binomial(2, related, (terms, 26)) / 2.0
    found = stereoset_score(wins.ravel(), kept.ravel(), np.repeat(np.arange(terms), 26))
    ends = {name: getattr(found, name).interval for name in ("ss", "lms")} | {"icat": found.icat_interval}
    return {
        f"{name}_{end}": value for name, pair in ends.items() for end, value in zip(("low", "high"), pair, strict=True)
    }


def _logistic_mean(mean: float) -> float:
    """100 E 1 / (1 + exp(-mean - z/2))."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    return float(100.0 * (weights @ (1.0 / (1.0 + np.exp(-mean - 0.5 * nodes)))) / weights.sum())


def _pairs(rng: np.random.Generator, n: int, share: float) -> Mapping[str, Any]:
    found = pair_score(np.where(rng.random(n) < share, 1.0, -1.0), np.zeros(n)).share
    return {"low": found.interval[0], "high": found.interval[1], "p": found.p_value}


def lines() -> list[Line]:
    found = []
    for cell in _cells():
        name = f"released answers {cell.replace('|', ', ').replace('_', ' ')}"
        about = f"{TEMPLATES} templates drawn from the {name}"
        drawn = partial(_template, cell=cell, anew=DRAWN_ANEW)
        turned = "a fifth drawn anew, each turned or not by chance"
        mixed = Experiment(name, f"{about}, a fifth drawn anew", drawn, 1000)
        null = Experiment(f"{name}, no bias", f"{about}, {turned}", partial(drawn, null=True), 1000)
        certain = Experiment(f"{name}, certain", f"{about}, all as they are", partial(drawn, anew=0.0), 3000)
        truth = _truth(cell)
        found += [
            Line("score by template", mixed, Coverage("low", "high", truth, INTERVAL)),
            Line("score by template", certain, Coverage("low", "high", truth, INTERVAL)),
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
        found += [
            Line("stereotype score", world, Coverage("ss_low", "ss_high", ss, INTERVAL), "ss"),
            Line("stereotype score", world, Coverage("lms_low", "lms_high", lms, INTERVAL), "lms"),
            Line("icat", world, Coverage("icat_low", "icat_high", icat, (0.95, 1.0))),
        ]
    for n, share in ((60, 0.5), (60, 0.65), (516, 0.6)):
        world = Experiment(
            f"pairs of sentences {n} {share:g}", f"{n} pairs, share {share:g}", partial(_pairs, n=n, share=share), 4000
        )
        found.append(Line("share of pairs", world, Coverage("low", "high", share, INTERVAL)))
        if share == 0.5:
            found.append(Line("share of pairs", world, Level("p", (0.0, 0.05, 0.015)), "p"))
    return found
