"""Sphinx builds the site without warnings, and all of its links work."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from tests.reporting.browser import Opened, chromium, violations

import biassay
from biassay.datasets.catalogue import load_catalogue
from biassay.datasets.word_associations import select_published

pytestmark = [pytest.mark.extras, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"<(?:a|link|script|img|iframe)\b[^>]*?\s(?:href|src)=\"([^\"]*)\"")
GALLERY = ("encoders", "compare", "robustness", "discovery", "stereotypes", "ask", "benchmark")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("docs")
    for part in ("docs", "scripts"):
        shutil.copytree(ROOT / part, place / part, ignore=shutil.ignore_patterns("generated", "__pycache__"))
    build = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going", "docs", "site"]
    done = subprocess.run(build, cwd=place, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return place / "site"


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, str]:
    found = (page for page in site.rglob("*.html") if "_static" not in page.parts)
    return {page.resolve(): page.read_text(encoding="utf-8") for page in found}


def test_it_has_a_page_for_every_test_function_and_study(site: Path) -> None:
    names = [name for name, test in load_catalogue().tests.items() if test.alias_of is None]
    names += [test.name for test in select_published()]
    assert all((site / "generated" / "catalogue" / f"{name}.html").is_file() for name in names)
    assert all((site / "generated" / "api" / f"biassay.{name}.html").is_file() for name in biassay.__all__)
    assert all((site / "gallery" / f"{name}.html").is_file() for name in GALLERY)
    weat6 = (site / "generated" / "catalogue" / "weat6.html").read_text(encoding="utf-8")
    assert "John, Paul, Mike" in unescape(weat6)


def test_nothing_is_loaded_from_elsewhere(pages: dict[Path, str]) -> None:
    for page, html in pages.items():
        loaded = re.findall(r"<(?:script|img|link)[^>]*(?:src|href)=\"(https?:[^\"]+)", html)
        assert not loaded, (page, loaded)


def test_links_within_the_site_lead_to_a_page_and_a_place_on_it(site: Path, pages: dict[Path, str]) -> None:
    places = {page: set(re.findall(r"\s(?:id|name)=\"([^\"]+)\"", html)) for page, html in pages.items()}
    checked = 0
    for page, html in pages.items():
        for link in map(unescape, LINK.findall(html)):
            split = urlsplit(link)
            if split.scheme:
                continue
            target = (page.parent / unquote(split.path)).resolve() if split.path else page
            assert target.is_relative_to(site.resolve()), (page, link)
            assert target.is_file(), (page, link)
            if split.fragment and target in places:
                assert unquote(split.fragment) in places[target], (page, link)
                checked += 1
    assert checked > 100


def test_links_to_elsewhere_are_whole_and_encrypted(pages: dict[Path, str]) -> None:
    """URLs on this machine are named, not linked."""
    found = {link for html in pages.values() for link in map(unescape, LINK.findall(html)) if urlsplit(link).scheme}
    for link in found - {link for link in found if link.startswith("data:")}:
        split = urlsplit(link)
        assert split.scheme == "https", link
        assert re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+", split.netloc), link
        assert not re.search(r"example\.|OWNER|TODO|XXX|[<>{}\s]", link), link
    assert any(link.startswith("https://doi.org/10.") for link in found)


def test_the_placeholder_of_the_owner_stands_only_where_it_is_explained(pages: dict[Path, str]) -> None:
    assert [page.name for page, html in pages.items() if "OWNER/" in html and "is a placeholder for" not in html] == []


def test_a_reader_with_a_phone_or_a_screen_reader_gets_all_of_it(site: Path) -> None:
    with chromium() as browser:
        opened = Opened(browser)
        for name in (
            "explanation/which-measure",
            "catalogue",
            "gallery",
            "generated/gallery",
            "generated/catalogue/weat3",
            "benchmarks",
            "peers",
        ):
            for dark in (False, True):
                opened.show(site / f"{name}.html", width=390, dark=dark)
                assert opened.page.evaluate("document.documentElement.scrollWidth") == 390, name
                assert violations(opened) == [], (name, dark)
        opened.close()
