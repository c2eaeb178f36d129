"""Run folders of all kinds, named and put together: `biassay.holm`, loops and runs made by hand as witnesses."""

from __future__ import annotations

import dataclasses
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import biassay
from biassay.errors import RunFolderError, UsageError
from biassay.results.discovery import Discovery, DiscoveryManifest
from biassay.results.gathering import gather, load_found, name_folders, put_together
from biassay.results.making import is_of
from biassay.results.records import FORMAT_VERSION, ContextsRecord, Manifest, ModelRecord, Result, TestRecord
from biassay.results.run import Run, with_corrections
from biassay.results.samples import Samples
from biassay.results.stereotypes import StereotypeManifest, Stereotypes

ROLES = ("X", "Y", "A", "B")
LATER = ("p_value_holm", "significant", "significant_holm")
LATER_BY_WORD = ("p_value_by_word_holm", "significant_by_word", "significant_by_word_holm")


def result(model: str, test: str, p: float | None = 0.5, **given: Any) -> Result:
    """A result without settings of its model; ``given`` replaces fields."""
    names = ("title", "targ1", "targ2", "attr1", "attr2", "p_route", "p_route_by_word", "source", "test_version")
    numbers = ("effect_size", "statistic", "log10_p_value", "p_error", "effect_size_by_word", "log10_p_value_by_word")
    fields: dict[str, Any] = {name: name for name in names}
    fields |= dict.fromkeys((*numbers, "p_error_by_word", "p_floor_by_word"), 0.25)
    fields |= dict.fromkeys((*LATER, *LATER_BY_WORD, "reason", "model_revision"))
    fields |= dict.fromkeys(("num_targ1", "num_targ2", "num_attr1", "num_attr2"), 4)
    fields |= {"model": model, "options": "", "test": test, "p_value": p, "p_value_by_word": p}
    fields |= {"status": "measured", "level": "word", "protocol": "exact", "alternative": "greater", "alpha": 0.01}
    fields |= {"num_words": dict.fromkeys(ROLES, 4), "num_cut": dict.fromkeys(ROLES, 0), "seed": 0}
    fields |= {"lost": dict.fromkeys(ROLES, ()), "leaning": {}, "test_digest": f"digest of {test}"}
    return Result(**fields | given)


def record(name: str, **given: Any) -> ModelRecord:
    return ModelRecord(**{"text": name, "name": name, "family": "f", "revision": None, "settings": {}} | given)


def contexts(**given: Any) -> ContextsRecord:
    made = ContextsRecord("c.parquet", "d", 16, 8, 0, 99, 1000, 40, "fixed", 9, "float16", 5)
    return dataclasses.replace(made, **given)


def run_of(run_id: str, rows: list[Result], samples: dict[tuple[int, str], Samples] | None = None, **given: Any) -> Run:
    """A run with these rows, corrected on its own; its models in the order of their rows."""
    fields: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "run_id": run_id,
        "status": "complete",
        "created": "2026-01-02T00:00:00+00:00",
        "finished": "2026-01-03T00:00:00+00:00",
        "versions": {"biassay": "0"},
        "models": tuple(record(name) for name in dict.fromkeys(r.model for r in rows)),
        "tests": tuple(
            TestRecord(name, name, digest, "s", "c", "l", "1")
            for name, digest in dict.fromkeys((r.test, r.test_digest) for r in rows)
        ),
        "protocol": "exact",
        "alternative": "greater",
        "alpha": 0.01,
        "max_lost": 0.2,
        "seed": 0,
        "words_lost": {},
    }
    made = Manifest(**fields | given)
    return Run(made, with_corrections(tuple(rows), made.alpha), samples or {})


def some(seed: int) -> Samples:
    rng = np.random.default_rng(seed)
    return Samples(rng.normal(size=5), rng.random(5), rng.random(5))


