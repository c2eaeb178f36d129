"""Settings of word discovery."""

from __future__ import annotations

from dataclasses import dataclass

from biassay.stats.detection import COMPARES, RULES, Compare, Rule
from biassay.studies.settings import (
    MAX_DRAWS,
    file_setting,
    level_setting,
    list_setting,
    seed_setting,
    setting,
    share_setting,
    statistic_setting,
    to_absolute_file,
)

GROUPS = "guo2021-groups"


@dataclass(frozen=True)
class DiscoverySettings:
    """Settings of a search for the words of groups."""

    groups: tuple[str, ...] = list_setting("Search for the words of these groups.")
    grouping: str = setting(
        GROUPS,
        "Compare with the other groups of this grouping, by name or from your own file.",
        convert=to_absolute_file,
        metavar="NAME|FILE",
    )
    words: str | None = file_setting("Search these words, one per line, instead of the whole vocabulary.")
    own_words: tuple[str, ...] | None = setting(None, "Words to search, given from Python.", hidden=True)
    threshold: float | None = statistic_setting(
        None, "Count scores above this threshold.  [default: the one that fits the rated words best]"
    )
    rule: Rule = statistic_setting(
        "any",
        "Exclude a word from the emergent ones if any, or only if all, of the group's categories score above the "
        "threshold.",
        choices=RULES,
    )
    compare: Compare = statistic_setting(
        "any",
        "Require a score above the threshold against any other group (IBD), or against every one.",
        choices=COMPARES,
    )
    positive_only: bool = statistic_setting(True, "Choose among positive thresholds only.", negated_flag="either-sign")
    n_permutations: int = statistic_setting(
        99_999,
        "Permute names between groups at most this often. Words that chance explains easily stop earlier.",
        low=1,
        high=MAX_DRAWS,
    )
    alpha: float = level_setting(0.05, "Accept this share of false discoveries among the words.")
    # A third: the embedded vectors lack as many names of one bundled group.
    max_unknown: float = share_setting(0.34, "Skip a group if more than this share of its names is out of vocabulary.")
    keep: int = setting(1000, "Keep this many words of each list in the results.", low=1)
    seed: int = seed_setting()
