"""A test written to a file gives the same numbers as the built-in one on the embedded vectors."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import biassay
from biassay.datasets.catalogue import load_catalogue, select_tests
from biassay.datasets.schema import Test
from biassay.datasets.stimulus_files import to_sent_bias, to_toml
from biassay.prompts.sentences import get_given_texts, make_texts
from biassay.reporting.html import REPORT_FILE
from biassay.results.outcomes import Result
from biassay.runs.run import Run
from biassay.stats.permutation import TailProbability, permutation_test
from biassay.studies.associations import weat as weat_module
from biassay.studies.associations.findings import list_assumptions

pytestmark = pytest.mark.slow

ABOUT_THE_FILE = ("title", "source", "test_version")
FORMS: dict[str, Callable[[Test], str]] = {
    "json": lambda test: to_sent_bias(test, get_given_texts(test)),
    "toml": lambda test: to_toml(test),
}


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("vectors")


@pytest.fixture(scope="module")
def built_in(vectors: Path) -> Run:
    with pytest.MonkeyPatch.context() as patch:
        remember_p_values(patch)
        return biassay.run("glove", cache=vectors)


def remember_p_values(patch: pytest.MonkeyPatch) -> None:
    """The same scores have the same p-value: it is counted once."""
    patch.setattr(weat_module, "permutation_test", _remembered)


def _remembered(x: NDArray[np.float64], y: NDArray[np.float64], **how: Any) -> TailProbability:
    how.pop("rng", None)  # nothing is drawn here
    return _p_value(tuple(x.tolist()), tuple(y.tolist()), tuple(how.items()))


@cache
def _p_value(x: tuple[float, ...], y: tuple[float, ...], how: tuple[tuple[str, Any], ...]) -> TailProbability:
    return permutation_test(np.array(x), np.array(y), **dict(how))


def numbers(result: Result) -> dict[str, Any]:
    stored = {**dataclasses.asdict(result.record), **dataclasses.asdict(result.decision)}
    return {key: value for key, value in stored.items() if key not in ABOUT_THE_FILE}


@pytest.mark.parametrize("ending", FORMS)
def test_all_50_tests_measure_the_same(
    ending: str, built_in: Run, vectors: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember_p_values(monkeypatch)
    tests = select_tests()
    assert len(tests) == len(built_in.results) == 50
    for test in tests:
        (tmp_path / f"{test.name}.{ending}").write_text(FORMS[ending](test))
    run = biassay.run("glove", [str(tmp_path / f"{test.name}.{ending}") for test in tests], cache=vectors)
    assert [numbers(result) for result in run.results] == [numbers(result) for result in built_in.results]
    assert all(record.assumed == {} for record in run.manifest.inputs.tests)


@pytest.mark.parametrize("name", ["sent-weat6", "sent-weat9", "heilman_double_bind_likable_one_sentence"])
def test_sentences_without_their_words_lose_the_same_and_have_no_p_by_word(
    name: str, built_in: Run, vectors: Path, tmp_path: Path
) -> None:
    content = json.loads(FORMS["json"](load_catalogue().tests[name]))
    for of_set in content.values():
        del of_set["words"], of_set["spans"]
        of_set.pop("clusters", None)
    path = tmp_path / f"{name}.json"
    path.write_text(json.dumps(content))
    run = biassay.run("glove", str(path), cache=vectors, out=tmp_path / "run")
    (plain,), (told,) = run.results, [r for r in built_in.results if r.test == name]
    for field in ("status", "num_targ1", "num_targ2", "num_attr1", "num_attr2", "oov_words"):
        assert getattr(plain, field) == getattr(told, field), field
    sentences = told.alternatives["sentences"]
    assert (plain.effect_size, plain.p_value) == (sentences.effect_size, sentences.p_value)
    assert plain.fixed_words_p_value is None
    assert told.fixed_words_p_value is not None
    (record,) = run.manifest.inputs.tests
    assert sorted(record.assumed) == ["A", "B", "X", "Y"]
    assert set(record.assumed["X"]) <= {text.form for text in make_texts(load_catalogue().tests[name])}
    assert biassay.load(tmp_path / "run").manifest.inputs.tests == (record,)
    (said,) = list_assumptions(run)
    assert said in (tmp_path / "run" / REPORT_FILE).read_text()
