"""Which templates the words of two sets share."""

from __future__ import annotations

import pytest

from biassay.datasets.catalogue import load_catalogue
from biassay.prompts.sentences import StimulusText, find_shared_templates, get_template, make_texts


def text(word: str, template: str) -> StimulusText:
    start = template.index("{T}") if "{T}" in template else 0
    return StimulusText(template.replace("{T}", word), word, template, ((start, start + len(word)),))


def test_words_in_the_same_templates_share_all() -> None:
    both = ["This is {T}.", "{T} is here."]
    found = find_shared_templates([text(w, t) for w in "ab" for t in both], [text(w, t) for w in "cd" for t in both])
    assert (found.templates, found.share) == (None, pytest.approx(1.0))


def test_words_are_compared_on_the_templates_of_all_of_them() -> None:
    x = [text("a", "This is {T}."), text("a", "{T} is here."), text("b", "This is {T}.")]
    y = [text("c", "This is {T}."), text("c", "{T} is here."), text("d", "This is {T}.")]
    found = find_shared_templates(x, y)
    assert found.templates == {"This is {T}."}
    assert found.share == pytest.approx(1.0)


def test_without_a_template_of_all_words_those_of_both_sets_count() -> None:
    x = [text("a", "1 {T}"), text("b", "2 {T}"), text("b", "4 {T}")]
    y = [text("c", "1 {T}"), text("d", "2 {T}"), text("d", "3 {T}")]
    found = find_shared_templates(x, y)
    assert found.templates == {"1 {T}", "2 {T}"}
    assert found.share == pytest.approx(2 / 3)


def test_sets_that_share_nothing_keep_everything() -> None:
    found = find_shared_templates([text("a", "1 {T}")], [text("b", "2 {T}")])
    assert (found.templates, found.share) == (None, 0.0)


def test_articles_and_plurals_make_no_other_template() -> None:
    assert {get_template(text("a", t)) for t in ("This is {T}.", "This is {a T}.", "This is a {T}.")} == {
        "This is {T}."
    }
    assert get_template(text("a", "They are {Ts}.")) == "They are {T}."


def test_unknown_templates_are_not_judged() -> None:
    assert find_shared_templates([text("a", "")], [text("b", "1 {T}")]).share is None


@pytest.mark.parametrize(
    ("test", "share", "templates"),
    [  # 95, 76, 66 and 11 of 100
        ("weat6", 1.0, 0),
        ("sent-weat6", 1.0, 0),
        ("sent-weat1", 0.949, 0),
        ("sent-weat7", 0.757, 4),
        ("sent-weat8b", 0.656, 3),
        ("sent-weat9", 0.110, 3),
    ],
)
def test_published_tests(test: str, share: float, templates: int) -> None:
    texts = make_texts(load_catalogue().tests[test])
    found = find_shared_templates(texts.X, texts.Y)
    assert found.share == pytest.approx(share, abs=1e-3)
    assert len(found.templates or ()) == templates
