"""Models asked ahead: how many are held, and which are not asked beside each other."""

from __future__ import annotations

import threading

from biassay.engines.local import LocalExecutor
from biassay.runs.fetch import ModelPrefetcher


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
