"""IBD and EIBD: words that are associated with a group, by `biassay.discover`."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
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
TARGET, OTHER, PLANTED, DIMENSIONS, PERMUTATIONS = "red-women", "blue-men", 15, 30, 999
Clusters = tuple[tuple[str, tuple[tuple[str, ...], ...]], ...]
"""By group its clusters of names."""

CLAIMS = (
    Claim(
        "association p",
        "discovery",
        "p",
        ("discovery.results.p_value",),
        "Names of the group are closer to the word than random assignment of names explains.",
        "Names of all groups are exchangeable; with `--compare every`, names of the group and of one other group.",
        "cluster of names",
        "Names are a sample of their group, and near-duplicates are declared as clusters.",
        "A small p does not single the group out, because p is also small if another group differs. "
        "Undeclared near-duplicate names make it far too small; the run lists them.",
    ),
    Claim(
        "association q",
        "discovery",
        "q, associated",
        (
            "discovery.results.p_adjusted",
            "discovery.groups.p_value",
            "discovery.groups.p_adjusted",
            "discovery.decisions.p_adjusted",
        ),
        "On average, at most 5% of the words reported as associated are false.",
        "Names are exchangeable for all words, or for nine of ten.",
        "cluster of names",
        "Words are positively dependent (Benjamini and Hochberg). All share their names.",
    ),
    Claim(
        "excess p",
        "discovery",
        "p excess",
        ("discovery.results.excess_p_value",),
        "The group is closer to the word than the sum of its categories explains.",
        "Names are as close as their categories predict, plus noise: categories differ, but the group adds nothing.",
        "cluster of names",
        "The noise of names is the same in all groups.",
    ),
    Claim(
        "excess q",
        "discovery",
        "q excess, emergent",
        ("discovery.results.excess_p_adjusted", "discovery.groups.emergent_p_value"),
        "On average, at most 5% of the words with an excess are false.",
        "Categories contribute, but the group adds nothing.",
        "cluster of names",
        "Those of q, associated.",
    ),
)


@cache
def _place() -> Path:
    return Path(tempfile.mkdtemp(prefix="biassay-validity-"))


@cache
def _groups(clusters: Clusters) -> Path:
    """Write a file of groups, names and clusters of near-duplicates."""
    path = _place() / f"groups-{len(list(_place().glob('*.toml')))}.toml"
    of = dict(clusters)
    groups = (
        f"[groups.{group}]\nbelongs = {{ colour = {c!r}, gender = {g!r} }}\nnames = {json.dumps(_names(group, of))}\n"
        f"clusters = {json.dumps([cluster for cluster in of.get(group, ()) if len(cluster) > 1])}\n"
        for group, (c, g) in GROUPS.items()
    )
    path.write_text("\n".join(groups))
    return path


def _names(group: str, clusters: Mapping[str, Any]) -> list[str]:
    return [name for cluster in clusters.get(group, ()) for name in cluster] or NAMES[group]


def _copies(size: int, groups: Sequence[str] = tuple(GROUPS)) -> Clusters:
    """Draw twelve names per group, in clusters of near-duplicates."""
    each = 12 // size
    return tuple(
        (group, tuple(tuple(f"{name}-copy{i}" for i in range(size)) for name in NAMES[group][:each]))
        for group in groups
    )


def _searched(table: dict[str, Floats], compare: str, clusters: Clusters = ()) -> list[Any]:
    return list(
        biassay.discover(
            {"made": Held(table)},
            TARGET,
            grouping=_groups(clusters),
            words=WORDS,
            threshold=0.0,
            compare=compare,
            n_permutations=PERMUTATIONS,
            cache=_place() / "cache",
        ).results
    )


def _duplicated(
    rng: np.random.Generator, clusters: Clusters, declared: bool, compare: str = "any", planted: bool = False
) -> Mapping[str, Any]:
    """Draw exchangeable names for all groups, some of them near-duplicates with a cosine of 0.9 to 0.99.

    If planted, the target's names and a tenth of the words share one axis, and all other words are orthogonal to it.
    """
    of = dict(clusters)
    table = {name: rng.normal(size=DIMENSIONS) for group in GROUPS for name in NAMES[group] if group not in of}
    lean = 3.0 * np.eye(DIMENSIONS)[0]
    for group, own in of.items():
        for cluster in own:
            alike, shared = rng.uniform(0.9, 0.99), rng.normal(size=DIMENSIONS)
            shared = shared + lean if planted and group == TARGET else shared
            table |= {
                name: np.sqrt(alike) * shared + np.sqrt(1.0 - alike) * rng.normal(size=DIMENSIONS) for name in cluster
            }
    table |= {word: rng.normal(size=DIMENSIONS) for word in WORDS}
    if planted:
        table |= {word: table[word] + lean for word in WORDS[:PLANTED]}
        table |= {word: table[word] * (np.arange(DIMENSIONS) > 0) for word in WORDS[PLANTED:]}
    stated = clusters if declared else tuple((group, tuple((n,) for c in own for n in c)) for group, own in clusters)
    rows = sorted(_searched(table, compare, stated), key=lambda row: row.word)
    true = set(WORDS[PLANTED:] if planted else WORDS)
    found = [row.word for row in rows if row.p_adjusted <= 0.05]
    return {
        "p": [row.p_value for row in rows],
        "excess": [row.excess_p_value for row in rows],
        "false": len(true.intersection(found)) / max(1, len(found)),
    }


def _draw(rng: np.random.Generator, world: str, compare: str = "any") -> Mapping[str, Any]:
    """Draw names around group means, and words in random directions or planted near the group."""
    axes = np.eye(DIMENSIONS)
    means = {group: np.zeros(DIMENSIONS) for group in GROUPS}
    if world == "categories":
        means = {
            g: 1.5 * axes[["red", "blue"].index(c)] + 1.5 * axes[2 + ["women", "men"].index(s)]
            for g, (c, s) in GROUPS.items()
        }
    if world == "one alike":  # one other group is like the target, two differ
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
    held, found = [row.word in true for row in rows], [row.p_adjusted <= 0.05 for row in rows]
    return {
        "p": [row.p_value for row in rows],
        "excess": [row.excess_p_value for row in rows],
        "false": np.sum(np.logical_and(held, found)) / max(1, np.sum(found)),
        "false excess": any(row.excess_p_adjusted <= 0.05 for row in rows),
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
    duplicates = {
        name: Experiment(
            f"near-duplicates {name}",
            f"{len(WORDS)} words, {PERMUTATIONS} permutations; {text}, cosine 0.9 to 0.99",
            partial(_duplicated, clusters=clusters, declared=name != "undeclared", **more),
            400,
        )
        for name, text, clusters, more in (
            ("in pairs", "12 names per group, all in pairs", _copies(2), {}),
            ("in triples", "12 names per group, all in triples", _copies(3), {}),
            ("of the group", "only the group has near-duplicates, pairs", _copies(2, [TARGET]), {}),
            ("of another group", "only another group has near-duplicates, triples", _copies(3, [OTHER]), {}),
            ("every", "12 names per group, all in pairs; `--compare every`", _copies(2), {"compare": "every"}),
            (
                "planted",
                "12 names per group, all in pairs; a tenth of the words planted",
                _copies(2),
                {"planted": True},
            ),
            ("undeclared", "12 names per group, all in pairs, not declared", _copies(2), {}),
        )
    }
    undeclared, copies_planted = duplicates.pop("undeclared"), duplicates.pop("planted")
    planted = Experiment("planted", f"{about}; a tenth of the words planted", partial(_draw, world="planted"), 400)
    return [
        Line("association p", alike, Level("p", up_to(0.06))),
        Line("association p", every, Level("p", up_to(0.06))),
        Line("association q", alike, Share("false", 0.06), "runs with a false finding"),
        Line("association q", planted, Share("false", 0.06), "false among found"),
        *(
            line
            for world in duplicates.values()
            for line in (
                Line("association p", world, Level("p", up_to(0.06))),
                Line("association q", world, Share("false", 0.06), "runs with a false finding"),
                Line("excess p", world, Level("excess", up_to(0.06))),
            )
        ),
        Line("association q", copies_planted, Share("false", 0.06), "false among found"),
        Line("association p", undeclared, Level("p"), "not its null: near-duplicates are not declared"),
        Line("association q", undeclared, Share("false", 1.0), "not its null: near-duplicates are not declared"),
        Line("excess p", alike, Level("excess", up_to(0.06))),
        Line("excess p", categories, Level("excess", up_to(0.06))),
        Line("excess q", categories, Share("false excess", 0.06), "runs with a false finding"),
    ]
