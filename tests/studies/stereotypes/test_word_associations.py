"""ILPS, ILPS* and SeT from answers about pieces: values of released code and of the paper, and loops in the test."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.blanks import blank

from biassay.models.registry import open_model
from biassay.studies.stereotypes.ilps import MEASURES, VARIANTS, Measure, Variant, WordPieces, score_words

pytestmark = [pytest.mark.extras, pytest.mark.usefixtures("one_thread")]
# The reference is a float32 model's; see the tolerances in its README.
TOLERANCE = 2e-4
OF_CODE: tuple[tuple[str, Measure], ...] = (("ilps", "ilps"), ("ilps_star", "ilps-star"), ("set", "set"))


class Reference:
    """One model of the reference: the adjectives it is asked for, and the scores expected."""

    def __init__(self, folder: Path, name: str) -> None:
        content = json.loads((folder / "expected.json").read_text())
        self.model = open_model(f"hf:{folder / name}", "blanks")
        self.templates: list[dict[str, Any]] = content["templates"]
        self.scores: list[dict[str, Any]] = content["models"][name]["scores"]
        self.traits: list[list[str]] = [content["traits"][trait] for trait in content["trait_order"]]
        self.adjectives = [word for words in self.traits for word in words]
        self._asked: dict[tuple[str, str], WordPieces] = {}

    def pieces(self, template: dict[str, Any], group: str) -> WordPieces:
        """What the model answers about all adjectives in one sentence."""
        key = (template["template"], group)
        if key not in self._asked:
            text = template["template"].replace("<mask>", "{trait}").replace("<group>", group)
            (filled,) = self.model.fill([blank(text, *self.adjectives)])
            assert filled.lengths.all()
            self._asked[key] = WordPieces.from_columns(filled.columns, filled.starts)
        return self._asked[key]

    def found(
        self, template: dict[str, Any], group: str, prior: str, measure: Measure, variant: Variant
    ) -> dict[str, float]:
        own, against = self.pieces(template, group), self.pieces(template, prior)
        scores = score_words(own, against, measure, variant).tolist()
        return dict(zip(self.adjectives, scores, strict=True))


@pytest.fixture(scope="module", params=["bert", "roberta"])
def released(request: pytest.FixtureRequest, reference: Path) -> Reference:
    return Reference(reference / "masked_lm", request.param)


@pytest.mark.parametrize(("name", "measure"), OF_CODE)
def test_reference_scores_of_traits_against_the_prior_word(released: Reference, name: str, measure: Measure) -> None:
    compared = 0
    for template, expected in zip(released.templates, released.scores, strict=True):
        for group in template["groups"]:
            found = released.found(template, group, template["prior_group"], measure, "cao2022-code")
            of_traits = [[found[word] for word in words] for words in released.traits]
            one, several = [values[0] for values in of_traits], [float(np.median(values)) for values in of_traits]
            assert one == pytest.approx(expected[name]["one"][group], abs=TOLERANCE)
            assert several == pytest.approx(expected[name]["several_median"][group], abs=TOLERANCE)
            compared += len(one)
    assert compared == len(released.traits) * sum(len(t["groups"]) for t in released.templates) > 0


@pytest.mark.parametrize(
    ("name", "measure", "variant"),
    [("ilps_prior_mask", "ilps", "paper"), ("ilps_star_prior_mask", "ilps-star", "cao2022-code")],
)
def test_reference_scores_of_adjectives_against_the_masked_group(
    released: Reference, name: str, measure: Measure, variant: Variant
) -> None:
    for template, expected in zip(released.templates, released.scores, strict=True):
        for group in template["groups"]:
            found = released.found(template, group, "{mask}", measure, variant)
            assert found == pytest.approx(expected[name][group], abs=TOLERANCE)


@pytest.mark.parametrize("prior", ["prior_word", "prior_mask"])
def test_reference_scores_of_the_papers_log_ratio(released: Reference, prior: str) -> None:
    """The file has log(d / d of the prior); the paper's Delta is the square of d, and its score is minus the log."""
    infinite = []
    for template, expected in zip(released.templates, released.scores, strict=True):
        against = template["prior_group"] if prior == "prior_word" else "{mask}"
        for group in template["groups"]:
            found = released.found(template, group, against, "set", "paper")
            for word, values in expected["set_paper_log_ratio"][prior][group].items():
                assert found[word] == pytest.approx(-2.0 * values["min_over_pieces"], abs=TOLERANCE)
                infinite += [word] if any(isinstance(value, str) for value in values["pieces"]) else []
    # A piece that is on top in the prior's text, whose ratio is infinite, leaves the judgement to the other pieces.
    is_bert = released.model.identity.name.endswith("/bert")
    assert set(infinite) == ({"admired"} if is_bert and prior == "prior_mask" else set())


