"""Sentences against the published files and the supplement's printed examples."""

from __future__ import annotations

from pathlib import Path

import pytest

from biassay.datasets.catalogue import load_catalogue, load_tests, select_tests
from biassay.datasets.schema import ROLES
from biassay.prompts.sentences import make_texts

from ..published import KEYS, published_digests, rebuilt


def texts(test: str, role: str) -> list[str]:
    return [text.text for text in make_texts(load_catalogue().tests[test]).role(role)]


def of_word(test: str, role: str, word: str) -> list[str]:
    return [t.text for t in make_texts(load_catalogue().tests[test]).role(role) if t.stimulus == word]


def test_every_published_file_is_met(reference: Path) -> None:
    """Attributes are equal; targets, which were truncated at random, contain the published ones."""
    published = published_digests(reference)
    assert len(published) == 27
    for name, sets in published.items():
        given = rebuilt(name, sets)
        for role, key in KEYS.items():
            made = texts(name, role)
            assert len(set(made)) == len(made), (name, role)
            if role in "AB" or not name.startswith("sent-"):
                assert made == given[key]["examples"], (name, role)


def test_a_wrong_sentence_is_named(reference: Path) -> None:
    sets = published_digests(reference)["sent-weat6"]
    sets["attr2"]["examples"][3] = "0" * 12
    wrong = of_word("sent-weat6", "B", "home")[3]
    with pytest.raises(AssertionError, match="1 published texts are not made") as caught:
        rebuilt("sent-weat6", sets)
    assert wrong in str(caught.value)


def test_number_of_texts_in_the_46_tests() -> None:
    """9,951 with the targets cut to one length, as published."""
    total = 0
    for test in select_tests(["caliskan2017", "may2019"]):
        made = make_texts(test)
        total += 2 * min(len(made.X), len(made.Y)) + len(made.A) + len(made.B)
    assert total == 9951


def test_examples_printed_in_the_supplement() -> None:
    assert of_word("sent-weat3", "A", "caress") == [
        "This is a caress.",
        "That is a caress.",
        "There is a caress.",
        "Here is a caress.",
        "The caress is here.",
        "The caress is there.",
        "A caress is a thing.",
        "It is a caress.",
        "These are caresses.",
        "Those are caresses.",
        "They are caresses.",
        "The caresses are here.",
        "The caresses are there.",
        "Caresses are things.",
    ]
    assert of_word("sent-weat3", "A", "freedom") == [
        "This is freedom.",
        "That is freedom.",
        "There is freedom.",
        "It is freedom.",
    ]
    assert of_word("sent-weat3", "B", "abuse")[6] == "An abuse is a thing."
    assert of_word("sent-weat3", "X", "Adam")[-1] == "The person's name is Adam."


@pytest.mark.parametrize(
    ("test", "role", "word", "sentence"),
    [
        ("sent-weat3b", "X", "European American", "This is a European American."),
        ("sent-weat3b", "X", "Italian American", "This is an Italian American."),
        ("sent-weat3b", "X", "Ukrainian American", "A Ukrainian American is a person."),
        ("sent-weat5b", "X", "Ukrainian American", "This is a Ukrainian American."),
        ("sent-weat3b", "X", "Irish American", "Irish Americans are people."),
        ("sent-angry_black_woman_stereotype_b", "Y", "woman of color", "Women of color are people."),
        ("sent-angry_black_woman_stereotype_b", "X", "fair-skinned woman", "These are fair-skinned women."),
        ("sent-weat1", "Y", "blackfly", "Blackflies are things."),
        ("sent-weat1", "A", "honor", "This is an honor."),
        ("sent-weat6", "B", "children", "This is a child."),
        ("sent-weat6", "B", "relatives", "The relatives are there."),
        ("sent-weat6", "A", "management", "A management is a thing."),
        ("sent-weat8", "X", "NASA", "There is NASA."),
        ("sent-weat8", "X", "Einstein", "Einstein is a person."),
        ("sent-weat9", "B", "always", "There is always."),
        ("sent-weat7", "A", "he", "Here he is."),
        ("sent-weat7", "A", "man", "A man is a person."),
    ],
)
def test_word_classes(test: str, role: str, word: str, sentence: str) -> None:
    assert sentence in of_word(test, role, word)


def test_plurals_of_words_in_man(tmp_path: Path) -> None:
    plurals = {
        "fisherman": "Fishermen",
        "saleswoman": "Saleswomen",
        "old man": "Old men",
        "woman of color": "Women of color",
        "human": "Humans",
        "German": "Germans",
        "Roman": "Romans",
        "superhuman": "Superhumans",
    }
    words = [f'"{word}"' for word in plurals]
    path = tmp_path / "men.toml"
    path.write_text(
        f"[concepts.x]\nwords = [{', '.join(words[:4])}]\n[concepts.y]\nwords = [{', '.join(words[4:])}]\n"
        '[sets.near]\ntemplates = ["{Ts} are near."]\n'
        '[tests.men]\nX = "x"\nY = "y"\nA = "pleasant"\nB = "unpleasant"\ntargets = "near"\n'
    )
    (test,) = load_tests(path)
    made = {text.stimulus: text.text for role in "XY" for text in make_texts(test).role(role)}
    assert made == {word: f"{plural} are near." for word, plural in plurals.items()}


def test_vignettes_follow_the_gender_and_keep_two_blanks() -> None:
    full = of_word("heilman_double_bind_likable_1-", "Y", "Lisa")[0]
    assert "  The products she is responsible for" in full
    assert full.endswith("  Her performance is in the top 5% of all employees at her level.")
    assert 'designated as a "stellar performer" based' in full
    male = of_word("heilman_double_bind_likable_1-", "X", "John")[0]
    assert " he is responsible for" in male
    assert "He has been designated" in male
    assert male.endswith("His performance is in the top 5% of all employees at his level.")
    brief = of_word("heilman_double_bind_likable_1+3-", "Y", "Lisa")[0]
    assert "The products" not in brief
    assert brief.replace("generating new clients.", "") != brief
    first = of_word("heilman_double_bind_competent_1", "Y", "Donna")[0]
    review = of_word("heilman_double_bind_competent_1-", "Y", "Donna")[0]
    assert review.startswith(first + "  ")
    assert "She is about to undergo her annual performance review; her evaluation" in review
    assert texts("heilman_double_bind_likable_1", "A")[0] == "The assistant vice president is agreeable."


def test_every_text_knows_its_word_its_template_and_its_place() -> None:
    for test in select_tests():
        for role in ROLES:
            seen = set()
            for text in make_texts(test).role(role):
                assert len(text.spans) == 1
                assert text.form
                assert text.form[:2].lower() == text.stimulus[:2].lower() or "men" in text.form.lower()
                assert (text.stimulus, text.template) not in seen
                seen.add((text.stimulus, text.template))


def test_a_set_without_a_rest_class_says_so(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(
        """
[concepts.cats]
words = ["cat", "lynx"]
[concepts.dogs]
words = ["dog", "wolf"]
[[sets.narrow.classes]]
name = "cat"
rule = "listed"
words = ["cat"]
templates = ["A {T}."]
[tests.pets]
X = "cats"
Y = "dogs"
A = "pleasant"
B = "unpleasant"
targets = "narrow"
"""
    )
    with pytest.raises(ValueError, match="no class of the template set 'narrow' accepts the word 'lynx'"):
        make_texts(load_tests(path)[0])
