"""Stereotypes in words, shared by the terminal and the page."""

from __future__ import annotations

import math
from collections.abc import Sequence

from biassay.pages.formats import format_p
from biassay.studies.stereotypes.records import AlignmentRow, ProfileRow
from biassay.studies.stereotypes.view import CrossedView, MeasureView, ModelView, View

__all__ = [
    "MEANING_OF_PROFILES",
    "domination",
    "intersection_summary",
    "interval_text",
    "leading_traits",
    "measure_name",
    "number",
    "p_text",
    "stereotypes_headline",
    "stereotypes_summary",
    "templates_text",
]

MEANING_OF_PROFILES = (
    "A score of a pair says how much more a group goes with the right trait than with the left one: by ILPS, ILPS* "
    "and SeT how much more it raises the trait in the model's sentences, compared with the same sentence about "
    "nobody in particular; by CEAT, where it was measured, how much closer the model puts it to the trait, each in its "
    "own contexts from a corpus, in standard deviations of their cosines, and with what all groups share. A score "
    "speaks of the model, not of people. tau compares the order of all scores with that of people's ratings: 0 is no "
    "agreement, 1 the same order (after Botsch 2011 the paper calls 0.1 weak, 0.2 moderate, 0.3 strong). Where "
    "templates were chosen on pilot groups, it is over the other groups, for on those it flatters. Part of it "
    "comes from what all groups have in common: compare it with the tau of groups mistaken for each other. Its "
    "interval says nothing about other traits or templates. P@3: of the three pairs in which a group ranks highest "
    "and the three in which it ranks lowest, the share that people rate above and below 50. Agreement with people is "
    "no virtue: people's ratings are stereotypes too."
)
_STRONGEST = 5
_NAMES = {"ilps": "ILPS", "ilps-star": "ILPS*", "set": "SeT", "ceat": "CEAT"}


def measure_name(measure: str) -> str:
    return _NAMES.get(measure, measure)


def stereotypes_headline(found: View) -> str:
    inputs = found.inputs
    counts = f"{len(inputs.groups)} groups, {len(inputs.pairs)} pairs of traits"
    if inputs.templates:
        counts += f", {len(inputs.templates)} templates"
    if inputs.contexts is not None:
        counts += f", {inputs.contexts.rows:,} contexts"
    variant = f", variant {found.settings.variant}" if inputs.templates else ""
    return f"{counts}; {', '.join(map(measure_name, inputs.measures))}{variant}"


def stereotypes_summary(found: View, models: Sequence[ModelView] | None = None) -> list[str]:
    """What was found, some sentences a model, in plain words."""
    sentences = [*found.inputs.notes]
    sentences += [
        sentence for result in (found.models if models is None else models) for sentence in _about(result, found)
    ]
    ceiling = None if found.inputs.human is None else found.inputs.human.ceiling
    if ceiling is not None and ceiling.tau is not None:
        sentences.append(
            f"People against people: the means of two random halves of the annotators agree with tau {ceiling.tau:.2f}"
            f"{_span(ceiling.interval)}, over all groups that were rated, pilot groups included."
        )
    return sentences


def _about(result: ModelView, found: View) -> list[str]:
    sentences = [
        _agreement(result, record, record.overall, found) for record in result.measures if record.overall is not None
    ]
    sentences += _strongest(result, found)
    asked = result.row
    if asked.num_questions:
        against = "the group masked" if asked.prior == "mask" else "the word person or people in its place"
        sentences.append(
            f"{result.label}: a {asked.kind} model, each sentence compared with {against}; {asked.num_asked:,} "
            f"sentences with a trait took {asked.num_passes:,} passes."
        )
    sentences += _in_contexts(result)
    if asked.skipped_templates:
        names = ", ".join(asked.skipped_templates)
        sentences.append(f"{result.label}: cannot be asked where words follow the trait: {names}.")
    if asked.unknown_adjectives:
        sentences.append(f"{result.label}: does not know the tokens of: {', '.join(asked.unknown_adjectives)}.")
    if asked.unknown_groups:
        groups = ", ".join(asked.unknown_groups)
        sentences.append(f"{result.label}: does not know all words of these groups, which are not measured: {groups}.")
    undefined = [record.row for record in result.measures if record.row.undefined and record.templates]
    if undefined:
        counts = ", ".join(f"{measure_name(r.measure)} {r.undefined:,}" for r in undefined)
        sentences.append(
            f"{result.label}: scores that are not defined and left out: {counts} (a word unknown, or already on top so "
            "that its distance is zero)."
        )
    return sentences + [s for crossed in result.intersections for s in intersection_summary(result, crossed)]


def _strongest(result: ModelView, found: View) -> list[str]:
    """The groups and traits that the model ties most, by the measure that agrees best with people or comes first."""
    best = result.closest
    if best is None:
        return []
    cells = [
        (abs(score), score, profile.group, pair)
        for profile in best.profiles
        if not profile.parts
        for score, pair in zip(profile.scores, found.inputs.pairs, strict=True)
        if score is not None and math.isfinite(score)
    ]
    listed = "; ".join(
        f"{group}: {pair} {score:+.2f}" for _, score, group, pair in sorted(cells, key=lambda c: -c[0])[:_STRONGEST]
    )
    if not listed:
        return []
    by = f"by {measure_name(best.measure)} (+ to the right trait of a pair, - to the left)"
    return [f"{result.label}: tied most strongly, {by}: {listed}."]


