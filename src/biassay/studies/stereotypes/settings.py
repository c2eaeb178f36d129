"""Settings of stereotype runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from biassay.errors import UsageError
from biassay.studies.settings import MAX_DRAWS, setting, to_absolute_path
from biassay.studies.stereotypes.group_ceat import CEAT
from biassay.studies.stereotypes.ilps import MEASURES, VARIANTS, Measure

__all__ = ["ALL_MEASURES", "PRIORS", "Prior", "StereotypeSettings"]

Prior = Literal["mask", "word"]
PRIORS: tuple[Prior, ...] = get_args(Prior)
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
    groups: tuple[str, ...] = setting(
        (), "Select groups by name, pattern or domain.  [default: all]", many=True, metavar="NAME[,...]"
    )
    templates: tuple[str, ...] = setting(
        (), "Select templates by name, pattern or kind.  [default: all]", many=True, metavar="NAME[,...]"
    )
    files: tuple[str, ...] = setting(
        (),
        "Add groups, traits and templates from your own file. May be repeated.",
        many=True,
        split=False,
        convert=to_absolute_path,
        metavar="FILE",
    )
    contexts: str | None = setting(
        None,
        "Use these contexts for the measure ceat, from a file that `biassay contexts --abc` wrote.",
        convert=to_absolute_path,
        metavar="FILE",
    )
    min_contexts: int = setting(5, "Drop words that occur in fewer contexts. Only for ceat.", low=1)
    human: str | None = setting(
        None, "Compare with the human judgements in this file.", convert=to_absolute_path, metavar="FILE"
    )
    annotators: tuple[tuple[str, str], ...] = setting(
        (),
        "Also compare with these annotators only, such as Gender=Woman. May be repeated.",
        many=True,
        split=False,
        convert=_parse_annotators,
        metavar="FIELD=VALUE",
    )
    prior: Literal["mask", "word"] = setting(
        "mask", "Compare a group with a masked group, or with 'person' and 'people'.", choices=PRIORS
    )
    variant: Literal["paper", "cao2022-code"] = setting(
        "paper", "Compute the measures as in the paper, or as in the code released with it.", choices=VARIANTS
    )
    all_adjectives: bool = setting(False, "Take the median over all adjectives of a trait.")
    intersections: bool = setting(
        False,
        "Also measure pairs of the selected groups. If all are of one domain, pair them with all other groups.",
    )
    n_bootstrap: int = setting(
        1000, "Draw this many samples for the bootstrap and the split halves.", low=10, high=MAX_DRAWS
    )
    seed: int = setting(0, "Random seed.", low=0)

    @property
    def template_measures(self) -> tuple[Measure, ...]:
        """Measures that fill blanks of templates, each once."""
        return tuple(name for name in dict.fromkeys(self.measures) if name != CEAT)  # type: ignore[misc]
