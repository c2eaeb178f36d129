"""Run folders of all kinds, read and named: runs made by hand as witnesses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from biassay.results.run import Run
from tests.results.made_runs import contexts, discovery, result, run_of, some, stereotypes

import biassay
from biassay.errors import RunFolderError, UsageError
from biassay.results.gathering import load_found, name_folders
from biassay.results.records import FORMAT_VERSION
from biassay.stimuli.catalogue import catalogue
from biassay.texts.sentences import digest_of


def edited(folder: Path, **given: Any) -> None:
    path = folder / "manifest.json"
    content = json.loads(path.read_text()) | given
    content.pop("digest", None)
    path.write_text(json.dumps(content))


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
    del content["digest"]
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


# ---- folders of an older biassay


@pytest.mark.parametrize(
    ("name", "digest", "known"),
    [
        ("sent-weat1", None, ("method", "things", "weat1", "bleached")),
        ("sent-weat1", "of other texts", (None, None, None, None)),
        ("own", None, (None, None, None, None)),
    ],
)
def test_what_an_older_test_is_about_is_known_by_its_name_and_texts(
    tmp_path: Path, name: str, digest: str | None, known: tuple[str | None, ...]
) -> None:
    digest = digest or digest_of(catalogue().tests["sent-weat1"])
    run_of("one", [result("m", name, test_digest=digest)]).save(tmp_path)
    content = json.loads((tmp_path / "results.json").read_text())
    for field in ("about", "topic", "variant_of", "template"):
        assert content["results"][0].pop(field) is None
    del content["digest"]
    (tmp_path / "results.json").write_text(json.dumps(content))
    (found,) = Run.load(tmp_path).results
    assert (found.about, found.topic, found.variant_of, found.template) == known
