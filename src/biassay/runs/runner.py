"""Run a study: open models, fetch outputs, measure, save and resume.

Outputs are cached batch by batch and results are saved model by model, so that an interrupted run resumes where it
stopped.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import platform
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from biassay.cache.outputs import ModelOutputs
from biassay.errors import (
    BiassayError,
    InsufficientVocabularyError,
    MeasurementError,
    ModelError,
    RunFolderError,
    explain_memory_errors,
)
from biassay.models.base import StreamingModel
from biassay.models.token_budget import TokenBudget
from biassay.results.run_data import FORMAT_VERSION, Manifest, ModelRecord, RunData
from biassay.results.run_folder import StudySchema, drop_unmeasured, write_manifest, write_run
from biassay.runs.fetch import ModelPrefetcher, RequestFetcher, RunOptions
from biassay.runs.folders import USAGE_LOG, cleanup_on_failure, ensure_empty, explain_write_errors, load_run_data
from biassay.runs.measurement_cache import MeasurementCache
from biassay.runs.models import (
    ModelSpec,
    OpenedModel,
    Stage,
    check_unchanged,
    format_error,
    get_package_versions,
    get_versions,
    is_model_error,
    open_models,
    parse_model_specs,
    refuse_folder,
    restore_model_specs,
    resume_hint,
)
from biassay.runs.progress import announce_step
from biassay.runs.reports import write_report
from biassay.studies.registry import get_study
from biassay.studies.settings import get_setting_specs, validate_settings
from biassay.studies.study import Inputs, Study

_QUICK_SECONDS = 0.2
_TIME_RATIO = 10  # minimum time between two writes of a slow run, as a multiple of the time that one write takes


class RunSaver:
    """Save a run after every model, or less often if writing takes long because there are very many models.

    After a crash, unsaved models are measured again from cached outputs.
    """

    def __init__(self, folder: Path | None, schema: StudySchema) -> None:
        self._folder, self._schema = folder, schema
        self._unsaved: list[int] = []
        self._ended, self._took, self._is_behind = 0.0, 0.0, False

    def save(self, run: RunData, model_indices: Sequence[int] = (), *, force: bool = False) -> None:
        """Write a run, unless writing is slow and the last time was recently.

        Parameters
        ----------
        run : RunData
        model_indices : sequence of int
            Models with new arrays.
        force : bool
            If True, write in any case.
        """
        if self._folder is None:
            return
        self._unsaved += model_indices
        began = time.monotonic()
        self._is_behind = not force and self._took > _QUICK_SECONDS and began - self._ended < _TIME_RATIO * self._took
        if self._is_behind:
            return
        write_run(self._folder, run, self._schema, self._unsaved)
        self._unsaved = []
        self._ended = time.monotonic()
        self._took = self._ended - began

    def flush(self, run: RunData) -> None:
        """Write a run if the last call of `save` did not."""
        if self._is_behind:
            self.save(run, force=True)


class UsageLog:
    """Count the tokens of every model of a run, and log them.

    The manifest is written after every model, the log after every response. So a killed run still knows how many tokens
    it used, and a budget covers the whole run however often it is resumed.

    Parameters
    ----------
    folder : Path or None
        The run folder. If None, nothing is written.
    records : sequence of ModelRecord
        Models with their tokens in the manifest. The log of an earlier process takes precedence.
    token_budget : TokenBudget
        Counts the tokens of this process. Tokens of earlier processes are added to it.
    """

    def __init__(self, folder: Path | None, records: Sequence[ModelRecord], token_budget: TokenBudget) -> None:
        self._path = None if folder is None else folder / USAGE_LOG
        self._token_budget = token_budget
        self.tokens = [(record.tokens_in, record.tokens_out) for record in records]
        if self._path is not None and self._path.exists():
            self._read(self._path)
        token_budget.carry_over(sum(used for used, _ in self.tokens), sum(used for _, used in self.tokens))

    def _read(self, path: Path) -> None:
        tokens = [(0, 0)] * len(self.tokens)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            try:
                entry = json.loads(line)
                model_index, used_in, used_out = (int(entry[key]) for key in ("model", "tokens_in", "tokens_out"))
                if min(model_index, used_in, used_out) < 0:
                    raise ValueError("negative number")
                tokens[model_index] = tokens[model_index][0] + used_in, tokens[model_index][1] + used_out
            except (ValueError, KeyError, TypeError, IndexError) as error:
                if number == len(path.read_bytes().splitlines()):
                    break  # the process was killed while it wrote the last line
                raise RunFolderError(f"{path}: line {number} is damaged; delete the file to count from 0") from error
        self.tokens = tokens

    def get_counts(self, model_index: int) -> dict[str, int]:
        """Return the tokens of a model as fields of its record."""
        tokens_in, tokens_out = self.tokens[model_index]
        return {"tokens_in": tokens_in, "tokens_out": tokens_out}

    def begin(self) -> None:
        """Write the totals so far as the first lines of a new log."""
        if self._path is None:
            return
        lines = [{"model": index, **self.get_counts(index)} for index in range(len(self.tokens))]
        self._path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")

    @contextmanager
    def recording(self, model_index: int) -> Iterator[None]:
        """Attribute the tokens that are used in the meantime to one model."""

        def record(used_in: int, used_out: int) -> None:
            before = self.tokens[model_index]
            self.tokens[model_index] = before[0] + used_in, before[1] + used_out
            if self._path is not None:
                with self._path.open("a", encoding="utf-8") as log:
                    log.write(f"{json.dumps({'model': model_index, 'tokens_in': used_in, 'tokens_out': used_out})}\n")

        self._token_budget.on_use = record
        try:
            yield
        finally:
            self._token_budget.on_use = None

    def end(self) -> None:
        """Delete the log, because the manifest of a complete run has the totals."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)


