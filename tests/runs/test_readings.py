"""A study that asks for readings: nothing is computed that is kept, on any engine, and what a model lacks is named."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from biassay.cache.outputs import Capabilities, ModelOutputs
from biassay.engines.local import LocalExecutor
from biassay.errors import UnknownNameError
from biassay.models.registry import open_encoder
from biassay.results.run_data import BaseRecord, RunData
from biassay.results.run_folder import StudySchema
from biassay.results.tables import Column, TableSpec
from biassay.runs.options import RunOptions
from biassay.runs.runner import run_study
from biassay.studies.settings import setting
from biassay.studies.study import Array, Event, Requests, Row, Study

TEXTS = ("joy", "this is love", "a rose", "war and peace")


@dataclass(frozen=True)
class Settings:
    readings: tuple[str, ...] = setting((), "Readings; by default all.", many=True)
    own: bool = setting(False, "Own vectors only.")


@dataclass(frozen=True)
class Nothing:
    pass


@dataclass(frozen=True)
class Inputs:
    settings: Settings
    record: Nothing


@dataclass(frozen=True)
class ReadingRow(BaseRecord):
    model: str
    options: str
    reading: str


class Layers(Study):
    """Vectors of all readings, and how many tokens texts have."""

    name = "layers"
    title = "Layers"
    schema = StudySchema(
        Settings, Nothing, (TableSpec("results", "Layers", ReadingRow, (Column("reading", "Reading", "Reading."),)),)
    )

    def load_inputs(self, settings: Settings) -> Inputs:
        return Inputs(settings, Nothing())

    def required_capabilities(self, settings: Settings) -> tuple[Any, ...]:  # noqa: ARG002
        return ("texts",)

    def requests(self, inputs: Inputs, capabilities: Capabilities) -> Requests:
        chosen = inputs.settings.readings or tuple(reading.name for reading in capabilities.representations)
        return Requests(texts=TEXTS, readings=() if inputs.settings.own else chosen)

    def measure(self, inputs: Inputs, model: ModelOutputs, all_outputs: Any) -> Iterator[Event]:  # noqa: ARG002
        tokens, ranks = model.tokens(TEXTS), model.ranks(["joy", "rose", "qq"])
        yield Array("own", model.texts(TEXTS).vectors)
        if tokens is not None:
            yield Array("tokens", tokens)
        if ranks is not None:
            yield Array("ranks", ranks)
        for number, name in enumerate(model.cached_texts):
            yield Array(f"reading{number}", model.texts(TEXTS, name).vectors)
            yield Row("results", ReadingRow(model.identity.name, model.identity.options, name))


def run(model: object, cache: Path, settings: Settings | None = None, engine: Any = None) -> RunData:
    return run_study(Layers(), settings or Settings(), model, RunOptions(cache=cache, engine=engine))


def encoded(found: RunData) -> int:
    return found.manifest.models[0].encoded


@pytest.mark.extras
def test_all_readings_are_asked_once_and_found_by_every_way_of_asking(tiny_model: str, tmp_path: Path) -> None:
    found = run(tiny_model, tmp_path / "kept")
    assert encoded(found) == len(TEXTS)
    names = [row.reading for row in found.results]
    assert sorted(names) == sorted(reading.name for reading in open_encoder(tiny_model).representations)  # type: ignore[attr-defined]
    assert names[0] == "layer=-1&pool=cls"
    for number, name in enumerate(names):
        alone = run(f"{tiny_model}?{name}", tmp_path / "kept", Settings(own=True))
        assert encoded(alone) == 0
        direct = open_encoder(f"{tiny_model}?{name}").encode(TEXTS).vectors
        np.testing.assert_array_equal(alone.arrays["0/own"], found.arrays[f"0/reading{number}"])
        assert found.arrays[f"0/reading{number}"] == pytest.approx(direct, abs=2e-6)
    assert found.arrays["0/tokens"].tolist() == [len(text) for text in TEXTS]  # every byte is a token
    assert "0/ranks" not in found.arrays


@pytest.mark.extras
def test_kept_readings_need_no_weights_and_only_new_ones_are_computed(
    tiny_model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(f"{tiny_model}?layer=1&pool=mean", tmp_path, Settings(own=True))
    some = Settings(readings=("layer=1&pool=mean", "layer=2&pool=max"))
    first = run(tiny_model, tmp_path, some)
    assert encoded(first) == len(TEXTS)
    files = {path.name for path in tmp_path.rglob("*.npz")}
    assert len(files) == 5  # two of them hold the numbers of tokens

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("weights were loaded")

    with monkeypatch.context() as patch:
        patch.setattr("biassay.models.transformers.hidden_states.load_weights", refuse)
        again = run(tiny_model, tmp_path, some)
    assert encoded(again) == 0
    assert all(np.array_equal(array, again.arrays[name]) for name, array in first.arrays.items())


@pytest.mark.extras
def test_an_engine_gives_the_same_files(tiny_model: str, tmp_path: Path) -> None:
    here, there = run(tiny_model, tmp_path / "here"), run(tiny_model, tmp_path / "there", engine=LocalExecutor())
    names = [sorted(path.name for path in (tmp_path / where).rglob("*.npz")) for where in ("here", "there")]
    assert names[0] == names[1]  # a file is named by the hash of its bytes
    assert len(names[0]) - 1 == len(here.results) == len(there.results) == 20  # one has the numbers of tokens


@pytest.mark.extras
def test_a_reading_that_a_transformer_lacks_names_those_it_has(other_model: str, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"reading of model .*'layer=9&pool=mean'.*'layer=0&pool=mean'"):
        run(other_model, tmp_path, Settings(readings=("layer=9&pool=mean",)))
    with pytest.raises(UnknownNameError, match="'layer=0&pool=cls'"):  # a causal model has no [CLS]
        run(other_model, tmp_path, Settings(readings=("layer=0&pool=cls",)))
    assert not list(tmp_path.rglob("*.npz"))


def test_other_models_have_their_own_reading_only(tmp_path: Path) -> None:
    found = run("glove", tmp_path)
    assert [row.reading for row in found.results] == [""]
    np.testing.assert_array_equal(found.arrays["0/own"], found.arrays["0/reading0"])
    assert found.arrays["0/tokens"].tolist() == [1, 3, 2, 3]
    ranks = found.arrays["0/ranks"]
    assert 1 < ranks[1] < ranks[0] < 20_000
    assert np.isnan(ranks[2])
    with pytest.raises(UnknownNameError, match="reading of model 'glove': 'layer=1'"):
        run("glove", tmp_path, Settings(readings=("layer=1",)))


@pytest.mark.parametrize("order", [["rose", "joy", "the"], [f"a{i:02}" for i in range(30)]])
def test_ranks_are_kept_and_the_file_of_vectors_is_not_read_again(
    order: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "vectors.txt"
    file.write_text("".join(f"{word} 1 {place}\n" for place, word in enumerate(order)))
    first = run(f"vectors:{file}", tmp_path / "kept")

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("the file was read")

    monkeypatch.setattr("biassay.models.word_vectors.read_vectors", refuse)
    monkeypatch.setattr("biassay.models.vocabulary.iter_file", refuse)
    again = run(f"vectors:{file}", tmp_path / "kept")
    for found in (first, again):
        if order[0] == "rose":
            np.testing.assert_array_equal(found.arrays["0/ranks"], [2, 1, np.nan])
        else:
            assert "0/ranks" not in found.arrays  # its words are in order of the alphabet


class Halves:
    """An object of the user's own."""

    def encode(self, texts: list[str]) -> list[list[float]]:
        return [[float(len(text)), 1.0] for text in texts]


class Counting(Halves):
    def count_tokens(self, texts: list[str]) -> list[int]:
        return [len(text) // 2 for text in texts]


def test_tokens_of_an_object_are_known_if_it_counts_them(tmp_path: Path) -> None:
    assert "0/tokens" not in run(Halves(), tmp_path).arrays
    assert run(Counting(), tmp_path).arrays["0/tokens"].tolist() == [len(text) // 2 for text in TEXTS]


def test_an_empty_name_is_the_own_reading(tmp_path: Path) -> None:
    class Plain(Halves):
        revision = "1"

    assert encoded(run(Plain(), tmp_path, Settings(readings=("",)))) == len(TEXTS)
    assert encoded(run(Plain(), tmp_path, Settings(own=True))) == 0
