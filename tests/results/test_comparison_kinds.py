"""Stereotypes and discoveries of models side by side: scipy's tau and sets of words as witnesses."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.pipeline.asked_models import Place, save_masked
from tests.report.publish_runs import measured_in_contexts

import biassay
from biassay.errors import UnknownNameError, UsageError
from biassay.results.comparison import compare
from biassay.results.discovery import Discovery
from biassay.results.records import FORMAT_VERSION, ModelRecord
from biassay.results.run import Run
from biassay.results.stereotypes import (
    MeasureRecord,
    ModelStereotypes,
    ProfileRecord,
    StereotypeManifest,
    Stereotypes,
)

FEMALES, MALES = "african-american-females", "european-american-males"


# ---- stereotypes


def measure(name: str, scores: np.ndarray, human: np.ndarray | None, groups: list[str] | None = None) -> MeasureRecord:
    """Profiles of groups; a score that is NaN was not computed. The last profile is of a paired group."""
    named = groups or [f"g{i}" for i in range(len(scores))]

    def values(line: np.ndarray) -> tuple[float | None, ...]:
        return tuple(None if math.isnan(v) else float(v) for v in line)

    profiles = tuple(
        ProfileRecord(group, "d", (), values(scores[i]), None if human is None else values(human[i]))
        for i, group in enumerate(named)
    )
    pair = ProfileRecord("g0 g1", "d", ("g0", "g1"), values(scores[0]), values(scores[0]))
    return MeasureRecord(name, (), (), (), (*profiles, pair), (), 0)


def asked(model: str, *measures: MeasureRecord, options: str = "") -> ModelStereotypes:
    return ModelStereotypes(model, options, "masked", "paper", measures, (), (), (), (), 0, 0, 0)


def stereotypes(*models: ModelStereotypes, **given: Any) -> Stereotypes:
    texts = ("abc", "abc_digest", "citation", "licence", "variant", "prior")
    fields: dict[str, Any] = dict.fromkeys(texts, "as given") | {"pairs": ("a", "b", "c", "d"), "dimensions": {}}
    fields |= {"groups": ("g0", "g1"), "templates": {}, "measures": ("ilps",), "all_adjectives": False}
    fields |= {"human": "human.json", "human_notes": (), "notes": (), "draws": 9, "ceiling": None, "seed": 0}
    fields |= {"format_version": FORMAT_VERSION, "run_id": " ".join(m.model for m in models), "status": "complete"}
    fields |= {"created": "then", "finished": "now", "versions": {}, "kind": "stereotypes"}
    fields["models"] = tuple(ModelRecord(m.model, m.model, "hf", None, {}) for m in models)
    return Stereotypes(StereotypeManifest(**fields | given), models)


def scores(seed: int, lost: tuple[tuple[int, int], ...] = (), groups: int = 6) -> np.ndarray:
    made = np.random.default_rng(seed).normal(size=(groups, 4))
    for cell in lost:
        made[cell] = math.nan
    return made


def test_agreement_with_people_is_scipys_tau_over_the_cells_in_common() -> None:
    human = np.round(scores(0, ((2, 2),)) * 50)
    sides = {m: (scores(1, ((0, 0),)), scores(2, ((5, 3), (0, 0)))) for m in ("ilps", "set")}
    runs = {
        place: stereotypes(asked(name, *(measure(m, sides[m][i], human) for m in ("ilps", "set"))))
        for i, (place, name) in enumerate((("a", "m"), ("b", "n")))
    }
    found = compare(runs)
    assert (found.baseline, found.associations, found.words, found.gathered) == ("m", (), (), None)
    assert [(r.measure, r.model) for r in found.agreements] == [("ilps", "n"), ("set", "n")]
    for r in found.agreements:
        one, other = sides[r.measure]
        kept = ~np.isnan(one + other + human)
        a, b = (stats.kendalltau(side[kept], human[kept]).statistic for side in (one, other))
        assert (r.tau_baseline, r.tau_model, r.difference) == pytest.approx((a, b, b - a))
        assert r.tau_between == pytest.approx(stats.kendalltau(one[kept], other[kept]).statistic)
        assert (r.num_groups, r.num_cells) == (6, 21)
        assert r.interval_low is not None
        assert r.interval_high is not None
        assert r.interval_low < r.difference < r.interval_high  # type: ignore[operator]


def test_groups_and_measures_that_one_model_lacks_are_left_out() -> None:
    human = scores(0)
    names = [f"g{i}" for i in range(6)]
    one = asked("m", measure("ilps", scores(1), human), measure("set", scores(2), human))
    turned = measure("ilps", scores(3)[::-1][:4], human[::-1][:4], names[::-1][:4])
    (r,) = compare({"a": stereotypes(one), "b": stereotypes(asked("n", turned))}).agreements
    assert (r.measure, r.num_groups) == ("ilps", 4)
    expected = stats.kendalltau(scores(3)[2:].ravel(), human[2:].ravel()).statistic
    assert r.tau_model == pytest.approx(expected)
    expected = stats.kendalltau(scores(1)[2:].ravel(), human[2:].ravel()).statistic
    assert r.tau_baseline == pytest.approx(expected)


def test_scores_that_leave_tau_undefined_are_none() -> None:
    human = scores(0)
    one = asked("m", measure("ilps", np.ones((6, 4)), human))
    (r,) = compare({"a": stereotypes(one), "b": stereotypes(asked("n", measure("ilps", scores(1), human)))}).agreements
    assert (r.tau_baseline, r.difference, r.interval_low, r.interval_high, r.tau_between) == (None,) * 5
    assert r.tau_model == pytest.approx(stats.kendalltau(scores(1).ravel(), human.ravel()).statistic)


def test_scores_without_a_common_cell_are_none_and_no_error() -> None:
    human = scores(0)
    half = np.arange(24).reshape(6, 4) % 2 == 0
    sides = [np.where(mask, scores(1), math.nan) for mask in (half, ~half)]
    runs = {
        name: stereotypes(asked(name, measure("ilps", side, human))) for name, side in zip("mn", sides, strict=True)
    }
    (r,) = compare(runs).agreements
    assert (r.tau_baseline, r.tau_model, r.difference, r.interval_low, r.tau_between) == (None,) * 5
    assert (r.num_groups, r.num_cells) == (0, 0)


def test_stereotypes_of_one_model_in_two_runs_are_told_apart() -> None:
    human = scores(0)
    runs = {
        name: stereotypes(asked("m", measure("ilps", scores(i), human)), run_id=name) for i, name in enumerate("ab")
    }
    found = compare(runs)
    assert (found.baseline, [r.model for r in found.agreements]) == ("m [a]", ["m [b]"])


def test_no_model_of_a_run_is_lost_where_labels_are_the_same() -> None:
    """Two checkpoints of one name, or a model that is masked and causal: their settings need not show."""
    human = scores(0)
    first, again, other = (measure("ilps", scores(i), human) for i in (1, 2, 3))
    run = stereotypes(asked("m", first, options="head=masked"), asked("m", again, options="head=causal"))
    found = compare({"a": run, "b": stereotypes(asked("n", other))}, baseline="n")
    taus = {r.tau_model for r in found.agreements}
    assert len(taus) == 2
    assert len({r.model for r in found.agreements}) == 2


@pytest.mark.parametrize("field", ["variant", "prior", "human", "abc_digest", "all_adjectives"])
def test_stereotypes_made_otherwise_are_refused_unless_mixed(field: str) -> None:
    human = scores(0)
    runs = {
        "old": stereotypes(asked("m", measure("ilps", scores(1), human))),
        "new": stereotypes(asked("n", measure("ilps", scores(2), human)), **{field: "another"}),
    }
    before = getattr(runs["old"].manifest, field)
    with pytest.raises(UsageError, match="cannot be compared") as refused:
        compare(runs)
    assert f"{before} in old, another in new" in str(refused.value)
    assert "--mixed" in str(refused.value)
    found = compare(runs, mixed=True)
    assert len(found.agreements) == 1
    (note,) = found.notes
    assert note.endswith(f"{before} in old, another in new")


def test_other_pairs_of_traits_cannot_be_mixed() -> None:
    human = scores(0)
    runs = {
        "a": stereotypes(asked("m", measure("ilps", scores(1), human))),
        "b": stereotypes(asked("n", measure("ilps", scores(2), human)), pairs=("a", "b", "d", "c")),
    }
    with pytest.raises(UsageError, match="other pairs of traits"):
        compare(runs, mixed=True)


def test_stereotypes_of_one_model_or_an_unknown_baseline_are_refused() -> None:
    human = scores(0)
    one = stereotypes(asked("first", measure("ilps", scores(1), human)))
    with pytest.raises(UsageError, match=r"one model only \(first\)"):
        compare({"a": one})
    two = stereotypes(asked("second", measure("ilps", scores(2), human)))
    with pytest.raises(UnknownNameError, match="did you mean 'second'"):
        compare({"a": one, "b": two}, baseline="secnd")


def test_stereotypes_without_judgements_have_nothing_to_compare() -> None:
    """As with tests, of which the models must have one in common: an empty comparison says nothing."""
    runs = {
        name: stereotypes(asked(name, measure("ilps", scores(seed), None)), human=None)
        for seed, name in enumerate(("m", "n"))
    }
    with pytest.raises(UsageError, match="judgements"):
        compare(runs)


def test_copies_of_a_run_of_stereotypes_are_refused() -> None:
    one = stereotypes(asked("m", measure("ilps", scores(1), scores(0))))
    with pytest.raises(UsageError, match="copies of one run"):
        compare({"a": one, "b": one})


@pytest.mark.extras
def test_real_models_that_were_asked_are_compared_over_what_the_records_hold(
    asked_place: Place, tmp_path: Path
) -> None:
    other = f"hf:{save_masked(tmp_path / 'other', asked_place.abc, seed=6)}"
    one, two = asked_place(human=asked_place.human), asked_place(other, human=asked_place.human)
    found = compare({"a": one, "b": two})
    measures = {m.measure: m for m in one.results[0].measures}
    theirs = {m.measure: m for m in two.results[0].measures}
    assert [r.measure for r in found.agreements] == list(measures)
    for r in found.agreements:
        lines = [
            (p.scores, q.scores, p.human)
            for p, q in zip(measures[r.measure].profiles, theirs[r.measure].profiles, strict=True)
            if p.human and p.group not in ("north", "baker")  # the pilot, on which templates were chosen
        ]
        cells = [c for line in lines for c in zip(*line, strict=True) if None not in c]  # type: ignore[arg-type]
        a, b, people = map(np.array, zip(*cells, strict=True))
        assert (r.num_groups, r.num_cells) == (3, len(cells)) == (3, 48)
        assert r.tau_baseline == pytest.approx(stats.kendalltau(a, people).statistic)
        assert r.tau_model == pytest.approx(stats.kendalltau(b, people).statistic)
        assert r.tau_between == pytest.approx(stats.kendalltau(a, b).statistic)
        assert r.tau_baseline == pytest.approx(measures[r.measure].alignments[0].tau)
    content = json.loads(found.to_json())
    assert content["agreements"] == [dataclasses.asdict(r) for r in found.agreements]
    assert content["results"] == []


# ---- discoveries


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Discovery:
    """Two of every three words that were kept are tied to the group, and no others."""
    cache = tmp_path_factory.mktemp("vectors")
    found = biassay.discover("glove", [FEMALES, MALES], permutations=199, alpha=0.5, keep=150, cache=cache)
    results = []
    for group in found.results:
        told = tuple(dataclasses.replace(w, associated=i % 3 != 2) for i, w in enumerate(group.words))
        results.append(dataclasses.replace(group, words=told, num_associated=sum(w.associated for w in told)))
    return Discovery(found.manifest, tuple(results))


def other_words(found: Discovery, seed: int = 1, **given: Any) -> Discovery:
    """Another model that ties about half of the words, and some others, to the groups."""
    rng = np.random.default_rng(seed)
    results = []
    for group in found.results:
        told = tuple(dataclasses.replace(w, associated=bool(rng.random() < 0.5)) for w in group.words)
        results.append(dataclasses.replace(group, words=told, num_associated=sum(w.associated for w in told)))
    models = (dataclasses.replace(found.manifest.models[0], name="other"),)
    manifest = dataclasses.replace(found.manifest, **{"run_id": "other", "models": models} | given)
    return Discovery(manifest, tuple(results))


def tied(found: Discovery, group: str) -> set[str]:
    return {w.word for g in found.results if g.group == group for w in g.words if w.associated}


def test_words_are_shared_as_sets_are(words: Discovery) -> None:
    other = other_words(words)
    found = compare({"a": words, "b": other})
    assert (found.baseline, found.associations, found.agreements) == ("glove", (), ())
    assert [(r.group, r.model) for r in found.words] == [(FEMALES, "other"), (MALES, "other")]
    for r in found.words:
        mine, theirs = tied(words, r.group), tied(other, r.group)
        assert all((r.both, r.only_baseline, r.only_model))
        assert (set(r.both), set(r.only_baseline), set(r.only_model)) == (mine & theirs, mine - theirs, theirs - mine)
        assert len({*r.both, *r.only_baseline, *r.only_model}) == len(r.both) + len(r.only_baseline) + len(r.only_model)
        ranked = [w.word for w in words.of(r.group).words]
        assert sorted(r.both, key=ranked.index) == list(r.both)
    content = json.loads(found.to_json())
    assert content["words"] == [dataclasses.asdict(r) | {"both": [*r.both], "only_baseline": [*r.only_baseline],
                                "only_model": [*r.only_model]} for r in found.words]  # fmt: skip


def test_a_named_baseline_turns_the_words(words: Discovery) -> None:
    runs = {"a": words, "b": other_words(words)}
    for r, turned in zip(compare(runs).words, compare(runs, baseline="other").words, strict=True):
        assert (set(r.only_baseline), set(r.only_model)) == (set(turned.only_model), set(turned.only_baseline))
        assert (turned.baseline, turned.model) == ("other", "glove")


def test_words_that_were_not_kept_are_not_said_to_be_another_models_alone(words: Discovery) -> None:
    """The same model and settings, of which one run has kept fewer words: nothing differs between the two."""
    cut = tuple(dataclasses.replace(group, words=group.words[:5]) for group in words.results)
    manifest = dataclasses.replace(words.manifest, run_id="cut", keep=5)
    try:
        found = compare({"a": words, "b": Discovery(manifest, cut)})
    except UsageError as refused:
        assert "kept" in str(refused)  # noqa: PT017
        return
    for r in found.words:
        assert (r.only_baseline, r.only_model) == ((), ())


def test_groups_that_one_run_lacks_are_left_out(words: Discovery) -> None:
    other = other_words(words)
    some = Discovery(other.manifest, other.results[1:])
    assert [r.group for r in compare({"a": words, "b": some}).words] == [MALES]


def test_discoveries_without_a_group_in_common_have_nothing_to_compare(words: Discovery) -> None:
    other = other_words(words)
    with pytest.raises(UsageError, match="in common"):
        compare({"a": Discovery(words.manifest, words.results[:1]), "b": Discovery(other.manifest, other.results[1:])})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("grouping_digest", "another"),
        ("vocabulary_digest", "another"),
        ("threshold", 0.25),
        ("rule", "another"),
        ("compare", "another"),
        ("alpha", 0.25),
        ("permutations", 7),
        ("positive_only", "another"),
    ],
)
def test_discoveries_made_otherwise_are_refused_unless_mixed(words: Discovery, field: str, value: Any) -> None:
    runs = {"old": words, "new": other_words(words, **{field: value})}
    before = getattr(words.manifest, field)
    with pytest.raises(UsageError, match="cannot be compared") as refused:
        compare(runs)
    assert f"{before} in old, {value} in new" in str(refused.value)
    assert "--mixed" in str(refused.value)
    found = compare(runs, mixed=True)
    assert len(found.words) == 2
    (note,) = found.notes
    assert note.endswith(f"{before} in old, {value} in new")


def test_discoveries_of_one_model_in_two_runs_are_told_apart(words: Discovery) -> None:
    again = Discovery(dataclasses.replace(words.manifest, run_id="again"), words.results)
    found = compare({"a": words, "b": again})
    assert (found.baseline, {r.model for r in found.words}) == ("glove [a]", {"glove [b]"})
    for r in found.words:
        assert set(r.both) == tied(words, r.group)
        assert (r.only_baseline, r.only_model) == ((), ())


def test_copies_of_a_discovery_are_refused(words: Discovery) -> None:
    with pytest.raises(UsageError, match="copies of one run"):
        compare({"a": words, "b": words})


def test_a_single_discovery_is_refused(words: Discovery) -> None:
    with pytest.raises(UsageError, match=r"one model only \(glove\)"):
        compare({"a": words})


# ---- kinds


def test_runs_of_different_kinds_are_refused_even_if_mixed(first: Run, words: Discovery) -> None:
    asked_one = stereotypes(asked("m", measure("ilps", scores(1), scores(0))))
    over_contexts = measured_in_contexts(("one",))
    kinds = {
        "associations over texts": first,
        "associations over contexts": over_contexts,
        "discovery": words,
        "stereotypes": asked_one,
    }
    for name, one in kinds.items():
        for other_name, other in kinds.items():
            if name == other_name:
                continue
            with pytest.raises(UsageError, match="different kinds") as refused:
                compare({"a": one, "b": other}, mixed=True)
            assert name in str(refused.value)
            assert other_name in str(refused.value)


def test_nothing_is_refused() -> None:
    with pytest.raises(UsageError):
        compare({})
