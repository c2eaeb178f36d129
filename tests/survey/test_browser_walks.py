"""People take part in a real browser, of a study that is really served, and a researcher fetches what they said."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from tests.survey import browsers
from tests.survey.browsers import NAMES
from tests.survey.served import PAIRS, Person, Researcher, otherwise, served, write_study
from tests.survey.walks import GROUPS

from biassay.datasets.human_ratings import read_human_ratings

pytestmark = pytest.mark.extras
browser, address = browsers.browser, browsers.address
POOL = """
parameter = "PROLIFIC_PID"
completion_url = "https://pool.example/complete?cc={code}"
completion_code = "C1&AB"
"""
MARK = "ع"  # stands in every translated text, and in nothing else


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


@pytest.fixture(scope="module")
def walked(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walked]:
    """A careful participant at a desk, then a careless one with a phone, then a researcher who looks at the study."""
    folder = tmp_path_factory.mktemp("walked")
    with served(write_study(folder), folder) as address:
        careful, careless = Person(browser, address), Person(browser, address, phone=True)
        careful.begin()
        careful.rate_all(lambda person: person.rated[0].group)
        careful.about_oneself()
        careless.begin()
        careless.rate_all(Person.wrong_group, repeat=otherwise)
        careless.about_oneself()
        researcher = Researcher(browser, address)
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
    human = read_human_ratings(path)
    assert human.pairs == PAIRS
    assert {group: list(row) for group, row in zip(human.groups, human.ratings[0], strict=True)} == shown


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
        assert means[group] == ([f"{rating}.0" for rating in rated[group]] if group in rated else ["–"] * len(PAIRS))


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

    def respond(route: Any) -> None:
        asked.append(route.request.all_headers())
        route.fulfill(body="ok")

    person.context.route("https://pool.example/**", respond)
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
