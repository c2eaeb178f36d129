"""Sampling against brute force: sort everything, take the k smallest. Order and division must not matter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.corpus.rows import Row, rows_table

from biassay.corpus.matcher import Matches, StimulusMatcher
from biassay.corpus.reader import PackedDocuments
from biassay.corpus.sampler import MAX_MATCHES_PER_DOCUMENT, NO_LIMIT, ContextSample, draw_matches, make_stimulus_seeds
from biassay.errors import UsageError

pytestmark = pytest.mark.extras

STIMULI = ("she", "he")
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


def sample_of(found: list[tuple[str, Row]], k: int) -> ContextSample:
    return ContextSample.from_table(STIMULI, k, rows_table([name for name, _ in found], [row for _, row in found]))


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
    merged = ContextSample(STIMULI, k)
    for part in parts:
        if random.random() < 0.5:  # as another worker would, told of the limits so far
            merged.to_table()
            limits = dict(zip(STIMULI, merged.get_limits().tolist(), strict=True))
            part = [(name, row) for name, row in part if row.key <= limits[name]]
        merged.add(sample_of(part, k).to_table())
    assert as_rows(merged.to_table()) == whole


documents = st.lists(
    st.tuples(st.text("ab\0é", max_size=8), st.lists(st.integers(0, 1), max_size=8)),
    max_size=5,
    unique_by=lambda d: d[0],
)


def matches_in(found: list[tuple[str, list[int]]]) -> tuple[PackedDocuments, Matches, list[tuple[int, int, int]]]:
    """Documents with some matches, all at their first byte; and (document, stimulus, ordinal) of each match."""
    packed = PackedDocuments.pack([text for text, _ in found], range(len(found)))
    rows = [
        (number, stimulus, ordinal)
        for number, (_, stimuli) in enumerate(found)
        for stimulus in sorted(set(stimuli))
        for ordinal in range(stimuli.count(stimulus))
    ]
    document, stimulus, _ = np.array(rows, np.int64).reshape(-1, 3).T
    return packed, Matches(stimulus, document, packed.starts[document]), rows


@settings(max_examples=200, deadline=None)
@given(documents, st.integers(0, 3), st.lists(st.integers(0, 2**64 - 1), min_size=2, max_size=2))
def test_keys_depend_on_seed_stimulus_document_and_ordinal_only(
    found: list[tuple[str, list[int]]], seed: int, limits: list[int]
) -> None:
    packed, matches, rows = matches_in(found)
    seeds = make_stimulus_seeds(STIMULI, seed)
    drawn = draw_matches(matches, packed, seeds, np.array(limits, np.uint64))
    expected = []
    for index, (number, stimulus, ordinal) in enumerate(rows):
        document = xxhash.xxh3_128_digest(found[number][0].encode())
        word = xxhash.xxh3_64_intdigest(f"{seed}\0{STIMULI[stimulus]}".encode())
        key = xxhash.xxh3_64_intdigest(document + ordinal.to_bytes(2, "little"), word)
        if key <= limits[stimulus]:
            expected.append((index, ordinal, key))
    assert list(zip(*(column.tolist() for column in drawn), strict=True)) == expected


def test_of_one_document_the_first_thousand_matches_can_be_drawn() -> None:
    count = 3 * MAX_MATCHES_PER_DOCUMENT
    packed = PackedDocuments.pack(["she " * count, "she"], [0, 1])
    matches = StimulusMatcher(("she",)).find(packed)
    assert len(matches.start) == count + 1
    drawn = draw_matches(matches, packed, make_stimulus_seeds(["she"], 0), np.array([NO_LIMIT]))
    assert drawn.indices.tolist() == [*range(MAX_MATCHES_PER_DOCUMENT), count]
    assert drawn.ordinal.tolist() == [*range(MAX_MATCHES_PER_DOCUMENT), 0]


def test_keys_are_uniform() -> None:
    """Mean and variance of 30,000 keys are those of uniform numbers, within five standard errors."""
    packed, matches, _ = matches_in([(str(number), [0, 1, 1]) for number in range(10_000)])
    keys = draw_matches(matches, packed, make_stimulus_seeds(STIMULI, 0), np.full(2, NO_LIMIT)).key
    assert len(np.unique(keys)) == 30_000
    uniform = keys / 2**64
    assert abs(uniform.mean() - 0.5) < 5 * np.sqrt(1 / 12 / 30_000)
    assert abs(uniform.var() - 1 / 12) < 5 * np.sqrt(1 / 180 / 30_000)


def test_a_sample_of_other_stimuli_is_an_error() -> None:
    with pytest.raises(UsageError, match="for other stimuli: it has 'it'"):
        ContextSample.from_table(["she"], 3, rows_table(["it"], [Row(1, "it", "a:1", 0, 2)])).to_table()
