"""``biassay robustness`` of models that encode texts, and of models that respond to prompts."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.models import api_server
from tests.models.answer_server import body
from tests.models.api_server import Asked, Endpoint, Reply
from tests.question_data import WOMEN, write_winobias
from tests.studies.word_association.answering import model_of

import biassay
from biassay.datasets.word_associations import select_word_associations
from biassay.stats.specification_curve import joint_sign_test

from ..docs_endpoint import _make_response
from .conftest import Cli


def test_a_paper_has_one_table_and_the_specifications_in_a_file(cli: Cli, tmp_path: Path) -> None:
    assert cli("robustness", "glove", "--tests", "weat6,weat7", "--out", tmp_path / "run", "--quiet")[0] == 0
    assert cli("report", tmp_path / "run", "--publish", tmp_path / "paper", "--quiet")[0] == 0
    assert {path.name for path in (tmp_path / "paper").glob("*.t*")} == {
        *("methods.tex", "robustness-results.tex", "robustness-results.tsv", "robustness-specifications.tsv"),
        "robustness-decisions.tsv",
    }
    lines = (tmp_path / "paper" / "robustness-results.tex").read_text().splitlines()
    (weat7,) = [line for line in lines if line.startswith("weat7")]
    assert [cell.strip(" \\") for cell in weat7.split("&")][1:] == [
        *("1.36", "0.143", "1.32", "{[}1.24, 1.42{]}", "4 of 4", "0 of 4", "0.002"),
    ]
    assert "simonsohn2020" in (tmp_path / "paper" / "references.bib").read_text()


def test_the_terminal_shows_a_line_a_test(cli: Cli) -> None:
    _, stdout, _ = cli("robustness", "glove", "--tests", "weat6,weat7")
    rows = [re.split(r" {2,}", line.strip()) for line in stdout.split("Effects under all")[1].splitlines()]
    (place,) = [place for place, row in enumerate(rows) if row[0].endswith("(weat7)")]
    cells = [cell for row in rows[place - 1 : place + 1] for cell in row]  # the label takes two lines
    assert {"1.36", "0.143", "1.32", "[1.24, 1.42]", "4 of 4", "0 of 4", "0.002"} <= set(cells)
    assert rows[2][-1] == "weakest"
    assert rows[3][-1] == "word"


no_key = api_server.no_key


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    for server in api_server.endpoint.__wrapped__():  # type: ignore[attr-defined]
        server.always = _answer
        yield server


def _answer(asked: Asked) -> Reply:
    """Follow the stereotype, unless the system message asks not to; always the first option if it is hot."""
    *system, user = [message["content"] for message in asked["messages"]]
    letters = {text: letter for letter, text in re.findall(r"^([AB])\. (.+)$", user, re.MULTILINE)}
    if letters:
        female = " she " in user
        fits = [text for text in letters if (text.removeprefix("the ") in WOMEN) == female]
        said = letters[fits[0]]
        if "prejudice" in "".join(system):  # against the stereotype
            said = next(letter for letter in letters.values() if letter != said)
        said = "A" if asked["temperature"] == 2.0 else said
    else:
        said = _make_response(user, "llama3.2")
    return body({"index": 0, "finish_reason": "stop", "message": {"content": said}})


def test_signs_are_exchanged_in_all_specifications_at_once() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(0.4, 1.0, (5, 9)) + rng.normal(0.0, 1.0, 9)
    found = joint_sign_test(values)
    scaled = values / np.sqrt((values**2).mean(axis=1, keepdims=True))
    medians = [
        np.median((scaled * signs).mean(axis=1)) for signs in map(np.array, itertools.product((1.0, -1.0), repeat=9))
    ]
    wanted = np.mean(np.abs(medians) >= abs(medians[0]) - 1e-9)
    assert (found.exact, found.splits) == (True, 512)
    assert found.median == pytest.approx(medians[0])
    assert found.p_value == pytest.approx(wanted)
    assert np.isnan(joint_sign_test(np.zeros((2, 5))).p_value)


@pytest.mark.extras
def test_a_benchmark_is_asked_in_many_ways(cli: Cli, endpoint: Endpoint, tmp_path: Path) -> None:
    data = write_winobias(tmp_path / "data")
    command = ("robustness", model_of(endpoint), "--benchmark", "winobias", "--data", data, "--temperatures", "0,2")
    code, stdout, stderr = cli(
        *command,
        *("--systems", "Answer without prejudice.", "--cache", tmp_path / "cache", "--out", tmp_path / "run"),
        "--json",
    )
    assert code == 0, stderr
    tables: dict[str, Any] = json.loads(stdout)
    specifications = [row for row in tables["specifications"] if row["test"] == "winobias type 1"]
    effects = {(row["kind"], row["value"]): row["effect_size"] for row in specifications}
    assert effects == {
        ("default", ""): 1.0,
        ("wording", "letter only"): 1.0,
        ("wording", "question"): 1.0,
        ("order", "1"): 1.0,
        ("order", "2"): 1.0,
        ("temperature", "0"): 1.0,
        ("temperature", "2"): None,  # all choices by position
        ("system", "Answer without prejudice."): -1.0,
    }
    (row,) = (row for row in tables["results"] if row["test"] == "winobias type 1")
    assert (row["n_specifications"], row["n_same_sign"]) == (7, 6)
    assert (row["min_effect_size"], row["max_effect_size"]) == (-1.0, 1.0)
    default = biassay.benchmark("winobias", model_of(endpoint), data=data, cache=tmp_path / "cache").results[0]
    assert (row["outcome"]["effect_size"], row["outcome"]["p_value"]) == (default.effect_size, default.p_value)
    assert 0.0 < row["alternatives"]["joint"]["p_value"] <= 2.0**-6
    asked = [sent for _, _, sent in endpoint.seen]
    assert {sent["temperature"] for sent in asked} == {0.0, 1.0, 2.0}
    assert len(asked) == 128 * 6  # the default, two wordings, two temperatures, one system message; orders are free
    assert biassay.load(tmp_path / "run").results[0].n_same_sign == 6
    assert "6 of 7" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert cli("report", tmp_path / "run", "--publish", tmp_path / "site", "--quiet")[0] == 0


@pytest.mark.extras
def test_a_run_goes_on_and_is_compared(cli: Cli, endpoint: Endpoint, tmp_path: Path) -> None:
    data = write_winobias(tmp_path / "data", pairs=4)
    command = ("robustness", model_of(endpoint), "--benchmark", "winobias", "--data", data)
    cache = ("--cache", tmp_path / "cache", "--quiet")
    code, _, stderr = cli(*command, "--budget", "1500", "--out", tmp_path / "old", *cache)
    assert (code, "biassay resume" in stderr) == (1, True)
    begun = len(endpoint.seen)
    code, _, stderr = cli("resume", tmp_path / "old", "--model", model_of(endpoint), "--budget", "900000", *cache)
    assert code == 0, stderr
    assert 0 < begun < len(endpoint.seen)
    endpoint.always = lambda asked: _answer({**asked, "messages": [{"content": "prejudice"}, *asked["messages"][-1:]]})
    assert cli(*command, "--out", tmp_path / "new", "--cache", tmp_path / "other", "--quiet")[0] == 0
    code, stdout, stderr = cli("compare", tmp_path / "old", tmp_path / "new")
    assert code == 0, stderr
    assert "-2.00" in stdout  # from 1 to -1; all sentences agree, so that there is no interval


@pytest.mark.extras
def test_a_word_association_test_is_asked_in_many_ways(cli: Cli, endpoint: Endpoint, tmp_path: Path) -> None:
    tests = ("--tests", "wat-racism", "--n-answers", "8", "--temperatures", "0", "--systems", "Be brief.")
    code, stdout, stderr = cli("robustness", model_of(endpoint), *tests, "--cache", tmp_path / "cache", "--json")
    assert code == 0, stderr
    tables = json.loads(stdout)
    (row,) = tables["results"]
    kinds = [one["kind"] for one in tables["specifications"]]
    assert {"default", "wording", "order", "temperature", "system"} == set(kinds)
    assert kinds.count("order") == 2
    default = biassay.ask(model_of(endpoint), "wat-racism", n_answers=8, cache=tmp_path / "cache").results[0]
    assert row["outcome"]["effect_size"] == default.effect_size
    by_order = [one["effect_size"] for one in tables["specifications"] if one["kind"] == "order"]
    assert all(one is not None and one > 0.0 for one in by_order)
    assert row["n_same_sign"] == row["n_specifications"] == len(kinds)
    assert row["alternatives"]["joint"]["p_value"] < 0.05
    assert len(select_word_associations("wat-racism")) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--benchmark", "winobias"), "name the data of winobias is"),
        (("--benchmark", "winobias", "--data", "nowhere"), "nowhere"),
        (("--benchmark", "crows-pairs", "--data", "x"), "x"),
        (("--benchmark", "winobias", "--tests", "wat-racism"), "either --tests"),
        (("--benchmark", "winobias", "--n-subsets", "3"), "--n-subsets is for models that encode texts"),
        (("--tests", "weat6", "--temperatures", "0"), "--temperatures is for --benchmark or --tests wat-"),
        (("--tests", "wat-racism", "--temperatures", "hot"), "hot"),
    ],
)
def test_what_does_not_go_together_is_said(cli: Cli, arguments: tuple[str, ...], message: str) -> None:
    code, stdout, stderr = cli("robustness", "chat:x?base_url=http://127.0.0.1:9", *arguments)
    assert (code, stdout) == (2, "")
    assert message in stderr
