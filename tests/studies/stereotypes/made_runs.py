"""Runs of stereotypes made by hand."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from biassay.results.data import FORMAT_VERSION, Manifest, ModelRecord
from biassay.runs.run import Run
from biassay.studies.stereotypes.records import InputsRecord
from biassay.studies.stereotypes.settings import Settings


def inputs_of(**given: Any) -> InputsRecord:
    texts = dict.fromkeys(("abc", "abc_digest", "citation", "licence"), "as given")
    own = {"pairs": ("a", "b", "c", "d"), "traits": {}, "dimensions": {}, "groups": ("g0", "g1"), "templates": {}}
    return InputsRecord(**{**texts, **own, "measures": ("ilps",), **given})


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
