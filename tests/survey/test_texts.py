"""Texts of a study: what a translation must have, what is refused and how, what is filled in."""

from __future__ import annotations

import copy
import tomllib
from importlib import resources
from pathlib import Path

import pytest

from biassay.errors import StimulusError
from biassay.survey.study import read_texts

from .own_study import toml

SHIPPED = (resources.files("biassay.survey") / "data" / "english.toml").read_text("utf-8")


def translated(folder: Path, old: str = "", new: str = "") -> StimulusError | None:
    assert not old or old in SHIPPED
    (folder / "deutsch.toml").write_text(SHIPPED.replace(old, new, 1) if old else SHIPPED, encoding="utf-8")
    try:
        read_texts("deutsch.toml", folder)
    except StimulusError as error:
        return error
    return None


def test_a_translation_must_have_every_text(tmp_path: Path) -> None:
    parsed = tomllib.loads(SHIPPED)
    assert translated(tmp_path) is None
    for section, texts in parsed.items():
        for name in texts if isinstance(texts, dict) else ():
            kept = copy.deepcopy(parsed)
            del kept[section][name]
            (tmp_path / "part.toml").write_text(toml(kept), encoding="utf-8")
            with pytest.raises(StimulusError, match=rf"part.toml: \[{section}\] {name} is missing or empty"):
                read_texts("part.toml", tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('direction = "ltr"', 'direction = "up"', "direction must be 'ltr' or 'rtl', got 'up'"),
        ('direction = "ltr"', "", "direction is missing"),
        ('language = "en"', "language = 1", "language is missing"),
        ("[skip]\n", "[skipp]\n", "is missing or empty"),
        ('button = "Begin"', 'button = " "', "[consent] button is missing or empty"),
        ('button = "Begin"', "button = 3", "[consent] button is missing or empty"),
        ('button = "Begin"', 'button = "Begin {now}"', "[consent] button: nothing is known of {now}"),
        ("{minutes} minutes", "{minuten} Minuten", "[consent] body: nothing is known of {minuten}"),
        ('button = "Begin"', 'button = "Begin"\nbutton2 = "x"', "[consent] button2: there is no such text"),
        ("[skip]\n", "[more]\na = 'b'\n[skip]\n", "[more] a: there is no such text"),
        ("[skip]", "[skip", "not valid TOML"),
    ],
)
def test_what_is_wrong_with_a_translation_is_said(old: str, new: str, said: str, tmp_path: Path) -> None:
    error = translated(tmp_path, old, new)
    assert said in str(error)
    assert str(tmp_path / "deutsch.toml") in str(error)


@pytest.mark.parametrize(
    ("section", "old", "new"),
    [
        ("group", "How are {group} seen", "How are they seen"),
        ("consent", "at least {age} years", "at least 18 years"),
        ("consent", "run by {researcher}", "run by us"),
        ("consent", "delete your answers: {contact}", "delete your answers: us"),
        ("consent", "Approved: {approval}", "Approved"),
        ("done", "if you ask them to: {code}", "if you ask them to"),
    ],
)
def test_a_translation_may_not_lose_what_is_filled_in(section: str, old: str, new: str, tmp_path: Path) -> None:
    """The shipped file says of braces that they must stay."""
    assert f"[{section}]" in str(translated(tmp_path, old, new))


def test_paragraphs_are_parted_by_empty_lines() -> None:
    texts = read_texts("english")
    body = texts.paragraphs("consent", "body", society="Utopia", number=4, pairs=16, minutes=10)
    assert len(body) == 4
    assert body[0] == "You are invited to a study of how groups of people are seen in Utopia."
    assert not any("{" in paragraph or "\n" in paragraph for paragraph in body)
