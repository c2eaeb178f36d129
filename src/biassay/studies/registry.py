"""Registry of built-in studies and of those added through the entry point ``biassay.studies``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from biassay.errors import RunFolderError, UnknownNameError, UsageError
from biassay.packages import check_unique_name, get_plugin_names, import_object, load_plugins

if TYPE_CHECKING:
    from biassay.studies.study import Study


_GROUP = "biassay.studies"
_STUDIES: Mapping[str, str] = {
    "associations": "biassay.studies.associations.study:STUDY",
    "discovery": "biassay.studies.discovery.study:STUDY",
    "stereotypes": "biassay.studies.stereotypes.study:STUDY",
    "robustness": "biassay.studies.robustness.study:STUDY",
    "word_association": "biassay.studies.word_association.study:STUDY",
    "benchmarks": "biassay.studies.benchmarks.study:STUDY",
    "audit": "biassay.studies.audit.study:STUDY",
    "prompt_robustness": "biassay.studies.robustness.prompts:STUDY",
    "debiasing": "biassay.studies.debiasing.study:STUDY",
}


COMMANDS: Mapping[str, str] = {
    "associations": "run",
    "discovery": "discover",
    "word_association": "ask",
    "benchmarks": "benchmark",
    "prompt_robustness": "robustness",
    "debiasing": "debias",
}
"""Commands of built-in studies that are not named after their study."""


def study_commands() -> tuple[str, ...]:
    """Return the commands of the built-in studies without importing them."""
    return tuple(dict.fromkeys(COMMANDS.get(name, name) for name in _STUDIES))


def study_names() -> tuple[str, ...]:
    """Return the names of all studies, built-in ones first."""
    return (*_STUDIES, *_load_plugin_studies())


def _load_plugin_studies() -> Mapping[str, Study]:
    from biassay.studies.study import Study, validate_study

    return load_plugins(_GROUP, _STUDIES, Study, validate_study)


def get_study(name: str) -> Study:
    """Return a study by name, importing it on first use."""
    if name not in _STUDIES:
        check_unique_name(_GROUP, name)
    if name in _STUDIES:
        from biassay.studies.study import validate_study

        study: Study = import_object(_STUDIES[name])
        if study.name != name:
            raise UsageError(f"{_STUDIES[name]} calls itself {study.name!r}; the registry calls it {name!r}")
        return validate_study(study)
    added = _load_plugin_studies()
    if name not in added:
        raise UnknownNameError("study", name, (*_STUDIES, *added))
    return added[name]


def find_run_study(name: str, package: str) -> Study:
    """Return the study of a run folder. If it is not installed, the error names the package to install."""
    if name not in _STUDIES and name not in get_plugin_names(_GROUP):
        raise RunFolderError(
            f"the run is of the study {name!r} of the package {package!r}, which is not installed; install the package"
        )
    return get_study(name)
