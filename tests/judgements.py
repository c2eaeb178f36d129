"""Synthetic human judgements in the released format, with its names, counts and irregularities."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np

Ratings = dict[str, dict[str, dict[str, str]]]
Means = dict[str, dict[str, str]]


def write_judgements(figures: dict[str, Any], folder: Path) -> Path:
    """Files named as the released ones: single ratings, their means, and what is known of (other) annotators."""
    ratings = _ratings(figures)
    means = {
        group: {pair: str(float(mean)) for pair, mean in own.items()} for group, own in exact_means(ratings).items()
    }
    _spoil(ratings, figures)
    for name, content in {
        "data_full": ratings,
        "Aggregated_scores": {group: means[group] for group in figures["groups"]},
        "Annotators_demographics": {f"annotator{i}": {"Gender": "Woman", "Age": str(20 + i)} for i in range(139, 273)},
    }.items():
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


def exact_means(ratings: Ratings) -> dict[str, dict[str, Fraction]]:
    """Group -> pair -> mean over those who rated it."""
    given: dict[str, dict[str, list[int]]] = {}
    for groups in ratings.values():
        for group, own in groups.items():
            for pair, rating in own.items():
                given.setdefault(group, {}).setdefault(pair, []).append(int(rating))
    return {group: {pair: Fraction(sum(r), len(r)) for pair, r in own.items()} for group, own in given.items()}


def _ratings(figures: dict[str, Any]) -> Ratings:
    """Whole numbers about a centre for every cell; of every third group all centres are on one side."""
    rng = np.random.default_rng(7)
    pairs, groups = figures["pairs"], figures["groups"]
    centres = {group: rng.integers(55 if g % 3 == 0 else 15, 86, len(pairs)) for g, group in enumerate(groups)}
    made: Ratings = {}
    for annotator, own in _assigned(figures).items():
        numbers = {group: np.clip(rng.normal(centres[group], 25.0), 0, 100).astype(int).tolist() for group in own}
        made[annotator] = {g: dict(zip(pairs, map(str, numbers[g]), strict=True)) for g in own}
    alone = figures["one_pair_only"]
    only = made[alone["annotator"]][alone["group"]]
    made[alone["annotator"]][alone["group"]] = {alone["pair"]: only[alone["pair"]]}
    return made


def _assigned(figures: dict[str, Any]) -> dict[str, list[str]]:
    """Four groups in turn, three for the last annotators; those with a rater more come once more at the end."""
    more, total = list(figures["raters_of_other_numbers"]), figures["annotators"]
    groups = [*figures["groups"][22:], *figures["groups"][:22]]  # so that annotator127 gets Jewish people
    turns = iter([*islice(cycle(groups), figures["raters_of_a_group"] * len(groups)), *more])
    fours = total - figures["annotators_of_three_groups"]
    return {f"annotator{i}": list(islice(turns, 4 if i < fours else 3)) for i in range(total)}


def _spoil(ratings: Ratings, figures: dict[str, Any]) -> None:
    """Two pairs of one group become copies of a third, and stand at another place, as released."""
    copies = figures["copies"]
    for groups in ratings.values():
        own = groups.get(copies["group"])
        if own is not None:
            copied = dict.fromkeys(copies["copied_to"], own[copies["original"]])
            groups[copies["group"]] = {figures["pairs"][0]: own[figures["pairs"][0]], **copied} | own | copied
