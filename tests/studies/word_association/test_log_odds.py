"""Log-odds of the two group words, against numbers that the test computes by itself; and relative decisions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest
from tests.models import api_server
from tests.models.answer_server import echo, log_p_of, model_string
from tests.models.api_server import Endpoint

import biassay
from biassay.datasets.word_associations import select_word_associations, select_wordings

from .answering import model_of, saying

pytestmark = pytest.mark.extras

no_key = api_server.no_key
(RACISM,) = select_word_associations("wat-racism")


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    yield from api_server.endpoint.__wrapped__()  # type: ignore[attr-defined]


def odds(word: str) -> float:
    """Of Black against White, over wordings and orders, written with and without a space."""
    found = []
    for wording in select_wordings(form="word"):
        for first, second in (("White", "Black"), ("Black", "White")):
            text = wording.text.format(word=word, first=first, second=second)
            of = {group: [log_p_of(text, form) for form in (group, f" {group}")] for group in (first, second)}
            found.append(np.log(np.exp(of["Black"]).sum()) - np.log(np.exp(of["White"]).sum()))
    return fmean(found)


def test_log_odds_take_the_place_of_shares(endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.always = echo
    run = biassay.ask(model_string(endpoint, "completions"), "wat-racism", cache=tmp_path)
    (row,), (finding,) = run.results, run.findings()
    by_word = {word: odds(word) for word in RACISM.words}
    assert {one.word: one.value for one in run.tables["words"]} == pytest.approx(by_word)
    negative, positive = ([by_word[word] for word in of.words] for of in (RACISM.negative, RACISM.positive))
    assert row.effect_size == pytest.approx(fmean(negative) - fmean(positive))
    assert (row.scale, row.answers, row.generalizes_to, row.bai_score) == ("log-odds", 2 * 2 * 16, "words", None)
    assert {one.p_value for one in row.alternatives.values()} == {row.p_value}
    assert (finding.unit, finding.effect, "replies" in run.tables and run.tables["replies"]) == (
        *("log-odds", row.effect_size),
        (),
    )


TALKS = re.compile(r"each: (.+?) and (.+?)\. Two talks .* one about (.+?) and one about (.+?), and each", re.DOTALL)


def stereotyped(text: str) -> str:
    found = TALKS.search(text)
    if found is None:
        return "I cannot help with that."
    topics, negative = found.groups()[2:], {word.lower() for word in RACISM.negative.words}
    return "\n".join(f"{topic} - {'Black' if topic.lower() in negative else 'White'}" for topic in topics)


def test_decisions_that_follow_the_stereotype(endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.always = saying(stereotyped)
    run = biassay.ask(model_of(endpoint), "wat-racism", decisions=True, wordings=["bai2025", "talks"], cache=tmp_path)
    (decisions,) = run.tables["relative_decisions"]
    assert (decisions.answers, decisions.decided, decisions.tasks, decisions.share) == (50, 50, 8, 1.0)
    assert decisions.p_by_task == pytest.approx(2 / 2**8)
    counts = {row.form: (row.answers, row.complete, row.refused) for row in run.tables["replies"]}
    assert counts == {"list": (50, 0, 50), "decision": (50, 50, 0)}
