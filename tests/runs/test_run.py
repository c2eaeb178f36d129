"""`Run`: parts, tables, comparisons and reports; run folders that are read back and named."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.results.made_runs import consistent, result, run_of

import biassay
from biassay.cache.outputs import ModelOutputs
from biassay.errors import UnknownNameError, UsageError
from biassay.models.base import TextEmbeddings
from biassay.runs.compare import report
from biassay.runs.folders import name_folders
from biassay.runs.run import Run
from biassay.studies.associations import study
from biassay.studies.associations.study import GIVEN_AS_WORDS

WORDS = {"X": ["rose", "lily", "tulip"], "Y": ["ant", "spider", "fly"], "A": ["love", "peace", "joy"]}
WORDS |= {"B": ["hatred", "war", "agony"]}
SENT_BIAS = ("targ1", "targ2", "attr1", "attr2")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return biassay.run("glove", ["weat6", "weat7"], cache=tmp_path_factory.mktemp("vectors"))


def test_a_part_of_a_run_is_a_run(run: Run) -> None:
    part = run["weat6"]
    assert isinstance(part, Run)
    assert [row.test for row in part.results] == [test.name for test in part.manifest.inputs.tests] == ["weat6"]
    assert part.results[0] == run.results[0]  # with the corrections of the whole run
    assert [finding.item for finding in part.findings()] == ["weat6"]
    with pytest.raises(UnknownNameError, match="weat6"):
        run["weat66"]


def test_a_report_is_one_page_of_runs_and_folders(run: Run, tmp_path: Path) -> None:
    page = run.report(tmp_path / "page.html")
    other = run_of("other", [result("n", "t")])
    both = report([run.save(tmp_path / "run"), other], tmp_path / "both.html")
    assert "weat6" in page.read_text()
    assert ("weat6" in both.read_text(), ">n<" in both.read_text()) == (True, True)
    (tmp_path / "mine.html").write_text("mine")
    with pytest.raises(UsageError, match=r"mine\.html"):
        run.report(tmp_path / "mine.html")


def test_runs_folders_and_models_of_one_run_are_compared(tmp_path: Path) -> None:
    one, two = (consistent(run_of(name, [result(name, "t"), result(name, "u")])) for name in ("one", "two"))
    both = consistent(run_of("both", [*one.results, *two.results]))
    folder = two.save(tmp_path / "two")
    tables = [
        found.tables for found in (one.compare(two), one.compare(folder), biassay.compare(one, folder), both.compare())
    ]
    assert all(found == tables[0] for found in tables)
    assert both.compare(baseline="two").baseline == "two"
    assert [row.test for row in biassay.compare(one, two, tests=["u"]).tables["associations"]] == ["u"]
    with pytest.raises(UsageError, match="copies"):
        one.compare(one)


@pytest.mark.parametrize("together", [1, 900])
def test_numbers_are_the_same_however_many_vectors_are_in_memory(
    together: int, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tests, read = ["weat6", "weat7", "weat8", "sent-weat6"], set[Sequence[str]]()
    whole, encoded = biassay.run("glove", tests, cache=own_cache), ModelOutputs._load

    def noted(answers: ModelOutputs, name: str) -> TextEmbeddings:
        read.add(answers.requested_texts)
        return encoded(answers, name)

    monkeypatch.setattr(study, "_MAX_TEXTS", together)
    monkeypatch.setattr(ModelOutputs, "_load", noted)
    assert biassay.run("glove", tests, cache=own_cache).results == whole.results
    assert len(read) == {1: 4, 900: 2}[together] + 4  # frequent words and those of tests, alone and in sentences
    assert max(map(len, read)) < whole.manifest.models[0].texts


# ---- tests given as words


@pytest.mark.parametrize("tests", [WORDS | {"name": "garden"}, [WORDS | {"name": "garden"}], {"garden": WORDS}])
def test_tests_are_given_as_words(tests: object, tmp_path: Path) -> None:
    run = biassay.run("glove", tests, out=tmp_path / "run")  # type: ignore[arg-type]
    (row,), (record,) = run.results, run.manifest.inputs.tests
    assert (row.test, row.num_targ1, record.pattern) == ("garden", 3, GIVEN_AS_WORDS)
    assert biassay.load(tmp_path / "run") == run
    content = {
        role: {"category": role, "examples": words} for role, words in zip(SENT_BIAS, WORDS.values(), strict=True)
    }
    (tmp_path / "garden.json").write_text(json.dumps(content))
    from_file = biassay.run("glove", str(tmp_path / "garden.json")).results[0]
    assert (row.effect_size, row.p_value) == (from_file.effect_size, from_file.p_value)


def test_wrong_words_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    for wrong in (WORDS | {"B": "no such concept"}, {"X": ["a"]}, WORDS | {"Z": []}, [3]):
        with pytest.raises(biassay.BiassayError):
            biassay.run("glove", wrong, out=tmp_path / "run")  # type: ignore[arg-type]
    assert not (tmp_path / "run").exists()


# ---- names of folders


def test_folders_of_one_name_get_the_part_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert name_folders([Path("a/run"), Path("b/run")]) == ["a/run", "b/run"]
    assert name_folders([Path("a/x/run"), Path("b/x/run"), Path("other")])[:2] == ["a/x/run", "b/x/run"]
    names = name_folders([Path("run"), Path("run/run"), Path("run/run/run")])
    assert len(set(names)) == 3


def test_a_folder_named_twice_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").mkdir()
    (tmp_path / "link").symlink_to("a")
    for again in (Path("a"), Path("b/../a"), tmp_path / "a", Path("link")):
        with pytest.raises(UsageError, match="a is named twice"):
            name_folders([Path("a"), Path("b"), again])
