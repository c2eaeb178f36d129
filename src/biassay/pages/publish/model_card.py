"""A section for a Hugging Face model card, with its metadata: what was measured of one model, and what not."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from biassay.errors import UnknownNameError, UsageError
from biassay.pages.publish.citations import citations
from biassay.pages.publish.markdown import escape
from biassay.pages.publish.metadata import Indexed, model_index
from biassay.pages.sentences import in_short, points
from biassay.results.data import RunData
from biassay.results.findings import Finding

if TYPE_CHECKING:
    from biassay.pages.presenter import Presenter

__all__ = ["Card", "card_of_findings", "model_card", "version_of"]

_OTHER = "Nothing was measured of other groups or languages, nor of what the model does in an application."


@dataclass(frozen=True)
class Card:
    """What a study says of one model, in plain text: it is escaped when it is laid out.

    ``entries`` are its metadata, ``gaps`` what was not measured. Nothing is said of numbers missing from the entries
    whose data sets are in ``known_gaps``.
    """

    entries: Sequence[Indexed]
    opening: Sequence[str]
    findings: Sequence[str]
    limits: Sequence[str]
    gaps: Sequence[str] = ()
    known_gaps: Collection[str] = ()


def model_card(presenter: Presenter, run: RunData, model: str | None = None) -> str:
    """A block of metadata and a section of Markdown about one model.

    ``model`` is its label in reports and may be left out where there is only one. A number that is none (not computed,
    NaN, infinite) is left out of the metadata, and the section says so; without any number there is no metadata.
    """
    label = _chosen(presenter.labels(run), model)
    card = presenter.card(run, label)
    parts = ["## Social bias (biassay)", *map(escape, card.opening)]
    if card.findings:
        parts.append("\n".join(f"- {escape(item)}" for item in card.findings))
    gaps = [*card.gaps, *_left_out(card.entries, card.known_gaps), _OTHER]
    parts += [f"**Not measured.** {escape(' '.join(gaps))}", f"**Limits.** {escape(' '.join(card.limits))}"]
    cited = citations([(presenter, run)])
    parts.append("**Sources.**\n\n" + "\n".join(f"- {escape(citation.text)}" for citation in cited))
    return model_index(label, card.entries) + "\n\n".join(parts) + "\n"


def card_of_findings(
    run: RunData,
    findings: Sequence[Finding],
    asked: str,
    entries: Sequence[Indexed],
    limits: Sequence[str],
    notes: Sequence[str] = (),
) -> Card:
    """A card made from the findings of one model; ``notes`` are about what was asked of it and could not be."""
    unmeasured = [one.item for one in findings if one.standing == "skipped"]
    unfinished = "" if run.manifest.status == "complete" else " The run is not finished."
    return Card(
        entries=entries,
        opening=[f"Measured with biassay {version_of(run)}: {asked}.{unfinished}", in_short(findings)],
        findings=[f"{text}{name}" for text, name in points(findings)],
        limits=limits,
        gaps=notes,
        known_gaps=unmeasured,
    )


def _chosen(labels: Sequence[str], model: str | None) -> str:
    if not labels:
        raise UsageError("there are no results, so that there is no model to describe")
    if model is None and len(labels) > 1:
        raise UsageError(f"the run has several models, name one: {', '.join(labels)}")
    label = labels[0] if model is None else model
    if label not in labels:
        raise UnknownNameError("model", label, labels, f"(models of the run: {', '.join(labels)})")
    return label


def _left_out(entries: Iterable[Indexed], known: Collection[str]) -> list[str]:
    """Numbers that are not in the metadata, but for what is said elsewhere."""
    missing = [
        (metric.value is None, f"{metric.type} of {entry.config or entry.dataset}")
        for entry in entries
        if entry.dataset not in known
        for metric in entry.metrics
        if not metric.finite
    ]
    reasons = {True: "they were not computed", False: "they are no finite numbers"}
    return [
        f"Not in the metadata, for {reason}: {', '.join(names)}."
        for none, reason in reasons.items()
        if (names := [name for is_none, name in missing if is_none is none])
    ]


def version_of(run: RunData) -> str:
    """The version of biassay that measured."""
    return run.manifest.versions.get("biassay", "unknown")
