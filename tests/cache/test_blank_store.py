"""Blanks are kept as texts are: found by content, damage found out, and the same bits after an interruption."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.blanks import blank
from tests.models.tiny_models import save_tiny

from biassay.cache.codecs import BLANKS
from biassay.cache.handlers import BlankHandler, fetch_missing
from biassay.cache.responses import ModelCache, ResponseCache
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
    """Answers by hashing, and by what else is asked in the same batch, as a real model does in the last digit."""

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
    columns = np.resize(np.frombuffer(numbers, dtype=np.uint8), (m, 4)).astype(np.float32) / 7
    columns[:1, 3] = np.nan  # what an endpoint does not say
    return BlankScores(lengths, np.arange(m, dtype=np.int32) * 70_000, columns, len(one.words), m + 1)


def bits(answers: Sequence[BlankScores]) -> list[tuple[object, ...]]:
    return [(*(a.tobytes() for a in (f.lengths, f.pieces, f.columns)), f.unknown, f.passes) for f in answers]


def opened(root: Path | None) -> ModelCache[Blank, Sequence[BlankScores]]:
    return ResponseCache(root).for_model(Fake.identity, BLANKS)


def kept(root: Path, blanks: Sequence[Blank]) -> Path:
    """Keep the answers of one batch; the file they are in."""
    before = set(root.rglob("*.npz"))
    opened(root).add(blanks, [filled(one) for one in blanks])
    (file,) = set(root.rglob("*.npz")) - before
    return file


def test_answers_come_back_in_the_order_asked_for(tmp_path: Path) -> None:
    for store in (opened(tmp_path), opened(None)):
        store.add(ASKED[:3], [filled(one) for one in ASKED[:3]])
        store.add(ASKED[3:], [filled(one) for one in ASKED[3:]])
        asked = [ASKED[5], ASKED[0], ASKED[6], ASKED[0], ASKED[4]]
        for later in (store, opened(tmp_path)):
            assert later.missing(ASKED) == []
            assert bits(later.get(asked)) == bits([filled(one) for one in asked])
        assert list(store.get([])) == []


def test_other_words_or_texts_are_other_requests(tmp_path: Path) -> None:
    kept(tmp_path, ASKED[:1])
    others = [blank("she is {trait}.", "good", "bad"), blank("she is {trait}!", "good", "bad", "zzz")]
    assert opened(tmp_path).missing([*others, ASKED[0]]) == others


def test_a_file_is_looked_at_when_it_is_wanted(tmp_path: Path) -> None:
    file = kept(tmp_path, ASKED[:2])
    kept(tmp_path, ASKED[2:4])
    file.write_bytes(file.read_bytes()[:-1] + b"x")  # behind all that is parsed
    store = opened(tmp_path)
    assert store.missing(ASKED[2:4]) == []
    assert (store.damaged, file.exists()) == ([], True)
    assert store.missing(ASKED[:4]) == ASKED[:2]
    assert (store.damaged, file.exists()) == ([file.name], False)


def test_what_two_files_hold_is_kept_while_one_is_whole(tmp_path: Path) -> None:
    files = [kept(tmp_path, asked) for asked in (ASKED[:2], ASKED[1:3], ASKED[1:4])]
    for file in files[:2]:
        file.write_bytes(file.read_bytes()[:-1] + b"x")
    store = opened(tmp_path)
    assert store.missing(ASKED[:4]) == ASKED[:1]
    assert bits(store.get(ASKED[1:4])) == bits([filled(one) for one in ASKED[1:4]])
    assert set(store.damaged) <= {file.name for file in files[:2]}


def test_a_file_that_another_process_removed_is_missing(tmp_path: Path) -> None:
    file = kept(tmp_path, ASKED[:2])
    store = opened(tmp_path)
    file.unlink()
    assert store.missing(ASKED[:2]) == ASKED[:2]
    assert store.damaged == []
    with pytest.raises(MeasurementError, match="she is"):
        store.get(ASKED[:1])


def test_a_file_that_goes_while_it_is_in_use_is_named(tmp_path: Path) -> None:
    file = kept(tmp_path, ASKED[:2])
    store = opened(tmp_path)
    assert store.missing(ASKED[:2]) == []
    file.unlink()
    with pytest.raises(MeasurementError, match=file.name):
        store.get(ASKED[:1])


def test_many_keys_are_told_apart(tmp_path: Path) -> None:
    """Some hashes end or begin with the byte zero, which strings of bytes may be thought to end at."""
    words = [f"w{i}" for i in range(3000)]
    blanks = [blank("she is {trait}.", word) for word in words]
    store = opened(tmp_path)
    for start in range(0, 2000, 500):
        store.add(blanks[start : start + 500], [filled(one) for one in blanks[start : start + 500]])
    later = opened(tmp_path)
    assert later.missing(blanks[::-1]) == blanks[2000:][::-1]
    assert bits(later.get(blanks[1999::-7])) == bits([filled(one) for one in blanks[1999::-7]])


# Asking


@pytest.mark.parametrize("batches", [1, 2, 3])
def test_an_interrupted_asking_gives_the_same_bits(batches: int, tmp_path: Path) -> None:
    whole, model = opened(None), Fake()
    assert fetch_missing(BlankHandler(model), ASKED, whole) == len(ASKED)

    def interrupt(done: int, _: int) -> None:
        if done == 2 * batches:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch_missing(BlankHandler(Fake()), ASKED, opened(tmp_path), interrupt)
    again, store = Fake(), opened(tmp_path)
    assert fetch_missing(BlankHandler(again), ASKED, store) == len(ASKED) - 2 * batches
    assert again.asked == model.asked[batches:]
    assert bits(store.get(ASKED)) == bits(whole.get(ASKED))


def test_what_is_kept_is_left_out_of_its_batch_and_moves_no_other(tmp_path: Path) -> None:
    whole = Fake()
    fetch_missing(BlankHandler(whole), ASKED, opened(None))
    kept(tmp_path, [whole.asked[1][0]])
    model = Fake()
    fetch_missing(BlankHandler(model), ASKED, opened(tmp_path))
    assert model.asked == [whole.asked[0], whole.asked[1][1:], *whole.asked[2:]]


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

    with pytest.raises(KeyboardInterrupt):
        fetch_missing(BlankHandler(model), blanks, stores.for_model(model.identity, BLANKS), interrupt)
    fetch_missing(BlankHandler(open_model(name, "blanks")), blanks, stores.for_model(model.identity, BLANKS))
    with monkeypatch.context() as patch:
        patch.setattr("biassay.models.transformers.checkpoint.open_tokenizer", None)
        patch.setattr("biassay.models.transformers.language_model.load_weights", None)
        last = open_model(name, "blanks")
        store = stores.for_model(last.identity, BLANKS)
        assert fetch_missing(BlankHandler(last), blanks, store) == 0
    assert bits(store.get(blanks)) == bits(whole.get(blanks))
