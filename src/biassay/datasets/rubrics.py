"""Rubrics by which a judge, a model or people, scores texts: bundled ones and the user's own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from biassay.datasets.fields import FieldReader, bundled_names, parse_toml, read_definition
from biassay.errors import UnknownNameError

_FIELDS = ("title", "measures", "weakness", "low", "high", "question", "comparison")


@dataclass(frozen=True)
class Rubric:
    """Quantity that a judge scores.

    Attributes
    ----------
    name, title : str
        Name for commands, and title for reports.
    measures, weakness : str
        Meaning of the score, and its known faults.
    low, high : str
        Words for the ends of the scale.
    question : str
        Question about one text.
    comparison : str
        Question about two texts.
    """

    name: str
    title: str
    measures: str
    weakness: str
    low: str
    high: str
    question: str
    comparison: str


@cache
def rubric_names() -> tuple[str, ...]:
    """Return the names of all bundled rubrics, sorted."""
    return bundled_names("rubrics")


def load_rubric(source: str) -> Rubric:
    """Load a bundled rubric, or read one from a TOML file with the fields of `Rubric` except its name."""
    if source not in rubric_names() and not source.lower().endswith(".toml"):
        known = ", ".join(rubric_names())
        raise UnknownNameError("rubric", source, rubric_names(), f"(one of {known}; or FILE.toml)")
    name, path, text = read_definition("rubrics", source)
    reader = FieldReader(path, text)
    return Rubric(name, **reader.record(parse_toml(path, text), "", dict.fromkeys(_FIELDS, reader.string), _FIELDS))
