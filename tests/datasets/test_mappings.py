"""Tests given as a dict of words are those that a file of the same words would give."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from biassay.datasets.catalogue import load_catalogue, load_tests, select_tests
from biassay.datasets.catalogue import parse_tests as of_words  # or pytest takes it for a test
from biassay.datasets.schema import ROLES
from biassay.datasets.stimulus_files import to_json_data, to_sent_bias, to_toml
from biassay.errors import StimulusError, UsageError
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


def test_labels_are_those_given_or_the_first_words() -> None:
    (test,) = of_words({**PETS, "Y": {"label": "Dogs", "words": ["dog", "wolf"]}, "B": {"words": ["war", "hate"]}})
    assert test.name == "test"
    assert [test.concept(role).label for role in ROLES] == ["cat, lynx ...", "Dogs", "love, peace", "war, hate"]
    assert test.title == "cat, lynx ... or Dogs, love, peace or war, hate"


def test_a_role_may_name_a_concept_of_the_catalogue() -> None:
    (test,) = of_words({**PETS, "A": "pleasant", "B": "unpleasant"})
    assert [load_catalogue().concepts[name] for name in ("pleasant", "unpleasant")] == [test.A, test.B]


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


def test_plain_content_gives_the_same_test_after_json() -> None:
    content = {**PETS, "X": np.array(PETS["X"]), "Y": tuple(PETS["Y"]), "name": np.str_("pets")}
    kept = json.dumps(to_json_data(MappingProxyType(content)))
    assert of_words(json.loads(kept)) == of_words(content) == of_words({**PETS, "name": "pets"})


def test_an_export_reads_back(tmp_path: Path) -> None:
    (test,) = of_words({**PETS, "name": "pets", "templates": "bleached"})
    (tmp_path / "back.toml").write_text(to_toml(test))
    (back,) = load_tests(tmp_path / "back.toml")
    assert hash_texts(back) == hash_texts(test)
    assert (back.title, back.X) == (test.title, test.X)


def test_names_and_dicts_are_chosen_together() -> None:
    assert [test.name for test in select_tests(["weat6", {"pets": PETS}, "I1"])] == ["weat6", "pets", "I1"]
    assert select_tests(PETS) == select_tests([PETS, PETS]) == of_words(PETS)
    with pytest.raises(StimulusError, match="'weat6'"):
        select_tests(["weat6", {"weat6": PETS}])
    with pytest.raises(UsageError, match="int 3"):
        select_tests(["weat6", 3])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ({"X": ["cat", "cat"]}, ("'pets'", "field X", "'cat'")),
        ({"X": ["cat", " lynx"]}, ("'pets'", "field X", "' lynx'")),
        ({"X": ["cat"]}, ("'pets'", "field X", "'cat'")),
        ({"X": []}, ("'pets'", "field X", "empty")),
        ({"X": ["", " "]}, ("'pets'", "field X.words[0]")),
        ({"X": ["cat", 3]}, ("'pets'", "field X.words[1]", "int 3")),
        ({"X": {"cat", "lynx"}}, ("'pets'", "field X", "set ")),
        ({"X": None}, ("'pets'", "field X", "nothing")),
        ({"X": {"label": "Cats"}}, ("'pets'", "field X", "'words'")),
        ({"X": {"lable": "Cats", "words": ["cat", "lynx"]}}, ("'pets'", "field X.lable", "'label'")),
        ({"X": ["cat", "dog"]}, ("'pets'", "X and Y", "'dog'")),
        ({"A": "plaesant"}, ("'pets'", ": A: ", "'plaesant'", "'pleasant'")),
        ({"templates": "bleeched"}, ("'pets'", "'bleeched'", "'bleached'")),
        ({"templates": 3}, ("'pets'", "field templates", "int 3")),
        ({"template": "bleached"}, ("'pets'", "field template", "'templates'")),
        ({"topic": "genders"}, ("'pets'", "field topic", "gender")),
        ({"targ1": {}}, ("'pets'", "field targ1")),
        ({"name": ["pets"]}, ("['pets']", "field name")),
        ({3: "three"}, ("int 3",)),
    ],
)
def test_a_fault_is_named_with_the_test_and_the_role(change: dict[Any, Any], parts: tuple[str, ...]) -> None:
    with pytest.raises(StimulusError) as caught:
        of_words({"name": "pets", **PETS, **change})
    assert all(part in str(caught.value) for part in parts), str(caught.value)


@pytest.mark.parametrize(
    ("content", "part"),
    [
        ({}, "{}"),
        ([PETS], "list"),
        ({"pets": {role: PETS[role] for role in "XYA"}}, "B missing"),
        ({"pets": {"x": ["cat", "lynx"]}}, "'pets'"),
        ({"pets": ["cat", "lynx"]}, "'pets'"),
        ({"targ1": {"category": "Cats", "examples": ["cat", "lynx"]}}, "field targ2"),
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
