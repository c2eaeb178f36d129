"""A paragraph for the methods section of a paper, made from how runs were made; in LaTeX and in Markdown."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from biassay.pages.formats import clean
from biassay.pages.formats import shown as as_read
from biassay.pages.publish import latex, markdown
from biassay.pages.publish.citations import Citation, Use, uses_of_model
from biassay.pages.publish.model_card import version_of
from biassay.results.comparison import Comparison
from biassay.results.data import ModelRecord, RunData
from biassay.results.labels import published_model, record_labels

if TYPE_CHECKING:
    from biassay.pages.presenter import Presenter

__all__ = [
    "Sentence",
    "listed",
    "methods_latex",
    "methods_markdown",
    "models_text",
    "paragraphs",
    "plain_methods",
    "seeds",
    "works_of",
]

_MODELS = 12  # that are named
_REVISION = 12  # characters of it, where it is a hash
_HASH = re.compile(r"[0-9a-f]{16,}")
_BRACKETS = re.compile(r" *\([^()]*\)")
_NOT_SAID = ("", None, ())


@dataclass(frozen=True)
class Sentence:
    """A sentence without its full stop, and what it rests on: keys of works, or citations of the user's own."""

    text: str
    works: tuple[str, ...] = ()


def paragraphs(
    runs: Sequence[tuple[Presenter, RunData]], compared: tuple[Presenter, Comparison] | None = None
) -> list[list[Sentence]]:
    """A paragraph a run, and one on how models were compared."""
    found = [list(_said(presenter, run)) for presenter, run in runs]
    if compared is not None:
        presenter, comparison = compared
        found.append(list(presenter.comparison_methods(comparison)))
    return [sentences for sentences in found if sentences]


def methods_latex(said: Iterable[Sequence[Sentence]], cited: Iterable[Citation]) -> str:
    """The paragraphs; works are cited by the keys of the bibliography."""
    known = {name: one.key for one in cited if one.key for name in _names(one)}

    def written(one: Sentence) -> str:
        keys = dict.fromkeys(known[work] for work in one.works if work in known)
        return latex.escape(clean(one.text)) + (f"~\\cite{{{','.join(keys)}}}." if keys else ".")

    body = "\n\n".join("\n".join(map(written, sentences)) for sentences in said)
    return f"% For the section on methods; the works are in references.bib.\n{body}\n"


def methods_markdown(said: Iterable[Sequence[Sentence]], cited: Iterable[Citation]) -> str:
    """The same with authors and years."""
    known = {name: one.short for one in cited if one.key for name in _names(one)}

    def written(one: Sentence) -> str:
        names = "; ".join(dict.fromkeys(known[work] for work in one.works if work in known))
        return markdown.escape(clean(f"{one.text} [{names}]." if names else f"{one.text}."))

    return "\n\n".join(" ".join(map(written, sentences)) for sentences in said) + "\n"


def _said(presenter: Presenter, run: RunData) -> Iterator[Sentence]:
    said = list(presenter.methods_paragraph(run))
    yield from (*said[:1], *_published_models(run), *said[1:])
    if run.manifest.status != "complete":
        yield Sentence("The run is not finished")


def _published_models(run: RunData) -> Iterator[Sentence]:
    """Which published model a short name stands for."""
    for label, record in zip(record_labels(run), run.manifest.models, strict=True):
        if title := published_model(record)[0]:
            yield Sentence(f"The model {label} is {title}", works_of(uses_of_model(record)))


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
    revision = _BRACKETS.sub("", record.revision or "")
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
