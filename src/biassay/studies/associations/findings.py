"""Findings of association tests, in report order and as model-card entries."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import scipy

from biassay.datasets.schema import load_topics
from biassay.reporting.findings import SANITY_CHECKS
from biassay.reporting.formats import (
    MANY_MODELS,
    format_concept,
    format_count,
    format_decimal,
    format_p,
    topic_name,
)
from biassay.reporting.model_card import CardMetric, IndexEntry, get_version
from biassay.results.findings import Evidence, Finding
from biassay.results.outcomes import Result
from biassay.results.run_data import RunData
from biassay.results.views import ModelKey, model_key, model_labels
from biassay.stats.power import d_from_D
from biassay.studies.associations.contributions import compute_contributions
from biassay.studies.associations.diagnostics import list_warnings
from biassay.studies.associations.results import CROSSED, FIXED_WORDS, POOLED, SENTENCES, Diagnostics
from biassay.studies.associations.signs import FIXED_WORDS_P, choose_test, describe_correction

__all__ = [
    "ABSENCE",
    "by_topic",
    "describe_direction",
    "describe_run",
    "headline",
    "leading",
    "left_out",
    "make_findings",
    "make_index_entry",
    "make_short_findings",
    "meaning",
    "topic_place",
    "unfinished",
]


ABSENCE = "Inconclusive does not mean unbiased."
_EFFECT = (
    "A positive {unit} says that the first targets go with the first attributes and the second targets with the "
    "second; a negative one, the other way round."
)
_CONCEPTS = (
    "Would other words of the same kinds show it too? That is what p asks (crossed, two-sided), and what the interval "
    "is of: target words and attribute words both count as samples, so that the answer is about the concepts."
)
_THESE_WORDS = (
    f"Do these targets differ towards these attribute words? That is {FIXED_WORDS_P}; towards words drawn at random "
    "they often do."
)
_ORDINARY = (
    "A significant effect is called large if random English word sets of the same sizes reach it at most 5% of the "
    "time. Where they often reach it, the association is there but ordinary in size."
)
_THESE_TEXTS = (
    "Do these texts differ? That is the sentence-level p, the papers' own: it counts every text as an observation, is "
    "about these texts only, and is too often small where there is nothing."
)
_ON_CORPUS = "Each word is averaged over its contexts; all of it is about this model on this corpus."


def meaning(run: RunData) -> str:
    """What the numbers of a run mean: which question each p-value asks."""
    units = " or ".join(dict.fromkeys(row.scale for row in run.results)) or "d"
    asked = {CROSSED: (_CONCEPTS, _THESE_WORDS), FIXED_WORDS: (_THESE_WORDS,), SENTENCES: (_THESE_TEXTS,)}
    corpus = "" if run.manifest.inputs.contexts is None else _ON_CORPUS
    drawn = any(row.share_random is not None and row.outcome.test == CROSSED for row in run.results)
    size = _ORDINARY if drawn else ""
    said = (_EFFECT.format(unit=units), *asked[choose_test(run.results)], size, corpus, ABSENCE)
    return " ".join(filter(None, said))


def headline(run: RunData) -> str:
    """One line: what was run."""
    tests = len({r.test for r in run.results})
    counts = f"{format_count(tests, 'test')} on {format_count(len(model_labels(run)), 'model')}"
    over = run.manifest.inputs.contexts
    protocols = list(dict.fromkeys(r.protocol for r in run.results)) or [run.manifest.settings.protocol]
    how = (
        f"protocol {' and '.join(protocols)}"
        if over is None
        else f"over contexts, {run.manifest.settings.n_samples:,} samples"
    )
    metric = "" if run.manifest.settings.metric == "cosine" else f"metric {run.manifest.settings.metric}, "
    return f"{counts}, {metric}{how}, alpha {run.manifest.settings.alpha_or_default:g}"


def unfinished(run: RunData, name: str = "") -> str:
    """Said of a run that was interrupted; nothing of one that is complete."""
    if run.manifest.status == "complete":
        return ""
    total = len(run.manifest.models) * len(run.manifest.inputs.tests)
    return f"The run{f' {name}' if name else ''} is not finished: {len(run.results)} of {total} results are there."


_MAX_WORDS = 5
_SINGULAR = ("disease", "math", "science")  # of the labels of targets


def make_findings(run: RunData, label: str | None = None) -> Sequence[Finding]:
    """One finding per model and test, of one model or of all."""
    labels = model_labels(run)
    known = {(model_key(one), one.test): one for one in run.tables.get("diagnostics", ())}
    families = _describe_families(run)
    rows = ((row, labels[model_key(row)]) for row in run.results)
    return [
        _make_finding(
            row, own, _list_evidence_words(row), families[model_key(row)], known.get((model_key(row), row.test))
        )
        for row, own in rows
        if label in (None, own)
    ]


def make_short_findings(run: RunData) -> Sequence[Finding]:
    """The same as `findings_of`; of very many models without words, which nobody could read."""
    labels = model_labels(run)
    if len(labels) <= MANY_MODELS:
        return make_findings(run)
    families = _describe_families(run)
    return [_make_finding(row, labels[model_key(row)], (), families[model_key(row)]) for row in run.results]


def _describe_families(run: RunData) -> dict[ModelKey, str]:
    """The family of every model's p-values, in words."""
    by_model: dict[ModelKey, list[Result]] = {}
    for row in run.results:
        by_model.setdefault(model_key(row), []).append(row)
    return {key: describe_correction(rows) for key, rows in by_model.items()}


