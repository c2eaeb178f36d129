"""People take part in a real browser, of a study that is really served, and a researcher fetches what they said."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from tests.survey.served import NAMES, PAIRS, Person, Researcher, served, write_study
from tests.survey.walks import GROUPS

pytestmark = pytest.mark.extras
MARK = "ع"  # stands in every translated text, and in nothing else


@pytest.fixture(scope="module")
def in_arabic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("arabic")
    with served(write_study(folder, annotations=50, texts=translated(folder).name), folder) as found:
        yield found


@pytest.mark.parametrize("phone", [False, True])
def test_the_export_has_what_the_sliders_showed(browser: Any, address: str, tmp_path: Path, phone: bool) -> None:
    person = Person(browser, address, phone=phone)
    person.begin()
    for place in range(5):
        person.rate()
        person.go_on()
        if place == 0:
            person.which_group(person.rated[0].group)
        if place == 1:
            person.high_low()
    person.about_oneself()
    assert len(person.code) == 10
    shown = {rated.group: rated.ratings for rated in person.rated[:4]}
    assert len(shown) == 4
    researcher = Researcher(browser, address)
    researcher.log_in()
    path = researcher.download("ratings.json", tmp_path)
    released = {group: dict(zip(NAMES, map(str, ratings), strict=True)) for group, ratings in shown.items()}
    assert json.loads(path.read_text()) == {"annotator0": released}
    for one in (person, researcher):
        assert one.strangers() == []
        assert one.complaints == []
        one.close()


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
    person.close()
    researcher.close()


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
