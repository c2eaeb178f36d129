"""Models side by side: effect sizes from single words in loops, scipy's tau, sets of words and `biassay.holm` as
witnesses."""

from __future__ import annotations

import dataclasses
import json
import math
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.pipeline.asked_models import Place, save_masked
from tests.report.publish_runs import as_refused, measured_in_contexts

import biassay
from biassay.errors import UnknownNameError, UsageError
from biassay.results.comparison import AssociationDifference, Comparison, compare
from biassay.results.discovery import Discovery
from biassay.results.records import FORMAT_VERSION, ModelRecord, Result
from biassay.results.run import Run, with_corrections
from biassay.results.stereotypes import (
    MeasureRecord,
    ModelStereotypes,
    ProfileRecord,
    StereotypeManifest,
    Stereotypes,
)
from biassay.stats.effect_interval import difference_interval

TESTS = ("weat6", "weat7", "weat8", "sent-weat6")
FEMALES, MALES = "african-american-females", "european-american-males"


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return biassay.run("glove", tests=list(TESTS), cache=tmp_path_factory.mktemp("vectors"))


@pytest.fixture(scope="module")
def second(first: Run) -> Run:
    return other_model(first, "second", 1)


@pytest.fixture(scope="module")
def third(first: Run) -> Run:
    return other_model(first, "third", 2)


def other_model(run: Run, name: str, seed: int, **given: Any) -> Run:
    """The same tests with other associations of the words and other p-values; ``given`` changes the manifest."""
    rng = np.random.default_rng(seed)
    spread = {r.test: float(np.std([*r.leaning["X"].values(), *r.leaning["Y"].values()])) for r in run.results}
    results = tuple(
        dataclasses.replace(
            r,
            model=name,
            leaning={
                role: {w: value + spread[r.test] * rng.normal() for w, value in words.items()}
                for role, words in r.leaning.items()
            },
            p_value=float(rng.random() ** 6),
            p_value_by_word=float(rng.random() ** 6),
        )
        for r in run.results
    )
    models = tuple(dataclasses.replace(record, name=name) for record in run.manifest.models)
    manifest = dataclasses.replace(run.manifest, **{"run_id": name, "models": models} | given)
    return Run(manifest, with_corrections(results, manifest.alpha))


def edited(run: Run, test: str, **given: Any) -> Run:
    """With other values in one result."""
    changed = (dataclasses.replace(r, **given) if r.test == test else r for r in run.results)
    return dataclasses.replace(run, results=tuple(changed))


def without(run: Run, *tests: str) -> Run:
    return dataclasses.replace(run, results=tuple(r for r in run.results if r.test not in tests))


def of(run: Run, test: str) -> Result:
    (found,) = [r for r in run.results if r.test == test]
    return found


def row(found: Comparison, test: str) -> AssociationDifference:
    (one,) = [r for r in found.associations if r.test == test]
    return one


def effect(result: Result, words: dict[str, list[str]]) -> float:
    """(mean of X less mean of Y) / spread of all, by the book."""
    x, y = ([result.leaning[role][word] for word in words[role]] for role in ("X", "Y"))
    return (statistics.fmean(x) - statistics.fmean(y)) / statistics.stdev([*x, *y])


def in_common(one: Result, other: Result) -> dict[str, list[str]]:
    return {role: [w for w in one.leaning[role] if w in other.leaning[role]] for role in ("X", "Y")}


# ---- association tests


def test_differences_are_those_of_the_words_in_common(first: Run, second: Run, third: Run) -> None:
    lacking = of(second, "weat7").leaning
    second = edited(second, "weat7", leaning={**lacking, "X": dict(list(lacking["X"].items())[2:])})
    found = compare({"a": first, "b": second, "c": third})
    assert (found.baseline, found.confidence, found.notes) == ("glove", 0.95, ())
    assert [(r.model, r.test) for r in found.associations] == [(m, t) for m in ("second", "third") for t in TESTS]
    for r in found.associations:
        one, other = of(first, r.test), of(second if r.model == "second" else third, r.test)
        words = in_common(one, other)
        assert (r.effect_baseline, r.effect_model) == pytest.approx((effect(one, words), effect(other, words)))
        assert r.difference == pytest.approx(effect(other, words) - effect(one, words))
        assert (r.baseline, r.title, r.reason) == ("glove", one.title, None)
        assert (r.num_targ1, r.num_targ2) == (len(words["X"]), len(words["Y"]))
    assert [(r.num_targ1, r.num_targ2) for r in found.associations if r.test == "weat7"] == [(6, 8), (8, 8)]


