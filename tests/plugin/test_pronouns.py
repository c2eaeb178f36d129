"""The study of the example: measured, killed and resumed, shown, published and compared like any other."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from itertools import combinations
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
    own = [row for row in measured.results if row.model == "short"]
    assert grid.shape == (20, 4)
    assert [row.log_odds for row in own] == grid.mean(axis=1).tolist()
    means, men = grid.mean(axis=1), [row.group == "men" for row in own]
    x, y = means[men], means[~np.array(men)]
    row = measured.tables["models"][0]
    assert (row.men, row.women) == (pytest.approx(x.mean()), pytest.approx(y.mean()))
    assert row.effect_size == pytest.approx((x.mean() - y.mean()) / means.std(ddof=1))
    assert row.p_floor == pytest.approx(1 / math.comb(20, 10))


def test_the_p_value_is_that_of_all_splits(book: Path, own: Path) -> None:
    run = biassay.measure("pronouns", f"letters:{book}", {"occupations": str(own)})
    means = run.arrays["0/log_odds"].mean(axis=1)
    splits = [means[list(split)].sum() for split in combinations(range(5), 3)]
    assert run.tables["models"][0].p_value == sum(one >= means[:3].sum() - 1e-12 for one in splits) / 10


def test_findings(measured: Run, book: Path, own: Path) -> None:
    assert [(one.model, one.evidence, one.about) for one in measured.findings()] == [
        ("short", "significant", "people"),
        ("long", "significant", "people"),
    ]
    assert [one.effect for one in measured.findings()] == [row.effect_size for row in measured.tables["models"]]
    turned = biassay.measure("pronouns", f"letters:{book}", {"first": "she", "second": "he"}).findings()[0]
    assert (turned.evidence, turned.opposite, turned.effect) == (
        "uncorrected",
        True,
        pytest.approx(-measured.findings()[0].effect),
    )
    few = biassay.measure("pronouns", f"letters:{book}", {"occupations": str(own), "alpha": 0.05}).findings()[0]
    assert few.evidence == "not_testable"


def test_a_run_is_read_back_and_cut_to_an_occupation(measured: Run, tmp_path: Path) -> None:
    assert biassay.load(measured.save(tmp_path / "run")) == measured
    assert {row.occupation for row in measured["nurse"].results} == {"nurse"}
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


def test_a_model_that_cannot_be_measured_says_why(cli: Cli, book: Path, tmp_path: Path) -> None:
    """One that does not know a pronoun, and one to which all occupations are alike; the third is measured."""
    (tmp_path / "flat.txt").write_text("he she ñandú")
    (tmp_path / "known.txt").write_text(book.read_text() + " The pilot saw a ñandú.")
    models = [
        f"{name}=letters:{path}"
        for name, path in (("deaf", book), ("flat", tmp_path / "flat.txt?n=1"), ("good", tmp_path / "known.txt"))
    ]
    code, stdout, stderr = cli("pronouns", *models, "--first", "ñandú", "--out", tmp_path / "run", "--json")
    content = json.loads(stdout)
    assert code == 1, stderr
    assert [row["reason"] is None for row in content["models"]] == [False, False, True]
    assert "ñandú" in content["models"][0]["reason"]
    assert content["manifest"]["models"][0]["words_lost"] == ["ñandú"]
    assert [one["evidence"] for one in content["findings"]][:2] == ["skipped"] * 2
    assert content["models"][2]["p_value_holm"] == content["models"][2]["p_value"]
    assert cli("report", tmp_path / "run", "--publish", tmp_path / "paper", "--quiet")[0] == 0
    found = json.loads(cli("compare", tmp_path / "run", "--baseline", "good", "--json")[1])
    assert [row["difference"] for row in found["differences"] if row["table"] == "models"] == [None, None]
    assert cli("compare", tmp_path / "run", "--publish", tmp_path / "compared")[0] == 0


def test_the_command(cli: Cli, book: Path, tmp_path: Path, measured: Run) -> None:
    code, stdout, _ = cli(
        "pronouns", f"short={book.as_posix()}".replace("=", "=letters:"), "--out", tmp_path / "run", "--json"
    )
    content = json.loads(stdout)
    assert (code, content["manifest"]["study"], content["manifest"]["package"]) == (0, "pronouns", "biassay-example")
    assert content["models"][0]["effect_size"] == measured.tables["models"][0].effect_size
    assert content["findings"][0]["evidence"] == "significant"
    assert content["manifest"]["versions"]["biassay-example"]
    assert (tmp_path / "run" / "results.tsv").read_text().count("\n") == 21
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
@pytest.mark.parametrize("batches", [2, 7])  # five of each model
def test_a_killed_run_goes_on_where_it_stopped(
    cli: Cli, book: Path, tmp_path: Path, own_cache: Path, batches: int, measured: Run
) -> None:
    models = [f"short=letters:{book}", f"long=letters:{book}?n=5"]
    command = [sys.executable, "-c", KILLED, str(batches), "pronouns", *models, "--out", str(tmp_path / "run")]
    done = subprocess.run(
        command, env={**os.environ, "BIASSAY_CACHE": str(own_cache)}, capture_output=True, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert [one.measured for one in biassay.load(tmp_path / "run").manifest.models] == [batches > 5, False]
    assert cli("resume", tmp_path / "run", "--quiet")[0] == 0
    run = biassay.load(tmp_path / "run")
    assert run.manifest.status == "complete"
    assert run.tables == measured.tables
    assert all((run.arrays[name] == array).all() for name, array in measured.arrays.items())
    assert sum(one.encoded for one in run.manifest.models) == 160 - 16 * (batches % 5)


def test_a_run_goes_on_with_the_same_occupations_only(book: Path, own: Path, tmp_path: Path) -> None:
    run = biassay.measure("pronouns", f"letters:{book}", {"occupations": str(own)}, out=tmp_path / "run")
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    del manifest["digest"]
    manifest["status"], manifest["models"][0]["measured"] = "running", False
    (tmp_path / "run" / "manifest.json").write_text(json.dumps(manifest))
    assert biassay.resume(tmp_path / "run").tables == run.tables
    (tmp_path / "run" / "manifest.json").write_text(json.dumps(manifest))
    own.write_text(OCCUPATIONS.replace("was late", "was early"))
    with pytest.raises(UsageError, match="digest"):
        biassay.resume(tmp_path / "run")


def test_report_and_publish(cli: Cli, measured: Run, tmp_path: Path) -> None:
    folder = measured.save(tmp_path / "run")
    code, stdout, _ = cli("report", folder, "--publish", tmp_path / "paper", "--json")
    assert (code, len(json.loads(stdout)[0]["results"])) == (0, 40)
    page = (folder / "report.html").read_text()
    for text in (
        "dietitian",
        "What the columns hold",
        'id="pronouns-1-results"',
        'id="pronouns-1-models"',
        "alpha 0.05",
    ):
        assert text in page
    names = {path.name for path in (tmp_path / "paper").iterdir()}
    assert {"pronouns-results.tex", "pronouns-models.md", "pronouns-results.tsv", "model-card-short.md"} <= names
    assert (tmp_path / "paper" / "pronouns-results.tsv").read_text() == measured.table().to_tsv()
    assert (tmp_path / "paper" / "pronouns-results.md").read_text().count("\n| ") == 22
    card = (tmp_path / "paper" / "model-card-long.md").read_text()
    assert f"{measured.tables['models'][1].effect_size:.6g}" in card


def test_the_terminal(cli: Cli, measured: Run, tmp_path: Path) -> None:
    code, stdout, _ = cli("report", measured.save(tmp_path / "run"))
    assert code == 0
    assert "carpenter" in stdout


def test_models_are_compared_row_by_row(cli: Cli, measured: Run, tmp_path: Path) -> None:
    folder = measured.save(tmp_path / "run")
    arguments = (
        "compare",
        folder,
        "--baseline",
        "long",
        "--out",
        tmp_path / "page.html",
        "--publish",
        tmp_path / "paper",
    )
    code, stdout, _ = cli(*arguments, "--json")
    found = json.loads(stdout)
    assert (code, found["baseline"], len(found["differences"])) == (0, "long", 21)
    numbers = {(row.model, row.occupation): row.log_odds for row in measured.results}
    for row in found["differences"][:20]:
        assert row["difference"] == numbers["short", row["item"]] - numbers["long", row["item"]]
    assert (found["differences"][20]["table"], found["differences"][20]["item"]) == ("models", "")
    assert "dietitian" in (tmp_path / "page.html").read_text()
    assert (tmp_path / "paper" / "pronouns-results-differences.tex").exists()
    assert "dietitian" in cli("compare", folder)[1]


def test_runs_with_other_settings_are_compared_only_if_asked(measured: Run, book: Path) -> None:
    other = biassay.measure("pronouns", {"other": f"letters:{book}"}, {"alpha": 0.01})
    with pytest.raises(UsageError, match=r"alpha.*0\.05.*0\.01"):
        biassay.compare(measured, other)
    found = biassay.compare(measured, other, mixed=True)
    assert (found.models, len(found.notes), len(found.remarks)) == (["other"], 1, 1)
    assert {row.difference for row in found.tables["differences"] if row.model == "other"} == {0.0}
    one = biassay.measure("pronouns", {"one": f"letters:{book}"})
    with pytest.raises(UsageError, match="one"):
        biassay.compare(one)
    again = biassay.measure("pronouns", {"one": f"letters:{book}?n=4"})
    assert len(biassay.compare(one, again).models) == 1
