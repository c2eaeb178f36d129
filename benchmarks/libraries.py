"""What `biassay.find_contexts` would cost with libraries in the place of our own code.

pip install msgspec orjson pysimdjson ahocorasick-rs    (in an environment of its own)
python benchmarks/libraries.py [megabytes]

Times are those of one core, each as a multiple of ours in the same round; rounds alternate. Libraries are let off
lightly: no bad line, no document in another Unicode form, and of the rules for whole words only those for ASCII.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
import unicodedata
from collections.abc import Callable
from functools import partial
from pathlib import Path
from unittest.mock import patch

import ahocorasick_rs
import msgspec
import numpy as np
import orjson
import pyarrow as pa
import pyarrow.json
import simdjson

sys.path.insert(0, str(Path(__file__).parent))
from biassay.texts import documents, matching
from biassay.texts.joined import Joined
from scan import scan_file, stimuli, write_corpus

ROUNDS = 5
PARTS_OF_WORDS = np.array([c >= 128 or chr(c).isalnum() or c in b"_-" for c in range(256)])


class Row(msgspec.Struct):
    body: str


def compare(what: str, ways: dict[str, Callable[[], object]]) -> None:
    """Print the time of each way as a multiple of the first: the median of all rounds, the least and the most."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(1 + ROUNDS):  # the first is for imports and tables
        for name, way in ways.items():
            began = time.process_time()
            way()
            seconds[name].append(time.process_time() - began)
    first = next(iter(seconds.values()))
    print(what)
    for name, taken in seconds.items():
        ratios = sorted(one / ours for one, ours in list(zip(taken, first, strict=True))[1:])
        print(f"  {name:32} {statistics.median(ratios):5.2f}x ({ratios[0]:.2f} to {ratios[-1]:.2f})", flush=True)


def by_line(get: Callable[[bytes], str]) -> Callable[[bytes], list[str]]:
    return lambda block: [get(line) for line in block.splitlines()]


def by_arrow(block: bytes) -> list[str]:
    reading = pa.json.ReadOptions(use_threads=False, block_size=len(block) + 1)
    schema = pa.schema([("body", pa.string())])
    parsing = pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    return list(pa.json.read_json(pa.BufferReader(block), reading, parsing)["body"].to_pylist())


def reads(texts_of: Callable[[bytes], list[str]]) -> Callable[..., documents.Documents]:
    """What stands in for the method that reads a block."""

    def read(lines: documents._Lines, _: object) -> documents.Documents:
        data = lines.block.data
        texts = texts_of(data)
        assert unicodedata.is_normalized("NFC", "\n".join(texts))
        starts = np.flatnonzero(np.frombuffer(b"\n" + data[:-1], np.uint8) == ord("\n"))
        return documents.Documents.of([text.encode() for text in texts], (lines.block.offset + starts).tolist())

    return read


def rust_hits(automaton: ahocorasick_rs.BytesAhoCorasick, joined: Joined) -> matching.Hits:
    found = np.array(automaton.find_matches_as_indexes(joined.data, overlapping=True), np.int64).reshape(-1, 3)
    whole = ~PARTS_OF_WORDS[joined.data[found[:, 1] - 1]] & ~PARTS_OF_WORDS[joined.data[found[:, 2]]]
    stimulus, start, _ = np.ascontiguousarray(found[whole].T)
    return matching.Hits(stimulus, np.searchsorted(joined.starts, start, "right") - 1, start)


PARSER, ROW = simdjson.Parser(), msgspec.json.Decoder(Row)
READERS = {
    "json": by_line(lambda line: json.loads(line)["body"]),
    "orjson": by_line(lambda line: orjson.loads(line)["body"]),
    "msgspec": by_line(lambda line: ROW.decode(line).body),
    "pysimdjson": by_line(lambda line: PARSER.parse(line)["body"]),
    "pyarrow.json": by_arrow,
}


def patched(
    work: Callable[[], object],
    reader: Callable[[bytes], list[str]] | None = None,
    finder: Callable[..., matching.Hits] | None = None,
) -> Callable[[], object]:
    """The same work with another reader or finder."""

    def run() -> object:
        read = reads(reader) if reader else documents._Lines._skimmed
        with (
            patch.object(documents._Lines, "_skimmed", read),
            patch.object(matching.Matcher, "find", finder or matching.Matcher.find),
        ):
            return work()

    return run


def compare_scans(path: Path, words: tuple[str, ...], rust: ahocorasick_rs.BytesAhoCorasick) -> None:
    for k in (1, 100, 1_000):
        scan = partial(scan_file, path, words, k)
        ways = {
            "ours": scan,
            **{name: patched(scan, reader=reader) for name, reader in READERS.items()},
            "ahocorasick_rs": patched(scan, finder=lambda _, joined: rust_hits(rust, joined)),
        }
        compare(f"the whole scan, at most {k} contexts", ways)


def main() -> None:
    words, size = stimuli(), int(sys.argv[1]) * 1_000_000 if len(sys.argv) > 1 else 40_000_000
    rust = ahocorasick_rs.BytesAhoCorasick([word.encode() for word in words])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "corpus.jsonl"
        write_corpus(path, size)
        compare_scans(path, words, rust)


if __name__ == "__main__":
    main()
