"""The study of the example: measured, killed and resumed, shown, published and compared like any other."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import biassay
from biassay.errors import StimulusError, UnknownNameError, UsageError
from biassay.runs.run import Run

Cli = Callable[..., tuple[int, str, str]]
OCCUPATIONS = """[occupations]
men = ["pilot", "driver", "plumber"]
women = ["nurse", "teacher"]
[sentences]
templates = ["The {occupation} said that {blank} was late.", "When the {occupation} came, {blank} was tired."]
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    (tmp_path / "own.toml").write_text(OCCUPATIONS)
    return tmp_path / "own.toml"


def test_numbers_follow_from_the_array(measured: Run) -> None:
    grid = measured.arrays["0/log_odds"]
    rows = [row for row in measured.tables["occupations"] if row.model == "short"]
    assert grid.shape == (20, 4)
    assert [row.log_odds for row in rows] == grid.mean(axis=1).tolist()
    means, is_men = grid.mean(axis=1), np.array([row.group == "men" for row in rows])
    result = measured.results[0]
    assert result.effect_size == pytest.approx(means[is_men].mean() - means[~is_men].mean())
    assert result.p_floor == pytest.approx(1 / math.comb(20, 10))
    without = [np.delete(means, i) for i in range(20)]
    groups = [np.delete(is_men, i) for i in range(20)]
    jackknife = np.array([x[men].mean() - x[~men].mean() for x, men in zip(without, groups, strict=True)])
    assert measured.arrays["0/contributions"] == pytest.approx(20 * result.effect_size - 19 * jackknife)


def test_findings_follow_from_the_outcomes(measured: Run, book: Path, own: Path) -> None:
    assert [(one.model, one.evidence, one.about) for one in measured.findings()] == [
        ("short", "significant", "people"),
        ("long", "significant", "people"),
    ]
    first = measured.findings()[0]
    assert (first.effect, first.low, first.high) == (
        measured.results[0].effect_size,
        measured.results[0].ci_low,
        measured.results[0].ci_high,
    )
    assert first.effect is not None
    turned = biassay.measure("pronouns", f"letters:{book}", {"first": "she", "second": "he"}).findings()[0]
    assert (turned.evidence, turned.opposite, turned.effect) == ("uncorrected", True, pytest.approx(-first.effect))
    few = biassay.measure("pronouns", f"letters:{book}", {"occupations": str(own), "alpha": 0.05}).findings()[0]
    assert few.evidence == "not_testable"


def test_a_run_is_read_back_and_cut_to_an_occupation(measured: Run, tmp_path: Path) -> None:
    assert biassay.load(measured.save(tmp_path / "run")) == measured
    assert {row.occupation for row in measured["nurse"].tables["occupations"]} == {"nurse"}
    with pytest.raises(UnknownNameError):
        measured["astronaut"]


