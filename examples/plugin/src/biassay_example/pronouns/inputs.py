"""What is measured with: occupations and sentences, read and checked."""

from __future__ import annotations

import hashlib
import os
import tomllib
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from biassay.plugin import Blank, Slot, StimulusError, UsageError, read_text
from biassay_example.pronouns.settings import Settings

__all__ = ["GROUPS", "Inputs", "InputsRecord", "open_inputs"]

GROUPS = ("men", "women")


@dataclass(frozen=True)
class InputsRecord:
    """Stored in the manifest: a run goes on only with the same occupations and sentences."""

    digest: str
    occupations: dict[str, tuple[str, ...]]
    templates: tuple[str, ...]


@dataclass(frozen=True)
class Inputs:
    """Settings and what they name."""

    settings: Settings
    record: InputsRecord

    @property
    def occupations(self) -> list[tuple[str, str]]:
        """All occupations with their groups."""
        return [(name, group) for group in GROUPS for name in self.record.occupations[group]]

    def blanks(self, occupation: str) -> list[Blank]:
        """One request a template: the sentence, and both pronouns."""
        return [self._blank(template, occupation) for template in self.record.templates]

    def _blank(self, template: str, occupation: str) -> Blank:
        before, after = template.replace("{occupation}", occupation).split("{blank}")
        return Blank((before, Slot.BLANK, after), (self.settings.first, self.settings.second))


def open_inputs(settings: Settings) -> Inputs:
    """Read the file that the settings name, by default the one beside this module."""
    if settings.first == settings.second or not (settings.first and settings.second):
        raise UsageError(f"two different words are compared, got {settings.first!r} and {settings.second!r}")
    if settings.occupations is None:
        text = (files("biassay_example.pronouns") / "occupations.toml").read_text(encoding="utf-8")
        return Inputs(settings, _record(text, "occupations.toml"))
    path = Path(os.path.abspath(settings.occupations))
    if not path.is_file():
        raise UsageError(f"occupations: there is no file {path}")
    return Inputs(replace(settings, occupations=str(path)), _record(read_text(path), str(path)))


def _record(text: str, where: str) -> InputsRecord:
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise StimulusError(f"{where}: not valid TOML: {error}") from error
    occupations = {group: _texts(content, "occupations", group, where) for group in GROUPS}
    templates = _texts(content, "sentences", "templates", where)
    for template in templates:
        if template.count("{blank}") != 1 or "{occupation}" not in template.partition("{blank}")[0]:
            raise StimulusError(f"{where}: {template!r} needs {{occupation}}, and one {{blank}} behind it")
    names = [name for group in GROUPS for name in occupations[group]]
    if len(set(names)) < len(names):
        raise StimulusError(f"{where}: an occupation is named twice; name each once")
    return InputsRecord(hashlib.sha256(text.encode()).hexdigest(), occupations, templates)


def _texts(content: dict[str, Any], table: str, name: str, where: str) -> tuple[str, ...]:
    given = content.get(table, {}).get(name) if isinstance(content.get(table, {}), dict) else None
    if not isinstance(given, list) or len(given) < 2 or not all(isinstance(text, str) and text for text in given):
        raise StimulusError(f"{where}: [{table}] needs {name}, a list of two texts or more, got {given!r}")
    return tuple(given)
