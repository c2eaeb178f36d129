"""``hf:`` generation: log-probabilities, replies and seeds equal a direct computation."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from biassay.errors import ModelError, UsageError
from biassay.models.base import Reply
from biassay.models.registry import open_model
from biassay.prompts.requests import LikelihoodRequest, Prompt

from .tiny_models import save_tiny

pytestmark = [pytest.mark.extras, pytest.mark.usefixtures("one_thread")]

TEMPLATE = (
    "{% for m in messages %}<s>{{ m['role'] }}\n{{ m['content'] }}</s>{% endfor %}"
    "{% if add_generation_prompt %}<s>a\n{% endif %}"
)
PROMPTS = [Prompt("hello"), Prompt("who is it?"), Prompt("a"), Prompt("hello", sample=1)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("m") / "tiny"
    save_tiny("gpt2", place, head=True)
    (place / "chat_template.jinja").write_text(TEMPLATE)
    return place


@pytest.fixture(scope="module")
def direct(folder: Path) -> tuple[Any, Any]:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    return AutoModelForCausalLM.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)


def log_p_of(direct: tuple[Any, Any], before: str, after: str, *, special: bool = False) -> list[float]:
    """Of every token of ``after``, one forward pass over all, with the library alone."""
    import torch

    model, tokenizer = direct
    first = tokenizer(before, add_special_tokens=special)["input_ids"]
    ids = [*first, *tokenizer(after, add_special_tokens=False)["input_ids"]]
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0].double().log_softmax(dim=1)
    return [float(logits[place - 1, ids[place]]) for place in range(len(first), len(ids))]


def rendered(direct: tuple[Any, Any], *messages: tuple[str, str]) -> str:
    given = [{"role": role, "content": content} for role, content in messages]
    text: str = direct[1].apply_chat_template(given, tokenize=False, add_generation_prompt=True)
    return text


def test_options_have_the_log_probability_of_all_their_tokens(folder: Path, direct: tuple[Any, Any]) -> None:
    options = ("A", "yes", "not at all")
    prompts = [Prompt("hello", options=options), Prompt("who?", "be brief", options[:2])]
    found = open_model(f"hf:{folder}", "replies").reply(prompts)
    befores = [rendered(direct, ("user", "hello")), rendered(direct, ("system", "be brief"), ("user", "who?"))]
    for prompt, reply, before in zip(prompts, found, befores, strict=True):
        expected = [sum(log_p_of(direct, before, option)) for option in prompt.options]
        np.testing.assert_allclose(reply.log_p, expected, atol=1e-5)
        assert (reply.text, reply.tokens_out) == ("", 0)


def test_a_temperature_of_nothing_is_the_likeliest_answer(folder: Path, direct: tuple[Any, Any]) -> None:
    """Token by token with the library alone, each prompt by itself; here all are in one padded batch."""
    import torch

    model, tokenizer = direct
    found = open_model(f"hf:{folder}?temperature=0&max_tokens=8", "replies").reply(PROMPTS)
    for prompt, reply in zip(PROMPTS, found, strict=True):
        ids = tokenizer(rendered(direct, ("user", prompt.text)), add_special_tokens=False)["input_ids"]
        read, ended = len(ids), "length"
        while len(ids) < read + 8 and ended == "length":
            with torch.no_grad():
                ids.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
            ended = "stop" if ids[-1] == tokenizer.eos_token_id else "length"
        text = tokenizer.decode(ids[read:], skip_special_tokens=True)
        assert reply == Reply(text, ended, read, len(ids) - read)  # type: ignore[arg-type]


def test_a_prompt_may_have_its_own_temperature(folder: Path) -> None:
    model = open_model(f"hf:{folder}?max_tokens=8&seed=3", "replies")
    likeliest = [dataclasses.replace(prompt, temperature=0.0) for prompt in PROMPTS]
    assert len({prompt.key for prompt in (*PROMPTS, *likeliest)}) == 2 * len(PROMPTS)
    wanted = open_model(f"hf:{folder}?max_tokens=8&temperature=0", "replies").reply(PROMPTS)
    mixed = model.reply([*PROMPTS, *likeliest])
    assert [reply.text for reply in mixed[len(PROMPTS) :]] == [reply.text for reply in wanted]
    assert [reply.text for reply in mixed[: len(PROMPTS)]] == [reply.text for reply in model.reply(PROMPTS)]


def test_an_answer_depends_on_its_seed_and_not_on_its_company(folder: Path) -> None:
    name = f"hf:{folder}?max_tokens=12"
    together = open_model(name, "replies").reply(PROMPTS)
    alone = [open_model(name, "replies").reply([prompt])[0] for prompt in PROMPTS[::-1]][::-1]
    assert together == alone
    assert together[0].text != together[3].text  # another number of the same answer
    assert open_model(f"{name}&seed=1", "replies").reply(PROMPTS) != together


@pytest.mark.parametrize("settings", ["", "&temperature=0"])
def test_near_the_limit_an_answer_has_the_room_that_its_own_prompt_leaves(folder: Path, settings: str) -> None:
    """64 tokens in all: a longer prompt in the batch takes nothing from the answers to shorter ones."""
    name = f"hf:{folder}?max_tokens=40{settings}"
    prompts = [Prompt("a", sample=i) for i in range(8)] + [Prompt("b" * n, sample=n) for n in (30, 31, 40)]
    together = open_model(name, "replies").reply(prompts)
    assert together == [open_model(name, "replies").reply([prompt])[0] for prompt in prompts]
    for reply in together:
        assert reply.finish_reason == "stop" or reply.tokens_out == min(40, 64 - (reply.tokens_in or 0))
    assert len({reply.tokens_out for reply in together if reply.finish_reason == "length"}) > 1


def test_a_template_that_asks_for_the_date_is_told_the_same_on_every_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers.utils import chat_template_utils

    place = tmp_path / "m"
    save_tiny("gpt2", place, head=True)
    asks = "  {% if strftime_now is defined %}{{ strftime_now('%d %b %Y|%-d/%m') }}{% endif %}\n" + TEMPLATE
    (place / "chat_template.jinja").write_text(asks)
    model: Any = open_model(f"hf:{place}", "replies")
    model.prepare([])
    texts, direct = [], []
    for day in (3, 4):
        now = type("Then", (datetime,), {"now": classmethod(lambda _, day=day: datetime(2031, 5, day))})
        monkeypatch.setattr(chat_template_utils, "datetime", now)
        texts.append(model._format_prompt(Prompt("hello")))
        direct.append(rendered((None, model._model.tokenizer), ("user", "hello")))
    assert direct[0] != direct[1]  # the library's own
    assert texts[0] == texts[1] == direct[0].replace("03 May 2031|3/05", "26 Jul 2024|26/07")


def test_draws_follow_the_probabilities(folder: Path, direct: tuple[Any, Any]) -> None:
    """First tokens of 600 answers against the model's own probabilities, chi-squared over the likeliest texts."""
    import torch
    from scipy import stats

    model, tokenizer = direct
    ids = tokenizer(rendered(direct, ("user", "a")), add_special_tokens=False)["input_ids"]
    with torch.no_grad():
        shares = (model(torch.tensor([ids])).logits[0, -1] / 0.5).softmax(dim=0).numpy()
    likely: dict[str, float] = {}
    for token, share in enumerate(shares.tolist()):
        text = tokenizer.decode([token], skip_special_tokens=True)  # parts of a character look alike
        likely[text] = likely.get(text, 0.0) + share
    prompts = [Prompt("a", sample=i) for i in range(600)]
    replies = open_model(f"hf:{folder}?max_tokens=1&temperature=0.5", "replies").reply(prompts)
    texts = sorted(likely, key=lambda text: -likely[text])[:6]
    counts = [sum(reply.text == text for reply in replies) for text in texts]
    expected = 600 * np.array([likely[text] for text in texts])
    found, wanted = [*counts, 600 - sum(counts)], [*expected, 600 - expected.sum()]
    assert stats.chisquare(found, wanted).pvalue > 1e-3


