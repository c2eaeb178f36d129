"""The figure of a comparison: both models side by side, tests by their verdict, what is worse first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from markupsafe import Markup

from biassay.pages.effects import EffectRow, EffectRows, draw_effects
from biassay.pages.gate import by_urgency, said_of
from biassay.pages.overview import CHECKS, drawable, effect_of_finding, overview, scale_of
from biassay.results.comparison import Comparison
from biassay.results.findings import Finding
from biassay.results.verdicts import OUTCOMES, Outcome, Verdict
from biassay.studies.associations.findings import findings_in_short

__all__ = ["comparison_figure"]

_TITLES: Mapping[Outcome, str] = {
    "worse": "Worse",
    "missing": "Measured on the old model only",
    "inconclusive": "Inconclusive",
    "better": "Better",
    "no_worse": "No worse",
    "not_measured": "Measured on neither model",
}


def comparison_figure(found: Comparison) -> Markup | None:
    """Effects on all models, the first of them the one that the others are compared with."""
    (gathered,) = found.gathered
    findings = drawable(findings_in_short(gathered.run))
    if not found.verdicts:
        return overview(findings)
    models = [found.baseline, *found.models]
    by_test: dict[str, list[Finding]] = {}
    for one in sorted(findings, key=lambda one: models.index(one.model)):
        by_test.setdefault(one.item, []).append(one)
    caption = "Social-bias tests by verdict: did the association move towards the stereotype? Effect sizes d."
    return draw_effects(
        list(_groups(by_test, found.verdicts, models)), models, caption=caption, **scale_of(findings, len(models))
    )


def _groups(
    by_test: Mapping[str, Sequence[Finding]], verdicts: Sequence[Verdict], models: Sequence[str]
) -> Iterator[EffectRows]:
    for model in models[1:]:
        own = [verdict for verdict in verdicts if verdict.model == model]
        front = f"{model}: " if len(models) > 2 else ""
        for outcome in OUTCOMES:
            same = by_urgency([verdict for verdict in own if verdict.outcome == outcome and verdict.test in by_test])
            if same:
                rows = tuple(_row(_of(by_test[one.test], models[0], model), models, one) for one in same)
                yield EffectRows(f"{front}{_TITLES[outcome]}", rows, said=f"{len(rows):,} of {len(own):,} tests")
    judged = {verdict.test for verdict in verdicts}
    others = [same for test, same in by_test.items() if test not in judged and same[0].about != "method"]
    if others:
        yield EffectRows("Measured on the new model only", tuple(_row(same, models) for same in others))
    checks = tuple(_row(same, models) for same in by_test.values() if same[0].about == "method")
    if checks:
        yield EffectRows(CHECKS, checks, folded=True)


def _of(findings: Sequence[Finding], *models: str) -> list[Finding]:
    return [one for one in findings if one.model in models]


def _row(findings: Sequence[Finding], models: Sequence[str], verdict: Verdict | None = None) -> EffectRow:
    first = findings[0]
    effects = tuple(effect_of_finding(one, models.index(one.model)) for one in findings)
    return EffectRow(first.title, first.item, effects, () if verdict is None else (said_of(verdict),))
