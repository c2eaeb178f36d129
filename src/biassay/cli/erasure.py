"""Command `biassay erasure`."""

from __future__ import annotations

import click

from biassay.cli.listings import print_fields, print_json, print_rows
from biassay.cli.options import json_option
from biassay.datasets.concepts import ErasedConcept, concept_names, load_concept
from biassay.errors import UnknownNameError, format_install_command
from biassay.models.erasure import ErasureMethod, erasure_method_names, get_erasure_method


@click.command("erasure")
@click.argument("name", required=False, metavar="[METHOD|CONCEPT|FILE.toml]")
@json_option
def command(name: str | None, as_json: bool) -> None:
    """List the methods and concepts of erasure, or show one.

    MODEL?erase=METHOD:CONCEPT erases a concept from the vectors of a model; `biassay debias` measures the result.
    """
    if name is None:
        methods, concepts = map(get_erasure_method, erasure_method_names()), map(load_concept, concept_names())
        described = {"methods": [*map(_describe_method, methods)], "concepts": [*map(_describe_concept, concepts)]}
        if as_json:
            print_json(described)
            return
        rows = [
            (method["method"], method["title"], method["needs_pairs"], method["ready"])
            for method in described["methods"]
        ]
        print_rows(("method", "title", "needs pairs", "ready"), rows)
        click.echo()
        counted = [
            (concept["concept"], concept["title"], concept["classes"], concept["pairs"])
            for concept in described["concepts"]
        ]
        print_rows(("concept", "title", "words fitted on", "pairs"), counted)
        click.echo("\nShow one with its weakness and source: biassay erasure leace. Use: biassay debias MODEL")
        return
    words: dict[str, list[str]] = {}
    if name in erasure_method_names():
        fields = _describe_method(get_erasure_method(name))
    elif name in concept_names() or name.lower().endswith(".toml"):
        concept = load_concept(name)
        fields, words = _describe_concept(concept), _list_words(concept)
    else:
        known = (*erasure_method_names(), *concept_names())
        raise UnknownNameError("method or concept", name, known, f"(known: {', '.join(known)})")
    if as_json:
        print_json(fields | words)
    else:
        print_fields(fields | {key: ", ".join(listed) for key, listed in words.items()})


def _describe_method(method: ErasureMethod) -> dict[str, str]:
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


def _list_words(concept: ErasedConcept) -> dict[str, list[str]]:
    """List the words of a concept by use and class."""
    fitted = {
        f"fitted, {label}": [word for word, own in concept.fitting_words if own == index]
        for index, label in enumerate(concept.classes)
    }
    held_out = zip(concept.classes, concept.held_out, strict=True)
    return fitted | {f"held out, {label}": list(words) for label, words in held_out}
