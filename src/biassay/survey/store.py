"""What happens to a participant, each step one transaction. Nothing is confirmed to anyone before it is written."""

from __future__ import annotations

import json
import random
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import sqlalchemy as sa

from biassay.errors import UsageError
from biassay.survey.assignment import Drawn, draw_groups
from biassay.survey.database import annotated, demographics, participants, reading, studies, wipe, writing
from biassay.survey.flow import Step, steps_of
from biassay.survey.frozen import prepare
from biassay.survey.participant import AllTaken, Participant, TakesPartAlready, participant_of
from biassay.survey.places import counts, free_absent, lock, move
from biassay.survey.quality import Answers, judged
from biassay.survey.study import Study

__all__ = ["Identifier", "Store"]

Identifier = Literal["code", "pool_id", "id"]
"""How a participant is identified: completion code, number in the pool, or the secret number of the session."""

_EMPTY: dict[str, Any] = {
    **dict.fromkeys(("which_group", "high", "low", "agreement", "reasons", "pool_id", "finished")),
    **dict.fromkeys(("step", "repeated", "created", "seen"), 0),
    **dict.fromkeys(("asked", "counted"), "[]"),
}
_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # no letters that look like digits


class Store:
    """The data of one study. ``clock`` returns the time in seconds; ``rng`` draws groups."""

    def __init__(
        self,
        engine: sa.Engine,
        study: Study,
        *,
        clock: Callable[[], float] = time.time,
        rng: random.Random | None = None,
    ) -> None:
        self.engine, self.study, self.clock = engine, study, clock
        self.rng = rng or random.SystemRandom()
        self.steps: tuple[Step, ...] = steps_of(study)
        self.secret = prepare(engine, study, clock())

    def begin(self, pool_id: str | None = None, participant: str | None = None) -> Participant | None:
        """Let somebody begin, who holds no place before the first rated page; None if the study is complete.

        Whoever has begun as ``participant`` does not begin again.
        """
        now, pool_id = self.clock(), pool_id and _storable(pool_id)
        with writing(self.engine) as connection:
            lock(connection)
            self._check_unchanged(connection)
            known = (
                connection.execute(sa.select(participants).where(participants.c.id == participant)).mappings().first()
            )
            if known is not None:
                return participant_of(dict(known))
            if pool_id is not None and connection.execute(_by_pool(pool_id)).first() is not None:
                raise TakesPartAlready
            if self._draw(connection, now) is None:
                return None
            person = {
                "id": participant or secrets.token_urlsafe(16),
                "status": "active",
                "step": 0,
                "asked": "[]",
                "counted": "[]",
                "repeated": 0,
                "pool_id": pool_id,
                "code": "".join(secrets.choice(_ALPHABET) for _ in range(10)),
                "created": now,
                "seen": now,
            }
            connection.execute(sa.insert(participants).values(person))
        return participant_of(person)

    def _draw(self, connection: sa.Connection, now: float) -> Drawn | None:
        """Groups for somebody, among those that still need annotations."""
        free_absent(connection, self._absent_before(now))
        lacking = {group: self.study.annotations - count for group, count in counts(connection).items()}
        return draw_groups(self.study.groups, lacking, self.study.groups_a_participant, self.rng)

    def _hold(self, connection: sa.Connection, participant: str, now: float) -> None:
        """Draw groups for somebody and hold them until they finish or stay away too long."""
        drawn = self._draw(connection, now)
        if drawn is None:
            raise AllTaken
        connection.execute(
            sa.update(participants)
            .where(participants.c.id == participant)
            .values(
                asked=json.dumps(drawn.groups, ensure_ascii=False),
                counted=json.dumps(sorted(drawn.counted), ensure_ascii=False),
                repeated=drawn.repeated,
            )
        )
        move(connection, drawn.counted, held=1)

    def _absent_before(self, now: float) -> float:
        return now - self.study.session_minutes * 60.0

    def _check_unchanged(self, connection: sa.Connection) -> None:
        """Another process may have put a changed file into the database before anybody began."""
        if connection.execute(sa.select(studies.c.digest)).scalar_one_or_none() != self.study.digest:
            raise UsageError("the database now holds another version of the study; serve that one")

    def find(self, participant: str) -> Participant | None:
        """Somebody by their secret number, unless they stayed away too long."""
        with reading(self.engine) as connection:
            row = connection.execute(sa.select(participants).where(participants.c.id == participant)).mappings().first()
        if row is None:
            return None
        found = participant_of(dict(row))
        if found.status == "active" and found.seen < self._absent_before(self.clock()):
            self.give_up_the_absent()
            return Participant(**{**vars(found), "status": "abandoned"})
        return found

    def lacking(self) -> dict[str, int]:
        """How many annotations of each group nobody has given or is about to give."""
        with reading(self.engine) as connection:
            return {group: self.study.annotations - count for group, count in counts(connection).items()}

    def unfinished(self) -> set[str]:
        """Who has begun and neither ended nor stayed away too long, by their secret numbers."""
        here = sa.select(participants.c.id).where(
            participants.c.status == "active", participants.c.seen >= self._absent_before(self.clock())
        )
        with reading(self.engine) as connection:
            return set(connection.execute(here).scalars())

    def answer(self, participant: str, step: int, given: Mapping[str, Any]) -> bool:
        """Write what was answered on a step and go on to the next; False if the person is not, or no longer, there.

        The same page sent twice, or by two windows at once, is written once. Who has read the instructions holds places
        from then on; if there are none left nothing is written, and `AllTaken` is raised.
        """
        now = self.clock()
        with writing(self.engine) as connection:
            if step in (0, len(self.steps) - 2):
                # Who comes to the first group holds places, and who ends fills them. They are locked before the person,
                # as everywhere, or two could wait for ever.
                lock(connection)
            mine = participants.c.id == participant
            moved = connection.execute(
                sa.update(participants)
                .where(mine, participants.c.step == step, participants.c.status == "active")
                .where(participants.c.seen >= self._absent_before(now))
                .values(
                    step=step + 1, seen=now, **{k: v for k, v in given.items() if k in ("which_group", "high", "low")}
                )
                .returning(participants.c.asked, participants.c.repeated)
            ).first()
            if moved is None:
                return False
            kind = self.steps[step].kind
            if kind == "instructions" and moved.asked == "[]":  # who began with an earlier version has groups already
                self._hold(connection, participant, now)
            elif kind == "group":
                self._annotate(connection, participant, self.steps[step].place, moved, given["ratings"], given["since"])
            elif kind == "demographics":
                answers = json.dumps(given["answers"], ensure_ascii=False)
                connection.execute(sa.insert(demographics).values(participant_id=participant, answers=answers))
            if self.steps[step + 1].kind == "done":
                self._finish(connection, participant, now)
        return True

    def _annotate(
        self, connection: sa.Connection, participant: str, place: int, row: Any, ratings: Sequence[int], since: float
    ) -> None:
        asked = json.loads(row.asked)
        now = self.clock()
        connection.execute(
            sa.insert(annotated).values(
                participant_id=participant,
                place=place,
                group_name=asked[place] if place < len(asked) else asked[row.repeated],
                ratings=json.dumps(list(ratings)),
                seconds=max(0.0, now - since),
                saved=now,
            )
        )

    def _finish(self, connection: sa.Connection, participant: str, now: float) -> None:
        """Judge the answers, and fill or free the places they were for; they are locked already."""
        person = connection.execute(sa.select(participants).where(participants.c.id == participant)).mappings().one()
        pages = connection.execute(
            sa.select(annotated).where(annotated.c.participant_id == participant).order_by(annotated.c.place)
        ).all()
        verdict = judged(
            Answers(
                pairs=self.study.pairs,
                groups=tuple(json.loads(person["asked"])),
                ratings=tuple(tuple(json.loads(page.ratings)) for page in pages),
                repeated=person["repeated"],
                seconds=tuple(page.seconds for page in pages),
                which_group=person["which_group"],
                high=person["high"],
                low=person["low"],
            ),
            self.study.rules,
        )
        connection.execute(
            sa.update(participants)
            .where(participants.c.id == participant)
            .values(
                status="valid" if verdict.valid else "rejected",
                agreement=verdict.agreement,
                reasons=json.dumps(verdict.reasons),
                finished=now,
            )
        )
        move(connection, json.loads(person["counted"]), held=-1, valid=int(verdict.valid))

    def give_up_the_absent(self) -> None:
        """Free the places of people who stayed away too long."""
        with writing(self.engine) as connection:
            lock(connection)
            free_absent(connection, self._absent_before(self.clock()))

    def delete(self, identifier: str, *, by: Identifier = "code") -> bool:
        """Delete everything the database holds about one participant; return False if there is no such participant.

        The kind of the identifier is never guessed: anybody can begin with another person's code as their pool number.
        An empty row remains, so that an open browser window can report the deletion.
        """
        identifier = _storable(identifier).strip()
        column = {"code": participants.c.code, "pool_id": participants.c.pool_id, "id": participants.c.id}[by]
        matches = column == (identifier.upper() if by == "code" else identifier)
        with writing(self.engine) as connection:
            lock(connection)
            # A page that is being written is waited for, so that it is deleted too.
            person = connection.execute(
                sa.select(participants).where(matches, participants.c.status != "deleted").with_for_update()
            ).mappings().first()  # fmt: skip
            if person is None:
                return False
            mine = person["id"]
            for table in (annotated, demographics):
                connection.execute(sa.delete(table).where(table.c.participant_id == mine))
            if person["status"] in ("active", "valid"):
                of = "held" if person["status"] == "active" else "valid"
                move(connection, json.loads(person["counted"]), **{of: -1})
            connection.execute(
                sa.update(participants)
                .where(participants.c.id == mine)
                .values(
                    **_EMPTY,
                    status="deleted",
                    code=f"deleted {secrets.token_hex(8)}",  # every row has a code of its own
                )
            )
        wipe(self.engine)
        return True


def _storable(text: str) -> str:
    """PostgreSQL takes no NUL."""
    return text.replace("\0", "\ufffd")


def _by_pool(pool_id: str) -> sa.Select[Any]:
    return sa.select(participants.c.id).where(participants.c.pool_id == pool_id)
