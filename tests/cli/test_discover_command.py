"""``biassay discover`` as a user types it, on the embedded vectors."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import biassay
from biassay.datasets.catalogue import load_tests
from biassay.studies.discovery.results import DUAL_USE, get_group_view

from .conftest import Cli

pytestmark = pytest.mark.slow

FEMALES, MALES = "african-american-females", "european-american-males"
# So few permutations reach no q below 0.05 over 20,000 words: where words are wanted, half of them may be chance.
QUICK = ("--n-permutations", 499, "--alpha", 0.5)
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


def test_the_tables_and_the_note_are_printed(cli: Cli) -> None:
    code, stdout, stderr = cli("discover", "--groups", FEMALES, *QUICK, "--top", 7)
    assert code == 0
    view = get_group_view(biassay.discover("glove", FEMALES, n_permutations=499, alpha=0.5), FEMALES)
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
    assert stderr.splitlines()[-1].startswith("glove: searching: 20,000 of 20,000 words")


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
