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
from tests.results.made_runs import with_rows
from tests.studies.associations.publish_runs import measured_in_contexts

import biassay
from biassay.errors import UnknownNameError
from biassay.runs.run import Run

from .conftest import Cli
from .shown_runs import edit, edit_first, files, judged, names, read, stored, told

MINE = "mine.txt"
KEYS = ("targ1", "targ2", "attr1", "attr2")


@pytest.fixture
def refuses(refuses: Callable[..., str]) -> Callable[..., str]:
    return functools.partial(refuses, "compare")


def size(result: dict[str, Any]) -> float:
    x, y = (list(result["associations"][role].values()) for role in ("X", "Y"))
    return (statistics.fmean(x) - statistics.fmean(y)) / statistics.stdev([*x, *y])


# ---- what is said and written


def test_differences_are_those_of_the_words_in_the_folders(cli: Cli, one: Path, two: Path) -> None:
    code, stdout, stderr = cli("compare", one, two, "--json")
    assert (code, stderr) == (0, "")
    found = told(stdout)
    assert (found["baseline"], found["confidence"], found["notes"]) == ("glove", 0.95, [])
    for row, first, second in zip(found["associations"], stored(one), stored(two), strict=True):
        assert (row["test"], row["baseline"], row["model"]) == (first["test"], "glove", MINE)
        assert row["effect_baseline"] == pytest.approx(size(first))
        assert row["effect_model"] == pytest.approx(size(second))
        assert row["difference"] == pytest.approx(row["calibrated_model"] - row["calibrated_baseline"])
        assert row["calibrated_model"] == pytest.approx(row["D_model"] / row["cosine_sd_model"])
        assert (row["D_baseline"], row["D_model"]) == pytest.approx(
            (first["cosine_difference"], second["cosine_difference"])
        )
        assert row["simultaneous_low"] < row["interval_low"] < row["difference"]
        assert row["difference"] < row["interval_high"] < row["simultaneous_high"]
    assert (found["agreements"], found["words"]) == ([], [])


def test_the_table_is_what_json_says(cli: Cli, one: Path, two: Path) -> None:
    code, stdout, stderr = cli("compare", one, two)
    assert (code, stderr) == (0, "")
    assert stdout.startswith(f"{MINE} compared with glove\n")
    assert max(map(len, stdout.splitlines())) <= 100
    verdicts = sorted(told(cli("compare", one, two, "--json")[1])["verdicts"], key=lambda v: -v["growth"])
    for cells, verdict in zip(judged(stdout), verdicts, strict=True):
        sides = ("baseline", "model")
        numbers = [f"{verdict[f'effect_{side}']:.2f} (D {verdict[f'D_{side}']:.3f})" for side in sides]
        numbers.append(f"{verdict['growth']:.2f}")
        power = "–" if verdict["detectable"] is None else f"{verdict['detectable']:.2f}"
        interval = f"{verdict['low']:.2f} to {verdict['high']:.2f}"
        assert cells == [verdict["outcome"], verdict["test"], *numbers, interval, power]


def test_no_page_unless_it_is_asked_for(cli: Cli, one: Path, two: Path, tmp_path: Path) -> None:
    before = files(tmp_path)
    cli("compare", one, two)
    assert files(tmp_path) == before
    page = tmp_path / "page.html"
    code, stdout, _ = cli("compare", one, two, "--out", page)
    assert (code, f"open {page}" in stdout) == (0, True)
    text = read(page)
    for row in told(cli("compare", one, two, "--json")[1])["associations"]:
        assert f"{row['difference']:.2f}" in text
        assert f"{row['simultaneous_low']:.2f} to {row['simultaneous_high']:.2f}" in text
    assert cli("compare", one, two, "--out", page, "--quiet") == (0, "", "")  # a report is made again