def discovery() -> Discovery:
    texts = ("grouping", "grouping_title", "grouping_digest", "citation", "licence", "vocabulary", "rule", "compare")
    fields: dict[str, Any] = dict.fromkeys((*texts, "note"), "as given") | {"vocabulary_digest": None}
    fields |= {"groups": {"g": ("a", "b")}, "labels": {"g": "G"}, "names_lost": {}, "validation_lost": ()}
    fields |= {"words_lost": (), "threshold": None, "positive_only": True, "permutations": 9, "keep": 5}
    return Discovery(DiscoveryManifest(**beginning("discovery"), **fields, alpha=0.05, max_lost=0.2, seed=0), ())


def stereotypes() -> Stereotypes:
    texts = ("abc", "abc_digest", "citation", "licence", "variant", "prior")
    fields: dict[str, Any] = dict.fromkeys(texts, "as given") | {"pairs": ("a/b",), "dimensions": {}, "groups": ("g",)}
    fields |= {"templates": {}, "measures": ("ilps",), "all_adjectives": False, "human": None, "human_notes": ()}
    fields |= {"notes": (), "draws": 9, "ceiling": None, "seed": 0}
    return Stereotypes(StereotypeManifest(**beginning("stereotypes"), **fields), ())


def beginning(kind: str) -> dict[str, Any]:
    fields: dict[str, Any] = {"format_version": FORMAT_VERSION, "run_id": kind, "status": "complete", "created": "then"}
    return fields | {"finished": None, "versions": {}, "models": (record("m"),), "kind": kind}


def edited(folder: Path, **given: Any) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | given))


# ---- a folder of any kind


@pytest.mark.parametrize("found", [run_of("one", [result("m", "t")]), discovery(), stereotypes()])
def test_a_folder_of_any_kind_comes_back_as_it_was(tmp_path: Path, found: Any) -> None:
    found.save(tmp_path / "run")
    assert load_found(tmp_path / "run") == found
    assert load_found(str(tmp_path / "run")) == found


def test_a_run_over_contexts_comes_back_with_its_samples(tmp_path: Path) -> None:
    run = run_of("one", [result("m", "t")], {(0, "t"): some(1)}, contexts=contexts())
    run.save(tmp_path)
    found = load_found(tmp_path)
    assert isinstance(found, Run)
    assert found.samples[0, "t"].p_values.tolist() == run.samples[0, "t"].p_values.tolist()


def test_a_real_discovery_is_found(tmp_path: Path) -> None:
    made = biassay.discover("glove", "african-american-females", permutations=9, keep=5, cache=tmp_path / "vectors")
    made.save(tmp_path / "run")
    assert load_found(tmp_path / "run") == made