def run_study(study: Study, settings: Any, models: object, options: RunOptions) -> RunData:
    """Run a study. Everything is checked before anything is written.

    Parameters
    ----------
    study : Study
    settings : object
        Settings of the study.
    models : str, object, list of them, or dict
        As in `biassay.run`.
    options : RunOptions
    """
    return prepare_run(study, settings, models, options)()


def prepare_run(study: Study, settings: Any, models: object, options: RunOptions) -> Callable[[], RunData]:
    """Check the settings and open the models of a new run.

    Parameters
    ----------
    study, settings, models, options
        As in `run_study`.

    Returns
    -------
    callable
        Function that executes the run. Nothing is measured or written before.
    """
    settings = validate_settings(settings)
    specs = parse_model_specs(models)
    inputs = study.load_inputs(settings)
    if options.folder is not None:
        ensure_empty(options.folder)
    with options.lock_caches():
        opened, inputs = _open_models(study, inputs, specs, options)
        judge = _open_judge(study, settings, options)
    manifest = make_manifest(study, inputs.settings, inputs.record, [model.record for model in opened])
    run = RunData(dataclasses.replace(manifest, budget=options.token_budget.limit))
    runner = Runner(study, inputs, opened, options, judge)

    def execute() -> RunData:
        for line in study.preview(inputs):
            options.listener.notice(line)
        if options.folder is None:
            with options.lock_caches():
                return runner.execute(run)
        with (
            options.lock_caches(),
            resume_hint(options.folder, specs, run.manifest.models),
            cleanup_on_failure(options.folder, run.manifest.run_id, runner.has_responses),
            explain_write_errors(options.folder),
        ):
            return runner.execute(run)

    return execute


def _open_models(
    study: Study, inputs: Inputs, specs: Sequence[ModelSpec], options: RunOptions
) -> tuple[tuple[OpenedModel, ...], Inputs]:
    """Open the models for a study, and fit its inputs to them."""
    choose = functools.partial(study.choose_capabilities, inputs.settings)
    opened = open_models(specs, choose, options.listener, scorers=study.accepts_scorers)
    for erasure in {
        opened_model.erasure.name: opened_model.erasure for opened_model in opened if opened_model.erasure is not None
    }.values():
        inputs = study.hold_out(inputs, erasure.name, erasure.words)
    return opened, study.fit_inputs(
        inputs, [next(iter(opened_model.opened.values())) for opened_model in opened if opened_model.opened]
    )


def _open_judge(study: Study, settings: Any, options: RunOptions) -> OpenedModel | None:
    """Open the model that judges responses, if the study has one."""
    text = study.get_judge(settings)
    return None if text is None else open_models(parse_model_specs(text), ("replies",), options.listener)[0]


