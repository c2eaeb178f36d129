"""People take part in a real browser, of a study that is really served, and a researcher fetches what they said."""

from __future__ import annotations

import io
import json
import os
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.report.browser import chromium
from tests.survey.served import GROUPS, PAIRS, TOKEN, Person, Researcher, aim, otherwise, served, write_study

from biassay.stimuli.human import read_human

pytestmark = pytest.mark.extras
NAMES = [f"{left} - {right}" for left, right in PAIRS]
POOL = """
parameter = "PROLIFIC_PID"
completion_url = "https://pool.example/complete?cc={code}"
completion_code = "C1&AB"
"""
MARK = "ع"  # stands in every translated text, and in nothing else


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Of a small study that nobody has taken part in."""
    with served(write_study(tmp_path), tmp_path) as found:
        yield found


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of a study with room for all tests that look at pages, not at what was saved."""
    folder = tmp_path_factory.mktemp("shared")
    with served(write_study(folder, annotations=50), folder) as found:
        yield found


@pytest.fixture(scope="module")
def in_arabic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("arabic")
    with served(write_study(folder, annotations=50, texts=translated(folder).name), folder) as found:
        yield found


@pytest.fixture(scope="module")
def of_a_pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("pool")
    with served(write_study(folder, annotations=50, pool=POOL), folder) as found:
        yield found


@dataclass
class Walked:
    careful: Person
    careless: Person
    researcher: Researcher
    folder: Path


@pytest.fixture(scope="module", params=["desktop", "phone"])
def walked(browser: Any, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walked]:
    """A careful participant, then a careless one, then a researcher who looks at the study."""
    folder = tmp_path_factory.mktemp(request.param)
    phone = request.param == "phone"
    with served(write_study(folder), folder) as address:
        careful, careless = (Person(browser, address, phone=phone) for _ in range(2))
        careful.begin()
        careful.rate_all(lambda person: person.rated[0].group)
        careful.about_oneself()
        careless.begin()
        careless.rate_all(Person.wrong_group, repeat=otherwise)
        careless.about_oneself()
        researcher = Researcher(browser, address, phone=phone)
        researcher.log_in()
        yield Walked(careful, careless, researcher, folder)
        for person in (careful, careless, researcher):
            person.close()


def test_a_careful_participant_is_valid_and_the_export_has_what_the_sliders_showed(walked: Walked) -> None:
    assert walked.careful.heading == "Thank you"
    assert len(walked.careful.code) == 10
    shown = {rated.group: rated.ratings for rated in walked.careful.rated[:4]}
    assert len(shown) == 4
    path = walked.researcher.download("ratings.json", walked.folder)
    released = {group: dict(zip(NAMES, map(str, ratings), strict=True)) for group, ratings in shown.items()}
    assert json.loads(path.read_text()) == {"annotator0": released}
    human = read_human(path)
    assert human.pairs == PAIRS
    assert {group: list(row) for group, row in zip(human.groups, human.ratings[0], strict=True)} == shown


def test_the_careful_repeat_page_agrees_and_does_not_count(walked: Walked) -> None:
    pages = [row for row in walked.researcher.pages(walked.folder) if row["participant"] == "participant0"]
    assert [(row["repeat"], row["counts"]) for row in pages] == [("false", "true")] * 4 + [("true", "false")]
    assert {(row["status"], float(row["self_agreement"])) for row in pages} == {("valid", 1.0)}
    assert [row["reasons"] for row in pages] == [""] * 4 + ["repeated page"]
    said = [(row["group"], [int(row[name]) for name in NAMES]) for row in pages]
    assert said == [(rated.group, rated.ratings) for rated in walked.careful.rated]