def _make_finding(
    row: Result, label: str, words: tuple[str, ...], family: str, known: Diagnostics | None = None
) -> Finding:
    crossed = row.outcome.test == CROSSED
    return Finding(
        model=label,
        item=row.test,
        title=row.title,
        topic=row.topic,
        about=row.about,
        evidence=row.evidence,
        direction=describe_direction(row, row.effect_size) if row.effect_size is not None else "",
        effect=row.effect_size,
        low=row.ci_low,
        high=row.ci_high,
        confidence=1.0 - row.alpha,
        unit=row.scale,
        p_values=_list_p_values(row),
        smallest=row.power_80 if row.evidence == "inconclusive" else None,
        reason=row.reason,
        words=words,
        margin=row.margin if crossed else None,
        bound=find_equivalence_bound(row) if crossed and row.margin is not None else None,
        share_random=row.share_random if crossed else None,
        random_sets=row.random_sets if crossed else None,
        limit=row.limit,
        notes=tuple(_list_notes(row, known)),
        opposite=row.opposite,
        form_of=row.form_of,
        family="" if row.family is None else family,
        exploratory=row.exploratory,
    )


def _list_notes(row: Result, known: Diagnostics | None) -> Iterator[str]:
    if row.searched:
        yield row.doubt
    elif row.exploratory:
        yield "exploratory: not in the declared family"
    if said := describe_equivalence(row):
        yield said
    yield from list_warnings(row, known)


_P_NAMES = {CROSSED: "crossed", FIXED_WORDS: "by word", SENTENCES: "by text", POOLED: "by text"}


def _list_p_values(row: Result) -> dict[str, float | None]:
    """Return all p-values, the main one and its correction first."""
    name = _P_NAMES.get(row.outcome.test, "crossed")
    p_values = {name: row.p_value, f"{name}, corrected": row.p_adjusted}
    if row.fixed_words_p_opposite is not None:
        opposite = {"by word, other direction": row.fixed_words_p_opposite}
        p_values = {**opposite, **p_values} if row.outcome.test == FIXED_WORDS else {**p_values, **opposite}
    p_values |= {_P_NAMES[other]: outcome.p_value for other, outcome in row.alternatives.items()}
    return p_values if row.p_equivalence is None else {**p_values, "equivalence": row.p_equivalence}


_WIDE = 0.8


def find_equivalence_bound(row: Result) -> float | None:
    """Return the smallest margin in cosine units for which an equivalence test at the level of the row holds."""
    if row.cosine_difference is None or row.cosine_ci_high is None or row.crossed_df is None:
        return None
    error = (row.cosine_ci_high - row.cosine_difference) / scipy.special.stdtrit(row.crossed_df, 1.0 - row.alpha / 2.0)
    return float(abs(row.cosine_difference) + scipy.special.stdtrit(row.crossed_df, 1.0 - row.alpha) * error)