def make_manifest(study: Study, settings: Any, inputs_record: Any, models: Sequence[ModelRecord]) -> Manifest:
    """Make the manifest of a new run.

    Parameters
    ----------
    study : Study
    settings : object
        Settings of the study.
    inputs_record : object
        Description of the inputs, with digests.
    models : sequence of ModelRecord
    """
    packages = dict.fromkeys(("biassay", "numpy", "scipy", *study.packages(settings)))
    return Manifest(
        format_version=FORMAT_VERSION,
        run_id=uuid.uuid4().hex,
        study=study.name,
        package=study.package,
        status="running",
        created=_timestamp(),
        finished=None,
        versions={"python": platform.python_version(), **get_versions(packages)},
        models=tuple(models),
        settings=settings,
        inputs=inputs_record,
    )


def _timestamp() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


class _FetchResult(NamedTuple):
    """Outputs of a model or the error that prevented them, and counts for its record in the manifest."""

    outputs: ModelOutputs | None
    counts: dict[str, Any]
    error: BaseException | None = None

    def unwrap(self) -> ModelOutputs:
        if self.outputs is None:
            raise self.error or AssertionError("neither outputs nor an error")
        return self.outputs


@dataclass(frozen=True)
class Runner:
    """Execute a run whose settings are checked and whose models are open."""

    study: Study
    inputs: Inputs
    models: tuple[OpenedModel, ...]
    options: RunOptions
    judge: OpenedModel | None = None

    def has_responses(self) -> bool:
        """Return whether any model may have responded. Only endpoints that stream report it, by their tokens."""
        is_streamed = all(isinstance(m, StreamingModel) for model in self.models for m in model.opened.values())
        return not is_streamed or bool(self.options.token_budget.used)

    def execute(self, run: RunData) -> RunData:
        """Fetch and measure all models that are not measured yet, and write the report."""
        usage = UsageLog(self.options.folder, run.manifest.models, self.options.token_budget)
        for index in range(len(self.models)):
            run = _update_model(run, index, **usage.get_counts(index))
        self._saver.save(run, force=True)
        usage.begin()
        records = run.manifest.models
        unmeasured = [index for index, record in enumerate(records) if not record.measured]
        needs_all = bool(unmeasured) and self.study.needs_all_models(self.inputs.settings)
        to_fetch = list(range(len(self.models))) if needs_all else unmeasured
        if needs_all:
            self._check_all_opened()
        outputs: dict[int, ModelOutputs] = {}
        with ModelPrefetcher(
            lambda index: self._fetch(records[index], index, usage),
            [
                index
                for index in to_fetch
                if not self.models[index].failed and not self.models[index].is_remote and self.judge is None
            ],
            self.options.engine,
            lambda index: self.models[index].cache_keys,
        ) as prefetcher:
            for index in to_fetch if needs_all else ():
                result = prefetcher.result(index)
                run = self._record_usage(run, index, result)
                outputs[index] = result.unwrap()
            for index in unmeasured:
                stage: Stage = "fetching"
                try:
                    if not needs_all:
                        outputs.clear()  # hold the vectors of one model at a time
                        result = prefetcher.result(index)
                        run = self._record_usage(run, index, result)
                        outputs[index] = result.unwrap()
                    stage = "measuring"
                    run = self._measure_or_skip(run, index, outputs)
                except Exception as error:
                    if needs_all or not is_model_error(error, [model.spec for model in self.models], index, stage):
                        raise
                    run = self._record_failure(run, index, format_error(error))
                else:
                    self._saver.save(run, (index,))
                if not needs_all:
                    self.models[index].opened.clear()  # free its memory
        self._saver.flush(run)
        run = self._finish(run)
        usage.end()
        return run

    def _record_failure(self, run: RunData, index: int, reason: str) -> RunData:
        if not self.models[index].failed:  # otherwise the listener got a notice when the model could not be opened
            self.options.listener.notice(f"{self.models[index].label}: failed: {reason}")
        run = _update_model(run, index, failed=reason)
        self._saver.save(run)
        return run

    def _check_all_opened(self) -> None:
        failed = [f"{model.label}: {model.failed}" for model in self.models if model.failed]
        if failed:
            raise ModelError("; ".join(failed))

    def _record_usage(self, run: RunData, index: int, result: _FetchResult) -> RunData:
        """Add the counts of a model to its record, also if it failed."""
        run = _update_model(run, index, **result.counts)
        if result.outputs is None and result.counts:
            self._saver.save(run, force=True)
        return run

    @functools.cached_property
    def _saver(self) -> RunSaver:
        return RunSaver(self.options.folder, self.study.schema)

    def _finish(self, run: RunData) -> RunData:
        reasons = [record.skipped or record.failed for record in run.manifest.models]
        if reasons and None not in reasons:
            any_failed = any(record.failed for record in run.manifest.models)
            kind = MeasurementError if any_failed else InsufficientVocabularyError
            raise kind("; ".join(f"{m.label}: {reason}" for m, reason in zip(self.models, reasons, strict=True)))
        versions = run.manifest.versions | get_package_versions(run.manifest.models)
        manifest = dataclasses.replace(run.manifest, status="complete", finished=_timestamp(), versions=versions)
        run = dataclasses.replace(run, manifest=manifest)
        if self.options.folder is not None:
            announce_step(self.options.listener, str(self.options.folder), "writing the report")
            write_report(run, self.options.folder)
            write_manifest(self.options.folder, run.manifest)
        return run

    def _fetch(self, record: ModelRecord, index: int, usage: UsageLog) -> _FetchResult:
        """Fetch the outputs of one model, possibly in a background thread."""
        began, model, fetcher = time.monotonic(), self.models[index], RequestFetcher(self.options)
        if model.failed:
            return _FetchResult(None, {}, ModelError(model.failed))
        is_remote = model.is_remote or (self.judge is not None and self.judge.is_remote)
        try:
            requests = self.study.requests(self.inputs, model.capabilities)
            with explain_memory_errors(), usage.recording(index) if is_remote else nullcontext():
                outputs, total, fetched = fetcher.fetch(model, requests)
                if self.judge is not None:
                    requests = self.study.judge_requests(self.inputs, outputs)
                    judged, n_judged, new = fetcher.fetch(self.judge, requests)
                    outputs = dataclasses.replace(outputs, judge=judged)
                    total, fetched = total + n_judged, fetched + new
        except (Exception, KeyboardInterrupt) as error:
            return _FetchResult(None, usage.get_counts(index) if is_remote else {}, error)
        counts = {"texts": total, "encoded": record.encoded + fetched, "seconds": _total_seconds(record, began)}
        return _FetchResult(outputs, {**counts, **usage.get_counts(index)})

    def _measure_or_skip(self, run: RunData, index: int, outputs: dict[int, ModelOutputs]) -> RunData:
        """Measure a model, or record why its vocabulary is insufficient."""
        try:
            with explain_memory_errors():
                return self._measure(run, index, outputs)
        except InsufficientVocabularyError as error:
            if len(self.models) > 1:  # the error at the end has the reason of a single model
                self.options.listener.notice(f"{self.models[index].label}: not measured: {error}")
            return _update_model(run, index, measured=True, skipped=str(error))

    def _measure(self, run: RunData, index: int, outputs: dict[int, ModelOutputs]) -> RunData:
        began, record = time.monotonic(), run.manifest.models[index]
        cache = MeasurementCache(self.study, self.inputs, self.options.listener, self.options.cache_folder / "measured")
        result = cache.get_or_compute(
            make_manifest(self.study, self.inputs.settings, self.inputs.record, [record]),
            self.models[index].label,
            outputs[index],
            [outputs[i] for i in sorted(outputs)],
        )
        tables = {
            name: _sort_by_model((*run.tables.get(name, ()), *rows), run.manifest.models)
            for name, rows in result.tables.items()
        }
        arrays = {f"{index}/{name}": values for name, values in result.get_arrays(0).items()}
        run = dataclasses.replace(
            run, tables=self.study.finalize_tables(self.inputs.settings, tables), arrays={**run.arrays, **arrays}
        )
        measured = result.manifest.models[0]
        return _update_model(
            run,
            index,
            measured=True,
            seconds=_total_seconds(record, began),
            oov_words=measured.oov_words,
            warnings=measured.warnings,
            part=measured.part,
        )


