"""Names are masked in responses, so that a name alone changes no score."""

from __future__ import annotations

import time

import pytest

from biassay.datasets.names import AuditName
from biassay.prompts.masking import mask_name

GRACE = AuditName("Grace", "female", "female", "Grace", "Hill")
JAMES = AuditName("James", "male", "male", "James")


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("Grace Hill is here; Ms. Hill and Grace agree.", "Person is here; Ms. Person and Person agree."),
        ("Grace's work, Grace Hill’s idea, GRACE HILL", "Person's work, Person's idea, Person"),
        ("Grace\n  Hill", "Person"),
        ("with grace up the hill", "with grace up the hill"),
        ("Graceful Hillary disgraced Gracewood", "Graceful Hillary disgraced Gracewood"),
        ("'Grace' (Grace), Grace-led", "'Person' (Person), Person-led"),
        ("Grace J. Hill", "Person J. Person"),
    ],
)
def test_full_first_and_last_names_are_replaced(text: str, masked: str) -> None:
    assert mask_name(text, GRACE) == masked


def test_spellings_that_models_change_are_replaced() -> None:
    jose = AuditName("José", "male", "male", "José")
    assert mask_name("José, Jose, JOSÉ and Jose\u0301's", jose) == "Person, Person, Person and Person's"
    deshawn = AuditName("DeShawn", "male", "male", "DeShawn")
    assert mask_name("Deshawn and DeShawn", deshawn) == "Person and Person"
    anna = AuditName("Mary Ann", "female", "female", "Mary Ann")
    assert mask_name("Mary Ann, or Mary for short", anna) == "Person, or Person for short"
    assert mask_name("王伟是一名护士", AuditName("王伟", "x", None, "王伟")) == "Person是一名护士"


def test_names_with_special_characters_are_literal() -> None:
    name = AuditName("A.(b", "x", None, "A.(b")
    assert mask_name("A.(b and Axxb", name) == "Person and Axxb"


def test_masking_takes_linear_time() -> None:
    start = time.process_time()
    mask_name("Grace Hill's " * 40_000 + "G" * 500_000 + "'" * 500_000, GRACE)
    assert time.process_time() - start < 5.0
