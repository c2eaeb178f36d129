"""Runs of stereotypes made by hand."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from biassay.results.data import FORMAT_VERSION, Manifest, ModelRecord
from biassay.runs.run import Run
from biassay.studies.stereotypes.records import (
    AlignmentRow,
    HumanRecord,
    InputsRecord,
    MeasureRow,
    ModelRow,
    ProfileRow,
)
from biassay.studies.stereotypes.settings import Settings


def inputs_of(**given: Any) -> InputsRecord:
    texts = dict.fromkeys(("abc", "abc_digest", "citation", "licence"), "as given")
    own = {"pairs": ("a", "b", "c", "d"), "traits": {}, "dimensions": {}, "groups": ("g0", "g1"), "templates": {}}
    return InputsRecord(**{**texts, **own, "measures": ("ilps",), **given})


def alignment(model: str, measure: str, tau: float | None, **given: Any) -> AlignmentRow:
    none: dict[str, Any] = {field.name: None for field in dataclasses.fields(AlignmentRow)}
    who = {"model": model, "options": "", "measure": measure, "annotators": "all"}
    return AlignmentRow(**{**none, **who, "num_annotators": 9, "num_groups": 3, "num_cells": 12, "tau": tau, **given})


def measured(model: str, *measures: str) -> dict[str, tuple[Any, ...]]:
    """Three groups that people rated, under some measures."""
    rng = np.random.default_rng([ord(letter) for letter in model])
    profiles = [
        ProfileRow(model, "", name, f"g{i}", "d", (), tuple(rng.normal(size=4)), tuple(rng.uniform(0, 100, 4)))
        for name in measures
        for i in range(3)
    ]
    return {
        "models": (ModelRow(model, "", "masked", "mask", (), (), (), 0, 0, 0),),
        "measures": tuple(MeasureRow(model, "", name, ("g0", "g1", "g2"), (), (), 0) for name in measures),
        "profiles": tuple(profiles),
    }


def compared_with_people(*, judged: bool = True, **given: Any) -> Run:
    """Two models, the first with two measures, and how they agree with people."""
    parts = (measured("m", "ilps", "set"), measured("n", "ilps"))
    tables = {name: (*parts[0][name], *parts[1][name]) for name in parts[0]}
    rows = (
        alignment("m", "ilps", 0.125, tau_both=(-0.25, 0.375), precision=0.5, precision_both=(0.25, 0.75)),
        alignment("m", "set", -0.5, tau_shuffled=0.0625),
        alignment("m", "set", 0.99, annotators="Gender=Woman", tau_both=(0.98, 1.0)),
        alignment("n", "ilps", None, precision=1.0),
    )
    tables["alignments"] = rows if judged else ()
    models = tuple(ModelRecord(name, name, "hf", None, {}, measured=True) for name in ("m", "n"))
    return run_of(models, tables, **{"measures": ("ilps", "set"), "human": HumanRecord("human.json", "d"), **given})


def run_of(models: tuple[ModelRecord, ...], tables: Mapping[str, tuple[Any, ...]], **given: Any) -> Run:
    """A run that was finished; ``given`` are its settings and inputs, or its id."""
    settings = {field.name for field in dataclasses.fields(Settings)} - {"human", "groups", "templates", "measures"}
    run_id = given.pop("run_id", " ".join(model.name for model in models))
    chosen = {name: given.pop(name) for name in tuple(given) if name in settings}
    manifest = Manifest(
        *(FORMAT_VERSION, run_id, "stereotypes", "biassay", "complete", "then", "now", {}, models),
        Settings(**chosen),
        inputs_of(**given),
    )
    return Run(manifest, tables)
