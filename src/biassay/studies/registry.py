"""The studies: one line each, and those that other packages add by the entry point ``biassay.studies``."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from biassay.errors import RunFolderError, UnknownNameError, UsageError
from biassay.plugins import load_plugins, plugin_names, refuse_clash

if TYPE_CHECKING:
    from biassay.studies.study import Study

__all__ = ["COMMANDS", "study_commands", "study_named", "study_names", "study_of_run"]

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
    return (*_STUDIES, *_added())


def _added() -> Mapping[str, Study]:
    from biassay.studies.study import Study, checked

    return load_plugins(_GROUP, _STUDIES, Study, checked)


def study_named(name: str) -> Study:
    """A study, imported when it is first needed."""
    if name not in _STUDIES:
        refuse_clash(_GROUP, name)
    if name in _STUDIES:
        module, _, attribute = _STUDIES[name].partition(":")
        from biassay.studies.study import checked

        study: Study = getattr(import_module(module), attribute)
        if study.name != name:
            raise UsageError(f"{_STUDIES[name]} calls itself {study.name!r}; the registry calls it {name!r}")
        return checked(study)
    added = _added()
    if name not in added:
        raise UnknownNameError("study", name, (*_STUDIES, *added))
    return added[name]


def study_of_run(name: str, package: str) -> Study:
    """The study of a run folder; where it is not installed, the error says what to install."""
    if name not in _STUDIES and name not in plugin_names(_GROUP):
        raise RunFolderError(
            f"the run is of the study {name!r} of the package {package!r}, which is not installed; install the package"
        )
    return study_named(name)
