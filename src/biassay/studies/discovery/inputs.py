"""What is searched for words of groups: the groups and words that settings name."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from biassay.answers.answers import Abilities
from biassay.errors import StimulusError, UsageError
from biassay.files import read_text
from biassay.models.static import frequent_words
from biassay.stimuli.catalogue import select_grouping
from biassay.stimuli.groups import Group, Grouping
from biassay.studies.discovery.records import InputsRecord
from biassay.studies.discovery.settings import Settings

__all__ = ["DiscoveryInputs", "Listed", "open_inputs"]


@dataclass(frozen=True)
class Listed:
    """Words that were given, each once, and where they come from."""

    source: str
    words: tuple[str, ...]

    @property
    def digest(self) -> str:
        return hashlib.blake2b("\n".join(self.words).encode(), digest_size=8).hexdigest()


@dataclass(frozen=True, eq=False)
class DiscoveryInputs:
    """Groups and words, checked before anything is asked."""

    settings: Settings
    grouping: Grouping
    targets: tuple[Group, ...]
    listed: Listed | None
    record: InputsRecord

    @property
    def names(self) -> list[str]:
        """The names of all groups, group by group."""
        return [name for group in self.grouping.groups for name in group.names]

    def streamed(self, model: Abilities) -> bool:
        """Is the vocabulary of the model itself searched?"""
        return self.listed is None and model.has_vocabulary

    def searched(self, model: Abilities) -> Sequence[str]:
        """The words that are asked about: none where the model lists its own.

        Of words that differ in case only one is left where the model does not see the difference.
        """
        if self.listed is None:
            return () if model.has_vocabulary else frequent_words()
        if not model.folds_case:
            return self.listed.words
        return tuple({word.lower(): word for word in reversed(self.listed.words)}.values())[::-1]

    def vocabulary(self, model: Abilities) -> str:
        """What is searched, in words."""
        if self.listed is not None:
            return self.listed.source
        return "the words of the model" if model.has_vocabulary else "the most frequent words of the embedded vectors"


def open_inputs(settings: Settings) -> DiscoveryInputs:
    """Read what the settings name, and refuse what cannot be searched."""
    grouping = select_grouping(settings.groups)
    if not settings.group:
        raise UsageError(f"name at least one group: {', '.join(group.name for group in grouping.groups)}")
    targets = tuple(grouping.group(name) for name in dict.fromkeys(settings.group))
    if settings.rule == "all" and len(targets[0].belongs) == 1:
        raise UsageError(f"{grouping.name}: the groups stand in one category only, so that --rule all has no meaning")
    listed = _listed(settings)
    record = InputsRecord(
        grouping=grouping.name,
        grouping_title=grouping.title,
        grouping_digest=grouping.digest,
        citation=grouping.source.citation,
        licence=grouping.source.licence,
        groups={group.name: group.names for group in grouping.groups},
        labels={group.name: group.label for group in grouping.groups},
        vocabulary_digest=None if listed is None else listed.digest,
        clusters={group.name: group.clusters for group in grouping.groups if group.clusters},
        language=grouping.source.language,
    )
    return DiscoveryInputs(settings, grouping, targets, listed, record)


def _listed(settings: Settings) -> Listed | None:
    """Words of a list or of a file, one a line."""
    if settings.own_words is not None:
        found = Listed("a list of words", tuple(dict.fromkeys(filter(str.strip, settings.own_words))))
    elif settings.words is not None:
        lines = read_text(Path(settings.words)).splitlines()
        found = Listed(settings.words, tuple(dict.fromkeys(filter(None, map(str.strip, lines)))))
    else:
        return None
    if not found.words:
        raise StimulusError(f"{found.source}: there are no words; expected one a line")
    return found
