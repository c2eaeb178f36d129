"""What a page about stereotypes begins with: how models agree with people, and what sets every group apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from biassay.pages.formats import MANY_MODELS, counted
from biassay.pages.overview import overview
from biassay.pages.panels import Bar, Panel, Panels, draw_panels
from biassay.results.data import RunData
from biassay.results.slices import Slice
from biassay.studies.stereotypes.centring import Trait, is_centred, singles, traits_of
from biassay.studies.stereotypes.findings import findings_of
from biassay.studies.stereotypes.records import ProfileRow
from biassay.studies.stereotypes.view import closest, measure_name

__all__ = ["figure_of"]

_FEW = 12  # groups, of which more traits are shown
_TRAITS = (5, 3)
_AGREEMENT = "Do scores order traits and groups as people's ratings do? 0: not at all; 1: in the same order."
_CAPTION = (
    "A bar is the group's score less the mean of all {groups}: what all share is no group's own. A group that stands "
    "out as cold may still be called warm, less than others are; the score as measured is one tap away."
)
_ALONE = "There is one group, and none to compare it with: scores are as measured."


def figure_of(run: RunData, models: Sequence[Slice]) -> Markup | None:
    """Agreement first, where people were asked."""
    agreements = [one for one in findings_of(run) if one.unit == "tau"]
    figures = [figure for figure in (overview(agreements, _AGREEMENT), _apart(run, models)) if figure]
    return Markup("").join(figures) if figures else None


def _apart(run: RunData, models: Sequence[Slice]) -> Markup | None:
    """The traits by which every group stands out, by the measure that findings rest on."""
    known = [(model.label, one) for model in models if (one := closest(model)) is not None and one["profiles"]]
    best = known[:MANY_MODELS]
    profiles = [singles(one) for _, one in best]
    if not any(profiles):
        return None
    names = [measure_name(one.row.measure) for _, one in best]
    same = len(set(names)) == 1
    order = list(dict.fromkeys((row.domain, row.group) for rows in profiles for row in rows))
    most = _TRAITS[len(order) > _FEW]
    panels: dict[tuple[str, str], list[Panel]] = {place: [] for place in order}
    for model, rows in enumerate(profiles):
        for row, panel in _panels(run, rows, model, most, stretch=not same):
            panels[row.domain, row.group].append(panel)
    compared = any(map(is_centred, profiles))
    caption = _CAPTION.format(groups=counted(len(order), "group")) if compared else _ALONE
    caption += "" if same else " Bars of every model reach to its largest."
    caption += "" if best == known else f" The first {len(best)} of {len(known)} models."
    return draw_panels(
        list(_by_domain(panels)),
        [label if same else f"{label} ({name})" for (label, _), name in zip(best, names, strict=True)],
        title=f"Traits by which groups stand out, by {' or '.join(dict.fromkeys(names))}.",
        caption=caption,
    )


def _panels(
    run: RunData, rows: Sequence[ProfileRow], model: int, most: int, *, stretch: bool
) -> Iterator[tuple[ProfileRow, Panel]]:
    traits = traits_of(rows, run.manifest.inputs)
    largest = max((own[0].beyond for own in traits.values() if own), default=0.0) or 1.0
    of = sum(bool(own) for own in traits.values())
    for row in rows:
        bars = (_bar(row.group, trait, of, largest if stretch else 1.0) for trait in traits[row.group][:most])
        yield row, Panel(row.group, model, tuple(bars), "" if traits[row.group] else "not measured")


def _bar(group: str, trait: Trait, of: int, largest: float) -> Bar:
    beyond = f", {trait.beyond:.2f} beyond the mean of {counted(of, 'group')}" if of > 1 else ""
    towards = trait.name if trait.score >= 0.0 else trait.opposite
    text = f"{group}: {trait.name} rather than {trait.opposite}{beyond}"
    text += f"\nas measured {abs(trait.score):.2f} towards {towards}"
    if trait.human is not None:
        text += f"\npeople rate it {trait.human:.0f} of 100 towards {trait.name}"
    return Bar(trait.name, trait.beyond / largest, f"{trait.beyond:.2f}", text)


def _by_domain(panels: dict[tuple[str, str], list[Panel]]) -> Iterator[Panels]:
    for domain in dict.fromkeys(domain for domain, _ in panels):
        own = [group for of, group in panels if of == domain]
        found = tuple(panel for group in own for panel in panels[domain, group])
        most = max((panel for panel in found if panel.bars), key=lambda panel: panel.bars[0].value, default=None)
        above = "" if most is None else f", above all {most.title}: {most.bars[0].label}"
        yield Panels(domain[:1].upper() + domain[1:], found, counted(len(own), "group") + above)
