"""Survey: interim mean ratings, as the researcher sees them."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .claim import INTERVAL, Claim, Coverage, Experiment, Line

__all__ = ["CLAIMS", "lines"]

ANNOTATIONS, GROUPS, SECONDS = 20, 5, 60.0
SHAPES = ((2.0, 2.0), (1.0, 3.0), (0.3, 0.9), (6.0, 1.5))  # of beta distributions: the middle, low, heaped at 0, high

CLAIMS = (
    Claim(
        "mean rating",
        "survey",
        "95% of a mean rating",
        ("survey.progress.low", "survey.progress.high"),
        "The range of the mean rating of a group on a pair, over other annotators.",
        "The mean rating of all potential annotators.",
        "annotator",
        "Annotators are a sample; means of this many ratings are approximately normal.",
        "Makes no allowance for repeated looks while a study runs.",
    ),
)


class _Clock:
    """A clock that advances only on request."""

    now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


def _draw(rng: np.random.Generator) -> Mapping[str, Any]:
    """Simulate a study with four trait pairs until it is complete."""
    from biassay.survey.database import open_database
    from biassay.survey.progress import compute_progress
    from biassay.survey.store import Store
    from biassay.survey.study import QualityRules, read_study

    given = read_study("cao2022")
    study = replace(
        given,
        groups=given.groups[:GROUPS],
        pairs=given.pairs[: len(SHAPES)],
        annotations=ANNOTATIONS,
        groups_per_participant=GROUPS,
        rules=QualityRules(
            which_group=False, high_low=False, self_agreement=0.0, tolerance=100, seconds_per_group=0.0, spread=0
        ),
        demographics=(),
    )
    with tempfile.TemporaryDirectory(prefix="biassay-validity-") as folder:
        engine = open_database(f"sqlite:///{Path(folder) / 'study.sqlite'}")
        try:
            store = Store(engine, study, clock=_Clock())
            while (someone := store.add_participant()) is not None:
                _take_part(store, someone.id, rng)
            found = compute_progress(store)
        finally:
            engine.dispose()
    means = [mean for group in found.groups for mean in group.means]
    truth = [_mean(*shape) for _ in found.groups for shape in SHAPES]
    return {
        "low": [mean.low - true for mean, true in zip(means, truth, strict=True)],  # type: ignore[operator]
        "high": [mean.high - true for mean, true in zip(means, truth, strict=True)],  # type: ignore[operator]
    }


def _take_part(store: Any, participant: str, rng: np.random.Generator) -> None:
    for step, page in enumerate(store.steps[:-1]):
        if page.kind == "group":
            ratings = [int(np.rint(100.0 * rng.beta(*shape))) for shape in SHAPES]
            store.save_step(participant, step, {"ratings": ratings, "since": store.clock() - SECONDS})
        else:
            store.save_step(participant, step, {})


def _mean(a: float, b: float) -> float:
    """Return the mean rating before rounding to integers, which changes it by less than 0.01."""
    return 100.0 * a / (a + b)


def lines() -> list[Line]:
    about = f"{GROUPS} groups, {ANNOTATIONS} annotators each, ratings of four shapes, by the whole survey"
    world = Experiment("ratings", about, _draw, 60)
    return [Line("mean rating", world, Coverage("low", "high", 0.0, INTERVAL))]
