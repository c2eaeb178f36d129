"""An interrupted run goes on, whatever it measures."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from biassay.errors import BiassayError
from biassay.results.data import ModelRecord, RunData
from biassay.runs.engine import How, Work
from biassay.runs.folders import explaining_output
from biassay.runs.loading import load_data
from biassay.runs.models import check_unchanged, models_again, refuse_folder
from biassay.runs.team import open_team
from biassay.studies.registry import study_named
from biassay.studies.settings import checked_settings, rules_of

__all__ = ["go_on"]


def go_on(folder: Path, models: object, how: How) -> RunData:
    """Finish a run; what it has measured is kept. ``models`` are given again where the folder may not name them."""
    run = load_data(folder)
    if run.manifest.status == "complete" and not any(record.failed for record in run.manifest.models):
        return run
    study, settings = study_named(run.manifest.study), checked_settings(run.manifest.settings)
    asked = models_again(folder, run.manifest.models, models)
    for name, rule in rules_of(study.types.settings).items():
        if rule.again and getattr(settings, name) is not None and (name != "vectors" or how.vectors is None):
            refuse_folder(folder, name, getattr(settings, name), asked)
    try:
        inputs = study.open(settings)
        study.check_same(run.manifest.inputs, inputs.record)
    except BiassayError as error:
        error.add_note(f"the run in {folder} cannot go on")
        raise
    with how.lock_caches():
        members = open_team(asked, study.asks(settings), how.listener)
        found = [member.record for member in members]
        check_unchanged(folder, run.manifest.models, found)
        records = [
            old if old.failed is None else _anew(old, new) for old, new in zip(run.manifest.models, found, strict=True)
        ]
        manifest = dataclasses.replace(
            run.manifest,
            status="running",
            finished=None,
            models=tuple(records),
            budget=_keep_budget(run.manifest.budget, how),
        )
        how = dataclasses.replace(how, out=folder)
        with explaining_output(folder, resumed=True):
            return Work(study, inputs, members, how).carry_out(dataclasses.replace(run, manifest=manifest))


def _keep_budget(budget: int | None, how: How) -> int | None:
    """Return the budget given now, or else that of the run, which then applies again."""
    if how.spending.limit is None and budget is not None:
        how.spending.limit = budget
        how.listener.notice(f"this run keeps its budget of {budget:,} tokens; change it with --budget TOKENS")
    return how.spending.limit


def _anew(failed: ModelRecord, found: ModelRecord) -> ModelRecord:
    """A model that is tried again, with what it took before."""
    took = {name: getattr(failed, name) for name in ("tokens_in", "tokens_out", "encoded", "seconds")}
    return dataclasses.replace(found, **took)
