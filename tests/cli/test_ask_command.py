"""``biassay ask``: a run from the command line, its folder, its report, and resumption after a spent budget."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.models import api_server
from tests.models.api_server import Endpoint
from tests.models.tiny_models import save_tiny
from tests.studies.word_association.answering import giving, model_of, stereotyped

from biassay.datasets.word_associations import select_word_associations

from .conftest import Cli

pytestmark = pytest.mark.extras

no_key = api_server.no_key
NAMES = ("wat-racism", "wat-arab-muslim")


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    for server in api_server.endpoint.__wrapped__():  # type: ignore[attr-defined]
        server.always = giving(stereotyped(*select_word_associations(NAMES)))
        yield server


def test_a_paper_and_a_page(cli: Cli, endpoint: Endpoint, tmp_path: Path) -> None:
    arguments = ("--tests", "wat-racism", "--wordings", "bai2025", "--n-answers", "4", "--cache", tmp_path / "cache")
    code, stdout, _ = cli("ask", model_of(endpoint), *arguments, "--out", tmp_path / "run")
    assert (code, "wat-racism" in stdout) == (0, True)
    assert cli("report", tmp_path / "run", "--publish", tmp_path / "paper", "--quiet")[0] == 0
    assert {path.name for path in (tmp_path / "paper").glob("word_association-*.tsv")} >= {
        *("word_association-results.tsv", "word_association-replies.tsv")
    }
    assert "2416228122" in (tmp_path / "paper" / "references.bib").read_text()


def test_a_run_is_compared_with_a_model_that_is_asked_the_same(cli: Cli, endpoint: Endpoint, tmp_path: Path) -> None:
    model, cache = model_of(endpoint), ("--cache", tmp_path / "cache", "--quiet")
    asked = ("--tests", ",".join(NAMES), "--wordings", "bai2025", "--n-answers", "20", "--out", tmp_path / "old")
    assert cli("ask", model, *asked, *cache)[0] == 0
    endpoint.always = giving(stereotyped(*select_word_associations(NAMES), turned=True))
    new, before = model.replace("toy", "new"), len(endpoint.seen)
    code, stdout, _ = cli("compare", tmp_path / "old", new, "--tests", "wat-racism", "--json", *cache)
    (row,) = json.loads(stdout)["differences"]
    assert (code, len(endpoint.seen) - before) == (0, 20)
    assert (row["item"], row["effect_baseline"], row["effect_model"]) == ("wat-racism", 1.0, -1.0)
    code, _, said = cli("compare", tmp_path / "old", new, "--tests", "wat-height", *cache)
    assert (code, "wat-height" in said) == (2, True)


def test_a_model_is_needed(cli: Cli) -> None:
    assert cli("ask")[0] == 2


def test_a_model_without_a_chat_template_is_refused_with_what_to_do(cli: Cli, tmp_path: Path) -> None:
    model, out = f"hf:{save_tiny('gpt2', tmp_path / 'm', head=True)}", tmp_path / "run"
    code, stdout, stderr = cli("ask", model, "--tests", "wat-racism", "--out", out, "--cache", tmp_path / "cache")
    assert (code, stdout, "?chat=false" in " ".join(stderr.split())) == (2, "", True)
    assert not out.exists()
