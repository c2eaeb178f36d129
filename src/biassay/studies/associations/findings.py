"""Findings of association tests, in report order and as model-card entries, and the signs of their evidence."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

import numpy as np
import scipy

from biassay.datasets.schema import ROLES, load_topics
from biassay.errors import format_examples
from biassay.grouping import group_pairs
from biassay.reporting.findings import SANITY_CHECKS
from biassay.reporting.formats import (
    FULL_RANGE,
    SANITY_CHECK_PASSED,
    format_concept,
    format_count,
    format_decimal,
    format_interval,
    format_p,
    format_p_relation,
    topic_name,
)
from biassay.reporting.methods import get_version
from biassay.reporting.model_card import CardMetric, IndexEntry
from biassay.results.outcomes import Evidence, Finding, Result, make_outcome_finding
from biassay.results.run_data import RunData, model_key, model_labels
from biassay.stats.power import d_from_D
from biassay.studies.associations.results import (
    CROSSED,
    FIXED_WORDS,
    POOLED,
    SENTENCES,
    AnyResult,
    AssociationRecord,
    Diagnostics,
)
from biassay.studies.associations.settings import PAPER_PROTOCOLS
from biassay.studies.associations.weat import mean_rows

FIXED_WORDS_P, SENTENCES_P = "p (these words only)", "sentence-level p"
SIDES = {"greater": "one-sided, in the direction of the test", "two-sided": "two-sided"}
UNREACHABLE, NOT_MEASURED = 3, 4
_MARKS: Mapping[Evidence, int] = {
    "inconclusive": 0,
    "descriptive": 0,
    "uncorrected": 1,
    "significant": 2,
    "not_testable": UNREACHABLE,
    "skipped": NOT_MEASURED,
}
SIGNS = ("", "*", "**", "‡", "")


def choose_test(rows: Sequence[Result]) -> str:
    """Choose the test whose numbers a table of results shows: the crossed test if any of them has it."""
    tests = {row.outcome.test for row in rows}
    if any(row.protocol in PAPER_PROTOCOLS for row in rows):
        tests.add(SENTENCES)
    return next((test for test in (CROSSED, FIXED_WORDS, SENTENCES) if test in tests), CROSSED)


def get_mark(row: Result) -> int:
    """Return 0 inconclusive, 1 before correction only, 2 significant, 3 too few words, 4 not measured."""
    return _MARKS[row.evidence]


def get_sign(row: Result) -> str:
    """Return the sign of the evidence; a sanity check that is significant in the wrong direction fails and has none."""
    failed = row.about == "method" and row.opposite
    return "" if failed and get_mark(row) == 1 else SIGNS[get_mark(row)]


def make_legend(rows: Sequence[Result]) -> str:
    """Explain the signs in a table of these results, and name the family of the correction."""
    alphas = " or ".join(f"{alpha:g}" for alpha in sorted({row.alpha for row in rows}) or [0.05])
    marks = set(map(get_mark, rows))
    family = describe_correction(rows)
    parts = []
    if family or 2 in marks:
        parts.append(f"** significant: p at most {alphas} after correction ({family or 'Holm'})")
    parts.append(f"* p at most {alphas} before correction only: a lead, not a finding")
    if any(row.about == "method" and get_sign(row) == "*" for row in rows):
        parts[-1] += f"; {SANITY_CHECK_PASSED}"
    if UNREACHABLE in marks:
        parts.append("‡ too few words")
    if any(row.outcome.test == CROSSED and format_d_interval(row) == FULL_RANGE for row in rows):
        parts.append(f"{FULL_RANGE}: with other words d could have any value")
    return "; ".join(parts)


def describe_sides(rows: Sequence[Result]) -> str:
    """Describe whether the p-values in a table of these results are one-sided or two-sided."""
    measured = [row for row in rows if row.status == "measured"]
    tests = {row.outcome.test for row in measured}
    names = [FIXED_WORDS_P] * bool(tests - {SENTENCES}) + [SENTENCES_P] * (SENTENCES in tests)
    if not names:
        return ""
    which = " or ".join(dict.fromkeys(SIDES.get(row.alternative, row.alternative) for row in measured))
    crossed = "p is two-sided; " if CROSSED in tests else ""
    return f"{crossed}{' and '.join(names)} {'is' if len(names) == 1 else 'are'} {which}"


def describe_correction(rows: Sequence[Result]) -> str:
    """Name the correction and its family; empty if nothing was corrected."""
    family = describe_family(rows)
    return f"{'Bonferroni' if _list_declared(rows) else 'Holm'} over {family}" if family else ""


def describe_family(rows: Sequence[Result]) -> str:
    """Name the family that p-values are corrected over, and its size."""
    paper_sizes = _format_sizes([row for row in rows if row.family == "rows"])
    others = [row for row in rows if row.family != "rows"]
    by_model = _format_sizes(others)
    parts = []
    if paper_sizes:
        parts.append("1 sentence-level p-value" if paper_sizes == "1" else f"all {paper_sizes} sentence-level p-values")
    if by_model:
        plural = "" if by_model == "1" else "s"
        declared = _list_declared(others)
        which = (
            f"declared social-bias question{plural} ({', '.join(declared)})"
            if declared
            else f"social-bias question{plural} of this run"
        )
        parts.append(f"{by_model} {which}, per model")
    return " or ".join(parts)


def _list_declared(rows: Sequence[Result]) -> list[str]:
    """Return the names of families that were declared before the run."""
    return list(dict.fromkeys(row.family for row in rows if row.family not in (None, "run", "rows")))


def _format_sizes(rows: Sequence[Result]) -> str:
    """Return the sizes of families, from the smallest to the largest."""
    sizes = sorted({row.family_size for row in rows if row.family_size})
    return " to ".join(f"{size:,}" for size in dict.fromkeys((sizes[0], sizes[-1]))) if sizes else ""


def format_d_interval(row: Result) -> str:
    """Format the interval of d over words, whether or not it is the primary outcome."""
    return format_interval(row.crossed_ci_low, row.crossed_ci_high, row.crossed_limit)


def format_main_p(row: Result) -> str:
    """Format the main p-value with its sign."""
    return format_p(row.p_value, row.log10_p_value) + get_sign(row)


def format_published_p(row: Result) -> str:
    """Format the p-value of the papers; over contexts none below 1e-30."""
    outcome = row.published
    if row.level == "context" and outcome.p_value is not None and outcome.p_value < 1e-30:
        return "<1e-30"
    return format_p(outcome.p_value, outcome.log10_p_value)


def format_fixed_words_p(row: Result) -> str:
    """Format the p-value over target words, for these attribute words."""
    return format_p(row.fixed_words_p_value, row.fixed_words_log10_p_value)


ABSENCE = "Inconclusive does not mean unbiased."
_EFFECT = (
    "A positive {unit} means that the first targets are associated with the first attributes and the second targets "
    "with the second; a negative one means the reverse."
)
_CONCEPTS = (
    "p and the interval treat target words and attribute words as samples of their kinds: they show whether the "
    "association extends to other such words. p is two-sided."
)
_THESE_WORDS = (
    f"{FIXED_WORDS_P} compares the effect with random splits of the same target words. It does not generalize to other "
    "attribute words, and even random attribute words often reach small values."
)
_ORDINARY = (
    "A significant effect is called large if random English word sets of the same sizes reach it at most 5% of the "
    "time. If they often reach it, the association is of ordinary size."
)
_THESE_TEXTS = (
    "The sentence-level p is that of the papers. It counts every text as an observation, holds for these texts only, "
    "and is too often small if there is no association."
)
_ON_CORPUS = "Each word is averaged over its contexts. The results hold for this corpus."


def explain_numbers(run: RunData) -> str:
    """Explain the numbers of a run: effect sizes, and what each p-value tests."""
    units = " or ".join(dict.fromkeys(row.scale for row in run.results)) or "d"
    by_test = {CROSSED: (_CONCEPTS, _THESE_WORDS), FIXED_WORDS: (_THESE_WORDS,), SENTENCES: (_THESE_TEXTS,)}
    corpus = "" if run.manifest.inputs.contexts is None else _ON_CORPUS
    drawn = any(row.share_random is not None and row.outcome.test == CROSSED for row in run.results)
    size = _ORDINARY if drawn else ""
    sentences = (_EFFECT.format(unit=units), *by_test[choose_test(run.results)], size, corpus, ABSENCE)
    return " ".join(filter(None, sentences))


def format_headline(run: RunData) -> str:
    """Format tests, models, metric, protocol and alpha of a run in one line."""
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


def describe_unfinished(run: RunData, name: str = "") -> str:
    """Describe how far an interrupted run got; empty for a complete one."""
    if run.manifest.status == "complete":
        return ""
    total = len(run.manifest.models) * len(run.manifest.inputs.tests)
    return f"The run{f' {name}' if name else ''} is not finished: {len(run.results)} of {total} results are available."


_MAX_WORDS = 5
_SINGULAR = ("disease", "math", "science")  # singular labels of targets


def make_findings(run: RunData, label: str | None = None, *, brief: bool = False) -> Sequence[Finding]:
    """Make one finding per model and test.

    Parameters
    ----------
    run : RunData
    label : str, optional
        Label of the only model to include. If None, include all.
    brief : bool
        If True, leave out words and warnings.
    """
    labels = model_labels(run)
    by_model = group_pairs((model_key(row), row) for row in run.results)
    families = {key: describe_correction(rows) for key, rows in by_model.items()}
    diagnostics = {} if brief else {(model_key(row), row.test): row for row in run.tables.get("diagnostics", ())}
    return [
        _make_finding(row, labels[key], families[key], diagnostics.get((key, row.test)), brief=brief)
        for row in run.results
        if label in (None, labels[key := model_key(row)])
    ]


def _make_finding(row: Result, label: str, family: str, diagnostics: Diagnostics | None, *, brief: bool) -> Finding:
    crossed = row.outcome.test == CROSSED
    return make_outcome_finding(
        row,
        label,
        direction=describe_direction(row, row.effect_size) if row.effect_size is not None else "",
        confidence=1.0 - row.alpha,
        p_values=_list_p_values(row),
        smallest=row.power_80 if row.evidence == "inconclusive" else None,
        words=() if brief else _list_evidence_words(row),
        margin=row.margin if crossed else None,
        bound=find_equivalence_bound(row) if crossed and row.margin is not None else None,
        share_random=row.share_random if crossed else None,
        random_sets=row.random_sets if crossed else None,
        notes=tuple(_list_notes(row, diagnostics)),
        too_few_of="words",
        no_interval="",
        family="" if row.family is None else family,
        exploratory=row.exploratory,
        claim=format_claim(row, row.effect_size),
        label=format_label(row),
    )


def format_label(row: Result | AssociationRecord) -> str:
    """Format the tested association as a label of rows: "male names–career / female names–family"."""
    return " / ".join(_format_pairs(row))


def format_claim(row: Result | AssociationRecord, effect: float | None) -> str:
    """Format the association: "male names–career, female names–family".

    A negative effect has the label of the tested direction, because its sign refers to that. Without an effect, the
    claim is empty.
    """
    if effect is None:
        return ""
    return format_label(row) if effect < 0.0 else ", ".join(_format_pairs(row))


def _format_pairs(row: Result | AssociationRecord) -> tuple[str, str]:
    """Pair targets with attributes; drop "words" and repeated targets from their names."""

    def pair(target: str, attribute: str) -> str:
        target, attribute = format_concept(target), format_concept(attribute).removesuffix(" words")
        return f"{target}–{attribute.removesuffix(f' about {target}')}"

    return pair(row.targ1, row.attr1), pair(row.targ2, row.attr2)


def _list_notes(row: Result, diagnostics: Diagnostics | None) -> Iterator[str]:
    if row.searched:
        yield row.doubt
    elif row.exploratory:
        yield "exploratory: not in the declared family"
    if text := describe_equivalence(row):
        yield text
    yield from list_warnings(row, diagnostics)


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
    """Return the d of a D as large as the margin, with the spread of this result; None if it is unknown."""
    x, y = (list(row.associations.get(role, {}).values()) for role in "XY")
    if row.margin is None or len(x) + len(y) < 3 or not (x and y):
        return None
    squares = sum((value - math.fsum(values) / len(values)) ** 2 for values in (x, y) for value in values)
    spread = math.sqrt(squares / (len(x) + len(y) - 2))
    return d_from_D(row.margin, spread, len(x), len(y)) if spread > 0.0 else None


def describe_equivalence(row: Result) -> str:
    """Describe the equivalence test; empty if there is none."""
    if row.margin is None or row.p_equivalence is None or row.outcome.test != CROSSED:
        return ""
    verdict = "shown" if row.p_equivalence <= row.alpha else "not shown"
    d = margin_as_d(row)
    wide = ": this margin is too wide to be informative" if d is not None and d >= _WIDE and verdict == "shown" else ""
    as_d = "" if d is None else f", here a d of {format_decimal(d)}{wide}"
    size = f"smaller than {row.margin:g} (cosine{as_d})"
    return f"D = {row.cosine_difference:z.3f}, {verdict} to be {size}, p = {format_p(row.p_equivalence)}"


def describe_direction(row: Result | AssociationRecord, effect: float | None) -> str:
    """Describe which targets are associated with which attributes, in the measured direction."""
    first, second = format_concept(row.attr1), format_concept(row.attr2)
    if (effect or 0.0) < 0.0:
        first, second = second, first
    targets = format_concept(row.targ1)
    verb = "is" if targets.endswith(_SINGULAR) else "are"
    text = f"{targets} {verb} associated with {first}, {format_concept(row.targ2)} with {second}"
    return text[0].upper() + text[1:]


def _list_evidence_words(row: Result) -> tuple[str, ...]:
    """List the target words that add most to the effect, or whose removal reduces a metric for all sets most."""
    if row.leave_one_out is not None:
        scores = {word: abs(score) for words in row.leave_one_out.values() for word, score in words.items()}
        return tuple(sorted(scores, key=lambda word: scores[word])[:_MAX_WORDS])
    found = compute_contributions(row)
    if found is None:
        return ()
    shares = found["X"] | found["Y"]
    sign = 1.0 if sum(shares.values()) >= 0.0 else -1.0
    return tuple(sorted(shares, key=lambda word: -sign * shares[word])[:_MAX_WORDS])


def rank_topic(topic: str | None) -> int:
    """Rank a topic for display."""
    known = list(load_topics())
    return known.index(topic) if topic in known else len(known)


def group_by_topic(results: Sequence[Result]) -> Iterator[tuple[str, list[Result]]]:
    """Group one result of every test by topic; sanity checks come last."""
    tests = {r.test: r for r in reversed(results)}
    first = [tests[name] for name in dict.fromkeys(r.test for r in results)]
    people = sorted((r for r in first if r.about != "method"), key=lambda r: rank_topic(r.topic))
    groups: dict[str, list[Result]] = {}
    for r in people:
        groups.setdefault(topic_name(r.topic), []).append(r)
    yield from groups.items()
    checks = [r for r in first if r.about == "method"]
    if checks:
        yield SANITY_CHECKS, checks


def compute_contributions(result: AnyResult) -> dict[str, dict[str, float]] | None:
    """Compute the contribution of every word to the effect size over words, by role.

    The contributions of targets sum to the effect size. A target with the mean association of all targets contributes
    0. For an attribute word, the value is how much closer it is to X than to Y, in the same unit.

    Returns
    -------
    dict or None
        None if words are unknown or the effect size is undefined.
    """
    roles = {role: result.associations.get(role, {}) for role in ROLES}
    if not all(roles.values()) or result.word_effect is None:
        return None
    labels = {role: [result.clusters.get(role, {}).get(word, word) for word in roles[role]] for role in "XY"}
    means = {role: mean_rows(np.array(list(roles[role].values()))[:, None], labels[role])[:, 0] for role in "XY"}
    scores = np.concatenate([means["X"], means["Y"]])
    spread = float(scores.std(ddof=1)) if len(scores) > 1 and np.isfinite(scores).all() else 0.0
    if not spread > 1e-12 * float(np.abs(scores).max()):
        return None
    centre = float(scores.mean())
    shares = {role: {word: score / spread for word, score in roles[role].items()} for role in "AB"}
    for role, sign in (("X", 1), ("Y", -1)):
        weights = [len(means[role]) * labels[role].count(label) for label in labels[role]]
        shares[role] = {
            word: sign * (score - centre) / (weight * spread)
            for (word, score), weight in zip(roles[role].items(), weights, strict=True)
        }
    return shares


_MIN_SHARED_TEMPLATES = 0.5  # with fewer, X and Y may differ in grammar only
_MAX_TOKEN_GAP = 0.4  # between the shares of single-token words of X and Y
_MAX_FREQUENCY_RATIO = 5.0  # between the median frequencies of X and Y
_MAX_ALPHA_RATIO = 2.0  # p-values just above alpha are not worth a warning
_MAX_SIZE_RATIO = 2.0  # between sizes and between spreads of X and Y


def list_warnings(row: Result, diagnostics: Diagnostics | None) -> Iterator[str]:
    """Yield warnings about a result; most of them concern significant results only."""
    x, y = format_concept(row.targ1), format_concept(row.targ2)
    if row.shared_templates is not None and row.shared_templates < _MIN_SHARED_TEMPLATES:
        yield (
            f"{x} and {y} appear in different sentences ({row.shared_templates:.0%} in common): the effect may "
            "come from grammar instead of meaning"
        )
    if row.undeclared and row.outcome.test != SENTENCES:
        words = ", ".join(group for groups in row.undeclared.values() for group in groups)
        yield (
            f"{words} may be forms of one word or near-synonyms: declare them as a cluster unless they vary "
            "independently"
        )
    if row.evidence not in ("significant", "uncorrected"):
        return
    if diagnostics is not None and row.outcome.test == CROSSED:
        yield from _list_word_warnings(row, diagnostics, x, y)
    yield from _warn_unequal(row)


def _list_word_warnings(row: Result, diagnostics: Diagnostics, x: str, y: str) -> Iterator[str]:
    if diagnostics.p_without is not None and diagnostics.p_without > _MAX_ALPHA_RATIO * row.alpha:
        left = f"d = {format_decimal(diagnostics.d_without)}, p {format_p_relation(diagnostics.p_without)}"
        yield f"it depends on one word: without {diagnostics.driver}, {left}"
    if diagnostics.p_skew is not None and diagnostics.p_skew > row.alpha:
        p = format_p_relation(diagnostics.p_skew)
        yield f"the associations are skewed: corrected for that, p {p}, which is not significant"
    if diagnostics.single is not None and abs(diagnostics.single["X"] - diagnostics.single["Y"]) > _MAX_TOKEN_GAP:
        shares = f"{diagnostics.single['X']:.0%} of {x}, {diagnostics.single['Y']:.0%} of {y}"
        yield f"words of a single token: {shares}; tokenization may explain the difference"
    ratio = 1.0 if diagnostics.frequency is None else diagnostics.frequency["X"] / diagnostics.frequency["Y"]
    if diagnostics.frequency is not None and not 1 / _MAX_FREQUENCY_RATIO < ratio < _MAX_FREQUENCY_RATIO:
        medians = f"{diagnostics.frequency['X']:,.0f} for {x}, {diagnostics.frequency['Y']:,.0f} for {y}"
        yield f"words differ in frequency (median {medians}), which may explain the difference"


def _warn_unequal(row: Result) -> Iterator[str]:
    """Warn if X and Y differ in size and spread, because a permutation test then rejects for unequal spreads."""
    x, y = (list(row.associations.get(role, {}).values()) for role in "XY")
    if min(len(x), len(y)) < 2 or max(len(x), len(y)) < _MAX_SIZE_RATIO * min(len(x), len(y)):
        return
    if not np.isfinite([*x, *y]).all():
        return
    spreads = float(np.std(x, ddof=1)), float(np.std(y, ddof=1))
    if max(spreads) >= _MAX_SIZE_RATIO * min(spreads):
        yield (
            f"{len(x)} and {len(y)} words with unequal spreads: p (these words only) is unreliable; p does not "
            "need equal spreads"
        )


_TESTS_SHOWN = 3


def list_lost_words(run: RunData) -> list[str]:
    """Return one line per model and cause for words that were left out."""
    labels = model_labels(run)
    lost = group_pairs(
        ((labels[model_key(row)], _find_cause(row, role, word)), (row.test, word))
        for row in run.results
        if row.status == "measured"
        for role, words in row.oov_words.items()
        for word in words
    )
    return [
        f"{label} was measured without words {cause}: {format_examples(list(dict.fromkeys(words)))} "
        f"({_format_tests(list(dict.fromkeys(tests)))})"
        for (label, cause), (tests, words) in ((key, zip(*found, strict=True)) for key, found in lost.items())
    ]


def _find_cause(result: Result, role: str, word: str) -> str:
    if result.level != "context":
        return "out of its vocabulary"
    too_rare = (result.too_rare or {}).get(role, ())
    return "with too few contexts in the corpus" if word in too_rare else "that it located in too few contexts"


def list_assumptions(run: RunData) -> list[str]:
    """Return one line per test whose file does not state the words of its texts."""
    return [f"{test.name}: {describe_assumption(test.assumed)}" for test in run.manifest.inputs.tests if test.assumed]


def list_without_baseline(run: RunData) -> list[str]:
    """Name the tests without a random baseline because they do not state that their words are English."""
    if not run.manifest.settings.random_sets:
        return []
    missing = dict.fromkeys(
        (row.language or "", row.test)
        for row in run.results
        if row.cosine_difference is not None
        and row.level != "context"
        and row.protocol not in PAPER_PROTOCOLS
        and row.share_random is None
        and (row.language or "").lower().split("-")[0] != "en"
    )
    return [
        f"no random baseline, because its words are English: {_format_tests(tests)} "
        + (f"(language {language})" if language else '(no language stated; if they are English, add language = "en")')
        for language, tests in group_pairs(missing).items()
    ]


def _format_tests(tests: Sequence[str]) -> str:
    return ", ".join(tests) if len(tests) <= _TESTS_SHOWN else format_count(len(tests), "test")


def describe_assumption(assumed: Mapping[str, Sequence[str]]) -> str:
    """Describe the words that biassay assumed for the texts of a test, by role."""
    sets = "; ".join(f"{role}: {format_examples(words)}" for role, words in assumed.items())
    return (
        f"the file does not say which words its texts are about; biassay uses the words that vary between them ({sets})"
    )


def format_context_range(result: Result) -> str:
    """Format the smallest, median and largest number of contexts of the measured words."""
    if result.num_contexts is None:
        return ""
    counts = [
        count
        for role, words in result.num_contexts.items()
        for word, count in words.items()
        if word not in result.oov_words[role]
    ]
    return f"{min(counts):,} / {median(counts):,.0f} / {max(counts):,}" if counts else ""


def format_dropped_words(result: Result) -> str:
    """Format the words that were left out, with their numbers of contexts."""
    counts = result.num_contexts or {}
    return "; ".join(
        ", ".join(f"{w} {counts[role][w]}{_unlocated_note(result, role, w)}" if counts else w for w in words)
        for role, words in result.oov_words.items()
        if words
    )


def _unlocated_note(result: Result, role: str, word: str) -> str:
    return " (the model could not locate more)" if result.too_rare and word not in result.too_rare.get(role, ()) else ""


_METRICS: dict[str, tuple[tuple[str, str], ...]] = {
    CROSSED: (
        ("effect_size", "Effect size d"),
        ("ci_low", "Effect size d, lower end of the interval"),
        ("ci_high", "Effect size d, upper end of the interval"),
        ("p_value", "p-value over other words of the same kinds, two-sided"),
        ("fixed_words_p_value", FIXED_WORDS_P),
    ),
    FIXED_WORDS: (("effect_size", "Effect size, words as observations"), ("p_value", FIXED_WORDS_P)),
    SENTENCES: (("effect_size", "Effect size, texts as observations"), ("p_value", "p-value, texts as observations")),
}


def make_index_entry(result: Result, run: RunData) -> IndexEntry:
    """Make the model-card entry of one test on one model."""
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
        metrics=tuple(CardMetric(name, title, getattr(result, name)) for name, title in _list_metrics(result)),
    )


def _list_metrics(result: Result) -> tuple[tuple[str, str], ...]:
    names = _METRICS[result.outcome.test or CROSSED]
    if result.margin is None or result.p_equivalence is None or result.outcome.test != CROSSED:
        return names
    return *names, ("p_equivalence", f"p-value, D smaller than {result.margin:g} (cosine units)")


def describe_run(run: RunData, results: Sequence[Result]) -> str:
    """Describe the measurement of one model."""
    if run.manifest.inputs.contexts is not None:
        method = f"associations over contexts from a corpus (CEAT, {run.manifest.settings.n_samples:,} samples)"
    elif all(result.level == "word" for result in results):
        method = "associations between words (WEAT)"
    else:
        method = "associations between words and between sentences (WEAT, SEAT)"
    return f"{method} by {format_count(len(results), 'test')}, alpha {run.manifest.settings.alpha_or_default:g}"
