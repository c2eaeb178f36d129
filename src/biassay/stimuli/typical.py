"""How associations typically vary from word to word: components of the catalogue's tests, measured on some models."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from statistics import median
from typing import Any

from biassay.stats.crossed import Components
from biassay.stimuli.catalogue import catalogue
from biassay.stimuli.model import Test

__all__ = ["calibrated_components", "models_measured", "typical_components"]


def models_measured() -> tuple[str, ...]:
    """The models on which components were measured."""
    return tuple(_file()["models"])


def typical_components(test: Test | None = None) -> Components:
    """Medians over the models that were measured, in units of the variance of associations within target sets.

    For a test that is not of the catalogue, medians over the tests of its level in the main collections; without a
    test, over those of words.
    """
    if test is not None:
        known = catalogue().tests.get(test.name)
        of = _scaled().get(test.alias_of or test.name, ()) if known == test else ()
        if of:
            return _median(of)
    return _typical_of_level("word" if test is None else test.level)


def calibrated_components(test: Test) -> Components:
    """Return medians over the models that were measured, in units of the SD of cosines between frequent words.

    For a test that is not of the catalogue, medians over the tests of its level in the main collections.
    """
    known = catalogue().tests.get(test.name)
    of = _calibrated().get(test.alias_of or test.name, ()) if known == test else ()
    return _median(of) if of else _calibrated_of_level(test.level)


@cache
def _calibrated_of_level(level: str) -> Components:
    tests = [test.name for test in catalogue().main if test.level == level]
    return _median([_median(_calibrated()[name]) for name in tests if _calibrated().get(name)])


@cache
def _calibrated() -> dict[str, list[Components]]:
    """Components of each test on every model, divided by the squared SD of the model's cosines."""
    found, sds = {}, _file()["cosine_sd"]
    for name, of in _file()["tests"].items():
        level = catalogue().tests[name].level
        found[name] = [
            Components(
                max(own["var_targets"], 0.0) / sds[model][level] ** 2,
                max(own["var_attributes"], 0.0) / sds[model][level] ** 2,
                own["var_residual"] / sds[model][level] ** 2,
            )
            for model, own in of.items()
        ]
    return found


@cache
def _typical_of_level(level: str) -> Components:
    tests = [test.name for test in catalogue().main if test.level == level]
    return _median([_median(_scaled()[name]) for name in tests if _scaled().get(name)])


@cache
def _file() -> Mapping[str, Any]:
    text = (resources.files("biassay.stimuli") / "data" / "components.json").read_text("utf-8")
    content: Mapping[str, Any] = json.loads(text)
    return content


@cache
def _scaled() -> dict[str, list[Components]]:
    """By test: components on every model, such that associations within target sets have the variance 1."""
    found = {}
    for name, of in _file()["tests"].items():
        test = catalogue().tests[name]
        a, b = (len(set(concept.cluster_labels.values())) for concept in (test.A, test.B))
        over = 1.0 / a + 1.0 / b
        found[name] = [_unit(of_model, over) for of_model in of.values()]
    return found


def _unit(measured: Mapping[str, float], over: float) -> Components:
    targets, residual = max(measured["var_targets"], 0.0), measured["var_residual"]
    within = targets + over * residual
    return Components(targets / within, max(measured["var_attributes"], 0.0) / within, residual / within)


def _median(many: Iterable[Components]) -> Components:
    many = tuple(many)
    return Components(
        median(one.targets for one in many),
        median(one.attributes for one in many),
        median(one.residual for one in many),
    )