def test_a_careless_participant_gets_a_code_and_is_rejected_kept_and_left_out(walked: Walked) -> None:
    assert walked.careless.heading == "Thank you"
    assert walked.careless.code not in ("", walked.careful.code)
    pages = [row for row in walked.researcher.pages(walked.folder) if row["participant"] == "participant1"]
    said = [(row["group"], [int(row[name]) for name in NAMES]) for row in pages]
    assert said == [(rated.group, rated.ratings) for rated in walked.careless.rated]
    assert {(row["status"], row["counts"]) for row in pages} == {("rejected", "false")}
    why = "which group; self-agreement"
    assert [row["reasons"] for row in pages] == [why] * 4 + [f"{why}; repeated page"]


def test_a_researcher_sees_how_far_the_study_is(walked: Walked) -> None:
    seen = walked.researcher.progress
    assert (seen["active"], seen["valid"], seen["rejected"], seen["pass rate"]) == ("0", "1", "1", "50%")
    assert (seen["rejected for: which group"], seen["rejected for: self-agreement"]) == ("1", "1")
    rated = {one.group: one.ratings for one in walked.careful.rated}
    assert walked.researcher.groups == {group: (int(group in rated), 0, 3) for group in GROUPS}
    means = {row[0]: row[1:] for row in walked.researcher.cells("Means")}
    for group in GROUPS:
        assert means[group] == ([f"{rating}.0" for rating in rated[group]] if group in rated else ["–"] * 16)


def test_facts_about_people_are_those_of_valid_ones_and_what_was_skipped_is_empty(walked: Walked) -> None:
    facts = json.loads(walked.researcher.download("demographics.json", walked.folder).read_text())
    assert list(facts.values()) == [{"Gender": "Non-binary", "Race": "White,Asian", "State": ""}]


def test_nothing_is_asked_of_other_servers_and_the_console_is_silent(walked: Walked) -> None:
    for person in (walked.careful, walked.careless, walked.researcher):
        assert person.strangers() == []
        assert person.complaints == []


def test_the_shipped_study_can_be_walked_and_a_hasty_person_is_rejected_for_that_alone(
    browser: Any, tmp_path: Path
) -> None:
    with served("cao2022", tmp_path) as address:
        person = Person(browser, address)
        person.begin()
        person.rate()
        person.go_on()
        person.which_group(person.rated[0].group)
        person.hurry()
        person.high_low()
        for _ in range(3):
            person.hurry()
        person.page.get_by_label("Age").select_option("25-34")
        person.go_on()
        assert len(person.code) == 10
        assert person.complaints == []
        researcher = Researcher(browser, address)
        researcher.log_in()
        assert researcher.progress["rejected for: too fast"] == "1"
        reasons = [row["reasons"] for row in researcher.pages(tmp_path)]
        assert reasons == ["too fast"] * 4 + ["too fast; repeated page"]
        assert json.loads(researcher.download("ratings.json", tmp_path).read_text()) == {}
        person.close()
        researcher.close()


def test_untouched_sliders_are_named_the_others_kept_and_the_middle_can_be_chosen(browser: Any, shared: str) -> None:
    person = Person(browser, shared)
    person.begin()
    person.rate(but=(2, 9, 13))
    before = person.answers
    assert [i for i, answer in enumerate(before) if answer == ""] == [2, 9, 13]
    person.go_on()
    message = person.page.locator("#missing")
    assert message.evaluate("(element) => element === document.activeElement")
    for i, (left, right) in enumerate(PAIRS):
        assert (f"{left} – {right}" in message.inner_text()) == (i in (2, 9, 13))
    assert person.answers == before
    assert person.sliders.evaluate_all("(all) => all.map((one) => one.value)") == [a or "50" for a in before]
    person.page.mouse.click(*person.point(2, 50))
    person.sliders.nth(9).press("Enter")
    person.sliders.nth(13).press("Space")
    assert [person.answers[i] for i in (2, 9, 13)] == ["50", "50", "50"]
    assert person.sliders.nth(2).get_attribute("aria-valuetext") == "in the middle between dominated and dominant"
    person.go_on()
    assert person.heading == "A question about the last page"
    person.close()


