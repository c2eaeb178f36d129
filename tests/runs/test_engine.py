"""Runs as a Python user calls them: ``biassay.run`` and ``biassay.resume``."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from tests.results.made_runs import stopped

import biassay
from biassay.engines.local import LocalExecutor
from biassay.errors import RunFolderError, StimulusError, UnknownNameError, UsageError
from biassay.io import default_cache
from biassay.prompts.sentences import SCALE_TEMPLATES, load_frequent_words
from biassay.results.outcomes import Result
from biassay.runs.models import get_versions

ENCODER = """
import numpy as np

class Counting:
    seen = []
    def encode(self, texts):
        type(self).seen.append(list(texts))
        return np.random.default_rng([len(t) for t in texts]).normal(size=(len(texts), 6))
"""


class Notes:
    """Notes everything that a listener learns."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, int, int]] = []
        self.notices: list[str] = []

    def progress(self, who: str, unit: str, done: int, total: int) -> None:
        self.events.append((unit, who, done, total))

    def notice(self, message: str) -> None:
        self.notices.append(message)


def write_test(path: Path, count: int = 4) -> str:
    keys = zip(("targ1", "targ2", "attr1", "attr2"), "xyab", strict=True)
    content = {key: {"category": key, "examples": [f"{c}{i}" for i in range(count)]} for key, c in keys}
    path.write_text(json.dumps(content))
    return str(path)


def write_vectors(path: Path, count: int = 4, seed: int = 5) -> str:
    rng = np.random.default_rng(seed)
    names = [f"{c}{i}" for c in "xyab" for i in range(count)]
    path.write_text("".join(f"{n} " + " ".join(f"{v:.5f}" for v in rng.normal(size=8)) + "\n" for n in names))
    return f"vectors:{path}"


def test_a_run_in_memory_writes_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = biassay.run("glove", tests="weat6")
    assert [r.test for r in run.results] == ["weat6"]
    assert run.manifest.status == "complete"
    assert not list(tmp_path.iterdir())


def test_models_and_tests_are_measured_in_the_order_asked(tmp_path: Path) -> None:
    models = [write_vectors(tmp_path / f"{name}.txt", seed=seed) for seed, name in enumerate("ba")]
    tests = [write_test(tmp_path / f"{name}.json") for name in ("t2", "t1")]
    found = [(r.model, r.test) for r in biassay.run(models, tests=tests).results]
    assert found == list(itertools.product(["vectors:b.txt", "vectors:a.txt"], ["t2", "t1"]))


def test_a_model_or_test_named_twice_is_measured_once() -> None:
    run = biassay.run(["glove", "glove"], tests=["weat6", "weat6", "weat[6]"])
    assert len(run.results) == len(run.manifest.models) == len(run.manifest.inputs.tests) == 1


def test_each_distinct_text_is_encoded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "counting_encoder.py").write_text(ENCODER)
    monkeypatch.syspath_prepend(str(tmp_path))
    run = biassay.run("python:counting_encoder:Counting", ["sent-weat7", "sent-weat8", "weat7"], random_sets=0)
    from counting_encoder import Counting

    given = [text for batch in Counting.seen for text in batch]
    asked = {text.text for test in biassay.select_tests(["sent-weat7", "sent-weat8", "weat7"]) for text in _texts(test)}
    asked |= {form.format(word) for word in load_frequent_words() for form in ("{}", *SCALE_TEMPLATES)}
    assert len(given) == len(set(given)) == run.manifest.models[0].encoded
    assert set(given) == asked
    assert max(map(len, Counting.seen)) <= 256


def _texts(test: object) -> list[object]:
    from biassay.prompts.sentences import make_texts

    return list(make_texts(test))


def test_an_object_without_a_revision_is_never_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nameless_encoder.py").write_text(ENCODER)
    monkeypatch.syspath_prepend(str(tmp_path))
    for _ in range(2):
        run = biassay.run("python:nameless_encoder:Counting", "weat6", random_sets=0, cache=tmp_path / "kept")
        assert run.manifest.models[0].encoded == 32 + len(load_frequent_words())
        assert run.results[0].model_revision is None
    assert not list(tmp_path.rglob("*.npz"))


def test_the_listener_is_told_of_every_step() -> None:
    heard = Notes()
    biassay.run("glove", tests=["weat6", "weat7"], random_sets=0, listener=heard)
    assert heard.events == [
        ("texts", "glove", 896, 896),
        ("tests", "glove", 1, 2),
        ("tests", "glove", 2, 2),
    ]
    assert heard.notices == []


