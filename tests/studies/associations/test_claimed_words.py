"""Claims of generated text: other languages have no random baseline, and paper protocols fix the words."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import biassay
from biassay.runs.reports import get_presenter, print_run, render_report
from biassay.runs.run import Run
from biassay.studies.associations.paper import methods_sentences

GERMAN: dict[str, Any] = {
    "name": "berufe",
    "X": ["mann", "bruder", "vater", "sohn"],
    "Y": ["frau", "schwester", "mutter", "tochter"],
    "A": ["beruf", "gehalt", "karriere", "firma"],
    "B": ["familie", "haus", "kind", "hochzeit"],
}


class Hashed:
    """Any word has a vector."""

    def encode(self, texts: Any) -> Any:
        return np.array([np.random.default_rng(sum(map(ord, text))).normal(size=16) for text in texts])


def printed(run: Run) -> str:
    out = io.StringIO()
    print_run(run, Console(file=out, width=100), everything=True)
    return " ".join(out.getvalue().split())


@pytest.mark.parametrize(
    ("language", "drawn"), [(None, False), ("de", False), ("zh", False), ("en", True), ("en-GB", True)]
)
def test_only_tests_that_state_english_have_a_random_baseline(
    language: str | None, drawn: bool, tmp_path: Path
) -> None:
    test = GERMAN | ({} if language is None else {"language": language})
    run = biassay.run({"m": Hashed()}, test, cache=tmp_path)
    (row,) = run.results
    assert (row.share_random is not None, row.language) == (drawn, language)
    text = printed(run)
    assert ("no random baseline" in text) is not drawn
    assert drawn or "of the time" not in text + render_report(run)


@pytest.mark.parametrize("protocol", ["may2019", "caliskan2017"])
def test_under_the_papers_protocols_nothing_speaks_of_other_words(protocol: str, tmp_path: Path) -> None:
    """Their p-values are about these texts only; d is large in most of these tests."""
    run = biassay.run("glove", ["weat3", "sent-weat3", "weat6", "weat8", "weat9"], protocol=protocol, cache=tmp_path)
    methods = " ".join(one.text for one in methods_sentences(run, ()))
    card = get_presenter("associations").card(run, "glove")
    told = [printed(run), render_report(run), methods, *card.opening, *card.findings, *card.limits, str(run.findings())]
    assert [text for text in told if "other words" in text] == []
    assert {row.share_random for row in run.results} == {None}
