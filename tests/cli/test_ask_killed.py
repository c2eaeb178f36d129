"""``biassay ask`` killed at any moment: no repeated requests, and the results of an uninterrupted run."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.models import api_server
from tests.models.api_server import Endpoint
from tests.studies.word_association.answering import giving, model_of, stereotyped

import biassay
from biassay.datasets.word_associations import select_word_associations

pytestmark = [pytest.mark.extras, pytest.mark.slow]

no_key = api_server.no_key
CONNECTIONS, ANSWERS, NAMES = 4, 40, ("wat-racism", "wat-arab-muslim", "wat-weight")
HOW = {"wordings": "bai2025", "n_answers": ANSWERS}


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    for server in api_server.endpoint.__wrapped__():  # type: ignore[attr-defined]
        server.always = giving(stereotyped(*select_word_associations(NAMES)))
        server.hold = 0.005
        yield server


def killed(arguments: Sequence[object], server: Endpoint, after: int, seconds: float) -> None:
    """Start the command, and kill it some time after the server has received a number of requests."""
    command = [sys.executable, "-m", "biassay", *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(os.environ))
    while process.poll() is None and len(server.seen) < after:
        time.sleep(0.0005)
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    process.wait(10)
    while server.active:
        time.sleep(0.005)


@pytest.mark.parametrize("trial", range(2))
def test_killed_twice_and_resumed(endpoint: Endpoint, tmp_path: Path, trial: int) -> None:
    """Requests differ by seed, so the server can count repeated ones: at most those in flight."""
    rng = random.Random(trial)
    model, run, cache = model_of(endpoint, "&seed=1"), tmp_path / "run", ("--cache", tmp_path / "cache", "--quiet")
    first, second = sorted(rng.sample(range(1, len(NAMES) * ANSWERS), 2))
    asked = ("--tests", ",".join(NAMES), "--wordings", "bai2025", "--n-answers", ANSWERS)
    killed(("ask", model, *asked, "--out", run, *cache), endpoint, first, rng.uniform(0, 0.02))
    killed(("resume", run, "--model", model, *cache), endpoint, second, rng.uniform(0, 0.02))
    resumed = biassay.resume(run, model, cache=tmp_path / "cache")
    times = Counter(json.dumps(one, sort_keys=True) for _, _, one in endpoint.seen)
    assert len(times) == len(NAMES) * ANSWERS
    assert times.total() - len(times) <= 2 * CONNECTIONS
    whole = biassay.ask(model, list(NAMES), out=tmp_path / "whole", cache=tmp_path / "other", **HOW)  # type: ignore[arg-type]
    assert resumed.results == whole.results
    (record,) = resumed.manifest.models  # every response takes 10 tokens in and 5 out
    answered = times.total() - 2 * CONNECTIONS, times.total()
    assert 10 * answered[0] <= record.tokens_in <= 10 * answered[1]
    assert 5 * answered[0] <= record.tokens_out <= 5 * answered[1]
    assert dict(resumed.tables) == dict(whole.tables)
    written, expected = ((folder / "results.tsv").read_bytes() for folder in (run, tmp_path / "whole"))
    assert written == expected