def _sort_by_model(rows: Sequence[Any], records: Sequence[ModelRecord]) -> tuple[Any, ...]:
    """Sort rows by model, because a model that failed at first is measured after others."""
    order = {(record.name, record.options): index for index, record in enumerate(records)}
    return tuple(sorted(rows, key=lambda row: order.get((row.model, row.options), len(records))))


def _total_seconds(record: ModelRecord, began: float) -> float:
    return round(record.seconds + time.monotonic() - began, 3)


def _update_model(run: RunData, index: int, **changes: Any) -> RunData:
    models = list(run.manifest.models)
    models[index] = dataclasses.replace(models[index], **changes)
    return dataclasses.replace(run, manifest=dataclasses.replace(run.manifest, models=tuple(models)))


def resume_run(folder: Path, models: object, options: RunOptions) -> RunData:
    """Finish an interrupted run, or try failed models again; models that are already measured are kept.

    Parameters
    ----------
    folder : Path
        The run folder.
    models : str, object, list of them, dict, or None
        Models that must not be taken from the folder, because they run code or send texts away.
    options : RunOptions
    """
    run = load_run_data(folder)
    if run.manifest.status == "complete" and not any(_is_unfinished(record) for record in run.manifest.models):
        return run
    study, settings = get_study(run.manifest.study), validate_settings(run.manifest.settings)
    study.check_reuse(settings, _list_models(models))
    specs = restore_model_specs(folder, run.manifest.models, _drop_judge(study.get_judge(settings), run, models))
    for name, spec in get_setting_specs(study.schema.settings).items():
        needed = spec.reenter_on_resume and getattr(settings, name) is not None
        if needed and (name != "vectors" or options.vectors is None):
            refuse_folder(folder, name, getattr(settings, name), specs)
    try:
        inputs = study.load_inputs(settings)
    except BiassayError as error:
        error.add_note(f"the run in {folder} cannot be resumed")
        raise
    with options.lock_caches():
        opened, inputs = _open_models(study, inputs, specs, options)
        judge = _open_judge(study, settings, options)
        try:
            study.check_same(run.manifest.inputs, inputs.record)
        except BiassayError as error:
            error.add_note(f"the run in {folder} cannot be resumed")
            raise
        new_records = [model.record for model in opened]
        check_unchanged(folder, run.manifest.models, new_records)
        records = [
            _make_retry_record(old, new) if _is_unfinished(old) else old
            for old, new in zip(run.manifest.models, new_records, strict=True)
        ]
        manifest = dataclasses.replace(
            run.manifest,
            status="running",
            finished=None,
            models=tuple(records),
            budget=_keep_budget(run.manifest.budget, options),
        )
        options = dataclasses.replace(options, out=folder)
        with explain_write_errors(folder, resumed=True):
            rest = drop_unmeasured(dataclasses.replace(run, manifest=manifest))
            return Runner(study, inputs, opened, options, judge).execute(rest)


