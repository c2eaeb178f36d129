"""From the keywords of a public function to the settings of a study."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

from biassay.models.spending import Spending
from biassay.runs.engine import How, start
from biassay.runs.listener import PathLike, own_listener
from biassay.runs.run import Run
from biassay.stimuli.mappings import plain
from biassay.studies.registry import study_named

__all__ = ["absolute", "file_or_name", "measured_by", "several"]


def measured_by(name: str, models: object, keywords: Mapping[str, Any], given: Mapping[str, Any]) -> Run:
    """A run by the keywords of a function; ``given`` are those that are not stored as they come."""
    study = study_named(name)
    names = [field.name for field in dataclasses.fields(study.types.settings)]
    settings = study.types.settings(**{n: {**keywords, **given}[n] for n in names if n in keywords or n in given})
    vectors = keywords.get("vectors")
    listener, spending = keywords["listener"] or own_listener(), Spending(keywords.get("budget"))
    how = How(keywords["out"], keywords["cache"], vectors, keywords["engine"], listener, spending)
    return Run.of(start(study, settings, models, how))


def several(given: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]]) -> tuple[Any, ...]:
    """One or several texts or dicts, as a manifest keeps them."""
    several = (given,) if isinstance(given, str | Mapping) else tuple(given)
    return tuple(plain(one) if isinstance(one, Mapping) else one for one in several)


def file_or_name(given: PathLike) -> str:
    """A name as it is; a file by its whole path."""
    text = os.fspath(given)
    return os.path.abspath(text) if text.lower().endswith((".toml", ".json", ".jsonl")) else text


def absolute(given: PathLike | None) -> str | None:
    """A path that is the same wherever a run goes on."""
    return None if given is None else os.path.abspath(given)
