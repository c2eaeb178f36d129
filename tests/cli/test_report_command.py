"""``biassay report`` as a user types it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from biassay.runs.run import Run

from .conftest import Cli
from .shown_runs import MARK, TESTS, line_of, names, read, stored, told

# ---- where everything goes


def test_the_page_of_a_run_is_in_its_folder(cli: Cli, tmp_path: Path) -> None:
    """From the start: the run is made by the command line too, and its page again by report."""
    out = tmp_path / "run"
    assert cli("run", "glove", "--tests", ",".join(TESTS), "--out", out)[0] == 0
    first = (out / "report.html").read_text()
    (out / "report.html").unlink()
    code, stdout, _ = cli("report", out)
    assert code == 0
    assert f"Report  {out / 'report.html'}" in stdout
    assert (out / "report.html").read_text() == first
    assert names(out) == {"manifest.json", "results.json", "results.tsv", "report.html", "arrays/0.npz"}
    for result in Run.load(out).results:
        d, interval = line_of(stdout, result.test)
        assert (d, interval) == (f"{result.effect_size:.2f}", f"[{result.ci_low:.2f}, {result.ci_high:.2f}]")


def test_the_page_of_several_runs_is_in_this_folder(
    cli: Cli, folder: Path, two: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    code, stdout, _ = cli("report", folder, two)
    assert code == 0
    assert stdout.rstrip().endswith("Report  report.html")
    assert names(here) == {"report.html"}
    assert not (folder / "report.html").exists()
    text = read(here / "report.html")
    assert "glove" in text
    assert "vectors:mine.txt" in text


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


def test_names_of_no_test_are_refused(refuses: Callable[..., str], folder: Path, two: Path, tmp_path: Path) -> None:
    said = refuses("report", folder, "--tests", "weat9,Weat6")
    assert "one: no test is named weat9 or Weat6" in said
    assert "no test is named" in refuses("report", folder, two, "--out", tmp_path / "p", "--tests", "")
    assert "requires an argument" in refuses("report", folder, "--tests")


# ---- what is not alike
