"""A page in parts, one a kind of run, and a part in sections."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from biassay.pages.charts.drawing import Figure, can_draw, for_page
from biassay.pages.charts.style import PAGE

if TYPE_CHECKING:
    import jinja2

__all__ = ["Part", "Renderer", "Section", "Statement", "asset", "environment"]


@dataclass(frozen=True)
class Statement:
    """What was found in a sentence or two, and the associations that it speaks of, one a line.

    ``about`` is the model or run that it is about, where a text begins with its name; ``names`` are the code names, in
    brackets, that the points end with.
    """

    text: str
    points: tuple[str, ...] = ()
    about: str = ""
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Section:
    """A heading and what stands below it, on demand unless it is ``open``."""

    anchor: str
    title: str
    body: Markup
    open: bool = False


@dataclass(frozen=True)
class Part:
    """What one kind of run has to say, ``figure`` first. ``data`` is for the page's script.

    ``terms`` are words and signs of the sentences, with what they mean. A ``headline`` with a ``tone`` ("bad", "good",
    "unsure") is a verdict.
    """

    anchor: str
    title: str
    headline: str
    summary: Sequence[Statement]
    meaning: str
    sections: Sequence[Section]
    notes: Sequence[str] = ()
    figure: Markup | None = None
    terms: Mapping[str, str] = field(default_factory=dict)
    tone: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Renderer:
    """Makes sections of one part; ``level`` is that of their headings."""

    environment: jinja2.Environment
    anchor: str
    level: int

    def section(self, name: str, title: str, **content: Any) -> Section:
        """From the template NAME.html of the study."""
        anchor = f"{self.anchor}-{name}"
        shown = {**content, "anchor": anchor, "level": self.level, "can_draw": can_draw()}
        return Section(anchor, title, Markup(self.environment.get_template(f"{name}.html").render(shown)))

    def notes(self, notes: Sequence[str]) -> list[Section]:
        """What a reader should know beside the findings, one a line; no section where there is nothing."""
        return [self.section("notes", "Notes", notes=notes)] if notes else []

    def figures(self, make: Sequence[Callable[..., Figure]]) -> list[Markup]:
        """Figures in the colours of the page; none where they cannot be drawn."""
        return [Markup(for_page(of(PAGE))) for of in make] if can_draw() else []


def environment(package: str | None = None) -> jinja2.Environment:
    """Templates of pages, and those of a study's package; whatever they are given is escaped."""
    import jinja2

    packages = ["biassay.pages"] if package is None else [package, "biassay.pages"]
    return jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(name) for name in packages]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def asset(name: str) -> str:
    """A file that pages are made with, as it is."""
    return (resources.files("biassay.pages") / "templates" / name).read_text(encoding="utf-8")