def test_only_what_is_meant_for_a_slider_answers_it(browser: Any, shared: str) -> None:
    """Neither a mouse that comes from elsewhere with its button down, nor the button of the menu, nor a wheel."""
    person = Person(browser, shared)
    person.begin()
    mouse = person.page.mouse
    x, y = person.point(3, 50)
    mouse.move(x - 300, y)
    mouse.down()
    mouse.move(x, y, steps=3)
    mouse.up()
    mouse.click(*person.point(5, 50), button="right")
    person.page.keyboard.press("Escape")
    person.sliders.nth(7).focus()
    mouse.move(*person.point(7, 50))
    mouse.wheel(0, 10)
    person.sliders.nth(8).press("a")
    assert person.answers == [""] * 16
    person.close()


def test_a_finger_that_scrolls_the_page_sets_no_slider(browser: Any, shared: str) -> None:
    person = Person(browser, shared, phone=True)
    person.begin()
    person.set(4, 80)
    shown = person.answers[4]
    assert int(shown) == pytest.approx(80, abs=4)
    for pair in (4, 6):
        person.point(pair, 50)
        before = person.page.evaluate("scrollY")
        person.swipe(pair, 150)
        assert person.page.evaluate("scrollY") > before + 50
    assert person.answers == [""] * 4 + [shown] + [""] * 11
    assert [person.sliders.nth(pair).input_value() for pair in (4, 6)] == [shown, "50"]
    person.set(6, 20)
    assert int(person.answers[6]) == pytest.approx(20, abs=4)
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
    # WCAG 2.2, 1.4.11: 3 to 1 for what is needed to recognise a control.
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
    expected = [list(MOVES.values())[pair % 8] for pair in range(16)]
    for place in range(5):
        if place == 0:
            first = person.heading
        keys.begin_page()
        for pair in range(16):
            assert keys.tab("range")["label"] == f"{PAIRS[pair][0]} or {PAIRS[pair][1]}"
            keys.press(list(MOVES)[pair % 8])
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


def test_back_reload_another_tab_and_a_double_click_neither_lose_nor_double_anything(
    browser: Any, address: str, tmp_path: Path
) -> None:
    person = Person(browser, address)
    person.open()
    person.agree()
    with person.page.expect_navigation():
        person.page.locator("main button").dblclick()
    assert "Page 2 of 9" in person.text
    other = person.tab()
    other.goto(f"{address}/page")
    person.page.bring_to_front()
    person.rate()
    with person.page.expect_navigation():
        person.page.locator("main button").dblclick()
    person.page.wait_for_load_state()
    for move in (person.page.go_back, person.page.go_back, person.page.go_forward, person.page.reload):
        move()
        assert "Page 3 of 9" in person.text
        assert person.sliders.count() == 0
    # The tab that was left behind still has the sliders; what it sends now comes too late.
    other.bring_to_front()
    for slider in other.locator('input[type="range"]').all():
        slider.press("Home")
    with other.expect_navigation():
        other.locator("main button").click()
    assert "Page 3 of 9" in other.locator("main").inner_text()
    other.close()
    person.which_group(person.rated[0].group)
    person.rate()
    person.page.reload()
    assert person.heading == person.rated.pop().group
    for place in range(1, 5):
        person.hurry()
        if place == 1:
            person.high_low()
    person.page.go_back()
    assert person.heading == "About you"
    with person.page.expect_navigation():
        person.page.locator("main button").dblclick()
    person.page.wait_for_load_state()
    code = person.code
    for path in ("/", "/page"):
        person.open(path)
        assert person.code == code
    researcher = Researcher(browser, address)
    researcher.log_in()
    said = [(row["group"], [int(row[name]) for name in NAMES]) for row in researcher.pages(tmp_path)]
    assert said == [(rated.group, rated.ratings) for rated in person.rated]
    assert (researcher.progress["valid"], researcher.progress["active"]) == ("1", "0")
    person.close()
    researcher.close()


