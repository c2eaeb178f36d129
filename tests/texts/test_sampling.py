"""Sampling against brute force: sort everything, take the k smallest. Order and division must not matter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from biassay.errors import UsageError
from biassay.texts.sampling import NO_LIMIT, Pool, Row, Sample, hit_keys, rows_table, stimulus_keys

pytestmark = pytest.mark.extras

STIMULI = ("she", "he")
# Few keys, texts and sources, so that there are ties of every kind.
rows = st.builds(
    Row,
    st.integers(0, 12),
    st.sampled_from(["a:1", "a:2", "b:1"]),
    st.integers(0, 2),
    st.integers(3, 4),
    st.sampled_from("STUVWXYZ"),
)
hits = st.lists(st.tuples(st.sampled_from(STIMULI), rows), max_size=40)


def brute_force(found: list[tuple[str, Row]], stimulus: str, k: int) -> list[Row]:
    best: dict[str, Row] = {}
    for row in sorted(row for name, row in found if name == stimulus):
        best.setdefault(row.text, row)
    return sorted(best.values(), key=lambda row: (row.key, row.text))[:k]


def as_rows(table: Any) -> list[tuple[str, Row]]:
    return [
        (row["stimulus"], Row(row["key"], row["source"], row["start"], row["end"], row["text"]))
        for row in table.to_pylist()
    ]


def expected(found: list[tuple[str, Row]], k: int) -> list[tuple[str, Row]]:
    return [(stimulus, row) for stimulus in STIMULI for row in brute_force(found, stimulus, k)]


def sample_of(found: list[tuple[str, Row]], k: int) -> Sample:
    return Sample.from_table(STIMULI, k, rows_table([name for name, _ in found], [row for _, row in found]))


@settings(max_examples=300, deadline=None)
@given(hits, st.integers(1, 6))
def test_sample_is_the_k_smallest(found: list[tuple[str, Row]], k: int) -> None:
    assert as_rows(sample_of(found, k).to_table()) == expected(found, k)


@settings(max_examples=300, deadline=None)
@given(st.lists(hits, max_size=4), st.integers(1, 6), st.randoms(use_true_random=False))
def test_merging_in_any_order_is_the_sample_of_the_whole(
    parts: list[list[tuple[str, Row]]], k: int, random: Any
) -> None:
    whole = expected([hit for part in parts for hit in part], k)
    random.shuffle(parts)
    merged = Sample(STIMULI, k)
    for part in parts:
        if random.random() < 0.5:  # as another worker would, told of the limits so far
            merged.to_table()
            limits = dict(zip(STIMULI, merged.thresholds().tolist(), strict=True))
            part = [(name, row) for name, row in part if row.key <= limits[name]]
        merged.merge(sample_of(part, k))
    assert as_rows(merged.to_table()) == whole


@settings(max_examples=300, deadline=None)
@given(st.lists(st.lists(rows, max_size=20), max_size=4), st.integers(1, 6))
def test_streaming_with_a_falling_limit_is_brute_force(blocks: list[list[Row]], k: int) -> None:
    pool = Pool(k, int(NO_LIMIT))
    for block in blocks:
        block = sorted((row for row in block if row.key <= pool.limit), key=lambda row: row.key)
        keys = np.array([row.key for row in block], np.uint64)
        nothing = np.zeros(len(block), np.int64)
        pool.add(keys, nothing, np.arange(len(block)), lambda _key, _block, index, block=block: block[index])
    whole = [("she", row) for block in blocks for row in block]
    assert pool.rows == brute_force(whole, "she", k)
    assert pool.limit == (pool.rows[-1].key if len(pool.rows) == k else int(NO_LIMIT))


def test_few_rows_are_made_once_the_sample_is_full() -> None:
    """10 of 100,000 hits are kept; about 10 * (1 + ln(100)) rows are made in blocks of 1,000."""
    rng = np.random.default_rng(0)
    pool, made = Pool(10, int(NO_LIMIT)), 0

    def make(key: int, _block: int, _index: int) -> Row:
        nonlocal made
        made += 1
        return Row(key, "a:1", 0, 3, str(key))

    for _ in range(100):
        keys = np.sort(rng.integers(2**63, size=1000, dtype=np.uint64))
        pool.add(keys, np.zeros(1000, np.int64), np.arange(1000), make)
    assert made < 150


def test_the_limit_is_the_kth_key() -> None:
    found = [("she", Row(key, "a:1", 0, 3, f"text {key}")) for key in (7, 3, 5, 9)]
    sample = sample_of(found, 3)
    sample.to_table()
    assert sample.thresholds().tolist() == [7, int(NO_LIMIT)]


def test_keys_are_uniform_and_hang_on_everything() -> None:
    """Mean and spread of 30,000 keys are those of uniform numbers, within five standard errors."""
    words = stimulus_keys(["she", "he"], seed=0)
    documents = np.arange(10_000, dtype=np.uint64)
    keys = np.concatenate(
        [
            hit_keys(np.full(10_000, word), documents, np.full(10_000, ordinal))
            for word, ordinal in [(words[0], 0), (words[1], 0), (words[0], 1)]
        ]
    )
    assert len(np.unique(keys)) == 30_000
    uniform = keys / 2**64
    assert abs(uniform.mean() - 0.5) < 5 * np.sqrt(1 / 12 / 30_000)
    assert abs(uniform.var() - 1 / 12) < 5 * np.sqrt(1 / 180 / 30_000)
    assert not np.array_equal(words, stimulus_keys(["she", "he"], seed=1))


def test_samples_of_other_stimuli_do_not_merge() -> None:
    with pytest.raises(UsageError, match="different stimuli"):
        Sample(["she"], 3).merge(Sample(["he"], 3))
    with pytest.raises(UsageError, match="'it' is not among those"):
        Sample.from_table(["she"], 3, rows_table(["it"], [Row(1, "a:1", 0, 2, "it")])).to_table()
