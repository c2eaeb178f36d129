"""Questionnaires: every blank once, and scores as a loop over groups, templates and adjectives gives them."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from biassay.datasets.abc_model import AbcStimuli, load_abc, select_groups, select_templates
from biassay.models.base import BlankScores
from biassay.prompts.requests import Blank, Segments
from biassay.studies.stereotypes.cloze_items import (
    ClozeItems,
    TraitItem,
    make_cloze,
    make_prior_cloze,
    score_trait_pairs,
)
from biassay.studies.stereotypes.ilps import MEASURES, VARIANTS
from biassay.studies.stereotypes.settings import Prior

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


class Fake:
    """A model that cuts words into pieces of two letters, does not know the letter z, and answers by hashing.

    In some texts it cuts some words otherwise.
    """

    def __init__(self, otherwise: tuple[str, str] | None = None) -> None:
        self.otherwise = otherwise

    def _pieces(self, text: str, word: str) -> list[int]:
        if "z" in word:
            return []
        size = 3 if self.otherwise and self.otherwise[0] in text and self.otherwise[1] == word else 2
        parts = [word[i : i + size] for i in range(0, len(word), size)]
        return [int.from_bytes(part.encode()) for part in parts]

    def fill(self, blanks: Sequence[Blank]) -> list[BlankScores]:
        return [self._filled(blank) for blank in blanks]

    def _filled(self, blank: Blank) -> BlankScores:
        text = "|".join(blank.halves("[MASK]"))
        pieces = [self._pieces(text, word) for word in blank.words]
        columns = [_answer(f"{text} {word[: i + 1]}") for word in pieces for i in range(len(word))]
        flat = np.array([piece for word in pieces for piece in word], dtype=np.int32)
        lengths = np.array([len(word) for word in pieces], dtype=np.int32)
        return BlankScores(lengths, flat, np.array(columns, dtype=np.float32).reshape(-1, 4), text.count("q"), 1)


def _answer(question: str) -> list[float]:
    numbers = hashlib.blake2b(question.encode(), digest_size=4).digest()
    log_p, initial, continuing, distance = (n / 256 for n in numbers)
    return [-1 - 9 * log_p, -initial, -continuing, 0.0 if distance < 0.04 else 0.9 * distance]


@pytest.fixture(scope="module")
def abc(tmp_path_factory: pytest.TempPathFactory) -> AbcStimuli:
    path = tmp_path_factory.mktemp("abc") / "own.toml"
    path.write_text(OWN)
    return load_abc([path])


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


def first_decisive(pieces: dict[TraitItem, tuple[int, ...] | None], item: TraitItem) -> int:
    """How many pieces a word shares at most with a word on the other side; none, if that is all of it."""
    own = pieces[item] or ()
    shared = 0
    for other, theirs in pieces.items():
        if other.pair == item.pair and other.right != item.right and theirs is not None:
            n = 0
            while n < min(len(own), len(theirs)) and own[n] == theirs[n]:
                n += 1
            shared = max(shared, n)
    return 0 if shared == len(own) else shared


def looped(model: Any, abc: AbcStimuli, sheet: ClozeItems, prior: Prior, measure: str, variant: str) -> np.ndarray:
    """Scores (groups, templates, items), the model being asked for one word at a time."""
    known: dict[tuple[Segments, str], BlankScores] = {}

    def asked(segments: Segments, word: str) -> BlankScores:
        if (segments, word) not in known:
            (known[segments, word],) = model.fill([Blank(segments, (word,))])
        return known[segments, word]

    scores = np.full((len(sheet.groups), len(sheet.templates), len(sheet.items)), np.nan)
    for t, template in enumerate(sheet.templates):
        nobody = make_prior_cloze(template, abc, prior)
        pieces = {item: asked(nobody, item.adjective).words[0] for item in sheet.items}
        for (i, item), (g, group) in product(enumerate(sheet.items), enumerate(sheet.groups)):
            own, against = asked(make_cloze(template, group), item.adjective), asked(nobody, item.adjective)
            if own.words[0] is not None and own.words == against.words:
                both = [np.asarray(one.columns, dtype=np.float64) for one in (own, against)]
                scores[g, t, i] = difference(both[0], both[1], measure, variant, first_decisive(pieces, item))
    return scores


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize(("kind", "prior"), [("masked", "mask"), ("masked", "word"), ("causal", "word")])
def test_scores_are_those_of_a_loop(abc: AbcStimuli, kind: Any, prior: Prior, measure: Any, variant: Any) -> None:
    model = Fake()
    groups, templates = select_groups(abc, ["ant", "elderly"]), select_templates(abc, ["mine"])
    sheet = ClozeItems(abc, groups, templates, kind=kind, prior=prior, all_adjectives=True)
    found = sheet.scores(model.fill(sheet.blanks), measure, variant)
    np.testing.assert_allclose(found, looped(model, abc, sheet, prior, measure, variant), atol=1e-9)
    unknown = ["z" in item.adjective for item in sheet.items]
    assert np.isnan(found[:, :, unknown]).all()
    assert measure == "set" or not np.isnan(found).all(axis=(0, 1))[~np.array(unknown)].any()  # type: ignore[index]


@pytest.mark.parametrize("measure", MEASURES)
def test_a_word_of_other_pieces_for_a_group_has_no_score_there(abc: AbcStimuli, measure: Any) -> None:
    groups, templates = select_groups(abc, ["ant", "office"]), select_templates(abc, ["own-one", "own-many"])
    sheet = ClozeItems(abc, groups, templates, kind="masked", prior="mask", all_adjectives=True)
    usual = sheet.scores(Fake().fill(sheet.blanks), measure, "paper")
    model = Fake(otherwise=("ant there is", "loveing"))
    found = sheet.scores(model.fill(sheet.blanks), measure, "paper")
    place = next(i for i, item in enumerate(sheet.items) if item.adjective == "loveing")
    changed = np.zeros(found.shape, dtype=bool)
    changed[0, 0, place] = True
    assert np.isnan(found[changed]).all()
    assert measure == "set" or not np.isnan(usual[changed]).any()
    np.testing.assert_array_equal(found[~changed], usual[~changed])
    np.testing.assert_allclose(found, looped(model, abc, sheet, "mask", measure, "paper"), atol=1e-9)


@pytest.mark.parametrize("prior", ["mask", "word"])
def test_groups_of_more_unknown_words_than_anybody_have_no_score(abc: AbcStimuli, prior: Prior) -> None:
    """The letter q is unknown to the fake model: that of a group counts, that of a template does not."""
    own = replace(abc, groups=(*abc.groups, replace(abc.groups[0], name="odd", singular="queer", plural="queers")))
    groups = select_groups(own, ["ant", "odd"])
    (template,) = select_templates(abc, ["own-one"])
    template = replace(template, text="{A group} is quite {trait}.")
    sheet = ClozeItems(own, groups, [template], kind="masked", prior=prior)
    answers = Fake().fill(sheet.blanks)
    assert sheet.unknown_groups(answers) == ("odd",)
    scores = sheet.scores(answers, "ilps", "paper")
    assert np.isnan(scores[1]).all()
    assert not np.isnan(scores[0]).all()


def test_templates_with_words_behind_the_trait_are_skipped_by_causal_models_only(abc: AbcStimuli) -> None:
    skipped = ("the-people-are", "more-likely", "more", "own-first", "own-behind")
    causal, masked = (
        ClozeItems(abc, abc.groups[:2], abc.templates, kind=kind, prior="word") for kind in ("causal", "masked")
    )
    assert causal.skipped == skipped
    assert [t.name for t in causal.templates] == [t.name for t in abc.templates if t.name not in skipped]
    assert masked.skipped == ()
    assert masked.templates == abc.templates
    answers = Fake().fill(causal.blanks)
    assert causal.scores(answers, "ilps", "paper").shape == (2, len(causal.templates), len(causal.items))


def test_unknown_adjectives_are_named_and_no_part_of_the_median(abc: AbcStimuli) -> None:
    model, template = Fake(), select_templates(abc, ["own-one"])
    groups, of_masked = select_groups(abc, ["place"]), {"kind": "masked", "prior": "mask"}
    sheet = ClozeItems(abc, groups, template, **of_masked, all_adjectives=True)  # type: ignore[arg-type]
    answers = model.fill(sheet.blanks)
    assert sheet.unknown(answers) == ("zealous", "zebra")
    by_item = sheet.scores(answers, "ilps", "paper")
    found = score_trait_pairs(by_item, sheet.items, len(abc.pairs))
    pair = abc.pairs.index(abc.pair("unassertive-competitive"))
    left, right = (
        [by_item[:, 0, _at(sheet, pair, word)] for word in words]
        for words in (("unassertive", "submissive", "diffident", "passive"), ("competitive", "ambitious", "driven"))
    )
    np.testing.assert_allclose(found[:, 0, pair], np.median(right, axis=0) - np.median(left, axis=0), atol=1e-12)
    one = ClozeItems(abc, groups, template, **of_masked)  # type: ignore[arg-type]
    assert one.unknown(model.fill(one.blanks)) == ("zebra",)  # the others are not asked for


def _at(sheet: ClozeItems, pair: int, adjective: str) -> int:
    return next(i for i, item in enumerate(sheet.items) if (item.pair, item.adjective) == (pair, adjective))


NUMBERS = st.one_of(st.floats(-5.0, 5.0), st.just(math.nan))


@given(st.data())
def test_a_pair_is_the_median_of_its_right_less_that_of_its_left(data: st.DataObject) -> None:
    shape = data.draw(st.tuples(st.integers(1, 2), st.integers(1, 2)))
    sides = [(pair, right) for pair in range(3) for right in (False, True)]
    items = [TraitItem(*side, "w") for side in sides for _ in range(data.draw(st.integers(1, 4)))]
    items = data.draw(st.permutations(items))
    size = shape[0] * shape[1] * len(items)
    scores = np.array(data.draw(st.lists(NUMBERS, min_size=size, max_size=size))).reshape(*shape, len(items))
    found = score_trait_pairs(scores, items, 3)
    for g, t, pair in np.ndindex(found.shape):
        medians = []
        for right in (False, True):
            values = [scores[g, t, i] for i, item in enumerate(items) if (item.pair, item.right) == (pair, right)]
            values = sorted(value for value in values if not math.isnan(value))
            n = len(values)
            medians.append((values[(n - 1) // 2] + values[n // 2]) / 2 if n else math.nan)
        assert found[g, t, pair] == pytest.approx(medians[1] - medians[0], nan_ok=True, abs=1e-12)
