"""The studies: one line each, and those that other packages add by the entry point ``biassay.studies``."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from biassay.errors import RunFolderError, UnknownNameError
from biassay.plugins import load_plugins
from biassay.studies.study import Study

__all__ = ["study_named", "study_names", "study_of_run"]

_STUDIES: Mapping[str, str] = {
    "associations": "biassay.studies.associations.study:STUDY",
    "discovery": "biassay.studies.discovery.study:STUDY",
}


def study_names() -> tuple[str, ...]:
    return (*_STUDIES, *load_plugins("biassay.studies", _STUDIES))


def study_named(name: str) -> Study:
    """A study, imported when it is first needed."""
    if name in _STUDIES:
        module, _, attribute = _STUDIES[name].partition(":")
        study: Study = getattr(import_module(module), attribute)
        return study
    added = load_plugins("biassay.studies", _STUDIES)
    if name not in added:
        raise UnknownNameError("study", name, (*_STUDIES, *added))
    found: Study = added[name]
    return found


def study_of_run(name: str, package: str) -> Study:
    """The study of a run folder; where it is not installed, the error says what to install."""
    if name not in study_names():
        raise RunFolderError(f"the run is of the study {name!r}, which is not installed: pip install {package}")
    return study_named(name)
