"""Colours of the report against its background: texts 4.5:1, marks and intervals 3:1 (WCAG 2.2, 1.4.3 and 1.4.11)."""

from __future__ import annotations

import re

import pytest

from biassay.reporting.html import read_asset

CSS = read_asset("page.css")
THEMES = {
    "light": CSS[CSS.index(":root {") : CSS.index("@media")],
    "dark by the system": CSS[CSS.index("prefers-color-scheme: dark") : CSS.index("@media screen {")],
    "dark by the button": CSS[CSS.index(':root[data-theme="dark"]') : CSS.index("html {")],
}
MARKS = ("none", "some", "much", "plus-rgb", "minus-rgb", *(f"p{n}" for n in range(4)), *(f"d{n}" for n in range(4)))
MODELS = tuple(f"c{n}" for n in range(10))


def read_colour(theme: str, name: str) -> tuple[float, ...]:
    value = re.findall(rf"--{name}: ([^;]+);", THEMES[theme])[0]
    if value.startswith("#"):
        return tuple(int(value[at : at + 2], 16) / 255.0 for at in (1, 3, 5))
    return tuple(int(part) / 255.0 for part in value.split())


def luminance(colour: tuple[float, ...]) -> float:
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def measure_contrast(theme: str, name: str, background: str = "paper") -> float:
    light, dark = sorted((luminance(read_colour(theme, one)) for one in (name, background)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("name", [*MARKS, *MODELS])
@pytest.mark.parametrize("theme", THEMES)
def test_marks_and_intervals_are_visible(theme: str, name: str) -> None:
    assert measure_contrast(theme, name) >= 3.0


@pytest.mark.parametrize("name", ["ink", "soft", "link", *MODELS])
@pytest.mark.parametrize("theme", THEMES)
def test_texts_are_readable(theme: str, name: str) -> None:
    """Numbers beside a row have the colour of their model."""
    assert measure_contrast(theme, name) >= 4.5
    if name not in MODELS:
        assert measure_contrast(theme, name, "card") >= 4.5
