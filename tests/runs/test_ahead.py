"""Models asked ahead: how many are held, and which are not asked beside each other."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

import biassay
from biassay.engines.local import LocalExecutor
from biassay.runs.prefetch import ModelPrefetcher

from .test_engine import write_test


class Two(LocalExecutor):
    """Two models at a time, in threads of this process."""

    max_concurrent_models = 2


def test_few_places_are_held_ahead_of_the_one_wanted() -> None:
    found: set[int] = set()
    is_first = threading.Event()

    def ask(place: int) -> int:
        if place == 0:
            is_first.wait()
        found.add(place)
        if len(found) == 3:
            is_first.set()  # as many as may be ahead of the first
        return place

    with ModelPrefetcher(ask, range(12), Two()) as ahead:
        for place in range(12):
            assert ahead.result(place) == place
            assert max(found) <= place + 3


def test_a_place_that_shares_a_key_with_one_before_it_is_asked_when_wanted() -> None:
    keys = [{"a"}, {"b"}, {"a", "c"}, {"c"}, {"d"}, set[str](), set[str]()]
    threads: dict[int, int] = {}

    def ask(place: int) -> int:
        threads[place] = threading.get_ident()
        return place

    with ModelPrefetcher(ask, range(7), Two(), keys.__getitem__) as ahead:
        assert [ahead.result(place) for place in range(7)] == list(range(7))
    assert [place for place in range(7) if threads[place] == threading.get_ident()] == [2, 3]


COUNTED = """
import numpy as np, time
texts = []

class Counted:
    revision = "1"
    def encode(self, asked):
        texts.extend(asked)
        time.sleep(0.2)
        return np.array([np.random.default_rng([*text.encode()]).normal(size=6) for text in asked])
"""


def test_one_model_under_two_names_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "counted_texts.py").write_text(COUNTED)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "counted_texts", raising=False)
    model = "python:counted_texts:Counted"
    run = biassay.run(
        {"a": model, "b": model}, write_test(tmp_path / "own.json"), cache=tmp_path / "cache", engine=Two()
    )
    texts = sys.modules["counted_texts"].texts
    assert len(texts) == len(set(texts))
    assert [record.encoded for record in run.manifest.models] == [len(texts), 0]
    assert run.results[0].effect_size == run.results[1].effect_size