def test_what_is_no_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match=r"nowhere: no such folder"):
        load_found(tmp_path / "nowhere")
    with pytest.raises(RunFolderError, match=r"manifest\.json is missing"):
        load_found(tmp_path)
    (tmp_path / "manifest.json").write_text("[1, 2]")
    with pytest.raises(RunFolderError, match=r"manifest\.json: the run has format version None"):
        load_found(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(RunFolderError, match=r"manifest\.json: line 1: not valid JSON"):
        load_found(tmp_path)


@pytest.mark.parametrize("found", [run_of("one", [result("m", "t")]), discovery(), stereotypes()])
def test_another_format_or_kind_is_refused(tmp_path: Path, found: Any) -> None:
    found.save(tmp_path)
    edited(tmp_path, kind="dreams")
    with pytest.raises(RunFolderError, match=r"a run of a kind that this biassay does not know \('dreams'\)"):
        load_found(tmp_path)
    edited(tmp_path, format_version=FORMAT_VERSION + 1)
    with pytest.raises(RunFolderError, match=f"format version {FORMAT_VERSION + 1}, this biassay reads"):
        load_found(tmp_path)


def test_a_manifest_without_a_kind_is_of_association_tests(tmp_path: Path) -> None:
    run_of("one", [result("m", "t")]).save(tmp_path)
    content = json.loads((tmp_path / "manifest.json").read_text())
    assert content.pop("kind") == "associations"
    (tmp_path / "manifest.json").write_text(json.dumps(content))
    assert isinstance(load_found(tmp_path), Run)


def test_a_run_that_has_no_results_yet_is_refused(tmp_path: Path) -> None:
    run_of("one", [], status="running").save(tmp_path)
    with pytest.raises(RunFolderError, match=r"no results yet; go on with it by --resume"):
        load_found(tmp_path)
    (tmp_path / "results.json").unlink()
    with pytest.raises(RunFolderError, match=r"no results yet"):
        load_found(tmp_path)


def test_a_run_that_has_some_results_is_taken(tmp_path: Path) -> None:
    run_of("one", [result("m", "t")], status="running").save(tmp_path)
    found = load_found(tmp_path)
    assert found.manifest.status == "running"


# ---- names of folders


def test_folders_are_named_by_their_last_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert name_folders([Path("a"), Path("b/c"), tmp_path / "d"]) == ["a", "c", "d"]
    assert name_folders([Path()]) == [tmp_path.name]
    assert name_folders([Path("a/../b/")]) == ["b"]
    assert name_folders([]) == []


def test_folders_of_one_name_get_the_part_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert name_folders([Path("a/run"), Path("b/run")]) == ["a/run", "b/run"]
    assert name_folders([Path("a/x/run"), Path("b/x/run"), Path("other")])[:2] == ["a/x/run", "b/x/run"]
    names = name_folders([Path("run"), Path("run/run"), Path("run/run/run")])
    assert len(set(names)) == 3


def test_a_folder_at_the_root_has_a_plain_name() -> None:
    assert name_folders([Path("/run"), Path("/a/run")]) in (["/run", "a/run"], ["run", "a/run"])


def test_a_folder_named_twice_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").mkdir()
    (tmp_path / "link").symlink_to("a")
    for again in (Path("a"), Path("b/../a"), tmp_path / "a", Path("link")):
        with pytest.raises(UsageError, match="a is named twice"):
            name_folders([Path("a"), Path("b"), again])


# ---- put together


def holm_of(rows: list[Result], alpha: float) -> list[tuple[float | None, bool | None]]:
    """By `biassay.holm` on the p-values of all rows."""
    p = [float("nan") if r.p_value is None else r.p_value for r in rows]
    found = biassay.holm(p, alpha)
    return [
        (None, None) if r.p_value is None else (float(a), bool(b))
        for r, a, b in zip(rows, found.adjusted, found.rejected, strict=True)
    ]


def test_holm_runs_over_the_rows_of_all_runs() -> None:
    parts = {
        "a": run_of("1", [result("m", "t1", 0.004), result("m", "t2", 0.0045), result("m", "t3", None)]),
        "b": run_of("2", [result("n", "t1", 0.0001), result("n", "t2", 0.02)]),
        "c": run_of("3", [result("o", "t4", 0.0021)]),
    }
    together = put_together(parts)
    rows = list(together.run.results)
    every = [r for run in parts.values() for r in run.results]
    assert [(r.model, r.test, r.p_value) for r in rows] == [(r.model, r.test, r.p_value) for r in every]
    expected = holm_of(every, 0.01)
    assert [(r.p_value_holm, r.significant_holm) for r in rows] == expected
    assert [(r.p_value_by_word_holm, r.significant_by_word_holm) for r in rows] == expected
    assert [r.significant for r in rows] == [True, True, None, True, False, True]
    assert parts["a"].results[1].significant_holm
    assert not rows[1].significant_holm  # as one of five it is not
    assert together.differences == ()
    assert dict(together.parts) == parts


def test_one_run_stays_what_it_is() -> None:
    run = run_of("1", [result("m", "t")])
    together = put_together({"": run})
    assert together.run is run
    assert (dict(together.parts), together.differences) == ({"": run}, ())


def test_the_manifest_says_what_all_runs_were() -> None:
    first = run_of("1", [result("m", "t1")], words_lost={"m": ("b",)}, created="2026-01-05", finished="2026-01-06")
    second = run_of("2", [result("m", "t2"), result("n", "t2")], words_lost={"m": ("a", "b"), "n": ("c",)})
    made = put_together({"a": first, "b": second}).run.manifest
    assert made.words_lost == {"m": ("a", "b"), "n": ("c",)}
    assert (made.created, made.finished) == ("2026-01-02T00:00:00+00:00", "2026-01-06")
    assert (made.status, made.run_id) == ("complete", "1+2")
    assert [t.name for t in made.tests] == ["t1", "t2"]
    half = run_of("3", [result("o", "t1")], status="running", finished=None)
    made = put_together({"a": first, "b": half}).run.manifest
    assert (made.status, made.finished) == ("running", None)


@pytest.mark.parametrize(
    ("what", "values"),
    [("protocol", ("exact", "may2019")), ("alternative", ("greater", "two-sided")), ("alpha", (0.05, 0.01))],
)
def test_runs_made_otherwise_are_refused_unless_mixed(what: str, values: tuple[Any, Any]) -> None:
    parts = {
        name: run_of(name, [dataclasses.replace(result(name, "t", 0.03), **{what: value})], **{what: value})
        for name, value in zip(("one", "two"), values, strict=True)
    }
    said = f"{what} is {values[0]} in one, {values[1]} in two"
    with pytest.raises(UsageError, match="cannot be put together") as refused:
        put_together(parts)
    assert said in str(refused.value)
    assert "--mixed" in str(refused.value)
    together = put_together(parts, mixed=True)
    assert together.differences == (said,)
    assert [getattr(r, what) for r in together.run.results] == ([0.01, 0.01] if what == "alpha" else list(values))


def test_of_two_levels_the_stricter_holds_for_all() -> None:
    parts = {
        "one": run_of("1", [result("m", "t", 0.02, alpha=0.05)], alpha=0.05),
        "two": run_of("2", [result("n", "t", 0.001)]),
    }
    together = put_together(parts, mixed=True).run
    assert together.manifest.alpha == 0.01
    assert [(r.alpha, r.significant) for r in together.results] == [(0.01, False), (0.01, True)]
    assert [r.significant_holm for r in together.results] == [False, True]
    assert parts["one"].results[0].significant


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("digest", ("d", "e")),
        ("n_samples", (40, 50)),
        ("mode", ("fixed", "random")),
        ("window", (9, None)),
        ("min_contexts", (5, 6)),
    ],
)
def test_runs_over_other_contexts_are_refused_unless_mixed(field: str, values: tuple[Any, Any]) -> None:
    parts = {
        name: run_of(name, [result(name, "t")], contexts=contexts(**{field: value}))
        for name, value in zip(("one", "two"), values, strict=True)
    }
    with pytest.raises(UsageError) as refused:
        put_together(parts)
    assert f" is {values[0]} in one, {values[1]} in two" in str(refused.value)
    (said,) = put_together(parts, mixed=True).differences
    assert said.endswith(f" is {values[0]} in one, {values[1]} in two")
    alike = {name: run_of(name, [result(name, "t")], contexts=contexts(file=name)) for name in ("one", "two")}
    assert put_together(alike).differences == ()  # the place of the file does not matter