def test_the_manifest_says_how_the_run_was_made(tmp_path: Path) -> None:
    model = write_vectors(tmp_path / "v.txt", 5)
    test = write_test(tmp_path / "own.json", 6)
    settings = {"protocol": "caliskan2017", "alternative": "two-sided", "alpha": 0.05, "max_unknown": 0.5, "seed": 7}
    run = biassay.run(f"{model}?case=fold", tests=[test, "weat6"], **settings)
    manifest = run.manifest
    assert {name: getattr(manifest.settings, name) for name in settings} == settings
    assert set(manifest.versions) == {"python", "biassay", "numpy", "scipy"}
    record = manifest.models[0]
    assert (record.text, record.name, record.settings) == (f"{model}?case=fold", "vectors:v.txt", {"case": "fold"})
    assert record.revision
    assert [(t.name, t.pattern) for t in manifest.inputs.tests] == [("own", test), ("weat6", "weat6")]
    assert {"x5", "y5", "a5", "b5"} <= set(record.words_lost)
    own = run.results[0]
    assert own.lost == {"X": ("x5",), "Y": ("y5",), "A": ("a5",), "B": ("b5",)}
    assert (own.protocol, own.alternative, own.seed) == ("caliskan2017", "two-sided", 7)
    assert own.model_revision == record.revision
    assert own.test_digest == manifest.inputs.tests[0].digest


def test_the_seed_of_a_test_depends_on_no_other_test(tmp_path: Path) -> None:
    model = write_vectors(tmp_path / "v.txt", 12)
    tests = [write_test(tmp_path / f"{name}.json", 12) for name in ("one", "two")]
    both = {r.test: r.p_value for r in biassay.run(model, tests=tests, protocol="may2019").results}
    alone = {r.test: r.p_value for t in tests for r in biassay.run(model, tests=t, protocol="may2019").results}
    turned = {r.test: r.p_value for r in biassay.run(model, tests=tests[::-1], protocol="may2019").results}
    assert both == alone == turned
    assert both["one"] != both["two"]  # the same words, but draws of their own


def brute_force_holm(p: list[float]) -> list[float]:
    """From the definition: the i-th smallest of m times (m - i + 1), never below the one before, at most 1."""
    order = sorted(range(len(p)), key=lambda i: p[i])
    adjusted = [0.0] * len(p)
    for rank, i in enumerate(order):
        adjusted[i] = min(1.0, max(p[j] * (len(p) - k) for k, j in enumerate(order[: rank + 1])))
    return adjusted


def test_a_family_are_the_tests_about_people_of_one_model(tmp_path: Path) -> None:
    model = write_vectors(tmp_path / "v.txt", 6)
    tests = [write_test(tmp_path / "own.json", 6), "weat1", "weat6", "weat7", "sent-weat8", "weat9"]
    run = biassay.run(["glove", f"{model}?case=keep"], tests=tests)
    alone = biassay.run("glove", tests=tests)
    rows = [r for r in run.results if r.model == "glove" and r.about == "people" and r.p_value is not None]
    assert [r.test for r in rows] == ["weat6", "weat7", "sent-weat8", "weat9"]
    expected = brute_force_holm([r.p_value for r in rows])
    assert [r.p_adjusted for r in rows] == pytest.approx(expected, rel=1e-12)
    assert [r.significant for r in rows] == [p <= 0.05 for p in expected]
    assert {r.family_size for r in rows} == {4}
    assert [r for r in run.results if r.model == "glove"] == list(alone.results)  # another model changes no star
    for check in (r for r in run.results if r.test == "weat1" and r.p_value is not None):
        assert (check.family, check.p_adjusted, check.significant) == (None, None, False)
        assert check.evidence == "uncorrected"
    for refused in (r for r in run.results if r.p_value is None):
        assert (refused.p_adjusted, refused.significant) == (None, None)


def test_the_papers_correct_over_all_rows(tmp_path: Path) -> None:
    model = write_vectors(tmp_path / "v.txt", 6)
    tests = [write_test(tmp_path / "own.json", 6), "weat1", "weat6", "weat9"]
    run = biassay.run(["glove", f"{model}?case=keep"], tests=tests, protocol="may2019")
    rows = [r for r in run.results if r.p_value is not None]
    assert {r.model for r in rows} == {"glove", "vectors:v.txt"}
    expected = brute_force_holm([r.p_value for r in rows if r.p_value is not None])
    assert [r.p_adjusted for r in rows] == pytest.approx(expected, rel=1e-12)
    assert [r.significant for r in rows] == [p <= 0.01 for p in expected]
    assert {r.family_size for r in rows} == {len(rows)}


