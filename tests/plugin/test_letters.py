"""The family of the example: probabilities add up to one, and vectors are those of any encoder."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import biassay
from biassay.errors import ModelError, UnknownNameError, UsageError
from biassay.models.registry import get_backends, open_model
from biassay.models.selftest import run_self_test
from biassay.prompts.requests import Blank, Slot

Cli = Callable[..., tuple[int, str, str]]


def log_p(model: str, before: str, words: tuple[str, ...]) -> list[float]:
    (filled,) = open_model(model, "blanks").fill([Blank((before, Slot.BLANK, " here."), words)])
    assert (filled.lengths == [len(word) + 1 for word in words]).all()
    return [float(log_p) for log_p in np.add.reduceat(filled.columns[:, 0], filled.starts)]


@pytest.mark.parametrize("n", [1, 2, 4])
def test_all_words_of_letters_up_to_a_length_share_what_longer_ones_leave(tmp_path: Path, n: int) -> None:
    """Over an alphabet of two letters: every word either ends or goes on."""
    (tmp_path / "ab.txt").write_text("ab a. ba b. aab")
    model = open_model(f"letters:{tmp_path / 'ab.txt'}?n={n}", "blanks")
    words = tuple("".join(letters) for length in (1, 2) for letters in itertools.product("ab", repeat=length))
    (filled,) = model.fill([Blank(("a b ", Slot.BLANK, ""), words)])
    pieces = [np.exp(own) for own in np.split(filled.columns[:, 0].astype(float), filled.starts[1:])]
    ended = sum(math.prod(own) for own in pieces)
    going_on = sum(math.prod(own[:-1]) * (1.0 - own[-1]) for own in pieces if len(own) == 3)
    begins = pieces[0][0] + pieces[1][0]
    assert ended + going_on == pytest.approx(begins, rel=1e-5)


def test_bad_models_are_refused(book: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="nowhere"):
        open_model("letters:nowhere.txt", "texts")
    with pytest.raises(UsageError, match="'9'"):
        open_model(f"letters:{book}?n=9", "texts")
    with pytest.raises(UnknownNameError):
        open_model(f"letters:{book}?m=3", "texts")
    (tmp_path / "empty.txt").write_text(" \n")
    with pytest.raises(ModelError, match="empty"):
        biassay.measure("pronouns", f"letters:{tmp_path / 'empty.txt'}")
    with pytest.raises(UsageError):
        open_model(f"letters:{book}", "blanks").fill([Blank((Slot.MASKED, " is ", Slot.BLANK), ("he",))])


def test_it_is_listed_and_tried_like_the_others(cli: Cli) -> None:
    code, stdout, _ = cli("models", "--json")
    (listed,) = (one for one in json.loads(stdout) if one["backend"] == "letters")
    assert (code, listed["capabilities"], listed["ready"], list(listed["settings"])) == (
        0,
        ["texts", "blanks"],
        True,
        ["n", "erase"],
    )
    assert run_self_test(get_backends()["letters"]).status == "PASS"


def test_the_doctor_sees_it(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("biassay.cli.doctor.get_backends", lambda: {"letters": get_backends()["letters"]})
    code, stdout, _ = cli("doctor", "--json")
    content = json.loads(stdout)
    assert (code, [(one["backend"], one["status"]) for one in content["selftests"]]) == (0, [("letters", "PASS")])
    assert "biassay-example" in content["versions"]


def test_the_metric_and_the_tests_of_the_example_run(book: Path, cli: Cli) -> None:
    code, stdout, _ = cli("tests", "list", "workplaces", "--json")
    assert (code, [test["name"] for test in json.loads(stdout)]) == (0, ["garage-kitchen"])
    model = f"letters:{book}"
    (angular,) = biassay.run(model, "garage-kitchen", metric="angular").results
    vectors = open_model(model, "texts")
    test = biassay.select_tests(["garage-kitchen"])[0]
    sets = {role: vectors.encode(test.concept(role).words).vectors.astype(float) for role in "XYAB"}

    def near(target: np.ndarray, role: str) -> float:
        cosines = sets[role] @ target / np.linalg.norm(sets[role], axis=1) / np.linalg.norm(target)
        return float(np.mean(1 - np.arccos(cosines) / np.pi))

    x, y = ([near(target, "A") - near(target, "B") for target in sets[role]] for role in "XY")
    assert angular.effect_size == pytest.approx((np.mean(x) - np.mean(y)) / np.std([*x, *y], ddof=1), rel=1e-6)
    assert angular.effect_size != biassay.run(model, "garage-kitchen").results[0].effect_size
