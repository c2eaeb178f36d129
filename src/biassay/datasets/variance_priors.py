"""Typical variance components of association tests, measured on several models."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from statistics import median
from typing import Any

from biassay.datasets.catalogue import load_catalogue
from biassay.datasets.fields import DATA
from biassay.datasets.schema import Test
from biassay.stats.crossed import VarianceComponents

ComponentsByTest = Mapping[str, list[VarianceComponents]]
"""Components of each test, one per measured model."""


def list_measured_models() -> tuple[str, ...]:
    """Return the models on which the components were measured."""
    return tuple(_load_file()["models"])


def typical_components(test: Test | None = None) -> VarianceComponents:
    """Return medians over the measured models, in units of the variance of associations within target sets.

    For a test outside the catalogue, these are medians over the main tests of its level; without a test, over the main
    tests of words.
    """
    return _find_components(_load_components(calibrated=False), test)


def calibrated_components(test: Test) -> VarianceComponents:
    """Return medians over the measured models, in units of the SD of cosines between frequent words.

    For a test outside the catalogue, these are medians over the main tests of its level.
    """
    return _find_components(_load_components(calibrated=True), test)


def _find_components(components: ComponentsByTest, test: Test | None) -> VarianceComponents:
    catalogue = load_catalogue()
    if test is not None and catalogue.tests.get(test.name) == test:
        measured = components.get(test.alias_of or test.name)
        if measured:
            return _median_components(measured)
    level = "word" if test is None else test.level
    names = [main.name for main in catalogue.main_tests if main.level == level]
    return _median_components(_median_components(components[name]) for name in names if components.get(name))


@cache
def _load_file() -> Mapping[str, Any]:
    content: Mapping[str, Any] = json.loads((DATA / "components.json").read_text("utf-8"))
    return content


@cache
def _load_components(*, calibrated: bool) -> ComponentsByTest:
    """Load the variance components by test. Scale them by the cosine SD, or by the variance within word sets."""
    content = _load_file()
    result: dict[str, list[VarianceComponents]] = {}
    for name, by_model in content["tests"].items():
        test = load_catalogue().tests[name]
        weight = sum(1.0 / len(set(concept.cluster_labels.values())) for concept in (test.A, test.B))
        for model, measured in by_model.items():
            within = max(measured["var_targets"], 0.0) + weight * measured["var_residual"]
            variance = content["cosine_sd"][model][test.level] ** 2 if calibrated else within
            result.setdefault(name, []).append(_scale(measured, variance))
    return result


def _scale(measured: Mapping[str, float], variance: float) -> VarianceComponents:
    return VarianceComponents(
        max(measured["var_targets"], 0.0) / variance,
        max(measured["var_attributes"], 0.0) / variance,
        measured["var_residual"] / variance,
    )


def _median_components(components: Iterable[VarianceComponents]) -> VarianceComponents:
    components = tuple(components)
    return VarianceComponents(
        median(item.targets for item in components),
        median(item.attributes for item in components),
        median(item.residual for item in components),
    )