def margin_as_d(row: Result) -> float | None:
    """Return the d of a D as large as the margin, with the spread of this result; None if it is not known."""
    x, y = (list(row.associations.get(role, {}).values()) for role in "XY")
    if row.margin is None or len(x) + len(y) < 3 or not (x and y):
        return None
    squares = sum((one - math.fsum(own) / len(own)) ** 2 for own in (x, y) for one in own)
    spread = math.sqrt(squares / (len(x) + len(y) - 2))
    return d_from_D(row.margin, spread, len(x), len(y)) if spread > 0.0 else None


def describe_equivalence(row: Result) -> str:
    """Describe the equivalence test; empty if there is none."""
    if row.margin is None or row.p_equivalence is None or row.outcome.test != CROSSED:
        return ""
    is_shown = "shown" if row.p_equivalence <= row.alpha else "not shown"
    d = margin_as_d(row)
    wide = ": too wide a margin to say much" if d is not None and d >= _WIDE and is_shown == "shown" else ""
    as_d = "" if d is None else f", here a d of {format_decimal(d)}{wide}"
    size = f"smaller than {row.margin:g} (cosine{as_d})"
    return f"D = {row.cosine_difference:z.3f}, {is_shown} to be {size}, p = {format_p(row.p_equivalence)}"


class _FourSets(Protocol):
    """The names of the four sets of a test."""

    @property
    def targ1(self) -> str: ...
    @property
    def targ2(self) -> str: ...
    @property
    def attr1(self) -> str: ...
    @property
    def attr2(self) -> str: ...


def describe_direction(row: _FourSets, effect: float | None) -> str:
    """Which targets go with which attributes, as the effect has it."""
    first, second = format_concept(row.attr1), format_concept(row.attr2)
    if (effect or 0.0) < 0.0:
        first, second = second, first
    targets = format_concept(row.targ1)
    verb = "goes" if targets.endswith(_SINGULAR) else "go"
    said = f"{targets} {verb} with {first}, {format_concept(row.targ2)} with {second}"
    return said[0].upper() + said[1:]


def _list_evidence_words(row: Result) -> tuple[str, ...]:
    """The target words that add most to the effect, in its direction."""
    if row.leave_one_out is not None:
        return _list_influential_words(row)
    found = compute_contributions(row)
    if found is None:
        return ()
    sign = 1.0 if found.effect_size >= 0.0 else -1.0
    shares = {word: share for words in found.targets.values() for word, share in words.items()}
    return tuple(sorted(shares, key=lambda word: -sign * shares[word])[:_MAX_WORDS])


def _list_influential_words(row: Result) -> tuple[str, ...]:
    """The words without which a score of four sets would be nearest to none."""
    scores = {word: score for words in (row.leave_one_out or {}).values() for word, score in words.items()}
    return tuple(sorted(scores, key=lambda word: abs(scores[word]))[:_MAX_WORDS])


_FEW = 12  # tests of which all are shown
_MOST = 24
_NEAREST = 5  # tests that are shown where nothing is significant
_ORDER: tuple[Evidence, ...] = ("significant", "uncorrected")


def topic_place(topic: str | None) -> int:
    """Where a topic stands among the others."""
    known = list(load_topics())
    return known.index(topic) if topic in known else len(known)


def by_topic(results: Sequence[Result]) -> Iterator[tuple[str, list[Result]]]:
    """One result of every test under the heading of its topic: people first, sanity checks last."""
    tests = {r.test: r for r in reversed(results)}
    first = [tests[name] for name in dict.fromkeys(r.test for r in results)]
    people = sorted((r for r in first if r.about != "method"), key=lambda r: topic_place(r.topic))
    groups: dict[str, list[Result]] = {}
    for r in people:
        groups.setdefault(topic_name(r.topic), []).append(r)
    yield from groups.items()
    checks = [r for r in first if r.about == "method"]
    if checks:
        yield SANITY_CHECKS, checks


def leading(results: Sequence[Result]) -> list[str]:
    """The tests that are shown first: of a few all, of many the significant ones and failed checks."""
    by_test: dict[str, list[Result]] = {}
    for r in results:
        by_test.setdefault(r.test, []).append(r)
    if len(by_test) <= _FEW:
        return list(by_test)
    people = {test: own for test, own in by_test.items() if own[0].about != "method"}
    hold = sorted((test for test, own in people.items() if _rank(own) < len(_ORDER)), key=lambda t: _surest(people[t]))
    if not hold:
        hold = sorted(people, key=lambda test: _smallest_p(people[test]))[:_NEAREST]
    fail = [t for t, own in by_test.items() if t not in people and not all(map(_passes, own))]
    shown = {*hold[:_MOST], *fail}
    return [test for test in by_test if test in shown]