def test_p_by_word_moves_all_sentences_of_a_word_together() -> None:
    result = biassay.run("glove", tests="sent-weat6").results[0]
    assert result.num_words == {"X": 8, "Y": 8, "A": 8, "B": 8}
    assert result.num_targ1 > 8
    assert None not in (result.sentences_p_value, result.fixed_words_p_value)
    # 8 and 8 words: no p-value can be below one split of C(16, 8)
    assert result.sentences_p_value < 1 / 12870 <= result.fixed_words_p_value * (1 + 1e-9)


def test_associations_say_which_way_each_word_goes() -> None:
    result = biassay.run("glove", tests="weat6").results[0]
    lean = result.associations
    assert set(lean) == {"X", "Y", "A", "B"}
    x, y = list(lean["X"].values()), list(lean["Y"].values())
    effect = (np.mean(x) - np.mean(y)) / np.std([*x, *y], ddof=1)
    assert effect == pytest.approx(result.effect_size, rel=1e-12)
    # the statistic, seen from the attributes: sums over X and Y of equal size, over means of A and B
    a, b = np.mean(list(lean["A"].values())), np.mean(list(lean["B"].values()))
    assert 8 * (a - b) == pytest.approx(result.statistic, rel=1e-9)


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"protocol": "exakt"}, UnknownNameError),
        ({"alternative": "less"}, UnknownNameError),
        ({"alpha": 0.0}, UsageError),
        ({"max_unknown": 2.0}, UsageError),
        ({"seed": -1}, UsageError),
        ({"tests": "waet6"}, UnknownNameError),
        ({"tests": "no.json"}, StimulusError),
        ({"models": "glov"}, UnknownNameError),
        ({"models": []}, UsageError),
    ],
)
def test_a_wrong_request_is_refused_before_anything_is_written(
    settings: dict[str, object], error: type[Exception], tmp_path: Path
) -> None:
    with pytest.raises(error):
        biassay.run(**{"models": "glove", "tests": "weat6", "out": tmp_path / "run"} | settings)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_a_second_model_that_is_unknown_stops_the_run_before_the_first(tmp_path: Path) -> None:
    heard = Notes()
    with pytest.raises(UnknownNameError, match="glov"):
        biassay.run(["glove", "glov"], tests="weat6", out=tmp_path / "run", listener=heard)
    assert heard.events == []
    assert not (tmp_path / "run").exists()


