"""From a corpus to contexts on one page: parts are scanned wherever there is a core, and their samples merged.

The state of an interrupted scan lies in a folder beside the output; the same command continues it. What was done is
kept by part and group, so nothing is counted twice, and the sample does not depend on who scanned what.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from biassay.engines.base import Engine
from biassay.engines.local import LocalEngine
from biassay.errors import MeasurementError, RunFolderError, UsageError
from biassay.runs.corpus_state import ScanState, Tally, fingerprint_of
from biassay.runs.listener import Listener, PathLike, own_listener
from biassay.stimuli.catalogue import select_tests
from biassay.stimuli.model import ROLES, Test
from biassay.studies.associations.over_contexts import check_word_tests
from biassay.texts.contexts import Contexts, read_contexts, write_contexts
from biassay.texts.corpus import PART_BYTES, CorpusFile, Part, find_files, split
from biassay.texts.sampling import Sample
from biassay.texts.scan_tasks import MakeScanner, ScanTask
from biassay.texts.scanning import ScanSettings

__all__ = ["DEFAULT_TESTS", "Scan", "find_contexts"]

DEFAULT_TESTS = ("C?", "C10", "I?")
_BAD_BEFORE_JUDGED = 100
_LONGEST_RUN = 8  # parts
_HOW_TO_CUT = "; several files, or one that is compressed by bgzip or pzstd, are read by several"


class _MisreadError(MeasurementError):
    """Too many documents cannot be read."""


@dataclass(frozen=True, eq=False)
class Scan:
    """What a scan found: the contexts, the tests they were sought for, and what could not be read."""

    contexts: Contexts
    tests: tuple[Test, ...]
    tally: Tally


@dataclass(frozen=True)
class _Tasks(Sequence[ScanTask]):
    """The parts that are to be scanned, some of them made a task when they are handed out."""

    runs: tuple[tuple[tuple[int, Part, int], ...], ...]
    sample: Sample

    def __len__(self) -> int:
        return len(self.runs)

    def __getitem__(self, place: int) -> ScanTask:  # type: ignore[override]
        numbers, parts, skips = zip(*self.runs[place], strict=True)
        return ScanTask(numbers, parts, skips, self.sample.thresholds())


def _in_runs(parts: Sequence[tuple[int, Part, int]], workers: int) -> Iterator[tuple[tuple[int, Part, int], ...]]:
    """Runs of parts, each half of what a worker would have of those left: the last are short, and all end together."""
    at = 0
    while at < len(parts):
        count = min(_LONGEST_RUN, -(-(len(parts) - at) // (2 * workers))) if workers > 1 else _LONGEST_RUN
        yield tuple(parts[at : at + count])
        at += count


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
    engine: Engine | None = None,
    listener: Listener | None = None,
) -> Scan:
    """Find the contexts of all stimuli of some tests in a corpus, and keep a sample of them in a Parquet file.

    Parameters
    ----------
    corpus : path or list of paths
        Files, folders or patterns: plain text, JSON lines, CSV, Parquet, each also as .gz, .bz2 or .zst.
    out : path
        The file to write; an interrupted scan is continued from the folder ``OUT.partial``.
    tests : str or list of str
        Whose stimuli are sought: names, patterns, collections or files; with ``words`` there may be none.
    words : list of str
        Further stimuli, of no test.
    per_stimulus : int
        The largest number of contexts of each stimulus, a sample that depends on the corpus and ``seed`` only.
    field, format, document, html, language, ignore_case, openings
        How documents are read and words are matched, see ``biassay contexts --help``.
    max_bad : float
        The largest share of documents that may be unreadable.
    workers : int, optional
        Processes; by default one for every core.
    engine, listener
        As in `biassay.run`.

    Returns
    -------
    Scan
        The contexts, the tests they are for, and counts of what was read.

    Notes
    -----
    The sample of a stimulus is uniform over its distinct sentences and does not depend on the number of processes. Only
    whole words match.

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
    asked = [corpus] if isinstance(corpus, str | Path) or not isinstance(corpus, Sequence) else list(corpus)
    out = Path(out)
    _check_out(out)
    named = [replace(file, path=file.path.resolve()) for file in find_files([str(place) for place in asked], format)]
    files = [file for file in named if ScanState.folder(out).resolve() not in file.path.parents]
    state = ScanState(out, fingerprint_of(settings, files))
    sample, tally = state.load(settings)
    listener = listener or own_listener()
    if tally.documents:
        listener.notice(f"continuing an interrupted scan: {tally.bytes / 1e6:.0f} MB were read before")
    parts = split(files)
    for part in parts:
        if part.file.size > PART_BYTES and not part.start and part.stop is None:
            listener.notice(f"{part.file.name} can only be read from its front, by one process{_HOW_TO_CUT}")
    waiting = ((n, part, _leading(tally.done.get(n, ()))) for n, part in enumerate(parts) if n not in tally.finished)
    left = tuple(waiting)
    most = workers or (os.cpu_count() if engine is None else None) or len(left)
    tasks, make = _Tasks(tuple(_in_runs(left, most)), sample), MakeScanner(settings)
    whole = 0 if any(file.compression for file in files) else sum(file.size for file in files)
    try:
        for number, partial in (engine or LocalEngine()).run(make, tasks, workers=workers):
            if tally.has(number, partial.group):
                continue
            sample.add(partial.table)
            tally.take(number, partial)
            listener.progress("corpus", "bytes", tally.bytes, whole)
            state.save_now_and_then(sample, tally)
            _judge(tally, max_bad)
    except _MisreadError:
        state.remove()  # what was read in the wrong way is no beginning
        raise
    except BaseException as error:
        with suppress(OSError):  # a full disk leaves the state before
            state.save(sample, tally)
        error.add_note("what was scanned is kept: repeat the command to continue")
        raise
    if not sample.to_table().num_rows:
        state.remove()
        raise MeasurementError(_nothing_found(tally))
    write_contexts(out, sample, _metadata(patterns, settings, files, tally))
    state.remove()
    return Scan(read_contexts(out), chosen, tally)


