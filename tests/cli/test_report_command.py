"""``biassay report`` as a user types it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import biassay
from biassay.runs.run import Run

from .conftest import Cli
from .shown_runs import MARK, TESTS, edit, edit_first, line_of, manifest_in, names, read, stored, told

# ---- where everything goes


def test_the_page_of_a_run_is_in_its_folder(cli: Cli, tmp_path: Path) -> None:
    """From the start: the run is made by the command line too, and its page again by report."""
    out = tmp_path / "run"
    assert cli("run", "glove", "--tests", ",".join(TESTS), "--out", out)[0] == 0
    first = (out / "report.html").read_text()
    (out / "report.html").unlink()
    code, stdout, _ = cli("report", out)
    assert code == 0
    assert f"open {out / 'report.html'}" in stdout
    assert (out / "report.html").read_text() == first
    assert names(out) == {"manifest.json", "results.json", "results.tsv", "report.html", "arrays/0.npz"}
    for result in Run.load(out).results:
        _, d, interval, _ = line_of(stdout, result.test)
        assert (d, interval) == (f"{result.effect_size:.2f}", f"{result.ci_low:.2f} to {result.ci_high:.2f}")


def test_a_page_is_made_again(cli: Cli, folder: Path) -> None:
    for _ in range(2):
        assert cli("report", folder, "--quiet") == (0, "", "")
    page = (folder / "report.html").read_bytes()
    (folder / "report.html").write_bytes(page[:5000])
    assert cli("report", folder, "--quiet") == (0, "", "")
    assert (folder / "report.html").read_bytes() == page


def test_the_page_of_several_runs_is_in_this_folder(
    cli: Cli, folder: Path, two: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    code, stdout, _ = cli("report", folder, two)
    assert code == 0
    assert stdout.rstrip().endswith("open report.html")
    assert names(here) == {"report.html"}
    assert not (folder / "report.html").exists()
    text = read(here / "report.html")
    assert "glove" in text
    assert "vectors:mine.txt" in text


def test_out_names_the_page(cli: Cli, folder: Path, two: Path, tmp_path: Path) -> None:
    for runs in ((folder,), (folder, two)):
        page = tmp_path / f"{len(runs)}.page"
        code, stdout, _ = cli("report", *runs, "--out", page)
        assert (code, MARK in page.read_text()) == (0, True)
        assert f"open {page}" in stdout
        assert not (folder / "report.html").exists()


def test_a_file_that_is_no_report_is_not_overwritten(refuses: Callable[..., str], folder: Path, tmp_path: Path) -> None:
    thesis = tmp_path / "thesis.html"
    for content in ("<title>My thesis on biassay:</title>", "", "x" * 30_000 + MARK):
        thesis.write_text(content)
        assert f"{thesis} exists and is not a report of biassay" in refuses("report", folder, "--out", thesis)
    for own in ("manifest.json", "results.json"):
        assert "is not a report" in refuses("report", folder, "--out", folder / own)
    (folder / "report.html").write_text("mine")
    assert "is not a report" in refuses("report", folder)


def test_a_page_in_no_folder_or_that_is_one(refuses: Callable[..., str], folder: Path, tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere" / "page.html"
    assert f"the folder {nowhere.parent} does not exist" in refuses("report", folder, "--out", nowhere)
    assert f"{folder} is a folder" in refuses("report", folder, "--out", folder)
    under = folder / "manifest.json" / "page.html"
    assert "does not exist" in refuses("report", folder, "--out", under)


# ---- what is said


def test_quiet_prints_nothing(cli: Cli, folder: Path, tmp_path: Path) -> None:
    assert cli("report", folder, "--quiet", "--publish", tmp_path / "paper", "--format", "svg") == (0, "", "")
    assert (folder / "report.html").is_file()
    assert (tmp_path / "paper" / "results-as-published.tsv").is_file()


def test_json_of_a_run_is_what_its_folder_holds(cli: Cli, folder: Path) -> None:
    code, stdout, stderr = cli("report", folder, "--json")
    assert (code, stderr) == (0, "")
    (one,) = told(stdout)
    assert one["results"] == stored(folder)
    assert one["manifest"] == manifest_in(folder)
    assert (folder / "report.html").is_file()
    assert cli("report", folder, "--json", "--quiet")[1] == stdout


def test_another_model_changes_no_correction(cli: Cli, folder: Path, two: Path, tmp_path: Path) -> None:
    (one,) = told(cli("report", folder, two, "--json", "--out", tmp_path / "p.html")[1])
    assert one["results"] == [*stored(folder), *stored(two)]


def test_under_the_papers_protocol_several_runs_are_corrected_anew(cli: Cli, tmp_path: Path) -> None:
    folders = [tmp_path / test for test in ("weat6", "weat8")]
    for folder in folders:
        cli("run", "glove", "--tests", folder.name, "--protocol", "may2019", "--out", folder, "--quiet")
    (one,) = told(cli("report", *folders, "--json", "--out", tmp_path / "p.html")[1])
    both = [row for folder in folders for row in stored(folder)]
    expected = biassay.holm([row["p_value"] for row in both], 0.01)
    assert [row["p_adjusted"] for row in one["results"]] == expected.adjusted.tolist()
    assert [row["significant"] for row in one["results"]] == expected.rejected.tolist() == [True, True]
    assert [row["family_size"] for row in one["results"]] == [2, 2] != [row["family_size"] for row in both]


@pytest.mark.slow
def test_runs_over_texts_and_contexts_stand_side_by_side(cli: Cli, folder: Path, contexts: Run, tmp_path: Path) -> None:
    runs = [folder, contexts.save(tmp_path / "contexts")]
    printed = told(cli("report", *runs, "--out", tmp_path / "p.html", "--json")[1])
    assert [one["manifest"]["study"] for one in printed] == ["associations", "associations"]
    for one, run in zip(printed, runs, strict=True):
        assert one["results"] == stored(run)


def test_figures_are_not_called_tests(cli: Cli, folder: Path, tmp_path: Path) -> None:
    stderr = cli("report", folder, "--publish", tmp_path / "paper", "--format", "svg")[2]
    assert not re.search(r"\btests?\b", stderr)


# ---- only some tests


@pytest.mark.parametrize(
    ("patterns", "kept"),
    [
        (("weat6",), ["weat6"]),
        (("weat8", "weat[67]"), list(TESTS)),
        (("*7", "weat7"), ["weat7"]),
        (("*",), list(TESTS)),
    ],
)
def test_only_tests_that_are_named_are_shown(
    patterns: tuple[str, ...], kept: list[str], cli: Cli, folder: Path
) -> None:
    code, stdout, _ = cli("report", folder, "--tests", ",".join(patterns), "--json")
    (one,) = told(stdout)
    assert (code, [row["test"] for row in one["results"]]) == (0, kept)
    assert [test["name"] for test in one["manifest"]["inputs"]["tests"]] == kept
    rows = [row for row in stored(folder) if row["test"] in kept]
    for field in ("p_adjusted", "family", "family_size"):
        assert [row[field] for row in one["results"]] == [row[field] for row in rows]  # those of the whole run
    assert [row["effect_size"] for row in one["results"]] == [row["effect_size"] for row in rows]
    text = read(folder / "report.html")
    assert all((test in text) is (test in kept) for test in TESTS)


def test_tests_take_all_words_up_to_the_next_option(cli: Cli, folder: Path) -> None:
    (one,) = told(cli("report", folder, "--tests", "weat6,weat8", "--json", "--tests", "weat7")[1])
    assert len(one["results"]) == 3
    (one,) = told(cli("report", "--tests=weat6", "--json", folder)[1])
    assert len(one["results"]) == 1


def test_names_of_no_test_are_refused(refuses: Callable[..., str], folder: Path, two: Path, tmp_path: Path) -> None:
    said = refuses("report", folder, "--tests", "weat9,Weat6")
    assert "one: no test is named weat9 or Weat6" in said
    assert "no test is named" in refuses("report", folder, two, "--out", tmp_path / "p", "--tests", "")
    assert "requires an argument" in refuses("report", folder, "--tests")


# ---- what is not alike


def test_runs_that_differ_are_refused_unless_mixed(
    cli: Cli, refuses: Callable[..., str], folder: Path, two: Path, tmp_path: Path
) -> None:
    edit(two / "manifest.json", lambda made: made["settings"].update(protocol="may2019"))
    page = tmp_path / "p.html"
    said = refuses("report", folder, two, "--out", page)
    assert "protocol is exact in one, may2019 in two" in said
    assert "--mixed" in said
    code, stdout, _ = cli("report", folder, two, "--out", page, "--mixed")
    assert code == 0
    assert "runs differ: protocol is exact in one, may2019 in two" in " ".join(stdout.split())
    assert "protocol is exact in one, may2019 in two" in read(page)


def test_a_test_with_other_texts_is_refused_unless_mixed(
    cli: Cli, refuses: Callable[..., str], folder: Path, two: Path, tmp_path: Path
) -> None:
    edit_first(two, test_digest="another")
    said = refuses("report", folder, two, "--out", tmp_path / "p.html")
    assert "same name and other texts: weat6" in said
    assert cli("report", folder, two, "--out", tmp_path / "p.html", "--mixed", "--quiet") == (0, "", "")
    rest = ("--tests", "weat7,weat8", "--quiet")
    assert cli("report", folder, two, "--out", tmp_path / "p.html", *rest) == (0, "", "")
