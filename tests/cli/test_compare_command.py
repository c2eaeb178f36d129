"""``biassay compare`` as a user types it, and as a careless one does."""

from __future__ import annotations

import dataclasses
import functools
import json
import shutil
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.studies.associations.publish_runs import measured_in_contexts

import biassay
from biassay.errors import UnknownNameError

from .conftest import Cli
from .shown_runs import edit, edit_first, read, stored, told

MINE = "mine.txt"
KEYS = ("targ1", "targ2", "attr1", "attr2")


@pytest.fixture
def refuses(refuses: Callable[..., str]) -> Callable[..., str]:
    return functools.partial(refuses, "compare")


def size(result: dict[str, Any]) -> float:
    x, y = (list(result["associations"][role].values()) for role in ("X", "Y"))
    return (statistics.fmean(x) - statistics.fmean(y)) / statistics.stdev([*x, *y])


# ---- what is said and written


def test_the_baseline_can_be_named(cli: Cli, one: Path, two: Path) -> None:
    found = told(cli("compare", one, two, "--baseline", MINE, "--json")[1])
    other = told(cli("compare", two, one, "--json")[1])
    assert found["baseline"] == other["baseline"] == MINE
    typed = told(cli("compare", one, two, "--baseline", "vectors:mine.txt", "--json")[1])
    assert typed["associations"] == found["associations"]
    plain = {row["test"]: row["difference"] for row in told(cli("compare", one, two, "--json")[1])["associations"]}
    for row in (*found["associations"], *other["associations"]):
        assert (row["model"], row["difference"]) == ("glove", -plain[row["test"]])


def test_a_test_that_only_the_third_model_has_does_not_end_the_comparison(cli: Cli, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    sets = {name: [f"{name}{i}" for i in range(8)] for name in "xyabpqrs"}
    for file, roles in (("one", "xyab"), ("two", "pqrs")):
        named = {key: {"category": role, "examples": sets[role]} for key, role in zip(KEYS, roles, strict=True)}
        (tmp_path / f"{file}.jsonl").write_text(json.dumps(named))
    for model, known in (("m1", "xyab"), ("m2", "xyab"), ("m3", "xyabpqrs")):
        words = [word for name in known for word in sets[name]]
        rows = (f"{word} {' '.join(map(str, rng.normal(size=5)))}\n" for word in words)
        (tmp_path / f"{model}.txt").write_text("".join(rows))
    models = [f"{model}=vectors:{tmp_path / model}.txt" for model in ("m1", "m2", "m3")]
    tests = [tmp_path / f"{name}.jsonl" for name in ("one", "two")]
    cli("run", *models, "--tests", ",".join(map(str, tests)), "--out", tmp_path / "run", "--quiet")
    assert cli("compare", tmp_path / "run", "--margin", "0.1", "--out", tmp_path / "page.html")[0] == 0
    assert (tmp_path / "page.html").exists()


@pytest.mark.extras
def test_a_comparison_is_a_data_frame(one: Path, two: Path) -> None:
    compared = biassay.compare(one, two)
    frame = compared.to_frame("associations")
    assert list(frame["difference"]) == [row.difference for row in compared.tables["associations"]]
    if compared.verdicts:
        assert list(compared.to_frame()["outcome"]) == [verdict.outcome for verdict in compared.verdicts]
    with pytest.raises(UnknownNameError, match="tables of this comparison"):
        compared.to_frame("associatons")


def test_runs_that_differ_are_refused_unless_mixed(
    cli: Cli, refuses: Callable[..., str], one: Path, two: Path, tmp_path: Path
) -> None:
    edit(two / "manifest.json", lambda made: made["settings"].update(protocol="may2019"))
    edit_first(two, test_digest="another")
    said = refuses(one, two)
    assert "protocol: exact in one, may2019 in two" in said
    assert "tests of one name have different texts: weat6" in said
    assert "--mixed" in said
    code, stdout, _ = cli("compare", one, two, "--mixed", "--out", tmp_path / "page.html")
    assert code == 0
    assert "The runs differ: protocol: exact in one, may2019 in two" in " ".join(stdout.split())
    page = read(tmp_path / "page.html")
    assert "protocol: exact in one, may2019 in two" in page
    assert ".; " not in page.partition("<title>")[2].partition("</title>")[0]
    assert len(told(cli("compare", one, two, "--mixed", "--json")[1])["notes"]) == 2


def test_runs_of_different_kinds_are_refused(refuses: Callable[..., str], one: Path, tmp_path: Path) -> None:
    over = measured_in_contexts(("one",)).save(tmp_path / "over")
    said = refuses(one, over, "--mixed")
    assert "cannot be compared" in said
    assert "`biassay report`" in said


# ---- careless users


def test_wrong_usage_is_refused(refuses: Callable[..., str], one: Path, two: Path, tmp_path: Path) -> None:
    assert "missing argument" in refuses()
    assert "only one model given (glove)" in refuses(one)
    assert "is named twice" in refuses(one, one)
    assert "no such folder" in refuses(one, tmp_path / "nowhere")
    assert "no such folder" not in refuses(one, "new=glove?erase=mean:gender")
    said = refuses(one, two / "results.json")
    assert f"{two / 'results.json'} is a file; name its run folder, {two}" in said
    assert f"not a run folder (manifest.json is missing); runs inside: {one}, {two}" in refuses(one, tmp_path)
    assert "No such option" in refuses(one, two, "--basline", "glove")
    assert "does not exist" in refuses(one, two, "--out", tmp_path / "nowhere" / "page.html")
    assert "is not a report of biassay" in refuses(one, two, "--out", two / "results.json")
    assert "is not an empty folder" in refuses(one, two, "--publish", two)
    shutil.copytree(one, tmp_path / "copy")
    assert "one and copy are copies of one run" in refuses(one, tmp_path / "copy")


def test_a_run_without_cosines_is_to_be_measured_again(cli: Cli, one: Path, two: Path, tmp_path: Path) -> None:
    without = dataclasses.replace(biassay.load(two), arrays={})
    for row, first, second in zip(
        biassay.compare(one, without).tables["associations"], stored(one), stored(two), strict=True
    ):
        assert (row.effect_baseline, row.effect_model) == (first["effect_size"], second["effect_size"])
        assert (row.difference, row.interval_low, row.family) == (None, None, None)
        assert "measure the model again" in row.reason
    code, stdout, stderr = cli("compare", one, without.save(tmp_path / "without"))
    assert (code, stdout) == (2, "")
    assert f"{tmp_path / 'without' / 'results.json'}: weat6/cosines: the array is missing" in " ".join(stderr.split())