def _passes(result: Result) -> bool:
    return result.evidence in _ORDER and not result.opposite


def _rank(results: Iterable[Result]) -> int:
    evidence = {r.evidence for r in results}
    return next((place for place, one in enumerate(_ORDER) if one in evidence), len(_ORDER))


def _surest(results: Sequence[Result]) -> tuple[float, ...]:
    """On how many models it is significant, on how many before correction only, and how large it is."""
    evidence = [r.evidence for r in results]
    return (*(-evidence.count(one) for one in _ORDER), -max(abs(r.effect_size or 0.0) for r in results))


def _smallest_p(results: Iterable[Result]) -> float:
    known = [p for r in results if (p := r.p_value) is not None and not math.isnan(p)]
    return min(known, default=2.0)


def left_out(results: Sequence[Result], shown: Sequence[str]) -> str:
    """How many tests of which kind are not shown."""
    others: Mapping[str, list[Result]] = {r.test: [] for r in results if r.test not in shown}
    for r in results:
        if r.test in others:
            others[r.test].append(r)
    if not others:
        return ""
    checks = [own for own in others.values() if own[0].about == "method"]
    people = [own for own in others.values() if own[0].about != "method"]
    unmeasured = [own for own in people if all(r.status != "measured" for r in own)]
    hold = [own for own in people if _rank(own) < len(_ORDER)]
    silent = len(people) - len(unmeasured) - len(hold)
    said = [
        f"{len(hold):,} significant or leads" if hold else "",
        f"{silent:,} inconclusive" if silent else "",
        f"{len(unmeasured):,} skipped" if unmeasured else "",
        f"{format_count(len(checks), 'sanity check')} passed" if checks else "",
    ]
    return f"{format_count(len(others), 'more test')}: --all ({', '.join(filter(None, said))})"


_METRICS: dict[str, tuple[tuple[str, str], ...]] = {
    CROSSED: (
        ("effect_size", "Effect size d"),
        ("ci_low", "Effect size d, lower end of its interval"),
        ("ci_high", "Effect size d, upper end of its interval"),
        ("p_value", "p-value, words of the same kinds (crossed, two-sided)"),
        ("fixed_words_p_value", FIXED_WORDS_P),
    ),
    FIXED_WORDS: (("effect_size", "Effect size, words as observations"), ("p_value", FIXED_WORDS_P)),
    SENTENCES: (("effect_size", "Effect size, texts as observations"), ("p_value", "p-value, texts as observations")),
}


def make_index_entry(result: Result, run: RunData) -> IndexEntry:
    """The numbers of one test on one model."""
    made = {"level": result.level, "source": result.source, "version": result.test_version, "test": result.test_digest}
    made |= {"protocol": result.protocol, "alternative": result.alternative, "alpha": f"{result.alpha:g}"}
    made |= {"biassay": get_version(run)}
    return IndexEntry(
        task="feature-extraction",
        task_name="Social bias by association",
        dataset=result.test,
        dataset_name=result.title or result.test,
        config="",
        args=made,
        metrics=tuple(CardMetric(name, said, getattr(result, name)) for name, said in _list_metrics(result)),
    )


def _list_metrics(result: Result) -> tuple[tuple[str, str], ...]:
    names = _METRICS[result.outcome.test or CROSSED]
    if result.margin is None or result.p_equivalence is None or result.outcome.test != CROSSED:
        return names
    return *names, ("p_equivalence", f"p-value, D smaller than {result.margin:g} (cosine units)")


def describe_run(run: RunData, results: Sequence[Result]) -> str:
    """What was measured of one model."""
    if run.manifest.inputs.contexts is not None:
        method = f"associations over contexts from a corpus (CEAT, {run.manifest.settings.n_samples:,} samples)"
    elif all(result.level == "word" for result in results):
        method = "associations between words (WEAT)"
    else:
        method = "associations between words and between sentences (WEAT, SEAT)"
    return f"{method} by {format_count(len(results), 'test')}, alpha {run.manifest.settings.alpha_or_default:g}"
