"""Tests written to files that this project, and others, read back."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from biassay.stimuli.description import description_of
from biassay.stimuli.given import given_fields
from biassay.stimuli.model import ROLES, GivenText, TemplateSet, Test

__all__ = ["to_sent_bias", "to_toml"]


_PAIR = re.compile(r"\[\n\s*(\d+),\n\s*(\d+)\n\s*\]")


def to_sent_bias(test: Test, texts: Mapping[str, Sequence[GivenText]]) -> str:
    """The sent-bias form: four named lists of finished texts, and what is known of the words in them.

    What the test is about stands in the first of them: programs that read this form take every entry for a list.
    """
    keys = zip(ROLES, ("targ1", "targ2", "attr1", "attr2"), strict=True)
    content: dict[str, dict[str, Any]] = {
        key: {"category": test.concept(role).label, **given_fields(texts[role])} for role, key in keys
    }
    for role, key in zip(ROLES, ("targ1", "targ2", "attr1", "attr2"), strict=True):
        if test.concept(role).clusters:
            content[key]["clusters"] = [list(cluster) for cluster in test.concept(role).clusters]
    content["targ1"]["test"] = {key: value for key, value in description_of(test).items() if value is not None}
    if test.source.searched_models:
        content["targ1"]["test"]["searched_models"] = list(test.source.searched_models)
    if test.source.fingerprints:
        content["targ1"]["test"]["fingerprints"] = [dataclasses.asdict(one) for one in test.source.fingerprints]
    return _PAIR.sub(r"[\1, \2]", json.dumps(content, indent=2, ensure_ascii=False)) + "\n"


def to_toml(*tests: Test) -> str:
    """The project's own form: words and templates, so that every text keeps its word. The tests have one source."""
    source = tests[0].source
    lines = ["[source]"]
    given = (
        (key, getattr(source, key)) for key in ("name", "language", "citation", "doi", "licence", "version", "note")
    )
    lines.extend(f"{key} = {_quoted(value)}" for key, value in given if value)
    if source.supplementary:
        lines.append("supplementary = true")
    if source.searched_models:
        lines.append(f"searched_models = {_listed(source.searched_models)}")
    for one in source.fingerprints:
        lines += ["", "[[source.fingerprints]]"]
        lines += [f"targets = {_listed(one.targets)}", f"attributes = {_listed(one.attributes)}"]
        lines.append(f"cosines = [{', '.join(str(list(row)) for row in one.cosines)}]")
    concepts = {_key(tests, test, role): test.concept(role) for test in tests for role in ROLES}
    for key, concept in concepts.items():
        lines += ["", f"[concepts.{_quoted(key)}]", f"label = {_quoted(concept.label)}"]
        if concept.source:
            lines.append(f"source = {_quoted(concept.source)}")
        if concept.gender:
            lines.append(f"gender = {_quoted(concept.gender)}")
        fields = given_fields(concept.given) if concept.given else {"words": concept.words}
        lines += [f"{field} = {_listed(values)}" for field, values in fields.items()]
        if concept.clusters:
            lines.append(f"clusters = [{', '.join(map(_listed, concept.clusters))}]")
    for test in tests:
        lines += ["", f"[tests.{_quoted(test.name)}]", f"title = {_quoted(test.title)}"]
        lines += [f"{role} = {_quoted(_key(tests, test, role))}" for role in ROLES]
        lines += [f"{key} = {_quoted(value)}" for key, value in description_of(test).items() if value is not None]
        for part, templates in (("targets", test.targets), ("attributes", test.attributes)):
            if templates is not None:
                lines.append(f"{part} = {_quoted(templates.name)}")
    used = [templates for test in tests for templates in (test.targets, test.attributes) if templates is not None]
    for templates in {t.name: t for t in used}.values():
        lines += ["", *_template_lines(templates)]
    return "\n".join(lines) + "\n"


def _key(tests: Sequence[Test], test: Test, role: str) -> str:
    """The name of a concept in the file: its role, or where tests share concepts its own."""
    return role if len(tests) == 1 else test.concept(role).name


def _template_lines(templates: TemplateSet) -> list[str]:
    name = f"sets.{_quoted(templates.name)}"
    lines = [f"[{name}]", f"title = {_quoted(templates.title)}", f"kind = {_quoted(templates.kind)}"]
    for key, pairs in (("plurals", templates.plurals), ("articles", templates.articles)):
        if pairs:
            lines += ["", f"[{name}.{key}]", *(f"{_quoted(a)} = {_quoted(b)}" for a, b in pairs)]
    for word_class in templates.classes:
        lines += ["", f"[[{name}.classes]]", f"name = {_quoted(word_class.name)}", f"rule = {_quoted(word_class.rule)}"]
        if word_class.words:
            lines.append(f"words = {_listed(sorted(word_class.words))}")
        if word_class.except_ending:
            lines.append(f"except_ending = {_quoted(word_class.except_ending)}")
        lines.append(f"templates = {_listed(word_class.templates)}")
    return lines


def _quoted(text: str) -> str:
    """A TOML basic string; JSON escapes are a subset of TOML's, but JSON lets one control character stand."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _listed(values: Sequence[str] | Sequence[list[int]]) -> str:
    return "[" + ", ".join(_quoted(value) if isinstance(value, str) else str(value) for value in values) + "]"
