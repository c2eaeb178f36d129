"""Runs of all kinds put together: `biassay.holm`, loops and runs made by hand as witnesses."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.results.made_runs import altered, as_papers, contexts, record, result, run_of, some_samples

import biassay
from biassay.errors import UsageError
from biassay.results.outcomes import Result
from biassay.results.run_data import belongs_to
from biassay.runs.run import Run
from biassay.studies.associations.compare import merge_runs
from biassay.studies.associations.findings import get_mark


def holm_of(rows: list[Result], alpha: float) -> list[tuple[float | None, bool | None]]:
    """By `biassay.holm` on the p-values of all rows."""
    p = [float("nan") if r.p_value is None else r.p_value for r in rows]
    found = biassay.holm(p, alpha)
    return [
        (None, None) if r.p_value is None else (float(a), bool(b))
        for r, a, b in zip(rows, found.adjusted, found.rejected, strict=True)
    ]


@pytest.mark.parametrize("order", [("paper", "own"), ("own", "paper")])
def test_of_mixed_protocols_each_row_is_corrected_as_its_own_has_it(order: tuple[str, str]) -> None:
    """Rows of the papers' protocols over all of them, others over the tests about people of their model."""
    paper = [
        as_papers(result(model, f"t{i}", p), about=about, alpha=0.01)
        for model in "mn"
        for i, (p, about) in enumerate([(0.001, "people"), (0.0024, "method"), (0.4, "people")])
    ]
    own = [
        result(model, f"u{i}", p, about=about)
        for model in "mno"
        for i, (p, about) in enumerate([(0.001, "people"), (0.004, "method"), (0.004, "people")])
    ]
    parts = {"paper": run_of("paper", paper, settings={"protocol": "may2019"}), "own": run_of("own", own)}
    rows = merge_runs({name: parts[name] for name in order}, mixed=True).run.results
    of_papers = [row for row in rows if row.protocol == "may2019"]
    assert [(row.p_adjusted, row.significant) for row in of_papers] == holm_of(of_papers, 0.01)
    assert {row.family_size for row in of_papers} == {6}
    for model in "mno":
        about = [row for row in rows if row.protocol == "exact" and row.model == model and row.about == "people"]
        assert [(row.p_adjusted, row.significant) for row in about] == holm_of(about, 0.01)
        assert {row.family_size for row in about} == {2}
    assert {row.family for row in rows if row.protocol == "exact" and row.about == "method"} == {None}
    stars = {(row.model, row.test): get_mark(row) for row in rows}
    assert [stars["m", name] for name in ("t0", "t1", "t2", "u0", "u1", "u2")] == [2, 2, 0, 2, 1, 2]
    assert all(stars["n", name] == stars["m", name] for name in ("t0", "t1", "t2", "u0", "u1", "u2"))


def test_intervals_follow_the_level_of_what_is_put_together(tmp_path: Path) -> None:
    """Alpha given or not is the same; of unlike ones the smaller holds for all, and intervals are found again."""
    plain, given, strict = (biassay.run("glove", "weat6", alpha=a, cache=tmp_path) for a in (None, 0.05, 0.01))
    assert merge_runs({"a": plain, "b": given}).differences == ()
    changed, kept = merge_runs({"a": plain, "b": strict}, mixed=True).run.results
    assert kept.record == altered(strict.results[0], model=kept.model)
    assert changed.record == altered(kept, model=changed.model)  # the same model, as if measured with 0.01
    assert changed.cosine_ci_low < plain.results[0].cosine_ci_low
    lost = dataclasses.replace(given, arrays={})
    row = merge_runs({"a": lost, "b": strict}, mixed=True).run.results[0]
    assert (row.alpha, row.cosine_ci_low, row.cosine_ci_high, row.ci_low, row.ci_high) == (0.01, None, None, None, None)


def test_the_manifest_says_what_all_runs_were() -> None:
    lost = {"m": record("m", oov_words=("b",)), "both": record("m", oov_words=("a", "b"))}
    first = run_of("1", [result("m", "t1")], models=(lost["m"],), created="2026-01-05", finished="2026-01-06")
    second = run_of("2", [result("m", "t2"), result("n", "t2")], models=(lost["both"], record("n", oov_words=("c",))))
    made = merge_runs({"a": first, "b": second}).run.manifest
    assert {m.name: m.oov_words for m in made.models} == {"m": ("a", "b"), "n": ("c",)}
    assert (made.created, made.finished) == ("2026-01-02T00:00:00+00:00", "2026-01-06")
    assert (made.status, made.run_id) == ("complete", "1+2")
    assert [t.name for t in made.inputs.tests] == ["t1", "t2"]
    half = run_of("3", [result("o", "t1")], status="running", finished=None)
    made = merge_runs({"a": first, "b": half}).run.manifest
    assert (made.status, made.finished) == ("running", None)


@pytest.mark.parametrize(
    ("what", "values"),
    [("protocol", ("may2019", "caliskan2017")), ("alternative", ("greater", "two-sided")), ("alpha", (0.05, 0.01))],
)
def test_runs_made_otherwise_are_refused_unless_mixed(what: str, values: tuple[Any, Any]) -> None:
    parts = {
        name: run_of(name, [dataclasses.replace(result(name, "t", 0.03), **{what: value})], settings={what: value})
        for name, value in zip(("one", "two"), values, strict=True)
    }
    said = f"{what}: {values[0]} in one, {values[1]} in two"
    with pytest.raises(UsageError, match="cannot be merged") as refused:
        merge_runs(parts)
    assert said in str(refused.value)
    assert "--mixed" in str(refused.value)
    together = merge_runs(parts, mixed=True)
    assert together.differences == (said,)
    assert [getattr(r, what) for r in together.run.results] == ([0.01, 0.01] if what == "alpha" else list(values))


