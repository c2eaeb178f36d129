"""`import_logs`: make a benchmark run from logs of other tools."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path

from biassay.errors import UsageError
from biassay.grouping import group_pairs
from biassay.io import atomic_folder
from biassay.results.run_data import ModelRecord, RunData, make_unique
from biassay.results.run_folder import write_run
from biassay.runs.folders import ensure_empty
from biassay.runs.progress import Listener, PathLike, default_listener
from biassay.runs.reports import write_report
from biassay.runs.run import Run
from biassay.runs.runner import make_manifest
from biassay.studies.benchmarks.logs import EvaluationLog, LoggedChoice, make_log_rows, read_logs
from biassay.studies.benchmarks.settings import BenchmarkSettings
from biassay.studies.benchmarks.tasks.base import BenchmarkInputsRecord
from biassay.studies.registry import get_study
from biassay.studies.settings import validate_settings

_FAMILY = "log"
_MAX_REASONS, _MAX_SAMPLES = 3, 5  # in a warning


def import_logs(
    logs: PathLike | Sequence[PathLike],
    *,
    alpha: float = 0.05,
    out: PathLike | None = None,
    listener: Listener | None = None,
) -> Run:
    """Score BBQ, CrowS-Pairs or StereoSet from logs of lm-evaluation-harness or Inspect, or BBQ's released responses.

    Parameters
    ----------
    logs : path or list of path
        Sample logs of lm-evaluation-harness (samples_TASK_DATE.jsonl) or logs of Inspect (.eval, .json), all of one
        benchmark; each becomes a model of the run. Neither package needs to be installed. Or the responses that the
        authors of BBQ released (preds_CATEGORY.jsonl): all files together, where each question format becomes a model.
    alpha : float
        Significance level; intervals have confidence 1 - alpha.
    out, listener
        As in `biassay.run`.

    Returns
    -------
    Run
        As from `biassay.benchmark`. CrowS-Pairs compares whole sentences, as the harness does, not only the tokens
        that they share.
    """
    given = (logs,) if isinstance(logs, str | os.PathLike) else tuple(logs)
    if not given:
        raise UsageError("no log given; name at least one")
    evaluations = read_logs([Path(path) for path in dict.fromkeys(map(os.path.abspath, given))])
    benchmarks = list(dict.fromkeys(log.benchmark for log in evaluations))
    if len(benchmarks) > 1:
        raise UsageError(f"the logs are of {' and '.join(benchmarks)}; import each benchmark separately")
    folder = None if out is None else Path(out)
    if folder is not None:
        ensure_empty(folder)
    score = "sentence" if benchmarks[0] == "crows-pairs" else BenchmarkSettings.score
    settings = validate_settings(BenchmarkSettings(benchmark=benchmarks[0], alpha=alpha, score=score))
    run = _make_run(evaluations, settings)
    listener = listener or default_listener()
    for log in evaluations:
        if log.unmapped:
            listener.notice(
                f"{log.path}: {len(log.unmapped):,} of {len(log.unmapped) + len(log.answers):,} samples cannot be "
                f"used: {_format_unmapped(log)}"
            )
    if folder is not None:
        with atomic_folder(folder) as working:
            write_run(working, run, get_study("benchmarks").schema)
            write_report(run, working)
    return Run.from_data(run)


def _make_run(logs: Sequence[EvaluationLog], settings: BenchmarkSettings) -> RunData:
    study = get_study("benchmarks")
    records = [_make_log_record(log) for log in logs]
    tables: dict[str, list[object]] = {name: [] for name in study.schema.stored}
    for log, record in zip(logs, records, strict=True):
        for row in make_log_rows(log, settings, (record.name, record.options, record.revision)):
            tables[row.table].append(row.record)
    manifest = make_manifest(study, settings, _make_inputs_record(logs), records)
    manifest = dataclasses.replace(manifest, status="complete", finished=manifest.created)
    return RunData(manifest, study.finalize_tables(settings, {name: tuple(rows) for name, rows in tables.items()}))


def _format_unmapped(log: EvaluationLog) -> str:
    """List samples of a log that cannot be used, by reason; the manifest lists all of them."""
    by_reason = group_pairs((sample.reason, sample.name) for sample in log.unmapped)
    listed = []
    for reason, names in list(by_reason.items())[:_MAX_REASONS]:
        more = f" and {len(names) - _MAX_SAMPLES:,} more" if len(names) > _MAX_SAMPLES else ""
        listed.append(f"{', '.join(names[:_MAX_SAMPLES])}{more}: {reason}")
    other = len(by_reason) - _MAX_REASONS
    return "; ".join([*listed, f"{other:,} other reasons, see the manifest"] if other > 0 else listed)


def _make_log_record(log: EvaluationLog) -> ModelRecord:
    """Make the record of a log as a model: its metadata are the settings, its digest is the revision."""
    settings = {"tool": log.tool, "version": log.version, "task": log.task}
    record = ModelRecord(str(log.path), log.model or log.path.stem, _FAMILY, log.digest, settings)
    return dataclasses.replace(record, texts=len(log.answers) + len(log.unmapped), measured=True)


def _make_inputs_record(logs: Sequence[EvaluationLog]) -> BenchmarkInputsRecord:
    names = _name_logs(logs)
    return BenchmarkInputsRecord(
        benchmark=logs[0].benchmark,
        digests={name: log.digest for name, log in zip(names, logs, strict=True)},
        version="",
        items={name: len(log.answers) for name, log in zip(names, logs, strict=True)},
        flagged=0,
        flagged_digest="",
        without_target=len(_find_without_target(logs)),
        unmapped=sum(len(log.unmapped) for log in logs),
        unmapped_samples=tuple(f"{sample.name}: {sample.reason}" for log in logs for sample in log.unmapped),
    )


def _find_without_target(logs: Sequence[EvaluationLog]) -> set[tuple[str, int]]:
    """Return the distinct questions without a target group."""
    items = [choice.item for log in logs for choice in log.answers if isinstance(choice, LoggedChoice)]
    return {(item.category, item.example) for item in items if item.target is None}


def _name_logs(logs: Sequence[EvaluationLog]) -> list[str]:
    """Name every log by its file, with the whole path or a number where that is ambiguous."""
    names: list[str] = []
    for log in logs:
        is_unique = len({other.path for other in logs if other.path.name == log.path.name}) == 1
        names.append(make_unique(log.path.name if is_unique else str(log.path), names))
    return names