def write_numbers(person: Person) -> list[str]:
    group = person.heading
    numbers = [str(aim(group, pair)) for pair in range(16)]
    for box, number in zip(person.page.locator('input[type="number"]').all(), numbers, strict=True):
        box.fill(number)
    return numbers


def test_without_scripts_numbers_are_written_instead(browser: Any, address: str, tmp_path: Path) -> None:
    person = Person(browser, address, scripts=False)
    person.begin()
    written = []
    for place in range(5):
        group = person.heading
        assert person.sliders.count() == 0
        written.append((group, write_numbers(person)))
        if place == 0:
            person.page.locator('input[type="number"]').nth(3).fill("101")
            person.go_on()
            assert "poor – wealthy" in person.page.locator("#missing").inner_text()
            person.page.locator('input[type="number"]').nth(3).fill(written[0][1][3])
        person.go_on()
        if place == 0:
            person.which_group(group)
        if place == 1:
            right = int(written[1][1][0]) > 50
            person.page.locator("#high").select_option(PAIRS[0][right])
            person.page.locator("#low").select_option(PAIRS[0][not right])
            person.go_on()
    person.about_oneself()
    assert len(person.code) == 10
    researcher = Researcher(browser, address)
    researcher.log_in()
    pages = researcher.pages(tmp_path)
    assert [(row["group"], [row[name] for name in NAMES]) for row in pages] == written
    assert {row["status"] for row in pages} == {"valid"}
    person.close()
    researcher.close()


def test_without_scripts_the_page_says_which_numbers_are_meant(browser: Any, shared: str) -> None:
    person = Person(browser, shared, scripts=False)
    person.begin()
    assert "100" in person.text
    person.close()


def translated(folder: Path) -> Path:
    """The English texts with a mark in each, written from right to left."""
    shipped = tomllib.loads((resources.files("biassay.survey") / "data" / "english.toml").read_text("utf-8"))
    lines = ['language = "ar"', 'direction = "rtl"']
    for section, texts in shipped.items():
        if isinstance(texts, dict):
            lines.append(f"[{section}]")
            for name, text in texts.items():
                marked = "\n\n".join(f"{MARK} {part.strip()}" for part in text.split("\n\n"))
                lines.append(f"{name} = {json.dumps(marked, ensure_ascii=False)}")
    path = folder / "arabic.toml"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


WORDS = """() => {
  const found = [document.title], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) found.push(walker.currentNode.data);
  for (const one of document.querySelectorAll("[aria-label], [aria-valuetext], [title], [placeholder]"))
    found.push(...["aria-label", "aria-valuetext", "title", "placeholder"].map((name) => one.getAttribute(name) || ""));
  return found.map((text) => text.trim()).filter((text) => text !== "");
}"""
OWN_WORDS = {*GROUPS, *(trait for pair in PAIRS for trait in pair), "Gender", "Race", "State", "Woman", "Man"}
OWN_WORDS |= {"Non-binary", "White", "Black", "Asian"}


def untranslated(person: Person) -> list[str]:
    """Words on the page that stand neither in the file of texts nor in the study."""
    assert person.page.locator("html").get_attribute("lang") == "ar"
    assert person.page.locator("html").get_attribute("dir") == "rtl"
    return [text for text in person.page.evaluate(WORDS) if MARK not in text and text not in OWN_WORDS]


def test_texts_of_a_translation_are_shown_everywhere_from_right_to_left(browser: Any, in_arabic: str) -> None:
    person = Person(browser, in_arabic)
    person.open()
    assert untranslated(person) == []
    person.agree()
    assert untranslated(person) == []
    person.go_on()
    group = person.heading.removeprefix(f"{MARK} ")
    person.go_on()
    assert "powerless – powerful" in person.page.locator("#missing").inner_text()
    person.set(0, 5)
    assert int(person.answers[0]) == pytest.approx(5, abs=4)
    left, right = (person.page.locator(f".pair .{side}").first.bounding_box() for side in ("left", "right"))
    assert left["x"] > right["x"]
    person.rate()
    assert untranslated(person) == []
    person.go_on()
    assert untranslated(person) == []
    person.which_group(group)
    for place in range(1, 5):
        person.hurry()
        if place == 1:
            assert untranslated(person) == []
            person.high_low()
    assert untranslated(person) == []
    person.go_on()
    assert untranslated(person) == [person.code]
    person.open("/nothing")
    assert untranslated(person) == []
    assert person.errors() == []
    person.close()


