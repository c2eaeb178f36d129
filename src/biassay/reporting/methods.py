"""Cite works and write the methods paragraph of a paper."""

from __future__ import annotations

import dataclasses
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
from biassay.reporting import latex, markdown
from biassay.reporting.document import Definitions, Section, Text
from biassay.reporting.formats import clean_line
from biassay.reporting.formats import format_value as as_read
from biassay.results.comparison import Comparison
from biassay.results.run_data import Manifest, ModelRecord, RunData, get_published_name, record_labels

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


_MODELS = 12  # models that the paragraph names
_REVISION = 12  # characters of it, where it is a hash
_HASH = re.compile(r"[0-9a-f]{16,}")
_BRACKETS = re.compile(r" *\([^()]*\)")
_NOT_SAID = ("", None, ())


@dataclass(frozen=True)
class MethodsSentence:
    """A sentence without its full stop, and its sources: keys of works, or the user's citations."""

    text: str
    works: tuple[str, ...] = ()


def make_paragraphs(
    runs: Sequence[tuple[Presenter, RunData]], compared: tuple[Presenter, Comparison] | None = None
) -> list[list[MethodsSentence]]:
    """Make one paragraph per run, and one on how models were compared."""
    found = [list(_make_sentences(presenter, run)) for presenter, run in runs]
    if compared is not None:
        presenter, comparison = compared
        found.append(list(presenter.comparison_methods(comparison)))
    return [sentences for sentences in found if sentences]


def methods_latex(paragraphs: Iterable[Sequence[MethodsSentence]], cited: Sequence[Citation]) -> str:
    """Format paragraphs in LaTeX, which cite works by the keys of the bibliography."""

    def write(text: str, works: Sequence[Citation]) -> str:
        keys = ",".join(work.key for work in works)
        return latex.escape(clean_line(text)) + (f"~\\cite{{{keys}}}." if keys else ".")

    body = "\n\n".join("\n".join(write(*one) for one in _cite(sentences, cited)) for sentences in paragraphs)
    return f"% For the section on methods; the works are in references.bib.\n{body}\n"


def methods_markdown(paragraphs: Iterable[Sequence[MethodsSentence]], cited: Sequence[Citation]) -> str:
    """Format paragraphs in Markdown, which cite works by authors and years."""

    def write(text: str, works: Sequence[Citation]) -> str:
        names = "; ".join(dict.fromkeys(work.short for work in works))
        return markdown.escape(clean_line(f"{text} [{names}]." if names else f"{text}."))

    return "\n\n".join(" ".join(write(*one) for one in _cite(sentences, cited)) for sentences in paragraphs) + "\n"


def _cite(sentences: Iterable[MethodsSentence], cited: Iterable[Citation]) -> Iterator[tuple[str, list[Citation]]]:
    """Yield the text of every sentence with the works that it cites."""
    known = {work.key: work for work in cited if work.key}
    known |= {dict(work.fields)["title"]: work for work in known.values() if work.type == "misc"}
    for one in sentences:
        works = {known[name].key: known[name] for name in one.works if name in known}
        yield one.text, list(works.values())


def _make_sentences(presenter: Presenter, run: RunData) -> Iterator[MethodsSentence]:
    paragraphs = list(presenter.methods_paragraph(run))
    yield from (*paragraphs[:1], *_name_published_models(run), *paragraphs[1:])
    if run.manifest.status != "complete":
        yield MethodsSentence("The run is not finished")


def _name_published_models(run: RunData) -> Iterator[MethodsSentence]:
    """Return the published model that a short name means."""
    for label, record in zip(record_labels(run), run.manifest.models, strict=True):
        if title := get_published_name(record)[0]:
            yield MethodsSentence(f"The model {label} is {title}", list_works(cite_model(record)))


