"""A run of association tests as its page needs it: labels, rows, cells, and what is looked up more than once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from biassay.pages.formats import concept, decimals, format_p, interval_text, size_word
from biassay.results.data import RunData
from biassay.results.gathering import Gathered
from biassay.results.labels import model_key, model_labels
from biassay.stats.crossed_effect import Estimate
from biassay.studies.associations.lead import effect_of, interval_of
from biassay.studies.associations.marks import p_by_text, p_by_word
from biassay.studies.associations.records import Result

__all__ = ["RunView"]


@dataclass(frozen=True)
class RunView:
    """Results of one or several runs, those over texts or those over contexts."""

    gathered: Gathered

    @property
    def run(self) -> RunData:
        return self.gathered.run

    @property
    def over_contexts(self) -> bool:
        return self.run.manifest.inputs.contexts is not None

    @property
    def name(self) -> str:
        return "contexts" if self.over_contexts else "texts"

    @cached_property
    def labels(self) -> Mapping[tuple[str, str, str | None], str]:
        return model_labels(self.run)

    @cached_property
    def models(self) -> list[str]:
        return list(self.labels.values())

    @cached_property
    def tests(self) -> list[Result]:
        """One result of every test, for its name and title."""
        return list({r.test: r for r in reversed(self.run.results)}.values())[::-1]

    @cached_property
    def cells(self) -> Mapping[tuple[str, str], Result]:
        return {(r.test, self.label(r)): r for r in self.run.results}

    def label(self, result: Result) -> str:
        return self.labels[model_key(result)]

    def of_model(self, label: str) -> Iterator[Result]:
        return (r for test in self.tests if (r := self.cells.get((test.test, label))) is not None)

    @cached_property
    def _estimates(self) -> dict[tuple[str, str], Estimate | None]:
        return {}

    def estimate(self, result: Result) -> Estimate | None:
        """The effect size that the evidence by word is about, with its interval."""
        key = result.test, self.label(result)
        if key not in self._estimates:
            effect, (low, high) = effect_of(result), interval_of(result) or (None, None)
            self._estimates[key] = None if effect is None else Estimate(effect, low, high, 1.0 - result.alpha)
        return self._estimates[key]

    def interval(self, result: Result) -> str:
        found = self.estimate(result)
        return "–" if found is None else interval_text(found.low, found.high)

    def tip(self, result: Result) -> str:
        """All about a cell, in a few words."""
        name = f"{result.test} on {self.label(result)}"
        if result.effect_size is None:
            return f"{name}: {result.status}. {result.reason or ''}".strip()
        by_word = "" if result.effect_size_by_word is None else f", by word {decimals(result.effect_size_by_word)}"
        first = "p of the paper" if self.over_contexts else "p by text"
        return (
            f"{name}. {result.title}. Effect {decimals(result.effect_size)} ({size_word(result.effect_size)}){by_word}"
            f", 95% {self.interval(result)}. {first} {p_by_text(result)}, p by word {p_by_word(result)}"
            f" (after correction {format_p(result.p_value_by_word_holm)}). {concept(result.targ1)}, "
            f"{concept(result.targ2)}; {concept(result.attr1)}, {concept(result.attr2)}."
        )
