"""What participants read, from a file that can be translated."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from biassay.errors import StimulusError
from biassay.files import read_text

__all__ = ["Texts", "read_texts"]

_SLOT = re.compile(r"\{(\w+)\}")
_SHIPPED = "english"


@dataclass(frozen=True)
class Texts:
    """Texts by section and name; ``digest_content`` is all of them, for the fingerprint of a study."""

    language: str
    direction: str
    sections: Mapping[str, Mapping[str, str]]

    def __getitem__(self, section: str) -> Mapping[str, str]:
        return self.sections[section]

    def filled(self, section: str, name: str, **values: Any) -> str:
        """A text with what belongs into its braces; values are not looked at for braces again."""
        return _SLOT.sub(lambda slot: str(values.get(slot[1], slot[0])), self.sections[section][name])

    def paragraphs(self, section: str, name: str, **values: Any) -> list[str]:
        text = self.filled(section, name, **values)
        return [" ".join(part.split()) for part in re.split(r"\n\s*\n", text.strip()) if part.strip()]


def read_texts(name: str, beside: Path | None = None) -> Texts:
    """The texts that are shipped, or a file, sought beside the study; it must have every text of the shipped ones."""
    shipped = tomllib.loads((resources.files("biassay.survey") / "data" / f"{_SHIPPED}.toml").read_text("utf-8"))
    if name == _SHIPPED:
        return _made(shipped)
    path = (beside or Path()) / name
    try:
        own = tomllib.loads(read_text(path))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise StimulusError(f"{path}: not a file of texts: {error}") from error
    _check(path, own, shipped)
    return _made(own)


def _check(path: Path, own: Mapping[str, Any], shipped: Mapping[str, Any]) -> None:
    """Every text is there and has the same slots; none is there that nobody reads."""
    for section, texts in shipped.items():
        given = own.get(section)
        if not isinstance(texts, dict):
            if not isinstance(given, str) or not given.strip():
                raise StimulusError(f"{path}: {section} is missing; expected a text such as {texts!r}")
            continue
        if not isinstance(given, dict):
            raise StimulusError(f"{path}: the table [{section}] is missing")
        for name, text in texts.items():
            found = given.get(name)
            if not isinstance(found, str) or not found.strip():
                raise StimulusError(f"{path}: [{section}] {name} is missing or empty")
            unknown = set(_SLOT.findall(found)) - set(_SLOT.findall(text))
            if unknown:
                raise StimulusError(f"{path}: [{section}] {name}: nothing is known of {{{sorted(unknown)[0]}}}")
            lost = set(_SLOT.findall(text)) - set(_SLOT.findall(found))
            if lost:
                raise StimulusError(f"{path}: [{section}] {name}: {{{sorted(lost)[0]}}} is missing")
        extra = set(given) - set(texts)
        if extra:
            raise StimulusError(f"{path}: [{section}] {sorted(extra)[0]}: there is no such text")
    extra = set(own) - set(shipped)
    if extra:
        raise StimulusError(f"{path}: {sorted(extra)[0]}: there is no such part")
    if own["direction"] not in ("ltr", "rtl"):
        raise StimulusError(f"{path}: direction must be 'ltr' or 'rtl', got {own['direction']!r}")


def _made(content: Mapping[str, Any]) -> Texts:
    sections = {name: dict(texts) for name, texts in content.items() if isinstance(texts, dict)}
    return Texts(content["language"], content["direction"], sections)
