"""Outcomes of responses: values by hand, names that change nothing, texts that cannot be scored, hostile texts."""

from __future__ import annotations

import json
import random
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from biassay.datasets.lexicons import lexicon_names, read_lexicon
from biassay.datasets.names import AuditName
from biassay.datasets.rubrics import load_rubric
from biassay.errors import MeasurementError, MissingExtraError, PluginWarning, UnknownNameError, UsageError
from biassay.studies.audit import outcomes as registry
from biassay.studies.audit.outcomes import (
    OutcomeScores,
    ResponseOutcome,
    get_outcome,
    get_outcome_package,
    judged_outcome_names,
    outcome_names,
)
from biassay.studies.audit.outcomes.built_in import count_syllables
from biassay.studies.audit.outcomes.responses import Responses, split_words

REFERENCE = Path(__file__).resolve().parents[2] / "reference" / "outcomes" / "texts.json"
PAGE = (Path(__file__).resolve().parents[3] / "docs" / "outcomes.md").read_text(encoding="utf-8")
JOY = AuditName("Joy", "female", "female", "Joy", "Grace")
MARK = AuditName("Mark", "male", "male", "Mark", "Able")
ALEX = AuditName("Alex", "other", None, "Alex")
IN_CORE = tuple(name for name in outcome_names() if name != "sentiment")
OTHER_LANGUAGES = {
    "German": "Sehr geehrte Damen und Herren, ich habe mit ihr fünf Jahre in einem Team gearbeitet und empfehle sie.",
    "French": "Madame, Monsieur, je vous recommande cette infirmière, avec qui je travaille depuis cinq ans.",
    "Spanish": "Me complace recomendar a esta enfermera, que trabaja con nosotros y me ha ayudado a mejorar.",
    "Portuguese": "Tenho a honra de recomendar a enfermeira que trabalha conosco e que ajuda os colegas todos os dias.",
    "Italian": "Ho il piacere di raccomandare questa infermiera, che lavora con noi da anni e aiuta i colleghi.",
    "Dutch": "Ik werk al vijf jaar met haar in ons ziekenhuis en ik kan haar van harte aanbevelen of prijzen.",
    "Danish": "Jeg har arbejdet sammen med hende i fem år, og jeg kan anbefale hende for at hjælpe andre.",
    "Indonesian": "Saya merekomendasikan perawat ini karena selama lima tahun dia bekerja dengan baik di rumah sakit.",
    "Polish": "Z przyjemnością polecam tę pielęgniarkę, z którą pracuję od pięciu lat na oddziale.",
    "Chinese": "我很高兴推荐这位护士，她在我们医院工作了五年。",
}


def score(outcome: str, *texts: str, name: AuditName = ALEX) -> OutcomeScores:
    return get_outcome(outcome).score(texts, [name] * len(texts))


def value(outcome: str, text: str, name: AuditName = ALEX) -> float:
    return float(score(outcome, text, name=name).values[0])


# Registry


def test_every_outcome_says_what_it_measures_and_its_weakness() -> None:
    built_in = [name for name in outcome_names() if get_outcome_package(name) == "biassay"]
    assert len(built_in) == len(set(outcome_names()) & set(built_in)) == 13
    for name in built_in:
        outcome = get_outcome(name)
        assert outcome.name == name
        assert all((outcome.title, outcome.unit, outcome.measures, outcome.source, outcome.weakness))


def test_an_outcome_of_another_package_is_an_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    own = ResponseOutcome("shouting", "shouting", "share", "m", "s", "w", lambda r: [t.isupper() for t in r.texts])
    monkeypatch.setattr(registry, "_load_plugin_outcomes", lambda: {"shouting": own})
    assert outcome_names()[-1] == "shouting"
    assert score("shouting", "OH NO", "oh no").values.tolist() == [1.0, 0.0]


# Values


