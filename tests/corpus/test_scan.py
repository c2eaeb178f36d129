"""A scan against brute force, and against itself with the corpus divided in other ways."""

from __future__ import annotations

import csv
import gzip
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sentencex
import xxhash
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from biassay.corpus import reader as reader_module
from biassay.corpus import scan as scan_module
from biassay.corpus import streams
from biassay.corpus.files import CorpusPart, find_corpus_files, split_files
from biassay.corpus.matcher import StimulusMatcher
from biassay.corpus.reader import PackedDocuments
from biassay.corpus.sampler import ContextSample
from biassay.corpus.scan import PartResult, ScanSettings, scan_part
from biassay.corpus.segmenter import MAX_SENTENCE_CHARACTERS, TextSpan, find_sentence
from biassay.errors import UsageError

pytestmark = pytest.mark.extras

STIMULI = ("she", "he", "love", "African American")
WORDS = [
    *("she", "he", "She", "He", "love", "loves", "African", "American", "it", "was", "naïve", "Dr.", "Smith", "end."),
    *("Stop!", "why?", "—", "–", "and\nthen", "“so”", "she's"),
]


def write(path: Path, texts: list[str]) -> Path:
    path.write_text("".join(json.dumps({"body": text}) + "\n" for text in texts))
    return path


def write_as(path: Path, texts: list[str]) -> None:
    if path.suffix == ".csv":
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([["text"], *([text] for text in texts)])
    elif path.suffix == ".parquet":
        pq.write_table(pa.table({"text": texts}), path, row_group_size=100)
    else:
        write(path, texts)
        if path.suffix == ".gz":
            path.write_bytes(gzip.compress(path.read_bytes()))


def part_of(path: Path, texts: list[str]) -> CorpusPart:
    return CorpusPart(find_corpus_files([write(path, texts)])[0])


def bodies(count: int, seed: int = 0, length: int = 30) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.randrange(length))) for _ in range(count)]


def whole(partials: list[PartResult], k: int) -> list[dict[str, Any]]:
    sample = ContextSample(STIMULI, k)
    for partial in partials:
        sample.add(partial.table)
    rows: list[dict[str, Any]] = sample.to_table().to_pylist()
    return rows


def brute_force(texts: list[str], k: int, seed: int, openings: bool) -> dict[str, list[tuple[int, str, int, int]]]:
    """Every hit has its sentence cut out; then all are sorted."""
    matcher = StimulusMatcher(STIMULI, openings=openings)
    best: dict[str, dict[str, tuple[int, str, int, int]]] = {stimulus: {} for stimulus in STIMULI}
    for text in set(texts):
        data = text.encode()
        matches = matcher.find(PackedDocuments.pack([text], [0]))
        document = xxhash.xxh3_128_digest(data)
        for number, stimulus in enumerate(STIMULI):
            word = xxhash.xxh3_64_intdigest(f"{seed}\0{stimulus}".encode())
            starts = (matches.start[matches.stimulus == number] - 1).tolist()
            for ordinal, at in enumerate(starts):
                key = xxhash.xxh3_64_intdigest(document + ordinal.to_bytes(2, "little"), word)
                sentence, start = sentence_with(text, len(data[:at].decode()))
                first = min(
                    place - start
                    for place in (len(data[:other].decode()) for other in starts)
                    if start <= place < start + len(sentence)
                )
                row = (key, sentence, first, first + len(stimulus))
                best[stimulus][sentence] = min(row, best[stimulus].get(sentence, row))
    return {stimulus: sorted(rows.values())[:k] for stimulus, rows in best.items()}


def sentence_with(text: str, place: int) -> tuple[str, int]:
    at = 0
    for line in text.split("\n"):
        for sentence in sentencex.segment("en", line):
            if at <= place < at + len(sentence):
                return sentence.strip(), at + len(sentence) - len(sentence.lstrip())
            at += len(sentence)
        at += 1
    raise AssertionError(f"no sentence at {place} of {text!r}")


