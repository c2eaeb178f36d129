"""Settings of debiasing."""

from __future__ import annotations

from dataclasses import dataclass

from biassay.studies.audit.settings import AuditSettings
from biassay.studies.settings import (
    file_setting,
    get_setting_specs,
    level_setting,
    list_setting,
    seed_setting,
    setting,
    to_absolute_file,
)

_AUDIT = get_setting_specs(AuditSettings)


@dataclass(frozen=True)
class DebiasingSettings:
    """Settings of a comparison of a model before and after a concept is erased."""

    concept: str = setting(
        "gender",
        "Erase this concept: a name from `biassay erasure`, or a file of words.",
        convert=to_absolute_file,
        metavar="NAME|FILE.toml",
    )
    method: tuple[str, ...] = setting(
        ("leace",), "Erase it by these methods (`biassay erasure`).", many=True, metavar="NAME[,...]"
    )
    tests: tuple[str, ...] = list_setting(
        "Compare these association tests; the concept is not fitted on their words.  [default: those of the concept]",
        "PATTERN[,...]",
        convert=to_absolute_file,
    )
    documents: str | None = setting(
        None,
        "Audit names in these documents, as in `biassay audit`.  [default: 24 short résumés of biassay]",
        convert=_AUDIT["documents"].convert,
        metavar="DIR|FILE",
    )
    query: tuple[str, ...] = list_setting(
        _AUDIT["query"].help, "FILE|TEXT", split=False, convert=_AUDIT["query"].convert
    )
    names: str | None = setting(
        None,
        "Draw names from this list or file, without those that the concept is fitted on.  [default: of the concept]",
        convert=_AUDIT["names"].convert,
        metavar="NAME|FILE",
    )
    by: tuple[str, ...] = list_setting(
        "Group names by these columns of the list.  [default: those of the concept]", "COLUMN[,...]"
    )
    n_names: int | None = setting(None, _AUDIT["n_names"].help, low=2)
    similarity: str | None = file_setting(
        "Measure what is lost on these word pairs: a table with columns word_1, word_2 and similarity.  [default: 59 "
        "pairs of biassay]"
    )
    alpha: float = level_setting()
    seed: int = seed_setting()
