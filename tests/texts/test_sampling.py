"""Sampling against brute force: sort everything, take the k smallest. Order and division must not matter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.texts.rows import Row, rows_table

from biassay.errors import UsageError
from biassay.texts.joined import Joined
from biassay.texts.matching import Hits, Matcher
from biassay.texts.sampling import (
    MOST_IN_A_DOCUMENT,
    NO_LIMIT,
    Sample,
    draw,
    stimulus_keys,
)

pytestmark = pytest.mark.extras

STIMULI = ("she", "he")
MASK = 2**64 - 1
# Few keys, texts and sources, so that there are ties of every kind.
rows = st.builds(
    Row,
    st.integers(0, 12),
    st.sampled_from("STUVWXYZ"),
    st.sampled_from(["a:1", "a:2", "b:1"]),
    st.integers(0, 2),
    st.integers(3, 4),
)
hits = st.lists(st.tuples(st.sampled_from(STIMULI), rows), max_size=40)


def brute_force(found: list[tuple[str, Row]], stimulus: str, k: int) -> list[Row]:
    best: dict[str, Row] = {}
    for row in sorted(row for name, row in found if name == stimulus):
        best.setdefault(row.text, row)
    return sorted(best.values(), key=lambda row: (row.key, row.text))[:k]


def as_rows(table: Any) -> list[tuple[str, Row]]:
    return [
        (row["stimulus"], Row(row["key"], row["text"], row["source"], row["start"], row["end"]))
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


def test_the_limit_is_the_kth_key() -> None:
    found = [("she", Row(key, f"text {key}", "a:1", 0, 3)) for key in (7, 3, 5, 9)]
    sample = sample_of(found, 3)
    sample.to_table()
    assert sample.thresholds().tolist() == [7, int(NO_LIMIT)]


def mixed(x: int) -> int:
    """splitmix64's finaliser in whole numbers."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


documents = st.lists(st.tuples(st.binary(max_size=80), st.lists(st.integers(0, 1), max_size=8)), max_size=5)


@settings(max_examples=200, deadline=None)
@given(documents, st.integers(0, 3), st.lists(st.integers(0, MASK), min_size=2, max_size=2), st.integers(1, 80))
def test_keys_and_limits_are_those_of_the_rule(
    found: list[tuple[bytes, list[int]]], seed: int, limits: list[int], reach: int
) -> None:
    """Against whole numbers and the package xxhash. The n-th hit of a document is placed at its n-th byte."""
    joined = Joined.of([text for text, _ in found])
    numbers = [number for number, (_, hits) in enumerate(found) for _ in hits]
    stimuli = [stimulus for _, hits in found for stimulus in hits]
    starts = [int(joined.starts[number]) + n for number, (_, hits) in enumerate(found) for n in range(len(hits))]
    words = stimulus_keys(STIMULI, seed)
    hits = Hits(*(np.array(column, np.int64) for column in (stimuli, numbers, starts)))
    drawn = draw(hits, joined, words, np.array(limits, np.uint64), reach)
    got = [
        (stimulus, document, start, key, drawn.earlier[first:last].tolist())
        for stimulus, document, start, key, first, last in zip(*(column.tolist() for column in drawn[:-1]), strict=True)
    ]
    wanted = []
    for number, (text, stimuli) in enumerate(found):
        for start, stimulus in enumerate(stimuli):
            before = [n for n in range(start) if stimuli[n] == stimulus]
            key = mixed(int(words[stimulus]) ^ xxhash.xxh64_intdigest(text))
            key = mixed((key + len(before) * 0x9E3779B97F4A7C15) & MASK)
            if key <= limits[stimulus]:
                wanted.append((stimulus, number, start, key, [n for n in before[::-1] if n >= start - reach]))
    assert got == wanted


def test_of_one_document_the_first_thousand_hits_can_be_drawn() -> None:
    count = 3 * MOST_IN_A_DOCUMENT
    joined = Joined.of([b"she " * count, b"she"])
    hits = Matcher(("she",)).find(joined)
    assert len(hits.start) == count + 1
    drawn = draw(hits, joined, stimulus_keys(["she"], 0), np.array([NO_LIMIT]), 10)
    assert drawn.document.tolist() == [0] * MOST_IN_A_DOCUMENT + [1]
    assert drawn.start.tolist() == [4 * number for number in range(MOST_IN_A_DOCUMENT)] + [0]


def test_keys_are_uniform_and_hang_on_everything() -> None:
    """Mean and spread of 30,000 keys are those of uniform numbers, within five standard errors."""
    words = stimulus_keys(["she", "he"], seed=0)
    joined = Joined.of([str(number).encode() for number in range(10_000)])
    nothing = np.zeros(30_000, np.int64)
    # Of every document three hits: the first of one stimulus, the first and the second of the other.
    hits = Hits(np.tile([0, 1, 1], 10_000), np.repeat(np.arange(10_000), 3), nothing)
    keys = draw(hits, joined, words, np.full(2, NO_LIMIT), 0).key
    assert len(np.unique(keys)) == 30_000
    uniform = keys / 2**64
    assert abs(uniform.mean() - 0.5) < 5 * np.sqrt(1 / 12 / 30_000)
    assert abs(uniform.var() - 1 / 12) < 5 * np.sqrt(1 / 180 / 30_000)
    assert not np.array_equal(words, stimulus_keys(["she", "he"], seed=1))


def test_samples_of_other_stimuli_do_not_merge() -> None:
    with pytest.raises(UsageError, match="different stimuli"):
        Sample(["she"], 3).merge(Sample(["he"], 3))
    with pytest.raises(UsageError, match="'it' is not among those"):
        Sample.from_table(["she"], 3, rows_table(["it"], [Row(1, "it", "a:1", 0, 2)])).to_table()
