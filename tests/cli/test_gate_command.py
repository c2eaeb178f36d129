"""``biassay compare`` as a gate: exit codes, what it writes, and models that are measured on the way."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.results.made_runs import as_refused, with_rows

from biassay.datasets.catalogue import select_tests
from biassay.runs.run import Run

from .conftest import Cli
from .shown_runs import judged, stored, told
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
    """The old model, one that answers as it does, and one that draws x to a and y to b."""
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
    assert found["verdict"].startswith("biased is worse (stronger association) than old: of 1 question, worse 1")
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


def test_the_sentence_comes_last(cli: Cli, models: dict[str, str], own: Path) -> None:
    _, stdout, _ = cli("compare", models["old"], models["biased"], "--tests", own)
    said = told(cli("compare", models["old"], models["biased"], "--tests", own, "--json")[1])["verdict"]
    last = stdout[stdout.index("80% power:") :]
    assert said in " ".join(last.split())


def test_the_page_and_json_have_verdict_and_power(cli: Cli, models: dict[str, str], own: Path, tmp_path: Path) -> None:
    asked = ("compare", models["old"], models["biased"], "--tests", own)
    (verdict,) = told(cli(*asked, "--json")[1])["verdicts"]
    assert verdict["margin"] < verdict["detectable"]
    assert 0.0 <= verdict["power"] <= 1.0
    _, stdout, _ = cli(*asked, "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    interval = f"{verdict['low']:.2f} to {verdict['high']:.2f}"
    (row,) = re.findall(r"<tr><td>[^<]*\(own\)</td>(.*)</tr>", page)
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", row)
    assert cells[0] == "worse"
    assert cells[3:6] == [f"{verdict['growth']:.2f}", interval, f"{verdict['detectable']:.2f}"]
    (line,) = judged(stdout)
    assert (line[0], line[-1]) == ("worse", interval)


def test_a_model_is_measured_as_the_run_was(cli: Cli, models: dict[str, str], own: Path, tmp_path: Path) -> None:
    cli("run", models["old"], "--tests", own, "--alpha", 0.03, "--random-sets", 0, "--out", tmp_path / "run", "--quiet")
    code, stdout, stderr = cli("compare", tmp_path / "run", models["biased"], "--json", "--fail-if", "worse")
    assert code == 3, stderr
    kept, new = told(stdout)["results"]
    assert kept["associations"] == stored(tmp_path / "run")[0]["associations"]
    assert (new["model"], new["test"], new["alpha"], new["random_sets"]) == ("biased", "own", 0.03, None)
    assert cli("compare", models["biased"], tmp_path / "run", "--quiet", "--fail-if", "worse") == (0, "", "")


def test_only_the_tests_named_are_measured(cli: Cli, one: Path) -> None:
    code, stdout, _ = cli("compare", one, "again=glove", "--tests", "weat[67]", "--json", "--fail-if", "inconclusive")
    assert (code, [v["test"] for v in told(stdout)["verdicts"]]) == (0, ["weat6", "weat7"])
    assert {row["test"] for row in told(stdout)["results"]} == {"weat6", "weat7"}


def test_a_refused_test_fails_and_files_tell_of_it(cli: Cli, one: Path, mine: Run, tmp_path: Path) -> None:
    rows = tuple(as_refused(r) if r.test == "weat7" else r for r in mine.results)
    two = with_rows(mine, rows).save(tmp_path / "two")
    junit, markdown = tmp_path / "gate.xml", tmp_path / "gate.md"
    asked = ("compare", one, two, "--junit", junit, "--markdown", markdown, "--json", "--min-power", 0, "--fail-if")
    code, stdout, _ = cli(*asked, "worse")
    verdicts = told(stdout)["verdicts"]
    assert (code, [v["outcome"] for v in verdicts]) == (3, ["inconclusive", "missing", "inconclusive"])
    (suite,) = ElementTree.parse(junit).getroot()
    assert [suite.get(name) for name in ("tests", "failures", "errors", "skipped")] == ["3", "1", "0", "0"]
    cases = {case.get("name"): [child.tag for child in case] for case in suite}
    assert cases == {"weat6": ["system-out"], "weat7": ["failure"], "weat8": ["system-out"]}
    rows_told = {line.split()[1]: line for line in markdown.read_text().splitlines() if line.startswith("| weat")}
    assert all(v["outcome"].replace("_", " ") in rows_told[v["test"]] for v in verdicts)
    assert cli(*asked, "inconclusive")[0] == 3
    assert ElementTree.parse(junit).getroot()[0].get("failures") == "3"


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
    assert "there is one model only" in refuses(models["old"])
    assert "Invalid value for '--fail-if'" in refuses(one, two, "--fail-if", "better")
    assert "does not exist" in refuses(one, two, "--junit", tmp_path / "nowhere" / "gate.xml")
    assert "did you mean 'glove'" in refuses(one, "glov")
    assert "no test is named weat9" in refuses(one, "glove", "--tests", "weat9")


def test_other_studies_have_no_verdicts(refuses: Callable[..., str], words: Run, tmp_path: Path) -> None:
    import dataclasses

    manifest = dataclasses.replace(words.manifest, run_id="again")
    runs = words.save(tmp_path / "x"), dataclasses.replace(words, manifest=manifest).save(tmp_path / "y")
    assert "no social-bias test" in refuses(*runs, "--fail-if", "worse")


def test_an_old_model_that_cannot_be_measured_is_an_error(cli: Cli, models: dict[str, str], own: Path) -> None:
    code, _, stderr = cli("compare", "old=glove", models["biased"], "--tests", own, "--fail-if", "worse")
    assert code == 1
    assert "could not be compared" in stderr
    code, stdout, _ = cli("compare", models["old"], "new=glove", "--tests", own)
    assert (code, "could not be measured by any test" in " ".join(stdout.split())) == (1, True)


def test_other_models_of_the_old_run_are_not_judged(
    cli: Cli, models: dict[str, str], own: Path, tmp_path: Path
) -> None:
    run = tmp_path / "both"
    cli("run", models["old"], models["biased"], "--tests", own, "--out", run, "--quiet")
    code, stdout, _ = cli("compare", run, models["same"], "--json", "--fail-if", "worse")
    found = told(stdout)
    assert (code, {v["model"] for v in found["verdicts"]}) == (0, {"same"})
    assert found["gate"] == {"fail_if": "worse", "passed": True, "failed": [], "power_gaps": []}
    assert len(found["remarks"]) == 1
    assert cli("compare", run, models["same"], "--baseline", "biased", "--json")[0] == 0


def test_runs_may_be_named_and_no_name_is_given_twice(
    cli: Cli, models: dict[str, str], own: Path, tmp_path: Path
) -> None:
    for name in ("old", "biased"):
        cli("run", models[name], "--tests", own, "--out", tmp_path / f"run-{name}", "--quiet")
    code, stdout, _ = cli("compare", f"base={tmp_path / 'run-old'}", f"tuned={tmp_path / 'run-biased'}", "--json")
    found = told(stdout)
    assert (code, found["baseline"], found["verdicts"][0]["model"]) == (0, "base", "tuned")
    assert cli("compare", "x=glove", f"x={tmp_path / 'run-old'}")[0] == 2


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
        assert "damaged could not be measured by any test of old" in stderr
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


def test_the_default_gate_shows_ids_and_names_what_is_inconclusive(cli: Cli, noisy: str) -> None:
    code, stdout, stderr = cli("compare", "glove", f"{noisy}:Noisy", "--fail-if", "worse")
    assert code == 3
    tests = [test.name for test in select_tests("gate")]
    lines = [line.split() for line in stdout.splitlines()]
    assert all(any(test in line for line in lines) for test in tests)
    found = told(cli("compare", "glove", f"{noisy}:Noisy", "--json")[1])
    inconclusive = [v["test"] for v in found["verdicts"] if v["outcome"] == "inconclusive"]
    named = f"inconclusive {len(inconclusive)} ({', '.join(inconclusive[:5])} and {len(inconclusive) - 5} more)"
    assert len(inconclusive) > 5
    assert named in found["verdict"]
    assert named in " ".join(stdout.split())
    assert "--tests gate" not in stderr


def test_the_margin_that_a_power_gap_advises_gives_the_power(cli: Cli, noisy: str) -> None:
    asked = ("compare", "glove", f"{noisy}:Noisy", "--json", "--fail-if", "worse")
    gaps = told(cli(*asked)[1])["gate"]["power_gaps"]
    advised = {gap["topic"]: re.search(r"--margin ([\d.]+) gives 80% power", gap["advice"]) for gap in gaps}
    assert "age" in advised
    margin = advised["age"]
    assert margin is not None
    verdicts = told(cli(*asked, "--margin", margin[1])[1])["verdicts"]
    best = max(v["power"] for v in verdicts if v["topic"] == "age")
    assert best == pytest.approx(0.8, abs=0.02)
    # Tests of eight words are told of the collection with more.
    _, _, stderr = cli("compare", "glove", f"{noisy}:Noisy", "--tests", "weat7", "--fail-if", "worse")
    assert "more words per set (--tests gate) or a larger margin" in " ".join(stderr.split())


def test_the_footer_says_which_questions_need_no_interval(cli: Cli, noisy: str) -> None:
    _, stdout, _ = cli("compare", "glove", f"{noisy}:Math", "--tests", "weat6,weat7,weat8")
    said = "it holds with 0.95 confidence (2 with identical cosines on both models not counted)"
    assert said in " ".join(stdout.split())


@pytest.mark.parametrize("missing", ["vectors:missing.txt", "runs/missing", "python:missing_module:Model"])
def test_a_missing_new_model_is_noticed_before_the_old_one_is_measured(
    cli: Cli, models: dict[str, str], own: Path, missing: str
) -> None:
    code, stdout, stderr = cli("compare", models["old"], missing, "--tests", own)
    assert (code, stdout, "missing" in stderr) == (2, "", True)
    assert "measuring" not in stderr
