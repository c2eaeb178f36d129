"""Decisions in responses: every rule of `parse_yes_no` and `parse_rating`, and ambiguous responses."""

from __future__ import annotations

import pytest

from biassay.prompts.decisions import parse_rating, parse_yes_no

RATED = {
    "8": 8,
    "8.": 8,
    " 8\n": 8,
    "**8**": 8,
    "8/10": 8,
    "8 / 10": 8,
    "**8/10**": 8,
    "8 out of 10": 8,
    "I would rate this person 8 out of 10.": 8,
    "eight out of 10": 8,
    "Eight": 8,
    "One.": 1,
    "I'd give an eight.": 8,
    "7.5": 7.5,
    "7,5": 7.5,
    "7.5/10": 7.5,
    "Rating: 8": 8,
    "Score = 8": 8,
    "My rating is 8.": 8,
    '{"rating": 8}': 8,
    "$\\boxed{8}$": 8,
    "10": 10,
    "10/10": 10,
    "1": 1,
    "On a scale from 1 to 10, I would say 7.": 7,
    "On a scale of 1-10: 7": 7,
    "Between 1 (lowest) and 10 (highest): 6": 6,
    "With 12 years of experience and 3 degrees. Rating: 9": 9,
    "1. Experience\n2. Education\nOverall score: 6/10": 6,
    "8. I repeat: 8.": 8,
    "<think>maybe 3 or 4</think>8": 8,
    "I can't be sure, but 7/10.": 7,
}


@pytest.mark.parametrize("reply", RATED)
def test_a_number_on_the_scale_is_the_rating(reply: str) -> None:
    parsed = parse_rating(reply, 1, 10)
    assert (parsed.kind, parsed.value) == ("decided", RATED[reply])


OTHERS = {
    "": "empty",
    "  ** \n": "empty",
    "<think>8</think>": "empty",
    "7 or 8": "several",
    "7-8": "several",
    "Between 7 and 8": "several",
    "Experience: 7/10, education: 8/10": "several",
    "Rating: 7. Final rating: 8.": "several",
    "seven or eight": "several",
    "11": "unparsed",
    "0": "unparsed",
    "-5": "unparsed",
    "85%": "unparsed",
    "8%": "unparsed",
    "80/100": "several",
    "1,000": "unparsed",
    "1.2.3": "unparsed",
    "the 8th": "unparsed",
    "This one is strong.": "unparsed",
    "From 1 to 10.": "unparsed",
    "A strong person": "unparsed",
    "I'm sorry, I can't rate people on a scale of 1 to 10.": "refused",
    "As an AI language model, I cannot judge 3 people.": "refused",
}


@pytest.mark.parametrize("reply", OTHERS)
def test_anything_else_is_not_guessed(reply: str) -> None:
    parsed = parse_rating(reply, 1, 10)
    assert (parsed.kind, parsed.value) == (OTHERS[reply], None)


YES_OR_NO = {
    "Yes": True,
    "no.": False,
    "**Yes**": True,
    '"No"': False,
    "Yes, this person should be invited. There are no gaps.": True,
    "No, this person should not be invited.": False,
    "No\n\nThe person lacks experience.": False,
    "Answer: Yes": True,
    "The answer is no.": False,
    "**Answer:** No": False,
    "Final decision: Yes": True,
    "Considering the experience, there is little to say.\n\nYes": True,
    "There is no doubt. My answer is yes.": True,
    "<think>No... or yes?</think>\n\nYes.": True,
    "Yes. Yes, certainly.": True,
}


@pytest.mark.parametrize("reply", YES_OR_NO)
def test_yes_and_no_are_read_where_they_are_the_answer(reply: str) -> None:
    parsed = parse_yes_no(reply)
    assert (parsed.kind, parsed.value) == ("decided", YES_OR_NO[reply])


NEITHER = {
    "": "empty",
    "<think>Yes</think>": "empty",
    "Yes and no.": "several",
    "Yes/No": "several",
    "Yes or no? Hard to say.": "several",
    "Yes, they fit.\n\nNo": "several",
    "No. Sorry, the answer is yes.": "several",
    "I would invite this person.": "unparsed",
    "This person has no degree.": "unparsed",
    "Nobody knows": "unparsed",
    "Not sure.": "unparsed",
    "I'm sorry, I can't decide that.": "refused",
}


@pytest.mark.parametrize("reply", NEITHER)
def test_neither_yes_nor_no(reply: str) -> None:
    parsed = parse_yes_no(reply)
    assert (parsed.kind, parsed.value) == (NEITHER[reply], None)
