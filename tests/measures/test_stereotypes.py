"""Questionnaires: every question once, and scores as a loop over groups, templates and adjectives gives them."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.encoders.tiny_models import save_tiny

from biassay.encoders.lm import LanguageModel, Question
from biassay.encoders.registry import open_as
from biassay.measures.stereotypes import Item, Prior, Questionnaire, pair_scores_of
from biassay.measures.word_associations import MEASURES, VARIANTS
from biassay.stimuli.abc import Abc, groups_named, load_abc, templates_named
from biassay.texts.prompts import prior_prompt, prompt_of

OWN = """
[dimensions]
wit = "Wit"

[pairs.loves-loveing]
dimension = "wit"
left = "loves"
right = "loveing"
left_adjectives = ["loves", "bad", "zebra"]
right_adjectives = ["loveing", "good", "wars"]

[pairs.war-wars]
dimension = "wit"
left = "war"
right = "wars"
right_adjectives = ["wars", "warsing"]

[pairs.zebra-joy]
dimension = "wit"
left = "zebra"
right = "joy"

[domains]
place = "Place"

[groups]
homely = { domain = "place", singular = "home person", plural = "home persons", article = "a" }
office = { domain = "place", singular = "office", plural = "offices", modifier = "office" }
ant = { domain = "place", singular = "ant", plural = "ants" }

