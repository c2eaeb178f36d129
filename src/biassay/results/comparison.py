"""Models side by side: how much more of each association the others have than the first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from biassay.errors import UnknownNameError, UsageError
from biassay.results.codec import to_json
from biassay.results.discovery import Discovery
from biassay.results.gathering import Found, Gathered, check_distinct, put_together
from biassay.results.intervals import paired_difference
from biassay.results.labels import model_key, model_labels
from biassay.results.records import Record, Result
from biassay.results.run import Run
from biassay.results.stereotypes import ModelStereotypes, Stereotypes
from biassay.stats.tau_difference import tau_difference

__all__ = ["AgreementDifference", "AssociationDifference", "Comparison", "SharedWords", "compare"]

_CONFIDENCE = 0.95


@dataclass(frozen=True)
class AssociationDifference(Record):
    """A test on the first model and on another: effect sizes by word over the words both know, and their difference.

    ``interval_...`` is paired: the same words are drawn for both. ``simultaneous_...`` is wider: with the confidence of
    the comparison all of its intervals hold together. None: not to be said, for the reason given.
    """

    test: str
    title: str
    baseline: str
    model: str
    effect_baseline: float | None
    effect_model: float | None
    reason: str | None
    difference: float | None = None
    interval_low: float | None = None
    interval_high: float | None = None
    simultaneous_low: float | None = None
    simultaneous_high: float | None = None
    num_targ1: int = 0
    num_targ2: int = 0


@dataclass(frozen=True)
class AgreementDifference(Record):
    """A measure of stereotypes: how much better the other model agrees with people than the first (Kendall's tau).

    Over the groups on which the templates of neither were chosen.
    """

    measure: str
    baseline: str
    model: str
    tau_baseline: float | None
    tau_model: float | None
    difference: float | None
    interval_low: float | None
    interval_high: float | None
    tau_between: float | None
    num_groups: int
    num_cells: int


@dataclass(frozen=True)
class SharedWords(Record):
    """A group: words that both models tie to it, and words that one of them does."""

    group: str
    baseline: str
    model: str
    both: tuple[str, ...]
    only_baseline: tuple[str, ...]
    only_model: tuple[str, ...]


@dataclass(frozen=True)
class Comparison:
    """All differences from one model; of association tests also the runs put together."""

    baseline: str
    confidence: float
    associations: tuple[AssociationDifference, ...] = ()
    agreements: tuple[AgreementDifference, ...] = ()
    words: tuple[SharedWords, ...] = ()
    notes: tuple[str, ...] = ()
    gathered: Gathered | None = None

    def to_json(self) -> str:
        """The differences as JSON, and the results that they are of."""
        run = None if self.gathered is None else self.gathered.run
        return to_json(
            {
                "baseline": self.baseline,
                "confidence": self.confidence,
                "associations": self.associations,
                "agreements": self.agreements,
                "words": self.words,
                "notes": self.notes,
                "results": () if run is None else run.results,
            }
        )


def compare(found: Mapping[str, Found], *, baseline: str | None = None, mixed: bool = False) -> Comparison:
    """Compare the models of runs of one kind with one of them, by default the first.

    Runs that differ in protocol or stimuli are refused unless ``mixed``.
    """
    kinds = {_kind(one) for one in found.values()}
    if len(kinds) != 1:
        raise UsageError(
            f"runs of different kinds cannot be compared: {', '.join(sorted(kinds))}; `biassay report` shows them on "
            "one page"
        )
    check_distinct(found)
    runs = {name: one for name, one in found.items() if isinstance(one, Run)}
    if runs:
        return _of_runs(put_together(runs, mixed=mixed), baseline)
    stereotypes = {name: one for name, one in found.items() if isinstance(one, Stereotypes)}
    if stereotypes:
        return _of_stereotypes(stereotypes, baseline, mixed=mixed)
    return _of_discoveries({n: one for n, one in found.items() if isinstance(one, Discovery)}, baseline, mixed=mixed)


def _kind(found: Found) -> str:
    if not isinstance(found, Run):
        return found.manifest.kind
    return "associations over texts" if found.manifest.contexts is None else "associations over contexts"


def _chosen(labels: Sequence[str], baseline: str | None) -> str:
    if len(labels) < 2:
        raise UsageError(f"there is one model only ({', '.join(labels)}); name another run to compare it with")
    if baseline is not None and baseline not in labels:
        raise UnknownNameError("model", baseline, labels, f"(models of these runs: {', '.join(labels)})")
    return baseline or labels[0]


def _of_runs(gathered: Gathered, baseline: str | None) -> Comparison:
    labels = model_labels(gathered.run)
    first = _chosen(list(labels.values()), baseline)
    cells = {(labels[model_key(r)], r.test): r for r in gathered.run.results}
    pairs = [
        (first, label, cells[first, test], cells[label, test])
        for label in labels.values()
        if label != first
        for test in dict.fromkeys(r.test for r in gathered.run.results)
        if (first, test) in cells and (label, test) in cells
    ]
    if not pairs:
        raise UsageError("the models have no test in common")
    return Comparison(
        first,
        _CONFIDENCE,
        associations=tuple(_difference(*pair, of=len(pairs)) for pair in pairs),
        notes=gathered.differences,
        gathered=gathered,
    )


def _difference(first: str, label: str, one: Result, other: Result, *, of: int) -> AssociationDifference:
    """``of`` differences in all share the error that simultaneous intervals are allowed."""
    asked = (one.test, one.title, first, label)
    unmeasured = [name for name, result in ((first, one), (label, other)) if result.effect_size is None]
    paired = paired_difference(one, other)
    if unmeasured or paired is None:
        reason = f"not measured on {' and '.join(unmeasured)}" if unmeasured else "no words in common that have numbers"
        return AssociationDifference(*asked, one.effect_size_by_word, other.effect_size_by_word, reason)
    found, num_x, num_y = paired
    if math.isnan(found.difference):
        return AssociationDifference(
            *asked, _known(found.first.effect_size), _known(found.second.effect_size), "all words in common lean alike"
        )
    wider = paired_difference(one, other, confidence=1.0 - (1.0 - _CONFIDENCE) / of)
    return AssociationDifference(
        *asked,
        found.first.effect_size,
        found.second.effect_size,
        None if found.low is not None else "too few words in common for an interval",
        difference=found.difference,
        interval_low=found.low,
        interval_high=found.high,
        simultaneous_low=wider[0].low if wider else None,
        simultaneous_high=wider[0].high if wider else None,
        num_targ1=num_x,
        num_targ2=num_y,
    )


def _of_stereotypes(found: Mapping[str, Stereotypes], baseline: str | None, *, mixed: bool) -> Comparison:
    notes = _unlike(
        {n: one.manifest for n, one in found.items()},
        {
            "traits and groups": "abc_digest",
            "variant": "variant",
            "prior": "prior",
            "all adjectives": "all_adjectives",
            "human judgements": "human",
        },
        mixed=mixed,
    )
    models = _labelled({name: list(one.results) for name, one in found.items()})
    first = _chosen(list(models), baseline)
    pairs = next(iter(found.values())).manifest.pairs
    if any(one.manifest.pairs != pairs for one in found.values()):
        raise UsageError("the runs have other pairs of traits and cannot be compared")
    rows = [
        row
        for label, model in models.items()
        if label != first
        for row in _agreements(first, models[first], label, model)
    ]
    if not rows:
        raise UsageError(
            "the models have no measure and group with human judgements in common (--human of stereotypes)"
        )
    return Comparison(first, _CONFIDENCE, agreements=tuple(rows), notes=notes)


def _labelled(results: Mapping[str, list[ModelStereotypes]]) -> dict[str, ModelStereotypes]:
    """Models by label; a label that several runs have gets the name of the run."""
    labels = [one.label for models in results.values() for one in models]
    named: dict[str, ModelStereotypes] = {}
    for name, models in results.items():
        for one in models:
            label = f"{one.label} [{name}]" if labels.count(one.label) > 1 else one.label
            same = sum(known == label or known.startswith(f"{label} #") for known in named)
            named[f"{label} #{same + 1}" if same else label] = one
    return named


def _agreements(first: str, one: ModelStereotypes, label: str, other: ModelStereotypes) -> list[AgreementDifference]:
    rows = []
    theirs = {record.measure: record for record in other.measures}
    for record in one.measures:
        if record.measure not in theirs:
            continue
        pilot = record.pilot | theirs[record.measure].pilot
        profiles = {p.group: p for p in theirs[record.measure].profiles if not p.parts and p.group not in pilot}
        shared = [(p, profiles[p.group]) for p in record.profiles if p.group in profiles and p.human and not p.parts]
        if not shared:
            continue
        found = tau_difference(
            [_numbers(p.scores) for p, _ in shared],
            [_numbers(p.scores) for _, p in shared],
            [_numbers(p.human or ()) for p, _ in shared],
        )
        rows.append(
            AgreementDifference(
                record.measure,
                first,
                label,
                tau_baseline=_known(found.first),
                tau_model=_known(found.second),
                difference=_known(found.difference),
                interval_low=_known(found.low),
                interval_high=_known(found.high),
                tau_between=_known(found.between),
                num_groups=found.num_groups,
                num_cells=found.num_cells,
            )
        )
    return rows


def _known(number: float) -> float | None:
    return None if math.isnan(number) else number


def _numbers(values: Sequence[float | None]) -> list[float]:
    return [float("nan") if value is None else value for value in values]


def _of_discoveries(found: Mapping[str, Discovery], baseline: str | None, *, mixed: bool) -> Comparison:
    notes = _unlike(
        {n: one.manifest for n, one in found.items()},
        {
            "groups": "grouping_digest",
            "words": "vocabulary_digest",
            "threshold": "threshold",
            "rule": "rule",
            "comparison": "compare",
            "alpha": "alpha",
            "permutations": "permutations",
            "positive only": "positive_only",
        },
        mixed=mixed,
    )
    names = [one.manifest.models[0].name for one in found.values()]
    labels = {
        f"{model} [{name}]" if names.count(model) > 1 else model: one
        for model, (name, one) in zip(names, found.items(), strict=True)
    }
    first = _chosen(list(labels), baseline)
    rows = [
        _shared(group.group, first, label, labels[first], one)
        for label, one in labels.items()
        if label != first
        for group in labels[first].results
        if any(group.group == other.group for other in one.results)
    ]
    if not rows:
        raise UsageError("the runs have no group in common")
    return Comparison(first, _CONFIDENCE, words=tuple(rows), notes=notes)


def _shared(group: str, first: str, label: str, one: Discovery, other: Discovery) -> SharedWords:
    for name, found in ((first, one), (label, other)):
        kept = sum(word.associated for word in found.of(group).words)
        if kept < found.of(group).num_associated:
            raise UsageError(
                f"{name}: of {found.of(group).num_associated:,} words tied to {group} {kept:,} were kept; "
                "discover them again with a larger --keep"
            )
    mine, theirs = ([w.word for w in found.of(group).words if w.associated] for found in (one, other))
    in_mine, in_theirs = set(mine), set(theirs)
    return SharedWords(
        group,
        first,
        label,
        both=tuple(word for word in mine if word in in_theirs),
        only_baseline=tuple(word for word in mine if word not in in_theirs),
        only_model=tuple(word for word in theirs if word not in in_mine),
    )


def _unlike(manifests: Mapping[str, object], fields: Mapping[str, str], *, mixed: bool) -> tuple[str, ...]:
    found = []
    for what, field in fields.items():
        values = {name: getattr(manifest, field) for name, manifest in manifests.items()}
        if len(set(values.values())) > 1:
            found.append(f"{what}: " + ", ".join(f"{value} in {name}" for name, value in values.items()))
    if found and not mixed:
        raise UsageError("the runs cannot be compared: " + "; ".join(found) + " (--mixed compares them all the same)")
    return tuple(found)
