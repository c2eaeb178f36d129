"""Measure all specifications of one test, and summarize them in rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.datasets.schema import ROLES, Test
from biassay.errors import DegenerateError
from biassay.grouping import group_pairs
from biassay.prompts.sentences import StimulusText, get_template
from biassay.results.outcomes import Outcome
from biassay.results.run_data import copy_fields
from biassay.stats.crossed import crossed_test
from biassay.stats.crossed_effect import crossed_effect
from biassay.stats.specification_curve import joint_test, match_values
from biassay.studies.associations.weat import mean_rows
from biassay.studies.robustness.results import (
    ALL_WORDS,
    Kind,
    RobustnessResult,
    Specification,
    summarize_specifications,
)
from biassay.studies.robustness.settings import RobustnessSettings

EQUAL_TOKENS, EQUAL_FREQUENCY = "equal tokens", "equal frequency"
_FACTOR = 2.0  # between ranks of about equal frequency
_SAME = 1e-6  # difference of cosines
_FEWEST = 4  # words in a set of a subset or of matched words
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SpecificationResult:
    """A specification and its cosines of words: rows X and Y, columns A and B; NaN for a vector without direction."""

    representation: str
    similarity: str
    cosines: Floats
    sizes: tuple[int, ...]
    kind: Kind = "model"
    template: str = ""
    words: str = ""

    @property
    def is_known(self) -> bool:
        """Whether all cosines are defined."""
        return bool(np.isfinite(self.cosines).all())

    def repeats(self, other: SpecificationResult) -> bool:
        """Return whether it gives the same cosines of words as another specification."""
        return np.allclose(self.cosines, other.cosines, rtol=0.0, atol=_SAME)

    @property
    def scores(self) -> Floats:
        """Associations of the target words."""
        k = self.sizes[2]
        return np.asarray(self.cosines[:, :k].mean(axis=1) - self.cosines[:, k:].mean(axis=1))


@dataclass(frozen=True, eq=False)
class SpecificationMaterial:
    """Texts of a test, and properties of its words.

    Attributes
    ----------
    test : Test
    texts : dict of str to sequence of StimulusText
        Texts by role that the model knows, in templates that the target words share.
    tokens, ranks : callable
        Function from words to their numbers of tokens, and to their ranks by frequency; it may return None.
    """

    test: Test
    texts: Mapping[str, Sequence[StimulusText]]
    tokens: Callable[[Sequence[str]], NDArray[np.int64] | None]
    ranks: Callable[[Sequence[str]], NDArray[np.float64] | None]

    def clusters(self, role: str) -> dict[str, list[str]]:
        """Return the words of every cluster, by the name of the cluster: he/him/his."""
        labels = self.test.concept(role).cluster_labels
        known = dict.fromkeys(text.stimulus for text in self.texts[role])
        joined = group_pairs((labels.get(word, word), word) for word in known)
        return {"/".join(words): words for words in joined.values()}


def vary_model(
    material: SpecificationMaterial, representation: str, similarity: str, units: Mapping[str, Floats], *, first: bool
) -> Iterator[SpecificationResult]:
    """Yield the specification of one representation and similarity, and of each template for the first one.

    Parameters
    ----------
    material : SpecificationMaterial
    representation, similarity : str
        Layer and pooling, and similarity of vectors.
    units : dict of str to (n, d) float64
        Directions of the texts by role.
    first : bool
        If True, it is the first specification of the test, which is also varied by template.

    Raises
    ------
    DegenerateError
        If a vector of the first specification has no direction.
    """
    found = SpecificationResult(representation, similarity, *_average_words(material, units, material.texts))
    if first and not found.is_known:
        raise DegenerateError("some vectors are zero, so they have no direction")
    yield found
    if first:
        yield from _vary_templates(material, units, found)


def vary_words(
    material: SpecificationMaterial, first: SpecificationResult, n_subsets: int, rng: np.random.Generator
) -> Iterator[SpecificationResult]:
    """Yield the first specification with other words: each left out, random halves, matched words.

    Parameters
    ----------
    material : SpecificationMaterial
    first : SpecificationResult
        The default representation with cosine.
    n_subsets : int
        Number of random halves.
    rng : numpy.random.Generator
    """
    yield from _leave_words_out(material, first)
    yield from _draw_subsets(first, n_subsets, rng)
    yield from _match_words(material, first)


def _average_words(
    material: SpecificationMaterial, units: Mapping[str, Floats], texts: Mapping[str, Sequence[StimulusText]]
) -> tuple[Floats, tuple[int, ...]]:
    """Average the texts of a word, then the words of a cluster."""
    means = []
    for role in ROLES:
        words = [text.stimulus for text in texts[role]]
        labels = material.test.concept(role).cluster_labels
        clusters = [labels.get(word, word) for word in dict.fromkeys(words)]
        means.append(mean_rows(mean_rows(units[role], words), clusters))
    x, y, a, b = means
    return np.concatenate([x, y]) @ np.concatenate([a, b]).T, (len(x), len(y), len(a), len(b))


def _vary_templates(
    material: SpecificationMaterial, units: Mapping[str, Floats], first: SpecificationResult
) -> Iterator[SpecificationResult]:
    """Yield each template that all target words have."""
    names = dict.fromkeys(get_template(text) for role in "XY" for text in material.texts[role])
    for name in names if len(names) > 1 else ():
        kept = {
            role: [i for i, text in enumerate(texts) if role in "AB" or get_template(text) == name]
            for role, texts in material.texts.items()
        }
        texts = {role: [material.texts[role][i] for i in own] for role, own in kept.items()}
        if any(_count_words(texts[role]) < _count_words(material.texts[role]) for role in "XY"):
            continue
        rows = {role: units[role][own] for role, own in kept.items()}
        cosines, sizes = _average_words(material, rows, texts)
        yield replace(first, kind="template", template=name, cosines=cosines, sizes=sizes)


def _count_words(texts: Sequence[StimulusText]) -> int:
    return len({text.stimulus for text in texts})


def _leave_words_out(material: SpecificationMaterial, first: SpecificationResult) -> Iterator[SpecificationResult]:
    for role, size in zip(ROLES, first.sizes, strict=True):
        for i, word in enumerate(material.clusters(role) if size > 2 else ()):
            yield _select_part(first, {role: [j for j in range(size) if j != i]}, "word", f"without {word}")


def _draw_subsets(
    first: SpecificationResult, n_subsets: int, rng: np.random.Generator
) -> Iterator[SpecificationResult]:
    """Yield random halves of all four sets if these are large enough."""
    halves = [math.ceil(size / 2) for size in first.sizes]
    for number in range(n_subsets if min(halves) >= _FEWEST else 0):
        pairs = zip(ROLES, first.sizes, halves, strict=True)
        kept = {role: sorted(rng.choice(size, half, replace=False).tolist()) for role, size, half in pairs}
        yield _select_part(first, kept, "subset", f"random half {number + 1}")


def _match_words(material: SpecificationMaterial, first: SpecificationResult) -> Iterator[SpecificationResult]:
    """Yield target words matched in number of tokens and in frequency, unless all words match already."""
    x, y = (list(material.clusters(role).values()) for role in "XY")
    every = [word for cluster in (*x, *y) for word in cluster]
    for name, known, factor in ((EQUAL_TOKENS, material.tokens, 1.0), (EQUAL_FREQUENCY, material.ranks, _FACTOR)):
        values = known(every)
        if values is None:
            continue
        of_word = dict(zip(every, values.tolist(), strict=True))
        means = [[float(np.mean([of_word[word] for word in cluster])) for cluster in of] for of in (x, y)]
        of_x, of_y = match_values(means[0], means[1], factor)
        if min(len(of_x), len(of_y)) >= _FEWEST and len(of_x) + len(of_y) < len(x) + len(y):
            yield _select_part(first, {"X": of_x, "Y": of_y}, "matched", name)


def _select_part(
    first: SpecificationResult, kept: Mapping[str, Sequence[int]], kind: Kind, words: str
) -> SpecificationResult:
    """Select the words in `kept`, and all words of sets without an entry."""
    x, y, a, b = (list(kept.get(role, range(size))) for role, size in zip(ROLES, first.sizes, strict=True))
    rows, columns = [*x, *(first.sizes[0] + i for i in y)], [*a, *(first.sizes[2] + i for i in b)]
    part, sizes = first.cosines[np.ix_(rows, columns)], (len(x), len(y), len(a), len(b))
    return replace(first, kind=kind, words=words, cosines=part, sizes=sizes)


def make_specification_rows(
    results: Sequence[SpecificationResult], fields: dict[str, Any], settings: RobustnessSettings
) -> Iterator[Specification]:
    """Yield one row per specification.

    Parameters
    ----------
    results : sequence of SpecificationResult
    fields : dict
        Fields of the test, see `describe_test`.
    settings : RobustnessSettings
    """
    for result in results:
        yield Specification(
            **{name: fields[name] for name in ("model", "options", "model_revision", "test")},
            **copy_fields(result, "kind", "representation", "similarity", "template", "words"),
            **_make_effect_fields(result, 1.0 - settings.alpha),
            n_words=dict(zip(ROLES, result.sizes, strict=True)),
        )


_EFFECT_FIELDS = ("effect_size", "standard_error", "ci_low", "ci_high", "p_value")


def _make_effect_fields(result: SpecificationResult, confidence: float) -> dict[str, Any]:
    """Return the effect, its interval and its p-value; all are None if the effect is undefined."""
    n, _, k, _ = result.sizes
    if result.is_known:
        effect = crossed_effect(result.cosines, n, k, confidence=confidence)
        if not math.isnan(effect.effect_size):
            p_value = crossed_test(result.cosines, n, k, confidence=confidence).p_value
            numbers = effect.effect_size, effect.standard_error, effect.low, effect.high, p_value
            return dict(zip(_EFFECT_FIELDS, numbers, strict=True))
    return dict.fromkeys(_EFFECT_FIELDS)


def _make_outcome(row: Specification, alpha: float) -> Outcome:
    return Outcome(**copy_fields(row, *_EFFECT_FIELDS), confidence=1.0 - alpha, test="crossed", n=row.n_words)


def make_robustness_result(
    results: Sequence[SpecificationResult],
    rows: Sequence[Specification],
    fields: dict[str, Any],
    rng: np.random.Generator,
) -> RobustnessResult:
    """Summarize all specifications of a test.

    Parameters
    ----------
    results : sequence of SpecificationResult
        All specifications, the default one first.
    rows : sequence of Specification
        Their rows, in the same order.
    fields : dict
        Fields of the test, see `describe_test`.
    rng : numpy.random.Generator
        Generator of the relabellings of the joint test.
    """
    first, alpha = rows[0], fields["alpha"]
    if first.effect_size is None:
        return RobustnessResult(
            **fields, status="failed", reason="all target words have the same association, so d is undefined"
        )
    sign = math.copysign(1.0, first.effect_size)
    scores = [result.scores for result in results if result.kind in ALL_WORDS and result.is_known]
    joint = joint_test(np.stack(scores), results[0].sizes[0], rng=rng)
    counts, median = summarize_specifications(
        [row for row in rows if row.kind in ALL_WORDS], alpha, joint, "permutation, target words"
    )
    left_out = [row for row in rows if row.kind == "word" and row.effect_size is not None]
    weakest = min(left_out, key=lambda row: sign * (row.effect_size or 0.0), default=None)
    matched = {row.words: row for row in rows if row.kind == "matched"}
    others = {
        "without_word": weakest,
        "equal_tokens": matched.get(EQUAL_TOKENS),
        "equal_frequency": matched.get(EQUAL_FREQUENCY),
    }
    return RobustnessResult(
        **fields,
        **counts,
        outcome=_make_outcome(first, alpha),
        alternatives={name: _make_outcome(row, alpha) for name, row in others.items() if row} | {"joint": median},
        without_word=None if weakest is None else weakest.words.removeprefix("without "),
        share_sign_words=_share_sign(left_out, sign),
        share_sign_subsets=_share_sign([row for row in rows if row.kind == "subset"], sign),
    )


def _share_sign(rows: Sequence[Specification], sign: float) -> float | None:
    return float(np.mean([(row.effect_size or 0.0) * sign > 0.0 for row in rows])) if rows else None
