"""The state of an unfinished scan of a corpus, in a folder beside its output."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from biassay.errors import RunFolderError, UsageError
from biassay.files import check_digest, json_with_digest, read_json, write_atomically
from biassay.texts.contexts import read_contexts, write_contexts
from biassay.texts.corpus import CorpusFile
from biassay.texts.sampling import Sample
from biassay.texts.scanning import Partial, ScanSettings

__all__ = ["ScanState", "Tally", "fingerprint_of"]

_STATE, _SAMPLE = "state.json", "sample.parquet"
_SECONDS_BEFORE_FIRST_SAVE, _SECONDS_BETWEEN_SAVES = 3.0, 15.0
_SHOWN = 5


@dataclass
class Tally:
    """What was read so far. ``done`` holds the groups of each part that are in the sample."""

    done: dict[int, list[int]] = field(default_factory=dict)
    finished: list[int] = field(default_factory=list)
    found: list[int] = field(default_factory=list)
    documents: int = 0
    bytes: int = 0
    bad: int = 0
    undecodable: int = 0
    examples: list[str] = field(default_factory=list)
    damaged: dict[str, str] = field(default_factory=dict)

    def has(self, number: int, group: int) -> bool:
        return number in self.finished or group in self.done.get(number, ())

    def take(self, number: int, partial: Partial) -> None:
        self.done.setdefault(number, []).append(partial.group)
        if partial.last:
            self.finished.append(number)
            del self.done[number]
        total = np.array(self.found or np.zeros(len(partial.found), dtype=np.int64)) + partial.found
        self.found = [int(count) for count in total]
        self.documents += partial.documents
        self.bytes += partial.bytes
        self.bad += partial.bad
        self.undecodable += partial.undecodable
        self.examples = (self.examples + list(partial.bad_examples))[:_SHOWN]
        if partial.damaged is not None:
            self.damaged[partial.part.file.name] = partial.damaged


def fingerprint_of(settings: ScanSettings, files: Sequence[CorpusFile]) -> str:
    """What an interrupted scan must share with the one that continues it."""
    content = [asdict(settings), [[file.name, file.size, file.mtime] for file in files]]
    return hashlib.blake2b(json.dumps(content).encode(), digest_size=16).hexdigest()


class ScanState:
    """The folder beside the output in which an unfinished scan is kept."""

    def __init__(self, out: Path, fingerprint: str) -> None:
        self._folder = self.folder(out)
        self._fingerprint = fingerprint
        self._next = time.monotonic() + _SECONDS_BEFORE_FIRST_SAVE

    @staticmethod
    def folder(out: Path) -> Path:
        return out.with_name(f"{out.name}.partial")

    def load(self, settings: ScanSettings) -> tuple[Sample, Tally]:
        if not (self._folder / _STATE).exists():
            return Sample(settings.stimuli, settings.k), Tally()
        try:
            return self._loaded(read_json(self._folder / _STATE), settings)
        except UsageError as error:
            raise RunFolderError(f"{error}; or remove the folder {self._folder}, to scan from the beginning") from error

    def _loaded(self, kept: Any, settings: ScanSettings) -> tuple[Sample, Tally]:
        if not isinstance(kept, dict) or not check_digest(kept):
            raise UsageError(f"{self._folder / _STATE} is damaged, or of another version; restore it")
        if kept.pop("fingerprint") != self._fingerprint:
            raise UsageError(
                f"{self._folder} holds an interrupted scan of other files or with other settings; repeat that command"
            )
        saved = read_contexts(self._folder / kept.pop("sample"))
        kept["done"] = {int(number): groups for number, groups in kept["done"].items()}
        return Sample.from_table(settings.stimuli, settings.k, saved.table), Tally(**kept)

    def save_now_and_then(self, sample: Sample, tally: Tally) -> None:
        """Save, but spend no more than a twentieth of the time with it."""
        began = time.monotonic()
        if began >= self._next:
            self.save(sample, tally)
            self._next = time.monotonic() + max(_SECONDS_BETWEEN_SAVES, 20.0 * (time.monotonic() - began))

    def save(self, sample: Sample, tally: Tally) -> None:
        """First a new file of contexts, then the state that names it, then the old file goes."""
        self._folder.mkdir(exist_ok=True)
        name = f"{tally.documents}-{tally.bytes}-{_SAMPLE}"
        write_contexts(self._folder / name, sample, {})
        state = {"fingerprint": self._fingerprint, "sample": name, **asdict(tally)}
        write_atomically(self._folder / _STATE, json_with_digest(state).encode())
        for old in self._folder.glob(f"*-{_SAMPLE}"):
            if old.name != name:
                old.unlink()

    def remove(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
