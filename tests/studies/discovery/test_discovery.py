"""``biassay.discover`` on made-up vectors with planted words: every number against loops in the test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import biassay
from biassay.errors import UsageError
from biassay.studies.discovery.results import get_group_view, list_group_views

from . import planted_words as made_up
from .planted_words import EACH, NAMES, TABLE, WORDS, discovered, numbers, planted, write_groups


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return planted(tmp_path_factory.mktemp("discovery"))


@pytest.fixture(scope="module")
def found(place: Path) -> biassay.Run:
    return discovered(place, ["red-women", "blue-men"])


def test_every_score_is_that_of_a_loop(found: biassay.Run) -> None:
    for findings in list_group_views(found):
        group = findings.row.group
        assert sorted(w.word for w in findings.words) == sorted(WORDS)
        for word in findings.words:
            scores = [made_up.score(word.word, NAMES[group], other) for other in made_up.others_of(group)]
            parts = [made_up.score(word.word, *sides) for sides in made_up.constituents_of(group)]
            assert list(word.scores.values()) == pytest.approx(scores, abs=1e-9)
            assert list(word.constituents.values()) == pytest.approx(parts, abs=1e-9)
            assert word.effect_size == max(word.scores.values())
        ranked = [word.effect_size or 0.0 for word in findings.words]
        assert ranked == sorted(ranked, reverse=True)
    first = get_group_view(found, "red-women").row
    assert first.other_groups == tuple(found.results[0].scores) == ("red-men", "blue-women", "blue-men")
    assert first.constituents == tuple(found.results[0].constituents) == ("colour: red / blue", "gender: women / men")
    assert first.belongs == {"colour": "red", "gender": "women"}


def test_planted_words_are_found_and_random_ones_are_not(place: Path) -> None:
    findings = get_group_view(discovered(place, threshold=1.3), "red-women")
    associated = {w.word for w in findings.words if w.associated}
    assert associated >= {f"{kind}{i}" for kind in ("blossom", "red") for i in range(EACH)}
    assert not [word for word in associated if word.startswith(("random", "hammer"))]
    eibd, emergent = ({w.word for w in findings.words if getattr(w, name)} for name in ("eibd", "emergent"))
    assert emergent >= {f"blossom{i}" for i in range(EACH)}
    assert not [word for word in eibd if word.startswith("red")]
    excess = {w.word for w in findings.words if (w.excess_p_adjusted or 0.0) <= 0.05}
    assert excess >= {f"blossom{i}" for i in range(EACH)}
    assert not [word for word in excess if word.startswith("red")]
    assert findings.row.n_associated == len(associated)
    assert emergent == eibd & excess
    assert (findings.row.n_eibd, findings.row.n_emergent) == (len(eibd), len(emergent))


def test_a_file_a_list_of_words_and_an_object_find_the_same(found: biassay.Run, place: Path) -> None:
    both = ["red-women", "blue-men"]
    (place / "words.txt").write_text("\n".join([*TABLE, "", "random0", "  blossom0 "]), encoding="utf-8-sig")
    listed = discovered(place, both, words=list(TABLE))
    lines = discovered(place, both, words=place / "words.txt")
    held = biassay.discover(
        made_up.Held(), both, grouping=place / "own.toml", n_permutations=499, words=list(TABLE), cache=place / "cache"
    )
    for other in (listed, lines, held):
        assert numbers(other) == numbers(found)
    sources = [d.tables["models"][0].vocabulary for d in (found, listed, lines, held)]
    assert sources == ["the words of the model", "a list of words", str(place / "words.txt"), "a list of words"]
    assert held.manifest.models[0].revision is None


@pytest.mark.parametrize(("keep", "compare"), [(1, "any"), (2, "any"), (20, "any"), (2, "every")])
def test_fewer_kept_words_are_the_best_of_each_list(keep: int, compare: Any, place: Path) -> None:
    (all_words,), (few,) = (
        list_group_views(discovered(place, threshold=1.0, keep=k, compare=compare)) for k in (1000, keep)
    )
    passing = [w for w in all_words.words if (w.effect_size or 0.0) > 1.0 >= max(w.constituents.values())]
    passing.sort(key=lambda w: w.excess_p_value)  # type: ignore[arg-type, return-value]  # so that a list of emergent words is whole while it is short
    best = [w for i, w in enumerate(all_words.words) if i < keep or w in passing[:keep]]
    assert list(few.words) == best
    assert 0 < len(best) < len(all_words.words)
    for count in ("n_words", "n_above", "n_associated", "n_every", "n_eibd", "n_emergent"):
        assert getattr(few.row, count) == getattr(all_words.row, count)


@pytest.mark.parametrize("compare", ["any", "every"])
@pytest.mark.parametrize("rule", ["any", "all"])
@pytest.mark.parametrize("threshold", [0.4, 1.0, None])
def test_words_marked_are_those_above_the_threshold_by_more_than_chance(
    compare: Any, rule: Any, threshold: float | None, place: Path, tmp_path: Path
) -> None:
    unrated = write_groups(tmp_path / "unrated.toml", {})
    given = {"rule": rule, "compare": compare, "threshold": threshold, "alpha": 0.1}
    (findings,) = list_group_views(discovered(place, grouping=unrated, **given))
    row = findings.row
    t = 0.8 if threshold is None else threshold
    assert findings.curves == findings.validated == ()
    assert row.threshold == row.threshold_emergent == t
    assert row.threshold_source == ("convention" if threshold is None else "given")
    combined, decides = any if rule == "any" else all, max if compare == "any" else min
    for word in findings.words:
        assert word.effect_size == decides(word.scores.values())
        associated = decides(word.scores.values()) > t and word.p_adjusted <= 0.1
        assert word.associated is associated
        assert word.eibd is (associated and not combined(part > t for part in word.constituents.values()))
        assert word.emergent is (word.eibd and word.excess_p_adjusted <= 0.1)
    assert row.n_eibd == sum(word.eibd for word in findings.words)
    assert row.n_emergent == sum(word.emergent for word in findings.words)
    assert row.n_eibd > 0 or compare == "every"
    assert row.n_associated == sum(word.associated for word in findings.words) > 0
    assert row.n_above == sum(decides(word.scores.values()) > t for word in findings.words) >= row.n_associated
    assert row.n_every == sum(word.associated and min(word.scores.values()) > t for word in findings.words)
    assert (row.n_every == row.n_associated) is (compare == "every")


def test_against_every_group_only_words_of_this_group_are_found(place: Path) -> None:
    """Words of a colour are close to both groups of that colour: the largest score is high, and the smallest is not."""
    one, every = (discovered(place, threshold=0.5, compare=compare) for compare in ("any", "every"))
    blossoms = {f"blossom{i}" for i in range(EACH)}
    assert {w.word for w in one.results if w.associated} >= blossoms | {f"red{i}" for i in range(EACH)}
    assert {w.word for w in every.results if w.associated} == blossoms
    ranked = [word.effect_size for word in every.results]
    assert ranked == sorted(ranked, reverse=True)
    excess = [{w.word: w.excess_p_value for w in made.results} for made in (one, every)]
    assert excess[0] == excess[1]
    alone, among = (discovered(place, groups, compare="every") for groups in ("red-women", ["blue-men", "red-women"]))
    assert numbers(alone) == numbers(among["red-women"])


def test_groups_of_one_category_have_words_and_no_emergent_ones(place: Path, tmp_path: Path) -> None:
    """What is associated does not depend on the categories, so that it is that of the same groups in two."""
    tables = (
        f'[groups.{g}]\nbelongs = {{ kind = "{g}" }}\nnames = {json.dumps(names)}\n' for g, names in NAMES.items()
    )
    (tmp_path / "one.toml").write_text("\n".join(tables))
    one = discovered(place, grouping=tmp_path / "one.toml", threshold=1.3)
    two = discovered(place, threshold=1.3)
    kept = ("word", "scores", "effect_size", "p_value", "p_adjusted", "associated")
    first, second = ([[getattr(word, name) for name in kept] for word in run.results] for run in (one, two))
    assert first == second
    assert one.tables["groups"][0].n_associated == two.tables["groups"][0].n_associated > 0
    assert two.tables["groups"][0].n_emergent > 0
    for word in one.results:
        assert (word.eibd, word.emergent, word.excess_p_value, word.excess_p_adjusted) == (False, False, 1.0, 1.0)
    assert one.tables["groups"][0].n_eibd == one.tables["groups"][0].n_emergent == 0
    assert one.findings()[0].evidence == two.findings()[0].evidence == "significant"
    assert one.report(tmp_path / "page.html").stat().st_size > 0
    with pytest.raises(UsageError, match="one category"):
        discovered(place, grouping=tmp_path / "one.toml", rule="all")
