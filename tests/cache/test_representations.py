"""Several representations of the same texts: one pass, separate caches, no repeated request."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from biassay.cache.handlers import RepresentationHandler, fetch_missing
from biassay.cache.outputs import Capabilities, ModelOutputs
from biassay.cache.responses import TEXTS as CODEC
from biassay.cache.responses import ModelCache, RepresentationCaches, ResponseCache
from biassay.errors import ModelError, UsageError, VectorError
from biassay.models.base import Identity, Representation, TextEmbeddings, default_representation

TEXTS = [f"text {i:02}" for i in range(10)]
LAYERS = ("0", "1", "2")


def identity(layer: str) -> Identity:
    return Identity("layered", "test", "1", (("layer", layer),))


def vectors(texts: Sequence[str], layer: str) -> np.ndarray:
    return np.array([[int(text[-2:]) + 1, int(layer) + 1] for text in texts], dtype=np.float32)


class Layered:
    """An encoder with three representations, one of them the default, that records its requests."""

    batch_size = 4

    def __init__(self, own: str = "2") -> None:
        self.identity, self._own = identity(own), own
        self.representations = tuple(Representation((("layer", layer),), identity(layer)) for layer in LAYERS)
        self.asked: list[tuple[list[str], list[str]]] = []

    def prepare(self, texts: Sequence[str]) -> None:
        pass

    def encode(self, texts: Sequence[str]) -> TextEmbeddings:
        self.asked.append((list(texts), ["own"]))
        return TextEmbeddings.from_vectors(vectors(texts, self._own))

    def encode_representations(self, texts: Sequence[str], names: Sequence[str]) -> dict[str, TextEmbeddings]:
        self.asked.append((list(texts), list(names)))
        return {name: TextEmbeddings.from_vectors(vectors(texts, name.removeprefix("layer="))) for name in names}


def stores(root: Path | None, layers: Sequence[str] = LAYERS) -> dict[str, ModelCache[str, TextEmbeddings]]:
    return {f"layer={layer}": ResponseCache(root).for_model(identity(layer), CODEC) for layer in layers}


def fill(root: Path, texts: Sequence[str], layers: Sequence[str] = LAYERS) -> list[tuple[list[str], list[str]]]:
    """Return the requests to a model, and check the vectors of all representations."""
    encoder, kept = Layered(), RepresentationCaches(stores(root, layers), texts)
    fetch_missing(RepresentationHandler(encoder, kept.names), texts, kept)
    for layer in layers:
        np.testing.assert_array_equal(stores(root)[f"layer={layer}"].get(texts).vectors, vectors(texts, layer))
    return encoder.asked


ALL = [f"layer={layer}" for layer in LAYERS]


def test_one_pass_fills_all_stores_and_a_second_asks_nothing(tmp_path: Path) -> None:
    assert fill(tmp_path, TEXTS) == [(TEXTS[:4], ALL), (TEXTS[4:8], ALL), (TEXTS[8:], ALL)]
    assert fill(tmp_path, TEXTS) == []
    assert len(list(tmp_path.rglob("*.npz"))) == 9


# Refused


class Broken(Layered):
    def __init__(self, given: dict[str, Any]) -> None:
        super().__init__()
        self._given = given

    def encode_representations(self, texts: Sequence[str], names: Sequence[str]) -> dict[str, TextEmbeddings]:
        return super().encode_representations(texts, names) | self._given


@pytest.mark.parametrize("bad", [[[1, 2], [np.nan, 1]], [[0, 0], [1, 2]], [[1, 2]]])
def test_a_bad_vector_names_its_representation_and_nothing_is_stored(bad: list[list[float]], tmp_path: Path) -> None:
    kept = stores(tmp_path)
    encoder = Broken({"layer=1": TextEmbeddings.from_vectors(np.array(bad, dtype=np.float32))})
    with pytest.raises(VectorError, match="'layered', representation layer=1"):
        fetch_missing(RepresentationHandler(encoder, ALL), TEXTS[:2], RepresentationCaches(kept, TEXTS[:2]))
    assert all(store.missing(TEXTS[:2]) == TEXTS[:2] for store in kept.values())


# As a study reads them


def answers(root: Path | None = None, **more: Any) -> ModelOutputs:
    kept = stores(root)
    for name, store in kept.items():
        store.add(TEXTS, TextEmbeddings.from_vectors(vectors(TEXTS, name.removeprefix("layer="))))
    capabilities = Capabilities(representations=Layered().representations, default_representation="layer=2")
    return ModelOutputs(identity("2"), capabilities, cached_texts=kept, requested_texts=TEXTS, **more)


@pytest.mark.parametrize("given", [[1], [1, 2, 3], [1, -1], [[1], [2]]])
def test_a_wrong_count_of_tokens_is_refused(given: list[Any]) -> None:
    with pytest.raises(ModelError, match="did not count the tokens of 2 texts"):
        answers(count_tokens=lambda _: given).tokens(["a", "b"])


def test_a_representation_that_was_not_asked_for_is_refused() -> None:
    with pytest.raises(
        UsageError, match=r"the representation 'layer=9' is not among the requests .*'layer=0', 'layer=1'"
    ):
        answers().texts(TEXTS, "layer=9")
    with pytest.raises(UsageError, match="the text 'new' is not among the requests"):
        answers().texts(["new"], "layer=0")


def test_a_representation_that_is_not_given_is_named(tmp_path: Path) -> None:
    encoder = Layered()
    encoder.encode_representations = lambda texts, names: {}  # type: ignore[method-assign]  # noqa: ARG005
    with pytest.raises(ModelError, match="'layered' did not give the representation 'layer=0'"):
        fetch_missing(RepresentationHandler(encoder, ALL), TEXTS[:2], RepresentationCaches(stores(tmp_path), TEXTS[:2]))


def test_own_vectors_are_among_the_representations() -> None:
    encoder = Layered()
    encoder.representations = encoder.representations[:2]
    with pytest.raises(ModelError, match="'layered': its representations do not include its default one"):
        default_representation(encoder)


def test_a_wrong_number_of_ranks_is_refused() -> None:
    with pytest.raises(ModelError, match="did not rank 2 words"):
        answers(rank_words=lambda _: [1.0]).ranks(["a", "b"])