# Without shrinking: an example is a seed, and a smaller seed is not simpler.
@settings(max_examples=60, deadline=None, phases=[Phase.generate])
@given(
    st.integers(0, 10**6),
    st.integers(0, 60),
    st.integers(1, 20),
    st.integers(100, 4000),
    st.integers(100, 3000),
    st.integers(1, 100),
    st.booleans(),
)
def test_a_scan_is_brute_force_however_it_is_divided(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    count: int,
    k: int,
    part_bytes: int,
    group_bytes: int,
    buffered: int,
    openings: bool,
) -> None:
    texts = bodies(count, seed)
    texts += texts[: count // 3]
    path = write(tmp_path_factory.getbasetemp() / "corpus.jsonl", texts)
    asked = ScanSettings(STIMULI, k, seed=seed, openings=openings)
    results: list[PartResult] = []
    sample = ContextSample(STIMULI, k)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams, "BLOCK_BYTES", group_bytes // 3 + 1)
        patch.setattr(scan_module, "_BUFFERED_ROWS", buffered)
        parts = list(split_files(find_corpus_files([path]), part_bytes))
        random.Random(seed).shuffle(parts)
        for part in parts:
            for result in scan_part(part, asked, sample.get_limits(), group_bytes=group_bytes):
                results.append(result)
                sample.add(result.table)
                if seed % 2:
                    sample.to_table()  # lowers the limits
    rows = sample.to_table().to_pylist()
    expected = brute_force(texts, k, seed, openings)
    found = {
        stimulus: [(r["key"], r["text"], r["start"], r["end"]) for r in rows if r["stimulus"] == stimulus]
        for stimulus in STIMULI
    }
    assert found == expected
    assert sum(result.stats.documents for result in results) == len(texts)
    matches = StimulusMatcher(STIMULI, openings=openings).find(PackedDocuments.pack(texts, range(len(texts))))
    counts = np.bincount(matches.stimulus, minlength=len(STIMULI)).tolist()
    assert np.sum([result.found for result in results], axis=0).tolist() == counts


def test_a_line_on_which_the_library_gives_up_is_one_sentence(tmp_path: Path) -> None:
    text = "Plan B\xa0. So she came. Then he left."
    (partial,) = scan_part(part_of(tmp_path / "a.jsonl", [text]), ScanSettings(STIMULI, 5))
    assert {row["text"] for row in partial.table.to_pylist()} == {text}


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz", ".csv", ".parquet"])
def test_resuming_is_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    monkeypatch.setattr(streams, "BLOCK_BYTES", 1000)
    monkeypatch.setattr(reader_module, "_ROWS_PER_CHUNK", 10)
    path = tmp_path / f"corpus{ending}"
    write_as(path, bodies(600))
    part, asked = CorpusPart(find_corpus_files([path])[0]), ScanSettings(STIMULI, 5)
    straight = list(scan_part(part, asked, group_bytes=7000))
    assert len(straight) > 3
    assert [p.group for p in straight] == list(range(len(straight)))
    assert [p.last for p in straight] == [False] * (len(straight) - 1) + [True]
    for done in range(len(straight)):
        resumed = list(scan_part(part, asked, skip=done, group_bytes=7000))
        assert [(p.group, p.bytes, p.stats.documents) for p in resumed] == [
            (p.group, p.bytes, p.stats.documents) for p in straight[done:]
        ]
        assert whole(straight[:done] + resumed, 5) == whole(straight, 5)
    assert list(scan_part(part, asked, skip=len(straight), group_bytes=7000)) == []


def test_every_context_is_as_likely(tmp_path: Path) -> None:
    """2 of 10 documents, 2,000 seeds: each is drawn 400 times, within five standard deviations."""
    part = CorpusPart(
        find_corpus_files([write(tmp_path / "a.jsonl", [f"number {i} is what she likes" for i in range(10)])])[0]
    )
    counts: dict[str, int] = {}
    for seed in range(2000):
        for row in next(scan_part(part, ScanSettings(("she",), 2, seed))).table.to_pylist():
            counts[row["text"]] = counts.get(row["text"], 0) + 1
    assert len(counts) == 10
    assert all(abs(count - 400) < 5 * np.sqrt(2000 * 0.2 * 0.8) for count in counts.values())


def test_long_sentences_are_cut_around_the_hit(tmp_path: Path) -> None:
    text = "é word " * 3000 + "she " + "word " * 3000
    (partial,) = scan_part(part_of(tmp_path / "a.jsonl", [text]), ScanSettings(STIMULI, 5))
    (row,) = partial.table.to_pylist()
    assert row["text"][row["start"] : row["end"]] == "she"
    assert MAX_SENTENCE_CHARACTERS - 20 < len(row["text"]) <= MAX_SENTENCE_CHARACTERS
    assert set(row["text"].split()) == {"é", "word", "she"}


@settings(max_examples=200, deadline=None)
@given(st.text(st.sampled_from("ab .!?é\n\r😀\"'()") | st.characters(codec="utf-8"), max_size=60), st.text(max_size=30))
def test_a_sentence_holds_its_hit(before: str, after: str) -> None:
    document = f"{before} she {after}".encode(errors="replace")
    start = len(f"{before} ".encode())
    span = TextSpan(document, 0, len(document))
    text, begin, end = find_sentence(span, start, start + 3, [], lambda line: sentencex.segment("en", line))
    assert text[begin:end] == "she"
    assert text == text.strip()
    assert text in document.decode()


def test_settings_are_checked() -> None:
    for wrong in ({"k": 0}, {"document": "page"}, {"stimuli": ()}, {"stimuli": ("she", "she")}):
        with pytest.raises(UsageError):
            ScanSettings(**{"stimuli": STIMULI, "k": 1, **wrong})  # type: ignore[arg-type]