# What is refused


def test_a_model_without_a_template_says_so(tmp_path: Path) -> None:
    name = f"hf:{save_tiny('gpt2', tmp_path / 'm', head=True)}"
    with pytest.raises(ModelError, match=r"no chat template.*\?chat=false"):
        open_model(name, "replies").reply([Prompt("a")])
    assert open_model(f"{name}?chat=false&max_tokens=2", "replies").reply([Prompt("a")])[0].tokens_out in (1, 2)


def test_a_template_that_refuses_is_named(tmp_path: Path) -> None:
    place = tmp_path / "m"
    save_tiny("gpt2", place, head=True)
    (place / "chat_template.jinja").write_text(
        "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}" + TEMPLATE
    )
    with pytest.raises(ModelError, match="no system"):
        open_model(f"hf:{place}?system=x", "replies").reply([Prompt("a")])


@pytest.mark.parametrize("ability", ["texts", "words", "blanks", "likelihoods"])
def test_settings_of_answers_are_for_answers(folder: Path, ability: Any) -> None:
    with pytest.raises(UsageError, match="temperature= applies to generated text"):
        open_model(f"hf:{folder}?temperature=0", ability)
    with pytest.raises(UsageError, match="pool= applies to the vectors of whole texts"):
        open_model(f"hf:{folder}?pool=mean", "replies")


