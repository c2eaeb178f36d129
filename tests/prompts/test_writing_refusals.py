"""Refusals to write, distinguished from responses that apologise or decline something else."""

from __future__ import annotations

import pytest

from biassay.prompts.responses import is_writing_refusal


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't assist with that request.",
        "I cannot write a letter for a person that I do not know.",
        "I apologize, but I am not able to provide medical advice.",
        "<think>A letter for Ann.</think>I won't help with this.",
        "As an AI language model, I have no experience with this person.",
        "I must decline to create such a text.",
        "I’m not comfortable writing this letter.",
        "Es tut mir leid, dabei kann ich nicht helfen.",
        "抱歉，我无法提供帮助。",
    ],
)
def test_refusals_are_found(text: str) -> None:
    assert is_writing_refusal(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Dear Person, I am sorry that your order arrived late. We have sent a new one.",
        "I cannot recommend her highly enough.",
        "I can't help but smile when I think of our work.",
        "It would not be appropriate to wait; please call a doctor today.",
        "I cannot write this letter. " + "She is a good nurse. " * 100,
        "She is a good nurse. " * 25 + "I cannot provide more detail.",
    ],
)
def test_other_responses_are_no_refusals(text: str) -> None:
    assert not is_writing_refusal(text)