def test_a_test_that_has_changed_is_refused_and_named_with_its_runs() -> None:
    parts = {
        "one": run_of("1", [result("m", "t"), result("m", "kept")]),
        "two": run_of("2", [result("n", "t", test_digest="another"), result("n", "kept")]),
        "three": run_of("3", [result("o", "kept")]),
    }
    with pytest.raises(UsageError, match="cannot be put together") as refused:
        put_together(parts)
    assert "other texts: t" in str(refused.value)
    assert "kept" not in str(refused.value)
    (said,) = put_together(parts, mixed=True).differences
    assert "t" in said
    for name in ("one", "two"):
        assert name in said  # which of the runs to leave out
    assert "three" not in said


def test_of_many_changed_tests_five_are_named() -> None:
    names = [f"test{i}" for i in range(8)]
    one = run_of("1", [result("m", name) for name in names])
    two = run_of("2", [result("n", name, test_digest="other") for name in names])
    with pytest.raises(UsageError) as refused:
        put_together({"a": one, "b": two})
    assert [name for name in names if name in str(refused.value)] == names[:5]
    assert "and 3 more" in str(refused.value)


def test_all_differences_are_told_at_once() -> None:
    one = run_of("1", [result("m", "t")])
    two = run_of("2", [result("n", "t", test_digest="x")], protocol="may2019", alternative="two-sided", alpha=0.05)
    assert len(put_together({"a": one, "b": two}, mixed=True).differences) == 4


