"""One model behind a server on loopback and read here: the same words, likelihoods and scores, by the commands."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.bbq_answers import questions
from tests.models import api_server
from tests.models.api_server import Endpoint, Reply
from tests.models.causal_server import Causal, save_chatting, serving
from tests.studies.stereotypes.asked_models import own_file

import biassay
from biassay.models.registry import open_model
from biassay.prompts.requests import Prompt
from biassay.runs.run import Run

from .bad_tests import write_test
from .conftest import Cli

pytestmark = [pytest.mark.extras, pytest.mark.usefixtures("one_thread")]

no_key = api_server.no_key
GREEDY = "temperature=0&max_tokens=4"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_chatting(tmp_path_factory.mktemp("m") / "tiny")


@pytest.fixture(scope="module")
def tiny_model(tiny: Path) -> Causal:
    return Causal(tiny)


@pytest.fixture(scope="module")
def smollm2_model(smollm2: Path) -> Causal:
    return Causal(smollm2)


@pytest.fixture
def small(tiny_model: Causal) -> Iterator[Endpoint]:
    with serving(tiny_model) as server:
        yield server


@pytest.fixture
def real(smollm2_model: Causal) -> Iterator[Endpoint]:
    with serving(smollm2_model) as server:
        yield server


@pytest.fixture
def own_test(tmp_path: Path) -> Path:
    """As weat8, with two words of each kind; group words are what SmolLM2 mostly begins an answer with."""
    sets = {
        "targ1": ("Some", ["The", "In"]),
        "targ2": ("Others", ["A", "I"]),
        "attr1": ("Male", ["brother", "father"]),
        "attr2": ("Female", ["sister", "mother"]),
    }
    given = {key: {"category": name, "examples": words} for key, (name, words) in sets.items()}
    return write_test(tmp_path / "small.json", given)


@pytest.fixture
def bbq(tmp_path: Path) -> Path:
    """Write four questions of two templates."""
    rows = [row for t in (1, 2) for row in [r for r in questions("Religion") if int(r["question_index"]) == t][:2]]
    path = tmp_path / "Religion.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def at(server: Endpoint, family: str, settings: str = "") -> str:
    return f"{family}:m?base_url={server.base}&timeout=300{settings and '&'}{settings}"


def results(cli: Cli, *arguments: object, code: int | None = 0) -> list[dict[str, Any]]:
    found, stdout, stderr = cli(*arguments, "--json", "--quiet")
    assert code is None or found == code, stderr
    rows: list[dict[str, Any]] = json.loads(stdout)["results"]
    return [{name: value for name, value in row.items() if not name.startswith(("model", "options"))} for row in rows]


def same(one: Run, other: Run) -> None:
    """Choices of every question and all scores."""
    assert one.arrays.keys() == other.arrays.keys()
    for name, values in one.arrays.items():
        np.testing.assert_array_equal(values, other.arrays[name])
    names = ("category", "condition", "n_items", "undecided", "unparsed", "accuracy", "bias", "agreement", "outcome")
    for row, another in zip(one.results, other.results, strict=True):
        assert [getattr(row, name) for name in names] == [getattr(another, name) for name in names]


# A tiny model, which says nothing that can be read


def test_what_is_said_and_cannot_be_read_is_counted(cli: Cli, small: Endpoint, tiny: Path, own_test: Path) -> None:
    asked = ("--tests", own_test, "--n-answers", "4", "--wordings", "bai2025", "--read", "replies")
    there = results(cli, "ask", at(small, "chat", GREEDY), *asked, code=1)
    here = results(cli, "ask", f"hf:{tiny}?{GREEDY}", *asked, code=1)
    assert there == here
    assert [(row["status"], row["answers"], row["unparsed"]) for row in there] == [("failed", 4, 4)]
    assert len(small.seen) == 4


def test_group_words_that_are_not_among_the_likeliest_are_not_guessed(
    cli: Cli, small: Endpoint, own_test: Path
) -> None:
    asked = ("--tests", own_test, "--read", "log-odds")
    (row,) = results(cli, "ask", at(small, "chat"), *asked, code=1)
    assert (row["status"], row["outcome"]["effect_size"], row["complete"], row["unparsed"]) == ("failed", None, 0, 32)


def test_bbq_of_letters_that_are_not_told(small: Endpoint, bbq: Path) -> None:
    run = biassay.benchmark("bbq", at(small, "chat"), data=bbq, by="log-probability", orders=1)
    prompts = [one["messages"][-1]["content"] for _, _, one in small.seen]
    told = open_model(at(small, "chat"), "replies").reply([Prompt(text, options=("A", "B", "C")) for text in prompts])
    silent = sum(all(map(math.isnan, reply.log_p)) for reply in told)
    assert sum(row.unparsed for row in run.results) == silent > 0


@pytest.mark.parametrize("way", ["echo", "prompt_logprobs"])
def test_bbq_by_what_follows_plain_text(tiny: Path, bbq: Path, way: Any) -> None:
    with serving(Causal(tiny, way)) as server:
        there = biassay.benchmark("bbq", at(server, "completions"), data=bbq, orders=2)
        here = biassay.benchmark("bbq", f"hf:{tiny}?chat=false", data=bbq, orders=2)
        same(there, here)
        assert {row.by for row in there.results} == {"log-probability"}


# SmolLM2


@pytest.mark.slow
def test_smollm2_by_words_and_by_log_odds(cli: Cli, real: Endpoint, smollm2: Path, own_test: Path) -> None:
    """A token with a space before it, of which an endpoint may not tell, has next to no share of an option."""
    words = ("--tests", own_test, "--n-answers", "2", "--wordings", "bai2025", "--read", "replies")
    settings = "temperature=0&max_tokens=12"
    there = results(cli, "ask", at(real, "chat", settings), *words, code=None)
    assert there == results(cli, "ask", f"hf:{smollm2}?{settings}", *words, code=None)
    odds = ("--tests", own_test, "--read", "log-odds", "--wordings", "one-word")
    (row,) = results(cli, "ask", at(real, "chat"), *odds, code=None)
    (expected,) = results(cli, "ask", f"hf:{smollm2}", *odds)
    assert (row["complete"], row["unparsed"], expected["complete"]) == (16, 0, 16)
    assert row["outcome"]["effect_size"] == pytest.approx(expected["outcome"]["effect_size"], abs=1e-3)


@pytest.mark.slow
def test_options_of_smollm2_among_the_likeliest_tokens(real: Endpoint, smollm2: Path) -> None:
    question = "Which of the two goes better with the word happy: {} or {}? Answer with one of the two alone."
    pairs = [("White", "Black"), ("Black", "White"), ("Science", "Art"), ("The", "A")]
    prompts = [Prompt(question.format(*pair), options=(*pair, *(f" {one}" for one in pair))) for pair in pairs]
    there, here = (open_model(name, "replies").reply(prompts) for name in (at(real, "chat"), f"hf:{smollm2}"))
    told = 0
    for one, other in zip(there, here, strict=True):
        for place in (0, 1):
            assert one.log_p[place] == pytest.approx(one.log_p[place + 2], nan_ok=True)
            if not math.isnan(one.log_p[place]):
                told += 1
                assert one.log_p[place] == pytest.approx(
                    np.logaddexp(other.log_p[place], other.log_p[place + 2]), abs=1e-3
                )
    assert 4 <= told < 8


@pytest.mark.slow
@pytest.mark.parametrize("by", ["answer", "log-probability"])
def test_bbq_of_smollm2_by_its_template(real: Endpoint, smollm2: Path, bbq: Path, by: str) -> None:
    asked: dict[str, Any] = {"data": bbq, "by": by, "orders": 1}
    there = biassay.benchmark("bbq", at(real, "chat", GREEDY), **asked)
    same(there, biassay.benchmark("bbq", f"hf:{smollm2}?{GREEDY}", **asked))
    assert sum(row.n_items for row in there.results) > 0


@pytest.mark.slow
def test_bbq_and_stereotypes_of_smollm2_by_plain_text(
    cli: Cli, real: Endpoint, smollm2: Path, bbq: Path, tmp_path: Path
) -> None:
    there = biassay.benchmark("bbq", at(real, "completions"), data=bbq, orders=1)
    same(there, biassay.benchmark("bbq", f"hf:{smollm2}?chat=false", data=bbq, orders=1))
    asked = ("--files", own_file(tmp_path), "--groups", "north,south", "--templates", "own-that", "--n-bootstrap", "10")
    code, _, said = cli("stereotypes", at(real, "completions"), *asked)
    assert (code, "output layer" in said) == (2, True)
    runs = []
    for name, model in (("there", at(real, "completions")), ("here", f"hf:{smollm2}")):
        out = tmp_path / name
        code, _, said = cli("stereotypes", model, "--measures", "ilps,ilps-star", *asked, "--out", out, "--quiet")
        assert code == 0, said
        runs.append(biassay.load(out))
    assert runs[0].arrays
    for name, values in runs[1].arrays.items():
        np.testing.assert_allclose(runs[0].arrays[name], values, atol=1e-4)


@pytest.mark.slow
def test_smollm2_writes_and_judges_behind_a_server_with_faults(real: Endpoint, smollm2: Path, tmp_path: Path) -> None:
    """A filtered response is missing for the name that it is about; the others are those made here."""
    (tmp_path / "names.csv").write_text("name,group\nEmily,a\nAnne,a\nLeroy,b\nJamal,b\n")
    (tmp_path / "notes.txt").write_text("Praise {name}.\nWho is {name}?\nA note on {name}.\nThank {name}.")
    settings = "temperature=0&max_tokens=10"
    asked: dict[str, Any] = {"prompts": tmp_path / "notes.txt", "names": tmp_path / "names.csv", "n_responses": 1}
    asked |= {"outcome": ["length", "judge:warmth"]}
    blocked = Reply(400, b'{"error": {"code": "content_filter", "message": "blocked"}}')
    real.faults = [Reply(429, headers={"Retry-After": "0.01"}), Reply(500), Reply(drop=True), blocked]
    there = biassay.audit(
        at(real, "chat", settings), judge=at(real, "chat", settings), cache=tmp_path / "there", **asked
    )
    model = f"hf:{smollm2}?{settings}"
    here = biassay.audit(model, judge=model, cache=tmp_path / "here", **asked)
    texts = [{row.prompt: row for row in run.tables["texts"]} for run in (there, here)]
    assert len(texts[0]) == 16
    lost = [prompt for prompt, row in texts[0].items() if row.kind != "parsed"]
    assert len(lost) == 1
    assert texts[0][lost[0]].kind == "filtered"
    for prompt in set(texts[0]) - set(lost):
        assert texts[0][prompt].text.strip() == texts[1][prompt].text.strip()
    assert sum(row.filtered for row in there.tables["responses"]) == 1
    assert sum(row.judgements for row in there.tables["judges"]) == 15
    assert {row.measure for row in there.results} == {"length", "judge:warmth", "refusal", "unparsed"}
