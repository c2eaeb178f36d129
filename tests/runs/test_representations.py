"""A study of several representations: cached ones are not recomputed, and missing ones are named."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from biassay.cache.outputs import Capabilities, ModelOutputs
from biassay.errors import UnknownNameError
from biassay.results.run_data import BaseRecord, RunData
from biassay.results.run_folder import StudySchema
from biassay.results.tables import Column, TableSpec
from biassay.runs.fetch import RunOptions
from biassay.runs.runner import run_study
from biassay.studies.settings import setting
from biassay.studies.study import Array, Event, Requests, Row, Study

TEXTS = ("joy", "this is love", "a rose", "war and peace")


@dataclass(frozen=True)
class Settings:
    representations: tuple[str, ...] = setting((), "Representations; by default all.", many=True)
    own: bool = setting(False, "Own vectors only.")


@dataclass(frozen=True)
class Nothing:
    pass


@dataclass(frozen=True)
class Inputs:
    settings: Settings
    record: Nothing


@dataclass(frozen=True)
class RepresentationRow(BaseRecord):
    model: str
    options: str
    representation: str


class Layers(Study):
    """Vectors of all representations, and how many tokens texts have."""

    name = "layers"
    title = "Layers"
    schema = StudySchema(
        Settings,
        Nothing,
        (
            TableSpec(
                "results", "Layers", RepresentationRow, (Column("representation", "Representation", "Representation."),)
            ),
        ),
    )

    def load_inputs(self, settings: Settings) -> Inputs:
        return Inputs(settings, Nothing())

    def required_capabilities(self, settings: Settings) -> tuple[Any, ...]:  # noqa: ARG002
        return ("texts",)

    def requests(self, inputs: Inputs, capabilities: Capabilities) -> Requests:
        chosen = inputs.settings.representations or tuple(
            representation.name for representation in capabilities.representations
        )
        return Requests(texts=TEXTS, representations=() if inputs.settings.own else chosen)

    def measure(self, inputs: Inputs, model: ModelOutputs, all_outputs: Any) -> Iterator[Event]:  # noqa: ARG002
        tokens, ranks = model.tokens(TEXTS), model.ranks(["joy", "rose", "qq"])
        yield Array("own", model.texts(TEXTS).vectors)
        if tokens is not None:
            yield Array("tokens", tokens)  # type: ignore[arg-type]
        if ranks is not None:
            yield Array("ranks", ranks)
        for number, name in enumerate(model.cached_texts):
            yield Array(f"representation{number}", model.texts(TEXTS, name).vectors)
            yield Row("results", RepresentationRow(model.identity.name, model.identity.options, name))


def run(model: object, cache: Path, settings: Settings | None = None, engine: Any = None) -> RunData:
    return run_study(Layers(), settings or Settings(), model, RunOptions(cache=cache, engine=engine))


def encoded(found: RunData) -> int:
    return found.manifest.models[0].encoded


@pytest.mark.extras
def test_kept_readings_need_no_weights_and_only_new_ones_are_computed(
    tiny_model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(f"{tiny_model}?layer=1&pool=mean", tmp_path, Settings(own=True))
    some = Settings(representations=("layer=1&pool=mean", "layer=2&pool=max"))
    first = run(tiny_model, tmp_path, some)
    assert encoded(first) == len(TEXTS)
    files = {path.name for path in tmp_path.rglob("*.npz")}
    assert len(files) == 5  # two of them hold the numbers of tokens

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("weights were loaded")

    with monkeypatch.context() as patch:
        patch.setattr("biassay.models.transformers.encoder.load_weights", refuse)
        again = run(tiny_model, tmp_path, some)
    assert encoded(again) == 0
    assert all(np.array_equal(array, again.arrays[name]) for name, array in first.arrays.items())


@pytest.mark.extras
def test_a_reading_that_a_transformer_lacks_names_those_it_has(other_model: str, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"representation of model .*'layer=9&pool=mean'.*'layer=0&pool=mean'"):
        run(other_model, tmp_path, Settings(representations=("layer=9&pool=mean",)))
    with pytest.raises(UnknownNameError, match="'layer=0&pool=cls'"):  # a causal model has no [CLS]
        run(other_model, tmp_path, Settings(representations=("layer=0&pool=cls",)))
    assert not list(tmp_path.rglob("*.npz"))