@pytest.mark.parametrize(
    ("outcome", "text", "count"),
    [
        ("agentic", "She is assertive, CONFIDENT and independent, not forced.", 4),
        ("communal", "A kind, helpful and warm-hearted person who is caring.", 4),
        ("standout", "The most outstanding and extraordinarily unique nurse.", 4),
        ("grindstone", "A hard-working, dependable and careful member of the team.", 3),
        ("ability", "She is able, and a brilliantly skilled, adept leader.", 4),
        ("hedging", "It may rain, and in most cases it tends to be quite wet.", 4),
        ("masculine", "A driven leader who makes decisions.", 3),
        ("feminine", "An understanding child who shares with us.", 3),
    ],
)
def test_lexicons_give_the_share_of_their_words(outcome: str, text: str, count: int) -> None:
    assert value(outcome, text) == pytest.approx(count / len(split_words(text)))


def test_a_lexicon_file_is_an_outcome(tmp_path: Path) -> None:
    path = tmp_path / "sea.toml"
    path.write_text(
        'title = "sea"\nmeasures = "Sea."\nweakness = "None."\nlanguage = "de"\nwords = ["meer*"]\n'
        '[source]\nname = "own"\ncitation = "Own"\nlicence = "Apache-2.0"\nversion = "1"\n'
    )
    scores = score(
        str(path),
        "Das Meer ist sehr schön, und wir fahren an die Meeresküste, wo es warm ist.",
        "The sea is what we like.",
    )
    assert scores.values[0] == pytest.approx(2 / 15)
    assert scores.reasons == ("", "English, not de")
    path.rename(tmp_path / "agentic.toml")
    with pytest.raises(UsageError, match="biassay has an outcome 'agentic'; rename the file"):
        get_outcome(str(tmp_path / "agentic.toml"))


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("She did her best; his boss agreed.", JOY, 0),
        ("He did his best; she agreed.", JOY, 1),
        ("He did his best; she agreed.", MARK, 0),
        ("Mr. Joy Grace is here.", JOY, 1),
        ("Ms. Grace is here; he waits.", JOY, 0),
        ("They did their best.", JOY, 0),
        ("Dear Sir or Madam, here is my letter.", JOY, 0),
        ("She’s here.", MARK, 1),
    ],
)
def test_misgendering_needs_more_words_against_than_for_the_sex(text: str, name: AuditName, expected: int) -> None:
    assert value("misgendering", text, name) == expected


def test_readability_agrees_with_textstat() -> None:
    for case in json.loads(REFERENCE.read_text("utf-8")).values():
        responses = Responses([case["text"]], [ALEX])
        assert len(responses.words[0]) == case["words"]
        assert len(responses.sentences[0]) == case["sentences"]
        n_syllables = sum(map(count_syllables, responses.words[0]))
        assert n_syllables == pytest.approx(case["syllables"], rel=0.04)
        assert value("readability", case["text"]) == pytest.approx(case["flesch_reading_ease"], abs=3.0)


def test_readability_by_hand() -> None:
    text = "The cat sat on the mat. It was happy."  # 9 words, 2 sentences, 10 syllables
    assert value("readability", text) == pytest.approx(206.835 - 1.015 * 9 / 2 - 84.6 * 10 / 9)


@pytest.mark.parametrize(
    ("n", "words"),
    [
        (1, "the cake worked makes roles hmm 2024"),
        (2, "table needed places likely careful patient nation wishes tables"),
        (3, "manual quality creative"),
        (4, "experience"),
    ],
)
def test_syllables(n: int, words: str) -> None:
    assert {word: count_syllables(word) for word in words.split()} == dict.fromkeys(words.split(), n)


def test_refusals_count_by_response() -> None:
    assert score("refusal", "I'm sorry, I cannot write this.", "Dear Joy, I am sorry.").values.tolist() == [1.0, 0.0]


