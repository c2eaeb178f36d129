"""Which representations of a model are choices: those that have a number, and each once."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import biassay
from biassay.cache.outputs import Capabilities, ModelOutputs
from biassay.cache.responses import TEXTS, ResponseCache
from biassay.models.base import Identity, Representation, TextEmbeddings
from biassay.studies.robustness.results import RobustnessResult, Specification
from biassay.studies.robustness.settings import RobustnessSettings
from biassay.studies.robustness.study import STUDY
from biassay.studies.study import Row

OWN = ("2", "cls")
REPRESENTATIONS = [OWN, ("0", "cls"), ("1", "cls"), ("2", "first"), ("2", "last"), ("2", "max")]
Vectors = NDArray[np.float64]


def vector(text: str, layer: str, pool: str) -> Vectors:
    """Layer 0 gives every text one vector, the last token is the first, and "career" has no largest values."""
    if (layer, pool) == ("0", "cls"):
        return np.arange(1.0, 13.0)
    if pool == "max" and text == "career":
        return np.zeros(12)
    name = f"{text} {layer} {'first' if pool == 'last' else pool}"
    return np.random.default_rng(zlib.crc32(name.encode())).normal(size=12)


def named(layer: str, pool: str) -> str:
    return f"layer={layer}&pool={pool}"


def measured(own: tuple[str, str] = OWN, **asked: Any) -> tuple[RobustnessResult, list[Specification]]:
    """The result of weat6 and its specifications of all words, on a model of these representations."""
    inputs = STUDY.load_inputs(RobustnessSettings(tests=("weat6",), n_subsets=0, **asked))
    made = {one: Identity("layered", "test", "1", (("layer", one[0]), ("pool", one[1]))) for one in REPRESENTATIONS}
    representations = tuple(Representation((("layer", one[0]), ("pool", one[1])), made[one]) for one in REPRESENTATIONS)
    capabilities = Capabilities(representations=representations, default_representation=named(*own))
    texts = STUDY.requests(inputs, capabilities).texts
    kept = {named(*one): ResponseCache(None).for_model(made[one], TEXTS) for one in REPRESENTATIONS}
    for one in REPRESENTATIONS:
        table = np.array([vector(text, *one) for text in texts], dtype=np.float32)
        kept[named(*one)].add(texts, TextEmbeddings.from_vectors(table))
    answers = ModelOutputs(made[own], capabilities, cached_texts=kept, requested_texts=texts)
    rows = [event for event in STUDY.measure(inputs, answers, [answers]) if isinstance(event, Row)]
    (result,) = [event.record for event in rows if event.table == "results"]
    return result, [event.record for event in rows if event.table == "specifications" and event.record.kind == "model"]


def list_representations(rows: Sequence[Specification], *, known: bool) -> list[str]:
    return [row.representation for row in rows if (row.effect_size is not None) == known]


def test_by_default_one_vector_is_no_choice_and_the_same_cosines_are_one() -> None:
    result, rows = measured(similarities=("cosine",))
    assert list_representations(rows, known=True) == ["layer=2&pool=cls", "layer=1&pool=cls", "layer=2&pool=first"]
    assert list_representations(rows, known=False) == ["layer=2&pool=max"]
    assert (result.status, result.n_specifications, result.model_revision) == ("measured", 3, "1")
    assert result.alternatives["joint"].effect_size == pytest.approx(
        np.median([row.effect_size for row in rows if row.effect_size is not None])
    )


@pytest.mark.parametrize("own", [("0", "cls"), ("2", "max")])
def test_only_the_own_representation_fails_a_test(own: tuple[str, str]) -> None:
    result, rows = measured(own)
    assert (result.status, result.outcome.effect_size, rows) == ("failed", None, [])
    assert result.reason


@pytest.mark.extras
def test_a_transformer_is_measured_without_its_constant_layer(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    from tests.models.tiny_models import save_tiny

    run = biassay.robustness(f"hf:{save_tiny('roberta', tmp_path)}?pool=cls", "weat6", n_subsets=0)
    assert run.results[0].status == "measured"
    read = {row.representation for row in run.tables["specifications"]}
    assert "layer=0&pool=cls" not in read
    assert {"layer=1&pool=cls", "layer=-1&pool=mean"} < read