def test_of_all_words_the_effect_size_is_that_by_word(first: Run, second: Run) -> None:
    for r in compare({"a": first, "b": second}).associations:
        assert r.effect_baseline == pytest.approx(of(first, r.test).effect_size_by_word)


def test_simultaneous_intervals_are_paired_ones_of_more_confidence(first: Run, second: Run, third: Run) -> None:
    found = compare({"a": first, "b": second, "c": third})
    shares = len(found.associations)
    assert shares == 8
    for r in found.associations:
        one, other = of(first, r.test), of(second if r.model == "second" else third, r.test)
        numbers = [list(result.leaning[role].values()) for result in (one, other) for role in ("X", "Y")]
        paired, wider = (difference_interval(*numbers, confidence=c) for c in (0.95, 1 - 0.05 / shares))
        assert (r.interval_low, r.interval_high) == (paired.low, paired.high)
        assert (r.simultaneous_low, r.simultaneous_high) == (wider.low, wider.high)
        assert r.simultaneous_low < r.interval_low < r.difference < r.interval_high < r.simultaneous_high  # type: ignore[operator]


def test_of_a_single_difference_both_intervals_are_the_same(first: Run, second: Run) -> None:
    others = [t for t in TESTS if t != "weat6"]
    (r,) = compare({"a": without(first, *others), "b": without(second, *others)}).associations
    assert (r.simultaneous_low, r.simultaneous_high) == pytest.approx((r.interval_low, r.interval_high))


def test_the_first_model_is_the_baseline_unless_another_is_named(first: Run, second: Run, third: Run) -> None:
    runs = {"a": first, "b": second, "c": third}
    assert compare(runs).baseline == "glove"
    assert compare(dict(reversed(runs.items()))).baseline == "third"
    found = compare(runs, baseline="second")
    assert (found.baseline, {r.baseline for r in found.associations}) == ("second", {"second"})
    assert list(dict.fromkeys(r.model for r in found.associations)) == ["glove", "third"]


def test_another_baseline_turns_the_difference(first: Run, second: Run) -> None:
    runs = {"a": first, "b": second}
    for one, turned in zip(compare(runs).associations, compare(runs, baseline="second").associations, strict=True):
        assert (one.difference, one.effect_model) == (-(turned.difference or 0.0), turned.effect_baseline)
        ends = (one.interval_low, one.interval_high, one.simultaneous_low, one.simultaneous_high)
        other = (turned.interval_high, turned.interval_low, turned.simultaneous_high, turned.simultaneous_low)
        assert ends == pytest.approx([-(end or 0.0) for end in other])


def test_an_unknown_baseline_offers_near_names(first: Run, second: Run) -> None:
    with pytest.raises(UnknownNameError) as refused:
        compare({"a": first, "b": second}, baseline="glvoe")
    assert "did you mean 'glove'?" in str(refused.value)
    assert "models of these runs: glove, second" in str(refused.value)
    with pytest.raises(UnknownNameError, match="models of these runs"):
        compare({"a": first, "b": second}, baseline="")


def test_models_of_one_run_are_compared(first: Run, second: Run) -> None:
    """Also where they differ in nothing but their settings or weights."""
    both = dataclasses.replace(first, results=(*first.results, *second.results))
    assert compare({"a": both}).associations == compare({"a": first, "b": second}).associations
    alike = tuple(dataclasses.replace(r, model="glove", model_revision="other") for r in second.results)
    found = compare({"a": dataclasses.replace(first, results=(*first.results, *alike))})
    assert (found.baseline, {r.model for r in found.associations}) == ("glove", {"glove #2"})


def test_one_model_only_is_refused(first: Run) -> None:
    with pytest.raises(UsageError, match=r"one model only \(glove\); name another run"):
        compare({"a": first})


def test_the_same_model_in_two_runs_is_told_apart(first: Run) -> None:
    again = dataclasses.replace(first, manifest=dataclasses.replace(first.manifest, run_id="again"))
    found = compare({"x/run": first, "y/run": again})
    assert found.baseline == "glove [x/run]"
    for r in found.associations:
        assert r.model == "glove [y/run]"
        assert r.difference == 0.0
        assert (r.interval_low, r.interval_high) == pytest.approx((0.0, 0.0), abs=1e-6)


