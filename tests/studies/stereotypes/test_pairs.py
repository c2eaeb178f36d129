"""Paired groups: order, dominance and emergence as loops over the profiles and over the model's answers give them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import kendalltau

from biassay.datasets.abc_model import list_paired_groups
from biassay.errors import UsageError
from biassay.models.registry import open_model
from biassay.prompts.requests import Blank
from biassay.results.run_data import RunSlice
from biassay.runs.run import Run
from biassay.studies.stereotypes.cloze_items import make_cloze, make_prior_cloze

from .asked_models import GROUPS, Place, measures, profiles, save_masked

pytestmark = pytest.mark.extras
Table = dict[tuple[str, str], float]


@pytest.fixture(scope="module")
def place(asked_place: Place) -> Place:
    return asked_place


@pytest.fixture(scope="module")
def found(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return place(human=place.human, intersections=True, cache=tmp_path_factory.mktemp("answers"))


@pytest.fixture(scope="module")
def traits(place: Place, found: Run) -> Table:
    """ILPS of every group and adjective, the mean over the templates chosen, by the first pieces."""
    model = open_model(place.model, "blanks")
    chosen = [t for t in place.abc.templates if t.name in measures(found)[0].row.chosen]
    words = [word for pair in place.abc.pairs for word in (pair.left_adjectives[0], pair.right_adjectives[0])]
    groups = [group for group in place.abc.groups if group.name in GROUPS] + list(list_paired_groups(place.abc))

    texts = {(t.name, "nobody"): make_prior_cloze(t, place.abc) for t in chosen}
    texts |= {(t.name, group.name): make_cloze(t, group) for t in chosen for group in groups}
    log_p: dict[Any, Any] = {}
    for key, filled in zip(texts, model.fill([Blank(text, tuple(words)) for text in texts.values()]), strict=True):
        assert filled.lengths.all()
        firsts = filled.columns[filled.starts, 0].astype(float)
        log_p |= {(*key, word): value for word, value in zip(words, firsts, strict=True)}
    return {
        (group.name, word): float(
            np.mean([log_p[t.name, group.name, word] - log_p[t.name, "nobody", word] for t in chosen])
        )
        for group in groups
        for word in words
    }


def parts_of(found: Run, measure: int = 0) -> dict[str, tuple[str, ...]]:
    return {p.group: p.parts for p in measures(found)[measure]["profiles"] if p.parts}


def crossings(found: Run) -> list[tuple[RunSlice, dict[str, np.ndarray]]]:
    return [(measure, profiles(measure)) for measure in measures(found)]


def tau(one: np.ndarray, other: np.ndarray) -> float:
    return float(kendalltau(one, other).statistic)


def test_pairs_are_made_in_both_orders_where_english_has_them(found: Run, place: Place) -> None:
    parts = parts_of(found)
    lands, crafts = ("north", "south", "east"), ("baker", "smith", "miller")
    expected = {(land, craft) for land in lands for craft in crafts}
    expected |= {(craft, land) for land in lands for craft in ("baker", "miller")}  # smith is no modifier
    assert set(parts.values()) == expected
    assert parts["northern baker"] == ("north", "baker")
    assert parts["baking northern person"] == ("baker", "north")
    assert [row.num_groups for row in found.tables["orders"]] == [15] * 3
    assert [row.measure for row in found.tables["orders"]] == ["ilps", "ilps-star", "set"]
    asked = len(GROUPS) + 15 + 1
    assert found.tables["models"][0].num_asked == asked * 4 * 2 * len(place.abc.pairs)


def test_dominance_is_the_difference_of_mean_taus(found: Run) -> None:
    parts, lands = parts_of(found), ("north", "south", "east")
    for crossed, scores in crossings(found):
        (row,) = crossed["dominance"]
        of_land = [tau(scores[n], scores[next(p for p in of if p in lands)]) for n, of in parts.items()]
        of_craft = [tau(scores[n], scores[next(p for p in of if p not in lands)]) for n, of in parts.items()]
        assert (row.domain_a, row.domain_b, row.num_pairs) == ("land", "craft", 15)
        assert (row.tau_a, row.tau_b) == pytest.approx((np.mean(of_land), np.mean(of_craft)))
        gap = np.mean(of_land) - np.mean(of_craft)
        assert row.effect_size == pytest.approx(gap)
        assert row.dominates_by_margin == ("land" if gap >= 0.1 else "craft" if gap <= -0.1 else None)
        assert row.ci_low is not None
        low, high = row.ci_low, row.ci_high
        assert low <= gap <= high
        assert row.dominates == ("land" if low > 0.0 else "craft" if high < 0.0 else None)


def excesses(traits: Table, parts: dict[str, tuple[str, ...]]) -> dict[tuple[str, str, str], float]:
    found = {}
    for group, word in traits:
        if group in parts:
            own, (one, other) = traits[group, word], (traits[part, word] for part in parts[group])
            found[group, word, "more"] = own - max(one, other)
            found[group, word, "less"] = min(one, other) - own
    return found


def test_emergent_traits_are_those_that_exceed_both_groups_most(found: Run, traits: Table) -> None:
    """Tolerance: answers in other batches differ in the last digits of float32."""
    crossed, parts = measures(found)[0], parts_of(found)
    expected = excesses(traits, parts)
    assert len(crossed["emergent"]) == 50
    largest = sorted(expected.values(), reverse=True)[:50]
    assert [e.effect_size for e in crossed["emergent"]] == pytest.approx(largest, abs=5e-6)
    for e in crossed["emergent"]:
        assert e.parts == parts[e.group]
        assert e.effect_size == pytest.approx(expected[e.group, e.trait, e.direction], abs=5e-6)
        sides = [traits[part, e.trait] for part in e.parts]
        assert e.bound == pytest.approx(max(sides) if e.direction == "more" else min(sides), abs=5e-6)
    assert len({(e.group, e.trait, e.direction) for e in crossed["emergent"]}) == 50


def test_groups_of_one_domain_are_paired_with_all_others(place: Place) -> None:
    one = place(groups=["south"], intersections=True, measures="ilps")
    assert [p.group for p in one.tables["profiles"] if not p.parts] == ["south"]
    assert {frozenset(parts) for parts in parts_of(one).values()} == {
        frozenset(("south", craft)) for craft in ("smith", "miller", "baker")
    }
    (row,) = one.tables["dominance"]
    assert (row.ci_low, row.ci_high, row.dominates) == (None, None, None)  # one land says nothing about others


def test_an_unknown_adjective_is_left_out_of_paired_groups(
    place: Place, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("model")
    model = f"hf:{save_masked(folder / 'm', place.abc, without=('witty', '##less'))}"
    found = place(model, measures="ilps", intersections=True)
    assert found.tables["models"][0].unknown_adjectives == ("powerless", "witty")
    assert not {"powerless", "witty"} & {e.trait for e in found.tables["emergent"]}
    assert found.tables["orders"][0].tau_first is not None


def test_groups_that_cannot_be_paired_are_refused(place: Place) -> None:
    with pytest.raises(UsageError, match=r"the chosen groups cannot be paired \(Asian, teenager\)"):
        place(groups=["Asian", "teenager"], intersections=True, measures="ilps")