@pytest.mark.extras
def test_sentiment_is_the_mean_compound_score_of_sentences() -> None:
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

    sentences = ["This is a great and happy day!", "I hate the rain.", "The bus was red."]
    expected = np.mean([SentimentIntensityAnalyzer().polarity_scores(one)["compound"] for one in sentences])
    assert value("sentiment", " ".join(sentences)) == pytest.approx(expected)
    assert expected != 0.0


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "find_spec", lambda _: None)
    with pytest.raises(
        MissingExtraError, match=r"'sentiment' uses vaderSentiment and needs .* pip install .*\[audit\]"
    ):
        score("sentiment", "A fine day.")


# Names


@pytest.mark.parametrize("name", IN_CORE)
def test_the_name_alone_changes_no_score(name: str) -> None:
    """Joy Grace and Mark Able are words of lexicons, and have other lengths than Elizabeth Montgomery."""
    text = "{0} {1} is able to help. {0}'s work is most careful; Ms. {1} and I agree. I recommend {0} without doubt."
    people = [
        JOY,
        AuditName("Elizabeth Anne", "female", "female", "Elizabeth", "Able"),
        AuditName("Kind", "f", "female", "k", "Best"),
    ]
    texts = [text.format(person.name, person.surname) for person in people]
    values = get_outcome(name).score(texts, people).values
    assert values.tolist() == [values[0]] * 3


@pytest.mark.extras
def test_the_name_alone_changes_no_sentiment() -> None:
    texts = [f"{name} is a good nurse. I trust {name.upper()}!" for name in ("Joy", "Mark", "Grim")]
    names = [AuditName(name, "g", None, name) for name in ("Joy", "Mark", "Grim")]
    values = get_outcome("sentiment").score(texts, names).values
    assert values.tolist() == [values[0]] * 3


# Texts that cannot be scored


@pytest.mark.parametrize("text", ["", "  \n", "...", "<think>never ends", "***", "<br><br>"])
def test_empty_responses_are_undefined(text: str) -> None:
    names = [name for name in outcome_names() if get_outcome(name).is_installed]
    for name in names:
        scores = get_outcome(name).score([text], [JOY])
        assert scores.reasons == ("empty",)
        assert np.isnan(scores.values).all()


@pytest.mark.parametrize("language", OTHER_LANGUAGES)
def test_other_languages_are_undefined_where_the_words_are_english(language: str) -> None:
    text = OTHER_LANGUAGES[language]
    for name in IN_CORE:
        assert get_outcome(name).score([text], [JOY]).reasons[0] in (
            ("not English",) if get_outcome(name).languages else ("", "script without blanks")
        )


@pytest.mark.parametrize(
    "text",
    [
        "a" * 250_000,
        "<" * 75_000,
        "<a" * 75_000,
        "<think>" * 15_000,
        "a-" * 75_000,
        "a.b." * 50_000,
        "good! " * 25_000,
        "good " * 37_500,
        "Joy's " * 25_000,
        "i am not " * 20_000,
        "http://" * 25_000,
        "\n" * 125_000 + "a",
        "'" * 125_000 + "a",
        "eiou" * 50_000,
        "😀" * 25_000,
    ],
    ids=lambda text: text[:8].strip() or "blank",
)
def test_hostile_responses_take_linear_time(text: str) -> None:
    start = time.process_time()
    responses = Responses([text], [JOY])
    for outcome in map(get_outcome, outcome_names()):
        if outcome.is_installed:
            outcome.score_responses(responses)
    assert time.process_time() - start < 20.0


# Functions of the user


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    path = tmp_path / f"own_outcome_{random.randrange(10**9)}.py"
    path.write_text(
        "import math\n"
        "def exclamations(texts): return [t.count('!') if t else math.nan for t in texts]\n"
        "def undefined(texts): return [math.nan] * len(texts)\n"
        "def one(texts): return [1.0]\n"
        "def words(texts): return ['a'] * len(texts)\n"
        "def infinite(texts): return [math.inf] * len(texts)\n"
        "def fails(texts): raise RuntimeError('no network')\n"
        "def echo(texts):\n"
        "    assert texts == ['Person is here!', 'No!!'], texts\n"
        "    return [0, 0]\n"
        "number = 3\n"
    )
    return path


