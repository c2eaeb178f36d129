"""A study that is really served on a port of this machine, and a person who takes part in a browser."""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.reporting.browser import Opened, violations
from tests.survey import walks
from tests.survey.serving import serving
from tests.survey.walks import TOKEN

from biassay.survey.study import read_study

PAIRS = read_study("cao2022").pairs[:8]
NAMES = [f"{left} - {right}" for left, right in PAIRS]
_VALUES = "(all) => all.map((one) => one.value)"


def write_study(folder: Path, *, annotations: int = 3, texts: str = "english", pool: str = "") -> Path:
    """Write a study of six groups that does not check how fast a page is answered."""
    more = f"texts = {json.dumps(texts)}"
    return walks.write_study(folder, pairs=PAIRS, annotations=annotations, each=4, seconds=0, pool=pool, more=more)


@contextmanager
def served(study: Path | str, folder: Path) -> Iterator[str]:
    """The address of the study until the block ends."""
    with serving(study, folder) as found:
        yield found.address


def aim(group: str, pair: int) -> int:
    """Where a careful person puts a slider: the same whenever asked, and clearly to one side."""
    return int(random.Random(f"{group}/{pair}").choice([*range(3, 41), *range(60, 98)]))


@dataclass
class Rated:
    group: str
    ratings: list[int] = field(default_factory=list)


class Person(Opened):
    """Somebody with a browser of their own, who remembers what they set."""

    def __init__(
        self, browser: Any, address: str, *, phone: bool = False, scripts: bool = True, **options: Any
    ) -> None:
        size = {"width": 390, "height": 844} if phone else {"width": 1280, "height": 900}
        self.address, self.phone = address, phone
        self.context = browser.new_context(
            viewport=size, has_touch=phone, is_mobile=phone, java_script_enabled=scripts, **options
        )
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.rated: list[Rated] = []
        self.page = self.tab()

    def tab(self) -> Any:
        page = self.context.new_page()
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        return page

    def _hear(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def open(self, path: str = "/") -> None:
        self.page.goto(self.address + path)

    @property
    def heading(self) -> str:
        return str(self.page.locator("h1").inner_text())

    @property
    def text(self) -> str:
        return str(self.page.locator("main").inner_text())

    @property
    def path(self) -> str:
        return str(self.page.url).removeprefix(self.address)

    def press(self, what: Any) -> None:
        """Click, or tap with a finger."""
        (what.tap if self.phone else what.click)()

    def go_on(self) -> None:
        """Press the button of the page, and wait for the next one."""
        with self.page.expect_navigation():
            self.press(self.page.locator("main button").first)

    def agree(self) -> None:
        self.press(self.page.get_by_role("checkbox"))
        self.go_on()

    def begin(self, path: str = "/") -> None:
        """As far as the first group."""
        self.open(path)
        self.agree()
        self.go_on()

    @property
    def sliders(self) -> Any:
        return self.page.locator('input[type="range"]')

    @property
    def answers(self) -> list[str]:
        """What would be sent, one text a pair."""
        found: list[str] = self.page.locator("input[name^='pair-']").evaluate_all(_VALUES)
        return found

    def point(self, pair: int, value: float) -> tuple[float, float]:
        """Where on the screen a value of a slider is; the knob has half its width on either side."""
        script = """([i, value]) => {
          const slider = document.querySelectorAll('input[type="range"]')[i];
          slider.scrollIntoView({ block: "center" });
          const box = slider.getBoundingClientRect(), share = value / 100;
          const along = getComputedStyle(slider).direction === "rtl" ? 1 - share : share;
          return [box.left + 8 + (box.width - 16) * along, box.top + box.height / 2];
        }"""
        x, y = self.page.evaluate(script, [pair, value])
        return x, y

    def set(self, pair: int, value: int) -> None:
        """By finger on a phone; otherwise by click, by drag, or by keys, in turn."""
        if self.phone:
            self.page.touchscreen.tap(*self.point(pair, value))
        elif pair % 4 == 1:
            self.page.mouse.move(*self.point(pair, 50))
            self.page.mouse.down()
            self.page.mouse.move(*self.point(pair, value), steps=3)
            self.page.mouse.up()
        elif pair % 4 == 3:
            slider = self.sliders.nth(pair)
            slider.press("Home" if value < 50 else "End")
            for _ in range(min(value, 100 - value) // 10):
                slider.press("PageUp" if value < 50 else "PageDown")
        else:
            self.page.mouse.click(*self.point(pair, value))

    def rate(self, where: Callable[[str, int], int] = aim, but: Sequence[int] = ()) -> list[int]:
        """Set all sliders of a page ``but`` some, and say what they now show."""
        group = self.heading
        for pair in range(self.sliders.count()):
            if pair not in but:
                self.set(pair, where(group, pair))
        shown = [int(value) for value in self.sliders.evaluate_all(_VALUES)]
        self.rated.append(Rated(group, shown))
        return shown

    def hurry(self) -> None:
        """Set all sliders at once, by script, where it does not matter how; and go on."""
        group = self.heading
        ratings = [aim(group, pair) for pair in range(self.sliders.count())]
        script = """(all, ratings) => all.forEach((one, i) => {
          one.value = ratings[i];
          one.dispatchEvent(new Event("input", { bubbles: true }));
        })"""
        self.sliders.evaluate_all(script, ratings)
        self.rated.append(Rated(group, ratings))
        self.go_on()

    def which_group(self, group: str) -> None:
        self.press(self.page.get_by_role("radio", name=group, exact=True))
        self.go_on()

    def high_low(self) -> None:
        """As marked on the second page."""
        right = self.rated[1].ratings[0] > 50
        self.page.locator("#high").select_option(PAIRS[0][right])
        self.page.locator("#low").select_option(PAIRS[0][not right])
        self.go_on()

    def about_oneself(self) -> None:
        """One question is left out."""
        self.page.get_by_label("Gender").select_option("Non-binary")
        self.press(self.page.get_by_label("White"))
        self.press(self.page.get_by_label("Asian"))
        self.go_on()

    @property
    def code(self) -> str:
        return str(self.page.locator(".code").inner_text())

    def strangers(self) -> list[str]:
        """Requests that went anywhere but to the study."""
        return [url for url in self.requests if not url.startswith(f"{self.address}/")]

    def errors(self) -> list[str]:
        """What the console says, but for pages that were refused on purpose."""
        return [said for said in self.complaints if "the server responded with a status of 4" not in said]

    def problems(self) -> list[str]:
        return violations(self)


class Researcher(Person):
    """Somebody who knows the token."""

    def log_in(self) -> None:
        self.open("/researcher")
        self.page.get_by_label("Token").fill(TOKEN)
        self.go_on()

    def download(self, name: str, folder: Path) -> Path:
        with self.page.expect_download() as expected:
            self.press(self.page.get_by_role("link", name=name))
        folder.mkdir(exist_ok=True)
        path = folder / str(expected.value.suggested_filename)
        expected.value.save_as(path)
        return path

    def pages(self, folder: Path) -> list[dict[str, str]]:
        """Everything that was said, one row a page."""
        return list(csv.DictReader(io.StringIO(self.download("all_pages.csv", folder).read_text())))