def _list_models(models: object) -> list[object]:
    if isinstance(models, Mapping):
        return list(models.values())
    return list(models) if isinstance(models, list | tuple) else [models]


def _drop_judge(judge: str | None, run: RunData, models: object) -> object:
    """Return the given models without the judge, unless it is also a model of the run."""
    if judge is None or isinstance(models, Mapping) or judge in [record.text for record in run.manifest.models]:
        return models
    return [model for model in _list_models(models) if model not in (judge, None)] or None


def _is_unfinished(record: ModelRecord) -> bool:
    """Return whether a model failed, or only a part of its requests was measured."""
    return record.failed is not None or record.part is not None


def _keep_budget(budget: int | None, options: RunOptions) -> int | None:
    """Return the budget given now, or else that of the run, which then applies again."""
    if options.token_budget.limit is None and budget is not None:
        options.token_budget.limit = budget
        options.listener.notice(f"this run keeps its budget of {budget:,} tokens; change it with --budget TOKENS")
    return options.token_budget.limit


def _make_retry_record(old: ModelRecord, new: ModelRecord) -> ModelRecord:
    """Return the record of a model that is tried again, with the tokens and time used before."""
    used = {name: getattr(old, name) for name in ("tokens_in", "tokens_out", "encoded", "seconds")}
    return dataclasses.replace(new, **used)