def test_the_baseline_can_be_named(cli: Cli, one: Path, two: Path) -> None:
    found = told(cli("compare", one, two, "--baseline", MINE, "--json")[1])
    other = told(cli("compare", two, one, "--json")[1])
    assert found["baseline"] == other["baseline"] == MINE
    typed = told(cli("compare", one, two, "--baseline", "vectors:mine.txt", "--json")[1])
    assert typed["associations"] == found["associations"]
    plain = {row["test"]: row["difference"] for row in told(cli("compare", one, two, "--json")[1])["associations"]}
    for row in (*found["associations"], *other["associations"]):
        assert (row["model"], row["difference"]) == ("glove", -plain[row["test"]])


def test_an_unknown_baseline_offers_near_names(refuses: Callable[..., str], one: Path, two: Path) -> None:
    assert f"did you mean '{MINE}'?" in refuses(one, two, "--baseline", "mine.text")
    assert f"models of these runs: glove, {MINE}" in refuses(one, two, "--baseline", "zzz")


def test_models_of_one_run_are_compared(cli: Cli, cache: Path, tmp_path: Path) -> None:
    (found,) = biassay.run("glove", tests=["weat6"], cache=cache).results
    rng = np.random.default_rng(1)
    every = [w for role in found.associations.values() for w in role]
    (tmp_path / "v.txt").write_text("".join(f"{w} {' '.join(map(str, rng.normal(size=5)))}\n" for w in every))
    models = ["glove", f"vectors:{tmp_path / 'v.txt'}"]
    assert cli("run", *models, "--tests", "weat6", "--out", tmp_path / "run", "--quiet")[0] == 0
    rows = told(cli("compare", tmp_path / "run", "--json")[1])["associations"]
    assert [(r["baseline"], r["model"]) for r in rows] == [("glove", "v.txt")]


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


def test_only_tests_that_are_named_are_compared(cli: Cli, refuses: Callable[..., str], one: Path, two: Path) -> None:
    found = told(cli("compare", one, two, "--tests", "weat[67]", "--json")[1])
    assert [row["test"] for row in found["associations"]] == ["weat6", "weat7"]
    kept = [row for folder in (one, two) for row in stored(folder) if row["test"] != "weat8"]
    assert [row["p_adjusted"] for row in found["results"]] == [row["p_adjusted"] for row in kept]
    everything = told(cli("compare", one, two, "--json")[1])["associations"]
    for row, wider in zip(found["associations"], everything, strict=False):
        assert row["interval_low"] == wider["interval_low"]
        ends = [[one[f"simultaneous_{end}"] for end in ("low", "high")] for one in (wider, row)]
        assert ends[0][0] <= ends[1][0] < ends[1][1] <= ends[0][1]  # fewer share the error
        assert ends[0] != ends[1]
    assert "no test is named weat9" in refuses(one, two, "--tests", "weat9")


def test_runs_that_differ_are_refused_unless_mixed(
    cli: Cli, refuses: Callable[..., str], one: Path, two: Path, tmp_path: Path
) -> None:
    edit(two / "manifest.json", lambda made: made["settings"].update(protocol="may2019"))
    edit_first(two, test_digest="another")
    said = refuses(one, two)
    assert "protocol is exact in one, may2019 in two" in said
    assert "same name and other texts: weat6" in said
    assert "--mixed" in said
    code, stdout, _ = cli("compare", one, two, "--mixed", "--out", tmp_path / "page.html")
    assert code == 0
    assert "not alike: protocol is exact in one, may2019 in two" in stdout
    assert "protocol is exact in one, may2019 in two" in read(tmp_path / "page.html")
    assert len(told(cli("compare", one, two, "--mixed", "--json")[1])["notes"]) == 2


