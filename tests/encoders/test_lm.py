"""Language models: reference values, full passes in the test, output layers of many kinds, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.encoders.tiny_models import byte_tokenizer, save_tiny, wordpiece_tokenizer

from biassay.encoders.lm import LanguageModel, Question
from biassay.encoders.registry import open_as
from biassay.errors import ModelError, UsageError
from biassay.stats.sensitivity import sensitivity

pytestmark = pytest.mark.extras


@pytest.mark.parametrize("name", ["bert", "roberta"])
def test_reference_tokens_probabilities_and_distances(reference: Path, name: str) -> None:
    model = open_as(f"hf:{reference / 'masked_lm' / name}", "blanks")
    lines = (reference / "masked_lm" / f"records_{name}.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    asked, parts = [], []
    for record in records:
        group = "{mask}" if record["role"] == "prior_mask" else record["group"]
        text = record["template"].replace("<mask>", "{trait}").replace("<group>", group)
        pieces = model.pieces(text, record["adjective"])
        assert pieces is not None
        assert list(pieces) == record["trait_piece_ids"]
        questions = model.questions(text, pieces, record["adjective"])
        assert list(questions[0].ids) == record["input_ids"]
        assert [question.place for question in questions] == record["trait_mask_positions"]
        parts.append(slice(len(asked), len(asked) + len(questions)))
        asked += questions
    answers = model.answers(asked)
    for record, part in zip(records, parts, strict=True):
        log_p, initial, continuing, distance = answers[part].T
        np.testing.assert_allclose(log_p, np.log(record["raw_prob"]), atol=1e-4)
        assert log_p[0] == pytest.approx(record["ilps_logprob"], abs=6e-4)  # the released code rounds to float32
        np.testing.assert_allclose(np.exp([initial[0], *continuing[1:]]), record["Z"], atol=1e-6)
        np.testing.assert_allclose(distance, record["delta"], rtol=1e-4, atol=1e-7)


def save(kind: str, folder: Path, **more: Any) -> Path:
    """A tiny model of the library with an output layer of some kind."""
    import torch
    import transformers as library

    torch.manual_seed(3)
    masked = kind in ("DistilBert", "Electra", "Albert", "Bert", "ModernBert")
    tokenizer = wordpiece_tokenizer() if masked else byte_tokenizer(special=False)
    size = {"vocab_size": len(tokenizer), "pad_token_id": 0}
    wide = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
    settings = {
        "DistilBert": {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 24},
        "Electra": wide | {"embedding_size": 12},
        "Albert": wide | {"embedding_size": 12},
        "GPT2": {"n_embd": 16, "n_layer": 2, "n_head": 2},
        "OPT": {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "ffn_dim": 24},
    }.get(kind, wide)
    config = getattr(library, f"{kind}Config")(**size, **settings, **more)
    auto = library.AutoModelForMaskedLM if masked else library.AutoModelForCausalLM
    model = auto.from_config(config)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


KINDS = [
    ("Bert", {}),
    ("Bert", {"tie_word_embeddings": False}),
    ("DistilBert", {}),
    ("Electra", {}),
    ("Albert", {}),
    ("ModernBert", {"cls_token_id": 2, "sep_token_id": 3, "bos_token_id": 2, "eos_token_id": 3}),
    ("GPT2", {}),
    ("Llama", {"tie_word_embeddings": False}),
    ("Llama", {"tie_word_embeddings": True}),
    ("OPT", {}),
    ("GPTNeoX", {}),
    ("Phi", {}),  # a causal model whose output layer has a bias
]


@pytest.mark.parametrize(("kind", "more"), KINDS, ids=[f"{kind}-{i}" for i, (kind, _) in enumerate(KINDS)])
def test_any_output_layer_gives_what_a_full_pass_gives(kind: str, more: dict[str, Any], tmp_path: Path) -> None:
    """Probabilities of a plain pass; and the state by solving for what the output layer made the logits from."""
    import torch
    import transformers as library

    model = open_as(f"hf:{save(kind, tmp_path / 'm', **more)}", "blanks")
    texts = ["she is {trait}.", "the person here is {trait}."]
    words = ["good", "evil"]
    asked = [q for t in texts for w in words for q in model.questions(t, model.pieces(t, w) or (), w)]
    found = model.answers(asked)
    auto = library.AutoModelForMaskedLM if model.kind == "masked" else library.AutoModelForCausalLM
    plain: Any = auto.from_pretrained(tmp_path / "m").eval()
    layer = plain.get_output_embeddings()
    for question, answer in zip(asked, found, strict=True):
        with torch.inference_mode():
            ids = torch.tensor([question.ids])
            logits = plain(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[0, question.place].double()
        assert answer[0] == pytest.approx(float(torch.log_softmax(logits, 0)[question.target]), abs=1e-5)
        weight = layer.weight.detach().double()
        bias = 0.0 if layer.bias is None else layer.bias.detach().double()
        state = torch.linalg.lstsq(weight, (logits - bias)[:, None]).solution[:, 0]
        norm = float(state @ state) + (layer.bias is not None)
        expected = sensitivity(logits.numpy()[None], [question.target], [norm])[0]
        assert answer[3] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("kind", ["bert", "gpt2", "llama"])
def test_company_and_order_change_nothing(kind: str, tmp_path: Path) -> None:
    model = open_as(f"hf:{save_tiny(kind, tmp_path / 'm', head=True)}", "blanks")
    texts = ["she is {trait}.", "the person there is {trait}.", "a {trait}."]
    asked = [q for t in texts for w in ("good", "home") for q in model.questions(t, model.pieces(t, w) or (), w)]
    together = model.answers(asked)
    alone = np.concatenate([model.answers([question]) for question in asked])
    np.testing.assert_allclose(together, alone, atol=2e-5)
    np.testing.assert_allclose(model.answers(asked[::-1])[::-1], together, atol=2e-5)


@pytest.mark.parametrize(("kind", "passes"), [("bert", 2), ("gpt2", 3)])
def test_words_share_passes(kind: str, passes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """BERT reads one mask and two masks; GPT-2 reads each word once, though it asks about every letter of it."""
    model = open_as(f"hf:{save_tiny(kind, tmp_path / 'm', head=True)}", "blanks")
    text, words = "she is {trait}.", ("good", "bad", "evil")
    extra = ("loves", "wars") if kind == "bert" else ()
    asked = [q for w in (*words, *extra) for q in model.questions(text, model.pieces(text, w) or (), w)]
    if kind == "bert":
        asked = [question for question in asked if question.target != model.pieces(text, "loves")[1]]  # type: ignore[index]
    read: list[int] = []
    forward = LanguageModel._forward

    def counting(self: LanguageModel, batch: Any, places: Any) -> Any:
        read.append(len(batch))
        return forward(self, batch, places)

    monkeypatch.setattr(LanguageModel, "_forward", counting)
    model.answers(asked)
    assert sum(read) == model.passes(asked) == passes


def test_words_that_share_their_first_piece_are_told_apart(tmp_path: Path) -> None:
    model = open_as(f"hf:{save_tiny('bert', tmp_path / 'm', head=True)}", "blanks")
    one, other = (model.pieces("she is {trait}.", word) for word in ("loves", "loveing"))
    assert one is not None
    assert other is not None
    assert one[0] == other[0]
    first, second = (model.answers(model.questions("she is {trait}.", p, "")) for p in (one, other))
    assert first[0].tolist() == second[0].tolist()  # the same question
    assert first[1, 0] != second[1, 0]
    assert first[1, 3] != second[1, 3]


def test_a_masked_group_is_no_place_of_the_trait(tmp_path: Path) -> None:
    model = open_as(f"hf:{save_tiny('bert', tmp_path / 'm', head=True)}", "blanks")
    for text, places in (("{mask} are {trait}.", [3, 4]), ("the {trait} are {mask}.", [2, 3])):
        pieces = model.pieces(text, "loves")
        assert pieces is not None
        assert [question.place for question in model.questions(text, pieces, "loves")] == places


def test_causal_questions_are_prefixes(tmp_path: Path) -> None:
    model = open_as(f"hf:{save_tiny('gpt2', tmp_path / 'm', head=True)}", "blanks")
    pieces = model.pieces("she is {trait}.", "bad")
    assert pieces is not None
    questions = model.questions("she is {trait}.", pieces, "bad")
    for question in questions:
        assert question.place == len(question.ids) - 1
    assert [q.target for q in questions] == list(pieces)
    assert questions[2].ids == (*questions[0].ids, *pieces[:2])


def test_a_word_of_unknown_tokens_has_no_pieces(tmp_path: Path) -> None:
    model = open_as(f"hf:{save_tiny('bert', tmp_path / 'm', head=True)}", "blanks")
    assert model.pieces("she is {trait}.", "zzz") is None


def test_a_checkpoint_without_its_head_is_refused(tmp_path: Path) -> None:
    model = open_as(f"hf:{save_tiny('bert', tmp_path / 'm', head=False)}", "blanks")
    with pytest.raises(ModelError, match=r"lacks cls\.predictions"):
        model.answers([Question((2, 4, 3), 1, 5)])


def test_models_that_predict_no_words_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'glove'.*hf:NAME"):
        open_as("glove", "blanks")
    folder = save_tiny("bert", tmp_path / "m", head=True)
    with pytest.raises(UsageError, match="pool= is for vectors"):
        open_as(f"hf:{folder}?pool=mean", "blanks")
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    del settings["mask_token"]
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    with pytest.raises(ModelError, match="no mask token"):
        open_as(f"hf:{folder}", "blanks")


def test_a_model_of_another_kind_is_refused(tmp_path: Path) -> None:
    import transformers as library

    config = library.T5Config(vocab_size=60, d_model=16, d_kv=8, d_ff=24, num_layers=1, num_heads=2)
    library.T5ForConditionalGeneration(config).save_pretrained(tmp_path / "m")
    wordpiece_tokenizer().save_pretrained(tmp_path / "m")
    with pytest.raises(ModelError, match="neither a masked nor a causal"):
        open_as(f"hf:{tmp_path / 'm'}", "blanks")
