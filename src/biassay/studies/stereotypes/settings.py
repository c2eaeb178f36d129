"""Settings of stereotype runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from biassay.errors import UsageError
from biassay.studies.settings import (
    MAX_DRAWS,
    file_setting,
    list_setting,
    seed_setting,
    setting,
    statistic_setting,
    to_absolute_path,
)
from biassay.studies.stereotypes.ilps import MEASURES, VARIANTS, Measure

Prior = Literal["mask", "word"]
PRIORS: tuple[Prior, ...] = get_args(Prior)
CEAT = "ceat"
ALL_MEASURES = (*MEASURES, CEAT)


def _parse_annotators(value: Any) -> Any:
    """Split FIELD=VALUE, as the command line takes it, into a pair."""
    if not isinstance(value, str):
        return tuple(map(str, value))
    field, equals, chosen = value.partition("=")
    if not equals:
        raise UsageError(f"annotators are selected by FIELD=VALUE, got {value!r}")
    return field, chosen


@dataclass(frozen=True)
class StereotypeSettings:
    """Settings of a run of the ABC model."""

    measures: tuple[str, ...] = setting(
        MEASURES,
        f"Choose measures: {', '.join(ALL_MEASURES)}.  [default: all but {CEAT}]",
        choices=ALL_MEASURES,
        many=True,
        metavar="NAME[,...]",
    )
    groups: tuple[str, ...] = list_setting("Select groups by name, pattern or domain.  [default: all]")
    templates: tuple[str, ...] = list_setting("Select templates by name, pattern or kind.  [default: all]")
    files: tuple[str, ...] = list_setting(
        "Add groups, traits and templates from your own file. May be repeated.",
        "FILE",
        split=False,
        convert=to_absolute_path,
    )
    contexts: str | None = file_setting(
        "Use these contexts for the measure ceat, from a file that `biassay contexts --abc` wrote.", section="contexts"
    )
    min_contexts: int = setting(5, "Drop words that occur in fewer contexts. Only for ceat.", low=1, section="contexts")
    human: str | None = file_setting("Compare with the human ratings in this file.")
    annotators: tuple[tuple[str, str], ...] = list_setting(
        "Also compare with these annotators only, such as Gender=Woman. May be repeated.",
        "FIELD=VALUE",
        split=False,
        convert=_parse_annotators,
    )
    prior: Literal["mask", "word"] = statistic_setting(
        "mask", "Compare a group with a masked group, or with 'person' and 'people'.", choices=PRIORS
    )
    variant: Literal["paper", "cao2022-code"] = statistic_setting(
        "paper", "Compute the measures as in the paper, or as in the code released with it.", choices=VARIANTS
    )
    all_adjectives: bool = statistic_setting(False, "Take the median over all adjectives of a trait.")
    intersections: bool = setting(
        False,
        "Also measure pairs of the selected groups. If all are of one domain, pair them with all other groups.",
    )
    n_bootstrap: int = statistic_setting(
        1000, "Draw this many samples for the bootstrap and the split halves.", low=10, high=MAX_DRAWS
    )
    seed: int = seed_setting()

    @property
    def template_measures(self) -> tuple[Measure, ...]:
        """Measures that fill blanks of templates, each once."""
        return tuple(name for name in dict.fromkeys(self.measures) if name != CEAT)  # type: ignore[misc]
