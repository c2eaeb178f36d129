"""One run, whatever is measured: models are opened, asked, measured and saved one after the other.

Answers are kept batch by batch and rows model by model, so that a run that was interrupted goes on where it stopped.
"""

from __future__ import annotations

import dataclasses
import functools
import platform
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from biassay.answers.answers import Answers
from biassay.answers.sharing import Beyond
from biassay.cache_usage import lock_cache
from biassay.engines.base import Engine
from biassay.errors import MeasurementError, ModelError, RefusedError, UsageError, explaining_memory
from biassay.files import default_cache
from biassay.models.answering import Streams
from biassay.models.spending import Spending
from biassay.remote import RemoteFolder, is_address
from biassay.results.data import FORMAT_VERSION, Manifest, ModelRecord, RunData
from biassay.results.storage import write_manifest
from biassay.runs.ahead import Ahead, InTurn
from biassay.runs.asking import Interview
from biassay.runs.failing import Stage, is_own, reason_of
from biassay.runs.folders import check_free, explaining_output, removed_if_empty
from biassay.runs.listener import Listener, PathLike, Silent, begin
from biassay.runs.measuring import Measuring
from biassay.runs.models import asked_models, package_versions, telling_how_to_resume, versions_of
from biassay.runs.saving import Saver
from biassay.runs.showing import write_page
from biassay.runs.team import Member, open_team
from biassay.runs.usage import UsageLog
from biassay.studies.settings import checked_settings
from biassay.studies.study import Inputs, Study

__all__ = ["How", "Work", "prepare", "start"]


@dataclass(frozen=True)
class How:
    """Where a run is written, where answers are kept, where models run, who learns how far it is, and what it costs.

    A ``cache`` that is an address in object storage lies ``beyond`` the user's own.
    """

    out: PathLike | None = None
    cache: PathLike | None = None
    vectors: PathLike | None = None
    engine: Engine | None = None
    listener: Listener = field(default_factory=Silent)
    spending: Spending = field(default_factory=Spending)
    beyond: Beyond | None = None

    @property
    def folder(self) -> Path | None:
        return None if self.out is None else Path(self.out)

    @property
    def interview(self) -> Interview:
        cache = default_cache() if self.cache is None or self.beyond is not None else Path(self.cache)
        vectors = None if self.vectors is None else Path(self.vectors)
        return Interview(cache, vectors, self.engine, self.listener, self.spending, self.beyond)

    @contextmanager
    def lock_caches(self) -> Iterator[None]:
        """Keep `biassay cache prune` from removing what this run uses, converted models included."""
        folders = {self.interview.cache}
        with suppress(UsageError):  # $BIASSAY_CACHE is not a folder
            folders.add(default_cache())
        with ExitStack() as stack:
            for folder in sorted(folders):
                stack.enter_context(lock_cache(folder))
            yield

    def __post_init__(self) -> None:
        object.__setattr__(self, "listener", InTurn(self.listener))
        if self.cache is not None and not str(self.cache):
            raise UsageError("the name of the cache is empty; leave it out for the user's own")
        if is_address(self.cache) and self.beyond is None:
            remote = RemoteFolder(str(self.cache))
            remote.names()  # if it cannot be reached, nothing begins
            object.__setattr__(self, "beyond", Beyond(remote, self.listener.notice))


def start(study: Study, settings: Any, models: object, how: How) -> RunData:
    """A new run: everything is checked before anything is written."""
    return prepare(study, settings, models, how)()


def prepare(study: Study, settings: Any, models: object, how: How) -> Callable[[], RunData]:
    """Check the settings and open the models of a new run.

    Returns
    -------
    callable
        Function that carries out the run. Nothing is measured or written before.
    """
    settings = checked_settings(settings)
    asked = asked_models(models)
    inputs = study.open(settings)
    if how.folder is not None:
        check_free(how.folder)
    with how.lock_caches():
        members = open_team(asked, study.asks(settings), how.listener)
    manifest = _manifest(study, inputs, [member.record for member in members])
    run = RunData(dataclasses.replace(manifest, budget=how.spending.limit))
    work = Work(study, inputs, members, how)

    def carry_out() -> RunData:
        if how.folder is None:
            with how.lock_caches():
                return work.carry_out(run)
        with (
            how.lock_caches(),
            telling_how_to_resume(how.folder, asked, run.manifest.models),
            removed_if_empty(how.folder, run.manifest.run_id, work.is_answered),
            explaining_output(how.folder),
        ):
            return work.carry_out(run)

    return carry_out


