"""Rendered figures: names are text, and marks agree with the numbers."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.reporting.figures import HOSTILE, every_figure, parts

from biassay.reporting.charts.base import FORMATS, PAGE, PRINT, SCHEMA, Figure, Style, render_figure, render_for_page
from biassay.reporting.charts.forest import ForestRow, draw_forest

NASTY = (
    HOSTILE,
    "]]><!-- &amp; &#0; 'a' \\ \\u003c",
    "'+alert(1)+' ${x} {{y}} datum.value",
    "中文 é ß 😀",
    '__proto__ aria-label="b" role="graphics-x"',
)
LONG = "w" * 300


@pytest.fixture
def library() -> Any:
    return pytest.importorskip("vl_convert")


def elements(svg: str | bytes) -> list[ET.Element]:
    return list(ET.fromstring(svg).iter())


def tag(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]


def texts(svg: str | bytes) -> list[str]:
    return [element.text or "" for element in elements(svg) if tag(element) == "text"]


def place(element: ET.Element) -> tuple[float, float]:
    x, y = element.attrib["transform"].removeprefix("translate(").removesuffix(")").split(",")
    return float(x), float(y)


@pytest.mark.extras
@every_figure
@pytest.mark.parametrize("name", NASTY)
def test_names_are_text_in_a_figure(name: str, make: Callable[[str, Style], Figure], library: Any) -> None:  # noqa: ARG001
    figure = make(name, PAGE)
    for svg, tip in ((render_figure(figure, "svg").decode(), "aria-label"), (render_for_page(figure), "data-tip")):
        found = elements(svg)
        assert not {tag(e) for e in found} - {"svg", "g", "path", "line", "text", "rect"}
        assert not [a for e in found for a in e.attrib if a.casefold().startswith("on") or "href" in a]
        assert name in texts(svg)
        if "distribution" not in make.__name__:
            assert [e for e in found if name in e.attrib.get(tip, "") and tag(e) in ("path", "line")]


@pytest.mark.extras
@every_figure
def test_long_names_are_cut_in_a_figure_and_not_in_what_it_says(
    make: Callable[[str, Style], Figure],
    library: Any,  # noqa: ARG001
) -> None:
    figure = make(LONG, PAGE)
    svg = render_for_page(figure)
    named = [text for text in texts(svg) if text.startswith("www")]
    assert named
    if not {"profile", "forest"} & set(make.__name__.split("_")):  # traits and claims are shown whole
        assert all(text.endswith("…") for text in named)
        assert float(ET.fromstring(svg).attrib["width"]) < 1100
    assert LONG in ET.fromstring(svg).attrib["aria-label"]
    if "distribution" not in make.__name__:
        assert any(LONG in e.attrib.get("data-tip", "") for e in elements(svg))


@pytest.mark.extras
def test_a_name_that_xml_cannot_hold_does_not_end_the_program(library: Any) -> None:  # noqa: ARG001
    """In a program of its own: the library that draws ends it where it cannot read its own text."""
    program = (
        "import xml.etree.ElementTree as ET\n"
        "from tests.reporting.figures import ALL\n"
        "from biassay.reporting.charts.base import render_figure, render_for_page\n"
        "from biassay.reporting.charts.base import PAGE, PRINT\n"
        "name = '\\x1b[2Jgone a\\x00b a\\x0bb \\ufffe a\\ud800b'\n"
        "for make in ALL.values():\n"
        "    ET.fromstring(render_for_page(make(name, PAGE)))\n"
        "    assert render_figure(make(name, PRINT), 'png')\n"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:500]


@pytest.mark.extras
@every_figure
def test_a_page_has_its_figures_in_its_own_colours(make: Callable[[str, Style], Figure], library: Any) -> None:  # noqa: ARG001
    for e in elements(render_for_page(make("t", PAGE))):
        for name, value in e.attrib.items():
            if name in ("fill", "stroke", "color", "stop-color", "style"):
                assert value in ("none", "transparent") or re.fullmatch(r"var\(--[a-z0-9]+\)", value)
            elif name not in ("aria-label", "data-tip"):
                assert not re.search(r"#[0-9a-f]{3}|rgb|hsl|url", value)
    printed = render_figure(make("t", PRINT), "svg").decode()
    assert "var(" not in printed
    assert 'fill="#ffffff"' in printed  # the paper


@pytest.mark.extras
@every_figure
def test_a_page_has_its_figures_as_images_that_answer(make: Callable[[str, Style], Figure], library: Any) -> None:  # noqa: ARG001
    figure = make("a name", PAGE)
    root, *rest = elements(render_for_page(figure))
    assert tag(root) == "svg"
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-label"] == figure.description
    assert set(root.attrib) == {"role", "aria-label", "width", "height", "viewBox"}
    assert not [a for e in rest for a in e.attrib if a == "role" or a.startswith("aria-")]
    held = {part["tip"] for part in parts(figure.spec) if isinstance(part.get("tip"), str)}
    said = {e.attrib["data-tip"] for e in rest if "data-tip" in e.attrib and tag(e) != "g"}
    assert said == held | ({"pooled effect 0.30"} if "distribution" in make.__name__ else set())


@pytest.mark.extras
@every_figure
def test_a_figure_is_drawn_in_all_formats(make: Callable[[str, Style], Figure], library: Any) -> None:  # noqa: ARG001
    figure = make("t", PRINT)
    made = {form: render_figure(figure, form) for form in FORMATS}
    root = ET.fromstring(made["svg"])
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert made["pdf"].startswith(b"%PDF-")
    assert made["pdf"].rstrip().endswith(b"%%EOF")
    assert made["png"].startswith(b"\x89PNG\r\n\x1a\n")
    wide, high = (int.from_bytes(made["png"][at : at + 4]) for at in (16, 20))
    less = {"width": 14 + 5 - 4, "height": 5 + 5 - 4}  # of an edge, which is 2 on every side of a picture
    sizes = [float(root.attrib[name]) - edge for name, edge in less.items()]
    assert (wide, high) == pytest.approx([3 * size for size in sizes], abs=3)  # three dots a point
    assert json.loads(made["vl.json"])["$schema"] == SCHEMA


@pytest.mark.extras
def test_marks_of_a_forest_stand_where_their_numbers_are(library: Any) -> None:  # noqa: ARG001
    rng = np.random.default_rng(3)
    rows = [
        ForestRow(f"t{i}", float(size), float(size - 0.3), float(size + 0.4), i % 3, f"tip {i}")
        for i, size in enumerate(rng.uniform(-1.5, 1.5, 12))
    ]
    found = [e for e in elements(render_for_page(draw_forest("f", "t", rows, PAGE))) if "data-tip" in e.attrib]
    points = {e.attrib["data-tip"]: place(e) for e in found if tag(e) == "path"}
    bars = {e.attrib["data-tip"]: (*place(e), float(e.attrib["x2"])) for e in found if tag(e) == "line"}
    assert list(points) == list(bars) == [row.tip for row in rows]
    for i, row in enumerate(rows):
        x, y = points[row.tip]
        assert x == pytest.approx(210 * (1 + row.effect_size / 2))  # from -2 to 2 over 420
        assert y == pytest.approx(17 * i + 8.5)
        left, height, length = bars[row.tip]
        # the ends of a bar are put on whole pixels
        assert (left, height) == pytest.approx((210 * (1 + (row.effect_size - 0.3) / 2), y), abs=0.51)
        assert length == pytest.approx(105 * 0.7, abs=1.01)


@pytest.mark.extras
@every_figure
def test_pictures_for_print_have_no_white_edges_and_cut_nothing(
    make: Callable[[str, Style], Figure],
    library: Any,  # noqa: ARG001
    tmp_path: Path,
) -> None:
    """Three dots a point: an edge is 6 dots, and letters and scales leave some room of their own."""
    image = pytest.importorskip("PIL.Image")
    difference = pytest.importorskip("PIL.ImageChops").difference
    figure = make("a title", PRINT)
    pictures = [figure.save(tmp_path / "f.png")]
    if shutil.which("pdftoppm"):
        pdf = figure.save(tmp_path / "f.pdf")
        command = ["pdftoppm", "-r", "216", "-png", "-singlefile", str(pdf), str(tmp_path / "pdf")]
        subprocess.run(command, check=True)
        pictures.append(tmp_path / "pdf.png")
    for path in pictures:
        with image.open(path) as opened:
            picture = opened.convert("RGB")
        left, top, right, bottom = difference(picture, image.new("RGB", picture.size, "white")).getbbox()
        edges = (left, top, picture.width - right, picture.height - bottom)
        assert min(edges) >= 1
        assert max(edges) <= 24