def test_a_test_that_has_changed_is_refused_and_named_with_its_runs() -> None:
    parts = {
        "one": run_of("1", [result("m", "t"), result("m", "kept")]),
        "two": run_of("2", [result("n", "t", test_digest="another"), result("n", "kept")]),
        "three": run_of("3", [result("o", "kept")]),
    }
    with pytest.raises(UsageError, match="cannot be merged") as refused:
        merge_runs(parts)
    assert "different texts: t" in str(refused.value)
    assert "kept" not in str(refused.value)
    (said,) = merge_runs(parts, mixed=True).differences
    assert "t" in said
    for name in ("one", "two"):
        assert name in said  # which of the runs to leave out
    assert "three" not in said


def test_a_model_that_two_runs_have_tested_alike_is_told_apart_by_their_names() -> None:
    parts = {
        "a": run_of("1", [result("m", "t1", 0.1), result("m", "t2", 0.2), result("n", "t1", 0.3)]),
        "b": run_of("2", [result("m", "t2", 0.4), result("m", "t3", 0.5)]),
        "c": run_of("3", [result("o", "t1", 0.6)]),
    }
    run = merge_runs(parts).run
    assert {(r.model, r.test, r.p_value) for r in run.results} == {
        *(("m [a]", "t1", 0.1), ("m [a]", "t2", 0.2), ("n", "t1", 0.3)),
        *(("m [b]", "t2", 0.4), ("m [b]", "t3", 0.5), ("o", "t1", 0.6)),
    }
    assert [r.name for r in run.manifest.models] == ["m [a]", "n", "m [b]", "o"]
    for row in run.results:
        assert sum(belongs_to(row, made) for made in run.manifest.models) == 1
    assert [r.model for r in parts["a"].results] == ["m", "m", "n"]


def over_contexts(run_id: str, rows: list[tuple[str, str]], seed: int) -> Run:
    """A run with samples for every row."""
    models = list(dict.fromkeys(model for model, _ in rows))
    made = [some_samples(models.index(model), test, seed + i) for i, (model, test) in enumerate(rows)]
    results = [result(model, test, level="context", protocol="ceat") for model, test in rows]
    return run_of(run_id, results, {key: array for one in made for key, array in one.items()}, contexts=contexts())


@pytest.mark.parametrize("order", list(itertools.permutations("abc")))
def test_samples_follow_their_model(order: tuple[str, ...]) -> None:
    parts = {
        "a": over_contexts("1", [("m", "t1"), ("n", "t1"), ("n", "t2")], 0),
        "b": over_contexts("2", [("o", "t1"), ("n", "t2"), ("n", "t3")], 10),
        "c": over_contexts("3", [("p", "t1"), ("m", "t2")], 20),
    }
    run = merge_runs({name: parts[name] for name in order}).run
    expected = {
        **{("m", t): parts[of].arrays[f"{place}/{t}/samples"] for of, place, t in (("a", 0, "t1"), ("c", 1, "t2"))},
        **{("n [a]", t): parts["a"].arrays[f"1/{t}/samples"] for t in ("t1", "t2")},
        **{("n [b]", t): parts["b"].arrays[f"1/{t}/samples"] for t in ("t2", "t3")},
        ("o", "t1"): parts["b"].arrays["0/t1/samples"],
        ("p", "t1"): parts["c"].arrays["0/t1/samples"],
    }
    names = {key: key.split("/") for key in run.arrays if key.endswith("/samples")}
    found = {(run.manifest.models[int(at)].name, test): run.arrays[key] for key, (at, test, _) in names.items()}
    assert set(found) == set(expected)
    assert all(found[key] is kept for key, kept in expected.items())
    assert {(r.model, r.test) for r in run.results} == set(expected)


models_tests_p = st.dictionaries(
    st.tuples(st.sampled_from("mno"), st.sampled_from(["t1", "t2", "t3"])), st.none() | st.floats(0, 1), min_size=1
)


@pytest.mark.slow
@given(st.lists(models_tests_p, min_size=2, max_size=4), st.randoms(use_true_random=False))
def test_the_order_of_runs_changes_no_row(parts: list[dict[tuple[str, str], float | None]], random: Any) -> None:
    runs = {
        f"run{i}": run_of(f"id{i}", [result(model, test, p) for (model, test), p in part.items()])
        for i, part in enumerate(parts)
    }
    turned = list(runs)
    random.shuffle(turned)
    one, other = merge_runs(runs).run, merge_runs({name: runs[name] for name in turned}).run
    sets = [{(r.model, r.test, r.p_value, r.p_adjusted, r.significant) for r in run.results} for run in (one, other)]
    assert sets[0] == sets[1]
    assert len(one.results) == len(sets[0]) == sum(map(len, parts))
    assert len({(r.model, r.test) for r in one.results}) == len(one.results)
    for model in {r.model for r in one.results}:
        own = [r for r in one.results if r.model == model]
        assert [(r.p_adjusted, r.significant) for r in own] == holm_of(own, 0.05)
    for run in (one, other):
        for row in run.results:
            assert sum(belongs_to(row, made) for made in run.manifest.models) == 1
