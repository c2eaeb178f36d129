"""Collect the works to cite for tests, models and methods."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from biassay.reporting.formats import clean_line
from biassay.results.run_data import ModelRecord, RunData
from biassay.results.views import get_published_name

if TYPE_CHECKING:
    from biassay.reporting.presenter import Presenter

__all__ = [
    "Citation",
    "CitationUse",
    "cite_model",
    "cite_source",
    "cite_tests",
    "collect_citations",
    "to_bibtex",
    "to_text",
]

_NOT_FIELDS = ("type", "cited_as")
_NOT_STATED = "not stated"  # the citation of what a file without a source defines
_UNSTATED = "unstated"
_PLAIN = ("doi", "key")  # fields that are no text
_EDGES = re.compile(r"^[\s,;]*(?:and )?(?:its )?|[\s,;.]+$")


@dataclass(frozen=True)
class Citation:
    """A work, the fields of its entry, and what it is cited for.

    A source of the user's own has the type ``misc``, and its free text is the title. One that is not stated has the
    type ``unstated``, and is no work to refer to.
    """

    key: str
    type: str
    fields: tuple[tuple[str, str], ...]
    uses: tuple[str, ...]

    @property
    def text(self) -> str:
        """Authors, year, title and venue in a line."""
        fields = dict(self.fields)
        if self.type in ("misc", _UNSTATED):
            return fields["title"]
        if self.type == "manual":
            return f"{fields['organization']}. {fields['title']}. {fields['note']}."
        *others, last = map(_reorder_name, fields["author"].split(" and "))
        author = f"{', '.join(others)} and {last}" if others else last
        venue = fields.get("journal") or fields.get("booktitle", "")
        number = f"({fields['number']})" if "number" in fields else ""
        volume = f" {fields['volume']}{number}" if "volume" in fields else ""
        pages = f", {fields['pages']}" if "pages" in fields else ""
        doi = f" doi:{fields['doi']}" if "doi" in fields else ""
        return f"{author} {fields['year']}. {fields['title']}. {venue}{volume}{pages}.{doi}"

    @property
    def short(self) -> str:
        """Author and year, as a text names a work."""
        fields = dict(self.fields)
        if "author" not in fields:
            return fields.get("organization") or fields["title"]
        names = [author.partition(", ")[0] for author in fields["author"].split(" and ")]
        who = f"{names[0]} et al." if len(names) > 2 else " and ".join(names)
        return f"{who} {fields['year']}"


@dataclass(frozen=True)
class CitationUse:
    """A work by its key, or by a free text and a name to make a key of; and what it is cited for."""

    for_what: str
    work: str = ""
    text: str = ""
    name: str = ""


def collect_citations(runs: Sequence[tuple[Presenter, RunData]]) -> tuple[Citation, ...]:
    """Every work once, in the order of first use, with all that it is cited for.

    Sources come before models and methods, and biassay itself comes last. A source that is not known but names a known
    work is cited beside that work.
    """
    uses: list[CitationUse] = []
    for presenter, of_study in groupby(runs, itemgetter(0)):
        uses += presenter.sources([run for _, run in of_study])
    uses += [use for _, run in runs for one in run.manifest.models for use in cite_model(one)]
    uses += [use for presenter, run in runs for use in presenter.methods(run)]
    works: dict[tuple[str, str], list[CitationUse]] = {}
    for use in uses:
        works.setdefault((use.work, use.text), []).append(use)
    keys: set[str] = set(_load_references())
    cited = (_make_citation(work, text, cited, keys) for (work, text), cited in works.items())
    return (*cited, *_cite_program(run for _, run in runs))


def to_text(cited: Iterable[Citation]) -> str:
    """A line a work, and what it is cited for."""
    return "".join(f"{one.text} (for: {'; '.join(one.uses)})\n" for one in cited)


def to_bibtex(cited: Iterable[Citation]) -> str:
    """An entry a work; what it is cited for stands above it, where BibTeX reads nothing but an at sign."""
    return "\n".join(_format_entry(one) for one in cited if one.type != _UNSTATED)


@cache
def _load_references() -> Mapping[str, Mapping[str, str]]:
    text = files("biassay.reporting").joinpath("references.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _make_citation(work: str, text: str, cited: Iterable[CitationUse], keys: set[str]) -> Citation:
    cited = list(cited)
    uses = tuple(dict.fromkeys(clean_line(use.for_what) for use in cited))
    if work:
        entry = _load_references()[work]
        fields = tuple((name, value) for name, value in entry.items() if name not in _NOT_FIELDS)
        return Citation(work, entry["type"], fields, uses)
    if text == _NOT_STATED:
        return Citation("", _UNSTATED, (("title", "no source stated"),), uses)
    return Citation(_make_key(cited[0].name, keys), "misc", (("title", clean_line(text)),), uses)


def _cite_program(runs: Iterable[RunData]) -> Iterator[Citation]:
    made = [one.manifest for one in runs]
    versions = sorted({one.versions.get("biassay", "unknown") for one in made})
    if versions:
        own = _make_citation("biassay", "", [CitationUse("the measurements")], set())
        year = max(one.created for one in made)[:4]
        note = f"{'Version' if len(versions) == 1 else 'Versions'} {clean_line(', '.join(versions))}"
        yield replace(own, fields=(*own.fields, ("year", year), ("note", note)))


def _make_key(name: str, keys: set[str]) -> str:
    """A key of letters, digits and hyphens that no other work has."""
    base = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "tests"
    key, number = base, 2
    while key in keys:
        key, number = f"{base}-{number}", number + 1
    keys.add(key)
    return key


def cite_source(citation: str, name: str, for_what: str) -> Iterator[CitationUse]:
    """The known work that a citation is of, with the place in it; or the citation itself and the works it names."""
    for work, entry in _load_references().items():
        start = entry.get("cited_as")
        if start and citation.startswith(start):
            place = _EDGES.sub("", citation.removeprefix(start))
            yield CitationUse(f"{for_what} ({place})" if place else for_what, work)
            return
    yield CitationUse(for_what, text=citation, name=name)
    for work, entry in _load_references().items():
        if entry["title"].casefold() in citation.casefold():
            yield CitationUse(for_what, work)


def cite_tests(runs: Iterable[RunData]) -> Iterator[CitationUse]:
    """The sources of the tests that runs were measured with."""
    tests: dict[tuple[str, str], dict[str, None]] = {}
    for test in (test for run in runs for test in run.manifest.inputs.tests):
        tests.setdefault((test.citation, test.source), {})[test.name] = None
    for (citation, source), names in tests.items():
        yield from cite_source(citation, source, f"{'test' if len(names) == 1 else 'tests'} {', '.join(names)}")


def cite_model(record: ModelRecord) -> Iterator[CitationUse]:
    """The work that a model is from, where its family says so."""
    title, work = get_published_name(record)
    if work in _load_references():
        yield CitationUse(f"the model {title}", work)
    elif work:
        yield CitationUse(f"the model {title}", text=work, name=record.family)


def _reorder_name(name: str) -> str:
    last, _, first = name.partition(", ")
    return f"{first} {last}" if first else last


def _format_entry(citation: Citation) -> str:
    named = any(name == "author" for name, _ in citation.fields)
    fields = citation.fields if named else (*citation.fields, ("key", citation.key))  # what styles sort and label by
    lines = [f"  {name} = {{{_format_value(name, value)}}}" for name, value in fields]
    uses = "; ".join(citation.uses).replace("@", "(at)")
    return f"% For: {uses}\n@{citation.type}{{{citation.key},\n" + ",\n".join(lines) + "\n}\n"


def _format_value(name: str, value: str) -> str:
    """Titles in a second pair of braces, for styles change their capitals."""
    from biassay.reporting.latex import escape  # a page cites nothing in LaTeX

    if name in _PLAIN:
        return value
    return f"{{{escape(value)}}}" if name == "title" else escape(value)
