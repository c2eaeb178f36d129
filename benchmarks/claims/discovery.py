"""IBD and EIBD: words that are associated with a group, by `biassay.discover`."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import biassay

from .claim import Claim, Experiment, Level, Line, Share, up_to
from .worlds import Floats, Held

__all__ = ["CLAIMS", "lines"]

GROUPS = {f"{colour}-{gender}": (colour, gender) for colour in ("red", "blue") for gender in ("women", "men")}
NAMES = {group: [f"{group}-name{i}" for i in range(8)] for group in GROUPS}
WORDS = [f"word{i}" for i in range(150)]
TARGET, PLANTED, DIMENSIONS, PERMUTATIONS = "red-women", 15, 30, 999

CLAIMS = (
    Claim(
        "association p",
        "discovery",
        "p",
        ("discovery.results.p_value",),
        "Names of the group are closer to the word than chance gives in the choice of names.",
        "Names of all groups are exchangeable; with `--compare every`, those of the group and of one other.",
        "name",
        "Names are a sample of their group.",
        "A small p does not single the group out: where another group stands apart, it is small too.",
    ),
    Claim(
        "association q",
        "discovery",
        "q, associated",
        ("discovery.results.q_value",),
        "At most 5% of the words reported as associated are false, on average.",
        "Names are exchangeable for all words, or for nine of ten.",
        "name",
        "Benjamini and Hochberg's: words are positively dependent. All share their names.",
    ),
    Claim(
        "excess p",
        "discovery",
        "p excess",
        ("discovery.results.p_value_excess",),
        "The group is closer to the word than what its categories contribute together.",
        "Names are as close as their categories say, and noise: categories differ, nothing is left for the group.",
        "name",
        "Noise of names is the same in all groups.",
    ),
    Claim(
        "excess q",
        "discovery",
        "q excess, emergent",
        ("discovery.results.q_value_excess",),
        "At most 5% of the words with an excess are false, on average.",
        "Categories contribute, and nothing is left for the group.",
        "name",
        "As q.",
    ),
)


@cache
def _place() -> Path:
    place = Path(tempfile.mkdtemp(prefix="biassay-validity-"))
    groups = (
        f"[groups.{group}]\nbelongs = {{ colour = {c!r}, gender = {g!r} }}\nnames = {json.dumps(NAMES[group])}\n"
        for group, (c, g) in GROUPS.items()
    )
    (place / "groups.toml").write_text("\n".join(groups))
    return place


def _searched(table: dict[str, Floats], compare: str) -> list[Any]:
    return list(
        biassay.discover(
            {"made": Held(table)},
            TARGET,
            groups=_place() / "groups.toml",
            words=WORDS,
            threshold=0.0,
            compare=compare,
            n_permutations=PERMUTATIONS,
            cache=_place() / "cache",
        ).results
    )


def _draw(rng: np.random.Generator, world: str, compare: str = "any") -> Mapping[str, Any]:
    """Names around the means of their groups; words are random directions, some of them planted near the group."""
    axes = np.eye(DIMENSIONS)
    means = {group: np.zeros(DIMENSIONS) for group in GROUPS}
    if world == "categories":
        means = {
            g: 1.5 * axes[["red", "blue"].index(c)] + 1.5 * axes[2 + ["women", "men"].index(s)]
            for g, (c, s) in GROUPS.items()
        }
    if world == "one alike":  # one other group is like the target, two stand apart
        means |= {"blue-women": -8.0 * axes[0], "blue-men": -8.0 * axes[0]}
    if world == "planted":
        means[TARGET] = 3.0 * axes[0]
    table = {name: means[group] + rng.normal(size=DIMENSIONS) for group in GROUPS for name in NAMES[group]}
    towards = 4.0 * axes[0] if world == "one alike" else np.zeros(DIMENSIONS)
    table |= {word: towards + rng.normal(size=DIMENSIONS) for word in WORDS}
    true = set(WORDS)
    if world == "planted":
        true = set(WORDS[PLANTED:])
        table |= {word: 3.0 * axes[0] + rng.normal(size=DIMENSIONS) for word in WORDS[:PLANTED]}
        table |= {word: table[word] * (np.arange(DIMENSIONS) > 0) for word in true}
    rows = sorted(_searched(table, compare), key=lambda row: row.word)
    held, found = [row.word in true for row in rows], [row.q_value <= 0.05 for row in rows]
    return {
        "p": [row.p_value for row in rows],
        "excess": [row.p_value_excess for row in rows],
        "false": np.sum(np.logical_and(held, found)) / max(1, np.sum(found)),
        "false excess": any(row.q_value_excess <= 0.05 for row in rows),
    }


def lines() -> list[Line]:
    about = f"four groups of 8 names, {len(WORDS)} words, {PERMUTATIONS} permutations"
    alike = Experiment("names alike", f"{about}; all names alike", partial(_draw, world="alike"), 400)
    every = Experiment(
        "one alike",
        f"{about}; `--compare every`, one other group alike, two apart",
        partial(_draw, world="one alike", compare="every"),
        400,
    )
    categories = Experiment("categories", f"{about}; categories differ", partial(_draw, world="categories"), 400)
    planted = Experiment("planted", f"{about}; a tenth of the words planted", partial(_draw, world="planted"), 400)
    return [
        Line("association p", alike, Level("p", up_to(0.06))),
        Line("association p", every, Level("p", up_to(0.06))),
        Line("association q", alike, Share("false", 0.06), "runs with a false finding"),
        Line("association q", planted, Share("false", 0.06), "false among found"),
        Line("excess p", alike, Level("excess", up_to(0.06))),
        Line("excess p", categories, Level("excess", up_to(0.06))),
        Line("excess q", categories, Share("false excess", 0.06), "runs with a false finding"),
    ]
