"""Whole runs over ``api:``, also those that a server breaks off."""

from __future__ import annotations

from pathlib import Path

import pytest

import biassay
from biassay.errors import MeasurementError
from biassay.prompts.sentences import make_random_texts, make_texts

from . import api_server
from .api_server import Endpoint, Reply, good

pytestmark = pytest.mark.extras

endpoint, key, no_key = api_server.endpoint, api_server.key, api_server.no_key


def weat6() -> dict[str, list[str]]:
    [test] = biassay.select_tests(["weat6"])
    return {role: [text.text for text in make_texts(test).role(role)] for role in "XYAB"}


def requested_texts() -> set[str]:
    """Those of the test, and words that random attribute sets are drawn from."""
    [test] = biassay.select_tests(["weat6"])
    return {text for texts in weat6().values() for text in texts} | set(make_random_texts(test))


@pytest.mark.parametrize("again", ["run", "resume"])
def test_after_a_server_died_only_missing_texts_are_sent(endpoint: Endpoint, tmp_path: Path, again: str) -> None:
    endpoint.faults = [good] * 3
    endpoint.always = lambda _: Reply(drop=True)
    model = f"api:toy?base_url={endpoint.base}&batch=4&concurrency=1&retries=0"
    with pytest.raises(MeasurementError, match=r"1 attempt\).*are cached"):
        biassay.run(model, tests="weat6", out=tmp_path / "run", cache=tmp_path / "cache")
    kept = endpoint.texts[:12]
    endpoint.always = good
    endpoint.seen.clear()
    if again == "run":
        run = biassay.run(model, tests="weat6", out=tmp_path / "second", cache=tmp_path / "cache")
    else:
        run = biassay.resume(tmp_path / "run", model, cache=tmp_path / "cache")
    assert len(endpoint.texts) == len(requested_texts()) - len(kept) == run.manifest.models[0].encoded
    assert set(endpoint.texts) == requested_texts() - set(kept)
    endpoint.seen.clear()
    third = biassay.run(model.replace("batch=4", "batch=9"), tests="weat6", cache=tmp_path / "cache")
    assert endpoint.seen == []
    assert third.results == run.results
