"""ELMo's texts: a text's vector is its own, whatever it is encoded with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import biassay
from biassay.errors import VectorError

from . import elmo_models
from .elmo_models import TEXTS, opened

pytestmark = pytest.mark.extras

folder = elmo_models.folder


def test_vector_is_the_same_alone_and_in_a_batch(folder: Path) -> None:
    """Another batch means another order of float32 sums, no more."""
    encoder = opened(folder)
    together = encoder.encode(TEXTS).vectors
    alone = np.concatenate([opened(folder).encode([text]).vectors for text in TEXTS])
    np.testing.assert_allclose(together, alone, rtol=1e-6, atol=2e-6)
    np.testing.assert_allclose(encoder.encode(TEXTS[::-1]).vectors[::-1], alone, rtol=1e-6, atol=2e-6)


def test_no_state_is_carried_from_one_text_to_the_next(folder: Path) -> None:
    encoder = opened(folder)
    once = encoder.encode(TEXTS[:1]).vectors
    encoder.encode(TEXTS[1:])
    np.testing.assert_array_equal(encoder.encode(TEXTS[:1]).vectors, once)


def test_texts_are_taken_in_parts_that_fit_and_come_back_in_order(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = opened(folder).encode(TEXTS * 3).vectors
    monkeypatch.setattr("biassay.models.recurrent.elmo_network._MAX_BATCH_POSITIONS", {"cpu": 13})
    monkeypatch.setattr("biassay.models.recurrent.elmo_network._MAX_BATCH_WORDS", 2)
    monkeypatch.setattr("biassay.models.recurrent.elmo_network._MAX_CACHED_WORDS", 5)
    np.testing.assert_allclose(opened(folder).encode(TEXTS * 3).vectors, whole, rtol=1e-6, atol=2e-6)  # as above


def test_a_run_and_its_vectors_from_the_store(folder: Path) -> None:
    first = biassay.run(f"elmo:{folder}?pool=max", tests="weat6").results
    assert biassay.run(f"elmo:{folder}?pool=max", tests="weat6").results == first
    assert [(r.model, r.options) for r in first] == [("elmo:tiny", "pool=max;layers=sum")]


@pytest.mark.parametrize("text", ["", "  \t\n"])
def test_a_text_without_words_is_an_error(folder: Path, text: str) -> None:
    encoder = opened(folder)
    for use in (encoder.prepare, encoder.encode):
        with pytest.raises(VectorError, match=r"model 'elmo:tiny': the text '.*' has no words, so it has no vector"):
            use(["a word", text])