def _nothing_found(tally: Tally) -> str:
    if tally.damaged:
        return "nothing was found: " + "; ".join(f"{name}: {reason}" for name, reason in tally.damaged.items())
    if tally.examples and not tally.documents:
        return f"nothing was found, for no document could be read: {'; '.join(tally.examples)}"
    hint = "is it in another language, or in lower case (--ignore-case)?"
    return f"no stimulus was found in {tally.documents:,} documents of the corpus; {hint}"


def _check_out(out: Path) -> None:
    if out.suffix != ".parquet":
        raise UsageError(f"the output is a Parquet file; call it '{out.stem or 'contexts'}.parquet'")
    if out.exists():
        raise RunFolderError(f"{out} is there already; choose another name or remove it")
    if not out.parent.is_dir():
        raise RunFolderError(f"there is no folder {out.parent} to write {out.name} to")


def _leading(groups: Sequence[int]) -> int:
    """How many groups from the first on are done without a gap."""
    done = set(groups)
    return next(n for n in range(len(done) + 1) if n not in done)


def _judge(tally: Tally, max_bad: float) -> None:
    unread = tally.bad + tally.undecodable
    if unread >= _BAD_BEFORE_JUDGED and unread > max_bad * (tally.documents + unread):
        raise _MisreadError(
            f"{unread:,} of {tally.documents + unread:,} documents cannot be read, more than {max_bad:.0%}: "
            f"{'; '.join(tally.examples)}. Is --format or --field right? --max-bad changes the limit"
        )


def _metadata(
    patterns: tuple[str, ...], settings: ScanSettings, files: Sequence[CorpusFile], tally: Tally
) -> dict[str, Any]:
    how = {key: value for key, value in asdict(settings).items() if key not in ("stimuli", "k", "format")}
    how["file_format"] = settings.format  # "format" is that of the file of contexts
    corpus = {
        "files": [file.name for file in files],
        "documents": tally.documents,
        "bytes": tally.bytes,
        "bad": tally.bad,
        "undecodable": tally.undecodable,
        "damaged": tally.damaged,
    }
    return {"tests": patterns, **how, "corpus": corpus, "found": dict(zip(settings.stimuli, tally.found, strict=True))}
