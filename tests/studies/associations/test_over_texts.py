"""One test on one model: out-of-vocabulary words, truncation, seeds, and contributions of words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from biassay.datasets.catalogue import load_catalogue
from biassay.datasets.schema import ROLES, Concept, GivenText, Test
from biassay.errors import StimulusError
from biassay.models.base import TextEmbeddings
from biassay.prompts.sentences import StimulusText, make_texts
from biassay.studies.associations.measure import Measurement, check_tests, measure_over_texts
from biassay.studies.associations.settings import AssociationSettings


def encoded(test: Test, unknown: tuple[str, ...] = (), seed: int = 0) -> dict[str, TextEmbeddings]:
    """Encode texts as random vectors; the words in ``unknown`` are out of vocabulary."""
    rng = np.random.default_rng(seed)
    texts = make_texts(test)
    return {
        role: TextEmbeddings.from_vectors(
            rng.normal(size=(len(texts.role(role)), 16)).astype(np.float32),
            tuple(_spans(text, unknown) for text in texts.role(role)),
        )
        for role in ROLES
    }


def _spans(text: StimulusText, unknown: tuple[str, ...]) -> tuple[tuple[int, int], ...]:
    return tuple((text.text.find(word), text.text.find(word) + len(word)) for word in unknown if word in text.text)


def run(name: str, unknown: tuple[str, ...] = (), **settings: object) -> Measurement:
    test = load_catalogue().tests[name]
    return measure_over_texts(test, make_texts(test), encoded(test, unknown), AssociationSettings(**settings))  # type: ignore[arg-type]


def test_of_several_words_a_text_is_about_the_unknown_are_listed() -> None:
    """Nothing stands in the place of another here, so that every word of one set may be what its text is about."""
    finished = {"X": ("Tom drove a lorry", "He is a smith"), "Y": ("Ann sang", "She wept")}
    finished |= {"A": ("Work pays", "Desks creak"), "B": ("Homes glow", "Ovens warm")}
    sets: dict[str, Any] = {
        role: Concept(role, role, texts, given=tuple(map(GivenText, texts))) for role, texts in finished.items()
    }
    test = Test("own", "own", **sets, source=load_catalogue().tests["weat1"].source)
    assert make_texts(test).X[0].form == "Tom drove a lorry"
    found = measure_over_texts(test, make_texts(test), encoded(test, ("lorry",)), AssociationSettings(max_unknown=0.5))
    assert found.fields["oov_words"] == {"X": ("lorry",), "Y": (), "A": (), "B": ()}
    assert found.fields["num_targ1"] == 1


def test_an_unknown_plural_loses_its_sentences_not_its_word() -> None:
    found = run("sent-weat1", ("tulips", "Tulips"))
    assert found.fields["oov_words"]["X"] == ("tulips",)
    assert found.fields["num_words"]["X"] == 25
    assert found.fields["num_targ1"] == 350 - 6


def test_above_the_limit_the_test_is_refused_with_the_words_named() -> None:
    gone = ("aster", "clover", "hyacinth", "marigold", "poppy", "azalea")
    found = run("weat1", gone)
    assert found.fields["status"] == "skipped"
    assert found.association is None
    assert found.fields["reason"] is not None
    assert (
        "6 of 25 words of Flowers are out of vocabulary (aster, clover, hyacinth, marigold, poppy, azalea)"
        in found.fields["reason"]
    )
    assert run("weat1", gone[:5]).fields["status"] == "measured"  # 20% is the limit, not beyond it
    assert run("weat1", gone, max_unknown=0.25).fields["status"] == "measured"
    assert run("weat1", ("aster",), max_unknown=0.0).fields["status"] == "skipped"


def test_may2019_cuts_sentences_to_one_length_and_records_it() -> None:
    found = run("sent-weat7", protocol="may2019", seed=3)
    assert found.association is not None
    assert found.association.sizes[:2] == (72, 72)
    whole = run("sent-weat7")
    assert whole.association is not None
    assert whole.association.sizes[:2] == (72, 82)


def test_may2019_refuses_unequal_words_before_anything_is_encoded() -> None:
    test = load_catalogue().tests["weat6"]
    uneven = replace(test, X=replace(test.X, words=test.X.words[:5]))
    with pytest.raises(StimulusError, match="got 5 and 8"):
        check_tests((uneven,), AssociationSettings(protocol="may2019"))
    check_tests((uneven,), AssociationSettings())
    check_tests((load_catalogue().tests["sent-weat7"],), AssociationSettings(protocol="may2019"))


def test_a_word_test_has_its_exact_p_by_word_under_every_protocol() -> None:
    exact, sampled = run("weat2"), run("weat2", protocol="may2019")
    assert exact.association is not None
    assert sampled.association is not None
    assert exact.association.p_value_by_word == exact.association.p_value
    assert sampled.association.p_value_by_word == exact.association.p_value


def test_texts_given_as_sentences_have_no_p_by_word() -> None:
    words = load_catalogue().tests["weat1"]
    test = replace(words, X=replace(words.X, given=tuple(map(GivenText, words.X.words))))
    found = measure_over_texts(test, make_texts(test), encoded(test), AssociationSettings())
    assert found.association is not None
    assert found.association.by_word is None
