"""Near-duplicate names: clusters count as one observation, and those that are not declared are reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.conftest import Cli

import biassay

from .planted_words import GROUPS, NAMES, TABLE, WORDS, numbers, write_vectors

COPIES = {name: (name, f"{name}copy", f"{name}again") for name in NAMES["red-women"]}


def write_groups(path: Path, names: dict[str, list[str]], clusters: dict[str, list[list[str]]]) -> Path:
    parts = []
    for group, (colour, gender) in GROUPS.items():
        own = f"names = {json.dumps(names[group])}\nclusters = {json.dumps(clusters.get(group, []))}\n"
        parts.append(f'[groups.{group}]\nbelongs = {{ colour = "{colour}", gender = "{gender}" }}\n{own}')
    path.write_text("\n".join(parts))
    return path


def discover(place: Path, groups: Path, **settings: Any) -> biassay.Run:
    return biassay.discover(
        f"vectors:{place / 'v.txt'}",
        "red-women",
        grouping=groups,
        n_permutations=499,
        cache=place / "cache",
        **settings,
    )


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Vectors in which every name of one group stands three times."""
    copies = {copy: TABLE[name] for name, cluster in COPIES.items() for copy in cluster}
    write_vectors(tmp_path / "v.txt", {**TABLE, **copies})
    return tmp_path


TRIPLED = {**NAMES, "red-women": [copy for cluster in COPIES.values() for copy in cluster]}
CLUSTERS = {"red-women": [list(cluster) for cluster in COPIES.values()]}


@pytest.mark.parametrize("compare", ["any", "every"])
def test_names_repeated_in_clusters_change_nothing(place: Path, compare: str) -> None:
    once = discover(place, write_groups(place / "once.toml", NAMES, {}), words=WORDS, compare=compare)
    thrice = discover(place, write_groups(place / "thrice.toml", TRIPLED, CLUSTERS), words=WORDS, compare=compare)
    for name, rows in numbers(thrice).items():
        for row, expected in zip(rows, numbers(once)[name], strict=True):
            for key, value in vars(expected).items():
                assert getattr(row, key) == pytest.approx(value, abs=1e-9), (name, key)
    assert thrice.manifest.inputs.clusters == {"red-women": tuple(COPIES.values())}
    assert thrice.manifest.inputs.grouping_digest != once.manifest.inputs.grouping_digest


def test_a_cluster_is_the_mean_of_the_cosines_of_its_names(place: Path) -> None:
    first, second, *rest = NAMES["red-women"]
    groups = write_groups(place / "own.toml", NAMES, {"red-women": [[first, second]]})
    unit = {word: vector / np.linalg.norm(vector) for word, vector in TABLE.items()}
    for row in discover(place, groups, words=WORDS).results[:10]:
        cosines = {name: float(unit[row.word] @ unit[name]) for name in (*NAMES["red-women"], *NAMES["red-men"])}
        own = [(cosines[first] + cosines[second]) / 2, *(cosines[name] for name in rest)]
        both = [*own, *(cosines[name] for name in NAMES["red-men"])]
        expected = (np.mean(both[: len(own)]) - np.mean(both[len(own) :])) / np.std(both, ddof=1)
        assert row.scores["red-men"] == pytest.approx(expected, abs=1e-6)


def test_near_duplicates_that_are_not_declared_are_named(place: Path, cli: Cli) -> None:
    names = {**NAMES, "red-women": [*NAMES["red-women"], "redwomen0copy"]}
    model = f"vectors:{place / 'v.txt'}"

    def printed(clusters: dict[str, list[list[str]]]) -> str:
        groups = write_groups(place / "own.toml", names, clusters)
        code, stdout, _ = cli(
            "discover", model, "--grouping", groups, "--groups", "red-women", "--n-permutations", 99, "--all"
        )
        assert code == 0
        return " ".join(stdout.split())

    assert "Names of red-women with nearly the same vector: redwomen0 and redwomen0copy." in printed({})
    assert "nearly the same vector" not in printed({"red-women": [["redwomen0", "redwomen0copy"]]})