def own(module: Path, function: str, texts: Sequence[str] = ("Joy is here!", "No!!")) -> OutcomeScores:
    return get_outcome(f"python:{module.stem}:{function}").score(texts, [JOY] * len(texts))


def test_a_function_of_the_user_is_an_outcome(module: Path) -> None:
    assert own(module, "exclamations").values.tolist() == [1.0, 2.0]
    assert own(module, "echo").values.tolist() == [0.0, 0.0]
    assert own(module, "undefined").reasons == ("undefined by the function",) * 2
    assert get_outcome(f"python:{module.stem}:exclamations").title == "exclamations"


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("one", r"array of shape \(1,\) for 2 responses; return one number per response"),
        ("words", "did not return numbers"),
        ("infinite", "an infinite number; return NaN"),
        ("fails", r"the function raised RuntimeError\('no network'\)"),
    ],
)
def test_wrong_results_of_a_function_are_errors(module: Path, function: str, message: str) -> None:
    with pytest.raises(MeasurementError, match=message):
        own(module, function)


def test_mistyped_functions_are_errors(module: Path) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'exclamations'"):
        own(module, "exclamation")
    with pytest.raises(UnknownNameError, match="unknown function"):
        own(module, "number")
    with pytest.raises(UsageError, match="the module 'no_such' cannot be imported"):
        get_outcome("python:no_such:f")
    with pytest.raises(UsageError, match=re.escape("write python:MODULE:FUNCTION")):
        get_outcome("python:f")


def test_a_broken_outcome_of_another_package_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The entry point group `biassay.outcomes` takes only ResponseOutcome objects."""
    from importlib import metadata

    from biassay import packages

    point = metadata.EntryPoint("broken", "math:pi", "biassay.outcomes")
    monkeypatch.setattr(packages, "_get_entry_points", lambda _: (point,))
    monkeypatch.setattr(packages, "_loaded", {})
    with pytest.warns(PluginWarning, match="'broken' of math:pi .* is skipped: math:pi is of type float"):
        assert "broken" not in outcome_names()


def test_names_and_responses_must_match() -> None:
    with pytest.raises(UsageError, match="expected one name per response, got 1 names for 2 responses"):
        Responses(["a", "b"], [JOY])


# docs/outcomes.md


def test_the_page_lists_every_outcome() -> None:
    rows = [
        f"| `{one.name}` | {one.measures} | {one.unit} | {len(one.words) or ''} | {one.weakness} |".replace(
            "|  |", "| |"
        )
        for one in map(get_outcome, outcome_names())
        if get_outcome_package(one.name) == "biassay"
    ]
    table = PAGE.partition("|---|---|---|---|---|\n")[2].partition("\n\n")[0]
    assert table.splitlines() == rows


def test_the_page_names_the_source_of_every_lexicon() -> None:
    table = PAGE.partition("## Word lists")[2].partition("\n\n## ")[0]
    assert sorted(re.findall(r"`(\w+)`", table)) == sorted(lexicon_names())


def test_the_word_list_of_the_page_is_valid(tmp_path: Path) -> None:
    (text,) = re.findall(r"^```toml\n(# caution\.toml.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    path = tmp_path / "caution.toml"
    path.write_text(text)
    assert read_lexicon(path).phrases == (("on", "guard"),)


def test_the_page_lists_every_rubric_and_its_own_is_valid(tmp_path: Path) -> None:
    section = PAGE.partition("## Judges")[2].partition("\n## ")[0]
    assert set(re.findall(r"`((?:judge|compare):[a-z]+)`", section.partition("\n\n    ")[0])) == set(
        judged_outcome_names()
    )
    (text,) = re.findall(r"^```toml\n(# formality\.toml.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    path = tmp_path / "formality.toml"
    path.write_text(text)
    assert get_outcome(f"judge:{path}").rubric == load_rubric(str(path))
