"""Registry of built-in studies and of those added through the entry point ``biassay.studies``."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from biassay.errors import RunFolderError, UnknownNameError, UsageError
from biassay.packages import check_unique_name, get_plugin_names, load_plugins

if TYPE_CHECKING:
    from biassay.studies.study import Study

__all__ = ["COMMANDS", "find_run_study", "get_study", "study_commands", "study_names"]

_GROUP = "biassay.studies"
_STUDIES: Mapping[str, str] = {
    "associations": "biassay.studies.associations.study:STUDY",
    "discovery": "biassay.studies.discovery.study:STUDY",
    "stereotypes": "biassay.studies.stereotypes.study:STUDY",
    "robustness": "biassay.studies.robustness.study:STUDY",
    "word_association": "biassay.studies.word_association.study:STUDY",
    "benchmarks": "biassay.studies.benchmarks.study:STUDY",
}


COMMANDS: Mapping[str, str] = {
    "associations": "run",
    "discovery": "discover",
    "word_association": "ask",
    "benchmarks": "benchmark",
}
"""Studies of biassay whose command has another name than they have."""


def study_commands() -> tuple[str, ...]:
    """The commands of biassay's own studies. Nothing is imported."""
    return tuple(COMMANDS.get(name, name) for name in _STUDIES)


def study_names() -> tuple[str, ...]:
    return (*_STUDIES, *_load_plugin_studies())


def _load_plugin_studies() -> Mapping[str, Study]:
    from biassay.studies.study import Study, validate_study

    return load_plugins(_GROUP, _STUDIES, Study, validate_study)


def get_study(name: str) -> Study:
    """A study, imported when it is first needed."""
    if name not in _STUDIES:
        check_unique_name(_GROUP, name)
    if name in _STUDIES:
        module, _, attribute = _STUDIES[name].partition(":")
        from biassay.studies.study import validate_study

        study: Study = getattr(import_module(module), attribute)
        if study.name != name:
            raise UsageError(f"{_STUDIES[name]} calls itself {study.name!r}; the registry calls it {name!r}")
        return validate_study(study)
    added = _load_plugin_studies()
    if name not in added:
        raise UnknownNameError("study", name, (*_STUDIES, *added))
    return added[name]


def find_run_study(name: str, package: str) -> Study:
    """The study of a run folder; where it is not installed, the error says what to install."""
    if name not in _STUDIES and name not in get_plugin_names(_GROUP):
        raise RunFolderError(
            f"the run is of the study {name!r} of the package {package!r}, which is not installed; install the package"
        )
    return get_study(name)