# Likelihoods


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_likelihoods_of_causal_models(kind: str, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    place = save_tiny(kind, tmp_path / "m", head=True)
    model, tokenizer = AutoModelForCausalLM.from_pretrained(place).eval(), AutoTokenizer.from_pretrained(place)
    texts = ["she is good", "naïve"]
    found = open_model(f"hf:{place}", "likelihoods").likelihoods([LikelihoodRequest(text) for text in texts])
    for text, one in zip(texts, found, strict=True):
        expected = log_p_of((model, tokenizer), "</s>", text)  # the end of the text before stands for a beginning
        np.testing.assert_allclose(one.log_p, expected, atol=1e-5)
        assert one.spans[-1, 1] == len(text)
        assert one.within(0, len(text)) == pytest.approx(sum(expected), abs=1e-4)


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_pseudo_likelihoods_of_masked_models(kind: str, tmp_path: Path) -> None:
    """Each token masked in a pass of its own, with the library alone."""
    import torch
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    place = save_tiny(kind, tmp_path / "m", head=True)
    model, tokenizer = AutoModelForMaskedLM.from_pretrained(place).eval(), AutoTokenizer.from_pretrained(place)
    if tokenizer.mask_token is None:
        tokenizer.mask_token = "<mask>"
        tokenizer.save_pretrained(place)
    text = "she is good"
    opened = open_model(f"hf:{place}", "likelihoods")
    assert opened.kind == "masked"
    [one] = opened.likelihoods([LikelihoodRequest(text)])
    ids = tokenizer(text)["input_ids"]
    expected = []
    for at in range(1, len(ids) - 1):
        masked = [*ids[:at], tokenizer.mask_token_id, *ids[at + 1 :]]
        with torch.no_grad():
            expected.append(float(model(torch.tensor([masked])).logits[0, at].double().log_softmax(0)[ids[at]]))
    np.testing.assert_allclose(one.log_p, expected, atol=1e-5)
    words = [text[start:end] for start, end in one.spans.tolist()]
    assert "".join(words).replace(" ", "") == text.replace(" ", "")


# A real model


@pytest.mark.slow
def test_smollm2_answers_and_its_options_agree_with_the_library(smollm2: Path) -> None:
    model: Any = open_model(f"hf:{smollm2}?temperature=0&max_tokens=12", "replies")
    question = "Which is a colour? Answer with one letter.\nA: red\nB: stone"
    prompts = [Prompt("What is the capital of France?"), Prompt(question, options=("A", "B", "not sure"))]
    said, chosen = model.reply(prompts)
    assert "Paris" in said.text
    direct = (model._model.model, model._model.tokenizer)
    before = rendered(direct, ("user", question))
    assert "<|im_start|>assistant" in before
    np.testing.assert_allclose(chosen.log_p, [sum(log_p_of(direct, before, o)) for o in prompts[1].options], atol=1e-5)


def test_a_prompt_that_is_too_long_is_named(folder: Path) -> None:
    for options in ((), ("A",)):
        with pytest.raises(ModelError, match="64 tokens"):
            open_model(f"hf:{folder}", "replies").reply([Prompt("a" * 70, options=options)])


def test_a_masked_model_answers_no_prompts(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="masked"):
        open_model(f"hf:{save_tiny('bert', tmp_path / 'm', head=True)}", "replies")
