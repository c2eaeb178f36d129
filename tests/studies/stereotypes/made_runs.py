"""Runs of stereotypes made by hand."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from biassay.results.outcomes import Outcome
from biassay.results.run_data import FORMAT_VERSION, Manifest, ModelRecord, RunSlice, belongs_to
from biassay.runs.run import Run
from biassay.studies.stereotypes.results import (
    AgreementResult,
    HumanRecord,
    MeasureRow,
    ProfileRow,
    StereotypeInputsRecord,
    StereotypeModelRow,
    describe_groups,
)
from biassay.studies.stereotypes.settings import StereotypeSettings
from biassay.studies.stereotypes.study import STUDY

Interval = tuple[float | None, float | None]


def inputs_of(**given: Any) -> StereotypeInputsRecord:
    texts = dict.fromkeys(("abc", "abc_digest", "citation", "licence"), "as given")
    own = {
        "pairs": ("a", "b", "c", "d"),
        "traits": {pair: (f"{pair} (left)", f"{pair} (right)") for pair in "abcd"},
        "dimensions": {},
        "groups": ("g0", "g1"),
        "templates": {},
    }
    return StereotypeInputsRecord(**{**texts, **own, "measures": ("ilps",), **given})


def alignment(
    model: str,
    measure: str,
    tau: float | None,
    *,
    options: str = "",
    annotators: str = "all",
    interval: Interval = (None, None),
    p_value: float | None = None,
    tau_shuffled: float | None = None,
    precision: float | None = None,
    precision_interval: Interval = (None, None),
) -> AgreementResult:
    """Return the agreement of a measure with nine people over three groups."""
    names = ("annotators", "groups", "cells", "pilot", "with_pilot", "precision", "precision_annotators")
    alternatives = {name: Outcome() for name in (*names, "precision_groups", "precision_with_pilot")}
    alternatives["precision"] = Outcome(
        effect_size=precision, ci_low=precision_interval[0], ci_high=precision_interval[1], scale="P@3"
    )
    return AgreementResult(
        model=model,
        options=options,
        measure=measure,
        annotators=annotators,
        claim="descriptive" if p_value is None else "tested",
        outcome=Outcome(
            effect_size=tau,
            ci_low=interval[0],
            ci_high=interval[1],
            p_value=p_value,
            scale="tau",
            n={"annotators": 9, "groups": 3, "cells": 12},
        ),
        alternatives=alternatives,
        tau_shuffled=tau_shuffled,
    )


def decided(run: Run) -> Run:
    """Return the run with traits of groups and decisions that follow from its other tables."""
    groups = [
        group
        for record in run.manifest.models
        for group in describe_groups(_select_model(run, record), run.manifest.inputs, record.revision)
    ]
    tables = STUDY.finalize_tables(run.manifest.settings, {**run.tables, "groups": tuple(groups)})
    return dataclasses.replace(run, tables=tables)


def _select_model(run: Run, record: ModelRecord) -> RunSlice:
    tables = {name: tuple(row for row in rows if belongs_to(row, record)) for name, rows in run.tables.items()}
    return RunSlice("", record, tables)


def measured(model: str, *measures: str) -> dict[str, tuple[Any, ...]]:
    """Three groups that people rated, under some measures."""
    rng = np.random.default_rng([ord(letter) for letter in model])
    profiles = [
        ProfileRow(model, "", name, f"g{i}", "d", (), tuple(rng.normal(size=4)), tuple(rng.uniform(0, 100, 4)))
        for name in measures
        for i in range(3)
    ]
    return {
        "models": (StereotypeModelRow(model, "", "masked", "mask", (), (), (), 0, 0, 0),),
        "measures": tuple(MeasureRow(model, "", name, ("g0", "g1", "g2"), (), (), 0) for name in measures),
        "profiles": tuple(profiles),
    }


def compared_with_people(*, judged: bool = True, **given: Any) -> Run:
    """Two models, the first with two measures, and how they agree with people."""
    parts = (measured("m", "ilps", "set"), measured("n", "ilps"))
    tables = {name: (*parts[0][name], *parts[1][name]) for name in parts[0]}
    rows = (
        alignment("m", "ilps", 0.125, interval=(-0.25, 0.375), precision=0.5, precision_interval=(0.25, 0.75)),
        alignment("m", "set", -0.5, tau_shuffled=0.0625),
        alignment("m", "set", 0.99, annotators="Gender=Woman", interval=(0.98, 1.0)),
        alignment("n", "ilps", None, precision=1.0),
    )
    tables["alignments"] = rows if judged else ()
    models = tuple(ModelRecord(name, name, "hf", None, {}, measured=True) for name in ("m", "n"))
    return run_of(models, tables, **{"measures": ("ilps", "set"), "human": HumanRecord("human.json", "d"), **given})


def run_of(models: tuple[ModelRecord, ...], tables: Mapping[str, tuple[Any, ...]], **given: Any) -> Run:
    """A run that was finished; ``given`` are its settings and inputs, or its id."""
    settings = {field.name for field in dataclasses.fields(StereotypeSettings)} - {
        "human",
        "groups",
        "templates",
        "measures",
    }
    run_id = given.pop("run_id", " ".join(model.name for model in models))
    chosen = {name: given.pop(name) for name in tuple(given) if name in settings}
    manifest = Manifest(
        *(FORMAT_VERSION, run_id, "stereotypes", "biassay", "complete", "then", "now", {}, models),
        StereotypeSettings(**chosen),
        inputs_of(**given),
    )
    return decided(Run(manifest, tables))
