"""Write the methods paragraph of a paper."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from biassay.reporting import latex, markdown
from biassay.reporting.citations import Citation, CitationUse, cite_model
from biassay.reporting.formats import clean_line
from biassay.reporting.formats import format_value as as_read
from biassay.reporting.model_card import get_version
from biassay.results.comparison import Comparison
from biassay.results.run_data import ModelRecord, RunData
from biassay.results.views import get_published_name, record_labels

if TYPE_CHECKING:
    from biassay.reporting.presenter import Presenter

__all__ = [
    "MethodsSentence",
    "format_models",
    "join_names",
    "list_works",
    "make_default_methods",
    "make_paragraphs",
    "make_seed_sentence",
    "methods_latex",
    "methods_markdown",
]

_MODELS = 12  # that are named
_REVISION = 12  # characters of it, where it is a hash
_HASH = re.compile(r"[0-9a-f]{16,}")
_BRACKETS = re.compile(r" *\([^()]*\)")
_NOT_SAID = ("", None, ())


@dataclass(frozen=True)
class MethodsSentence:
    """A sentence without its full stop, and what it rests on: keys of works, or citations of the user's own."""

    text: str
    works: tuple[str, ...] = ()


def make_paragraphs(
    runs: Sequence[tuple[Presenter, RunData]], compared: tuple[Presenter, Comparison] | None = None
) -> list[list[MethodsSentence]]:
    """A paragraph a run, and one on how models were compared."""
    found = [list(_make_sentences(presenter, run)) for presenter, run in runs]
    if compared is not None:
        presenter, comparison = compared
        found.append(list(presenter.comparison_methods(comparison)))
    return [sentences for sentences in found if sentences]


def methods_latex(said: Iterable[Sequence[MethodsSentence]], cited: Iterable[Citation]) -> str:
    """The paragraphs; works are cited by the keys of the bibliography."""
    known = {name: one.key for one in cited if one.key for name in _list_names(one)}

    def written(one: MethodsSentence) -> str:
        keys = dict.fromkeys(known[work] for work in one.works if work in known)
        return latex.escape(clean_line(one.text)) + (f"~\\cite{{{','.join(keys)}}}." if keys else ".")

    body = "\n\n".join("\n".join(map(written, sentences)) for sentences in said)
    return f"% For the section on methods; the works are in references.bib.\n{body}\n"


def methods_markdown(said: Iterable[Sequence[MethodsSentence]], cited: Iterable[Citation]) -> str:
    """The same with authors and years."""
    known = {name: one.short for one in cited if one.key for name in _list_names(one)}

    def written(one: MethodsSentence) -> str:
        names = "; ".join(dict.fromkeys(known[work] for work in one.works if work in known))
        return markdown.escape(clean_line(f"{one.text} [{names}]." if names else f"{one.text}."))

    return "\n\n".join(" ".join(map(written, sentences)) for sentences in said) + "\n"


def _make_sentences(presenter: Presenter, run: RunData) -> Iterator[MethodsSentence]:
    said = list(presenter.methods_paragraph(run))
    yield from (*said[:1], *_name_published_models(run), *said[1:])
    if run.manifest.status != "complete":
        yield MethodsSentence("The run is not finished")


def _name_published_models(run: RunData) -> Iterator[MethodsSentence]:
    """Which published model a short name stands for."""
    for label, record in zip(record_labels(run), run.manifest.models, strict=True):
        if title := get_published_name(record)[0]:
            yield MethodsSentence(f"The model {label} is {title}", list_works(cite_model(record)))


def _list_names(citation: Citation) -> tuple[str, ...]:
    """What sentences may call it: its key, or the user's own words."""
    return (citation.key, dict(citation.fields)["title"]) if citation.type == "misc" else (citation.key,)


def make_default_methods(run: RunData, uses: Iterable[CitationUse]) -> Iterator[MethodsSentence]:
    """What a manifest tells of any study: version, models and settings."""
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
    """The models with their revisions and settings; of very many only how many they are."""
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
    """One, two, and three."""
    *first, end = names or ("none",)
    return f"{', '.join(first)} {last} {end}" if first else end


def list_works(uses: Iterable[CitationUse]) -> tuple[str, ...]:
    """What sentences call the works of uses."""
    return tuple(dict.fromkeys(use.work or clean_line(use.text) for use in uses))


def make_seed_sentence(found: Iterable[int]) -> MethodsSentence:
    """With what was drawn."""
    own = [str(seed) for seed in sorted(set(found))]
    return MethodsSentence(
        f"What is drawn at random was drawn with {'seed' if len(own) == 1 else 'seeds'} {join_names(own)}"
    )
