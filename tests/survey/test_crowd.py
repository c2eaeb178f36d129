"""A crowd that nobody thought of, by property-based testing: places stay as a recount finds them."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule
from tests.survey.walks import GROUPS, TOKEN, Walker, log_in, opened

pytestmark = pytest.mark.extras


class Crowd(RuleBasedStateMachine):
    """Several people at once, some of whom stay away, press twice, send old pages or others' forms, or are deleted."""

    people = Bundle("people")

    def __init__(self) -> None:
        super().__init__()
        self.ends = ExitStack()
        folder = Path(self.ends.enter_context(TemporaryDirectory()))
        self.place = self.ends.enter_context(opened(folder, token=TOKEN, annotations=2, each=2, seconds=0))
        self.confirmed: dict[tuple[str, int], str] = {}
        self.old: dict[int, list[dict[str, Any]]] = {}

    def teardown(self) -> None:
        self.ends.close()

    @initialize()
    def researcher(self) -> None:
        self.desk = self.place.browser()
        assert log_in(self.desk.client).kind == "researcher"

    @rule(target=people, number=st.sampled_from([None, None, None, "a", "b", "%00"]))
    def begins(self, number: str | None) -> Walker:
        person = self.place.browser()
        page = person.begin(number)
        assert page.kind in ("instructions", "message")
        assert page.status in (200, 409)
        return person

    @rule(person=people, rating=st.integers(0, 100))
    def answers(self, person: Walker, rating: int) -> None:
        person.get("/page")
        if person.page.kind in ("consent", "message", "done"):
            return
        if person.page.kind == "group" and rating < 90:
            person.rate = lambda *_: rating
        given = {**person.page.hidden, **(person.answers())}
        self.old.setdefault(id(person), []).append(given)
        before = person.page.step
        person.answer()
        # An answer takes a while, and may come too late.
        assert person.page.kind in ("done", "message") or person.page.step == before + 1
        self.note()

    @rule(person=people, which=st.integers(0, 20), step=st.integers(-1, 9))
    def sends_an_old_page(self, person: Walker, which: int, step: int) -> None:
        sent = self.old.get(id(person), [])
        if sent:
            before = self.place.everything()
            assert person.post("/page", sent[which % len(sent)]).status == 200
            at = person.page.hidden.get("step")
            if str(step) != at and person.page.kind != "message":
                person.post("/page", {**sent[which % len(sent)], "step": step})
            assert self.unmoved(before)

    @rule(person=people, other=people)
    def sends_the_form_of_another(self, person: Walker, other: Walker) -> None:
        if person is not other and other.get("/page").kind not in ("message", "done"):
            form = {**other.page.hidden, **(other.answers() if other.groups else {})}
            before = self.place.everything()
            assert person.post("/page", form).status == 403
            assert self.unmoved(before)

    @rule(minutes=st.sampled_from([1, 59, 61]))
    def time_passes(self, minutes: int) -> None:
        self.place.clock.now += minutes * 60.0

    @rule(person=consumes(people))
    def is_deleted(self, person: Walker) -> None:
        if person.get("/page").kind in ("message", "consent"):
            return
        number = self.place.rows("SELECT id, code FROM participants WHERE status != 'deleted' ORDER BY created")
        code = person.page.code or number[-1][1]
        gone = next(row[0] for row in number if row[1] == code)
        token = self.desk.get("/researcher").token
        assert "were deleted" in self.desk.post("/researcher/delete", {"token": token, "known_as": code}).text
        self.confirmed = {key: value for key, value in self.confirmed.items() if key[0] != gone}

    @rule(name=st.sampled_from(["ratings.json", "ratings.csv", "all_pages.csv", "demographics.json"]))
    def is_exported(self, name: str) -> None:
        assert self.desk.client.get(f"/researcher/export/{name}").status_code == 200

    def note(self) -> None:
        for number, place, ratings in self.place.rows("SELECT participant_id, place, ratings FROM annotations"):
            assert self.confirmed.setdefault((number, place), ratings) == ratings

    def unmoved(self, before: dict[str, list[str]]) -> bool:
        """Nothing is different, save that absent people may have been given up."""
        after = self.place.everything()
        return all(after[table] == before[table] for table in ("annotations", "demographics"))

    @invariant()
    def places_are_as_a_recount_finds_them(self) -> None:
        kept = self.place.kept()
        assert kept == self.place.recount()
        assert set(kept) == set(GROUPS)
        assert all(valid >= 0 and held >= 0 and valid + held <= 2 for valid, held in kept.values())

    @invariant()
    def what_was_confirmed_is_there(self) -> None:
        rows = self.place.rows("SELECT participant_id, place, ratings FROM annotations")
        assert {(number, place): ratings for number, place, ratings in rows} == self.confirmed

    @invariant()
    def as_many_pages_as_steps(self) -> None:
        kinds = [step.kind for step in self.place.store.steps]
        found = self.place.rows(
            "SELECT p.step, p.status, count(a.place) FROM participants p "
            "LEFT JOIN annotations a ON a.participant_id = p.id GROUP BY p.id"
        )
        for step, status, pages in found:
            assert pages == (0 if status == "deleted" else kinds[:step].count("group"))
            assert (status in ("valid", "rejected")) <= (step == len(kinds) - 1)


Crowd.TestCase.settings = settings(
    max_examples=12,
    stateful_step_count=30,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # to make a failing crowd smaller takes minutes
)
TestCrowd = pytest.mark.extras(Crowd.TestCase)
