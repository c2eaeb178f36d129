"""``biassay discover`` as a user types it, on the embedded vectors."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import false_discovery_control

import biassay
from biassay.datasets.catalogue import load_tests
from biassay.studies.discovery.results import DUAL_USE, group_of

from .conftest import Cli
from .shown_runs import manifest_in

pytestmark = pytest.mark.slow

FEMALES, MALES = "african-american-females", "european-american-males"
# So few permutations reach no q below 0.05 over 20,000 words: where words are wanted, half of them may be chance.
QUICK = ("--n-permutations", 499, "--alpha", 0.5)
LOST = (
    "1 of 12 names of Mexican American females have no vector: Liset",
    "4 of 12 names of Mexican American males have no vector: César, Jesús, José, Rogoberto",
    "9 of the rated words have no vector: bigbutt, darkskinned, fried-chicken",
)
Refused = Callable[..., str]


@pytest.fixture
def refused(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Refused:
    """Runs a command that must be refused without a trace, and before a model is opened; returns what it said."""

    def opened(model: str, _: str) -> None:
        raise AssertionError(f"{model} was opened")

    monkeypatch.setattr("biassay.runs.models.open_model", opened)

    def call(*args: object) -> str:
        before = sorted(tmp_path.rglob("*"))
        code, stdout, stderr = cli("discover", "--out", tmp_path / "refused", *args)
        assert (code, stdout) == (2, ""), stderr
        assert sorted(tmp_path.rglob("*")) == before
        assert "Traceback" not in stderr
        return " ".join(stderr.split())

    return call


def cells(line: str) -> list[str]:
    return re.split(r" {2,}", line.strip())


def test_the_tables_the_note_and_what_was_lost_are_printed(cli: Cli) -> None:
    code, stdout, stderr = cli("discover", "--groups", FEMALES, *QUICK, "--top", 7)
    assert code == 0
    view = group_of(biassay.discover("glove", FEMALES, n_permutations=499, alpha=0.5), FEMALES)
    found = view.row
    lines, flat = stdout.splitlines(), " ".join(stdout.split())
    words, total = [w for w in view.words if w.associated], found.n_associated
    assert total > 7
    shown = [row for row in map(cells, lines) if len(row) == 8 and row[0] in {w.word for w in words}]
    assert [row[0] for row in shown] == [w.word for w in words[:7]]
    for row, word in zip(shown, words, strict=False):
        numbers = (word.effect_size, word.p_value, word.p_adjusted, max(word.constituents.values()))
        assert [row[1], row[3], row[4], row[5]] == [f"{n:.{d}f}" for n, d in zip(numbers, (2, 3, 3, 2), strict=True)]
    # What EIBD finds is not emergent by itself: 199 permutations show no excess among 20,000 words.
    assert (found.n_eibd > 7, found.n_emergent) == (True, 0)
    assert DUAL_USE in flat
    for lost in LOST:
        assert lost in flat
    assert stderr.splitlines()[-1].startswith("glove: searching: 20,000 of 20,000 words")


def test_too_few_permutations_say_how_many_could_find_more(cli: Cli) -> None:
    code, stdout, _ = cli("discover", "--groups", FEMALES, "--n-permutations", 199)
    flat = " ".join(stdout.split())
    assert code == 0
    found = group_of(biassay.discover("glove", FEMALES, n_permutations=199), FEMALES).row
    assert found.n_associated == 0 < found.n_above
    assert flat.count(" words (0)") == 2
    wanted = int(flat.rpartition("--n-permutations ")[2].split()[0].rstrip("."))
    # Were five words to have the smallest p-value, they would be found; with one permutation less they would not.
    for permutations, enough in ((wanted, True), (wanted - 1, False)):
        p = np.ones(found.n_words)
        p[:5] = 1 / (permutations + 1)
        assert np.any(false_discovery_control(p) <= 0.05) == enough


def test_several_groups_and_another_rule(cli: Cli) -> None:
    args = ("--groups", FEMALES, "--groups", MALES, "--rule", "all", "--compare", "every", "--threshold", 0.5, *QUICK)
    code, stdout, _ = cli("discover", *args, "--either-sign", "--json")
    found = json.loads(stdout)
    assert code == 0
    assert [one["item"] for one in found["findings"]] == [FEMALES, MALES]
    assert [(row["threshold"], row["threshold_source"]) for row in found["groups"]] == [(0.5, "given")] * 2
    assert all(row["n_every"] == row["outcome"]["effect_size"] for row in found["groups"])


def test_json_holds_the_findings_and_the_note(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    code, stdout, _ = cli("discover", "glove", "--groups", FEMALES, *QUICK, "--keep", 10, "--json", "--out", out)
    assert code == 0
    printed = json.loads(stdout)
    assert printed["manifest"]["inputs"]["note"] == DUAL_USE
    assert printed["manifest"] == manifest_in(out)
    tables = json.loads((out / "results.json").read_text())["tables"]
    for name, rows in tables.items():
        for row, stored in zip(printed[name], rows, strict=True):
            assert [row[key] for key in stored if key != "direction"] == [
                value for key, value in stored.items() if key != "direction"
            ]
    assert 10 <= len(printed["results"]) <= 20
    (row,) = printed["models"]
    assert row["names_lost"]["mexican-american-males"] == ["César", "Jesús", "José", "Rogoberto"]
    (finding,) = printed["findings"]
    assert (finding["item"], finding["effect"]) == (FEMALES, printed["groups"][0]["outcome"]["effect_size"])


def test_words_of_a_file_are_searched_and_those_unknown_named(cli: Cli, tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("sassy\nloud\nlatoya\nengineer\nxqzzy\nsassy\nLoud\n", encoding="utf-8-sig")
    code, stdout, _ = cli("discover", "--groups", FEMALES, "--n-permutations", 99, "--words", words, "--json")
    printed = json.loads(stdout)
    assert code == 0
    assert {row["word"] for row in printed["results"]} == {"sassy", "loud", "engineer"}  # Latoya is one of the names
    (row,) = printed["models"]
    assert (row["vocabulary"], row["words_lost"], len(row["validation_lost"])) == (str(words), ["xqzzy"], 9)
    words.write_text("xqzzy\nlatoya\n")
    code, _, stderr = cli("discover", "--groups", FEMALES, "--words", words, "--out", tmp_path / "out")
    assert code == 1
    assert "no word was left" in stderr
    assert not (tmp_path / "out").exists()


def test_the_test_written_is_valid_and_runs(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "found.toml"
    code, stdout, stderr = cli("discover", "--groups", FEMALES, *QUICK, "--write-test", path, "--test-words", 8)
    assert code == 0
    assert "African American females: associated words (" in stdout
    assert "European American males: " not in stdout  # searched for the test, and not asked for
    tests = load_tests(path)
    names = ", ".join(test.name for test in tests)
    assert f"written to {path}: {names}." in " ".join(stderr.split())
    for test in tests:
        assert 2 <= len(test.A.words) <= len(test.B.words) == 8
        assert not {*test.A.words} & {*test.B.words}
        assert (test.X.label, test.Y.label) == ("African American females", "European American males")
        assert DUAL_USE in str(test.source.note)
    code, stdout, _ = cli("tests", "validate", path)
    assert code == 0
    assert [line.split(": ")[1] for line in stdout.splitlines() if ": valid" in line] == [test.name for test in tests]
    code, stdout, _ = cli("run", "glove", "--tests", path, "--json")
    assert code == 0
    results = json.loads(stdout)["results"]
    assert [(r["test"], r["status"]) for r in results] == [(test.name, "measured") for test in tests]
    assert all(r["effect_size"] > 0.8 for r in results)  # the words were chosen for it


def test_too_few_words_for_a_test_are_an_error_that_says_what_to_do(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "found.toml"
    code, _, stderr = cli("discover", "--groups", FEMALES, "--n-permutations", 99, "--write-test", path)
    assert code == 1
    assert f"0 were found of {FEMALES} and " in stderr
    assert "--n-permutations 79835 " in stderr
    assert not path.exists()


def test_unknown_names_get_the_nearest(refused: Refused) -> None:
    said = refused("--groups", "african-american-female")
    assert "unknown group 'african-american-female'; did you mean 'african-american-females'" in said
    assert "mexican-american-males" in refused("--groups", "nobody")
    said = refused("--groups", FEMALES, "--grouping", "guo2021-group")
    assert "unknown grouping 'guo2021-group'; did you mean 'guo2021-groups'? (groupings: guo2021-groups;" in said


def test_what_cannot_become_a_test(refused: Refused, tmp_path: Path) -> None:
    new, there = tmp_path / "new.toml", tmp_path / "there.toml"
    there.write_text("mine")
    one = ("--groups", FEMALES)
    assert "--against requires --write-test" in refused(*one, "--against", MALES)
    assert f"both are '{FEMALES}'; name another" in refused(*one, "--write-test", new, "--against", FEMALES)
    assert f"both are '{MALES}'; name another" in refused("--groups", MALES, "--write-test", new)
    assert "did you mean 'european-american-males'" in refused(*one, "--write-test", new, "--against", MALES[:-1])
    assert f"{there} exists; choose another file" in refused(*one, "--write-test", there)
    assert "none does not exist" in refused(*one, "--write-test", tmp_path / "none" / "new.toml")
    assert "--write-test requires one group" in refused(*one, "--groups", MALES, "--write-test", new)
    assert "--write-test requires one group" in refused("--write-test", new)
    assert "one MODEL" in refused("glove", "use", *one, "--write-test", new)
    assert there.read_text() == "mine"


def test_a_file_of_groups_is_validated_and_searched(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    groups = [(race, gender) for race in ("african", "european") for gender in ("females", "males")]
    path.write_text("".join(f"[groups.{r}-american-{g}]\nbelongs = {{ r = '{r}', g = '{g}' }}\n" for r, g in groups))
    code, stdout, _ = cli("tests", "validate", path)
    names = ", ".join(f"{r}-american-{g} 12" for r, g in groups)
    assert (code, stdout) == (0, f"{path}: groups: valid, names: {names}; 0 rated words\n")
    code, stdout, _ = cli("discover", "--grouping", path, "--groups", FEMALES, "--n-permutations", 99, "--json")
    assert code == 0
    printed = json.loads(stdout)
    (found,) = printed["groups"]
    assert found["constituents"] == ["r: african / european", "g: females / males"]
    assert (found["threshold"], found["threshold_source"], printed["curves"]) == (0.8, "convention", [])


def test_an_interrupted_search_goes_on(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    out, command = tmp_path / "out", ("discover", "--groups", FEMALES, "--n-permutations", 99)
    with monkeypatch.context() as patched:
        patched.setattr("biassay.cli.progress.ProgressLog.progress", interrupt)
        code, _, stderr = cli(*command, "--out", out)
    assert code == 1
    assert f"biassay resume {out}" in stderr
    code, _, stderr = cli(*command, "--out", out)
    assert (code, f"biassay resume {out}" in stderr) == (2, True)
    code, _, stderr = cli("discover", "--resume", out, "--keep", 3)
    assert (code, "--keep" in stderr) == (2, True)
    assert "--write-test" in cli("discover", "--resume", out, "--write-test", tmp_path / "new.toml")[2]
    assert cli("discover", "--resume", out, "--quiet") == (0, "", "")
    assert biassay.load(out).tables == biassay.discover("glove", FEMALES, n_permutations=99).tables