def test_copies_of_a_run_are_refused(first: Run) -> None:
    with pytest.raises(UsageError, match="copies of one run"):
        compare({"a": first, "b": first}, mixed=True)


def test_tests_that_one_model_lacks_are_left_out(first: Run, second: Run) -> None:
    found = compare({"a": without(first, "weat6"), "b": without(second, "weat7")})
    assert [r.test for r in found.associations] == ["weat8", "sent-weat6"]
    with pytest.raises(UsageError, match="no test in common"):
        compare({"a": without(first, *TESTS[:2]), "b": without(second, *TESTS[2:])})


@pytest.mark.parametrize(
    ("what", "values"),
    [("protocol", ("exact", "may2019")), ("alternative", ("greater", "two-sided")), ("alpha", (0.01, 0.05))],
)
def test_runs_made_otherwise_are_refused_unless_mixed(first: Run, what: str, values: tuple[Any, Any]) -> None:
    second = other_model(first, "second", 1, **{what: values[1]})
    runs = {"old": first, "new": second}
    said = f"{what} is {values[0]} in old, {values[1]} in new"
    with pytest.raises(UsageError) as refused:
        compare(runs)
    assert said in str(refused.value)
    assert "--mixed" in str(refused.value)
    found = compare(runs, mixed=True)
    assert found.notes == (said,)
    assert len(found.associations) == len(TESTS)


def test_a_test_with_other_texts_is_refused_unless_mixed(first: Run, second: Run) -> None:
    runs = {"old": first, "new": edited(second, "weat7", test_digest="another")}
    with pytest.raises(UsageError, match="same name and other texts") as refused:
        compare(runs)
    assert "weat7" in str(refused.value)
    assert "weat6" not in str(refused.value)
    (said,) = compare(runs, mixed=True).notes
    assert "weat7" in said


def test_what_was_not_measured_on_a_model_is_said_and_has_no_difference(first: Run, second: Run, third: Run) -> None:
    refused, also = (
        dataclasses.replace(run, results=tuple(as_refused(r) if r.test == "sent-weat6" else r for r in run.results))
        for run in (second, third)
    )
    for runs, named in (
        ({"a": first, "b": refused}, "second"),
        ({"b": refused, "a": first}, "second"),
        ({"a": refused, "b": also}, "second and third"),
    ):
        r = row(compare(runs), "sent-weat6")
        assert r.reason == f"not measured on {named}"
        assert (r.difference, r.interval_low, r.simultaneous_high) == (None, None, None)
        assert (r.num_targ1, r.num_targ2) == (0, 0)
        effects = {r.baseline: r.effect_baseline, r.model: r.effect_model}
        assert effects["second"] is None


def test_beside_what_was_not_measured_stands_the_effect_by_word(first: Run, second: Run) -> None:
    """As in all other rows; that by text may be another number."""
    one = of(first, "sent-weat6")
    assert one.effect_size != pytest.approx(one.effect_size_by_word)
    refused = dataclasses.replace(second, results=tuple(as_refused(r) for r in second.results))
    r = row(compare({"a": first, "b": refused}), "sent-weat6")
    assert r.effect_baseline == pytest.approx(one.effect_size_by_word)


def test_no_words_in_common_are_said(first: Run, second: Run) -> None:
    leaning = of(second, "weat6").leaning
    strangers = {**leaning, "Y": {f"{word}?": value for word, value in leaning["Y"].items()}}
    for given in (strangers, {}, {**leaning, "X": dict.fromkeys(leaning["X"], math.nan)}):
        r = row(compare({"a": first, "b": edited(second, "weat6", leaning=given)}), "weat6")
        assert r.reason == "no words in common that have numbers"
        assert (r.difference, r.interval_low, r.interval_high) == (None, None, None)


def test_of_few_words_in_common_there_is_a_difference_without_an_interval(first: Run, second: Run) -> None:
    leaning = of(second, "weat6").leaning
    few = {**leaning, "X": dict(list(leaning["X"].items())[:3])}
    found = compare({"a": first, "b": edited(second, "weat6", leaning=few)})
    r = row(found, "weat6")
    words = in_common(of(first, "weat6"), dataclasses.replace(of(second, "weat6"), leaning=few))
    assert r.reason == "too few words in common for an interval"
    assert (r.num_targ1, r.num_targ2) == (3, 8)
    assert r.difference == pytest.approx(effect(of(second, "weat6"), words) - effect(of(first, "weat6"), words))
    assert (r.interval_low, r.interval_high, r.simultaneous_low, r.simultaneous_high) == (None,) * 4