@pytest.mark.parametrize("settings", [{"first": "she"}, {"alpha": 1.0}, {"occupations": "nowhere.toml"}, {"alfa": 0.1}])
def test_settings_are_checked(book: Path, settings: dict[str, object], tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        biassay.measure("pronouns", f"letters:{book}", settings, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("before", "after"),
    [('"driver", ', '"nurse", '), ("{blank} was late", "he was late"), ("men = [", "men = [["), ("women", "people")],
)
def test_a_file_that_is_not_valid_is_refused(book: Path, own: Path, before: str, after: str) -> None:
    own.write_text(OCCUPATIONS.replace(before, after))
    with pytest.raises(StimulusError, match=r"own\.toml"):
        biassay.measure("pronouns", f"letters:{book}", {"occupations": str(own)})


def test_the_command(cli: Cli, book: Path, tmp_path: Path, measured: Run) -> None:
    code, stdout, _ = cli("pronouns", f"short=letters:{book}", "--out", tmp_path / "run", "--json")
    content = json.loads(stdout)
    assert (code, content["manifest"]["study"], content["manifest"]["package"]) == (0, "pronouns", "biassay-example")
    assert content["findings"][0]["effect"] == measured.results[0].effect_size
    assert content["manifest"]["versions"]["biassay-example"]
    assert (tmp_path / "run" / "results.tsv").read_text().count("\n") == 2
    assert cli("pronouns")[0] == 2
    assert cli("pronouns", f"letters:{book}", "--alpha", "2")[0] == 2
    assert cli("pronouns", f"letters:{book}", "--resume", tmp_path / "run", "--alpha", "0.1")[0] == 2


def test_the_help_lists_it_and_its_options(cli: Cli) -> None:
    assert "pronouns" in cli("--help")[1]
    stdout = cli("pronouns", "--help")[1]
    for option in (
        "--first",
        "--second",
        "--occupations",
        "--alpha",
        "--out",
        "--resume",
        "--cache",
        "--engine",
        "--json",
    ):
        assert option in stdout
    assert "'pronouns'" in cli("pronoums")[2]


KILLED = """
import os, signal, sys
from biassay_example.letters import Letters
from biassay.cli import main
fill, calls = Letters.fill, []
def killing(self, blanks):
    calls.append(blanks)
    if len(calls) > int(sys.argv[1]):
        os.kill(os.getpid(), signal.SIGKILL)
    return fill(self, blanks)
Letters.fill = killing
main(sys.argv[2:])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no kill -9")
def test_a_killed_run_goes_on_where_it_stopped(
    cli: Cli, book: Path, tmp_path: Path, own_cache: Path, measured: Run
) -> None:
    models = [f"short=letters:{book}", f"long=letters:{book}?n=5"]
    command = [sys.executable, "-c", KILLED, "7", "pronouns", *models, "--out", str(tmp_path / "run")]
    done = subprocess.run(
        command, env={**os.environ, "BIASSAY_CACHE": str(own_cache)}, capture_output=True, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert [one.measured for one in biassay.load(tmp_path / "run").manifest.models] == [
        True,
        False,
    ]
    assert cli("resume", tmp_path / "run", "--quiet")[0] == 0
    run = biassay.load(tmp_path / "run")
    assert run.manifest.status == "complete"
    assert run.tables == measured.tables
    assert all((run.arrays[name] == array).all() for name, array in measured.arrays.items())
    assert sum(one.encoded for one in run.manifest.models) == 160 - 16 * 2


def test_report_and_publish(cli: Cli, measured: Run, tmp_path: Path) -> None:
    folder = measured.save(tmp_path / "run")
    code, stdout, _ = cli("report", folder, "--publish", tmp_path / "paper", "--json")
    assert (code, len(json.loads(stdout)[0]["results"])) == (0, 2)
    page = (folder / "report.html").read_text()
    for text in ("dietitian", 'id="pronouns-1-results"', "<dt>alpha</dt><dd>0.05</dd>"):
        assert text in page
    names = {path.name for path in (tmp_path / "paper").iterdir()}
    assert {"pronouns-results.tex", "pronouns-occupations.md", "pronouns-results.tsv"} <= names
    assert (tmp_path / "paper" / "pronouns-results.tsv").read_text() == measured.table().to_tsv()
    card = (tmp_path / "paper" / "model-card-long.md").read_text()
    assert f"{measured.results[1].effect_size:.6g}" in card


def test_the_gate_judges_the_outcomes_of_a_plugin(cli: Cli, book: Path, measured: Run, tmp_path: Path) -> None:
    """A book in which every pronoun is turned round is better; the other way round the gate fails."""
    turned = re.sub(r"\b(she|he)\b", lambda word: "he" if word[0] == "she" else "she", book.read_text())
    (tmp_path / "turned.txt").write_text(turned)
    for name, path in (("old", tmp_path / "turned.txt"), ("new", book)):
        assert cli("pronouns", f"{name}=letters:{path}", "--out", tmp_path / name, "--quiet")[0] == 0
    gate = ("--margin", 0.1, "--fail-if")
    code, stdout, stderr = cli("compare", tmp_path / "old", tmp_path / "new", *gate, "worse", "--json")
    (verdict,) = json.loads(stdout)["verdicts"]
    assert (code, verdict["outcome"], verdict["over"]) == (3, "worse", "20 occupations")
    assert "new is worse" in stderr
    run = biassay.load(tmp_path / "new")
    old = biassay.load(tmp_path / "old").results[0].effect_size
    assert verdict["growth"] == pytest.approx(run.results[0].effect_size - old)
    assert run.results[0].effect_size == measured.results[0].effect_size
    assert verdict["low"] > verdict["margin"] == pytest.approx(0.1 * math.pi / math.sqrt(3))
    arguments = (tmp_path / "new", tmp_path / "old", "--out", tmp_path / "page.html", "--publish", tmp_path / "paper")
    code, stdout, _ = cli("compare", *arguments, *gate, "inconclusive", "--min-power", "0")
    assert (code, "Better (1 of 1)" in stdout) == (0, True)
    assert "is better" in (tmp_path / "page.html").read_text()
    assert (tmp_path / "paper" / "pronouns-differences.tex").exists()


def test_runs_with_other_settings_are_compared_only_if_asked(measured: Run, book: Path) -> None:
    other = biassay.measure("pronouns", {"other": f"letters:{book}"}, {"alpha": 0.01})
    with pytest.raises(UsageError, match=r"alpha.*0\.05.*0\.01"):
        biassay.compare(measured, other)
    found = biassay.compare(measured, other, mixed=True)
    assert (found.models, len(found.notes), len(found.remarks)) == (["other"], 1, 1)
    with pytest.raises(UsageError, match="only one model given"):
        biassay.compare(biassay.measure("pronouns", {"one": f"letters:{book}"}))