def test_a_folder_in_use_is_refused_before_anything_is_encoded(tmp_path: Path, own_cache: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(RunFolderError):
        biassay.run("glove", tests="weat6", out=tmp_path)
    assert not list(own_cache.rglob("*.npz"))


def test_resume_of_a_run_stopped_between_models_equals_the_whole_run(tmp_path: Path) -> None:
    models = [write_vectors(tmp_path / f"{name}.txt", seed=seed) for seed, name in enumerate("ab")]
    whole = biassay.run(models, tests=write_test(tmp_path / "own.json"))
    stopped(whole, 1).save(tmp_path / "run")
    heard = Notes()
    resumed = biassay.resume(tmp_path / "run", listener=heard)
    assert resumed.results == whole.results
    assert resumed.manifest.status == "complete"
    assert {model for _, model, _, _ in heard.events} == {"b.txt"}
    assert biassay.Run.load(tmp_path / "run") == resumed
    assert (tmp_path / "run" / "report.html").is_file()


def test_resume_keeps_the_settings_of_the_run(tmp_path: Path) -> None:
    model = write_vectors(tmp_path / "v.txt", 12)
    settings = {"protocol": "may2019", "alternative": "two-sided", "seed": 3, "alpha": 0.2, "max_unknown": 0.4}
    whole = biassay.run(model, tests=write_test(tmp_path / "own.json", 12), **settings)
    stopped(whole).save(tmp_path / "run")
    resumed = biassay.resume(tmp_path / "run")
    assert resumed.results == whole.results
    assert resumed.manifest.settings == whole.manifest.settings


def test_the_cache_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BIASSAY_CACHE", str(tmp_path / "here"))
    assert default_cache() == tmp_path / "here"
    monkeypatch.delenv("BIASSAY_CACHE")
    assert default_cache().name == "biassay"


def test_every_public_name_is_there() -> None:
    for name in biassay.__all__:
        assert getattr(biassay, name) is not None
    assert biassay.Result is Result
    assert set(biassay.__all__) < set(dir(biassay))
    with pytest.raises(AttributeError, match="no attribute 'wheat'"):
        _ = biassay.wheat  # type: ignore[attr-defined]


@pytest.mark.slow
def test_objects_are_models_and_keep_their_place(tmp_path: Path) -> None:
    class Lengths:
        def encode(self, texts: list[str]) -> object:
            return np.array([[len(text), text.count("e") + 1.0, 1.0] for text in texts])

    run = biassay.run([Lengths(), "glove"], tests="weat1", cache=tmp_path)
    assert [result.model for result in run.results] == [run.manifest.models[0].text, "glove"]
    assert run.manifest.models[0].text.startswith("object:")
    with pytest.raises(UsageError, match="got int"):
        biassay.run([3], tests="weat1", cache=tmp_path)


def test_models_without_a_name_run_on_any_engine() -> None:
    found = biassay.run("glove", "weat6", engine=LocalExecutor())
    assert found.results == biassay.run("glove", "weat6").results


def test_a_run_goes_on_with_its_own_tests_only(tmp_path: Path) -> None:
    models = [write_vectors(tmp_path / f"{name}.txt", seed=seed) for seed, name in enumerate("ab")]
    place = tmp_path / "tests.toml"
    text = '[tests.one]\nX = "flowers"\nY = "insects"\nA = "pleasant"\nB = "unpleasant"\n'
    place.write_text(text)
    whole = biassay.run(models, tests=str(place), max_unknown=1.0)
    stopped(whole, 1).save(tmp_path / "run")
    place.write_text(text + text.replace("one", "two"))
    with pytest.raises(StimulusError, match="two"):
        biassay.resume(tmp_path / "run")


def test_results_of_another_state_than_the_manifest_says_are_refused(tmp_path: Path) -> None:
    models = [write_vectors(tmp_path / f"{name}.txt", seed=seed) for seed, name in enumerate("ab")]
    whole = biassay.run(models, tests=write_test(tmp_path / "own.json"))
    stopped(whole, 1).save(tmp_path / "run")
    half = (tmp_path / "run" / "results.json").read_bytes()
    whole.save(tmp_path / "run")
    (tmp_path / "run" / "results.json").write_bytes(half)  # as a second process would
    with pytest.raises(RunFolderError, match="two processes"):
        biassay.load(tmp_path / "run")


def test_a_second_run_into_a_folder_leaves_the_first_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, test = write_vectors(tmp_path / "a.txt"), write_test(tmp_path / "own.json")
    biassay.run(model, tests=test, out=tmp_path / "run")
    monkeypatch.setattr("biassay.runs.runner.ensure_empty", lambda _: None)  # both looked before either wrote
    with pytest.raises(RunFolderError, match="another run"):
        biassay.run(model, tests=test, out=tmp_path / "run")
    assert biassay.load(tmp_path / "run").results


def test_settings_that_would_be_ignored_are_refused() -> None:
    for given in ({"window": 3}, {"mode": "fixed"}, {"vectors": "here"}, {"n_samples": 5}):
        with pytest.raises(UsageError, match=f"{next(iter(given))}.*contexts"):
            biassay.run("glove", "weat6", **given)


def test_a_package_that_is_not_there_has_an_unknown_version() -> None:
    assert get_versions(["biassay-no-such-thing"]) == {"biassay-no-such-thing": "unknown"}


def test_a_part_of_a_run_keeps_its_corrections_and_is_no_state_of_the_run(tmp_path: Path) -> None:
    run = biassay.run({"a": "glove", "b": "glove"}, "weat[6-9]")
    part = run["weat7"]
    assert part.results == tuple(row for row in run.results if row.test == "weat7")
    assert {row.model for row in run["a"].results} == {"a"}
    run.save(tmp_path / "run")
    with pytest.raises(RunFolderError, match="another run"):
        part.save(tmp_path / "run")
    assert biassay.load(part.save(tmp_path / "part")).results == part.results
    for odd in (0, ("a", "weat6"), slice(1)):
        with pytest.raises(UsageError):
            run[odd]  # type: ignore[index]
    assert len(run) == len(list(run)) == len(run.results)


def test_a_name_is_given_once() -> None:
    with pytest.raises(UsageError, match="'a'"):
        biassay.run(["a=glove", "a=use"], "weat6")
    assert [r.model for r in biassay.run(["a=glove", "a=glove"], "weat6").results] == ["a"]


def test_tests_that_not_all_models_have_are_named() -> None:
    compared = biassay.compare(biassay.run({"a": "glove"}, ["weat6", "weat7"]), biassay.run({"b": "glove"}, "weat6"))
    assert any("weat7" in note for note in compared.notes)
    assert len(repr(compared)) < 200
