"""In a real browser, everybody can answer: by mouse, finger or keys, by ear, without scripts, on any screen."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.survey.served import NAMES, PAIRS, Person, Researcher, aim, served, write_study
from tests.survey.walks import TOKEN

pytestmark = pytest.mark.extras


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of a study with room for all tests that look at pages, not at what was saved."""
    folder = tmp_path_factory.mktemp("shared")
    with served(write_study(folder, annotations=50), folder) as found:
        yield found


def test_untouched_sliders_are_named_the_others_kept_and_the_middle_can_be_chosen(browser: Any, shared: str) -> None:
    person = Person(browser, shared)
    person.begin()
    person.rate(but=(2, 4, 7))
    before = person.answers
    assert [i for i, answer in enumerate(before) if answer == ""] == [2, 4, 7]
    person.go_on()
    message = person.page.locator("#missing")
    assert message.evaluate("(element) => element === document.activeElement")
    for i, (left, right) in enumerate(PAIRS):
        assert (f"{left} – {right}" in message.inner_text()) == (i in (2, 4, 7))
    assert person.answers == before
    assert person.sliders.evaluate_all("(all) => all.map((one) => one.value)") == [a or "50" for a in before]
    person.page.mouse.click(*person.point(2, 50))
    person.sliders.nth(4).press("Enter")
    person.sliders.nth(7).press("Space")
    assert [person.answers[i] for i in (2, 4, 7)] == ["50", "50", "50"]
    assert person.sliders.nth(2).get_attribute("aria-valuetext") == "in the middle between dominated and dominant"
    person.go_on()
    assert person.heading == "A question about the last page"
    person.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_untouched_slider_can_be_seen_leans_to_neither_side_and_is_unlike_a_set_one_without_colours(
    browser: Any, shared: str, scheme: str
) -> None:
    person = Person(browser, shared, color_scheme=scheme)
    person.begin()
    person.page.mouse.click(*person.point(1, 50))
    person.page.locator("h1").click()
    untouched, middle = (luminance(person, pair) for pair in (0, 1))
    width = untouched.shape[1]
    halves = untouched[:, : width // 2].mean(), untouched[:, width - width // 2 :].mean()
    assert halves[0] == pytest.approx(halves[1], abs=0.01)
    paper = untouched[0, 0]
    knob = untouched[:, width // 2 - 8 : width // 2 + 8]
    # WCAG 2.2, 1.4.11: 3 to 1 for what is needed to recognize a control.
    assert max(contrast(value, paper) for value in knob.ravel()) >= 3.0
    assert np.abs(untouched - middle).max() > 0.2
    person.close()


def luminance(person: Person, pair: int) -> Any:
    """Relative luminance of every pixel of a slider, as WCAG defines it."""
    image = pytest.importorskip("PIL.Image")
    slider = person.sliders.nth(pair)
    slider.scroll_into_view_if_needed()
    with image.open(io.BytesIO(slider.screenshot())) as opened:
        channels = np.asarray(opened.convert("RGB"), dtype=float) / 255.0
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return linear @ np.array([0.2126, 0.7152, 0.0722])


def contrast(one: float, other: float) -> float:
    return (max(one, other) + 0.05) / (min(one, other) + 0.05)


FOCUSED = """() => {
  const at = document.activeElement, label = at.getAttribute("aria-label") || at.textContent;
  return { type: at.type || "", label: label.trim(), top: at.getBoundingClientRect().top + scrollY };
}"""
SEEN = """() => {
  const at = document.activeElement, style = getComputedStyle(at), box = at.getBoundingClientRect();
  const ring = parseFloat(style.outlineWidth) + parseFloat(style.outlineOffset);
  return style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2 && box.top - ring >= 0
    && box.left - ring >= 0 && box.bottom + ring <= innerHeight && box.right + ring <= innerWidth;
}"""


class Keys:
    """Hands on a keyboard. Wherever focus goes it can be seen, and it goes down the page."""

    def __init__(self, person: Person) -> None:
        self.page = person.page
        self.top = -1.0

    def tab(self, kind: str) -> dict[str, Any]:
        self.page.keyboard.press("Tab")
        focused: dict[str, Any] = self.page.evaluate(FOCUSED)
        assert focused["type"] == kind, focused
        self.page.wait_for_function(SEEN, timeout=3000)  # a page takes a moment to scroll
        assert focused["top"] > self.top, focused
        self.top = focused["top"]
        return focused

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def begin_page(self) -> None:
        """The first thing that is reached leads past what comes before the questions."""
        self.top = -1.0
        assert self.tab("")["label"] == "To the questions"
        self.top = -1.0

    def send(self) -> None:
        self.tab("submit")
        with self.page.expect_navigation():
            self.page.keyboard.press("Enter")


MOVES = {"ArrowRight": 51, "End": 100, "ArrowLeft": 49, "Home": 0, "PageUp": 60, "PageDown": 40, "Enter": 50, " ": 50}


def test_keys_alone_lead_from_start_to_end_with_focus_always_seen(browser: Any, address: str, tmp_path: Path) -> None:
    person = Person(browser, address)
    person.open()
    keys = Keys(person)
    keys.begin_page()
    keys.tab("checkbox")
    keys.press(" ")
    keys.send()
    keys.begin_page()
    keys.send()
    expected = list(MOVES.values())
    for place in range(5):
        if place == 0:
            first = person.heading
        keys.begin_page()
        for pair in range(8):
            assert keys.tab("range")["label"] == f"{PAIRS[pair][0]} or {PAIRS[pair][1]}"
            keys.press(list(MOVES)[pair])
        assert person.answers == [str(value) for value in expected]
        keys.send()
        if place == 0:
            keys.begin_page()
            keys.tab("radio")
            keys.press(" ")
            while person.page.locator(":checked").input_value() != first:
                keys.press("ArrowDown")
            keys.top = -1.0
            keys.send()
        if place == 1:
            keys.begin_page()
            for word in ("powerful", "powerless"):
                keys.tab("select-one")
                person.page.keyboard.type(word)
            keys.send()
    keys.begin_page()
    for kind in ("select-one", "checkbox", "checkbox", "checkbox", "text"):
        keys.tab(kind)
    keys.send()
    assert len(person.code) == 10
    researcher = Researcher(browser, address)
    researcher.log_in()
    pages = researcher.pages(tmp_path)
    assert {row["status"] for row in pages} == {"valid"}
    assert [[int(row[name]) for name in NAMES] for row in pages] == [expected] * 5
    person.close()
    researcher.close()


def spoken(person: Person) -> list[tuple[str, str]]:
    """Every slider by the name that Chromium gives to a screen reader, and its value in words.

    The words are read from the page: Chromium's protocol for tools does not show them, whatever the slider is made of.
    """
    session = person.context.new_cdp_session(person.page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    session.detach()
    names = [node["name"]["value"] for node in nodes if node.get("role", {}).get("value") == "slider"]
    values = person.sliders.evaluate_all("(all) => all.map((one) => one.getAttribute('aria-valuetext'))")
    return list(zip(names, values, strict=True))


def test_a_screen_reader_hears_the_words_and_how_far_to_which_side(browser: Any, shared: str) -> None:
    person = Person(browser, shared)
    person.begin()
    assert spoken(person) == [(f"{left} or {right}", "not answered yet") for left, right in PAIRS]
    for pair, key in enumerate(("End", "Home", "PageUp", "ArrowLeft", "Enter")):
        person.sliders.nth(pair).press(key)
    heard = [value for _, value in spoken(person)][:6]
    assert heard == [
        "100 of 100 towards powerful",
        "100 of 100 towards low status",
        "20 of 100 towards dominant",
        "2 of 100 towards poor",
        "in the middle between unconfident and confident",
        "not answered yet",
    ]
    person.close()


def test_without_scripts_numbers_are_written_instead(browser: Any, shared: str) -> None:
    person = Person(browser, shared, scripts=False)
    person.begin()
    group = person.heading
    assert person.sliders.count() == 0
    boxes = person.page.locator('input[type="number"]').all()
    for pair, box in enumerate(boxes):
        box.fill("101" if pair == 3 else str(aim(group, pair)))
    person.go_on()
    assert "poor – wealthy" in person.page.locator("#missing").inner_text()
    boxes[3].fill(str(aim(group, 3)))
    person.go_on()
    person.which_group(group)
    assert "Page 4 of 9" in person.text
    person.close()


def look(person: Person, name: str) -> None:
    """Everything that is demanded of every page, at a desk by day and on a phone by night."""
    found = []
    for width, height, scheme in ((1280, 900, "light"), (390, 844, "dark")):
        person.page.set_viewport_size({"width": width, "height": height})
        person.page.emulate_media(color_scheme=scheme)
        found += [f"{width} {scheme} {problem}" for problem in person.problems()]
    # 640 is a screen of 1280 at 200%, 320 the same at 400%, and the smallest phone.
    for width in (640, 320):
        person.page.set_viewport_size({"width": width, "height": 450})
        wide = person.page.evaluate("document.documentElement.scrollWidth")
        found += [f"{wide} pixels on a screen of {width}"] if wide > width else []
    person.page.set_viewport_size({"width": 1280, "height": 900})
    assert found == [], name


def test_every_page_of_a_participant_is_accessible_and_fits(browser: Any, shared: str) -> None:
    person = Person(browser, shared)
    person.open()
    look(person, "1-consent")
    person.page.get_by_role("checkbox").evaluate("(box) => box.removeAttribute('required')")
    person.go_on()
    look(person, "1-consent-missing")
    person.agree()
    look(person, "2-instructions")
    person.go_on()
    look(person, "3-group")
    person.rate(but=(3,))
    person.go_on()
    look(person, "3-group-missing")
    person.set(3, 20)
    person.go_on()
    look(person, "4-which-group")
    person.go_on()
    look(person, "4-which-group-missing")
    person.which_group(person.rated[0].group)
    person.hurry()
    look(person, "5-high-low")
    person.high_low()
    for _ in range(3):
        person.hurry()
    look(person, "6-about-you")
    person.go_on()
    look(person, "7-done")
    person.open("/nothing")
    look(person, "8-error")
    assert person.errors() == []
    assert person.strangers() == []
    person.close()


def test_every_page_of_a_researcher_is_accessible_and_fits(browser: Any, shared: str) -> None:
    researcher = Researcher(browser, shared)
    researcher.open("/researcher")
    look(researcher, "1-login")
    researcher.page.get_by_label("Token").fill("not the token")
    researcher.go_on()
    assert "Wrong token." in researcher.text
    look(researcher, "1-login-wrong")
    researcher.page.get_by_label("Token").fill(TOKEN)
    researcher.go_on()
    look(researcher, "2-study")
    researcher.page.get_by_label("Code or number").fill("nobody")
    with researcher.page.expect_navigation():
        researcher.page.get_by_role("button", name="Delete").click()
    assert "No participant has this code or number." in researcher.text
    look(researcher, "2-study-deleted")
    assert researcher.errors() == []
    assert researcher.strangers() == []
    researcher.close()
