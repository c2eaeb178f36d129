"""Draw the picture of the README: the top of the report that its first command writes. Needs Chromium."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

import biassay

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "_static" / "report.png"
SIZE = {"width": 1120, "height": 620}


def main() -> None:
    browser = shutil.which("chromium")
    if browser is None:
        sys.exit("Chromium is not installed (Debian: apt-get install chromium)")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page = biassay.run(["glove", "use"]).report(Path(folder) / "report.html")
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        tab = chromium.new_page(viewport=SIZE, device_scale_factor=1.5)
        tab.goto(page.as_uri())
        tab.screenshot(path=PICTURE)
        chromium.close()
    print(f"{PICTURE}: {PICTURE.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
