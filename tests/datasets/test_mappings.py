"""Tests given as a dict equal those of a file with the same words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from biassay.datasets.catalogue import load_catalogue, load_tests
from biassay.datasets.catalogue import parse_tests as of_words  # or pytest takes it for a test
from biassay.datasets.schema import ROLES
from biassay.datasets.stimulus_files import to_sent_bias, to_toml
from biassay.errors import StimulusError
from biassay.prompts.sentences import get_given_texts, hash_texts

PETS: Mapping[str, Any] = MappingProxyType(
    {"X": ["cat", "lynx", "puma"], "Y": ["dog", "wolf"], "A": ["love", "peace"], "B": ["war", "hate"]}
)


def as_toml(path: Path, **fields: str) -> Path:
    concepts = "".join(f"[concepts.{role}]\nwords = {json.dumps(PETS[role])}\n" for role in ROLES)
    test = {**dict(zip(ROLES, ROLES, strict=True)), **fields}
    path.write_text(concepts + "[tests.pets]\n" + "".join(f"{key} = {value!r}\n" for key, value in test.items()))
    return path


@pytest.mark.parametrize("templates", [None, "bleached"])
def test_it_equals_the_test_of_a_file(tmp_path: Path, templates: str | None) -> None:
    stated = {"title": "Cats or dogs", "about": "method", "topic": "things"}
    (given,) = of_words({**PETS, "name": "pets", **stated, **({"templates": templates} if templates else {})})
    used = {"targets": templates, "attributes": templates} if templates else {}
    (read,) = load_tests(as_toml(tmp_path / "pets.toml", **stated, **used))
    assert hash_texts(given) == hash_texts(read)
    for field in ("name", "title", "about", "topic", "source", "targets", "attributes", "level", "template"):
        assert getattr(given, field) == getattr(read, field), field


def test_several_tests_by_name_keep_their_words_apart() -> None:
    turned = {"X": PETS["Y"], "Y": PETS["X"], "A": PETS["A"], "B": PETS["B"]}
    one, other = of_words({"A": PETS, "turned": turned})
    assert (one.name, other.name) == ("A", "turned")
    assert one.X.words == other.Y.words == tuple(PETS["X"])


@pytest.mark.parametrize("name", ["weat6", "sent-weat6"])
def test_the_sent_bias_form(name: str) -> None:
    test = load_catalogue().tests[name]
    content = json.loads(to_sent_bias(test, get_given_texts(test)))
    (alone,), (named,) = of_words({"name": "six", **content}), of_words({"six": content})
    assert alone == named
    assert (alone.name, hash_texts(alone), alone.topic) == ("six", hash_texts(test), "gender")


def test_an_export_reads_back(tmp_path: Path) -> None:
    (test,) = of_words({**PETS, "name": "pets", "templates": "bleached"})
    (tmp_path / "back.toml").write_text(to_toml(test))
    (back,) = load_tests(tmp_path / "back.toml")
    assert hash_texts(back) == hash_texts(test)
    assert (back.title, back.X) == (test.title, test.X)


@pytest.mark.parametrize(
    ("content", "part"),
    [
        ({}, "{}"),
        ([PETS], "list"),
        ({"pets": {role: PETS[role] for role in "XYA"}}, "B missing"),
        ({"pets": {"x": ["cat", "lynx"]}}, "'pets'"),
        ({"pets": ["cat", "lynx"]}, "'pets'"),
        ({"targ1": {"category": "Cats", "examples": ["cat", "lynx"]}}, "field 'targ2'"),
    ],
)
def test_what_is_no_test_is_refused(content: Any, part: str) -> None:
    with pytest.raises(StimulusError) as caught:
        of_words(content)
    assert part in str(caught.value)


def test_a_notebook_shows_words_and_source_escaped() -> None:
    (test,) = of_words({**PETS, "title": "<i>Cats</i>", "X": {"label": "<b>", "words": ["<script>", "cat"]}})
    shown = test._repr_html_()
    assert all(f">{', '.join(PETS[role])}</td>" in shown for role in "YAB")
    assert "&lt;script&gt;, cat" in shown
    assert not any(markup in shown for markup in ("<script>", "><b></td>", "<i>"))
    assert test.source.licence in shown