def test_a_comparison_is_published_with_the_runs(cli: Cli, one: Path, two: Path, tmp_path: Path) -> None:
    paper = tmp_path / "paper"
    code, stdout, _ = cli("compare", one, two, "--publish", paper, "--format", "svg")
    assert code == 0
    assert f"{len(names(paper))} files written to {paper}" in stdout
    assert {"associations.tex", "results-as-published.tsv", "references.bib", "model-card-glove.md"} <= names(paper)
    assert {"differences.tex", "differences.md"} <= names(paper)
    text = (paper / "differences.md").read_text().replace("−", "-")
    for row in told(cli("compare", one, two, "--json")[1])["associations"]:
        assert f"{row['interval_low']:z.2f} to {row['interval_high']:z.2f}" in text
        assert f"{row['difference']:z.2f}" in text


@pytest.mark.extras
def test_figures_of_differences_are_published(cli: Cli, one: Path, two: Path, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    cli("compare", one, two, "--publish", tmp_path / "paper", "--format", "svg", "--quiet")
    figures = tmp_path / "paper" / "figures"
    assert {"difference-1.svg", "difference-1.vl.json"} <= names(figures)
    values = json.loads((figures / "difference-1.vl.json").read_text())["data"]["values"]
    rows = told(cli("compare", one, two, "--json")[1])["associations"]
    assert [v["effect"] for v in values] == [row["difference"] for row in rows]


def test_runs_of_different_kinds_are_refused(refuses: Callable[..., str], one: Path, tmp_path: Path) -> None:
    over = measured_in_contexts(("one",)).save(tmp_path / "over")
    said = refuses(one, over, "--mixed")
    assert "cannot be compared" in said
    assert "`biassay report`" in said


# ---- careless users


def test_wrong_usage_is_refused(refuses: Callable[..., str], one: Path, two: Path, tmp_path: Path) -> None:
    assert "Missing argument" in refuses()
    assert "there is one model only (glove)" in refuses(one)
    assert "is named twice" in refuses(one, one)
    assert "no such folder" in refuses(one, tmp_path / "nowhere")
    said = refuses(one, two / "results.json")
    assert f"{two / 'results.json'} is a file; name its run folder, {two}" in said
    assert f"not a run folder (manifest.json is missing); runs inside: {one}, {two}" in refuses(one, tmp_path)
    assert "No such option" in refuses(one, two, "--basline", "glove")
    assert "does not exist" in refuses(one, two, "--out", tmp_path / "nowhere" / "page.html")
    assert "is not a report of biassay" in refuses(one, two, "--out", two / "results.json")
    assert "is not an empty folder" in refuses(one, two, "--publish", two)
    shutil.copytree(one, tmp_path / "copy")
    assert "one and copy are copies of one run" in refuses(one, tmp_path / "copy")


def test_a_full_folder_is_refused_before_the_page_is_written(
    refuses: Callable[..., str], one: Path, two: Path, tmp_path: Path
) -> None:
    assert "is not an empty folder" in refuses(one, two, "--out", tmp_path / "page.html", "--publish", one)


def test_an_interrupted_run_is_compared_as_far_as_it_goes(cli: Cli, glove: Run, two: Path, tmp_path: Path) -> None:
    begun = with_rows(glove, glove.results[:1], status="running", finished=None)
    begun.save(tmp_path / "begun")
    page = tmp_path / "page.html"
    code, stdout, _ = cli("compare", tmp_path / "begun", two, "--out", page)
    assert (code, len(judged(stdout))) == (0, 1)
    assert "1 of 3 results" in read(page)


@pytest.mark.slow
@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("field", ["sentences_effect_size", "sentences_log10_p_value", "effect_size", "statistic"])
def test_numbers_that_are_none_are_no_obstacle(
    field: str, value: str, cli: Cli, one: Path, two: Path, tmp_path: Path
) -> None:
    edit_first(two, **{field: value})
    code, stdout, stderr = cli("compare", one, two, "--json", "--out", tmp_path / "page.html")
    assert code == 0, stderr
    assert len(told(stdout)["associations"]) == 3
    assert cli("compare", one, two)[0] == 0


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
    assert f"{tmp_path / 'without' / 'results.json'}: weat6/cosines: there is no such array" in " ".join(stderr.split())