def make_default_methods(run: RunData, uses: Iterable[CitationUse]) -> Iterator[MethodsSentence]:
    """Yield sentences from the manifest of any study: version, models and settings."""
    made = run.manifest
    own = f" by the study {made.study} of {made.package} {made.versions.get(made.package, '')}".rstrip()
    by = "" if made.package == "biassay" else own
    yield MethodsSentence(
        f"With biassay {get_version(run)} we measured {format_models(run)}{by}", ("biassay", *list_works(uses))
    )
    fields = [(field.name, getattr(made.settings, field.name)) for field in dataclasses.fields(made.settings)]
    settings = [f"{name} = {as_read('text', value)}" for name, value in fields if value not in _NOT_SAID]
    if settings:
        yield MethodsSentence(f"Settings: {', '.join(settings)}")


def format_models(run: RunData) -> str:
    """List models with revisions and settings; of very many only their number."""
    models = run.manifest.models
    if len(models) > _MODELS:
        return f"{len(models):,} models"
    named = [_format_model(label, record) for label, record in zip(record_labels(run), models, strict=True)]
    return f"{'the model' if len(named) == 1 else f'{len(named)} models:'} {join_names(named)}"


def _format_model(label: str, record: ModelRecord) -> str:
    revision = _BRACKETS.sub("", record.revision or "")
    known = [f"revision {revision[:_REVISION] if _HASH.fullmatch(revision) else revision}"] if revision else []
    about = "; ".join([*(f"{name}={value}" for name, value in record.settings.items()), *known])
    return f"{label} ({about})" if about else label


def join_names(names: Sequence[str], last: str = "and") -> str:
    """Join names in a sentence: one, two and three."""
    *first, end = names or ("none",)
    return f"{', '.join(first)} {last} {end}" if first else end


def list_works(uses: Iterable[CitationUse]) -> tuple[str, ...]:
    """List the works that sentences cite for uses."""
    return tuple(dict.fromkeys(use.work or clean_line(use.text) for use in uses))


def make_seed_sentence(found: Iterable[int]) -> MethodsSentence:
    """Name the random seeds."""
    seeds = [str(seed) for seed in sorted(set(found))]
    return MethodsSentence(f"The random {'seed was' if len(seeds) == 1 else 'seeds were'} {join_names(seeds)}")


_MOST_MODELS = 40


def list_provenance(manifest: Manifest) -> Iterator[tuple[str, str]]:
    """List dates, models and versions of a run as terms with their descriptions."""
    yield "Started, finished", f"{manifest.created}, {manifest.finished or 'not finished'}"
    for model in manifest.models[:_MOST_MODELS]:
        settings = "".join(f", {name} {value}" for name, value in model.settings.items())
        tokens = (
            f", {model.tokens_in:,} tokens read and {model.tokens_out:,} written"
            if model.tokens_in or model.tokens_out
            else ""
        )
        yield (
            f"Model {model.name}",
            f"{model.revision or 'revision unknown'}{settings}; {model.texts} distinct texts, {model.encoded} encoded "
            f"in this run, {model.seconds} s{tokens}",
        )
    if len(manifest.models) > _MOST_MODELS:
        yield "More models", f"{len(manifest.models) - _MOST_MODELS}; see manifest.json"
    yield "Versions", ", ".join(f"{name} {version}" for name, version in manifest.versions.items())


def make_methods_section(manifest: Manifest, settings: Iterable[tuple[str, str]], meaning: str = "") -> Section:
    """Make the last section of a report: how to read the numbers, settings, models and versions.

    Parameters
    ----------
    manifest : Manifest
    settings : iterable of (str, str)
        Settings of the study with their values.
    meaning : str
        How to read the numbers.
    """
    text = (Text(meaning),) if meaning else ()
    return Section("methods", "Methods and provenance", (*text, Definitions((*settings, *list_provenance(manifest)))))


def get_version(run: RunData) -> str:
    """Return the version of biassay that measured the run."""
    return run.manifest.versions.get("biassay", "unknown")
