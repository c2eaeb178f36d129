"""Tests whose words were found by searching the model that is measured, and words that are on both sides."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import biassay
from biassay.datasets.catalogue import load_tests, select_tests
from biassay.datasets.stimulus_files import to_sent_bias
from biassay.errors import StimulusError
from biassay.models.base import weights_digest
from biassay.prompts.sentences import get_given_texts
from biassay.studies.associations.results import explain_searched

WORDS = {
    "X": ["John", "Paul", "Mike", "Kevin"],
    "Y": ["Amy", "Joan", "Lisa", "Sarah"],
    "A": ["executive", "management", "salary", "office"],
    "B": ["home", "parents", "wedding", "relatives"],
}
CLAIMS = (
    *("p_value", "p_adjusted", "significant", "ci_low", "cosine_ci_low"),
    *("fixed_words_p_value", "sentences_p_value"),
)


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("vectors") / "v.txt"
    rng = np.random.default_rng(0)
    shift = {"X": 1.0, "Y": -1.0, "A": 1.0, "B": -1.0}
    lines = [
        f"{word} {' '.join(f'{value:.4f}' for value in rng.normal(shift[role], 0.5, 6))}"
        for role, words in WORDS.items()
        for word in words
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def found_file(folder: Path, vectors: Path, *, suffix: str = "toml") -> Path:
    identity = biassay.open_encoder(f"vectors:{vectors}").identity
    lines = ['[source]\nname = "found"\ncitation = "words found in a model"\nversion = "1"']
    lines.append(f'searched_models = ["{weights_digest(identity.backend, identity.name, identity.revision)}"]')
    lines += [f"[concepts.{role}]\nwords = {json.dumps(words)}" for role, words in WORDS.items()]
    lines.append('[tests.found]\ntitle = "Found"\nX = "X"\nY = "Y"\nA = "A"\nB = "B"')
    path = folder / "found.toml"
    path.write_text("\n".join(lines))
    if suffix == "toml":
        return path
    (test,) = load_tests(path)
    other = folder / f"found.{suffix}"
    other.write_text(to_sent_bias(test, get_given_texts(test)))
    return other


@pytest.mark.parametrize("suffix", ["toml", "json"])
def test_the_searched_model_gets_a_description_and_no_claim(tmp_path: Path, vectors: Path, suffix: str) -> None:
    run = biassay.run(f"vectors:{vectors}", tests=[str(found_file(tmp_path, vectors, suffix=suffix))])
    (row,) = run.results
    assert row.searched
    assert row.effect_size is not None
    assert row.effect_size > 1.5
    assert [name for name in CLAIMS if getattr(row, name) is not None] == []
    (finding,) = run.findings()
    assert finding.evidence in ("described", "descriptive")
    assert explain_searched(None) in finding.notes


def test_it_is_not_counted_in_the_family(tmp_path: Path, vectors: Path) -> None:
    own = {"name": "own", **WORDS}
    run = biassay.run(f"vectors:{vectors}", tests=[str(found_file(tmp_path, vectors)), own])
    found, other = run.results
    assert (found.family_size, other.family_size) == (None, 1)


def test_terminal_report_and_json_say_why(tmp_path: Path, vectors: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from biassay.cli import main

    out = tmp_path / "out"
    arguments = ["run", f"vectors:{vectors}", "--tests", str(found_file(tmp_path, vectors)), "--out", str(out)]
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "found by searching this model" in told
    assert "after correction (" not in told
    assert "found by searching this model" in (out / "report.html").read_text()
    (saved,) = json.loads(biassay.load(out).to_json())["results"]
    assert (saved["searched"], saved["p_value"]) == (True, None)


def test_robustness_refuses_it(tmp_path: Path, vectors: Path) -> None:
    (row,) = biassay.robustness(f"vectors:{vectors}", tests=str(found_file(tmp_path, vectors))).results
    assert (row.status, row.reason) == ("skipped", explain_searched(None))


@pytest.mark.parametrize(("target", "attribute"), [("X", "A"), ("Y", "B"), ("X", "B")])
def test_a_word_that_is_target_and_attribute_is_an_error(target: str, attribute: str) -> None:
    words: dict[str, Any] = {**WORDS, attribute: [*WORDS[attribute], WORDS[target][0]]}
    with pytest.raises(StimulusError, match=f"{target} and {attribute} share '{WORDS[target][0]}'"):
        select_tests(words)


@pytest.mark.parametrize(("role", "word"), [("A", "john"), ("X", "john"), ("Y", "JOHN")])
def test_words_that_differ_only_in_case_are_an_error_on_a_model_that_folds_case(role: str, word: str) -> None:
    words = {**WORDS, role: [*WORDS[role], word]}
    (row,) = biassay.run("glove", tests=words).results
    assert row.status == "skipped"
    assert row.reason is not None
    assert "'John' (X)" in row.reason
    assert f"{word!r} ({role})" in row.reason


def test_words_that_differ_in_case_and_in_vector_are_measured(tmp_path: Path, vectors: Path) -> None:
    path = tmp_path / "cased.txt"
    path.write_text(vectors.read_text() + "john 1 0 0 2 0 0\n")
    words = {**WORDS, "A": [*WORDS["A"], "john"]}
    (row,) = biassay.run(f"vectors:{path}", tests=words).results
    assert row.status == "measured"
