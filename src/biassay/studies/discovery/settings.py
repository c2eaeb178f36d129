"""Settings of word discovery."""

from __future__ import annotations

from dataclasses import dataclass

from biassay.stats.detection import COMPARES, RULES, Compare, Rule
from biassay.studies.settings import MAX_DRAWS, setting, to_absolute_file, to_absolute_path

__all__ = ["GROUPS", "DiscoverySettings"]

GROUPS = "guo2021-groups"


@dataclass(frozen=True)
class DiscoverySettings:
    """Settings of a search for the words of groups."""

    groups: tuple[str, ...] = setting((), "Search for the words of these groups.", many=True, metavar="NAME[,...]")
    grouping: str = setting(
        GROUPS,
        "Compare with the other groups of this grouping, by name or from your own file.",
        convert=to_absolute_file,
        metavar="NAME|FILE",
    )
    words: str | None = setting(
        None,
        "Search these words, one per line, instead of the whole vocabulary.",
        convert=to_absolute_path,
        metavar="FILE",
    )
    own_words: tuple[str, ...] | None = setting(None, "Words to search, given from Python.", hidden=True)
    threshold: float | None = setting(
        None, "Count scores above this threshold.  [default: the one that fits the rated words best]"
    )
    rule: Rule = setting(
        "any",
        "Exclude a word from the emergent ones if any, or only if all, of the group's categories score above the "
        "threshold.",
        choices=RULES,
    )
    compare: Compare = setting(
        "any",
        "Require a score above the threshold against any other group (IBD), or against every one.",
        choices=COMPARES,
    )
    positive_only: bool = setting(True, "Choose among positive thresholds only.", negated_flag="either-sign")
    n_permutations: int = setting(
        99_999,
        "Permute names between groups at most this often. Words that chance explains easily stop earlier.",
        low=1,
        high=MAX_DRAWS,
    )
    alpha: float = setting(
        0.05, "Accept this share of false discoveries among the words.", low=0.0, high=1.0, exclusive=True
    )
    max_unknown: float = setting(
        0.34,  # a third: the embedded vectors lack as many names of one bundled group
        "Skip a group if more than this share of its names is out of vocabulary.",
        low=0.0,
        high=1.0,
    )
    keep: int = setting(1000, "Keep this many words of each list in the results.", low=1)
    seed: int = setting(0, "Random seed.", low=0)
