"""One large file in parts: the contexts of all parts equal those of the whole file."""

from __future__ import annotations

import functools
import gzip
import json
import random
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import biassay
from biassay.corpus.files import CorpusPart, find_corpus_files, split_files
from biassay.corpus.sampler import ContextSample
from biassay.corpus.scan import ScanSettings, scan_part
from biassay.runs import contexts as runs_corpus

pytestmark = pytest.mark.extras

STIMULI = ("she", "he", "love")
WORDS = [*STIMULI, "She", "it", "was", "naïve", "Dr.", "Smith", "end.", "Stop!", "why?", "\n", "\n\n", "then\n"]


def contexts_of(parts: tuple[CorpusPart, ...], k: int, document: str) -> tuple[list[dict[str, object]], int]:
    sample, count = ContextSample(STIMULI, k), 0
    for part in parts:
        for result in scan_part(part, ScanSettings(STIMULI, k, document=document), sample.get_limits()):
            assert result.damage is None
            sample.add(result.table)
            count += result.stats.documents
    return sample.to_table().to_pylist(), count


@settings(max_examples=40, deadline=None, phases=[Phase.generate])
@given(
    st.integers(0, 10**6),
    st.integers(0, 80),
    st.sampled_from([".txt", ".jsonl"]),
    st.sampled_from(["line", "paragraph"]),
    st.integers(1, 3000),
)
def test_parts_are_the_whole(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    count: int,
    ending: str,
    document: str,
    part_bytes: int,
) -> None:
    rng = random.Random(seed)
    texts = [" ".join(rng.choices(WORDS, k=rng.randrange(30))) for _ in range(count)]
    data = "\n".join(texts if ending == ".txt" else [json.dumps({"body": text}) for text in texts]).encode()
    path = tmp_path_factory.getbasetemp() / f"corpus{ending}"
    path.write_bytes(data)
    (file,) = find_corpus_files([path])
    assert contexts_of(split_files([file], part_bytes), 7, document) == contexts_of((CorpusPart(file),), 7, document)


def test_a_compressed_file_is_one_part(tmp_path: Path) -> None:
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"she left\n" * 1000))
    (file,) = find_corpus_files([tmp_path / "a.txt.gz"])
    assert split_files([file], 100) == (CorpusPart(file),)


def test_two_processes_on_one_file_find_what_one_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(3)
    texts = [" ".join(rng.choices(WORDS, k=30)) for _ in range(3000)]
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps({"text": t}) + "\n" for t in texts))
    found = []
    for part_bytes, workers in ((1 << 30, 1), (50_000, 1), (50_000, 2)):
        monkeypatch.setattr(runs_corpus, "split_files", functools.partial(split_files, part_bytes=part_bytes))
        out = tmp_path / f"{part_bytes}-{workers}.parquet"
        biassay.find_contexts(path, out, (), words=STIMULI, per_stimulus=40, workers=workers)
        found.append(out.read_bytes())
    assert found[0] == found[1] == found[2]
