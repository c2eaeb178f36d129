"""What to cite: the sources of the tests that were used, and the methods."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

from biassay.report.publish.latex import escape
from biassay.report.publish.layout import clean
from biassay.report.words_stereotypes import measure_name
from biassay.results.discovery import Discovery
from biassay.results.run import Run
from biassay.results.stereotypes import IntersectionRecord, Stereotypes

__all__ = ["Citation", "citations", "to_bibtex", "to_text"]

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
        *others, last = map(_first_name_first, fields["author"].split(" and "))
        author = f"{', '.join(others)} and {last}" if others else last
        venue = fields.get("journal") or fields.get("booktitle", "")
        number = f"({fields['number']})" if "number" in fields else ""
        volume = f" {fields['volume']}{number}" if "volume" in fields else ""
        pages = f", {fields['pages']}" if "pages" in fields else ""
        doi = f" doi:{fields['doi']}" if "doi" in fields else ""
        return f"{author} {fields['year']}. {fields['title']}. {venue}{volume}{pages}.{doi}"


@dataclass(frozen=True)
class _Use:
    """A work by its key, or by a free text and a name to make a key of; and what it is cited for."""

    for_what: str
    work: str = ""
    text: str = ""
    name: str = ""


def citations(*found: Run | Discovery | Stereotypes) -> tuple[Citation, ...]:
    """Every work once, in the order of first use, with all that it is cited for.

    Sources come before methods, and biassay itself comes last. A source that is not known but names a known work is
    cited beside that work.
    """
    uses = [*_tests([one for one in found if isinstance(one, Run)])]
    uses += [use for one in found if not isinstance(one, Run) for use in _sources(one)]
    uses += [use for one in found for use in _methods(one)]
    works: dict[tuple[str, str], list[_Use]] = {}
    for use in uses:
        works.setdefault((use.work, use.text), []).append(use)
    keys: set[str] = set(_references())
    return (*(_citation(work, text, cited, keys) for (work, text), cited in works.items()), *_program(found))


def to_text(cited: Iterable[Citation]) -> str:
    """A line a work, and what it is cited for."""
    return "".join(f"{one.text} (for: {'; '.join(one.uses)})\n" for one in cited)


def to_bibtex(cited: Iterable[Citation]) -> str:
    """An entry a work; what it is cited for stands above it, where BibTeX reads nothing but an at sign."""
    return "\n".join(_entry(one) for one in cited if one.type != _UNSTATED)


@cache
def _references() -> Mapping[str, Mapping[str, str]]:
    text = files("biassay.report.publish").joinpath("references.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _citation(work: str, text: str, cited: Iterable[_Use], keys: set[str]) -> Citation:
    cited = list(cited)
    uses = tuple(dict.fromkeys(clean(use.for_what) for use in cited))
    if work:
        entry = _references()[work]
        fields = tuple((name, value) for name, value in entry.items() if name not in _NOT_FIELDS)
        return Citation(work, entry["type"], fields, uses)
    if text == _NOT_STATED:
        return Citation("", _UNSTATED, (("title", "no source stated"),), uses)
    return Citation(_key(cited[0].name, keys), "misc", (("title", clean(text)),), uses)


def _program(found: Iterable[Run | Discovery | Stereotypes]) -> Iterator[Citation]:
    versions = sorted({one.manifest.versions.get("biassay", "unknown") for one in found})
    if versions:
        own = _citation("biassay", "", [_Use("the measurements")], set())
        note = f"{'Version' if len(versions) == 1 else 'Versions'} {clean(', '.join(versions))}"
        yield replace(own, fields=(*own.fields, ("note", note)))


def _key(name: str, keys: set[str]) -> str:
    """A key of letters, digits and hyphens that no other work has."""
    base = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "tests"
    key, number = base, 2
    while key in keys:
        key, number = f"{base}-{number}", number + 1
    keys.add(key)
    return key


def _tests(runs: Iterable[Run]) -> Iterator[_Use]:
    tests: dict[tuple[str, str], dict[str, None]] = {}
    for test in (test for run in runs for test in run.manifest.tests):
        tests.setdefault((test.citation, test.source), {})[test.name] = None
    for (citation, source), names in tests.items():
        yield from _named(citation, source, f"{'test' if len(names) == 1 else 'tests'} {', '.join(names)}")


def _sources(found: Discovery | Stereotypes) -> Iterator[_Use]:
    if isinstance(found, Discovery):
        yield from _named(found.manifest.citation, found.manifest.grouping, f"groups of {found.manifest.grouping}")
        return
    yield from _named(found.manifest.citation, found.manifest.abc, f"groups and traits of {found.manifest.abc}")
    if any(crossed.rated is not None for crossed in _intersections(found)):
        yield _Use("what people say of paired groups", "ghavami2013")


def _named(citation: str, name: str, for_what: str) -> Iterator[_Use]:
    """The known work that a citation is of, with the place in it; or the citation itself and the works it names."""
    for work, entry in _references().items():
        start = entry.get("cited_as")
        if start and citation.startswith(start):
            place = _EDGES.sub("", citation.removeprefix(start))
            yield _Use(f"{for_what} ({place})" if place else for_what, work)
            return
    yield _Use(for_what, text=citation, name=name)
    for work, entry in _references().items():
        if entry["title"].casefold() in citation.casefold():
            yield _Use(for_what, work)


def _methods(found: Run | Discovery | Stereotypes) -> Iterator[_Use]:
    if isinstance(found, Run):
        yield _Use("the method WEAT", "caliskan2017")
        if any(result.level == "sentence" for result in found.results):
            yield _Use("the method SEAT", "may2019")
        if found.manifest.contexts is not None:
            yield _Use("the method CEAT", "guo2021")
        if any(result.p_value_holm is not None or result.p_value_by_word_holm is not None for result in found.results):
            yield _Use("correction for the number of tests", "holm1979")
    elif isinstance(found, Discovery):
        yield _Use("the methods IBD and EIBD", "guo2021")
        yield _Use("correction for the number of words", "benjamini1995")
    else:
        own = [measure_name(name) for name in found.manifest.measures if name != "ceat"]
        yield _Use(f"the measures {', '.join(own)}" if own else "stereotypes in the ABC model", "cao2022")
        if "ceat" in found.manifest.measures:
            yield _Use("the method CEAT", "guo2021")
        if any(trait.q_value is not None for crossed in _intersections(found) for trait in crossed.emergent):
            yield _Use("correction for the number of traits", "benjamini1995")


def _intersections(found: Stereotypes) -> Iterator[IntersectionRecord]:
    return (crossed for result in found.results for crossed in result.intersections)


def _first_name_first(name: str) -> str:
    last, _, first = name.partition(", ")
    return f"{first} {last}" if first else last


def _entry(citation: Citation) -> str:
    named = any(name == "author" for name, _ in citation.fields)
    fields = citation.fields if named else (*citation.fields, ("key", citation.key))  # what styles sort and label by
    lines = [f"  {name} = {{{_value(name, value)}}}" for name, value in fields]
    uses = "; ".join(citation.uses).replace("@", "(at)")
    return f"% For: {uses}\n@{citation.type}{{{citation.key},\n" + ",\n".join(lines) + "\n}\n"


def _value(name: str, value: str) -> str:
    """Titles in a second pair of braces, for styles change their capitals."""
    if name in _PLAIN:
        return value
    return f"{{{escape(value)}}}" if name == "title" else escape(value)
