"""``biassay compare`` as a gate: exit codes, output files, and models that it measures first."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.results.made_runs import with_rows

from biassay.datasets.catalogue import select_tests
from biassay.runs.run import Run

from .conftest import Cli
from .shown_runs import judged, told
from .small_tests import write_test, write_vectors

COUNT = 16
NOISY = """
import biassay
import numpy as np

class Noisy:
    \"\"\"GloVe with noise on each vector, or on those of the words in `only`.\"\"\"

    noise, only = 3.0, None

    def __init__(self):
        self.parent = biassay.open_encoder("glove")

    def encode(self, texts):
        vectors = self.parent.encode(texts).vectors.copy()
        for vector, text in zip(vectors, texts):
            if self.only is None or text in self.only:
                noise = np.random.default_rng(list(text.encode())).normal(size=len(vector))
                vector += self.noise * np.linalg.norm(vector) * noise / np.linalg.norm(noise)
        return vectors

class Math(Noisy):
    only = {"math", "algebra", "geometry", "calculus", "equations", "computation", "numbers", "addition"}
"""


@pytest.fixture
def refuses(refuses: Callable[..., str]) -> Callable[..., str]:
    return functools.partial(refuses, "compare")


@pytest.fixture
def models(tmp_path: Path) -> dict[str, str]:
    """Write an old model, an equal one, and one that moves x to a and y to b."""
    leans = {"old": 0.0, "same": 0.0, "biased": 2.0}
    return {
        name: f"{name}=vectors:{write_vectors(tmp_path / name, COUNT, lean, frequent=True)}"
        for name, lean in leans.items()
    }


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return write_test(tmp_path / "own.json", COUNT)


def test_a_biased_model_fails_and_the_same_one_passes(cli: Cli, models: dict[str, str], own: Path) -> None:
    asked = ("--tests", own, "--json", "--fail-if")
    code, stdout, stderr = cli("compare", models["old"], models["biased"], *asked, "worse")
    found = told(stdout)
    assert (code, [v["outcome"] for v in found["verdicts"]]) == (3, ["worse"])
    assert found["verdict"].startswith("biased is worse (stronger association) than old: 1 of 1 question worse")
    assert found["verdict"] in stderr
    code, stdout, stderr = cli("compare", models["old"], models["same"], *asked, "inconclusive")
    assert (code, [v["outcome"] for v in told(stdout)["verdicts"]], stderr) == (0, ["no_worse"], "")
    assert cli("compare", models["old"], models["biased"], "--tests", own)[0] == 0  # nothing was to fail
    code, stdout, _ = cli("compare", models["biased"], models["old"], *asked, "inconclusive")
    assert (code, [v["outcome"] for v in told(stdout)["verdicts"]]) == (0, ["better"])
    assert told(stdout)["verdict"].startswith("old is better (farther from the stereotype) than biased: ")


def test_a_gate_that_could_not_fail_fails(cli: Cli, tmp_path: Path) -> None:
    """Two models without an association, unlike each other, and four words a set."""
    own = write_test(tmp_path / "own.json", 4)
    old, new = (
        f"{n}=vectors:{write_vectors(tmp_path / n, 4, seed=s, frequent=True)}" for n, s in (("old", 1), ("new", 2))
    )
    junit, markdown = tmp_path / "gate.xml", tmp_path / "gate.md"
    asked = ("compare", old, new, "--tests", own, "--fail-if", "worse")
    code, stdout, stderr = cli(*asked, "--json", "--junit", junit, "--markdown", markdown)
    found = told(stdout)
    assert (code, [v["outcome"] for v in found["verdicts"]]) == (3, ["inconclusive"])
    (gap,) = found["gate"]["power_gaps"]
    assert (found["gate"]["passed"], gap["topic"], gap["questions"]) == (False, "other", ["own"])
    for said in ("the gate fails: new: the gate could not have failed on the topic other (own)", "type --min-power 0"):
        assert said in stderr
    assert ElementTree.parse(junit).getroot()[0].get("failures") == "1"
    assert "could not have failed" in markdown.read_text()
    assert cli(*asked, "--quiet", "--min-power", 0) == (0, "", "")
    assert cli("compare", old, new, "--tests", own, "--quiet") == (0, "", "")


def test_the_page_and_json_have_verdict_and_power(cli: Cli, models: dict[str, str], own: Path, tmp_path: Path) -> None:
    asked = ("compare", models["old"], models["biased"], "--tests", own)
    (verdict,) = told(cli(*asked, "--json")[1])["verdicts"]
    assert verdict["margin"] < verdict["detectable"]
    assert 0.0 <= verdict["power"] <= 1.0
    _, stdout, _ = cli(*asked, "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    interval = f"[{verdict['low']:.2f}, {verdict['high']:.2f}]"
    row, _ = re.findall(r"<tr><th scope=\"row\">[^<]*\(own\)</th>(.*)</tr>", page)
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", row)
    assert cells[0] == "worse"
    assert cells[3:6] == [f"{verdict['growth']:.2f}", interval, f"{verdict['detectable']:.2f}"]
    (line,) = judged(stdout)
    assert (line[0], line[-2]) == ("worse", interval)


def test_a_hostile_name_is_text_in_the_files(cli: Cli, one: Path, mine: Run, tmp_path: Path) -> None:
    titles = with_rows(mine, (r for r in mine.results if r.test != "weat7"))
    two = titles.save(tmp_path / "a&<b>\x01]]>|")
    junit, markdown = tmp_path / "gate.xml", tmp_path / "gate.md"
    asked = ("--junit", junit, "--markdown", markdown, "--min-power", 0, "--quiet")
    assert cli("compare", one, two, *asked)[0] == 0
    assert len(ElementTree.parse(junit).getroot()[0]) == 3
    assert "<b>" not in markdown.read_text()


def test_wrong_usage_is_refused(
    refuses: Callable[..., str], one: Path, two: Path, models: dict[str, str], tmp_path: Path
) -> None:
    for wrong in ("0", "-0.2", "nan", "inf"):
        assert "the margin must be above 0" in refuses(one, two, "--margin", wrong)
    for wrong in ("0", "1", "1.5", "-1", "nan"):
        assert "alpha must be between 0 and 1" in refuses(one, two, "--alpha", wrong)
    assert "min_power must be at least 0" in refuses(one, two, "--min-power", "1")
    assert "only one model given" in refuses(models["old"])
    assert "Invalid value for '--fail-if'" in refuses(one, two, "--fail-if", "better")
    assert "does not exist" in refuses(one, two, "--junit", tmp_path / "nowhere" / "gate.xml")
    assert "did you mean 'glove'" in refuses(one, "glov")
    assert "no test is named weat9" in refuses(one, "glove", "--tests", "weat9")


@pytest.fixture
def damaged(tmp_path: Path) -> str:
    (tmp_path / "damaged").write_bytes(b"\x00\x01")
    return f"damaged=vectors:{tmp_path / 'damaged'}"


def test_of_a_model_that_failed_every_test_is_missing(
    cli: Cli, models: dict[str, str], damaged: str, own: Path, tmp_path: Path
) -> None:
    run, junit, markdown = tmp_path / "run", tmp_path / "gate.xml", tmp_path / "gate.md"
    assert cli("run", models["old"], damaged, models["same"], "--tests", own, "--out", run, "--quiet")[0] == 1
    (tmp_path / "list.txt").write_text(f"{damaged}\n{models['same']}\n")
    for given in ((run,), (models["old"], f"@{tmp_path / 'list.txt'}", "--tests", own)):
        files = ("--junit", junit, "--markdown", markdown, "--out", tmp_path / "page.html")
        code, stdout, stderr = cli("compare", *given, *files, "--fail-if", "worse", "--json")
        found = told(stdout)
        assert code == 3
        assert [(v["model"], v["outcome"]) for v in found["verdicts"]] == [("same", "no_worse"), ("damaged", "missing")]
        assert found["gate"]["failed"] == [{"model": "damaged", "test": "own", "outcome": "missing"}]
        assert [remark.startswith("damaged: failed: ") for remark in found["remarks"]] == [True]
        assert "damaged could not be compared on any question with old" in stderr
        suites = {suite.get("name"): suite.get("failures") for suite in ElementTree.parse(junit).getroot()}
        assert suites == {"same compared with old": "0", "damaged compared with old": "1"}
        assert "| damaged |" in markdown.read_text()
        assert "damaged: failed: " in (tmp_path / "page.html").read_text()
        code, stdout, _ = cli("compare", *given)
        assert (code, "damaged: failed: " in stdout) == (1, True)


def test_a_model_to_compare_with_that_failed_is_not_replaced_by_the_next(
    cli: Cli, models: dict[str, str], damaged: str, own: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    cli("run", damaged, models["old"], models["same"], "--tests", own, "--out", run, "--quiet")
    for given in ((run,), (run, models["biased"]), (run, "--baseline", "damaged")):
        code, stdout, stderr = cli("compare", *given, "--quiet", "--fail-if", "worse")
        assert (code, stdout, "damaged, the model to compare with, has no results: failed: " in stderr) == (1, "", True)
    code, stdout, _ = cli("compare", run, "--baseline", "old", "--json", "--fail-if", "worse")
    assert (code, told(stdout)["baseline"]) == (3, "old")
    assert cli("compare", run, models["biased"], "--baseline", "old", "--json")[0] == 0  # one old model, one new
    cli("run", models["old"], damaged, "--tests", own, "--out", tmp_path / "two", "--quiet")
    code, _, stderr = cli("compare", tmp_path / "two", "--fail-if", "worse")
    assert (code, "no model is left to compare" in stderr, "damaged: failed: " in stderr) == (1, True, True)


@pytest.fixture
def noisy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "noisy_glove.py").write_text(NOISY)
    monkeypatch.syspath_prepend(str(tmp_path))
    return "noisy=python:noisy_glove"


def test_the_default_gate_names_every_test_and_counts_what_is_inconclusive(cli: Cli, noisy: str) -> None:
    code, stdout, stderr = cli("compare", "glove", f"{noisy}:Noisy", "--fail-if", "worse")
    assert code == 3
    tests = [test.name for test in select_tests("gate")]
    assert sorted(row[1] for row in judged(stdout)) == sorted(tests)
    found = told(cli("compare", "glove", f"{noisy}:Noisy", "--json")[1])
    inconclusive = [v["test"] for v in found["verdicts"] if v["outcome"] == "inconclusive"]
    assert len(inconclusive) > 5  # more than a sentence names
    counted = f"{len(inconclusive)} of 10 questions inconclusive "
    assert counted in found["verdict"]
    assert counted in " ".join(stdout.split())
    assert "--tests gate" not in stderr


def test_the_footer_has_the_cosine_sds_of_one_form_of_text(cli: Cli) -> None:
    """Sentences have other SDs than words: those of a copy are equal."""
    _, stdout, _ = cli("compare", "glove", "copy=glove", "--tests", "weat6,sent-weat6")
    found = re.search(r"frequent words \(([\d.]+) on glove, ([\d.]+) on copy\)", " ".join(stdout.split()))
    assert found is not None
    assert found[1] == found[2]


@pytest.mark.parametrize("missing", ["vectors:missing.txt", "runs/missing", "python:missing_module:Model"])
def test_a_missing_new_model_is_noticed_before_the_old_one_is_measured(
    cli: Cli, models: dict[str, str], own: Path, missing: str
) -> None:
    code, stdout, stderr = cli("compare", models["old"], missing, "--tests", own)
    assert (code, stdout, "missing" in stderr) == (2, "", True)
    assert "measuring" not in stderr


def test_runs_may_be_named_and_no_name_is_given_twice(
    cli: Cli, models: dict[str, str], own: Path, tmp_path: Path
) -> None:
    for name in ("old", "biased"):
        cli("run", models[name], "--tests", own, "--out", tmp_path / f"run-{name}", "--quiet")
    code, stdout, _ = cli("compare", f"base={tmp_path / 'run-old'}", f"tuned={tmp_path / 'run-biased'}", "--json")
    found = told(stdout)
    assert (code, found["baseline"], found["verdicts"][0]["model"]) == (0, "base", "tuned")
    assert cli("compare", "x=glove", f"x={tmp_path / 'run-old'}")[0] == 2


def test_the_footer_says_which_questions_need_no_interval(cli: Cli, noisy: str) -> None:
    _, stdout, _ = cli("compare", "glove", f"{noisy}:Math", "--tests", "weat6,weat7,weat8")
    said = "95% CI (2 identical on both models not counted)"
    assert said in " ".join(stdout.split())