def test_the_researchers_side_of_a_translated_study_is_english_and_says_so(browser: Any, in_arabic: str) -> None:
    researcher = Researcher(browser, in_arabic)
    for step in (lambda: researcher.open("/researcher"), researcher.log_in):
        step()
        html = researcher.page.locator("html")
        assert (html.get_attribute("lang"), html.get_attribute("dir")) == ("en", "ltr")
    researcher.close()


def look(person: Person, name: str) -> None:
    """Everything that is demanded of every page, at the sizes and in the colours in which people see it."""
    folder = os.environ.get("BIASSAY_SCREENSHOTS")
    found = []
    for width, height in ((1280, 900), (390, 844)):
        person.page.set_viewport_size({"width": width, "height": height})
        for scheme in ("light", "dark"):
            person.page.emulate_media(color_scheme=scheme)
            found += [f"{width} {scheme} {problem}" for problem in person.problems()]
            if folder:
                person.page.screenshot(path=f"{folder}/{name}-{width}-{scheme}.png", full_page=True)
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
    assert "not the token" in researcher.text
    look(researcher, "1-login-wrong")
    researcher.page.get_by_label("Token").fill(TOKEN)
    researcher.go_on()
    look(researcher, "2-study")
    researcher.page.get_by_label("Completion code").fill("nobody")
    with researcher.page.expect_navigation():
        researcher.page.get_by_role("button", name="Delete").click()
    assert "Nobody is known by that." in researcher.text
    look(researcher, "2-study-deleted")
    assert researcher.errors() == []
    assert researcher.strangers() == []
    researcher.close()


def test_somebody_from_a_pool_goes_back_to_it_and_the_number_leaves_the_address(browser: Any, of_a_pool: str) -> None:
    person = Person(browser, of_a_pool)
    person.open("/?PROLIFIC_PID=5f00aa&STUDY_ID=s1&SESSION_ID=t2")
    assert person.path == "/"
    person.agree()
    person.go_on()
    for place in range(5):
        person.hurry()
        if place == 0:
            person.which_group(person.rated[0].group)
        if place == 1:
            person.high_low()
    person.go_on()
    assert [url for url in person.requests if "5f00aa" in url] == [
        f"{of_a_pool}/?PROLIFIC_PID=5f00aa&STUDY_ID=s1&SESSION_ID=t2"
    ]
    assert person.code == "C1&AB"
    asked: list[dict[str, str]] = []
    person.context.route(
        "https://pool.example/**",
        lambda route: (asked.append(route.request.all_headers()), route.fulfill(body="ok")),
    )
    with person.page.expect_navigation():
        person.press(person.page.get_by_role("link", name="Return to the page you came from"))
    assert person.page.url == "https://pool.example/complete?cc=C1%26AB"
    assert "referer" not in asked[0]
    twin = Person(browser, of_a_pool)
    twin.open("/?PROLIFIC_PID=5f00aa")
    twin.agree()
    assert twin.heading == "You have taken part already"
    person.close()
    twin.close()


def test_another_number_in_the_same_browser_is_another_person(browser: Any, of_a_pool: str) -> None:
    """Two people of a pool may share a computer: the second must not see the page, or get the code, of the first."""
    person = Person(browser, of_a_pool)
    person.begin("/?PROLIFIC_PID=first")
    person.hurry()
    person.open("/?PROLIFIC_PID=first")
    assert "Page 3 of 9" in person.text
    person.open("/?PROLIFIC_PID=second")
    assert person.heading == "How society sees groups of people"
    person.close()
