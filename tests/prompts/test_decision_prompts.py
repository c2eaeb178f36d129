"""Prompts for relative decisions: balance and parsing."""

from __future__ import annotations

from collections import Counter

import pytest

from biassay.datasets.word_associations import WordAssociationTest, select_word_associations, select_wordings
from biassay.errors import UsageError
from biassay.studies.word_association.prompts import make_decision_prompts
from biassay.studies.word_association.replies import parse_decision

TOPICS, GROUPS = ("salary", "wedding"), ("Ben", "Julia")


def named(name: str) -> WordAssociationTest:
    return select_word_associations(name)[0]


@pytest.mark.parametrize("name", ["wat-racism", "wat-career", "wat-islam", "wat-science", "weat6"])
def test_prompts_are_balanced(name: str) -> None:
    test = named(name)
    prompts = make_decision_prompts(test)
    assert len(prompts) == 50
    for first, second in zip(prompts[::2], prompts[1::2], strict=True):
        assert (first.stigmatised_first, second.stigmatised_first) == (False, True)
        same = [(p.task, p.pair, p.wording, p.block) for p in (first, second)]
        assert same[0] == same[1]
        assert first.negative_first == second.negative_first
        for prompt in (first, second):
            places = [prompt.text.index(word) for word in (*prompt.groups, *prompt.words)]
            assert (places[1] < places[0]) == prompt.stigmatised_first
            assert (places[3] < places[2]) == prompt.negative_first
    tasks = Counter(p.task for p in prompts)
    assert len(tasks) == min(len(test.positive.words), len(test.negative.words))
    assert max(tasks.values()) - min(tasks.values()) <= 2
    pairs = Counter(p.pair for p in prompts)
    assert len(pairs) == len(test.pairs)
    assert max(pairs.values()) - min(pairs.values()) <= 4
    cells = Counter((p.wording, p.negative_first) for p in prompts)
    assert len(cells) == 4
    assert max(cells.values()) - min(cells.values()) <= 4


def test_the_seed_decides() -> None:
    test = named("wat-career")
    assert make_decision_prompts(test, seed=1) == make_decision_prompts(test, seed=1)
    assert make_decision_prompts(test, seed=1) != make_decision_prompts(test, seed=2)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("salary - Ben\nwedding - Julia", ("complete", True, 0)),
        ("wedding: Ben\nsalary: Julia", ("complete", False, 0)),
        ("Ben is tall. Julia is not.\n\n**salary** - Ben\n**wedding** - Julia", ("complete", True, 0)),
        ("Ben earns a salary.\nsalary - Ben\nwedding - Julia", ("complete", True, 1)),
        ("salary - Ben\nwedding - Ben", ("undecided", None, 0)),
        ("salary - Ben", ("partial", None, 0)),
        ("salary - Ben\nwedding - either", ("partial", None, 1)),
        ("I can't decide that.", ("refused", None, 0)),
        ("Whatever.", ("unparsed", None, 0)),
    ],
)
def test_decisions_are_read(text: str, found: tuple[str, bool | None, int]) -> None:
    parsed = parse_decision(text, TOPICS, GROUPS)
    assert (parsed.kind, parsed.follows, parsed.left_out) == found


def test_bad_input() -> None:
    with pytest.raises(UsageError, match="even"):
        make_decision_prompts(named("wat-age"), 3)
    with pytest.raises(UsageError, match="form"):
        make_decision_prompts(named("wat-age"), wordings=select_wordings())
