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

from biassay.grouping import group_pairs
from biassay.reporting.formats import clean_line
from biassay.results.run_data import ModelRecord, RunData
from biassay.results.views import get_published_name

if TYPE_CHECKING:
    from biassay.reporting.presenter import Presenter


_NOT_FIELDS = ("type", "cited_as")
_NOT_STATED = "not stated"  # citation of tests whose file states no source
_UNSTATED = "unstated"
_PLAIN = ("doi", "key")  # fields that are not text
_EDGES = re.compile(r"^[\s,;]*(?:and )?(?:its )?|[\s,;.]+$")


@dataclass(frozen=True)
class Citation:
    """A work, the fields of its entry, and the purpose of the citation.

    A source of the user's own has the type ``misc``, and its free text is the title. An unstated source has the type
    ``unstated`` and is not cited.
    """

    key: str
    type: str
    fields: tuple[tuple[str, str], ...]
    uses: tuple[str, ...]

    @property
    def text(self) -> str:
        """Return authors, year, title and venue in one line."""
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
        """Return author and year, as in running text."""
        fields = dict(self.fields)
        if "author" not in fields:
            return fields.get("organization") or fields["title"]
        names = [author.partition(", ")[0] for author in fields["author"].split(" and ")]
        who = f"{names[0]} et al." if len(names) > 2 else " and ".join(names)
        return f"{who} {fields['year']}"


@dataclass(frozen=True)
class CitationUse:
    """A citation: a work by its key, or a free text with a name for its key, and the purpose."""

    for_what: str
    work: str = ""
    text: str = ""
    name: str = ""


def collect_citations(runs: Sequence[tuple[Presenter, RunData]]) -> tuple[Citation, ...]:
    """List every work once, in the order of first use, with everything that it is cited for.

    Sources come before models and methods, and biassay itself comes last. An unknown source that names a known work is
    cited together with it.
    """
    uses: list[CitationUse] = []
    for presenter, of_study in groupby(runs, itemgetter(0)):
        uses += presenter.sources([run for _, run in of_study])
    uses += [use for _, run in runs for record in run.manifest.models for use in cite_model(record)]
    uses += [use for presenter, run in runs for use in presenter.methods(run)]
    works = group_pairs(((use.work, use.text), use) for use in uses)
    keys: set[str] = set(_load_references())
    cited = (_make_citation(work, text, cited, keys) for (work, text), cited in works.items())
    return (*cited, *_cite_program(run for _, run in runs))


def to_text(cited: Iterable[Citation]) -> str:
    """Format one line per work, with the purpose of the citation."""
    return "".join(f"{work.text} (for: {'; '.join(work.uses)})\n" for work in cited)


def to_bibtex(cited: Iterable[Citation]) -> str:
    """Format one BibTeX entry per work, with the purpose of the citation in a comment above."""
    return "\n".join(_format_entry(work) for work in cited if work.type != _UNSTATED)


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
    made = [run.manifest for run in runs]
    versions = sorted({manifest.versions.get("biassay", "unknown") for manifest in made})
    if versions:
        own = _make_citation("biassay", "", [CitationUse("the measurements")], set())
        year = max(manifest.created for manifest in made)[:4]
        note = f"{'Version' if len(versions) == 1 else 'Versions'} {clean_line(', '.join(versions))}"
        yield replace(own, fields=(*own.fields, ("year", year), ("note", note)))


def _make_key(name: str, keys: set[str]) -> str:
    """Make a unique key of letters, digits and hyphens."""
    base = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "tests"
    key, number = base, 2
    while key in keys:
        key, number = f"{base}-{number}", number + 1
    keys.add(key)
    return key


def cite_source(citation: str, name: str, for_what: str) -> Iterator[CitationUse]:
    """Yield the works that a citation refers to.

    If the citation begins like a known work, yield only that work, with the place cited in it. Otherwise, yield the
    citation itself and all known works whose titles it contains.

    Parameters
    ----------
    citation : str
        Citation as a data file gives it.
    name : str
        Name of the source, for the key of a citation that is not a known work.
    for_what : str
        Use of the source, such as "test weat6".

    Yields
    ------
    CitationUse
    """
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
    """List the sources of the tests of runs."""
    tests: dict[tuple[str, str], dict[str, None]] = {}
    for test in (test for run in runs for test in run.manifest.inputs.tests):
        tests.setdefault((test.citation, test.source), {})[test.name] = None
    for (citation, source), names in tests.items():
        yield from cite_source(citation, source, f"{'test' if len(names) == 1 else 'tests'} {', '.join(names)}")


def cite_model(record: ModelRecord) -> Iterator[CitationUse]:
    """Cite the work of a model, if its backend names one."""
    title, work = get_published_name(record)
    if work in _load_references():
        yield CitationUse(f"the model {title}", work)
    elif work:
        yield CitationUse(f"the model {title}", text=work, name=record.backend)


def _reorder_name(name: str) -> str:
    last, _, first = name.partition(", ")
    return f"{first} {last}" if first else last


def _format_entry(citation: Citation) -> str:
    named = any(name == "author" for name, _ in citation.fields)
    # field that styles sort and label by
    fields = citation.fields if named else (*citation.fields, ("key", citation.key))
    lines = [f"  {name} = {{{_format_value(name, value)}}}" for name, value in fields]
    uses = "; ".join(citation.uses).replace("@", "(at)")
    return f"% For: {uses}\n@{citation.type}{{{citation.key},\n" + ",\n".join(lines) + "\n}\n"


def _format_value(name: str, value: str) -> str:
    """Add a second pair of braces to titles, because styles change their capitals."""
    from biassay.reporting.latex import escape  # a website is not a LaTeX citation

    if name in _PLAIN:
        return value
    return f"{{{escape(value)}}}" if name == "title" else escape(value)