@st.composite
def answered(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Answers (m, 4) in two texts about words of one to four pieces, their starts, and decisive pieces."""
    lengths = draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    m = sum(lengths)
    logs = st.floats(-20.0, -0.001)
    distances = st.one_of(st.floats(1e-3, 2.0), st.sampled_from([0.0, 1.0, 0.5]))
    rows = st.lists(st.tuples(logs, logs, logs, distances), min_size=m, max_size=m)
    decisive = draw(st.lists(st.booleans(), min_size=m, max_size=m))
    starts = np.cumsum([0, *lengths[:-1]])
    return np.array(draw(rows)), np.array(draw(rows)), starts, np.array(decisive)


def words_of(rows: np.ndarray, starts: np.ndarray) -> list[list[tuple[float, ...]]]:
    """The rows of every word, as numbers of Python."""
    ends = [*starts.tolist()[1:], len(rows)]
    return [[tuple(row) for row in rows.tolist()[a:b]] for a, b in zip(starts.tolist(), ends, strict=True)]


def chained(word: list[tuple[float, ...]], variant: str) -> float:
    total = 0.0
    for place, (log_p, initial, continuing, _) in enumerate(word):
        total += log_p
        if variant == "cao2022-code":
            total -= initial if place == 0 else continuing
    return total


def bounded(word: list[tuple[float, ...]]) -> float:
    largest = max(row[3] for row in word)
    return math.log(1.0 - largest) if largest < 1.0 else math.nan


def ratio(own: list[tuple[float, ...]], prior: list[tuple[float, ...]], decisive: list[bool]) -> float:
    scores = []
    for mine, other, counts in zip(own, prior, decisive, strict=True):
        if counts and mine[3] == 0.0 < other[3]:
            return math.nan
        if counts and other[3] > 0.0:
            scores.append(-math.log(mine[3] ** 2 / other[3] ** 2))
    return max(scores, default=math.nan)


@given(answered(), st.sampled_from(MEASURES), st.sampled_from(VARIANTS), st.booleans())
def test_scores_are_those_of_a_loop(case: Any, measure: Measure, variant: Variant, some: bool) -> None:
    own, prior, starts, decisive = case
    expected = []
    marks = decisive if some else np.ones(len(own), dtype=bool)
    for mine, other, counts in zip(
        words_of(own, starts), words_of(prior, starts), words_of(marks[:, None], starts), strict=True
    ):
        if measure == "ilps":
            expected.append(mine[0][0] - other[0][0])
        elif measure == "ilps-star":
            expected.append(chained(mine, variant) - chained(other, variant))
        elif variant == "cao2022-code":
            expected.append(bounded(mine) - bounded(other))
        else:
            expected.append(ratio(mine, other, [bool(mark[0]) for mark in counts]))
    given_marks = decisive if some else None
    found = score_words(
        WordPieces.from_columns(own, starts), WordPieces.from_columns(prior, starts), measure, variant, given_marks
    )
    assert found.tolist() == pytest.approx(expected, rel=1e-9, abs=1e-9, nan_ok=True)
