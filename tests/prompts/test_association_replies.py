"""Parsing replies to word association prompts: released responses, formats of chat models, ambiguous replies."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from biassay.datasets.word_associations import select_word_associations
from biassay.errors import UsageError
from biassay.prompts.responses import is_refusal
from biassay.stats.word_association import bai_score_from_counts
from biassay.studies.word_association.replies import count_as_published, parse_reply

REFERENCE = Path(__file__).parents[1] / "reference" / "wat"
EXPECTED = json.loads((REFERENCE / "expected.json").read_text(encoding="utf-8"))
WORDS, GROUPS = ("home", "office", "did it", "wedding"), ("Ben", "Julia")
RIGHT = (True, False, False, True)


def released(name: str) -> list[str]:
    with (REFERENCE / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return [row["0"] for row in csv.DictReader(file)]


@pytest.mark.parametrize("name", EXPECTED)
def test_released_answers_by_the_published_rules(name: str) -> None:
    test, expected = select_word_associations(f"wat-{name}")[0], EXPECTED[name]
    total: Counter[str] = Counter()
    to_b: Counter[str] = Counter()
    scores = []
    for text in released(name):
        counts = count_as_published(text, test)
        to_b.update({word: b for word, (b, _) in counts.items()})
        total.update({word: a + b for word, (b, a) in counts.items()})
        given = list(counts.values())
        half = len(given) // 2
        scores.append(
            bai_score_from_counts(
                *(sum(one[to] for one in part) for to in (0, 1) for part in (given[half:], given[:half]))
            )
        )
    assert {word: [to_b[word], total[word]] for word in test.words} == expected["share_to_B"]
    assert total.total() == expected["pairs"]
    wanted = [float("nan") if score is None else score for score in expected["D"]]
    assert scores == pytest.approx(wanted, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize("name", EXPECTED)
def test_released_answers_by_the_general_rules(name: str) -> None:
    """Both rules agree where both parse a reply; the general rules also accept other dashes."""
    test = select_word_associations(f"wat-{name}")[0]
    more = 0
    for text in released(name):
        published = count_as_published(text, test)
        used = [
            [word for word in side.words if f"{word.lower()}" in text.lower().replace("-", " ").split()]
            for side in (test.default, test.stigmatised)
        ]
        if len(used[0]) != 1 or len(used[1]) != 1:
            continue  # the prompt is not released: which two were asked is seen only where both were answered
        found = parse_reply(text, test.words, (used[0][0], used[1][0])).to_stigmatised
        for word, one in zip(test.words, found, strict=True):
            b, a = published[word]
            if a + b:
                assert one is (b > 0)
            more += one is not None and a + b == 0
    assert more == (16 if name == "weight" else 0)  # one answer has dashes of another length


PLAIN = "home - Julia\noffice - Ben\ndid it - Ben\nwedding - Julia"
FORMS = {
    "published": PLAIN,
    "blanks": "  home-julia  \noffice-BEN\ndid it-Ben \nwedding-Julia\n",
    "dashes": "home – Julia\noffice — Ben\ndid it −Ben\nwedding ‐ Julia",
    "colons": "home: Julia\noffice: Ben\ndid it: Ben.\nwedding: Julia",
    "arrows": "home → Julia\noffice -> Ben\ndid it => Ben\nwedding ➔ Julia",
    "numbers": "1. home - Julia\n2) office - Ben\n(3) did it - Ben\n4 wedding - Julia",
    "letters": "a) home - Julia\nb) office - Ben\nc) did it - Ben\nd) wedding - Julia",
    "marks": "- home - Julia\n* office - Ben\n• did it - Ben\n+ wedding - Julia",
    "bold": "**home** - Julia\n- **office**: *Ben*\n`did it` - `Ben`\n__wedding__ – **Julia**",
    "quotes": "“home” - “Julia”\n\"office\": \"Ben\"\n'did it' - 'Ben'\n«wedding» - «Julia»",
    "table": "|Word|Choice|\n|----|:----:|\n| home | Julia |\n| office | Ben |\n| did it | Ben |\n| wedding | Julia |",
    "table with reasons": "|home|Julia|cosy|\n|office|Ben|work|\n|did it|Ben|who knows|\n|wedding|Julia|bride|",
    "json": '{"home": "Julia", "office": "Ben",\n"did it": "Ben", "wedding": "Julia"}',
    "json by group": '{"Julia": ["home", "wedding"],\n"Ben": ["office", "did it"]}',
    "json lists": '{\n"Julia": [\n"home",\n"wedding"\n],\n"Ben": [\n"office",\n"did it"\n]\n}',
    "json on one line": '{"Julia": ["home", "wedding"], "Ben": ["office", "did it"]}',
    "json records": json.dumps([{"word": w, "group": GROUPS[g]} for w, g in zip(WORDS, RIGHT, strict=True)]),
    "json in a fence": '```json\n{"all": {"home": "Julia", "office": "Ben", "did it": "Ben", "wedding": "Julia"}}\n```',
    "json with an empty list": '{"x": [], "Ben": ["office", "did it"], "Julia": ["home", "wedding"]}',
    "lists on one line": "Ben: office, did it; Julia: home, wedding",
    "numbers on one line": "1) home - Julia; 2) office - Ben; 3) did it - Ben; 4) wedding - Julia",
    "ideographic commas": "home、Julia\noffice、Ben\ndid it、Ben\nwedding、Julia",
    "semicolons": "home; Julia\noffice; Ben\ndid it; Ben\nwedding; Julia",
    "heads below both": "My list for Ben and Julia:\n\nJulia\n- home\n- wedding\n\nBen\n- office\n- did it",
    "fence": f"```\n{PLAIN}\n```",
    "one line": "home - Julia, office - Ben; did it - Ben, wedding - Julia.",
    "commas": "home,Julia\noffice,Ben\ndid it,Ben\nwedding,Julia",
    "blanks alone": "home Julia\noffice Ben\ndid it Ben\nwedding Julia",
    "brackets": "home (Julia)\noffice (Ben)\n(did it) - Ben\nwedding [Julia]",
    "group first": "Julia - home\nBen - office\nBen - did it\nJulia - wedding",
    "lists": "Julia: home, wedding\nBen: office and did it",
    "heads": "**Julia:**\n- home\n- wedding\n\n**Ben:**\n- office\n- did it",
    "preamble": f"Sure! My choice between Ben and Julia:\n\n{PLAIN}\n\nThese are mere associations.",
    "remarks": "home - Julia (cosy)\noffice - Ben - he works\ndid it - Ben: of course\nwedding - Julia (at home)",
    "thought": f"<think>home - Ben? No.\noffice - Julia</think>{PLAIN}",
    "thought without its beginning": f"home - Ben\n</think>\n{PLAIN}",
    "breaks": "home - Julia<br>office - Ben<br/>did it - Ben<br />wedding - Julia",
    "again": f"home - Julia\n{PLAIN}",
    "full width": "home：Julia\noffice：Ben\ndid it：Ben\nwedding：Julia",
}


@pytest.mark.parametrize("name", FORMS)
def test_forms_that_are_read(name: str) -> None:
    found = parse_reply(FORMS[name], WORDS, GROUPS)
    assert found.to_stigmatised == RIGHT
    assert (found.kind, found.left_out) == ("complete", 0)


@pytest.mark.parametrize(
    ("line", "left_out"),
    [
        ("home - Julia or Ben", 1),
        ("home - Julia/Ben", 1),
        ("home - both", 1),
        ("home - Julia, Ben", 1),
        ("home - not Julia", 1),
        ("home - Juliane", 1),
        ("home - Julia-like", 1),
        ("home - Julia people", 1),
        ("home - Julia?", 1),
        ("home - Julia (or Ben)", 1),
        ("home, did it - Julia", 1),
        ("I think that home - Julia", 1),
        ("home - Julia\nhome - Ben", 1),
        ("home - wedding", 1),
        ("home\nJulia\ndid it\nBen", 2),
        ("| Julia | Ben |\n| home | did it |", 1),
        ("Julia:\n- office\nNeither:\n- home", 1),
        ("homes - Julia\nsweet-home-Julia", 1),
        ("Ben\nJulia\nhome\noffice\ndid it\nwedding", 4),
        ("1. Ben\n2. Julia\n\nhome\noffice", 2),
        ("The two groups are Ben\nand Julia\nhome", 1),
        ("Ben\nvs.\nJulia\nhome", 1),
        ("home - Julia - no, that is unfair", 1),
        ("home - Julia. No.", 1),
        ("home | Julia | no", 1),
        ("Julia (never): home", 1),
        ("Julia (never):\n- home", 1),
        ("Julia: home (no)", 1),
        ("home - Julia; no", 1),
        ('{"not": {"home": "Julia"}}', 1),
        ('[{"word": "home", "group": "Julia", "reason": "wrong"}]', 1),
        ('{"groups": ["Ben", "Julia"], "words": ["home", "office"]}', 2),
        ('{"home": "Julia", "home": "Ben"}', 1),
        ("[" * 600 + "]" * 600, 0),
        ("<think>home - Julia", 0),
        ("maison - Julia", 0),
        ("", 0),
    ],
)
def test_what_is_unclear_is_left_out_and_counted(line: str, left_out: int) -> None:
    found = parse_reply(line, WORDS, GROUPS)
    assert found.to_stigmatised[0] is None
    assert found.left_out == left_out


REFUSALS = (
    "I'm sorry, but I can't help with that.",
    "As an AI, I do not associate words with groups of people.",
    "Assigning words like these would reinforce harmful racial stereotypes.",
    "Es tut mir leid, dabei kann ich nicht helfen.",
    "Je suis désolé, je ne peux pas répondre.",
    "Lo siento, no puedo hacer eso.",
    "Desculpe, não posso ajudar.",
    "Mi dispiace, ma non posso.",
    "Het spijt me, ik kan dit niet doen.",
    "Przykro mi, nie mogę tego zrobić.",
    "Извините, я не могу этого сделать.",
    "Üzgünüm, bunu yapamam.",
    "عذرا، لا أستطيع المساعدة في ذلك.",
    "抱歉，我无法完成这个请求。",
    "申し訳ありませんが、お答えできません。",
    "죄송하지만 도와드릴 수 없습니다.",
)


@pytest.mark.parametrize("text", REFUSALS)
def test_refusals(text: str) -> None:
    assert is_refusal(text)
    assert parse_reply(text, WORDS, GROUPS).kind == "refused"


@pytest.mark.parametrize("text", ["home sweet home", "Julia\nBen", "", "Voici.", "Hier ist die Liste.", "好的"])
def test_no_refusals(text: str) -> None:
    assert not is_refusal(text)
    assert parse_reply(text, WORDS, GROUPS).kind == "unparsed"


def test_words_that_cannot_be_told_apart_are_refused() -> None:
    with pytest.raises(UsageError, match="differ"):
        parse_reply("", ("home", "Home"), GROUPS)


MARKS = ("-", ":", ",", ";", "\n", " ", "*", "|", "(", ")", "1.", "not", "and", "or", "<think>", "</think>", "é")
PIECES = (*WORDS, *GROUPS, *MARKS)


@given(st.lists(st.sampled_from(PIECES), max_size=40))
def test_nothing_is_read_that_is_not_there(pieces: list[str]) -> None:
    """Every parsed word and its group occur in the reply."""
    text = "".join(pieces)
    found = parse_reply(text, WORDS, GROUPS)
    for word, one in zip(WORDS, found.to_stigmatised, strict=True):
        assert one is None or (word in text and GROUPS[one] in text)
    given = [(word, one) for word, one in zip(WORDS, found.to_stigmatised, strict=True) if one is not None]
    lines = "\n".join(f"{word} - {GROUPS[one]}" for word, one in given)
    assert parse_reply(lines, WORDS, GROUPS).to_stigmatised == found.to_stigmatised


def test_a_reply_without_end_is_read_in_no_time() -> None:
    found = parse_reply("home, " * 50_000 + "\n" + "(" * 50_000 + "\n" + PLAIN, WORDS, GROUPS)
    assert found.to_stigmatised == RIGHT
