"""`find_contexts`: scan a corpus in parallel for the contexts of stimuli.

The state of an interrupted scan is saved in a folder beside the output; the same command resumes it. The state lists
the scanned groups of every part, so that nothing is counted twice and the sample does not depend on the order of work.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from biassay.corpus.contexts import Contexts, read_contexts, write_contexts
from biassay.corpus.files import PART_BYTES, CorpusFile, CorpusPart, find_corpus_files, split_files
from biassay.corpus.sampler import ContextSample
from biassay.corpus.scan import PartResult, ScannerFactory, ScanSettings, ScanTask
from biassay.datasets.catalogue import select_tests
from biassay.datasets.schema import ROLES, Test
from biassay.engines.base import Executor
from biassay.engines.local import LocalExecutor
from biassay.errors import MeasurementError, RunFolderError, UsageError
from biassay.io import check_digest, dump_json_with_digest, read_json, write_atomically
from biassay.runs.progress import Listener, PathLike, default_listener
from biassay.studies.associations.measure import check_word_tests

_STATE, _SAMPLE = "state.json", "sample.parquet"
_SECONDS_BEFORE_FIRST_SAVE, _SECONDS_BETWEEN_SAVES = 3.0, 15.0
_MAX_EXAMPLES = 5


@dataclass
class ScanProgress:
    """Progress of a scan and counts of what it read.

    Attributes
    ----------
    done : dict from int to list of int
        Groups of each unfinished part that are in the sample.
    finished : list of int
        Parts that are in the sample.
    found : list of int
        Number of matches per stimulus.
    documents, bytes : int
        Amount read.
    bad, undecodable : int
        Documents that cannot be read.
    examples : list of str
        Some of these documents, with the reasons.
    damaged : dict from str to str
        Damaged files, with the reasons.
    """

    done: dict[int, list[int]] = field(default_factory=dict)
    finished: list[int] = field(default_factory=list)
    found: list[int] = field(default_factory=list)
    documents: int = 0
    bytes: int = 0
    bad: int = 0
    undecodable: int = 0
    examples: list[str] = field(default_factory=list)
    damaged: dict[str, str] = field(default_factory=dict)

    def contains(self, number: int, group: int) -> bool:
        """Return whether a group of a part is in the sample."""
        return number in self.finished or group in self.done.get(number, ())

    def add(self, number: int, result: PartResult) -> None:
        """Add the counts of one group of a part."""
        self.done.setdefault(number, []).append(result.group)
        if result.last:
            self.finished.append(number)
            del self.done[number]
        total = np.array(self.found or np.zeros(len(result.found), dtype=np.int64)) + result.found
        self.found = [int(count) for count in total]
        self.documents += result.stats.documents
        self.bytes += result.bytes
        self.bad += result.stats.bad
        self.undecodable += result.stats.undecodable
        self.examples = (self.examples + result.stats.examples)[:_MAX_EXAMPLES]
        if result.damage is not None:
            self.damaged[result.part.file.name] = result.damage


def make_fingerprint(settings: ScanSettings, files: Sequence[CorpusFile]) -> str:
    """Return a digest of the settings and files, which a resumed scan must share."""
    content = [asdict(settings), [[file.name, file.size, file.mtime] for file in files]]
    return hashlib.blake2b(json.dumps(content).encode(), digest_size=16).hexdigest()


class ScanState:
    """State of an unfinished scan, saved in a folder beside the output."""

    def __init__(self, out: Path, fingerprint: str) -> None:
        self._folder = self.folder(out)
        self._fingerprint = fingerprint
        self._next = time.monotonic() + _SECONDS_BEFORE_FIRST_SAVE

    @staticmethod
    def folder(out: Path) -> Path:
        """Return the folder for the state of a scan."""
        return out.with_name(f"{out.name}.partial")

    def load(self, settings: ScanSettings) -> tuple[ContextSample, ScanProgress]:
        """Load the sample and progress of an interrupted scan; both are empty if there is none."""
        if not (self._folder / _STATE).exists():
            return ContextSample(settings.stimuli, settings.k), ScanProgress()
        try:
            return self._parse(read_json(self._folder / _STATE), settings)
        except UsageError as error:
            raise RunFolderError(f"{error}; or delete the folder {self._folder} to start again") from error

    def _parse(self, state: Any, settings: ScanSettings) -> tuple[ContextSample, ScanProgress]:
        if not isinstance(state, dict) or not check_digest(state):
            raise UsageError(f"{self._folder / _STATE} is damaged or of another version; restore it")
        if state.pop("fingerprint") != self._fingerprint:
            raise UsageError(
                f"{self._folder} holds an interrupted scan of other files or with other settings; repeat its command"
            )
        saved = read_contexts(self._folder / state.pop("sample"))
        state["done"] = {int(number): groups for number, groups in state["done"].items()}
        return ContextSample.from_table(settings.stimuli, settings.k, saved.table), ScanProgress(**state)

    def save_periodically(self, sample: ContextSample, progress: ScanProgress) -> None:
        """Save, but spend at most a twentieth of the time on it."""
        began = time.monotonic()
        if began >= self._next:
            self.save(sample, progress)
            self._next = time.monotonic() + max(_SECONDS_BETWEEN_SAVES, 20.0 * (time.monotonic() - began))

    def save(self, sample: ContextSample, progress: ScanProgress) -> None:
        """Write the sample, then the state that names it, then delete the old sample."""
        self._folder.mkdir(exist_ok=True)
        name = f"{progress.documents}-{progress.bytes}-{_SAMPLE}"
        write_contexts(self._folder / name, sample, {})
        state = {"fingerprint": self._fingerprint, "sample": name, **asdict(progress)}
        write_atomically(self._folder / _STATE, dump_json_with_digest(state).encode())
        for old in self._folder.glob(f"*-{_SAMPLE}"):
            if old.name != name:
                old.unlink()

    def remove(self) -> None:
        """Delete the state."""
        shutil.rmtree(self._folder, ignore_errors=True)


DEFAULT_TESTS = ("C?", "C10", "I?")
_MIN_BAD_DOCUMENTS = 100
_SPLIT_HINT = "; for parallel reading, split it"


class _MisreadError(MeasurementError):
    """Too many documents cannot be read."""


@dataclass(frozen=True, eq=False)
class Scan:
    """Result of a scan: the contexts, the tests they are for, and counts of what was read."""

    contexts: Contexts
    tests: tuple[Test, ...]
    progress: ScanProgress


@dataclass(frozen=True)
class _ScanTasks(Sequence[ScanTask]):
    """Parts to scan. A task is made when a worker takes it, with the sampling limits at that time."""

    parts: tuple[tuple[int, CorpusPart, int], ...]
    sample: ContextSample

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, index: int) -> ScanTask:  # type: ignore[override]
        return ScanTask(*self.parts[index], self.sample.get_limits())


def find_contexts(
    corpus: PathLike | Sequence[PathLike],
    out: PathLike,
    tests: str | Sequence[str] = DEFAULT_TESTS,
    *,
    words: Sequence[str] = (),
    per_stimulus: int = 1000,
    seed: int = 0,
    field: str | None = None,
    format: str | None = None,
    document: str = "line",
    html: bool = False,
    language: str = "en",
    ignore_case: bool = False,
    openings: bool = False,
    max_bad: float = 0.1,
    workers: int | None = None,
    engine: Executor | None = None,
    listener: Listener | None = None,
) -> Scan:
    """Find the contexts of the stimuli of tests in a corpus, and write a sample of them to a Parquet file.

    Parameters
    ----------
    corpus : path or list of paths
        Files, folders or patterns: plain text, JSON lines, CSV, Parquet, each also as .gz, .bz2 or .zst.
    out : path
        The Parquet file. An interrupted scan is resumed from the folder ``OUT.partial``.
    tests : str or list of str
        Names, patterns, collections or files of tests. May be empty if `words` is not.
    words : list of str
        Further stimuli.
    per_stimulus : int
        Largest number of contexts per stimulus. The sample depends on the corpus and `seed` only.
    seed : int
        Random seed.
    field, format, document, html, language, ignore_case, openings
        How documents are read and words are matched, see ``biassay contexts --help``.
    max_bad : float
        Stop if more than this share of the documents cannot be read.
    workers : int, optional
        Number of processes; by default one per core.
    engine, listener
        As in `biassay.run`.

    Returns
    -------
    Scan
        The contexts, the tests they are for, and counts of what was read.

    Notes
    -----
    The sample of a stimulus is uniform over its distinct sentences and does not depend on the number of processes.
    Only whole words match.

    References
    ----------
    .. [1] Guo, W., and Caliskan, A. (2021). Detecting emergent intersectional biases: contextualized word embeddings
       contain a distribution of human-like biases. AIES, 122-133.

    Examples
    --------
    >>> import biassay, pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "book.txt").write_text("A rose is a rose. The tulip was red.")
    >>> words = ["rose", "tulip"]
    >>> scan = biassay.find_contexts(folder / "book.txt", folder / "out.parquet", (), words=words, workers=1)
    >>> scan.contexts.count("rose"), scan.contexts.texts([0])
    (1, ['A rose is a rose.'])
    """
    patterns = (tests,) if isinstance(tests, str) else tuple(tests)
    chosen = select_tests(patterns) if patterns or not words else ()
    check_word_tests(chosen)
    stimuli = tuple(dict.fromkeys((*(w for t in chosen for role in ROLES for w in t.concept(role).words), *words)))
    settings = ScanSettings(stimuli, per_stimulus, seed, field, format, document, html, language, ignore_case, openings)
    paths = [corpus] if isinstance(corpus, str | Path) or not isinstance(corpus, Sequence) else list(corpus)
    out = Path(out)
    _check_output(out)
    found = [replace(file, path=file.path.resolve()) for file in find_corpus_files(list(map(str, paths)), format)]
    files = [file for file in found if ScanState.folder(out).resolve() not in file.path.parents]
    state = ScanState(out, make_fingerprint(settings, files))
    sample, progress = state.load(settings)
    listener = listener or default_listener()
    if progress.documents:
        listener.notice(f"resuming an interrupted scan; {progress.bytes / 1e6:.0f} MB are already read")
    parts = split_files(files)
    for part in parts:
        if part.file.size > PART_BYTES and not part.start and part.stop is None:
            listener.notice(f"{part.file.name} can only be read by one process{_SPLIT_HINT}")
    remaining = (
        (n, part, _count_leading(progress.done.get(n, ())))
        for n, part in enumerate(parts)
        if n not in progress.finished
    )
    tasks, make = _ScanTasks(tuple(remaining), sample), ScannerFactory(settings)
    total_bytes = 0 if any(file.compression for file in files) else sum(file.size for file in files)
    try:
        for number, result in (engine or LocalExecutor()).run(make, tasks, workers=workers):
            if progress.contains(number, result.group):
                continue
            sample.add(result.table)
            progress.add(number, result)
            listener.progress("corpus", "bytes", progress.bytes, total_bytes)
            state.save_periodically(sample, progress)
            _check_bad_share(progress, max_bad)
    except _MisreadError:
        state.remove()  # the documents were read in a wrong format
        raise
    except BaseException as error:
        with suppress(OSError):  # on a full disk, the previous state remains
            state.save(sample, progress)
        error.add_note("the scan is saved; repeat the command to resume it")
        raise
    if not sample.to_table().num_rows:
        state.remove()
        raise MeasurementError(_explain_no_contexts(progress))
    write_contexts(out, sample, _make_metadata(patterns, settings, files, progress))
    state.remove()
    del sample, tasks  # frees memory
    return Scan(read_contexts(out), chosen, progress)


def _explain_no_contexts(progress: ScanProgress) -> str:
    if progress.damaged:
        return "no context found: " + "; ".join(f"{name}: {reason}" for name, reason in progress.damaged.items())
    if progress.examples and not progress.documents:
        return f"no context found, because no document could be read: {'; '.join(progress.examples)}"
    hint = "is the corpus in another language, or in lower case (--ignore-case)?"
    return f"no stimulus found in {progress.documents:,} documents; {hint}"


def _check_output(out: Path) -> None:
    if out.suffix != ".parquet":
        raise UsageError(f"{out}: the output is a Parquet file; name it '{out.stem or 'contexts'}.parquet'")
    if out.exists():
        raise RunFolderError(f"{out} already exists; choose another name or delete it")
    if not out.parent.is_dir():
        raise RunFolderError(f"{out}: the folder {out.parent} does not exist")


def _count_leading(groups: Sequence[int]) -> int:
    """Count the groups that are done without a gap from the first."""
    done = set(groups)
    return next(n for n in range(len(done) + 1) if n not in done)


def _check_bad_share(progress: ScanProgress, max_bad: float) -> None:
    unread = progress.bad + progress.undecodable
    if unread >= _MIN_BAD_DOCUMENTS and unread > max_bad * (progress.documents + unread):
        raise _MisreadError(
            f"{unread:,} of {progress.documents + unread:,} documents cannot be read, more than {max_bad:.0%}: "
            f"{'; '.join(progress.examples)}. Check --format and --field, or raise the limit with --max-bad"
        )


def _make_metadata(
    patterns: tuple[str, ...], settings: ScanSettings, files: Sequence[CorpusFile], progress: ScanProgress
) -> dict[str, Any]:
    options = {key: value for key, value in asdict(settings).items() if key not in ("stimuli", "k", "format")}
    options["file_format"] = settings.format  # "format" is that of the contexts file
    corpus = {
        "files": [file.name for file in files],
        "documents": progress.documents,
        "bytes": progress.bytes,
        "bad": progress.bad,
        "undecodable": progress.undecodable,
        "damaged": progress.damaged,
    }
    return {
        "tests": patterns,
        **options,
        "corpus": corpus,
        "found": dict(zip(settings.stimuli, progress.found, strict=True)),
    }
