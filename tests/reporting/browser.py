"""Open reports from disk in Chromium and collect its messages."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
_WATCH = """
window.shifted = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifted += entry.value;
}).observe({ type: "layout-shift", buffered: true });
"""


def need_chromium() -> str:
    """Return the path of Chromium; skip tests without it unless BIASSAY_NEED_BROWSER is set."""
    if CHROMIUM is None:
        reason = "Chromium is not installed (Debian: apt-get install chromium)"
        if os.environ.get("BIASSAY_NEED_BROWSER"):
            pytest.fail(reason)
        pytest.skip(reason)
    return CHROMIUM


@contextmanager
def chromium() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api")
    path = need_chromium()
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


class Opened:
    """A tab, with everything that its page complained of or asked for."""

    def __init__(self, browser: Any) -> None:
        self.context = browser.new_context()
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.add_init_script(_WATCH)

    def show(self, path: Path, *, width: int = 1280, dark: bool = False, folded: bool = False) -> None:
        """Open a file, as if the tab were new: that would take three times as long. What is ``folded`` may stay so."""
        self.complaints.clear()
        self.requests.clear()
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.emulate_media(media="null", color_scheme="dark" if dark else "light")
        self.page.mouse.move(0, 0)
        self.page.goto(path.as_uri())
        if not folded:
            self.page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true;")

    @property
    def tip(self) -> str | None:
        tip = self.page.locator("#tip")
        return tip.inner_text() if tip.is_visible() else None

    def table(self, selector: str) -> list[list[str]]:
        """Cells of a table below its head, in their present order, but for the titles of its parts."""
        script = (
            "(table) => [...table.querySelectorAll('tbody tr:not(.group)')]"
            ".map((row) => [...row.cells].map((cell) => cell.innerText))"
        )
        rows: list[list[str]] = self.page.locator(selector).evaluate(script)
        return rows

    def close(self) -> None:
        self.context.close()


def violations(opened: Opened) -> list[str]:
    """Return accessibility problems that axe finds, one line per element."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    found = axe.run(opened.page).response["violations"]
    return [f"{one['id']}: {node['html'][:200]}" for one in found for node in one["nodes"]]
