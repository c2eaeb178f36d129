"""Write the methods paragraph of a paper."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from biassay.reporting import latex, markdown
from biassay.reporting.citations import Citation, CitationUse, cite_model
from biassay.reporting.document import Definitions, Section, Text
from biassay.reporting.formats import clean_line
from biassay.reporting.formats import format_value as as_read
from biassay.reporting.model_card import get_version
from biassay.results.comparison import Comparison
from biassay.results.run_data import Manifest, ModelRecord, RunData
from biassay.results.views import get_published_name, record_labels

if TYPE_CHECKING:
    from biassay.reporting.presenter import Presenter


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


def methods_latex(paragraphs: Iterable[Sequence[MethodsSentence]], cited: Iterable[Citation]) -> str:
    """Format paragraphs in LaTeX, which cite works by the keys of the bibliography."""
    known = {name: work.key for work in cited if work.key for name in _list_names(work)}

    def written(one: MethodsSentence) -> str:
        keys = dict.fromkeys(known[work] for work in one.works if work in known)
        return latex.escape(clean_line(one.text)) + (f"~\\cite{{{','.join(keys)}}}." if keys else ".")

    body = "\n\n".join("\n".join(map(written, sentences)) for sentences in paragraphs)
    return f"% For the section on methods; the works are in references.bib.\n{body}\n"


def methods_markdown(paragraphs: Iterable[Sequence[MethodsSentence]], cited: Iterable[Citation]) -> str:
    """Format paragraphs in Markdown, which cite works by authors and years."""
    known = {name: work.short for work in cited if work.key for name in _list_names(work)}

    def written(one: MethodsSentence) -> str:
        names = "; ".join(dict.fromkeys(known[work] for work in one.works if work in known))
        return markdown.escape(clean_line(f"{one.text} [{names}]." if names else f"{one.text}."))

    return "\n\n".join(" ".join(map(written, sentences)) for sentences in paragraphs) + "\n"


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


def _list_names(citation: Citation) -> tuple[str, ...]:
    """Return the key of a work, or the words of the user."""
    return (citation.key, dict(citation.fields)["title"]) if citation.type == "misc" else (citation.key,)


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
