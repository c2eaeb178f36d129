"""Several readings of the same texts: asked in one pass, kept apart, each asked once."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from biassay.cache.codecs import TEXTS as CODEC
from biassay.cache.handlers import RepresentationHandler, fetch_missing
from biassay.cache.outputs import Capabilities, ModelOutputs
from biassay.cache.responses import ModelCache, RepresentationCaches, ResponseCache
from biassay.errors import ModelError, StorageError, UsageError, VectorError
from biassay.models.base import Identity, TextEmbeddings
from biassay.models.representation import Representation, default_representation

TEXTS = [f"text {i:02}" for i in range(10)]
LAYERS = ("0", "1", "2")


def identity(layer: str) -> Identity:
    return Identity("layered", "test", "1", (("layer", layer),))


def vectors(texts: Sequence[str], layer: str) -> np.ndarray:
    return np.array([[int(text[-2:]) + 1, int(layer) + 1] for text in texts], dtype=np.float32)


class Layered:
    """Has three readings, of which one is its own, and remembers what it was asked."""

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
    """What a model is asked; the vectors of all readings are right afterwards."""
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


def test_what_one_reading_has_is_asked_again_for_the_others_and_not_written_again(tmp_path: Path) -> None:
    assert fill(tmp_path, TEXTS[:2], ["1"]) == [(TEXTS[:2], ["layer=1"])]
    assert fill(tmp_path, TEXTS[2:4], ["2"]) == [(TEXTS[2:4], ["own"])]
    assert fill(tmp_path, TEXTS[:4]) == [(TEXTS[:4], ALL)]
    rows = {}
    for layer in LAYERS:
        files = (tmp_path / str(identity(layer).key)).glob("*.npz")
        rows[layer] = sorted(len(np.load(path)["keys"]) for path in files)
    assert rows == {"0": [4], "1": [2, 2], "2": [2, 2]}


def test_a_reading_is_kept_where_the_model_opened_so_keeps_its_own(tmp_path: Path) -> None:
    fill(tmp_path, TEXTS)
    for layer in LAYERS:
        model = Layered(layer)
        store = ResponseCache(tmp_path).for_model(model.identity, CODEC)
        assert store.missing(TEXTS) == []
        np.testing.assert_array_equal(store.get(TEXTS).vectors, vectors(TEXTS, layer))


def test_a_full_disk_between_two_readings_loses_no_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, kept = Layered(), stores(tmp_path)
    replace, room = os.replace, iter([True] * 4)

    def replace_while_room(source: Path, target: Path) -> None:
        if not next(room, False):
            raise OSError(errno.ENOSPC, "No space left on device")
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", replace_while_room)
        with pytest.raises(StorageError, match="No space left"):
            fetch_missing(RepresentationHandler(encoder, list(kept)), TEXTS[:8], RepresentationCaches(kept, TEXTS[:8]))
    assert fill(tmp_path, TEXTS[:8]) == [(TEXTS[4:8], ALL[1:])]
    assert len(list(tmp_path.rglob("*.npz"))) == 6


def test_many_readings_are_asked_of_fewer_texts_at_a_time() -> None:
    encoder = Layered()
    encoder.batch_size = 16_384
    texts = [str(i) for i in range(2000)]
    assert max(map(len, RepresentationHandler(encoder, ALL).batches(texts))) == 512
    assert max(map(len, RepresentationHandler(encoder, ALL[:1]).batches(texts))) == 2000


# Refused


class Broken(Layered):
    def __init__(self, given: dict[str, Any]) -> None:
        super().__init__()
        self._given = given

    def encode_representations(self, texts: Sequence[str], names: Sequence[str]) -> dict[str, TextEmbeddings]:
        return super().encode_representations(texts, names) | self._given


@pytest.mark.parametrize("bad", [[[1, 2], [np.nan, 1]], [[0, 0], [1, 2]], [[1, 2]]])
def test_a_bad_vector_names_its_reading_and_nothing_is_stored(bad: list[list[float]], tmp_path: Path) -> None:
    kept = stores(tmp_path)
    encoder = Broken({"layer=1": TextEmbeddings.from_vectors(np.array(bad, dtype=np.float32))})
    with pytest.raises(VectorError, match="'layered', reading layer=1"):
        fetch_missing(RepresentationHandler(encoder, ALL), TEXTS[:2], RepresentationCaches(kept, TEXTS[:2]))
    assert all(store.missing(TEXTS[:2]) == TEXTS[:2] for store in kept.values())


def test_a_reading_that_is_not_given_is_named(tmp_path: Path) -> None:
    encoder = Layered()
    encoder.encode_representations = lambda texts, names: {}  # type: ignore[method-assign]  # noqa: ARG005
    with pytest.raises(ModelError, match="'layered' did not give the reading 'layer=0'"):
        fetch_missing(RepresentationHandler(encoder, ALL), TEXTS[:2], RepresentationCaches(stores(tmp_path), TEXTS[:2]))


def test_own_vectors_are_among_the_readings() -> None:
    encoder = Layered()
    encoder.representations = encoder.representations[:2]
    with pytest.raises(ModelError, match="'layered': its representations do not include its default one"):
        default_representation(encoder)


# As a study reads them


def answers(root: Path | None = None, **more: Any) -> ModelOutputs:
    kept = stores(root)
    for name, store in kept.items():
        store.add(TEXTS, TextEmbeddings.from_vectors(vectors(TEXTS, name.removeprefix("layer="))))
    capabilities = Capabilities(representations=Layered().representations, default_representation="layer=2")
    return ModelOutputs(identity("2"), capabilities, cached_texts=kept, requested_texts=TEXTS, **more)


def test_a_study_reads_the_own_vectors_and_those_of_any_reading() -> None:
    found, some = answers(), [TEXTS[3], TEXTS[0], TEXTS[3]]
    for layer in (None, "0", "1", "0", "2"):
        expected = vectors(some, layer or "2")
        name = None if layer is None else f"layer={layer}"
        np.testing.assert_array_equal(found.texts(some, name).vectors, expected)
        np.testing.assert_array_equal(found.read_texts(some, name).vectors, expected)


def test_vectors_of_some_texts_alone_are_in_memory() -> None:
    found = answers().restrict([TEXTS[3], TEXTS[0], TEXTS[3]])
    np.testing.assert_array_equal(found.texts([TEXTS[0], TEXTS[3]]).vectors, vectors([TEXTS[0], TEXTS[3]], "2"))
    assert found._load("layer=2").vectors.shape[0] == 2
    with pytest.raises(UsageError, match="not among the requests"):
        found.texts([TEXTS[1]])


def test_a_reading_that_was_not_asked_for_is_refused() -> None:
    with pytest.raises(UsageError, match=r"the reading 'layer=9' is not among the requests .*'layer=0', 'layer=1'"):
        answers().texts(TEXTS, "layer=9")
    with pytest.raises(UsageError, match="the text 'new' is not among the requests"):
        answers().texts(["new"], "layer=0")


def test_tokens_and_ranks_are_what_the_model_says_or_none() -> None:
    assert answers().tokens(["a b"]) is None
    assert answers().ranks(["a"]) is None
    assert answers(rank_words=lambda _: None).ranks(["a"]) is None
    counted = answers(count_tokens=lambda texts: [len(text.split()) for text in texts])
    assert counted.tokens(["a b", "c"]).tolist() == [2, 1]  # type: ignore[union-attr]
    assert counted.tokens([]).shape == (0,)  # type: ignore[union-attr]
    ranked = answers(rank_words=lambda words: [float(len(word)) for word in words]).ranks(["a", "bb"])
    assert ranked is not None
    assert ranked.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("given", [[1], [1, 2, 3], [1, -1], [[1], [2]]])
def test_a_wrong_count_of_tokens_is_refused(given: list[Any]) -> None:
    with pytest.raises(ModelError, match="did not count the tokens of 2 texts"):
        answers(count_tokens=lambda _: given).tokens(["a", "b"])


def test_a_wrong_number_of_ranks_is_refused() -> None:
    with pytest.raises(ModelError, match="did not rank 2 words"):
        answers(rank_words=lambda _: [1.0]).ranks(["a", "b"])