def test_words_that_all_lean_alike_have_no_difference_and_are_not_called_few(first: Run, second: Run) -> None:
    leaning = of(second, "weat6").leaning
    flat = {**leaning, "X": dict.fromkeys(leaning["X"], 0.25), "Y": dict.fromkeys(leaning["Y"], 0.25)}
    r = row(compare({"a": first, "b": edited(second, "weat6", leaning=flat)}), "weat6")
    assert r.difference is None or math.isnan(r.difference)
    assert r.reason is not None
    assert "few" not in r.reason


def test_holm_runs_over_all_that_is_shown(first: Run, second: Run, third: Run) -> None:
    found = compare({"a": first, "b": second, "c": third})
    assert found.gathered is not None
    rows = found.gathered.run.results
    assert len(rows) == 12
    for field in ("p_value", "p_value_by_word"):
        expected = biassay.holm([getattr(r, field) for r in rows], first.manifest.alpha)
        assert [getattr(r, f"{field}_holm") for r in rows] == expected.adjusted.tolist()
        stands = [getattr(r, f"{field.replace('p_value', 'significant')}_holm") for r in rows]
        assert stands == expected.rejected.tolist()
    alone = [r.p_value_holm for r in second.results]
    assert [r.p_value_holm for r in rows if r.model == "second"] != alone


def test_json_parses_and_is_what_was_found(first: Run, second: Run) -> None:
    odd = edited(edited(second, "weat7", leaning={}), "weat8", effect_size=math.inf, leaning={})
    found = compare({"a": first, "b": odd})
    text = found.to_json()
    content = json.loads(text, parse_constant=lambda constant: pytest.fail(f"{constant} is no JSON"))
    assert list(content) == ["baseline", "confidence", "associations", "agreements", "words", "notes", "results"]
    assert (content["baseline"], content["confidence"]) == ("glove", 0.95)
    assert (content["agreements"], content["words"], content["notes"]) == ([], [], [])
    for told, r in zip(content["associations"], found.associations, strict=True):
        assert {k: math.inf if v == "Infinity" else v for k, v in told.items()} == dataclasses.asdict(r)
    assert found.gathered is not None
    for told, result in zip(content["results"], found.gathered.run.results, strict=True):
        for field in ("model", "test", "p_value", "p_value_holm", "significant_by_word_holm", "leaning"):
            assert told[field] == getattr(result, field)


def test_tests_over_contexts_are_compared_by_word() -> None:
    one, two = measured_in_contexts(("one",)), measured_in_contexts(("zero", "two"))
    two = dataclasses.replace(two, results=tuple(r for r in two.results if r.model == "two"))
    found = compare({"a": one, "b": two})
    assert [(r.model, r.test) for r in found.associations] == [("two (layer=-1)", t) for t in ("C6", "C9", "C10", "C1")]
    for r in found.associations[:3]:
        results = of(one, r.test), of(two, r.test)
        sizes = [effect(result, in_common(*results)) for result in results]
        assert (r.effect_baseline, r.effect_model) == pytest.approx(sizes)
        assert r.difference == pytest.approx(sizes[1] - sizes[0])
        assert sizes[0] == pytest.approx(results[0].effect_size_by_word)
    assert found.associations[3].reason == "not measured on one (layer=-1) and two (layer=-1)"


def test_another_draw_of_contexts_is_refused_unless_mixed() -> None:
    one, two = measured_in_contexts(("one",)), measured_in_contexts(("two",))
    assert two.manifest.contexts is not None
    drawn = dataclasses.replace(two.manifest.contexts, n_samples=7, digest="e" * 32)
    two = dataclasses.replace(two, manifest=dataclasses.replace(two.manifest, contexts=drawn))
    with pytest.raises(UsageError, match="number of samples is 120 in a, 7 in b"):
        compare({"a": one, "b": two})
    assert len(compare({"a": one, "b": two}, mixed=True).notes) == 2


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
            if p.human and not p.parts
        ]
        cells = [c for line in lines for c in zip(*line, strict=True) if None not in c]  # type: ignore[arg-type]
        a, b, people = map(np.array, zip(*cells, strict=True))
        assert r.num_cells == len(cells) > 50
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
