"""What can be chosen for the discovery of words."""

from __future__ import annotations

from dataclasses import dataclass

from biassay.stats.detection import COMPARES, RULES, Compare, Rule
from biassay.studies.settings import MOST_DRAWS, setting

__all__ = ["GROUPS", "Settings"]

GROUPS = "guo2021-groups"


@dataclass(frozen=True)
class Settings:
    """Choices that hold for a whole search for the words of groups."""

    group: tuple[str, ...] = setting((), "A group to look at; may be given several times.", many=True, metavar="NAME")
    groups: str = setting(
        GROUPS,
        "The groups it is compared with: a grouping of the catalogue, or your own file.",
        metavar="NAME|FILE",
    )
    words: str | None = setting(None, "Words to search, one a line, instead of the whole vocabulary.", metavar="FILE")
    own_words: tuple[str, ...] | None = setting(None, "Words to search, given from Python.", hidden=True)
    threshold: float | None = setting(None, "Scores above it count.  [default: what fits the rated words best]")
    rule: Rule = setting(
        "any",
        "A word is not emergent if any, or only if all, of the group's categories are above the threshold.",
        choices=RULES,
    )
    compare: Compare = setting(
        "any",
        "A word is associated if it is above the threshold against any other group (IBD), or against every one.",
        choices=COMPARES,
    )
    positive_only: bool = setting(True, "Whether the threshold that fits best must be positive.", off="either-sign")
    n_permutations: int = setting(
        99_999,
        "Of names between groups, at most; words that chance explains easily are left earlier.",
        low=1,
        high=MOST_DRAWS,
        aliases=("permutations",),
    )
    alpha: float = setting(0.05, "Share of false findings accepted among the words.", low=0.0, high=1.0, open=True)
    max_lost: float = setting(
        0.34,  # a third: of the names of one shipped group the embedded vectors lack as many
        "Largest share of a group's names that a model may not know.",
        low=0.0,
        high=1.0,
    )
    keep: int = setting(1000, "Words kept of each list in the results.", low=1)
    seed: int = setting(0, "Of the permutations.", low=0)
