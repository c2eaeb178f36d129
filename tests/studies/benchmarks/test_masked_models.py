"""CrowS-Pairs and StereoSet of masked models, against the same computed with the library alone."""

from __future__ import annotations

import json
import math
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.models.tiny_models import save_tiny

import biassay
from biassay.stats.benchmark_scores import code_preferences, stereoset_score

pytestmark = pytest.mark.extras


def masked_model(place: Path) -> tuple[str, Any, Any]:
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    save_tiny("bert", place, head=True)
    return f"hf:{place}", AutoModelForMaskedLM.from_pretrained(place).eval(), AutoTokenizer.from_pretrained(place)


def probability(of: Any, ids: list[int], place: int, token: int) -> float:
    """Of a token in a place of a text, with the library alone."""
    import torch

    with torch.no_grad():
        return float(of(torch.tensor([ids])).logits[0, place].double().softmax(0)[token])


def test_stereoset_of_a_masked_model_by_brute_force(tmp_path: Path) -> None:
    """Pieces are filled in one after the other, as in the authors' code: the mask stands for all that are left."""
    name, library, tokenizer = masked_model(tmp_path / "m")
    words = {"stereotype": "loves", "anti-stereotype": "insecting", "unrelated": "rose"}  # two pieces, two, and one
    rows: list[dict[str, Any]] = [
        {
            "id": f"{target} {i}",
            "target": target,
            "bias_type": "gender",
            "context": f"{target} is BLANK {end}",
            "sentences": [
                {"sentence": f"{target} is {word} {end}", "gold_label": label} for label, word in words.items()
            ],
        }
        for target in ("amy", "john", "lisa", "paul")  # items are read in the order of their ids
        for i, end in enumerate(("here.", "there.", "home.", "good."))
    ]
    (tmp_path / "dev.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = biassay.benchmark("stereoset", name, data=tmp_path / "dev.jsonl")

    def scored(context: str, word: str) -> float:
        pieces = tokenizer.tokenize(word)
        found = []
        for i, piece in enumerate(pieces):
            before = "".join(one.removeprefix("##") for one in pieces[:i])
            ids = tokenizer(context.replace("BLANK", f"{before}[MASK]"))["input_ids"]
            place = ids.index(tokenizer.mask_token_id)
            found.append(probability(library, ids, place, tokenizer.convert_tokens_to_ids(piece)))
        return float(np.log(np.mean(found)))

    expected = [[scored(row["context"], word) for word in words.values()] for row in rows]
    np.testing.assert_allclose(run.get_arrays(0)["log_likelihoods"], expected, atol=1e-5)
    found = stereoset_score(*code_preferences(*np.array(expected).T), [row["target"] for row in rows])
    (row,) = run.results
    assert (row.effect_size, row.lms) == pytest.approx((found.ss.value, found.lms.value))


def test_a_tokenizer_that_writes_capitals_small_aligns_them_with_small_letters(tmp_path: Path) -> None:
    """As the authors do, who align the ids of tokens."""
    name, library, tokenizer = masked_model(tmp_path / "m")
    more, less = "he is good and John is here", "Good he is, and john is there"
    head = ",sent_more,sent_less,stereo_antistereo,bias_type,anon_writer"
    (tmp_path / "crows.csv").write_text(f'{head}\n0,{more},"{less}",stereo,gender,a\n')
    run = biassay.benchmark("crows-pairs", name, data=tmp_path / "crows.csv")
    first, second = (tokenizer(text)["input_ids"] for text in (more, less))
    blocks = SequenceMatcher(None, first[1:-1], second[1:-1], autojunk=False).get_matching_blocks()
    sums = []
    for ids, starts in ((first, [block.a for block in blocks]), (second, [block.b for block in blocks])):
        places = [1 + s + i for s, block in zip(starts, blocks, strict=True) for i in range(block.size)]
        known = [place for place in places if ids[place] != tokenizer.unk_token_id]
        masked = {place: [*ids[:place], tokenizer.mask_token_id, *ids[place + 1 :]] for place in known}
        sums.append(sum(math.log(probability(library, text, p, ids[p])) for p, text in masked.items()))
    np.testing.assert_allclose(run.get_arrays(0)["log_likelihoods"], [sums], atol=1e-4)
