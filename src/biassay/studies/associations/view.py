"""A run of association tests as its page needs it: labels, rows, cells, and what is looked up more than once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from biassay.pages.formats import concept, decimals, format_p, of_time
from biassay.results.data import RunData
from biassay.results.gathering import Gathered
from biassay.results.labels import model_key, model_labels
from biassay.studies.associations.lead import Lead, corrected_p_of, d_interval, effect_of, interval_of, lead_of
from biassay.studies.associations.marks import BY_WORD, lead_p, legend, p_by_word, sides
from biassay.studies.associations.records import Result
from biassay.studies.associations.settings import PAPERS

__all__ = ["EFFECTS", "LEADING", "RunView", "is_check", "random_share"]

EFFECTS: Mapping[Lead | None, str] = {"crossed": "d", "word": "effect", "text": "effect by text", None: "effect"}
LEADING: Mapping[Lead | None, str] = {"crossed": "p", "word": BY_WORD, "text": "p by text", None: "p"}
"""What the effect size and the p-value that lead are called; None: not the same for all results."""


def is_check(result: Result) -> bool:
    """Is it a check of the method, and not about people?"""
    return result.about == "method"


def random_share(result: Result) -> str:
    """How large an effect is, in words; nothing where it is not known."""
    if result.share_random is None:
        return ""
    return f"random word sets reach this effect {of_time(result.share_random, result.random_sets)}"


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
    def results(self) -> list[Result]:
        """As in the run, with the checks of the method behind."""
        return sorted(self.run.results, key=is_check)

    @cached_property
    def tests(self) -> list[Result]:
        """One result of every test, for its name and title."""
        return list({r.test: r for r in reversed(self.results)}.values())[::-1]

    @cached_property
    def cells(self) -> Mapping[tuple[str, str], Result]:
        return {(r.test, self.label(r)): r for r in self.run.results}

    @cached_property
    def lead(self) -> Lead | None:
        """Which numbers lead, where it is the same for all results."""
        leads = {lead_of(r) for r in self.run.results if r.status == "measured"}
        return leads.pop() if len(leads) == 1 else None

    @property
    def of_papers(self) -> bool:
        """Whether all results are as the papers have them."""
        return all(r.protocol in PAPERS for r in self.run.results)

    @property
    def confidence(self) -> str:
        """Of the intervals."""
        return f"{100 * (1 - self.run.manifest.settings.level):g}%"

    @property
    def signs(self) -> str:
        """What the signs beside p-values mean, and in which direction these look."""
        return "; ".join(filter(None, [legend(self.results, "; "), sides(self.results)]))

    def label(self, result: Result) -> str:
        return self.labels[model_key(result)]

    def of_model(self, label: str) -> Iterator[Result]:
        return (r for test in self.tests if (r := self.cells.get((test.test, label))) is not None)

    def interval(self, result: Result) -> str:
        return d_interval(result) if interval_of(result) else "–"

    @staticmethod
    def p_crossed(result: Result) -> str:
        return format_p(result.p_value_crossed) + ("‡" if result.p_value_crossed is None else "")

    def tip(self, result: Result) -> str:
        """All about a cell, in a few words."""
        name = f"{result.test} on {self.label(result)}"
        if result.status != "measured":
            return f"{name}: {result.status}. {result.reason or ''}".strip()
        lead = lead_of(result)
        interval = f", {self.confidence} {self.interval(result)}" if interval_of(result) else ""
        corrected = corrected_p_of(result)
        after = "" if corrected is None else f" (after correction {format_p(corrected)})"
        by_word = "" if lead == "word" else f", {BY_WORD} {p_by_word(result)}"
        share = f" {said[0].upper()}{said[1:]}." if (said := random_share(result)) else ""
        return (
            f"{name}. {result.title}. {EFFECTS[lead]} {decimals(effect_of(result))}{interval}; {LEADING[lead]} "
            f"{lead_p(result)}{after}{by_word}.{share} {concept(result.targ1)}, {concept(result.targ2)}; "
            f"{concept(result.attr1)}, {concept(result.attr2)}."
        )