def _manifest(study: Study, inputs: Inputs, models: Sequence[ModelRecord]) -> Manifest:
    own = dict.fromkeys(("biassay", "numpy", "scipy", *study.packages(inputs.settings)))
    return Manifest(
        format_version=FORMAT_VERSION,
        run_id=uuid.uuid4().hex,
        study=study.name,
        package=study.package,
        status="running",
        created=_now(),
        finished=None,
        versions={"python": platform.python_version(), **versions_of(own)},
        models=tuple(models),
        settings=inputs.settings,
        inputs=inputs.record,
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


class _Asked(NamedTuple):
    """What asking a model came to: its answers, or an error; and what is to be noted of it."""

    answers: Answers | None
    counts: dict[str, Any]
    error: BaseException | None = None

    def or_raise(self) -> Answers:
        if self.answers is None:
            raise self.error or AssertionError("neither answers nor an error")
        return self.answers


@dataclass(frozen=True)
class Work:
    """A run that was checked and can be carried out."""

    study: Study
    inputs: Inputs
    members: tuple[Member, ...]
    how: How

    def is_answered(self) -> bool:
        """Whether anything may have been answered: of an endpoint that streams, what it used is known."""
        streamed = all(isinstance(model, Streams) for member in self.members for model in member.opened.values())
        return not streamed or bool(self.how.spending.used)

    def carry_out(self, run: RunData) -> RunData:
        usage = UsageLog(self.how.folder, run.manifest.models, self.how.spending)
        for place, (tokens_in, tokens_out) in enumerate(usage.tokens):
            run = _with_model(run, place, tokens_in=tokens_in, tokens_out=tokens_out)
        self._saver.save(run, now=True)
        usage.begin()
        records = run.manifest.models
        waiting = [place for place, record in enumerate(records) if not record.measured]
        together = bool(waiting) and self.study.together(self.inputs.settings)
        asked = list(range(len(self.members))) if together else waiting
        if together:
            self._refuse_unopened()
        apart = [place for place in asked if not self.members[place].failed and not self.members[place].is_elsewhere]
        answers: dict[int, Answers] = {}
        with Ahead(
            lambda place: self._ask(records[place], place, usage),
            apart,
            self.how.engine,
            lambda place: self.members[place].keys,
        ) as ahead:
            for place in asked if together else ():
                found = ahead.of(place)
                run = self._noted(run, place, found)
                answers[place] = found.or_raise()
            for place in waiting:
                stage: Stage = "asking"
                try:
                    if not together:
                        answers.clear()  # vectors of one model at a time
                        found = ahead.of(place)
                        run = self._noted(run, place, found)
                        answers[place] = found.or_raise()
                    stage = "measuring"
                    run = self._measured_or_refused(run, place, answers)
                except Exception as error:
                    if together or not is_own(error, [member.asked for member in self.members], place, stage):
                        raise
                    run = self._failed(run, place, reason_of(error))
                else:
                    self._saver.save(run, (place,))
                if not together:
                    self.members[place].opened.clear()  # and one model at a time
        self._saver.settle(run)
        run = self._finish(run)
        usage.end()
        return run

    def _failed(self, run: RunData, place: int, why: str) -> RunData:
        if not self.members[place].failed:  # else it was told when it could not be opened
            self.how.listener.notice(f"{self.members[place].label}: failed: {why}")
        run = _with_model(run, place, failed=why)
        self._saver.save(run)
        return run

    def _refuse_unopened(self) -> None:
        """Models that are measured together are asked only if all could be opened."""
        failed = [f"{member.label}: {member.failed}" for member in self.members if member.failed]
        if failed:
            raise ModelError("; ".join(failed))

    def _noted(self, run: RunData, place: int, asked: _Asked) -> RunData:
        """The run with what asking a model took; tokens are noted also of a model that fails."""
        run = _with_model(run, place, **asked.counts)
        if asked.answers is None and asked.counts:
            self._saver.save(run, now=True)
        return run

    @functools.cached_property
    def _saver(self) -> Saver:
        return Saver(self.how.folder, self.study.types)

    def _finish(self, run: RunData) -> RunData:
        unmeasured = [record.refused or record.failed for record in run.manifest.models]
        if unmeasured and None not in unmeasured:
            kind = MeasurementError if any(record.failed for record in run.manifest.models) else RefusedError
            raise kind("; ".join(f"{m.label}: {why}" for m, why in zip(self.members, unmeasured, strict=True)))
        versions = run.manifest.versions | package_versions(run.manifest.models)
        manifest = dataclasses.replace(run.manifest, status="complete", finished=_now(), versions=versions)
        run = dataclasses.replace(run, manifest=manifest)
        if self.how.folder is not None:
            begin(self.how.listener, str(self.how.folder), "making the page")
            write_page(run, self.how.folder)
            write_manifest(self.how.folder, run.manifest)
        return run

    def _ask(self, record: ModelRecord, place: int, usage: UsageLog) -> _Asked:
        """Ask a model, perhaps in a thread of its own."""
        began, member = time.monotonic(), self.members[place]
        if member.failed:
            return _Asked(None, {}, ModelError(member.failed))
        before = self.how.spending.tokens_in, self.how.spending.tokens_out
        try:
            requests = self.study.requests(self.inputs, member.abilities)
            with explaining_memory(), usage.recording(place) if member.is_elsewhere else nullcontext():
                answers, total, answered = self.how.interview.ask(member, requests)
        except (Exception, KeyboardInterrupt) as error:
            return _Asked(None, self._used(record, member, before), error)
        counts = {"texts": total, "encoded": record.encoded + answered, **self._used(record, member, before)}
        return _Asked(answers, {**counts, "seconds": _seconds(record, began)})

    def _used(self, record: ModelRecord, member: Member, before: tuple[int, int]) -> dict[str, int]:
        """Tokens of a model with those that were used from ``before`` on; empty: none were.

        Endpoints are asked one at a time: what was spent meanwhile is theirs, and not that of a model asked beside.
        """
        spent = self.how.spending.tokens_in - before[0], self.how.spending.tokens_out - before[1]
        if not member.is_elsewhere or not any(spent):
            return {}
        return {"tokens_in": record.tokens_in + spent[0], "tokens_out": record.tokens_out + spent[1]}

    def _measured_or_refused(self, run: RunData, place: int, answers: dict[int, Answers]) -> RunData:
        """A model that cannot be measured does not keep the others from it."""
        try:
            with explaining_memory():
                return self._measure(run, place, answers)
        except RefusedError as error:
            self.how.listener.notice(f"{self.members[place].label}: not measured: {error}")
            return _with_model(run, place, measured=True, refused=str(error))

    def _measure(self, run: RunData, place: int, answers: dict[int, Answers]) -> RunData:
        began, record = time.monotonic(), run.manifest.models[place]
        together = self.study.together(self.inputs.settings)
        everyone = [answers[i] for i in sorted(answers)] if together else [answers[place]]
        alone = _manifest(self.study, self.inputs, [record])
        measuring = Measuring(self.study, self.inputs, self.how.listener, self.how.interview.cache / "measured")
        found = measuring.once(alone, self.members[place].label, answers[place], everyone)
        tables = {name: (*run.tables.get(name, ()), *own) for name, own in found.tables.items()}
        own = {f"{place}/{name}": values for name, values in found.arrays_of(0).items()}
        complete = self.study.complete(
            self.inputs.settings, {name: _by_model(rows, run.manifest.models) for name, rows in tables.items()}
        )
        run = dataclasses.replace(run, tables=complete, arrays={**run.arrays, **own})
        told = {name: getattr(found.manifest.models[0], name) for name in ("words_lost", "notices")}
        return _with_model(run, place, measured=True, seconds=_seconds(record, began), **told)


def _by_model(rows: Sequence[Any], records: Sequence[ModelRecord]) -> tuple[Any, ...]:
    """Rows in the order of the models, also where one that failed at first is measured after others."""
    places = {(record.name, record.options): place for place, record in enumerate(records)}
    return tuple(sorted(rows, key=lambda row: places.get((row.model, row.options), len(records))))


def _seconds(record: ModelRecord, began: float) -> float:
    return round(record.seconds + time.monotonic() - began, 3)


def _with_model(run: RunData, place: int, **changes: Any) -> RunData:
    models = list(run.manifest.models)
    models[place] = dataclasses.replace(models[place], **changes)
    return dataclasses.replace(run, manifest=dataclasses.replace(run.manifest, models=tuple(models)))
