"""A paragraph for the methods section of a paper, made from how runs were made; in LaTeX and in Markdown."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from biassay.pages.formats import shown as as_read
from biassay.pages.publish import latex, markdown
from biassay.pages.publish.citations import Citation, Use
from biassay.pages.publish.layout import clean
from biassay.pages.publish.model_card import version_of
from biassay.results.data import ModelRecord, RunData
from biassay.results.labels import record_labels

if TYPE_CHECKING:
    from biassay.pages.presenter import Presenter

__all__ = [
    "Sentence",
    "listed",
    "methods_latex",
    "methods_markdown",
    "models_text",
    "plain_methods",
    "seeds",
    "works_of",
]

_MODELS = 12  # that are named
_REVISION = 12  # characters of it, where it is a hash
_HASH = re.compile(r"[0-9a-f]{16,}")
_NOT_SAID = ("", None, ())


@dataclass(frozen=True)
class Sentence:
    """A sentence without its full stop, and what it rests on: keys of works, or citations of the user's own."""

    text: str
    works: tuple[str, ...] = ()


def methods_latex(runs: Sequence[tuple[Presenter, RunData]], cited: Iterable[Citation]) -> str:
    """A paragraph a run; works are cited by the keys of the bibliography."""
    known = {name: one.key for one in cited if one.key for name in _names(one)}
    paragraphs = []
    for presenter, run in runs:
        sentences = []
        for one in _said(presenter, run):
            keys = dict.fromkeys(known[work] for work in one.works if work in known)
            sentences.append(latex.escape(clean(one.text)) + (f"~\\cite{{{','.join(keys)}}}." if keys else "."))
        paragraphs.append("\n".join(sentences))
    return "% For the section on methods; the works are in references.bib.\n" + "\n\n".join(paragraphs) + "\n"


def methods_markdown(runs: Sequence[tuple[Presenter, RunData]], cited: Iterable[Citation]) -> str:
    """The same with authors and years."""
    known = {name: one.short for one in cited if one.key for name in _names(one)}
    paragraphs = []
    for presenter, run in runs:
        sentences = []
        for one in _said(presenter, run):
            names = "; ".join(dict.fromkeys(known[work] for work in one.works if work in known))
            sentences.append(markdown.escape(clean(f"{one.text} [{names}]." if names else f"{one.text}.")))
        paragraphs.append(" ".join(sentences))
    return "\n\n".join(paragraphs) + "\n"


def _said(presenter: Presenter, run: RunData) -> Iterator[Sentence]:
    yield from presenter.methods_paragraph(run)
    if run.manifest.status != "complete":
        yield Sentence("The run is not finished")


def _names(citation: Citation) -> tuple[str, ...]:
    """What sentences may call it: its key, or the user's own words."""
    return (citation.key, dict(citation.fields)["title"]) if citation.type == "misc" else (citation.key,)


def plain_methods(run: RunData, uses: Iterable[Use]) -> Iterator[Sentence]:
    """What a manifest tells of any study: version, models and settings."""
    made = run.manifest
    own = f" by the study {made.study} of {made.package} {made.versions.get(made.package, '')}".rstrip()
    by = "" if made.package == "biassay" else own
    yield Sentence(f"With biassay {version_of(run)} we measured {models_text(run)}{by}", ("biassay", *works_of(uses)))
    fields = [(field.name, getattr(made.settings, field.name)) for field in dataclasses.fields(made.settings)]
    settings = [f"{name} = {as_read('text', value)}" for name, value in fields if value not in _NOT_SAID]
    if settings:
        yield Sentence(f"Settings: {', '.join(settings)}")


def models_text(run: RunData) -> str:
    """The models with their revisions and settings; of very many only how many they are."""
    models = run.manifest.models
    if len(models) > _MODELS:
        return f"{len(models):,} models"
    named = [_model(label, record) for label, record in zip(record_labels(run), models, strict=True)]
    return f"{'the model' if len(named) == 1 else f'{len(named)} models:'} {listed(named)}"


def _model(label: str, record: ModelRecord) -> str:
    revision = record.revision or ""
    known = [f"revision {revision[:_REVISION] if _HASH.fullmatch(revision) else revision}"] if revision else []
    about = "; ".join([*(f"{name}={value}" for name, value in record.settings.items()), *known])
    return f"{label} ({about})" if about else label


def listed(names: Sequence[str], last: str = "and") -> str:
    """One, two, and three."""
    *first, end = names or ("none",)
    return f"{', '.join(first)} {last} {end}" if first else end


def works_of(uses: Iterable[Use]) -> tuple[str, ...]:
    """What sentences call the works of uses."""
    return tuple(dict.fromkeys(use.work or clean(use.text) for use in uses))


def seeds(found: Iterable[int]) -> Sentence:
    """With what was drawn."""
    own = [str(seed) for seed in sorted(set(found))]
    return Sentence(f"What is drawn at random was drawn with {'seed' if len(own) == 1 else 'seeds'} {listed(own)}")
