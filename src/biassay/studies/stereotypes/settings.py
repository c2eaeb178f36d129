"""What can be chosen for stereotypes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from biassay.studies.settings import MOST_DRAWS, setting
from biassay.studies.stereotypes.group_ceat import CEAT
from biassay.studies.stereotypes.word_associations import MEASURES, VARIANTS, Measure

__all__ = ["ALL_MEASURES", "PRIORS", "Prior", "Settings"]

Prior = Literal["mask", "word"]
PRIORS: tuple[Prior, ...] = get_args(Prior)
ALL_MEASURES = (*MEASURES, CEAT)


@dataclass(frozen=True)
class Settings:
    """Choices that hold for a whole run of stereotypes."""

    measures: tuple[str, ...] = setting(
        MEASURES,
        "May be given several times.  [default: all but ceat]",
        choices=ALL_MEASURES,
        many=True,
        option="measure",
    )
    groups: tuple[str, ...] = setting(
        (), "Names, patterns or domains.  [default: all groups]", many=True, option="group", metavar="NAME"
    )
    templates: tuple[str, ...] = setting(
        (), "Names, patterns or kinds.  [default: all templates]", many=True, option="template", metavar="NAME"
    )
    files: tuple[str, ...] = setting(
        (), "A file of your own groups, traits, templates.", many=True, option="with", metavar="FILE"
    )
    contexts: str | None = setting(
        None, "For the measure ceat: a file made by `biassay contexts --abc`.", metavar="FILE"
    )
    min_contexts: int = setting(5, "For the measure ceat: a word with fewer contexts is left out.", low=1)
    human: str | None = setting(None, "Human judgements to compare with.", metavar="FILE")
    annotators: tuple[tuple[str, str], ...] = setting(
        (),
        "Compare also with these annotators only; may be given several times.",
        many=True,
        metavar="FIELD=VALUE",
    )
    prior: Literal["mask", "word"] = setting(
        "mask", "What a group is compared with: itself masked, or 'person' and 'people'.", choices=PRIORS
    )
    variant: Literal["paper", "cao2022-code"] = setting("paper", "Form of the measures.", choices=VARIANTS)
    all_adjectives: bool = setting(False, "Take the median over all adjectives of a trait.")
    intersections: bool = setting(
        False,
        "Also ask about pairs of the chosen groups; if all are of one domain, about their pairs with all other groups.",
    )
    n_bootstrap: int = setting(
        1000, "Samples of bootstrap and of split halves.", low=10, high=MOST_DRAWS, aliases=("draws",)
    )
    seed: int = setting(0, "For what is drawn.", low=0)

    @property
    def by_templates(self) -> tuple[Measure, ...]:
        """The measures that ask a model to fill blanks, each once."""
        return tuple(name for name in dict.fromkeys(self.measures) if name != CEAT)  # type: ignore[misc]
