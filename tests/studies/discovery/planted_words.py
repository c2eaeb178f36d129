"""A small world of made-up vectors: four groups of names, words planted near them, and words that are near none."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import biassay
from biassay.studies.discovery.results import GroupResult

GROUPS = {"red-women": ("red", "women"), "red-men": ("red", "men"), "blue-women": ("blue", "women")}
GROUPS["blue-men"] = ("blue", "men")
NAMES = {group: [f"{group.replace('-', '')}{i}" for i in range(8)] for group in GROUPS}
PLANTED = {"blossom": "red-women", "red": "red", "hammer": "blue-men"}
RATED = {
    "red-women": {"biases": ["blossom0", "blossom1", "blossom2", "red0"], "emergent": ["blossom0", "blossom1"]},
    "blue-men": {"biases": ["hammer0", "hammer1", "random0"], "emergent": ["hammer0"]},
    "red-men": {"biases": ["random1", "random2", "random3"]},
}
ALL_RATED = {word for lists in RATED.values() for words in lists.values() for word in words}
DIMENSION, EACH, RANDOM = 40, 6, 60
Table = dict[str, np.ndarray]


def made_table() -> Table:
    """Names share directions by colour, gender and group. Planted words point there; random words where only noise is,
    so that for these the names of all groups are exchangeable."""
    rng = np.random.default_rng(4)
    axis = dict(zip(("all", "red", "blue", "women", "men", *GROUPS), np.eye(DIMENSION), strict=False))
    made = {
        name: axis["all"] + 0.5 * (axis[colour] + axis[gender]) + 0.9 * axis[group] + rng.normal(0, 0.2, DIMENSION)
        for group, (colour, gender) in GROUPS.items()
        for name in NAMES[group]
    }
    for word, to in PLANTED.items():
        made |= {f"{word}{i}": axis[to] + rng.normal(0, 0.08, DIMENSION) for i in range(EACH)}
    both = axis["red-women"] + axis["blue-men"]
    made |= {f"both{i}": both + rng.normal(0, 0.05, DIMENSION) for i in range(2)}
    noise = rng.normal(size=(RANDOM, DIMENSION)) * (np.arange(DIMENSION) >= len(axis))
    made |= {f"random{i}": row for i, row in enumerate(noise)}
    return {word: vector.astype(np.float32) for word, vector in made.items()}


TABLE = made_table()
WORDS = [word for word in TABLE if word not in itertools.chain(*NAMES.values())]


def write_vectors(path: Path, table: Table = TABLE) -> str:
    path.write_text("".join(f"{w} " + " ".join(repr(float(x)) for x in v) + "\n" for w, v in table.items()))
    return f"vectors:{path}"


def write_groups(path: Path, rated: dict[str, dict[str, list[str]]] = RATED, more: str = "") -> Path:
    parts = [more]
    for group, (colour, gender) in GROUPS.items():
        fields = {"names": NAMES[group], **rated.get(group, {})}
        lists = "".join(f"{key} = {json.dumps(words)}\n" for key, words in fields.items())
        parts.append(f'[groups.{group}]\nbelongs = {{ colour = "{colour}", gender = "{gender}" }}\n{lists}')
    path.write_text("\n".join(parts))
    return path


def discovered(place: Path, group: str | Sequence[str] = "red-women", **given: Any) -> biassay.Run:
    defaults: dict[str, Any] = {"grouping": place / "own.toml", "n_permutations": 499, "cache": place / "cache"}
    return biassay.discover(f"vectors:{place / 'v.txt'}", group, **defaults | given)


def numbers(run: biassay.Run) -> dict[str, list[Any]]:
    """What was found, whatever the model is called."""
    tables = {name: rows for name, rows in run.tables.items() if name != "models"}
    return {name: [without_model(row) for row in rows] for name, rows in tables.items()}


def without_model(row: Any) -> Any:
    unnamed = {"model_revision": None} if hasattr(row, "model_revision") else {}
    return dataclasses.replace(row, model="", options="", **unnamed)


def planted(folder: Path, *without: str) -> Path:
    """A folder with the groups, and vectors of all but some words."""
    write_vectors(folder / "v.txt", {word: v for word, v in TABLE.items() if word not in without})
    write_groups(folder / "own.toml")
    return folder


def with_a_word_aside(folder: Path, **groups: Any) -> Path:
    """A folder with one more word, at right angles to all names."""
    table: Table = {word: np.append(vector, 0).astype(np.float32) for word, vector in TABLE.items()}
    table["aside"] = np.append(np.zeros(len(TABLE["red0"])), 1).astype(np.float32)
    write_vectors(folder / "v.txt", table)
    write_groups(folder / "own.toml", **groups)
    return folder


class Held:
    """An object with vectors, as a Python user has it."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        return np.stack([TABLE[text] for text in texts])


class Untouched:
    """A model that must not be asked."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        raise AssertionError(f"asked for {texts}")


def score(word: str, first: list[str], second: list[str]) -> float:
    """The single-target effect size, from its definition."""

    def cosine(a: str, b: str) -> float:
        x, y = ([float(v) for v in TABLE[w]] for w in (a, b))
        dot = math.fsum(p * q for p, q in zip(x, y, strict=True))
        return dot / math.sqrt(math.fsum(p * p for p in x) * math.fsum(q * q for q in y))

    to_first, to_second = ([cosine(word, name) for name in side] for side in (first, second))
    both = to_first + to_second
    mean = math.fsum(both) / len(both)
    spread = math.sqrt(math.fsum((c - mean) ** 2 for c in both) / (len(both) - 1))
    return (math.fsum(to_first) / len(to_first) - math.fsum(to_second) / len(to_second)) / spread


def others_of(group: str) -> list[list[str]]:
    return [NAMES[other] for other in GROUPS if other != group]


def constituents_of(group: str) -> list[tuple[list[str], list[str]]]:
    """Names of the group's colour against those of the other, and so for its gender."""
    sides = []
    for place, value in enumerate(GROUPS[group]):
        own = [name for g, values in GROUPS.items() if values[place] == value for name in NAMES[g]]
        sides.append((own, [name for g in GROUPS for name in NAMES[g] if name not in own]))
    return sides


def with_counts(
    row: GroupResult, *, words: int | None = None, associated: int | None = None, emergent: int | None = None
) -> GroupResult:
    """Return the row of a group with other numbers of words."""
    outcome, alternatives = row.outcome, dict(row.alternatives)
    if words is not None:
        outcome = dataclasses.replace(outcome, n={"words": words})
    if associated is not None:
        outcome = dataclasses.replace(outcome, effect_size=float(associated))
    if emergent is not None:
        alternatives["emergent"] = dataclasses.replace(alternatives["emergent"], effect_size=float(emergent))
    return dataclasses.replace(row, outcome=outcome, alternatives=alternatives)
