"""Command `biassay outcomes`."""

from __future__ import annotations

import click

from biassay.cli.listings import print_fields, print_json, print_rows
from biassay.cli.options import json_option
from biassay.errors import format_install_command
from biassay.studies.audit.outcomes import (
    ResponseOutcome,
    get_outcome,
    get_outcome_package,
    judged_outcome_names,
    outcome_names,
)

_SHOWN_WORDS = 12


@click.command("outcomes")
@click.argument("outcome", required=False, metavar="[OUTCOME|FILE.toml]")
@json_option
def command(outcome: str | None, as_json: bool) -> None:
    """List the outcomes of responses, or show one OUTCOME with its source and weakness.

    An outcome turns a response of a chat model into a number. OUTCOME may also be a function of yours,
    python:MODULE:FUNCTION.
    """
    if outcome is not None:
        chosen = get_outcome(outcome)
        if as_json:
            print_json(_describe_outcome(chosen))
        else:
            _print_outcome(chosen)
        return
    known = [get_outcome(name) for name in (*outcome_names(), *judged_outcome_names())]
    if as_json:
        print_json([*map(_describe_outcome, known)])
        return
    rows = [
        (outcome.name, outcome.measures, outcome.unit, "yes" if outcome.is_installed else "no") for outcome in known
    ]
    print_rows(("outcome", "what it measures", "unit", "ready"), rows)
    if extras := dict.fromkeys(outcome.requires[1] for outcome in known if not outcome.is_installed):
        click.echo(f"\nInstall what is missing: {format_install_command(*extras)}")
    click.echo("\nShow source and weakness of an outcome: biassay outcomes agentic")


def _print_outcome(outcome: ResponseOutcome) -> None:
    click.echo(f"{outcome.name}: {outcome.title}")
    fields = {
        "measures": outcome.measures,
        "unit": outcome.unit,
        "source": outcome.source,
        "weakness": outcome.weakness,
        "languages": ", ".join(outcome.languages) or "all",
    }
    if outcome.words:
        shown = ", ".join(outcome.words[:_SHOWN_WORDS])
        more = ", ..." if len(outcome.words) > _SHOWN_WORDS else ""
        fields["words"] = f"{len(outcome.words)}: {shown}{more}"
    fields["ready"] = "yes" if outcome.is_installed else f"no; {format_install_command(outcome.requires[1])}"
    print_fields(fields, whole={"ready"})


def _describe_outcome(outcome: ResponseOutcome) -> dict[str, object]:
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