[templates]
own-one = { kind = "mine", number = "singular", text = "{A group} there is {trait}." }
own-many = { kind = "mine", number = "plural", text = "They are {group}, they are {trait}!" }
own-first = { kind = "mine", number = "plural", text = "The {trait} person is {group}." }
own-behind = { kind = "mine", number = "plural", text = "{Group} are {trait} there." }
"""
OWN_PAIRS = ("loves-loveing", "war-wars", "zebra-joy")


class Fake:
    """A model that cuts words into pieces of two letters, does not know the letter z, and answers by hashing."""

    def __init__(self, kind: Literal["masked", "causal"] = "masked") -> None:
        self.kind: Literal["masked", "causal"] = kind
        self.number: dict[str, int] = {}

    def _id(self, piece: str) -> int:
        return self.number.setdefault(piece, len(self.number))

    def pieces(self, text: str, word: str) -> tuple[int, ...] | None:
        assert "{trait}" in text
        assert "{mask}" not in text
        if "z" in word:
            return None
        return tuple(self._id(word[i : i + 2]) for i in range(0, len(word), 2))

    def unknown_tokens(self, text: str) -> int:  # noqa: ARG002
        return 0

    def questions(self, text: str, pieces: Sequence[int], word: str) -> tuple[Question, ...]:
        assert word
        length = len(pieces) if self.kind == "masked" else 0
        start = (self._id(f"text {text}"), length)
        return tuple(Question((*start, *pieces[:i]), i + 1, piece) for i, piece in enumerate(pieces))

    def answers(self, questions: Sequence[Question]) -> np.ndarray:
        return np.array([self._answer(question) for question in questions]).reshape(len(questions), 4)

    def _answer(self, question: Question) -> list[float]:
        numbers = hashlib.blake2b(repr(question).encode(), digest_size=4).digest()
        log_p, initial, continuing, distance = (n / 256 for n in numbers)
        return [-1 - 9 * log_p, -initial, -continuing, 0.0 if distance < 0.04 else 0.9 * distance]


class Alone:
    """A language model that is given every question by itself."""

    def __init__(self, model: LanguageModel) -> None:
        self.pieces, self.questions, self._model = model.pieces, model.questions, model
        self._known: dict[Question, np.ndarray] = {}

    def answers(self, questions: Sequence[Question]) -> np.ndarray:
        for question in questions:
            if question not in self._known:
                self._known[question] = self._model.answers([question])[0]
        return np.array([self._known[question] for question in questions])


@pytest.fixture(scope="module")
def abc(tmp_path_factory: pytest.TempPathFactory) -> Abc:
    path = tmp_path_factory.mktemp("abc") / "own.toml"
    path.write_text(OWN)
    return load_abc([path])


@pytest.fixture(autouse=True)
def one_thread(request: pytest.FixtureRequest) -> Iterator[None]:
    """Tiny models are slowed by threads that wait for each other, thirtyfold on a busy machine."""
    if request.node.get_closest_marker("extras") is None:
        yield
        return
    torch: Any = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module", params=["bert", "gpt2"])
def tiny(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    return open_as(f"hf:{save_tiny(request.param, tmp_path_factory.mktemp('m') / 'm', head=True)}", "blanks")


def difference(own: np.ndarray, prior: np.ndarray, measure: str, variant: str, from_piece: int) -> float:
    """The score of one word from its answers (pieces, 4) in two texts; SeT of the paper goes by its later pieces."""
    if measure == "ilps":
        return float(own[0, 0] - prior[0, 0])
    if measure == "ilps-star":
        masses = [rows[0, 1] + rows[1:, 2].sum() if variant == "cao2022-code" else 0.0 for rows in (own, prior)]
        return float(own[:, 0].sum() - masses[0] - prior[:, 0].sum() + masses[1])
    if variant == "cao2022-code":
        largest = [rows[:, 3].max() for rows in (own, prior)]
        return float(np.log(1 - largest[0]) - np.log(1 - largest[1])) if max(largest) < 1 else math.nan
    counted = [(a, b) for a, b in zip(own[from_piece:, 3], prior[from_piece:, 3], strict=True)]
    counted = [(a, b) for a, b in counted if b > 0]  # on top in the prior's text: the other pieces decide
    if not counted or any(a == 0 for a, _ in counted):
        return math.nan
    return max(float(-2 * np.log(a / b)) for a, b in counted)


def first_decisive(model: Any, text: str, item: Item, adjectives: Sequence[Item]) -> int:
    """How many pieces a word shares at most with a word on the other side; none, if that is all of it."""
    own = model.pieces(text, item.adjective)
    shared = 0
    for other in adjectives:
        pieces = model.pieces(text, other.adjective)
        if other.pair == item.pair and other.right != item.right and pieces is not None:
            n = 0
            while n < min(len(own), len(pieces)) and own[n] == pieces[n]:
                n += 1
            shared = max(shared, n)
    return 0 if shared == len(own) else shared


def looped(
    model: Any, abc: Abc, sheet: Questionnaire, prior: Prior, measure: str, variant: str
) -> tuple[np.ndarray, set[Question]]:
    """Scores (groups, templates, items), the model being asked for one word at a time; and what it was asked."""
    scores = np.full((len(sheet.groups), len(sheet.templates), len(sheet.items)), np.nan)
    asked: set[Question] = set()
    for t, template in enumerate(sheet.templates):
        plain = prior_prompt(template, abc, "word").text
        for i, item in enumerate(sheet.items):
            if model.pieces(plain, item.adjective) is None:
                continue
            start = first_decisive(model, plain, item, sheet.items)
            texts = [prior_prompt(template, abc, prior).text]
            texts += [prompt_of(template, group).text for group in sheet.groups]
            answers = []
            for text in texts:
                questions = model.questions(text, model.pieces(plain, item.adjective), item.adjective)
                asked |= set(questions)
                answers.append(np.asarray(model.answers(questions), dtype=np.float64))
            for g, own in enumerate(answers[1:]):
                scores[g, t, i] = difference(own, answers[0], measure, variant, start)
    return scores, asked


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize(("kind", "prior"), [("masked", "mask"), ("masked", "word"), ("causal", "word")])
def test_scores_are_those_of_a_loop(abc: Abc, kind: Any, prior: Prior, measure: Any, variant: Any) -> None:
    model = Fake(kind)
    groups, templates = groups_named(abc, ["ant", "elderly"]), templates_named(abc, ["mine"])
    sheet = Questionnaire(model, abc, groups, templates, prior=prior, all_adjectives=True)
    found = sheet.scores(model.answers(sheet.questions), measure, variant)
    expected, _ = looped(model, abc, sheet, prior, measure, variant)
    assert found.measure == measure
    np.testing.assert_allclose(found.scores, expected, atol=1e-9)
    unknown = ["z" in item.adjective for item in sheet.items]
    assert np.isnan(found.scores[:, :, unknown]).all()
    assert measure == "set" or not np.isnan(found.scores).all(axis=(0, 1))[~np.array(unknown)].any()


@pytest.mark.slow
@pytest.mark.parametrize("all_adjectives", [False, True])
@pytest.mark.parametrize("kind", ["masked", "causal"])
def test_every_question_is_asked_once_and_none_is_left_out(abc: Abc, kind: Any, all_adjectives: bool) -> None:
    model = Fake(kind)
    sheet = Questionnaire(model, abc, abc.groups[:2], abc.templates[::4], prior="word", all_adjectives=all_adjectives)
    _, asked = looped(model, abc, sheet, "word", "ilps", "paper")
    assert len(sheet.questions) == len(set(sheet.questions))
    assert set(sheet.questions) == asked


def test_items_are_the_first_adjectives_or_all(abc: Abc) -> None:
    model, groups = Fake(), abc.groups[:1]
    one = Questionnaire(model, abc, groups, abc.templates[:1], prior="mask").items
    every = Questionnaire(model, abc, groups, abc.templates[:1], prior="mask", all_adjectives=True).items
    expected = []
    for place, pair in enumerate(abc.pairs):
        expected += [(place, False, word) for word in pair.left_adjectives]
        expected += [(place, True, word) for word in pair.right_adjectives]
    assert [(item.pair, item.right, item.adjective) for item in every] == expected
    heads = [word for pair in abc.pairs for word in (pair.left_adjectives[0], pair.right_adjectives[0])]
    assert [item.adjective for item in one] == heads


def test_templates_with_words_behind_the_trait_are_skipped_by_causal_models_only(abc: Abc) -> None:
    skipped = ("the-people-are", "more-likely", "more", "own-first", "own-behind")
    causal, masked = (
        Questionnaire(Fake(kind), abc, abc.groups[:2], abc.templates, prior="word")  # type: ignore[arg-type]
        for kind in ("causal", "masked")
    )
    assert causal.skipped == skipped
    assert [t.name for t in causal.templates] == [t.name for t in abc.templates if t.name not in skipped]
    assert masked.skipped == ()
    assert masked.templates == abc.templates
    answers = Fake("causal").answers(causal.questions)
    assert causal.scores(answers, "ilps", "paper").scores.shape == (2, len(causal.templates), len(causal.items))


def test_unknown_adjectives_are_named_and_no_part_of_the_median(abc: Abc) -> None:
    model, template = Fake(), templates_named(abc, ["own-one"])
    sheet = Questionnaire(model, abc, groups_named(abc, ["place"]), template, prior="mask", all_adjectives=True)
    assert sheet.unknown == ("zealous", "zebra")
    by_item = sheet.scores(model.answers(sheet.questions), "ilps", "paper").scores
    found = pair_scores_of(by_item, sheet.items, len(abc.pairs))
    pair = abc.pairs.index(abc.pair("unassertive-competitive"))
    left, right = (
        [by_item[:, 0, _at(sheet, pair, word)] for word in words]
        for words in (("unassertive", "submissive", "diffident", "passive"), ("competitive", "ambitious", "driven"))
    )
    np.testing.assert_allclose(found[:, 0, pair], np.median(right, axis=0) - np.median(left, axis=0), atol=1e-12)
    one = Questionnaire(model, abc, groups_named(abc, ["place"]), template, prior="mask")
    assert one.unknown == ("zebra",)  # the others are not asked for


@pytest.mark.extras
def test_adjectives_of_unknown_tokens_on_a_tiny_model(abc: Abc, tmp_path: Path) -> None:
    """Of all 16 shipped pairs the tiny vocabulary knows next to nothing; of its own pair it lacks the zebra."""
    model = open_as(f"hf:{save_tiny('bert', tmp_path / 'm', head=True)}", "blanks")
    groups, templates = groups_named(abc, ["place"]), templates_named(abc, ["mine"])
    sheet = Questionnaire(model, abc, groups, templates, prior="mask", all_adjectives=True)
    known = {"loves", "loveing", "bad", "good", "war", "wars", "warsing", "joy"}
    assert set(sheet.unknown) == {item.adjective for item in sheet.items} - known
    assert list(sheet.unknown) == sorted(sheet.unknown)
    answers = model.answers(sheet.questions)
    by_item = sheet.scores(answers, "ilps-star", "paper").scores
    found = pair_scores_of(by_item, sheet.items, len(abc.pairs))
    of = {item.adjective: by_item[:, :, i] for i, item in enumerate(sheet.items) if item.pair >= 16}
    place = {pair.name: i for i, pair in enumerate(abc.pairs)}
    right = np.median([of["loveing"], of["good"], by_item[:, :, _at(sheet, place["loves-loveing"], "wars")]], axis=0)
    left = (of["loves"] + of["bad"]) / 2
    np.testing.assert_allclose(found[:, :, place["loves-loveing"]], right - left, atol=1e-9)
    assert np.isnan(found[:, :, place["zebra-joy"]]).all()  # a side without a known word
    assert np.isnan(found[:, :, :16]).all()


def _at(sheet: Questionnaire, pair: int, adjective: str) -> int:
    return next(i for i, item in enumerate(sheet.items) if (item.pair, item.adjective) == (pair, adjective))


@pytest.mark.extras
def test_tiny_models_asked_one_by_one(abc: Abc, tiny: LanguageModel) -> None:
    """Tolerance: a float32 pass in other company differs in the sixth digit, and logs of small distances more."""
    prior: Prior = "mask" if tiny.has_mask else "word"
    own = replace(abc, pairs=tuple(pair for pair in abc.pairs if pair.name in OWN_PAIRS))
    sheet = Questionnaire(tiny, own, groups_named(own, ["place"]), templates_named(own, ["mine"]), prior=prior)
    answers, alone = tiny.answers(sheet.questions), Alone(tiny)
    for measure in MEASURES:
        for variant in VARIANTS:
            found = sheet.scores(answers, measure, variant).scores
            expected, asked = looped(alone, own, sheet, prior, measure, variant)
            assert set(sheet.questions) == asked
            np.testing.assert_allclose(found, expected, atol=2e-4)
            known = [i for i, item in enumerate(sheet.items) if item.adjective not in sheet.unknown]
            assert variant != "paper" or not np.isnan(found[:, :, known]).any()


@pytest.mark.extras
def test_adjectives_that_share_their_first_piece_are_told_apart(abc: Abc, tmp_path: Path) -> None:
    """'loves' and 'loveing' are one question under ILPS, and two under the others; 'war' begins 'wars'."""
    model = open_as(f"hf:{save_tiny('bert', tmp_path / 'm', head=True)}", "blanks")
    groups, templates = groups_named(abc, ["place"]), templates_named(abc, ["mine"])
    sheet = Questionnaire(model, abc, groups, templates, prior="mask")
    answers, names = model.answers(sheet.questions), [pair.name for pair in abc.pairs]
    pair = {m: pair_scores_of(sheet.scores(answers, m, "paper").scores, sheet.items, len(names)) for m in MEASURES}
    love, war = names.index("loves-loveing"), names.index("war-wars")
    assert (pair["ilps"][:, :, love] == 0.0).all()
    for measure in ("ilps-star", "set"):
        assert (np.abs(pair[measure][:, :, love]) > 1e-6).all()
        assert (np.abs(pair[measure][:, :, war]) > 1e-6).all()


NUMBERS = st.one_of(st.floats(-5.0, 5.0), st.just(math.nan))


@given(st.data())
def test_a_pair_is_the_median_of_its_right_less_that_of_its_left(data: st.DataObject) -> None:
    shape = data.draw(st.tuples(st.integers(1, 2), st.integers(1, 2)))
    sides = [(pair, right) for pair in range(3) for right in (False, True)]
    items = [Item(*side, "w") for side in sides for _ in range(data.draw(st.integers(1, 4)))]
    items = data.draw(st.permutations(items))
    size = shape[0] * shape[1] * len(items)
    scores = np.array(data.draw(st.lists(NUMBERS, min_size=size, max_size=size))).reshape(*shape, len(items))
    found = pair_scores_of(scores, items, 3)
    for g, t, pair in np.ndindex(found.shape):
        medians = []
        for right in (False, True):
            values = [scores[g, t, i] for i, item in enumerate(items) if (item.pair, item.right) == (pair, right)]
            values = sorted(value for value in values if not math.isnan(value))
            n = len(values)
            medians.append((values[(n - 1) // 2] + values[n // 2]) / 2 if n else math.nan)
        assert found[g, t, pair] == pytest.approx(medians[1] - medians[0], nan_ok=True, abs=1e-12)