def test_copies_of_one_run_are_refused_even_if_mixed() -> None:
    run = run_of("1", [result("m", "t")])
    other = run_of("2", [result("n", "t")])
    for mixed in (False, True):
        with pytest.raises(UsageError, match="a and c are copies of one run"):
            put_together({"a": run, "b": other, "c": run}, mixed=mixed)


def test_a_model_that_two_runs_have_tested_alike_is_told_apart_by_their_names() -> None:
    parts = {
        "a": run_of("1", [result("m", "t1", 0.1), result("m", "t2", 0.2), result("n", "t1", 0.3)]),
        "b": run_of("2", [result("m", "t2", 0.4), result("m", "t3", 0.5)]),
        "c": run_of("3", [result("o", "t1", 0.6)]),
    }
    run = put_together(parts).run
    assert {(r.model, r.test, r.p_value) for r in run.results} == {
        *(("m [a]", "t1", 0.1), ("m [a]", "t2", 0.2), ("n", "t1", 0.3)),
        *(("m [b]", "t2", 0.4), ("m [b]", "t3", 0.5), ("o", "t1", 0.6)),
    }
    assert [r.name for r in run.manifest.models] == ["m [a]", "n", "m [b]", "o"]
    for row in run.results:
        assert sum(is_of(row, made) for made in run.manifest.models) == 1
    assert [r.model for r in parts["a"].results] == ["m", "m", "n"]


def test_other_settings_or_weights_are_another_model() -> None:
    parts = {
        "a": run_of("1", [result("m", "t")]),
        "b": run_of("2", [result("m", "t", options="x=1")], models=(record("m", settings={"x": "1"}),)),
        "c": run_of("3", [result("m", "t", model_revision="r")], models=(record("m", revision="r"),)),
    }
    run = put_together(parts).run
    assert [r.model for r in run.results] == ["m", "m", "m"]
    assert len(run.manifest.models) == 3


@pytest.mark.parametrize("took", [{}, {"seconds": 3.5, "texts": 9, "encoded": 2}], ids=["alike", "other times"])
def test_a_model_that_two_runs_have_tested_otherwise_is_one(took: dict[str, Any]) -> None:
    """What encoding took is never the same in two runs, and does not make it another model."""
    parts = {
        "a": run_of("1", [result("m", "t1", 0.1), result("n", "t1", 0.2)], {(0, "t1"): some(1)}),
        "b": run_of("2", [result("m", "t2", 0.3)], {(0, "t2"): some(2)}, models=(record("m", **took),)),
    }
    run = put_together(parts).run
    assert [(r.model, r.test) for r in run.results] == [("m", "t1"), ("m", "t2"), ("n", "t1")]
    assert [made.name for made in run.manifest.models] == ["m", "n"]
    assert set(run.samples) == {(0, "t1"), (0, "t2")}


def over_contexts(run_id: str, rows: list[tuple[str, str]], seed: int) -> Run:
    """A run with samples for every row."""
    models = list(dict.fromkeys(model for model, _ in rows))
    samples = {(models.index(model), test): some(seed + i) for i, (model, test) in enumerate(rows)}
    results = [result(model, test, level="context", protocol="ceat") for model, test in rows]
    return run_of(run_id, results, samples, contexts=contexts(), protocol="ceat")


