"""Prompts that ask a model to write about a person, or for one: bundled sets and the user's own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from biassay.datasets.fields import FieldReader, bundled_names, parse_toml, raise_problems, read_definition
from biassay.errors import UnknownNameError
from biassay.prompts.documents import DocumentTemplate, check_documents, read_documents

Role = Literal["subject", "user"]

_FIELDS = {"title", "prompts", "user_prompts", "occupations", "outcomes"}
_OCCUPATION = re.compile(r"\{(an? )?occupation\}", re.IGNORECASE)
_NEARLY = re.compile(r"\{[^{}\n]*oc+up[^{}\n]*\}|\{[^{}\n]*\bjob\b[^{}\n]*\}", re.IGNORECASE)
_VOWEL = re.compile(r"(?!uni|use|usu|eu|one\b)[aeiou]|hon|hour|heir", re.IGNORECASE)


@dataclass(frozen=True)
class PromptSet:
    """Wordings of one task.

    Attributes
    ----------
    name, title : str
        Name for commands or file, and title for reports.
    prompts : tuple of DocumentTemplate
        Wordings, with a placeholder for a name, or without one if the name is the user's.
    occupations : tuple of str
        Occupations that the wordings are used with; empty if they have no placeholder for one.
    outcomes : tuple of str
        Outcomes that suit the task; empty if the set names none.
    """

    name: str
    title: str
    prompts: tuple[DocumentTemplate, ...]
    occupations: tuple[str, ...] = ()
    outcomes: tuple[str, ...] = ()


def prompt_set_names() -> tuple[str, ...]:
    """Return the names of all bundled sets, sorted."""
    return bundled_names("prompts")


def load_prompt_set(source: str | Path, role: Role = "subject") -> PromptSet:
    """Load a set of prompts.

    Parameters
    ----------
    source : str or Path
        A bundled set; a TOML file with the fields ``prompts`` or ``user_prompts``, and optionally ``title``,
        ``occupations`` and ``outcomes``; or a file or folder that `read_documents` reads, such as a .txt file with one
        prompt per line.
    role : {"subject", "user"}
        Whether the name in a prompt is that of the person to write about, or of the user. Prompts of a user have no
        placeholder for the name.

    Returns
    -------
    PromptSet
    """
    text = str(source)
    path = Path(source).expanduser()
    if text in prompt_set_names() or path.suffix.lower() == ".toml":
        return _parse_prompt_set(*read_definition("prompts", source), role)
    if not path.exists() and not path.suffix and path.parent == Path():
        raise UnknownNameError("set of prompts", text, prompt_set_names(), "(or a file, such as PROMPTS.toml)")
    prompts = read_documents(path, named=role == "subject")
    _check_occupations(prompts, ())
    return PromptSet(path.stem, path.stem, prompts)


def _parse_prompt_set(name: str, path: Path, text: str, role: Role) -> PromptSet:
    reader = FieldReader(path, text)
    fields = reader.table(parse_toml(path, text), "", _FIELDS)
    used = "user_prompts" if role == "user" and "user_prompts" in fields else "prompts"
    texts = reader.strings(fields.get(used), used)
    prompts = tuple(
        DocumentTemplate(str(number), wording.strip(), path, f"{used}, prompt {number}")
        for number, wording in enumerate(texts, start=1)
    )
    check_documents(prompts, named=role == "subject")
    occupations, outcomes = (
        reader.distinct_words(fields[field], field) if field in fields else () for field in ("occupations", "outcomes")
    )
    _check_occupations(prompts, occupations)
    title = reader.string(fields["title"], "title") if "title" in fields else name
    return PromptSet(name, title, prompts, occupations, outcomes)


def _check_occupations(prompts: Sequence[DocumentTemplate], occupations: Sequence[str]) -> None:
    """Raise StimulusError unless all prompts have a placeholder for occupations and there are some, or none has."""
    problems = []
    for prompt in prompts:
        where = prompt.locate()
        has_place = _OCCUPATION.search(prompt.text) is not None
        rest = _OCCUPATION.sub("", prompt.text)
        if mistyped := _NEARLY.search(rest):
            problems.append(f"{where}: unknown placeholder {mistyped[0]}; write {{occupation}} or {{an occupation}}")
        elif has_place and not occupations:
            problems.append(
                f"{where}: {{occupation}} without a list of occupations; write a .toml file with both lists"
            )
        elif occupations and not has_place:
            problems.append(
                f"{where}: no placeholder for the occupation; write {{occupation}} or {{an occupation}}, or "
                "leave out the list of occupations"
            )
    raise_problems(problems)


def fill_occupation(prompt: DocumentTemplate, occupation: str) -> DocumentTemplate:
    """Put an occupation into a prompt: {occupation} gives "nurse", {an occupation} "a nurse" or "an engineer"."""

    def fill(match: re.Match[str]) -> str:
        article = "" if not match[1] else "an " if _VOWEL.match(occupation) else "a "
        filled = article + occupation
        return filled[:1].upper() + filled[1:] if match[0][1].isupper() else filled

    return replace(prompt, text=_OCCUPATION.sub(fill, prompt.text))
