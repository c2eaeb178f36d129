"""Words of one cluster count as one observation in everything that is computed by word."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import biassay
from biassay.errors import UsageError
from biassay.results.outcomes import Result
from biassay.stats.crossed import crossed_test

CLUSTERS = {"X": [["man", "men"]], "Y": [["woman", "women"]], "A": [["office", "offices"]]}
WORDS = {
    "X": ["man", "men", "king", "uncle", "actor", "boy"],
    "Y": ["woman", "women", "queen", "aunt", "actress", "girl"],
    "A": ["office", "offices", "salary", "business", "career"],
    "B": ["home", "kitchen", "wedding", "children"],
}


def own_test(clusters: dict[str, list[list[str]]], **fields: str) -> dict[str, object]:
    sets = {role: {"label": role, "words": words, "clusters": clusters.get(role, [])} for role, words in WORDS.items()}
    return {"name": "own", "language": "en", **fields, **sets}


def measured(clusters: dict[str, list[list[str]]], **fields: str) -> Result:
    (result,) = biassay.run("glove", tests=own_test(clusters, **fields)).results
    return result


def labels(role: str) -> list[str]:
    of = {word: cluster[0] for cluster in CLUSTERS.get(role, []) for word in cluster}
    return [of.get(word, word) for word in WORDS[role]]


def vectors(role: str) -> np.ndarray:
    return biassay.open_encoder("glove").encode(WORDS[role]).vectors


def test_weat8_on_glove_counts_pronouns_once() -> None:
    """The issue's figure: p goes from .042 to .058."""
    (result,) = biassay.run("glove", tests="weat8").results
    assert result.p_value == pytest.approx(0.0579, abs=5e-5)
    assert result.num_words["A"] == 8
    assert result.num_clusters == {"X": 8, "Y": 8, "A": 6, "B": 6}
    assert result.clusters["A"] == {"he": "he", "his": "he", "him": "he"}


def test_declared_clusters_change_what_is_by_word_and_nothing_by_text() -> None:
    with_clusters, without = measured(CLUSTERS), measured({})
    assert with_clusters.published == without.published
    for name in ("effect_size", "fixed_words_p_value", "p_value", "cosine_difference", "ci_low", "share_random"):
        assert getattr(with_clusters, name) != getattr(without, name), name
    assert with_clusters.fixed_words_p_floor == pytest.approx(1 / 252)
    assert without.fixed_words_p_floor == pytest.approx(1 / 924)
    assert without.clusters == {}


def test_a_run_gives_the_numbers_of_tables_averaged_by_hand() -> None:
    result = measured(CLUSTERS)
    unit = {role: (v := vectors(role)) / np.linalg.norm(v, axis=1, keepdims=True) for role in WORDS}

    def mean(role: str) -> np.ndarray:
        names = labels(role)
        rows = [[i for i, name in enumerate(names) if name == one] for one in dict.fromkeys(names)]
        return np.stack([unit[role][of].mean(axis=0) for of in rows])

    x, y, a, b = (mean(role) for role in "XYAB")
    expected = crossed_test(np.vstack([x, y]) @ np.vstack([a, b]).T, len(x), len(a))
    assert (result.cosine_difference, result.p_value) == pytest.approx((expected.D, expected.p_value), rel=1e-5)


@pytest.mark.parametrize("how", ["words", "clusters"])
def test_the_function_agrees_with_the_run(how: str) -> None:
    result = measured(CLUSTERS)
    own: Any = tuple(labels(role) for role in "XYAB")
    found = biassay.weat(*(vectors(role) for role in "XYAB"), **{how: own})
    assert found.crossed is not None
    assert found.crossed.p_value == pytest.approx(result.p_value, rel=1e-5)
    assert found.effect_size_by_word == pytest.approx(result.effect_size, rel=1e-5)
    assert found.p_value_by_word == pytest.approx(result.fixed_words_p_value)


def test_a_word_in_two_clusters_is_an_error() -> None:
    x = np.eye(4) + 0.1
    words, clusters = (["a", "a", "b", "b"], ["c"] * 4), (["one", "two", "b", "b"], ["c"] * 4)
    with pytest.raises(UsageError, match="'a' is in two clusters"):
        biassay.weat(x, x, x[:2], x[2:], words=words, clusters=clusters)


def test_a_whole_cluster_is_left_out_at_once() -> None:
    run = biassay.run("glove", tests=own_test({"B": [["home", "kitchen", "wedding"]]}))
    drivers = {row.driver for row in run.table("diagnostics")}
    assert drivers <= {"home/kitchen/wedding", "children", *(w for role in "XYA" for w in WORDS[role])}


def test_contexts_count_a_cluster_once() -> None:
    rng = np.random.default_rng(1)
    sets = [[rng.normal(size=(6, 4)) + shift for _ in range(4)] for shift in (0.3, 0.0, 0.3, 0.0)]
    sets[0].append(sets[0][0] + 0.01 * rng.normal(size=(6, 4)))
    own = (["a", "b", "c", "d", "a"], *([f"{role}{i}" for i in range(4)] for role in "YAB"))
    found = biassay.ceat(*sets, n_samples=50, rng=0, clusters=own)  # type: ignore[arg-type]
    plain = biassay.ceat(*sets, n_samples=50, rng=0)
    rows = [found.cosines[[0, 4]].mean(axis=0), *found.cosines[[1, 2, 3, 5, 6, 7, 8]]]
    expected = crossed_test(np.stack(rows), 4, 4)
    assert (found.crossed.D, found.crossed.p_value) == pytest.approx((expected.D, expected.p_value))
    assert found.p_value_by_word * 70 == pytest.approx(round(found.p_value_by_word * 70))
    assert (found.effect_size, found.p_value) == (plain.effect_size, plain.p_value)


def test_texts_of_a_word_are_averaged_before_words_of_a_cluster() -> None:
    """A pronoun with three sentences weighs as much as one with a single sentence."""
    rng = np.random.default_rng(0)
    X, Y, A, B = (rng.normal(size=(n, 5)) for n in (5, 4, 3, 3))
    y = ["she", "aunt", "girl", "woman"]
    found = biassay.weat(
        X, Y, A, B, words=(["he", "he", "he", "him", "man"], y), clusters=(["he", "he", "he", "he", "man"], y)
    )
    unit_x, unit_y, unit_a, unit_b = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (X, Y, A, B))
    direction = unit_a.mean(0) - unit_b.mean(0)
    he, man = (unit_x[:3].mean(0) + unit_x[3]) / 2 @ direction, unit_x[4] @ direction
    assert found.crossed is not None
    assert pytest.approx((he + man) / 2 - (unit_y @ direction).mean()) == found.crossed.D
