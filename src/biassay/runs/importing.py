"""`biassay.import_logs`: answers that other tools logged, as a run of benchmarks."""

from __future__ import annotations

import dataclasses
import os
import platform
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from biassay.answers.logs.reading import read_logs
from biassay.answers.logs.records import Log, LoggedChoice
from biassay.errors import UsageError
from biassay.files import complete_folder
from biassay.results.data import FORMAT_VERSION, Manifest, ModelRecord, RunData
from biassay.results.labels import numbered
from biassay.results.storage import write_run
from biassay.runs.folders import check_free
from biassay.runs.listener import Listener, PathLike, own_listener
from biassay.runs.models import versions_of
from biassay.runs.run import Run
from biassay.runs.showing import write_page
from biassay.studies.benchmarks.inputs import InputsRecord
from biassay.studies.benchmarks.logged import rows_of_log
from biassay.studies.benchmarks.settings import Settings
from biassay.studies.registry import study_named
from biassay.studies.settings import checked_settings

__all__ = ["import_logs"]

_FAMILY = "log"
_REASONS, _NAMED = 3, 5  # that a notice names


def import_logs(
    logs: PathLike | Sequence[PathLike],
    *,
    alpha: float = 0.05,
    out: PathLike | None = None,
    listener: Listener | None = None,
) -> Run:
    """Scores of BBQ, CrowS-Pairs or StereoSet from logs of lm-evaluation-harness or Inspect, or released with BBQ.

    Parameters
    ----------
    logs : path or list of path
        Sample logs (samples_TASK_DATE.jsonl), or logs of Inspect (.eval, .json), all of one benchmark. Neither package
        is needed. Each is a model of the run. Or answers as the authors of BBQ released them (preds_CATEGORY.jsonl):
        all files together, each format of the questions a model of the run.
    alpha : float
        Level of significance; intervals have the confidence 1 - alpha.
    out, listener
        As in `biassay.run`.

    Returns
    -------
    Run
        As of `biassay.benchmark`. CrowS-Pairs compares whole sentences here, as the harness does, and not only the
        tokens that they share.
    """
    given = (logs,) if isinstance(logs, str | os.PathLike) else tuple(logs)
    if not given:
        raise UsageError("name at least one log")
    read = read_logs([Path(path) for path in dict.fromkeys(map(os.path.abspath, given))])
    names = dict.fromkeys(log.benchmark for log in read)
    if len(names) > 1:
        raise UsageError(f"the logs are of {' and '.join(names)}; import those of each benchmark by themselves")
    folder = None if out is None else Path(out)
    if folder is not None:
        check_free(folder)
    score = "sentence" if read[0].benchmark == "crows-pairs" else Settings.score
    run = _run(read, checked_settings(Settings(benchmark=read[0].benchmark, alpha=alpha, score=score)))
    listener = listener or own_listener()
    for log in read:
        if log.unmapped:
            listener.notice(
                f"{log.path}: {len(log.unmapped):,} of {len(log.unmapped) + len(log.answers):,} samples cannot be "
                f"used: {_unmapped_text(log)}"
            )
    if folder is not None:
        with complete_folder(folder) as working:
            write_run(working, run, study_named("benchmarks").types)
            write_page(run, working)
    return Run.of(run)


def _run(logs: Sequence[Log], settings: Settings) -> RunData:
    study = study_named("benchmarks")
    records = [_record(log) for log in logs]
    tables: dict[str, list[object]] = {name: [] for name in study.types.stored}
    for log, record in zip(logs, records, strict=True):
        for row in rows_of_log(log, settings, (record.name, record.options, record.revision)):
            tables[row.table].append(row.record)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    manifest = Manifest(
        format_version=FORMAT_VERSION,
        run_id=uuid.uuid4().hex,
        study=study.name,
        package=study.package,
        status="complete",
        created=now,
        finished=now,
        versions={"python": platform.python_version(), **versions_of(("biassay", "numpy", "scipy"))},
        models=tuple(records),
        settings=settings,
        inputs=_inputs(logs),
    )
    complete = study.complete(settings, {name: tuple(rows) for name, rows in tables.items()})
    return RunData(manifest, complete)


def _unmapped_text(log: Log) -> str:
    """Name the samples of a log that cannot be used, by reason; the manifest lists all of them."""
    by_reason: dict[str, list[str]] = {}
    for one in log.unmapped:
        by_reason.setdefault(one.reason, []).append(one.name)
    told = []
    for reason, names in list(by_reason.items())[:_REASONS]:
        more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
        told.append(f"{', '.join(names[:_NAMED])}{more}: {reason}")
    other = len(by_reason) - _REASONS
    return "; ".join([*told, f"{other:,} other reasons, see the manifest"] if other > 0 else told)


def _record(log: Log) -> ModelRecord:
    """A log as a model: what it tells of itself are the settings, and its digest is the revision."""
    settings = {"tool": log.tool, "version": log.version, "task": log.task}
    record = ModelRecord(str(log.path), log.model or log.path.stem, _FAMILY, log.digest, settings)
    return dataclasses.replace(record, texts=len(log.answers) + len(log.unmapped), measured=True)


def _inputs(logs: Sequence[Log]) -> InputsRecord:
    names = _names(logs)
    return InputsRecord(
        benchmark=logs[0].benchmark,
        digests={name: log.digest for name, log in zip(names, logs, strict=True)},
        version="",
        items={name: len(log.answers) for name, log in zip(names, logs, strict=True)},
        flagged=0,
        flagged_digest="",
        without_target=len(_without_target(logs)),
        unmapped=sum(len(log.unmapped) for log in logs),
        unmapped_samples=tuple(f"{one.name}: {one.reason}" for log in logs for one in log.unmapped),
    )


def _without_target(logs: Sequence[Log]) -> set[tuple[str, int]]:
    """Questions of any log, each once."""
    items = [one.item for log in logs for one in log.answers if isinstance(one, LoggedChoice)]
    return {(item.category, item.example) for item in items if item.target is None}


def _names(logs: Sequence[Log]) -> list[str]:
    """The file of every log, with its folders where files have one name, and numbered where several logs are of it."""
    names = [log.path.name for log in logs]
    paths = {name: {log.path for log in logs if log.path.name == name} for name in names}
    found: list[str] = []
    for log, name in zip(logs, names, strict=True):
        found.append(numbered(str(log.path) if len(paths[name]) > 1 else name, found))
    return found
