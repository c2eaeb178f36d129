"""IBD and EIBD as a study: names, rated words and, where a model lists none itself, words to search are asked about."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from biassay.answers.answers import Abilities, Answers
from biassay.results.data import RunData
from biassay.results.findings import Finding
from biassay.results.storage import Fault, Older, Types
from biassay.studies.discovery.columns import TABLES
from biassay.studies.discovery.inputs import DiscoveryInputs, open_inputs
from biassay.studies.discovery.making import Making
from biassay.studies.discovery.panel import known_rows, make_panel
from biassay.studies.discovery.records import InputsRecord, ModelRow
from biassay.studies.discovery.search import Search
from biassay.studies.discovery.settings import Settings
from biassay.studies.discovery.stored import find_faults
from biassay.studies.discovery.validation import validate
from biassay.studies.seeds import seed_of
from biassay.studies.study import Ability, Event, Lost, Progress, Requests, Row, Study

if TYPE_CHECKING:
    from biassay.pages.presenter import Presenter

__all__ = ["STUDY"]

_ROWS = 8192


class _Discovery(Study):
    name = "discovery"
    title = "Words associated with groups"
    types = Types(Settings, InputsRecord, TABLES)

    @cached_property
    def presenter(self) -> Presenter:
        from biassay.studies.discovery.presenter import DiscoveryPresenter

        return DiscoveryPresenter()

    def open(self, settings: Settings) -> DiscoveryInputs:
        return open_inputs(settings)

    def asks(self, settings: Settings) -> tuple[Ability, ...]:  # noqa: ARG002
        return ("texts",)

    def decides(self, inputs: DiscoveryInputs) -> Any:
        return inputs.record, inputs.grouping, inputs.targets

    def requests(self, inputs: DiscoveryInputs, abilities: Abilities) -> Requests:
        texts = (*inputs.names, *inputs.grouping.validation_words, *inputs.searched(abilities))
        return Requests(tuple(dict.fromkeys(texts)))

    def measure(self, inputs: DiscoveryInputs, model: Answers, everyone: Sequence[Answers]) -> Iterator[Event]:  # noqa: ARG002
        grouping, settings = inputs.grouping, inputs.settings
        panel = make_panel(grouping, model.read_texts(inputs.names), settings.max_lost, model.abilities.lost_hint)
        rated, vectors, rated_lost = _known(model, grouping.validation_words)
        trials = {target.name: validate(panel, target, rated, vectors, settings) for target in inputs.targets}
        thresholds = {name: (trial.threshold, trial.threshold_emergent) for name, trial in trials.items()}
        rng = np.random.default_rng(seed_of(settings.seed, grouping.name, "names"))
        search = Search(panel, inputs.targets, thresholds, settings, rng)
        unknown = yield from _through(search, inputs, model)
        found = search.ranked()
        for target in inputs.targets:
            yield from Making(model.identity, grouping, target).events(trials[target.name], found[target.name])
        words_lost = () if inputs.listed is None else tuple(unknown)
        searched = (model.identity.name, model.identity.options, inputs.vocabulary(model.abilities))
        lost = dict(panel.lost), tuple(rated_lost), words_lost
        yield Row("models", ModelRow(*searched, *lost, dict(panel.similar)))
        yield Lost((*(name for names in panel.lost.values() for name in names), *rated_lost, *words_lost))

    def check_stored(self, run: RunData) -> Iterator[Fault]:
        yield from super().check_stored(run)
        yield from find_faults(run)

    def findings(self, run: RunData) -> Sequence[Finding]:
        from biassay.studies.discovery.findings import findings_of

        return findings_of(run)

    def upgrade(self, folder: Path, manifest: dict[str, Any], results: dict[str, Any]) -> Older:  # noqa: ARG002
        from biassay.studies.discovery.older import upgrade

        return upgrade(manifest, results)


def _known(model: Answers, words: Sequence[str]) -> tuple[list[str], NDArray[np.floating], list[str]]:
    """Words that the model knows, their vectors, and those that it does not know."""
    encoded = model.read_texts(words)
    known = known_rows(encoded)
    there = [words[row] for row in np.flatnonzero(known).tolist()]
    return there, encoded.vectors[known], [words[row] for row in np.flatnonzero(~known).tolist()]


def _through(search: Search, inputs: DiscoveryInputs, model: Answers) -> Generator[Event, None, list[str]]:
    """Go through the vocabulary block by block; returns the words asked about that the model does not know."""
    if inputs.streamed(model.abilities):
        for block in model.vocabulary():
            search.add(block.words, block.vectors)
            yield Progress(block.unit, block.done, block.total)
        return []
    words, lost = inputs.searched(model.abilities), list[str]()
    for at in range(0, len(words), _ROWS):
        there, vectors, unknown = _known(model, words[at : at + _ROWS])
        search.add(there, vectors)
        lost += unknown
        yield Progress("words", min(at + _ROWS, len(words)), len(words))
    return lost


STUDY = _Discovery()
