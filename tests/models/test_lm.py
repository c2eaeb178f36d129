"""Language models: blanks and likelihoods, with and without shared prefixes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.blanks import blank
from tests.models.tiny_models import byte_tokenizer, save_random, save_tiny, wordpiece_tokenizer

from biassay.errors import ModelError, UsageError
from biassay.models.registry import open_model
from biassay.models.transformers.forward_plan import ForwardPlan, PrefixGroups, TokenQuery, group_by_prefix
from biassay.prompts.requests import Blank, LikelihoodRequest, Prompt
from biassay.stats.sensitivity import sensitivity

pytestmark = pytest.mark.extras


@pytest.mark.parametrize("name", ["bert", "roberta"])
def test_reference_tokens_probabilities_and_distances(reference: Path, name: str) -> None:
    model = open_model(f"hf:{reference / 'masked_lm' / name}", "blanks")
    lines = (reference / "masked_lm" / f"records_{name}.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    blanks = []
    for record in records:
        group = "{mask}" if record["role"] == "prior_mask" else record["group"]
        text = record["template"].replace("<mask>", "{trait}").replace("<group>", group)
        blanks.append(blank(text, record["adjective"]))
        asked = model._blank_tokenizer.tokenize(blanks[-1:])[0]  # type: ignore[attr-defined]
        assert list(asked.queries[0].ids) == record["input_ids"]
        assert [question.position for question in asked.queries] == record["trait_mask_positions"]
    for record, filled in zip(records, model.fill(blanks), strict=True):
        assert filled.words == [tuple(record["trait_piece_ids"])]
        log_p, initial, continuing, distance = filled.columns.T
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
    return save_random(auto.from_config(config), tokenizer, folder, std=0.4)


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

    model = open_model(f"hf:{save(kind, tmp_path / 'm', **more)}", "blanks")
    texts = ["she is {trait}.", "the person here is {trait}."]
    blanks = [blank(text, "good", "evil") for text in texts]
    asked = [question for one in model._blank_tokenizer.tokenize(blanks) for question in one.queries]  # type: ignore[attr-defined]
    found = np.concatenate([filled.columns for filled in model.fill(blanks)])
    auto = library.AutoModelForMaskedLM if model.kind == "masked" else library.AutoModelForCausalLM
    plain: Any = auto.from_pretrained(tmp_path / "m").eval()
    layer = plain.get_output_embeddings()
    for question, answer in zip(asked, found, strict=True):
        with torch.inference_mode():
            ids = torch.tensor([question.ids])
            logits = plain(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[0, question.position].double()
        assert answer[0] == pytest.approx(float(torch.log_softmax(logits, 0)[question.target]), abs=1e-5)
        weight = layer.weight.detach().double()
        bias = 0.0 if layer.bias is None else layer.bias.detach().double()
        state = torch.linalg.lstsq(weight, (logits - bias)[:, None]).solution[:, 0]
        norm = float(state @ state) + (layer.bias is not None)
        expected = sensitivity(logits.numpy()[None], [question.target], [norm])[0]
        assert answer[3] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("kind", ["bert", "gpt2", "llama"])
def test_company_and_order_change_nothing(kind: str, tmp_path: Path) -> None:
    model = open_model(f"hf:{save_tiny(kind, tmp_path / 'm', head=True)}", "blanks")
    texts = ["she is {trait}.", "the person there is {trait}.", "a {trait}."]
    blanks = [blank(text, "good", "home") for text in texts]
    together = [filled.columns for filled in model.fill(blanks)]
    alone = [filled.columns for one in blanks for filled in model.fill([one])]
    backwards = [filled.columns for filled in model.fill(blanks[::-1])][::-1]
    words = [
        np.concatenate([filled.columns for word in one.words for filled in model.fill([Blank(one.segments, (word,))])])
        for one in blanks
    ]
    for others in (alone, backwards, words):
        for one, other in zip(together, others, strict=True):
            np.testing.assert_allclose(one, other, atol=2e-5)


@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_batches_hold_whole_blanks_and_texts_that_begin_alike(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = open_model(f"hf:{save_tiny(kind, tmp_path / 'm', head=True)}", "blanks")
    starts = ("she", "he", "the person")
    texts = [f"{start} is {end} {{trait}}." for end in ("good", "bad") for start in starts]
    blanks = [blank(text, "joy", "loves") for text in texts]
    size = sum(model._blank_tokenizer.tokenize(blanks[:1])[0].lengths)  # type: ignore[attr-defined]
    assert sorted(model.batches(blanks)[0]) == list(range(6))
    monkeypatch.setattr("biassay.models.transformers.language_model._MAX_BATCH_QUERIES", {"cpu": 2 * size})
    assert sorted(map(sorted, model.batches(blanks))) == [[0, 3], [1, 4], [2, 5]]
    monkeypatch.setattr("biassay.models.transformers.language_model._MAX_BATCH_QUERIES", {"cpu": 1})
    assert sorted(model.batches(blanks)) == [[i] for i in range(6)]
    assert model.batches([]) == []


def test_a_checkpoint_without_its_head_is_refused(tmp_path: Path) -> None:
    model = open_model(f"hf:{save_tiny('bert', tmp_path / 'm', head=False)}", "blanks")
    with pytest.raises(ModelError, match=r"lacks cls\.predictions"):
        model.fill([blank("she is {trait}.", "good")])


def test_models_that_predict_no_words_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'glove'.*hf:NAME"):
        open_model("glove", "blanks")
    folder = save_tiny("bert", tmp_path / "m", head=True)
    with pytest.raises(UsageError, match="pool= applies to the vectors of whole texts"):
        open_model(f"hf:{folder}?pool=mean", "blanks")
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    del settings["mask_token"]
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    with pytest.raises(ModelError, match="no mask token"):
        open_model(f"hf:{folder}", "blanks").prepare()  # type: ignore[call-arg]


def test_a_model_of_another_kind_is_refused(tmp_path: Path) -> None:
    import transformers as library

    config = library.T5Config(vocab_size=60, d_model=16, d_kv=8, d_ff=24, num_layers=1, num_heads=2)
    library.T5ForConditionalGeneration(config).save_pretrained(tmp_path / "m")
    wordpiece_tokenizer().save_pretrained(tmp_path / "m")
    with pytest.raises(ModelError, match="neither a masked nor a causal"):
        open_model(f"hf:{tmp_path / 'm'}", "blanks")


WORDS = ("good", "evil", "bad", "loves", "lovely", "g")


def some_questions(rng: np.random.Generator) -> list[TokenQuery]:
    starts = [tuple(rng.integers(0, 50, rng.integers(4, 9)).tolist()) for _ in range(12)]
    made = []
    for _ in range(400):
        start = starts[rng.integers(len(starts))]
        ids = (*start, *rng.integers(0, 50, rng.integers(0, 3)).tolist())
        made.append(TokenQuery(ids, int(rng.integers(len(start) - 1, len(ids))), int(rng.integers(50))))
    return made


def list_requests(groups: PrefixGroups) -> list[tuple[tuple[int, ...], int, int]]:
    """Return every query: all tokens up to its position, and the target token."""
    whole = groups.whole
    return [
        (whole.sequences[row][: position + 1], int(position), int(target))
        for row, position, target in zip(whole.rows, whole.positions, whole.targets, strict=True)
    ]


@pytest.mark.parametrize(("rows", "tokens"), [(2000, 60_000), (16, 60_000), (64, 200), (1, 1)])
def test_every_question_is_asked_behind_the_same_tokens(rows: int, tokens: int) -> None:
    questions = some_questions(np.random.default_rng(0))
    found = group_by_prefix(ForwardPlan.from_queries(questions, "causal"), rows, tokens)
    assert sorted(np.concatenate([own for _, own in found]).tolist()) == list(range(len(questions)))
    read = 0
    for families, own in found:
        expected = [(q.ids[: q.position + 1], q.position, q.target) for q in (questions[i] for i in own)]
        assert list_requests(families) == expected
        parts = families.halves() or [families]
        assert [one for part in parts for one in list_requests(part)] == expected
        first, second = families.prefix_batch, families.suffix_batch
        assert len(first.targets) + len(second.targets) == len(own)
        assert all(map(len, [*first.sequences, *second.sequences]))
        read += sum(map(len, [*first.sequences, *second.sequences]))
    assert 1.5 * read <= sum(len(ids) for ids in ForwardPlan.from_queries(questions, "causal").sequences)


@pytest.mark.extras
@pytest.mark.parametrize("kind", ["gpt2", "llama"])
@pytest.mark.parametrize("small", [False, True])
def test_answers_are_those_of_whole_sequences(
    kind: str, *, small: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"hf:{save_tiny(kind, tmp_path / 'm', head=True)}"
    if small:
        monkeypatch.setattr("biassay.models.transformers.language_model._MAX_BATCH_SEQUENCES", {"cpu": 4})
    asked = [blank(f"{who} {{trait}}.", *WORDS) for who in ("she is", "the person is so very", "he", "they were")]
    prompts = [Prompt(text, options=(" yes", " no", " yesterday")) for text in ("is it so", "who is there, so late")]
    texts = [LikelihoodRequest(text) for text in ("she is good", "she is bad", "he is here", "a person")]

    def everything(shares: bool | None) -> tuple[Any, Any, Any, list[bool | None]]:
        filling: Any = open_model(name, "blanks")
        replying: Any = open_model(f"{name}?chat=false", "replies")
        telling: Any = open_model(name, "likelihoods")
        models = [filling, replying._model, telling._model]
        for model in models:
            model._can_share_prefixes = shares
        found = filling.fill(asked), replying.reply(prompts), telling.likelihoods(texts)
        return *found, [model._can_share_prefixes for model in models]

    filled, replies, likelihoods, shares = everything(None)
    assert shares[:2] == [True, True]
    plain, other_replies, other_likelihoods, _ = everything(shares=False)
    for one, other in zip(filled, plain, strict=True):
        np.testing.assert_array_equal(one.pieces, other.pieces)
        np.testing.assert_allclose(one.columns, other.columns, atol=1e-5)
        assert one.passes == other.passes
    for reply, other in zip(replies, other_replies, strict=True):
        np.testing.assert_allclose(reply.log_p, other.log_p, atol=1e-5)
    for text, other in zip(likelihoods, other_likelihoods, strict=True):
        np.testing.assert_allclose(text.log_p, other.log_p, atol=1e-5)


@pytest.mark.extras
def test_a_model_that_says_something_else_behind_a_prefix_reads_whole_sequences(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model: Any = open_model(f"hf:{save_tiny('gpt2', tmp_path / 'm', head=True)}", "blanks")
    asked = [blank("she is so very {trait}.", *WORDS)]
    expected = open_model(f"hf:{tmp_path / 'm'}", "blanks").fill(asked)
    given = "biassay.models.transformers.forward_plan.PrefixCache.model_arguments"
    from biassay.models.transformers.forward_plan import PrefixCache

    right = PrefixCache.model_arguments
    wrong = lambda self, mask: {k: v for k, v in right(self, mask).items() if k != "past_key_values"}  # noqa: E731
    monkeypatch.setattr(given, wrong)
    (found,) = model.fill(asked)
    assert model._can_share_prefixes is False
    np.testing.assert_allclose(found.columns, expected[0].columns, atol=1e-5)


def test_where_nothing_is_shared_all_is_read_as_a_whole() -> None:
    alone = [TokenQuery((number, 1, 2, 3), 3, 4) for number in range(20)]
    assert group_by_prefix(ForwardPlan.from_queries(alone, "causal"), 100, 1000) == []
    assert group_by_prefix(ForwardPlan.from_queries([TokenQuery((1,), 0, 2)], "causal"), 100, 1000) == []
    assert group_by_prefix(ForwardPlan.from_queries([], "causal"), 100, 1000) == []