@pytest.mark.parametrize("order", list(itertools.permutations("abc")))
def test_samples_follow_their_model(order: tuple[str, ...]) -> None:
    parts = {
        "a": over_contexts("1", [("m", "t1"), ("n", "t1"), ("n", "t2")], 0),
        "b": over_contexts("2", [("o", "t1"), ("n", "t2"), ("n", "t3")], 10),
        "c": over_contexts("3", [("p", "t1"), ("m", "t2")], 20),
    }
    run = put_together({name: parts[name] for name in order}).run
    expected = {
        **{("m", t): parts[of].samples[place, t] for of, place, t in (("a", 0, "t1"), ("c", 1, "t2"))},
        **{("n [a]", t): parts["a"].samples[1, t] for t in ("t1", "t2")},
        **{("n [b]", t): parts["b"].samples[1, t] for t in ("t2", "t3")},
        ("o", "t1"): parts["b"].samples[0, "t1"],
        ("p", "t1"): parts["c"].samples[0, "t1"],
    }
    found = {(run.manifest.models[place].name, test): kept for (place, test), kept in run.samples.items()}
    assert set(found) == set(expected)
    assert all(found[key] is kept for key, kept in expected.items())
    assert {(r.model, r.test) for r in run.results} == set(expected)


def test_what_was_put_together_can_be_saved_and_read(tmp_path: Path) -> None:
    parts = {"a": over_contexts("1", [("m", "t1")], 0), "b": over_contexts("2", [("m", "t1"), ("n", "t1")], 5)}
    run = put_together(parts).run
    run.save(tmp_path)
    again = load_found(tmp_path)
    assert again == run
    assert isinstance(again, Run)
    assert set(again.samples) == set(run.samples)


def test_runs_over_texts_and_over_contexts_are_kept_apart() -> None:
    texts = {name: run_of(name, [result(name, "t")]) for name in ("a", "b")}
    contextual = {"c": over_contexts("3", [("m", "t")], 0)}
    others = {"d": discovery(), "e": stereotypes()}
    together, rest = gather({"d": others["d"], **contextual, **texts, "e": others["e"]})
    assert [dict(one.parts) for one in together] == [texts, contextual]
    assert together[1].run is contextual["c"]
    assert rest == others
    assert gather(others) == ([], others)


models_tests_p = st.dictionaries(
    st.tuples(st.sampled_from("mno"), st.sampled_from(["t1", "t2", "t3"])), st.none() | st.floats(0, 1), min_size=1
)


@given(st.lists(models_tests_p, min_size=2, max_size=4), st.randoms(use_true_random=False))
def test_the_order_of_runs_changes_no_row(parts: list[dict[tuple[str, str], float | None]], random: Any) -> None:
    runs = {
        f"run{i}": run_of(f"id{i}", [result(model, test, p) for (model, test), p in part.items()])
        for i, part in enumerate(parts)
    }
    turned = list(runs)
    random.shuffle(turned)
    one, other = put_together(runs).run, put_together({name: runs[name] for name in turned}).run
    sets = [
        {(r.model, r.test, r.p_value, r.p_value_holm, r.significant_holm) for r in run.results} for run in (one, other)
    ]
    assert sets[0] == sets[1]
    assert len(one.results) == len(sets[0]) == sum(map(len, parts))
    assert len({(r.model, r.test) for r in one.results}) == len(one.results)
    every = [r for run in runs.values() for r in run.results]
    witness = sorted((r.p_value, a) for r, (a, _) in zip(every, holm_of(every, 0.01), strict=True) if a is not None)
    assert sorted((r.p_value, r.p_value_holm) for r in one.results if r.p_value is not None) == witness
    for run in (one, other):
        for row in run.results:
            assert sum(is_of(row, made) for made in run.manifest.models) == 1
