"""ELMo's words in context, compared with all layers of the same words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from biassay.models.base import ContextEmbeddings, Span
from biassay.models.recurrent.elmo import NOT_COVERED
from biassay.models.registry import open_encoder, open_model

from .elmo_models import opened, run_layers, write_model

pytestmark = pytest.mark.extras

# A text, the span of the word, the text's tokens, and which of them are the word's; all written down by hand.
CONTEXTS: list[tuple[str, Span, list[str], slice]] = [
    ("She is a doctor.", (9, 15), ["She", "is", "a", "doctor", "."], slice(3, 4)),
    ("doctor", (0, 6), ["doctor"], slice(0, 1)),
    ("joy is joy", (7, 10), ["joy", "is", "joy"], slice(2, 3)),
    ("joy is joy", (0, 3), ["joy", "is", "joy"], slice(0, 1)),
    ("María 日本 — Zoë's", (11, 14), ["María", "日本", "—", "Zoë", "'s"], slice(3, 4)),
    ("an African American woman", (3, 19), ["an", "African", "American", "woman"], slice(1, 3)),
    ("her mother-in-law sang", (4, 17), ["her", "mother-in-law", "sang"], slice(1, 2)),
    ("her mother-in-law sang", (4, 10), ["her", "mother-in-law", "sang"], slice(1, 2)),
    ("the end of all things", (4, 14), ["the", "end", "of", "all", "things"], slice(1, 4)),
]
TEXTS, SPANS = [c[0] for c in CONTEXTS], [c[1] for c in CONTEXTS]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("models") / "tiny")


def encode(model: str, texts: list[str], spans: list[Span]) -> ContextEmbeddings:
    encoder = open_model(model, "words")
    encoder.prepare()
    return encoder.encode_words(texts, spans)


def all_layers(folder: Path, tokens: list[str]) -> NDArray[Any]:
    """Layers (3, words, d) of a text alone."""
    return run_layers(opened(folder), [tokens])[0]


@pytest.mark.parametrize("layers", ["sum", "concat", "0", "1", "2"])
@pytest.mark.parametrize("part", ["last", "first", "mean"])
def test_words_equal_the_layers_at_their_tokens(part: str, layers: str, folder: Path) -> None:
    found = encode(f"elmo:{folder}?device=cpu&word={part}&layers={layers}", TEXTS, SPANS)
    assert found.missing == (None,) * len(TEXTS)
    assert found.vectors.dtype == np.float32
    for (text, _, tokens, own), vector in zip(CONTEXTS, found.vectors, strict=True):
        states = all_layers(folder, tokens)[:, own]
        word = {"last": states[:, -1], "first": states[:, 0], "mean": states.mean(axis=1)}[part]
        expected = {"sum": word.sum(axis=0), "concat": np.concatenate(list(word))}.get(layers)
        expected = word[int(layers)] if expected is None else expected
        np.testing.assert_allclose(vector, expected, rtol=1e-5, atol=1e-6, err_msg=text)


def test_the_last_token_and_the_sum_of_layers_are_the_default(folder: Path) -> None:
    plain = open_model(f"elmo:{folder}", "words")
    assert plain.identity.settings == (("word", "last"), ("layers", "sum"))
    assert plain.identity.key == open_model(f"elmo:{folder}?word=last&layers=sum&device=cpu", "words").identity.key
    assert plain.identity.key != open_encoder(f"elmo:{folder}").identity.key
    assert plain.identity.key != open_model(f"elmo:{folder}?word=mean", "words").identity.key


def test_a_span_without_a_token_is_missing(folder: Path) -> None:
    found = encode(f"elmo:{folder}?device=cpu", ["joy  love", "  ", "joy"], [(3, 5), (0, 1), (0, 3)])
    assert found.missing == (NOT_COVERED, NOT_COVERED, None)
    assert np.isnan(found.vectors).all(axis=1).tolist() == [True, True, False]
