"""Batch prefetching: every batch is computed once, in the requested order."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import pytest

from biassay.models.transformers.batches import BatchPrefetcher
from biassay.models.transformers.forward_plan import ForwardPlan, TokenQuery


def test_what_was_announced_is_worked_on_once_and_elsewhere() -> None:
    seen: list[tuple[str, bool]] = []

    def work(batch: Sequence[str]) -> str:
        seen.append(("".join(batch), threading.current_thread() is threading.main_thread()))
        return "".join(batch).upper()

    ahead = BatchPrefetcher(work)
    ahead.prefetch(["a", "b"])
    ahead.prefetch(["c"])
    assert [ahead(["c"]), ahead(["a", "b"]), ahead(["d"])] == ["C", "AB", "D"]
    assert sorted(seen) == [("ab", False), ("ab", True), ("c", False), ("d", True)]  # what lies before c is given up


@pytest.mark.parametrize("kind", ["masked", "causal"])
def test_every_question_is_asked_in_a_sequence_that_begins_with_its_own(kind: str) -> None:
    rng = np.random.default_rng(0)
    drawn = [tuple(rng.integers(0, 3, rng.integers(1, 6)).tolist()) for _ in range(200)]
    questions = [TokenQuery(ids, int(rng.integers(len(ids))), int(rng.integers(9))) for ids in drawn]
    passes = ForwardPlan.from_queries(questions, kind)  # type: ignore[arg-type]
    distinct = set(drawn)
    alone = {ids for ids in distinct if not any(ids == other[: len(ids)] for other in distinct - {ids})}
    assert sorted(passes.sequences) == sorted(distinct if kind == "masked" else alone)
    assert [len(ids) for ids in passes.sequences] == sorted(map(len, passes.sequences))
    answered: dict[int, TokenQuery] = {}
    for batch, own in passes.batches(8, 24):
        assert len(batch.sequences) == 1 or len(batch.sequences) * max(map(len, batch.sequences)) <= 24
        padded, mask = batch.padded(-1)
        assert [tuple(row[row >= 0]) for row in padded] == list(batch.sequences)
        assert (mask == (padded >= 0)).all()
        for number, at, target in zip(
            own.tolist(), batch.query_positions.tolist(), batch.targets.tolist(), strict=True
        ):
            ids, place = batch.sequences[batch.rows[at]], int(batch.positions[at])
            asked = questions[number]
            assert ids[: len(asked.ids)] == asked.ids
            answered[number] = TokenQuery(asked.ids, place, target)
    assert [answered[number] for number in range(len(questions))] == questions
    everyone = np.arange(len(questions))
    assert passes.count_first_reads(everyone, len(questions)).sum() == len(passes.sequences)


def test_cancelled_batches_are_dropped_and_the_thread_is_idle() -> None:
    running, leave = threading.Event(), threading.Event()
    done: list[str] = []

    def work(batch: Sequence[str]) -> str:
        if batch == ["slow"]:
            running.set()
            while not (leave.is_set() or ahead.stopping.wait(0.01)):
                pass
        done.extend(batch)
        return batch[0]

    ahead = BatchPrefetcher(work)
    ahead.cancel()  # nothing was announced
    ahead.prefetch(["slow"])
    ahead.prefetch(["next"])
    assert running.wait(10)
    ahead.cancel()
    assert done == ["slow"]
    leave.set()
    ahead.prefetch(["next"])
    assert [ahead(["next"]), ahead(["slow"])] == ["next", "slow"]
    assert done == ["slow", "next", "slow"]
