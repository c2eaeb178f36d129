"""What is compared: runs, run folders, and models, which are measured first."""

from __future__ import annotations

import dataclasses
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from biassay.errors import RunFolderError, UnknownNameError, UsageError
from biassay.models.registry import abilities_of, parse_model
from biassay.results.data import RunData
from biassay.results.labels import numbered, record_labels
from biassay.results.slices import run_of_model
from biassay.results.storage import MANIFEST
from biassay.results.verdicts import GATE
from biassay.runs.engine import How, prepare
from biassay.runs.loading import load_data, name_folders
from biassay.runs.models import asked_models, own_name
from biassay.runs.showing import presenter_of
from biassay.stimuli.catalogue import catalogue, select_tests
from biassay.stimuli.description import topics
from biassay.stimuli.word_associations import published_word_associations, select_word_associations
from biassay.studies.registry import study_named
from biassay.studies.settings import rules_of

__all__ = ["only_tests_of", "sides"]


def sides(given: Sequence[object], tests: Sequence[str], how: How) -> dict[str, RunData]:
    """Runs by name, in the order given. A model is measured as the first run was, else by the tests named.

    All models are opened before the first is measured, so that a missing one is an error at once.
    """
    own = {place: name for place, one in enumerate(given) if (name := own_name(one))}
    twice = next((name for name in own.values() if list(own.values()).count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"two models have the name {twice!r}; give each a name of its own")
    folders = {place: _path(one) for place, one in enumerate(given) if _is_folder(one)}
    loaded = dict(zip(folders, name_folders(list(folders.values())), strict=True))
    runs = {place: _renamed(load_data(folder), own.get(place), folder) for place, folder in folders.items()}
    runs |= {place: one for place, one in enumerate(given) if isinstance(one, RunData)}
    if len(given) == 1 and not runs:
        raise UsageError(f"there is one model only ({given[0]}); name another model or run to compare it with")
    names: list[str] = []
    for place, one in enumerate(given):
        names.append(numbered(loaded.get(place) or (one if isinstance(one, str) else f"run {place + 1}"), names))
    found = only_tests_of({names[place]: run for place, run in sorted(runs.items())}, tests)
    like = next(iter(found.values()), None)
    prepared = {name: _prepare(given[place], like, tests, how) for place, name in enumerate(names) if name not in found}
    measured = {name: measure() for name, measure in prepared.items()}
    found |= measured if like is None else only_tests_of(measured, tests)
    return {name: found[name] for name in names}


def only_tests_of(whole: Mapping[str, RunData], tests: Sequence[str]) -> dict[str, RunData]:
    """Runs with the tests that are named; each must have some."""
    for name, run in whole.items():
        if not any(run.tables.values()):
            raise RunFolderError(f"{name}: no results yet; go on with it by `biassay resume`, or leave it out")
    found = {name: presenter_of(run.manifest.study).only(run, tests) for name, run in whole.items()}
    empty = [name for name, run in found.items() if not any(run.tables.values())]
    if empty:
        raise UsageError(f"{', '.join(empty)}: no test there is named {' or '.join(tests)}")
    return found


def _path(given: object) -> Path:
    """A run folder, without the name that may stand before it."""
    text = str(given)
    return Path(text.partition("=")[2]) if own_name(given) and not (Path(text) / MANIFEST).is_file() else Path(text)


def _renamed(run: RunData, name: str | None, folder: Path) -> RunData:
    if name is None:
        return run
    if len(run.manifest.models) != 1:
        labels = ", ".join(record_labels(run))
        raise UsageError(f"{folder} holds several models ({labels}): a name stands before a run of one model")
    return run_of_model(run, 0, name)


def _is_folder(given: object) -> bool:
    """A text may also be a model; a folder of that name counts only if there is a run in it."""
    if not isinstance(given, str):
        return isinstance(given, os.PathLike)
    if (_path(given) / MANIFEST).is_file():
        return True
    try:
        parse_model(str(asked_models(given)[0].model))
    except UnknownNameError as error:
        if Path(given).exists():
            return True
        raise UsageError(f"{given}: no such folder; name the folder of a run, or a model: {error}") from error
    return False


def _prepare(model: object, like: RunData | None, tests: Sequence[str], how: How) -> Callable[[], RunData]:
    if like is None:
        _refuse_answering(model, tests)
    study = study_named("associations" if like is None else like.manifest.study)
    settings = study.types.settings(tests=tuple(tests) or _default_tests()) if like is None else _settings(like, tests)
    return prepare(study, settings, model, how)


def _default_tests() -> tuple[str, ...]:
    """The tests by which two models are compared: the collection `GATE`, else the main collections."""
    return (GATE,) if any(test.source.name == GATE for test in catalogue().tests.values()) else ()


def _refuse_answering(model: object, tests: Sequence[str]) -> None:
    """Models that only answer, and tests for them, are measured first: there are several studies of answers."""
    name = asked_models(model)[0].model
    able = abilities_of(name) if isinstance(name, str) else ("texts",)
    asked = [test for test in tests if published_word_associations(test) and test.casefold() not in topics()]
    if "texts" not in able or asked:
        what = f"model {name!r} answers and gives no vectors" if "texts" not in able else f"{asked[0]} is for answers"
        chosen = f" --tests {shlex.join(tests)}" if tests else ""
        raise UsageError(
            f"{what}: measure the models first with `biassay ask MODEL MODEL{chosen} --out RUN`, then "
            "`biassay compare RUN`"
        )


def _settings(like: RunData, tests: Sequence[str]) -> Any:
    """Those of a run, with fewer tests; where a run wrote to is not taken from it."""
    settings = like.manifest.settings
    own: dict[str, Any] = {name: None for name, rule in rules_of(type(settings)).items() if rule.again}
    if tests and hasattr(settings, "tests"):
        names = tuple(test.name for test in like.manifest.inputs.tests)
        with suppress(UsageError):  # tests of a file, or given as words, have no other name: all of them are measured
            select = select_word_associations if like.manifest.study == "word_association" else select_tests
            select(names)
            own["tests"] = names
    return dataclasses.replace(settings, **own)
