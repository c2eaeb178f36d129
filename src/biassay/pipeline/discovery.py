"""IBD and EIBD on one page: names and words become vectors, vectors become scores, scores become findings.

Vectors are kept as in any run, so that a search that was stopped encodes nothing twice. The search itself goes through
the vocabulary once, block by block.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from biassay.encoders.base import Encoded, Encoder
from biassay.encoders.python import wrap
from biassay.encoders.registry import open_as
from biassay.encoders.static import frequent_words
from biassay.encoders.vocabulary import HasVocabulary
from biassay.errors import MeasurementError, StimulusError, UsageError
from biassay.files import default_cache, read_text
from biassay.measures.discovery import Search
from biassay.measures.panel import known_rows, make_panel
from biassay.measures.validation import validate
from biassay.pipeline.common import Listener, PathLike, Silent, check_free, taken_back_if_empty, tell_where_texts_go
from biassay.results.discovery import DUAL_USE, KIND, Discovery, DiscoveryManifest
from biassay.results.making import beginning, identified, libraries, now
from biassay.results.making_discovery import findings_of
from biassay.results.run import make_folder
from biassay.stats.detection import COMPARES, RULES, Compare, Rule
from biassay.stats.permutation import check_choice
from biassay.stimuli.catalogue import select_grouping
from biassay.stimuli.groups import Group, Grouping
from biassay.studies.presenters import write_report
from biassay.studies.seeds import seed_of
from biassay.vectors.codecs import TEXTS
from biassay.vectors.fill import AskedTexts, ask_missing
from biassay.vectors.store import ModelStore, VectorStore

__all__ = ["GROUPS", "MAX_LOST", "PERMUTATIONS", "discover"]

GROUPS = "guo2021-groups"
PERMUTATIONS = 99_999
MAX_LOST = 0.34  # a third: of the names of one shipped group the embedded vectors lack as many
_ROWS = 8192


@dataclass(frozen=True)
class _Settings:
    threshold: float | None
    rule: Rule
    compare: Compare
    positive_only: bool
    permutations: int
    alpha: float
    max_lost: float
    keep: int
    seed: int


def discover(
    model: object = "glove",
    group: str | Sequence[str] = (),
    *,
    groups: str | PathLike = GROUPS,
    words: PathLike | Iterable[str] | None = None,
    threshold: float | None = None,
    rule: Rule = "any",
    compare: Compare = "any",
    positive_only: bool = True,
    permutations: int = PERMUTATIONS,
    alpha: float = 0.05,
    max_lost: float = MAX_LOST,
    keep: int = 1000,
    seed: int = 0,
    out: PathLike | None = None,
    cache: PathLike | None = None,
    listener: Listener | None = None,
) -> Discovery:
    """Find the words that a model ties to intersectional groups (IBD), and those it ties to no category of them (EIBD).

    Parameters
    ----------
    model : str or object
        A model string, or an object with ``encode(texts) -> array``.
    group : str or list of str
        The groups to look at; each is compared with all others of its grouping.
    groups : str or path
        The grouping: a name of the catalogue or a TOML file with ``[groups.NAME]``.
    words : path or list of str, optional
        The words to search, one a line in a file. By default the whole vocabulary of word vectors; of other models
        the 20,000 words that the embedded vectors have as most frequent.
    threshold : float, optional
        Scores above it count. By default the one that fits the validated words of the group best, or 0.8 where there
        are none.
    rule : {"any", "all"}
        Whether a word is emergent only if no constituent score is above the threshold, or unless all are.
    compare : {"any", "every"}
        Whether a word must score above the threshold against at least one other group, which is IBD, or against every
        other group.
    positive_only : bool
        Whether only positive thresholds are chosen from, as the paper says.
    permutations : int
        How often names are dealt anew to the groups, at most; the smallest p-value is 1 / (permutations + 1).
    alpha : float
        The share of false findings that is accepted among those reported, over the whole vocabulary.
    max_lost : float
        The largest share of a group's names that the model may not know.
    keep : int
        How many of the words that rank highest are kept, of each list.
    seed : int
        Of the permutations.
    out : path, optional
        A new folder for the findings.
    cache : path, optional
        Where vectors are kept; by default the user's cache folder.
    """
    check_choice("rule", rule, RULES)
    check_choice("compare", compare, COMPARES)
    settings = _Settings(threshold, rule, compare, positive_only, permutations, alpha, max_lost, keep, seed)
    _check(settings)
    grouping = select_grouping(str(groups))
    names = (group,) if isinstance(group, str) else tuple(dict.fromkeys(group))
    if not names:
        raise UsageError(f"name at least one group: {', '.join(g.name for g in grouping.groups)}")
    targets = tuple(grouping.group(name) for name in names)
    folder = None if out is None else Path(out)
    if folder is not None:
        check_free(folder)
    listed = None if words is None else _listed(words)
    encoder = open_as(model, "texts") if isinstance(model, str) else wrap(model)
    text = model if isinstance(model, str) else encoder.identity.name
    store = VectorStore(Path(cache) if cache is not None else default_cache()).of(encoder.identity, TEXTS)
    work = _Work(text, encoder, store, grouping, targets, settings, listener or Silent())
    if folder is None:
        return work.carry_out(listed)
    with taken_back_if_empty(folder, also=(MeasurementError, KeyboardInterrupt)):
        make_folder(folder)  # before the work: that it cannot be made should not come after
        found = work.carry_out(listed)
        found.save(folder)
        write_report(found, folder)
    return found


def _check(settings: _Settings) -> None:
    for name, value in (("alpha", settings.alpha), ("max_lost", settings.max_lost)):
        if not 0.0 <= value <= 1.0 or (name == "alpha" and value in (0.0, 1.0)):
            raise UsageError(f"{name} must lie between 0 and 1, got {value}")
    if settings.threshold is not None and not np.isfinite(settings.threshold):
        raise UsageError(f"the threshold must be a number, got {settings.threshold}")
    for name, count in (("permutations", settings.permutations), ("keep", settings.keep)):
        if count < 1:
            raise UsageError(f"{name} must be at least 1, got {count}")
    if settings.seed < 0:
        raise UsageError(f"the seed must not be negative, got {settings.seed}")


@dataclass(frozen=True)
class _Listed:
    """Words that were given, each once, and where they come from."""

    source: str
    words: tuple[str, ...]

    @property
    def digest(self) -> str:
        return hashlib.blake2b("\n".join(self.words).encode(), digest_size=8).hexdigest()


def _listed(words: PathLike | Iterable[str]) -> _Listed:
    """Words of a list or of a file, one a line."""
    if not isinstance(words, str | os.PathLike):
        found = _Listed("a list of words", tuple(dict.fromkeys(filter(str.strip, map(str, words)))))
    else:
        path = Path(words)
        lines = read_text(path).splitlines()
        found = _Listed(str(path), tuple(dict.fromkeys(filter(None, map(str.strip, lines)))))
    if not found.words:
        raise StimulusError(f"{found.source}: there are no words; expected one a line")
    return found


@dataclass(frozen=True)
class _Work:
    """One model, its groups, and what is asked of them."""

    text: str
    encoder: Encoder
    store: ModelStore[str, Encoded]
    grouping: Grouping
    targets: tuple[Group, ...]
    settings: _Settings
    listener: Listener
    encoded: list[int] = dataclasses.field(default_factory=list)

    def carry_out(self, listed: _Listed | None) -> Discovery:
        began = time.monotonic()
        manifest = beginning()
        tell_where_texts_go(self.encoder.identity, self.listener)
        names = [name for group in self.grouping.groups for name in group.names]
        validation = self.grouping.validation_words
        encoded = self._encoded([*names, *validation])
        panel = make_panel(
            self.grouping, encoded.rows(range(len(names))), self.settings.max_lost, self.encoder.identity.lost_hint
        )
        of_words = encoded.rows(range(len(names), len(names) + len(validation)))
        known = known_rows(of_words)
        tested = [word for word, there in zip(validation, known, strict=True) if there]
        lost = [word for word, there in zip(validation, known, strict=True) if not there]
        trials = {
            target.name: validate(
                panel,
                target,
                tested,
                of_words.vectors[known],
                self.settings.rule,
                self.settings.compare,
                threshold=self.settings.threshold,
                positive_only=self.settings.positive_only,
            )
            for target in self.targets
        }
        thresholds = {name: (trial.threshold, trial.threshold_emergent) for name, trial in trials.items()}
        rng = np.random.default_rng(seed_of(self.settings.seed, self.grouping.name, "names"))
        search = Search(
            panel,
            self.targets,
            thresholds,
            self.settings.rule,
            self.settings.compare,
            permutations=self.settings.permutations,
            keep=self.settings.keep,
            rng=rng,
        )
        unknown = self._search(search, listed)
        found = search.found(self.settings.alpha)
        results = tuple(
            findings_of(self.grouping, target, trials[target.name], found[target.name]) for target in self.targets
        )
        record = dataclasses.replace(
            identified(self.text, self.encoder.identity),
            texts=len({*names, *validation, *self._searched(listed)}),
            encoded=sum(self.encoded),
            seconds=round(time.monotonic() - began, 3),
        )
        manifest |= {"status": "complete", "finished": now(), "versions": manifest["versions"] | libraries([record])}
        asked = {field.name: getattr(self.settings, field.name) for field in dataclasses.fields(self.settings)}
        return Discovery(
            DiscoveryManifest(
                **manifest,
                models=(record,),
                kind=KIND,
                grouping=self.grouping.name,
                grouping_title=self.grouping.title,
                grouping_digest=self.grouping.digest,
                citation=self.grouping.source.citation,
                licence=self.grouping.source.licence,
                groups={group.name: group.names for group in self.grouping.groups},
                labels={group.name: group.label for group in self.grouping.groups},
                names_lost=dict(panel.lost),
                validation_lost=tuple(lost),
                words_lost=tuple(unknown),
                vocabulary=self._vocabulary(listed),
                vocabulary_digest=None if listed is None else listed.digest,
                note=DUAL_USE,
                **asked,
            ),
            results,
        )

    def _encoded(self, texts: Sequence[str]) -> Encoded:
        self.encoded.append(
            ask_missing(
                AskedTexts(self.encoder),
                texts,
                self.store,
                lambda done, total: self.listener.encoding(self.text, done, total),
            )
        )
        return self.store.get(texts)

    def _vocabulary(self, listed: _Listed | None) -> str:
        if listed is not None:
            return listed.source
        has_own = isinstance(self.encoder, HasVocabulary)
        return "the words of the model" if has_own else "the most frequent words of the embedded vectors"

    def _search(self, search: Search, listed: _Listed | None) -> list[str]:
        """Go through the vocabulary; returns the words asked for that are not known."""
        if listed is None and isinstance(self.encoder, HasVocabulary):
            for block in self.encoder.vocabulary():
                search.add(block.words, block.vectors)
                self.listener.searching(self.text, block.done, block.total)
            return []
        words = self._searched(listed)
        self._encoded(words)  # all at once, so that one bar shows how far it is
        unknown = []
        for at, batch in _batches(words):
            encoded = self.store.get(batch)
            known = known_rows(encoded)
            unknown += [word for word, there in zip(batch, known, strict=True) if not there]
            search.add([word for word, there in zip(batch, known, strict=True) if there], encoded.vectors[known])
            self.listener.searching(self.text, at + len(batch), len(words))
        return unknown if listed is not None else []

    def _searched(self, listed: _Listed | None) -> Sequence[str]:
        """The words that are encoded for the search: none where the model lists its own."""
        if listed is not None:
            return self._distinct(listed.words)
        return () if isinstance(self.encoder, HasVocabulary) else frequent_words()

    def _distinct(self, words: Sequence[str]) -> Sequence[str]:
        """Each word once, and of words that differ in case once only where the model does not see the difference."""
        if not getattr(self.encoder, "folds_case", False):
            return words
        return tuple({word.lower(): word for word in reversed(words)}.values())[::-1]


def _batches(words: Sequence[str]) -> Iterator[tuple[int, Sequence[str]]]:
    for at in range(0, len(words), _ROWS):
        yield at, words[at : at + _ROWS]
