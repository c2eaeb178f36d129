"""One test on one model: vectors of its texts in, a measurement or a refusal out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from biassay.errors import BiassayError, StimulusError, UsageError
from biassay.models.base import Encoded, Span
from biassay.stats.association import largest_parts
from biassay.stats.blocks import row_blocks
from biassay.stats.random_attributes import share_reaching
from biassay.stimuli.model import ROLES, Test
from biassay.studies.associations.averaging import Words, associations_of_words, mean_rows, padded
from biassay.studies.associations.metric_registry import metric_named
from biassay.studies.associations.metrics import ByPairs, Metric
from biassay.studies.associations.settings import Settings
from biassay.studies.associations.weat import Association, Testing, by_word_of
from biassay.studies.associations.word_forms import undeclared_forms
from biassay.studies.seeds import seed_of
from biassay.texts.sentences import TestTexts, Text, forms
from biassay.texts.sharing import sharing

__all__ = ["Measurement", "check_tests", "measure", "usable_texts", "usable_vectors"]


@dataclass(frozen=True, eq=False)
class Measurement:
    """What came of one test on one model.

    Attributes
    ----------
    association : Association or None
        None if the test was refused or failed; then ``reason`` says why.
    status : {"measured", "refused", "failed"}
        Refused: too many words were lost. Failed: the numbers leave the statistic undefined.
    num_texts, num_words, num_cut : role -> int
        Texts that were measured, words they were made from, and texts the model did not read to the end.
    lost : role -> words
        Words, in the form in which they stood in a text, that the model does not know.
    associations : role -> word -> float
        For targets the mean association with A rather than B; for attributes the mean cosine with X rather than Y.
    shared_templates : float or None
        How much of their texts X and Y have in common. Words are compared on the templates that they share.
    share_random : float or None
        How often random attribute words give an effect by word as large.
    undeclared : role -> words
        Words that look like forms of one word and are not declared as a cluster.
    """

    association: Association | None
    status: Literal["measured", "refused", "failed"]
    reason: str | None
    num_texts: Mapping[str, int]
    num_words: Mapping[str, int]
    num_cut: Mapping[str, int]
    lost: Mapping[str, tuple[str, ...]]
    associations: Mapping[str, Mapping[str, float]]
    shared_templates: float | None = None
    share_random: float | None = None
    undeclared: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def check_tests(tests: tuple[Test, ...], settings: Settings) -> None:
    """Refuse, before anything is encoded, what the protocol cannot measure."""
    for test in tests:
        sizes = len(test.X.words), len(test.Y.words)
        if settings.protocol == "may2019" and sizes[0] != sizes[1] and not test.has_target_sentences:
            raise StimulusError(
                f"test {test.name!r}: protocol may2019 needs target sets of one size, got {sizes[0]} and {sizes[1]}; "
                "use protocol exact"
            )


def measure(
    test: Test,
    texts: TestTexts,
    encoded: Mapping[str, Encoded],
    settings: Settings,
    lost_hint: str = "",
    vocabulary: NDArray[np.float32] | None = None,
) -> Measurement:
    """Measure one test; ``encoded`` holds the vectors of its texts by role, ``vocabulary`` (n, d) of random words."""
    kept, lost, reason = usable_texts(test, texts, encoded, settings.max_lost, lost_hint)
    if settings.protocol == "may2019" and test.has_target_sentences:
        _truncate(kept, np.random.default_rng(seed_of(settings.seed, test.name, "truncate")))
    chosen = {role: [texts.role(role)[i] for i in kept[role]] for role in ROLES}
    counts: dict[str, Any] = {
        "num_texts": {role: len(chosen[role]) for role in ROLES},
        "num_words": {role: len({text.stimulus for text in chosen[role]}) for role in ROLES},
        "num_cut": {role: sum(encoded[role].cut[i] is not None for i in kept[role]) for role in ROLES},
    }
    if reason is not None:
        return Measurement(None, "refused", reason, **counts, lost=lost, associations={})
    shares = sharing(texts.X, texts.Y)
    try:
        vectors = {
            role: of.vectors if len(kept[role]) == len(of.vectors) else of.vectors[kept[role]]
            for role, of in ((role, encoded[role]) for role in ROLES)
        }
        for role in ROLES:
            largest_parts(
                vectors[role], test.concept(role).label, [t.text for t in chosen[role]]
            )  # names what is wrong
        _check_case(vectors, chosen)
        metric = metric_named(settings.metric)
        rng = np.random.default_rng(seed_of(settings.seed, test.name, "p-value"))
        how = Testing(
            settings.protocol,
            settings.alternative,
            words=_words(test, chosen),
            clusters=_clusters(test, chosen),
            rng=rng,
        )
        found = metric.associate(vectors, how)
        if how.words is not None and shares.templates is not None and not settings.of_papers:
            places = {role: [i for i, text in enumerate(chosen[role]) if shares.keeps(text)] for role in "XY"}
            vectors |= {role: vectors[role][own] for role, own in places.items()}
            chosen |= {role: [chosen[role][i] for i in own] for role, own in places.items()}
            shared = replace(how, words=_words(test, chosen), clusters=_clusters(test, chosen), p=found.p)
            found = by_word_of(found, metric.associate(vectors, shared))
        if not test.tells_words:
            found = replace(found, cosines=None)
        associations = _associations(metric, found, vectors, chosen)
        rare = _share_random(metric, found, vectors, chosen, vocabulary, settings)
        undeclared = _undeclared(test, vectors, chosen) if test.tells_words else {}
    except UsageError as error:
        return Measurement(None, "refused", str(error), **counts, lost=lost, associations={})
    except BiassayError as error:
        return Measurement(None, "failed", str(error), **counts, lost=lost, associations={})
    return Measurement(
        found, "measured", None, **counts, lost=lost, associations=associations,
        shared_templates=shares.share, share_random=rare, undeclared=undeclared,
    )  # fmt: skip


def _share_random(
    metric: Metric,
    found: Association,
    vectors: Mapping[str, NDArray[np.float32]],
    chosen: Mapping[str, list[Text]],
    vocabulary: NDArray[np.float32] | None,
    settings: Settings,
) -> float | None:
    """How often random attribute words give an effect by word as large; None where it cannot be asked."""
    if vocabulary is None or found.cosines is None or found.effect_size_by_word is None:
        return None
    if not len(vocabulary) or not isinstance(metric, ByPairs):
        return None
    words = [f"{role} {text.stimulus}" for role in "XY" for text in chosen[role]]
    targets = np.concatenate([vectors["X"], vectors["Y"]])
    n, x_y_a_b = found.num_words[0], padded(found.clusters)

    def cosines_of(some: NDArray[np.float32]) -> NDArray[np.float64]:
        table = metric.matrix_of_words(targets, words, some)
        parts = zip((table[:n], table[n:]), x_y_a_b[:2], strict=True)
        return np.concatenate([mean_rows(part, labels) for part, labels in parts])

    a, b = (
        count if labels is None else len(set(labels))
        for count, labels in zip(found.num_words[2:], x_y_a_b[2:], strict=True)
    )
    return share_reaching(
        (cosines_of(vocabulary[block]) for block in row_blocks((len(vocabulary), sum(found.num_words[:2])))),
        n if x_y_a_b[0] is None else len(set(x_y_a_b[0])),
        len(vocabulary),
        (a, b),
        found.effect_size_by_word,
        settings.random_sets,
        settings.seed,
    )


def usable_vectors(encoded: Encoded) -> NDArray[np.float32]:
    """Vectors of the texts that the model knows, those left out that have no direction."""
    known = np.array([not spans for spans in encoded.unknown], dtype=np.bool_)
    known &= np.isfinite(encoded.vectors).all(axis=1) & encoded.vectors.any(axis=1)
    return encoded.vectors[known]


def usable_texts(
    test: Test,
    texts: TestTexts,
    encoded: Mapping[str, Encoded],
    max_lost: float,
    lost_hint: str = "",
    command: str = "run",
) -> tuple[dict[str, list[int]], dict[str, tuple[str, ...]], str | None]:
    """By role the places of the texts that the model knows, and the words lost; and why these are too many."""
    kept: dict[str, list[int]] = {}
    lost: dict[str, tuple[str, ...]] = {}
    for role in ROLES:
        of_role = encoded[role]
        gone = [_lost(t, of_role.unknown[i], of_role.cut[i]) for i, t in enumerate(texts.role(role))]
        kept[role] = [i for i, spans in enumerate(gone) if not spans]
        lost[role] = forms(replace(t, spans=spans) for t, spans in zip(texts.role(role), gone, strict=True) if spans)
    reason = _too_many_lost(test, texts, kept, lost, max_lost, command)
    return kept, lost, f"{reason}; {lost_hint}" if reason is not None and lost_hint else reason


def _lost(text: Text, unknown: tuple[Span, ...], cut: int | None) -> tuple[Span, ...]:
    """The places of those words that the text is about and the model did not know, or did not read as far as."""
    if cut is None and not unknown:
        return ()
    return tuple(
        (start, end)
        for start, end in text.spans
        if (cut is not None and cut < end) or any(a < end and start < b for a, b in unknown)
    )


def _too_many_lost(
    test: Test,
    texts: TestTexts,
    kept: Mapping[str, list[int]],
    lost: Mapping[str, tuple[str, ...]],
    max_lost: float,
    command: str,
) -> str | None:
    for role in ROLES:
        total = len(texts.role(role))
        gone = total - len(kept[role])
        if gone > max_lost * total or (gone and len(kept[role]) < 2):
            kind = "words" if test.level == "word" else "texts"
            count = f"the model does not know {gone} of {total} {kind} of {test.concept(role).label}"
            option = f"`biassay {command} --max-lost`"
            limit = f"the limit is {max_lost:.0%}, {option} changes it" if max_lost < 1.0 else "too few are left"
            return f"{count} ({', '.join(lost[role])}); {limit}"
    return None


def _truncate(kept: dict[str, list[int]], rng: np.random.Generator) -> None:
    """Cut the longer target set to the length of the shorter, at random and in order, as the published files were."""
    size = min(len(kept["X"]), len(kept["Y"]))
    for role in "XY":
        if len(kept[role]) > size:
            kept[role] = sorted(rng.choice(kept[role], size=size, replace=False).tolist())


def _check_case(vectors: Mapping[str, NDArray[np.float32]], chosen: Mapping[str, list[Text]]) -> None:
    """Refuse words that differ only in case if the model gives them the same vectors: they are one word."""
    spellings: dict[str, dict[tuple[str, str], list[int]]] = {}
    for role in ROLES:
        for row, text in enumerate(chosen[role]):
            spellings.setdefault(text.stimulus.casefold(), {}).setdefault((role, text.stimulus), []).append(row)
    for words in spellings.values():
        for (one, first), (other, second) in combinations(words, 2):
            rows = vectors[one][words[one, first]], vectors[other][words[other, second]]
            if first != second and rows[0].shape == rows[1].shape and np.array_equal(*rows):
                raise UsageError(
                    f"{first!r} ({one}) and {second!r} ({other}) differ only in case, and the model gives both "
                    "the same vector; remove one of them"
                )


def _undeclared(
    test: Test, vectors: Mapping[str, NDArray[np.float32]], chosen: Mapping[str, list[Text]]
) -> dict[str, tuple[str, ...]]:
    words = {role: [text.stimulus for text in chosen[role]] for role in ROLES}
    return undeclared_forms(vectors, words, {role: test.concept(role).cluster_labels for role in ROLES})


def _words(test: Test, chosen: Mapping[str, list[Text]]) -> Words | None:
    if not test.tells_target_words:
        return None
    x, y, a, b = ([text.stimulus for text in chosen[role]] for role in ROLES)
    return (x, y, a, b) if test.tells_words else (x, y)


def _clusters(test: Test, chosen: Mapping[str, list[Text]]) -> Words | None:
    """Return the cluster of every text, in the form of the words; None if no cluster has several words."""
    if not test.tells_target_words or not any(test.concept(role).clusters for role in ROLES):
        return None
    labels = {role: test.concept(role).cluster_labels for role in ROLES}
    x, y, a, b = ([labels[role].get(text.stimulus, text.stimulus) for text in chosen[role]] for role in ROLES)
    return (x, y, a, b) if test.tells_words else (x, y)


def _associations(
    metric: Metric, found: Association, vectors: Mapping[str, NDArray[np.float32]], chosen: Mapping[str, list[Text]]
) -> dict[str, dict[str, float]]:
    """Association of every word, by role; empty for a metric that gives one score of four sets."""
    names = {role: list(dict.fromkeys(text.stimulus for text in chosen[role])) for role in ROLES}
    if found.cosines is not None:
        n, _, k, _ = found.num_words
        targets, attributes = associations_of_words(found.cosines, found.num_words, found.clusters)
        means = {"X": targets[:n], "Y": targets[n:], "A": attributes[:k], "B": attributes[k:]}
    else:
        scores = {"X": found.x, "Y": found.y, **metric.of_attributes(vectors)} if found.x.size else {}
        words = {role: [text.stimulus for text in chosen[role]] for role in scores}
        means = {role: mean_rows(scores[role][:, None], words[role])[:, 0] for role in scores}
    return {role: dict(zip(names[role], map(float, own), strict=True)) for role, own in means.items()}
