"""Inferred target words of finished texts, compared with the known words of the built-in tests."""

from __future__ import annotations

import pytest

from biassay.datasets.catalogue import load_catalogue, select_tests
from biassay.datasets.schema import ROLES
from biassay.prompts.sentences import infer_target_words, make_texts

SENTENCE_TESTS = [test.name for test in select_tests() if test.level == "sentence"]
MODALS = {"will", "did", "can", "may"}  # four with three verbs: nothing tells the ones from the others


def words(*sets: list[str]) -> list[list[list[str]]]:
    found = infer_target_words(sets)
    return [
        [[text[a:b] for a, b in spans] for text, spans in zip(texts, of_set, strict=True)]
        for texts, of_set in zip(sets, found, strict=True)
    ]


@pytest.mark.parametrize("name", SENTENCE_TESTS)
def test_words_of_the_built_in_sentences_are_found(name: str) -> None:
    asked = make_texts(load_catalogue().tests[name])
    found = infer_target_words([[text.text for text in asked.role(role)] for role in ROLES])
    for role, of_set in zip(ROLES, found, strict=True):
        for text, spans in zip(asked.role(role), of_set, strict=True):
            ((start, end),) = text.spans
            outside = [text.text[a:b] for a, b in spans if a < start or end < b]
            if text.stimulus in ("pollute", "kill", "stink"):
                assert set(outside) <= MODALS
            elif name == "sent-weat8b" and text.stimulus == "experiment":
                assert set(outside) <= {"an", "An"}  # which no other word of the file has
            else:
                assert outside == [], (role, text.text)


def test_a_word_of_one_set_with_most_alternatives() -> None:
    found = words(
        ["This is Ann.", "That is Ann.", "This is Eve.", "That is Eve."],
        ["This is Bob.", "That is Bob.", "This is Jim.", "That is Jim."],
        ["A doll is a thing.", "A rose is a thing."],  # "thing" stands in no other set, and never varies
        ["They are new.", "They are old."],
    )
    assert found == [
        [["Ann"], ["Ann"], ["Eve"], ["Eve"]],
        [["Bob"], ["Bob"], ["Jim"], ["Jim"]],
        [["doll"], ["rose"]],
        [["new"], ["old"]],
    ]


def test_pronouns_that_follow_the_names_are_not_what_varies() -> None:
    male, female = (
        [f"{name} leads; {she} was praised, and {her} team is large." for name in names]
        for names, she, her in ((("John", "Paul"), "he", "his"), (("Lisa", "Kate"), "she", "her"))
    )
    found = words(male, female, ["The boss is kind.", "The boss is calm."], ["The boss is rude.", "The boss is mean."])
    assert found[:2] == [[["John"], ["Paul"]], [["Lisa"], ["Kate"]]]


def test_several_words_that_vary_alike_are_all_taken() -> None:
    found = words(
        ["This is a woman of color.", "This is a white woman."],
        ["This is a man of color.", "This is a white man."],
        ["It is shiny and new.", "It is fine."],
        ["It is bad.", "It is poor."],
    )
    assert found[0] == [["woman"], ["woman"]]
    assert found[2] == [["shiny", "and", "new"], ["fine"]]


def test_a_text_without_a_word_of_its_own_is_about_all_its_words() -> None:
    assert words(["a b", "c"], ["b a", "d"], ["e", "f"], ["g", "!"])[0] == [["a", "b"], ["c"]]
    assert infer_target_words([["a", "b"], ["c", "d"], ["e", "f"], ["g", "!?"]])[3] == [((0, 1),), ((0, 2),)]