def _in_contexts(result: ModelView) -> list[str]:
    """What CEAT was given, and what it lacked."""
    seen = result.contexts
    if seen is None:
        return []
    name = f"{result.label}, {measure_name('ceat')}"
    contexts = f"{sum(seen.groups.values()):,} contexts of groups and {sum(seen.adjectives.values()):,} of adjectives"
    over = [record for record in result.measures if not record.templates]
    missing = sum(record.row.undefined for record in over)
    total = sum(len(profile.scores) for record in over for profile in record.profiles)
    unmeasured = f"; {missing:,} of {total:,} scores were not measured" if missing else ""
    sentences = [f"{name}: {contexts}{unmeasured}."]
    for what, few, counts in (
        ("groups", seen.few_groups, seen.groups),
        ("adjectives", seen.few_adjectives, seen.adjectives),
    ):
        if few:
            sentences.append(f"{name}: {what} with too few contexts: {', '.join(f'{w} {counts[w]}' for w in few)}.")
    if seen.own_words:
        listed = "; ".join(f"{', '.join(words)} for {group}" for group, words in seen.own_words.items())
        sentences.append(f"{name}: adjectives left out, for they are words for the group itself: {listed}.")
    return sentences


def templates_text(record: MeasureView, found: View) -> str:
    """Over what a measure was taken: templates as sentences, or contexts where it has none."""
    if not record.templates:
        return "contexts"
    if len(record.chosen) > 2:
        return f"all {len(record.chosen)} templates"
    return " and ".join(f'"{_sentence(found.inputs.templates[name])}"' for name in record.chosen)


def _sentence(template: str) -> str:
    """A template as a reader expects it: [Group] are [trait]."""
    return template.replace("{", "[").replace("}", "]")


def _agreement(result: ModelView, record: MeasureView, overall: AlignmentRow, found: View) -> str:
    name = f"{result.label}, {measure_name(record.measure)}"
    if overall.tau is None:
        return f"{name}: agreement with people is not defined."
    with_what = f"{'with' if record.templates else 'over'} {templates_text(record, found)}"
    pilot = "" if overall.tau_with_pilot is None else f"; with the pilot groups {overall.tau_with_pilot:.2f}"
    shuffled = (
        ""
        if overall.tau_shuffled is None
        else f"; were groups mistaken for each other at random, {overall.tau_shuffled:.2f} "
        f"(p {p_text(overall.p_value_shuffled)})"
    )
    span = _span(overall.tau_both or overall.tau_groups)
    p3 = "" if overall.precision is None else f"; P@3 {overall.precision:.2f}"
    return (
        f"{name}: tau {overall.tau:.2f} with people's ratings of {overall.num_groups} groups, {overall.num_cells} "
        f"cells{span}{shuffled}{p3}; {with_what}{pilot}."
    )


def _span(interval: tuple[float, float] | None) -> str:
    return "" if interval is None else f", 95% interval {interval[0]:.2f} to {interval[1]:.2f}"


def intersection_summary(result: ModelView, crossed: CrossedView) -> list[str]:
    """Order, dominance and emergence, a sentence each."""
    name = f"{result.label}, {measure_name(crossed.measure)}, {crossed.order.num_groups:,} paired groups"
    order = crossed.order
    taus = (order.tau_first, order.tau_second, order.tau_reversed, order.tau_closest)
    first, second, reverse, best = map(number, taus)
    sentences = [
        f"{name}: a pair agrees with the group named first with tau {first}, with the second {second}, with the pair "
        f"in the other order {reverse}, with the closer of its two groups {best}."
    ]
    dominating = domination(crossed)
    if dominating:
        listed = "; ".join(f"{domain} over {', '.join(others)}" for domain, others in dominating.items())
        sentences.append(f"{name}: domains that dominate others by 0.1 or more: {listed}.")
    if crossed.emergent:
        listed = "; ".join(
            f"{e.group}: {e.direction} {e.trait}, by {e.excess:.2f}" for e in crossed.emergent[:_STRONGEST]
        )
        sentences.append(f"{name}: furthest beyond both of their groups (described, not tested): {listed}.")
    rated = crossed.rated
    if rated is not None:
        sentences.append(
            f"{name}: of {rated.num_groups} groups of race and gender, sides of a dimension on which traits emerge are "
            f"those that people name with precision {number(rated.precision)} and recall {number(rated.recall)}; a "
            f"coin would have {number(rated.chance_precision)} and {number(rated.chance_recall)}."
        )
    return sentences


def domination(crossed: CrossedView) -> dict[str, list[str]]:
    """Which domains every domain dominates."""
    found: dict[str, list[str]] = {}
    for row in crossed.dominance:
        if row.dominates is not None:
            loser = row.domain_b if row.dominates == row.domain_a else row.domain_a
            found.setdefault(row.dominates, []).append(loser)
    return found


def leading_traits(profile: ProfileRow, pairs: Sequence[str], n: int = 3) -> tuple[str, str]:
    """The n pairs with the highest scores and the n with the lowest, each with its score."""
    known = [(score, pair) for score, pair in zip(profile.scores, pairs, strict=True) if score is not None]
    ordered = sorted(known, key=lambda item: -item[0])
    high, low = ordered[:n], ordered[::-1][:n]
    return tuple(", ".join(f"{pair} {score:+.2f}" for score, pair in part) for part in (high, low))  # type: ignore[return-value]


def interval_text(interval: tuple[float, float] | None) -> str:
    return "–" if interval is None else f"{interval[0]:.2f} to {interval[1]:.2f}"


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def p_text(value: float | None) -> str:
    return format_p(value)
