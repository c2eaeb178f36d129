"""The figure of a comparison: both models side by side, tests by their verdict, what is worse first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from markupsafe import Markup

from biassay.pages.effects import EffectRow, EffectRows, draw_effects
from biassay.pages.gate import said_of
from biassay.pages.overview import CHECKS, SURE, drawable, effect_of_finding, overview
from biassay.results.comparison import Comparison
from biassay.results.findings import Finding
from biassay.results.verdicts import Outcome, Verdict
from biassay.studies.associations.findings import findings_in_short

__all__ = ["comparison_figure"]

_TITLES: Mapping[Outcome, str] = {
    "worse": "Worse",
    "lost": "Measured on the old model only",
    "cannot tell": "Cannot tell",
    "no worse": "No worse",
    "not measured": "Measured on neither model",
}
"""From the worst verdict on."""


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
    return draw_effects(
        list(_groups(by_test, found.verdicts, models)),
        models,
        title="Effect size d on the old and the new model, with intervals.",
        caption="Tests about people by their verdict: is the association stronger on the new model, in either "
        "direction?",
        sure=SURE,
        reach=2.0,
    )


def _groups(
    by_test: Mapping[str, Sequence[Finding]], verdicts: Sequence[Verdict], models: Sequence[str]
) -> Iterator[EffectRows]:
    of_test: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        of_test.setdefault(verdict.test, []).append(verdict)
    worst = {test: min((own.outcome for own in same), key=list(_TITLES).index) for test, same in of_test.items()}
    for outcome, title in _TITLES.items():
        rows = tuple(
            _row(by_test[test], models, of_test[test])
            for test, found in worst.items()
            if found == outcome and test in by_test
        )
        if rows:
            yield EffectRows(title, rows, said=f"{len(rows):,} of {len(of_test):,} tests")
    checks = tuple(_row(same, models, ()) for same in by_test.values() if same[0].about == "method")
    if checks:
        yield EffectRows(CHECKS, checks, folded=True)


def _row(findings: Sequence[Finding], models: Sequence[str], verdicts: Sequence[Verdict]) -> EffectRow:
    first = findings[0]
    effects = tuple(effect_of_finding(one, models.index(one.model)) for one in findings)
    several = len(models) > 2
    said = [f"{verdict.model}: {said_of(verdict)}" if several else said_of(verdict) for verdict in verdicts]
    return EffectRow(first.title, first.item, effects, tuple(said))
