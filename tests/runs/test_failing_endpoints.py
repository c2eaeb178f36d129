"""Tokens of endpoints that fail, or that are asked beside models of this machine, are booked to the right model."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Cli, cli  # noqa: F401  (a fixture)
from tests.models import api_server
from tests.models.api_server import Asked, Endpoint, Reply
from tests.models.causal_server import save_chatting
from tests.studies.word_association.answering import giving, model_of, stereotyped

import biassay
from biassay.datasets.word_associations import select_word_associations
from biassay.engines.local import LocalExecutor
from biassay.runs.progress import NullListener
from biassay.runs.run import Run

pytestmark = pytest.mark.extras

no_key = api_server.no_key
GOOD = giving(stereotyped(*select_word_associations(("wat-racism",))))
TOKENS = 10, 5  # of every answer


@pytest.fixture
def endpoints() -> Iterator[tuple[Endpoint, Endpoint]]:
    for one in api_server.endpoint.__wrapped__():  # type: ignore[attr-defined]
        for other in api_server.endpoint.__wrapped__():  # type: ignore[attr-defined]
            one.always = other.always = GOOD
            yield one, other


def test_tokens_of_a_model_that_failed_are_kept(
    cli: Cli,  # noqa: F811
    endpoints: tuple[Endpoint, Endpoint],
    tmp_path: Path,
) -> None:
    def breaking(asked: Asked) -> Reply:
        return GOOD(asked) if len(endpoints[0].seen) <= 3 else Reply(400, b"{}")

    endpoints[0].always = breaking
    models = [f"{name}={model_of(server)}" for name, server in zip(("one", "other"), endpoints, strict=True)]
    models = [model.replace("concurrency=4", "concurrency=1") for model in models]
    out, kept = tmp_path / "run", ("--budget", 5000, "--cache", tmp_path / "cache")
    asked = ("--tests", "wat-racism", "--wordings", "bai2025", "--n-answers", 6, "--out", out, "--quiet")
    code, _, said = cli("ask", *models, *asked, *kept)
    failed, other = Run.load(out).manifest.models
    assert (code, failed.failed is None, other.failed) == (1, False, None)
    assert failed.tokens_in >= 3 * TOKENS[0]
    assert failed.tokens_out >= 3 * TOKENS[1]
    assert (other.tokens_in, other.tokens_out) == (6 * TOKENS[0], 6 * TOKENS[1])

    (hint,) = (
        line.partition("to retry the others: biassay ")[2] for line in said.splitlines() if "measured 1 of" in line
    )
    assert {"--budget", "5000", str(tmp_path / "cache")} <= {*shlex.split(hint)}
    endpoints[0].always = GOOD
    assert cli(*shlex.split(hint), "--quiet")[0] == 0
    again = Run.load(out).manifest.models[0]
    assert (again.tokens_in, again.tokens_out) == (
        failed.tokens_in + 3 * TOKENS[0],
        failed.tokens_out + 3 * TOKENS[1],
    )


class _TwoAtOnce(LocalExecutor):
    """Asks for two models at once, which answer one after the other, and only when an endpoint has answered."""

    max_concurrent_models = 2

    def __init__(self) -> None:
        self.answered, self._one = threading.Event(), threading.Lock()

    def run(self, make: Any, tasks: Sequence[Any], **how: Any) -> Iterator[Any]:  # type: ignore[override]
        assert self.answered.wait(20)
        with self._one:
            yield from super().run(make, tasks, **how)


class _Waiting(NullListener):
    def __init__(self, engine: _TwoAtOnce) -> None:
        self._engine = engine

    def notice(self, message: str) -> None:
        if ": used " in message:
            self._engine.answered.set()


def test_a_model_asked_beside_an_endpoint_used_none_of_its_tokens(
    endpoints: tuple[Endpoint, Endpoint], tmp_path: Path
) -> None:
    local = f"hf:{save_chatting(tmp_path / 'gpt2')}?device=cpu&max_tokens=4"
    models = {"served": model_of(endpoints[0]), "one": local, "two": f"{local}&seed=1"}
    engine = _TwoAtOnce()
    how: dict[str, Any] = {
        "tests": "wat-racism",
        "wordings": ["bai2025", "one-word"],
        "n_answers": 2,
        "cache": tmp_path / "cache",
    }
    run = biassay.ask(models, **how, engine=engine, listener=_Waiting(engine))  # type: ignore[arg-type]
    assert [record.failed for record in run.manifest.models] == [None] * 3
    asked = len(endpoints[0].seen)
    found = {record.name: (record.tokens_in, record.tokens_out) for record in run.manifest.models}
    assert found == {"served": (asked * TOKENS[0], asked * TOKENS[1]), "one": (0, 0), "two": (0, 0)}
