"""Rows of robustness, made from what was measured."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from biassay.models.base import Identity
from biassay.results.labels import model_key
from biassay.stats.crossed import crossed_test
from biassay.stats.crossed_effect import crossed_effect
from biassay.stats.joint import joint_test
from biassay.stats.multiple import holm_by_question
from biassay.stimuli.model import ROLES, Test
from biassay.studies.robustness.records import Kind, Result, Specification
from biassay.studies.robustness.settings import Settings
from biassay.studies.robustness.specifications import FREQUENCY, TOKENS, Measured

__all__ = ["asked", "measured_row", "rows_of", "with_corrections"]


def asked(test: Test, identity: Identity, settings: Settings) -> dict[str, Any]:
    """What was asked of which model."""
    return {
        "model": identity.name,
        "options": identity.options,
        "model_revision": identity.revision,
        "test": test.name,
        "title": test.title,
        "about": test.about,
        "topic": test.topic,
        "targ1": test.X.label,
        "targ2": test.Y.label,
        "attr1": test.A.label,
        "attr2": test.B.label,
        "alpha": settings.alpha,
        "direction": test.direction,
        "variant_of": test.variant_of,
    }


def rows_of(found: Sequence[Measured], about: dict[str, Any], settings: Settings) -> Iterator[Specification]:
    """One row a specification."""
    for one in found:
        yield Specification(
            **{name: about[name] for name in ("model", "options", "model_revision", "test")},
            kind=one.kind,
            reading=one.reading,
            similarity=one.similarity,
            template=one.template,
            words=one.words,
            **_numbers(one, 1.0 - settings.alpha),
            num_words=dict(zip(ROLES, one.sizes, strict=True)),
        )


def _numbers(one: Measured, confidence: float) -> dict[str, Any]:
    """The effect, its interval and its p-value; None all of them where there is no effect to speak of."""
    n, _, k, _ = one.sizes
    if one.is_known:
        effect = crossed_effect(one.cosines, n, k, confidence=confidence)
        if not math.isnan(effect.effect_size):
            p_value = crossed_test(one.cosines, n, k, confidence=confidence).p_value
            return {"d": effect.effect_size, "d_low": effect.low, "d_high": effect.high, "p_value_crossed": p_value}
    return dict.fromkeys(("d", "d_low", "d_high", "p_value_crossed"))


def measured_row(
    found: Sequence[Measured], rows: Sequence[Specification], about: dict[str, Any], rng: np.random.Generator
) -> Result:
    """What all specifications of a test say together."""
    first = rows[0]
    if first.d is None:
        return Result(**about, status="failed", reason="all target words have one association, so that d is undefined")
    sign = math.copysign(1.0, first.d)
    scores = [one.scores for one in found if one.kind in _CHOICES and one.is_known]
    joint = joint_test(np.stack(scores), found[0].sizes[0], rng=rng)
    choices = [row for row in rows if row.kind in _CHOICES and row.d is not None]
    left = [row for row in rows if row.kind == "word" and row.d is not None]
    weakest = min(left, key=lambda row: sign * (row.d or 0.0), default=None)
    return Result(
        **about,
        status="measured",
        reason=None,
        d=first.d,
        d_low=first.d_low,
        d_high=first.d_high,
        p_value_crossed=first.p_value_crossed,
        choices=len(choices),
        d_median=_number(joint.median),
        d_smallest=min((row.d for row in choices if row.d is not None), default=None),
        d_largest=max((row.d for row in choices if row.d is not None), default=None),
        same_sign=sum(_agrees(row, sign) for row in choices),
        significant=sum(_agrees(row, sign) and _significant(row, about["alpha"]) for row in choices),
        p_joint=_number(joint.p_value),
        without_word=None if weakest is None else weakest.words.removeprefix("without "),
        d_without_word=None if weakest is None else weakest.d,
        share_sign_words=_share([_agrees(row, sign) for row in left]),
        share_sign_subsets=_share([_agrees(row, sign) for row in rows if row.kind == "subset"]),
        d_equal_tokens=_matched(rows, TOKENS),
        d_equal_frequency=_matched(rows, FREQUENCY),
    )


_CHOICES: tuple[Kind, ...] = ("model", "template")


def _agrees(row: Specification, sign: float) -> bool:
    return row.d is not None and row.d * sign > 0.0


def _significant(row: Specification, alpha: float) -> bool:
    return row.p_value_crossed is not None and row.p_value_crossed <= alpha


def _share(flags: Sequence[bool]) -> float | None:
    return float(np.mean(flags)) if flags else None


def _matched(rows: Sequence[Specification], words: str) -> float | None:
    return next((row.d for row in rows if row.words == words), None)


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


def with_corrections(results: Sequence[Result], alpha: float) -> tuple[Result, ...]:
    """Correct the crossed p-values over the social-bias questions of each model, as in association tests."""
    families: dict[Any, list[int]] = {}
    for i, row in enumerate(results):
        if row.about == "people" and row.p_value_crossed is not None:
            families.setdefault(model_key(row), []).append(i)
    rows = [dataclasses.replace(row, p_value_crossed_holm=None, family=None, form_of=None) for row in results]
    for members in families.values():
        places = sorted(members, key=lambda i: (results[i].variant_of is not None, results[i].test))
        questions = [results[i].variant_of or results[i].test for i in places]
        found = holm_by_question([results[i].p_value_crossed or 0.0 for i in places], questions, alpha)
        first = {question: results[i].test for i, question in reversed([*zip(places, questions, strict=True)])}
        for i, question, p in zip(places, questions, found.adjusted.tolist(), strict=True):
            form_of = None if first[question] == results[i].test else first[question]
            rows[i] = dataclasses.replace(rows[i], p_value_crossed_holm=p, family=found.n, form_of=form_of)
    return tuple(rows)
