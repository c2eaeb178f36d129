"""From a corpus to a file of contexts: the same result despite interruptions and failures."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.corpus.rows import Row, rows_table
from tests.damage import damages

from biassay.corpus.contexts import read_contexts
from biassay.corpus.sampler import ContextSample
from biassay.corpus.scan import ScanSettings
from biassay.engines.local import LocalExecutor
from biassay.errors import MeasurementError, RunFolderError
from biassay.runs.contexts import ScanProgress, ScanState
from biassay.runs.contexts import find_contexts as scan_corpus

pytestmark = pytest.mark.extras
find_contexts = functools.partial(scan_corpus, workers=1)  # processes are slow to start


class Breaking:
    """An executor that fails after some results and records its tasks."""

    def __init__(self, after: int | None) -> None:
        self.after, self.parts = after, 0

    def run(self, make: Any, tasks: Sequence[Any], **_: Any) -> Iterator[Any]:
        self.parts = len(tasks)
        for count, result in enumerate(LocalExecutor().run(make, tasks, workers=1)):
            if count == self.after:
                raise KeyboardInterrupt
            yield result


def test_a_killed_scan_goes_on(corpus: Path, test_file: Path, tmp_path: Path) -> None:
    whole = find_contexts(corpus, tmp_path / "whole.parquet", str(test_file), per_stimulus=9)
    out = tmp_path / "c.parquet"
    script = (
        "import sys, time; from biassay.runs import contexts as c\n"
        "c._SECONDS_BEFORE_FIRST_SAVE = c._SECONDS_BETWEEN_SAVES = 0.0\n"
        "add = c.ContextSample.add\n"
        "c.ContextSample.add = lambda self, table: (time.sleep(0.1), add(self, table))[1]\n"
        f"c.find_contexts({str(corpus)!r}, {str(out)!r}, {str(test_file)!r}, per_stimulus=9, workers=1)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script]) as process:
        deadline = time.monotonic() + 60.0
        while not (tmp_path / "c.parquet.partial" / "state.json").exists():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGKILL)
    assert not out.exists()
    rest = Breaking(None)
    found = find_contexts(corpus, out, str(test_file), per_stimulus=9, engine=rest)  # type: ignore[arg-type]
    assert 0 < rest.parts < 12
    assert found.contexts.digest == whole.contexts.digest
    assert found.progress.found == whole.progress.found


def test_disk_full_while_saving_keeps_the_last_state(
    corpus: Path, test_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "c.parquet"
    with pytest.raises(KeyboardInterrupt):
        find_contexts(corpus, out, str(test_file), engine=Breaking(3))  # type: ignore[arg-type]

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device", str(out))

    monkeypatch.setattr("biassay.runs.contexts.write_contexts", full)
    with pytest.raises(OSError, match="No space left"):
        find_contexts(corpus, out, str(test_file))
    monkeypatch.undo()
    rest = Breaking(None)
    find_contexts(corpus, out, str(test_file), engine=rest)  # type: ignore[arg-type]
    assert rest.parts == 9


def test_a_damaged_file_is_named_and_the_rest_goes_on(corpus: Path, test_file: Path, tmp_path: Path) -> None:
    import gzip

    whole = gzip.compress((corpus / "03.jsonl").read_bytes())
    (corpus / "03.jsonl").unlink()
    (corpus / "03.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    found = find_contexts(corpus, tmp_path / "c.parquet", str(test_file))
    assert list(found.progress.damaged) == ["03.jsonl.gz"]
    assert 11 * 120 < found.progress.documents < 12 * 120
    assert read_contexts(tmp_path / "c.parquet").metadata["corpus"]["damaged"] == found.progress.damaged


def test_a_damaged_state_is_refused_or_goes_on_as_it_was(tmp_path: Path) -> None:
    settings = ScanSettings(("she", "he"), 5)
    rows = rows_table(["she"], [Row(7, "She left.", "a:0", 0, 3)])
    tally = ScanProgress(done={0: [0, 2]}, finished=[1], found=[1, 0], documents=3, bytes=40)
    state = ScanState(tmp_path / "c.parquet", "fingerprint")
    state.save(ContextSample.from_table(settings.stimuli, settings.k, rows), tally)
    path = tmp_path / "c.parquet.partial" / "state.json"
    for content in damages(path.read_bytes(), 200):
        path.write_bytes(content)
        with suppress(RunFolderError):
            assert state.load(settings)[1] == tally
    for content in (b"[]", b"{}", b"[" * 100_000, b"9" * 5000):
        path.write_bytes(content)
        with pytest.raises(RunFolderError, match="delete the folder"):
            state.load(settings)


def test_a_corpus_of_which_nothing_can_be_read_is_not_said_to_be_in_another_language(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"comment": "Thus she spoke."}\n')
    with pytest.raises(MeasurementError, match=r"a\.jsonl, byte 0: no field body") as caught:
        find_contexts(tmp_path, tmp_path / "c.parquet", (), words=("she",))
    assert "language" not in str(caught.value)
