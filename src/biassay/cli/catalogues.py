"""List or describe models, metrics, outcomes and erasure methods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from biassay.cli.listings import print_columns, print_fields, print_json, print_rows
from biassay.cli.options import json_option
from biassay.errors import UnknownNameError, format_install_command

if TYPE_CHECKING:
    from biassay.datasets.concepts import ErasedConcept
    from biassay.models.backend import ModelBackend
    from biassay.studies.audit.outcomes import ResponseOutcome

_CAPABILITIES = """\
texts: run, discover, robustness; words: run --contexts; blanks: stereotypes;
replies: ask, other benchmarks; likelihoods: benchmark crows-pairs, stereoset"""
_WIDEST_CAPABILITIES = 21  # those of hf in two lines
_SHOWN_WORDS = 12
Record = dict[str, Any]


def make_command(name: str) -> click.Command:
    """Return a command by name."""
    return _COMMANDS[name]


def _print_missing_extras(extras: Sequence[str | None]) -> None:
    """Print one install command for all extras that are missing."""
    if needed := dict.fromkeys(extra for extra in extras if extra is not None):
        click.echo(f"Install the missing packages: {format_install_command(*needed)}")


@click.command("models")
@click.argument("backend", required=False)
@json_option
def _models(backend: str | None, as_json: bool) -> None:
    """List the model backends, or show the settings of one BACKEND.

    Models encode texts, encode words in context, fill blanks, reply to prompts, or provide likelihoods of texts. The
    list shows which commands use which.
    """
    from biassay.models.registry import get_backends

    known = get_backends()
    names = [*known] if backend is None else [backend.partition(":")[0]]
    if names[0] not in known:
        raise UnknownNameError("backend", backend or "", known, f"(backends: {', '.join(known)})")
    records = [_describe_backend(known[name]) for name in names]
    if as_json:
        print_json(records if backend is None else records[0])
    elif backend is not None:
        _print_backend(records[0])
    else:
        columns = {"model": "syntax", "what it is": "description", "can do": "capabilities", "ready": "ready"}
        print_columns(records, columns, widths={"can do": _WIDEST_CAPABILITIES})
        click.echo(_CAPABILITIES)
        missing = [one for one in known.values() if one.missing]
        _print_missing_extras([one.extra for one in missing])
        for one in missing:
            if one.extra is None:
                click.echo(f"Install {one.name}: {one.install}")
        click.echo("Show the settings of a backend: biassay models hf")


def _describe_backend(backend: ModelBackend) -> Record:
    return {
        "backend": backend.name,
        "syntax": backend.syntax,
        "description": backend.description,
        "capabilities": backend.capabilities,
        "settings": backend.all_settings,
        "ready": not backend.missing,
        "needs": backend.needs,
        "missing": backend.missing,
        "install": backend.install,
    }


def _print_backend(backend: Record) -> None:
    click.echo(f"{backend['syntax']}: {backend['description']}")
    click.echo(f"can do: {', '.join(backend['capabilities'])}")
    click.echo("ready: yes" if backend["ready"] else f"not installed: {backend['install']}")
    if not backend["settings"]:
        click.echo("settings: none")
        return
    first, *others = backend["settings"]
    more = f"&{others[0]}=..." if others else ""
    click.echo(f'settings follow the name: "{backend["syntax"]}?{first}=...{more}"\n')
    print_rows(("setting", "values"), list(backend["settings"].items()))


@click.command("metrics")
@click.argument("metric", required=False, metavar="[METRIC]")
@json_option
def _metrics(metric: str | None, as_json: bool) -> None:
    """List the metrics of association tests, or show one METRIC with its permitted claims and its source."""
    from biassay.studies.associations.metrics import metric_names

    records = [_describe_metric(name) for name in ([metric] if metric else metric_names())]
    if as_json:
        print_json(records[0] if metric else records)
    elif metric is not None:
        print_fields({field: text for field, text in records[0].items() if text})
    else:
        columns = {"metric": "metric", "title": "title", "p-value": "p_value", "package": "package"}
        print_columns(records, columns)
        click.echo(
            "\nShow the claims that a metric supports: biassay metrics ripa. Run all: biassay run MODEL --metric all"
        )


def _describe_metric(name: str) -> Record:
    from biassay.studies.associations.metrics import Measure, get_metric, get_metric_package

    metric = get_metric(name)
    has_direction = not isinstance(metric, Measure) or metric.signed
    has_p_value = not isinstance(metric, Measure) or metric.permutes
    inference = "other words" if metric.unit == "d" else "these words only"
    return {
        "metric": metric.name,
        "title": metric.title,
        "scale": metric.unit,
        "direction": "signed" if has_direction else "none",
        "p_value": inference if has_p_value else "none",
        "claim": getattr(metric, "claim", ""),
        "source": getattr(metric, "source", ""),
        "package": get_metric_package(metric.name),
    }


@click.command("outcomes")
@click.argument("outcome", required=False, metavar="[OUTCOME|FILE.toml]")
@json_option
def _outcomes(outcome: str | None, as_json: bool) -> None:
    """List the outcomes of responses, or show one OUTCOME with its source and weakness.

    An outcome turns a response of a chat model into a number. OUTCOME may also be a function of yours,
    python:MODULE:FUNCTION.
    """
    from biassay.studies.audit.outcomes import get_outcome, judged_outcome_names, outcome_names

    names = (*outcome_names(), *judged_outcome_names()) if outcome is None else (outcome,)
    known = [get_outcome(name) for name in names]
    records = [_describe_outcome(one) for one in known]
    if as_json:
        print_json(records if outcome is None else records[0])
    elif outcome is not None:
        _print_outcome(records[0])
    else:
        print_columns(records, {"outcome": "outcome", "what it measures": "measures", "unit": "unit", "ready": "ready"})
        click.echo()
        _print_missing_extras([None if one.is_installed else one.requires[1] for one in known])
        click.echo("Show source and weakness of an outcome: biassay outcomes agentic")


def _describe_outcome(outcome: ResponseOutcome) -> Record:
    from biassay.studies.audit.outcomes import get_outcome_package

    return {
        "outcome": outcome.name,
        "title": outcome.title,
        "unit": outcome.unit,
        "measures": outcome.measures,
        "source": outcome.source,
        "weakness": outcome.weakness,
        "languages": outcome.languages,
        "n_words": len(outcome.words),
        "words": outcome.words,
        "package": get_outcome_package(outcome.name),
        "ready": outcome.is_installed,
        "install": "" if outcome.is_installed else format_install_command(outcome.requires[1]),
    }


def _print_outcome(outcome: Record) -> None:
    click.echo(f"{outcome['outcome']}: {outcome['title']}")
    fields = {name: outcome[name] for name in ("measures", "unit", "source", "weakness")}
    fields["languages"] = ", ".join(outcome["languages"]) or "all"
    if words := outcome["words"]:
        fields["words"] = (
            f"{len(words)}: {', '.join(words[:_SHOWN_WORDS])}{', ...' if len(words) > _SHOWN_WORDS else ''}"
        )
    fields["ready"] = "yes" if outcome["ready"] else f"no; {outcome['install']}"
    print_fields(fields, whole={"ready"})


@click.command("erasure")
@click.argument("name", required=False, metavar="[METHOD|CONCEPT|FILE.toml]")
@json_option
def _erasure(name: str | None, as_json: bool) -> None:
    """List the methods and concepts of erasure, or show one.

    MODEL?erase=METHOD:CONCEPT erases a concept from the vectors of a model; `biassay debias` measures the result.
    """
    from biassay.datasets.concepts import concept_names, load_concept
    from biassay.models.erasure import erasure_method_names

    if name is None:
        methods = [_describe_erasure_method(method) for method in erasure_method_names()]
        concepts = [_describe_concept(load_concept(concept)) for concept in concept_names()]
        if as_json:
            print_json({"methods": methods, "concepts": concepts})
            return
        columns = {"method": "method", "title": "title", "needs pairs": "needs_pairs", "ready": "ready"}
        print_columns(methods, columns)
        click.echo()
        columns = {"concept": "concept", "title": "title", "words fitted on": "classes", "pairs": "pairs"}
        print_columns(concepts, columns)
        click.echo("\nShow one with its weakness and source: biassay erasure leace. Use: biassay debias MODEL")
        return
    words: dict[str, list[str]] = {}
    if name in erasure_method_names():
        fields = _describe_erasure_method(name)
    elif name in concept_names() or name.lower().endswith(".toml"):
        concept = load_concept(name)
        fields, words = _describe_concept(concept), _list_concept_words(concept)
    else:
        known = (*erasure_method_names(), *concept_names())
        raise UnknownNameError("method or concept", name, known, f"(known: {', '.join(known)})")
    if as_json:
        print_json(fields | words)
    else:
        print_fields(fields | {key: ", ".join(listed) for key, listed in words.items()})


def _describe_erasure_method(name: str) -> dict[str, str]:
    from biassay.models.erasure import get_erasure_method

    method = get_erasure_method(name)
    return {
        "method": method.name,
        "title": method.title,
        "removes": method.removes,
        "weakness": method.weakness,
        "needs_pairs": "yes" if method.needs_pairs else "no",
        "source": method.source,
        "ready": "yes" if method.is_installed else f"no; {format_install_command(method.requires[1])}",
    }


def _describe_concept(concept: ErasedConcept) -> dict[str, str]:
    counts = [sum(label == index for _, label in concept.fitting_words) for index in range(len(concept.classes))]
    return {
        "concept": concept.name,
        "title": concept.title,
        "classes": ", ".join(f"{label} {count}" for label, count in zip(concept.classes, counts, strict=True)),
        "pairs": str(len(concept.pairs)),
        "weakness": concept.weakness,
        "source": concept.source.citation,
        "licence": concept.source.licence,
    }


def _list_concept_words(concept: ErasedConcept) -> dict[str, list[str]]:
    """List the words of a concept by use and class."""
    fitted = {
        f"fitted, {label}": [word for word, own in concept.fitting_words if own == index]
        for index, label in enumerate(concept.classes)
    }
    held_out = zip(concept.classes, concept.held_out, strict=True)
    return fitted | {f"held out, {label}": list(words) for label, words in held_out}


_COMMANDS = {"models": _models, "metrics": _metrics, "outcomes": _outcomes, "erasure": _erasure}
