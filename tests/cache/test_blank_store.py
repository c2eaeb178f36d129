"""Cache of blanks: lookup by content, damage, and identical bits after an interruption."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.blanks import blank
from tests.models.tiny_models import save_tiny

from biassay.cache.handlers import BlankHandler, fetch_missing
from biassay.cache.responses import BLANKS, ModelCache, ResponseCache
from biassay.errors import MeasurementError, ModelError
from biassay.models.base import BlankScores, Identity
from biassay.models.registry import open_model
from biassay.prompts.requests import Blank

ASKED = [
    *(blank(f"{who} {{trait}}.", "good", "bad", "zzz") for who in ("she is", "he is", "they are", "it is")),
    blank("{mask} is {trait}.", "good", "bad", "zzz"),
    blank("the person is {trait}."),
    blank("the person is {trait}.", "zzz"),
]


class Fake:
    """A model whose scores are hashes and vary with the batch, as a real model's do in the last digit."""

    identity = Identity("fake", "test", "1")
    kind = "masked"
    has_mask = True

    def __init__(self) -> None:
        self.asked: list[list[Blank]] = []

    def prepare(self, blanks: Sequence[Blank]) -> None:
        pass

    def batches(self, blanks: Sequence[Blank]) -> list[list[int]]:
        order = sorted(range(len(blanks)), key=lambda i: blanks[i].key)
        return [order[start : start + 2] for start in range(0, len(order), 2)]

    def fill(self, blanks: Sequence[Blank]) -> list[BlankScores]:
        self.asked.append(list(blanks))
        return [filled(one, repr(blanks)) for one in blanks]


def filled(one: Blank, company: str = "") -> BlankScores:
    lengths = np.array([0 if "z" in word else len(word) for word in one.words], dtype=np.int32)
    m = int(lengths.sum())
    numbers = hashlib.blake2b(f"{one.key}{company}".encode(), digest_size=20).digest()
    columns = np.resize(np.frombuffer(numbers, dtype=np.uint8), (m, 4)).astype(np.float32) / np.float32(7)
    columns[:1, 3] = np.nan  # what an endpoint does not say
    return BlankScores(lengths, np.arange(m, dtype=np.int32) * 70_000, columns, len(one.words), m + 1)


def bits(answers: Sequence[BlankScores]) -> list[tuple[object, ...]]:
    return [(*(a.tobytes() for a in (f.lengths, f.pieces, f.columns)), f.unknown, f.passes) for f in answers]


def opened(root: Path | None) -> ModelCache[Blank, Sequence[BlankScores]]:
    return ResponseCache(root).for_model(Fake.identity, BLANKS)


def kept(root: Path, blanks: Sequence[Blank]) -> Path:
    """Cache the scores of one batch and return the file."""
    before = set(root.rglob("*.npz"))
    opened(root).add(blanks, [filled(one) for one in blanks])
    (file,) = set(root.rglob("*.npz")) - before
    return file


def test_a_file_that_goes_while_it_is_in_use_is_named(tmp_path: Path) -> None:
    file = kept(tmp_path, ASKED[:2])
    store, other = opened(tmp_path), opened(tmp_path)
    assert store.missing(ASKED[:2]) == []
    file.unlink()
    assert (other.missing(ASKED[:2]), other.damaged) == (ASKED[:2], [])
    with pytest.raises(MeasurementError, match=file.name):
        store.get(ASKED[:1])


# Asking


def test_a_model_that_leaves_out_words_is_refused(tmp_path: Path) -> None:
    model = Fake()
    model.fill = lambda blanks: [filled(blank("{trait}", "good")) for _ in blanks]  # type: ignore[method-assign]
    with pytest.raises(ModelError, match="fake"):
        fetch_missing(BlankHandler(model), ASKED, opened(tmp_path))
    assert opened(tmp_path).missing(ASKED) == ASKED


@pytest.mark.extras
@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_language_models_interrupted_or_not_give_the_same_bits_and_need_no_tokenizer_then(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"hf:{save_tiny(kind, tmp_path / 'm', head=True)}"
    model = open_model(name, "blanks")
    texts = [f"{who} is {how}{{trait}}." for who in ("she", "he", "the person there") for how in ("", "a ", "the ")]
    blanks = [blank(text, "good", "loves", "bad") for text in texts]
    size = 2 * sum(model.fill(blanks[:1])[0].lengths.tolist())
    monkeypatch.setattr("biassay.models.transformers.language_model._MAX_BATCH_QUERIES", {"cpu": size})
    whole = ResponseCache(None).for_model(model.identity, BLANKS)
    fetch_missing(BlankHandler(model), blanks, whole)
    stores = ResponseCache(tmp_path / "store")

    def interrupt(done: int, _: int) -> None:
        if done >= 4:
            raise KeyboardInterrupt

    store = stores.for_model(model.identity, BLANKS)
    with pytest.raises(KeyboardInterrupt):
        fetch_missing(BlankHandler(model), blanks, store, interrupt)
    store = stores.for_model(model.identity, BLANKS)
    fetch_missing(BlankHandler(open_model(name, "blanks")), blanks, store)
    with monkeypatch.context() as patch:
        patch.setattr("biassay.models.transformers.checkpoint.import_transformers", None)
        patch.setattr("biassay.models.transformers.language_model.load_weights", None)
        last = open_model(name, "blanks")
        store = stores.for_model(last.identity, BLANKS)
        assert fetch_missing(BlankHandler(last), blanks, store) == 0
    assert bits(store.get(blanks)) == bits(whole.get(blanks))
