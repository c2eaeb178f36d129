"""How word association tests are shown: findings with a figure, tables, and the works they rest on."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from biassay.pages.formats import counted
from biassay.pages.overview import overview
from biassay.pages.plain import Plain
from biassay.pages.publish.citations import Use, uses_of_tests
from biassay.pages.section import Part, Renderer
from biassay.results.data import RunData
from biassay.results.gathering import Gathered

__all__ = ["WordAssociationPresenter"]

_MEANING = (
    "A model was asked which of two group words goes with each of many words. The p, with other words and other group "
    "words or answers, alone decides whether an association holds."
)
_CAPTION = "Right of zero: the stigmatised group gets negative words, the default group positive ones."
_TERMS = {
    "difference": "What is given to the stigmatised group: the mean over negative words less that over positive ones, "
    "as a share of answers or as log-odds. Both orders of the group words count alike.",
    "p": "With other words, and other pairs of group words where there are several, or else other answers.",
    "p, these groups": "With other words and answers, and these very group words.",
    "D": "The published score. A model that gives all words to one group has a D of -0.5, though it says nothing of "
    "the poles; the published test of it takes answers to the same words for independent.",
    "unparsed": "Replies in which nothing could be read by rule. Nothing is guessed.",
}


class WordAssociationPresenter(Plain):
    def part(self, gathered: Gathered, renderer: Renderer) -> Part:
        figure = overview(self._findings(gathered.run), _CAPTION)
        return dataclasses.replace(super().part(gathered, renderer), meaning=_MEANING, figure=figure, terms=_TERMS)

    def _headline(self, run: RunData) -> str:
        tests, prompts = len({row.test for row in run.results}), sum(row.answers for row in run.results)
        models = counted(len(run.manifest.models), "model")
        return f"{models}, {counted(tests, 'test')}; {counted(prompts, 'prompt')}"

    def sources(self, runs: Sequence[RunData]) -> Iterator[Use]:
        return uses_of_tests(runs)

    def methods(self, run: RunData) -> Iterator[Use]:
        yield Use("words as samples of what they stand for (p)", "clark1973")
        yield Use("words and group words, or answers, as crossed samples (p)", "judd2012")
        yield Use("degrees of freedom of the crossed test", "satterthwaite1946")
        if any(row.p_value_holm is not None for row in run.results):
            yield Use("correction for the number of tests", "holm1979")
