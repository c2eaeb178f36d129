"""Work ahead of a model: done once, in the order asked for, whatever was announced."""

from __future__ import annotations

import gc
import threading
from collections.abc import Sequence

import numpy as np
import pytest

from biassay.cache.handlers import iter_batches
from biassay.models.transformers.batches import BatchPrefetcher, pause_gc
from biassay.models.transformers.forward_plan import ForwardPlan, TokenQuery
from biassay.models.transformers.hidden_states import _group_by_length
from biassay.models.transformers.tokenizer import TokenizedTexts


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


def test_an_error_comes_with_the_batch_that_made_it() -> None:
    ahead = BatchPrefetcher(lambda batch: 1 // len(batch))
    ahead.prefetch([])
    assert ahead(["a"]) == 1
    with pytest.raises(ZeroDivisionError):
        ahead([])


def test_every_batch_but_the_first_is_announced_before_the_one_ahead_of_it_is_asked() -> None:
    done: list[tuple[str, object]] = []

    class Asker:
        def prepare(self, requests: Sequence[int]) -> None:
            done.append(("prepare", list(requests)))

        def batches(self, requests: Sequence[int]) -> list[list[int]]:  # noqa: ARG002
            raise AssertionError

        def prefetch(self, requests: Sequence[int]) -> None:
            done.append(("prefetch", list(requests)))

        def fetch(self, requests: Sequence[int]) -> int:
            done.append(("fetch", list(requests)))
            return sum(requests)

    assert list(iter_batches(Asker(), [[1, 2], [3], [4], [5]])) == [3, 3, 4, 5]
    assert done[0] == ("prepare", [1, 2, 3, 4, 5])
    assert done[1:4] == [("prefetch", [3]), ("prefetch", [4]), ("fetch", [1, 2])]
    assert done[4:] == [("prefetch", [5]), ("fetch", [3]), ("fetch", [4]), ("fetch", [5])]


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
            ids, place = batch.sequences[batch.rows[at]], int(batch.places[at])
            asked = questions[number]
            assert ids[: len(asked.ids)] == asked.ids
            answered[number] = TokenQuery(asked.ids, place, target)
    assert [answered[number] for number in range(len(questions))] == questions
    everyone = np.arange(len(questions))
    assert passes.count_first_reads(everyone, len(questions)).sum() == len(passes.sequences)


def test_the_collector_rests_until_the_last_of_several_threads_is_done() -> None:
    assert gc.isenabled()
    inside, leave = threading.Event(), threading.Event()

    def elsewhere() -> None:
        with pause_gc():
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=elsewhere)
    with pause_gc():
        thread.start()
        assert inside.wait(10)
    assert not gc.isenabled()
    leave.set()
    thread.join()
    assert gc.isenabled()
    gc.disable()
    try:
        with pause_gc():
            pass
        assert not gc.isenabled()  # as it was before
    finally:
        gc.enable()


@pytest.mark.parametrize("most", [1, 7, 24, 1000])
def test_texts_that_go_together_are_as_many_as_padded_tokens_allow(most: int) -> None:
    rng = np.random.default_rng(most)
    lengths = rng.integers(1, 12, 60)
    order = np.argsort(lengths, kind="stable")
    tokenised = TokenizedTexts(
        np.zeros(lengths.sum(), dtype=np.int64), np.zeros(lengths.sum(), dtype=bool), lengths, lengths, [], [], 0
    )
    pieces = [piece.tolist() for piece in _group_by_length(order, tokenised, most)]
    assert [row for piece in pieces for row in piece] == order.tolist()
    for piece, following in zip(pieces, [*pieces[1:], []], strict=True):
        assert len(piece) == 1 or len(piece) * lengths[piece].max() <= most
        assert not following or (len(piece) + 1) * lengths[following[0]] > most


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
