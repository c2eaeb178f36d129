"""What a test is about and how its texts were made: fields of its file, never read out of names."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any, cast, get_args

from biassay.errors import StimulusError
from biassay.stimuli.fields import FieldReader, Location
from biassay.stimuli.model import About, Direction, TemplateKind, Test

__all__ = [
    "DESCRIPTION_FIELDS",
    "Description",
    "described",
    "description_of",
    "read_description",
    "read_pair_topics",
    "topics",
]

DESCRIPTION_FIELDS = frozenset({"about", "topic", "variant_of", "template", "direction", "language"})


@dataclass(frozen=True)
class Description:
    """The fields as a file states them; None where it does not."""

    about: About | None = None
    topic: str | None = None
    variant_of: str | None = None
    template: TemplateKind | None = None
    direction: Direction | None = None
    language: str | None = None


@cache
def topics() -> Mapping[str, str]:
    """The topics that a test can have, each with what it stands for."""
    return tomllib.loads((resources.files("biassay.stimuli") / "data" / "topics.toml").read_text("utf-8"))


def read_description(reader: FieldReader, fields: Mapping[str, Any], where: str) -> Description:
    """What ``fields`` state; a value that is not allowed is an error."""
    allowed = {
        "about": get_args(About),
        "topic": tuple(topics()),
        "template": get_args(TemplateKind),
        "direction": get_args(Direction),
    }

    def read(key: str) -> tuple[str, str]:
        if key in allowed:
            return key, reader.choice(fields[key], f"{where}.{key}", allowed[key])
        return key, reader.string(fields[key], f"{where}.{key}")

    stated = dict(reader.each(read, (key for key in (*allowed, "variant_of", "language") if key in fields)))
    return Description(**cast("dict[str, Any]", stated))


def read_pair_topics(reader: FieldReader, value: Any, where: str, pairs: Sequence[str]) -> dict[str, str]:
    """The topic of each pair of groups, from a table of topics and their pairs (gender = ["men-women"])."""
    found: dict[str, str] = {}
    for topic, named in reader.table(value, where, set(topics())).items():
        for pair in reader.strings(named, f"{where}.{topic}"):
            reader.choice(pair, f"{where}.{topic}", pairs)
            if found.setdefault(pair, topic) != topic:
                reader.fail(f"{where}.{topic}", f"the pair {pair!r} has the topic {found[pair]!r} too; name one")
    return found


def described(test: Test, stated: Description, where: Location) -> Test:
    """A test with what its file states of it; templates that its texts cannot be from are an error."""
    template = "given" if stated.template in (None, "none") else stated.template
    made = replace(
        test,
        about=stated.about or test.about,
        topic=stated.topic or test.topic,
        variant_of=stated.variant_of,
        direction=stated.direction,
        stated_language=stated.language,
        given_template=template,
    )
    if stated.template not in (None, made.template):
        raise StimulusError(
            f"{where}: the field 'template' says {stated.template!r}, and the texts of the test are {made.template!r}; "
            "remove it, or state what they are"
        )
    return made


def description_of(test: Test) -> dict[str, str | None]:
    """The fields of a test by name."""
    return {
        "about": test.about,
        "topic": test.topic,
        "variant_of": test.variant_of,
        "template": test.template,
        "direction": test.direction,
        "language": test.language,
    }
