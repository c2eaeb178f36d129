"""Store of one study: group assignment, quotas, answers and deletion, one transaction per step.

The functions with a connection run in a transaction that has locked the quotas, so that counts cannot change.
"""

from __future__ import annotations

import json
import random
import secrets
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import sqlalchemy as sa

from biassay.errors import UsageError
from biassay.survey.database import (
    annotations_table,
    clear_write_ahead_log,
    demographics_table,
    lock_schema,
    participants_table,
    places_table,
    read_transaction,
    studies_table,
    write_transaction,
)
from biassay.survey.participants import (
    DuplicateParticipantError,
    Participant,
    QuotaFullError,
    Step,
    list_steps,
    make_participant,
)
from biassay.survey.quality import ParticipantAnswers, judge_quality
from biassay.survey.study import SurveyStudy


def lock_places(connection: sa.Connection) -> None:
    """Lock the quotas of all groups; every transaction locks them before participants.

    PostgreSQL locks the rows in one order for all; SQLite has one writer at a time.
    """
    connection.execute(sa.select(places_table.c.group_name).order_by(places_table.c.group_name).with_for_update()).all()


def adjust_places(connection: sa.Connection, groups: Collection[str], *, held: int = 0, valid: int = 0) -> None:
    """Change the numbers of held and valid annotations of groups.

    Parameters
    ----------
    connection : Connection
        Transaction that has locked the quotas.
    groups : collection of str
        Groups to change.
    held, valid : int
        Changes of the two numbers.
    """
    if not groups:
        return
    connection.execute(
        sa.update(places_table)
        .where(places_table.c.group_name.in_(list(groups)))
        .values(held=places_table.c.held + held, valid=places_table.c.valid + valid)
    )


def free_abandoned_places(connection: sa.Connection, before: float) -> None:
    """Release the places of participants last seen before a time."""
    gone = connection.execute(
        sa.update(participants_table)
        .where(participants_table.c.status == "active", participants_table.c.seen < before)
        .values(status="abandoned")
        .returning(participants_table.c.counted)
    ).all()
    for row in gone:
        adjust_places(connection, json.loads(row.counted), held=-1)


def prepare_study(engine: sa.Engine, study: SurveyStudy, now: float) -> str:
    """Write a study to its database, or check that it is the same study.

    Parameters
    ----------
    engine : Engine
        The database.
    study : SurveyStudy
        The study.
    now : float
        Time in seconds.

    Returns
    -------
    str
        Key that signs cookies.
    """
    with write_transaction(engine) as connection:
        lock_schema(connection)
        lock_places(connection)  # so that nobody begins
        known = connection.execute(sa.select(studies_table)).mappings().first()
        if known is not None and known["digest"] == study.digest:
            connection.execute(sa.update(studies_table).values(definition=study.definition))
            return str(known["secret"])
        kept = (
            sa.select(sa.func.count()).select_from(participants_table).where(participants_table.c.status != "deleted")
        )
        if known is not None and connection.execute(kept).scalar_one():
            raise UsageError(
                f"the database holds data of another version of the study {known['name']!r} ({known['digest']}, the "
                f"file has {study.digest}); a study cannot change once somebody has taken part: use the old file, "
                "or a new database"
            )
        secret = str(known["secret"]) if known is not None else secrets.token_hex(32)
        for table in (participants_table, studies_table, places_table):  # only deleted participants are left
            connection.execute(sa.delete(table))
        connection.execute(
            sa.insert(studies_table).values(
                id=1,
                name=study.name,
                digest=study.digest,
                definition=study.definition,
                secret=secret,
                created=now,
            )
        )
        connection.execute(
            sa.insert(places_table), [{"group_name": group, "valid": 0, "held": 0} for group in study.groups]
        )
        return secret


@dataclass(frozen=True)
class GroupAssignment:
    """Groups of a participant in the order shown, those that count, and the index of the repeated one.

    Near the end fewer groups may need annotations than a participant rates. The others are shown as usual, and their
    annotations are stored but do not count.
    """

    groups: tuple[str, ...]
    counted_groups: frozenset[str]
    repeated: int


def draw_groups(
    groups: Sequence[str], missing: Mapping[str, int], number: int, rng: random.Random
) -> GroupAssignment | None:
    """Draw groups for a participant.

    A group that misses as many annotations as participants are still needed must be drawn now; otherwise other groups
    would exceed their target. The rest is random.

    Parameters
    ----------
    groups : sequence of str
        All groups.
    missing : mapping
        Number of annotations per group that nobody has given or is about to give.
    number : int
        Groups per participant.
    rng : Random
        Source of randomness.

    Returns
    -------
    GroupAssignment or None
        None if no group needs annotations.
    """
    open_groups = [group for group in groups if missing.get(group, 0) > 0]
    if not open_groups:
        return None
    needed = -(-sum(missing[group] for group in open_groups) // number)
    shuffled = rng.sample(open_groups, len(open_groups))
    urgent = [group for group in shuffled if missing[group] >= needed]
    chosen = (urgent + [group for group in shuffled if group not in urgent])[:number]
    rest = [group for group in groups if group not in chosen]
    asked = chosen + rng.sample(rest, min(number - len(chosen), len(rest)))
    rng.shuffle(asked)
    return GroupAssignment(tuple(asked), frozenset(chosen), rng.randrange(len(asked)))


Identifier = Literal["code", "pool_id", "id"]
"""Kind of identifier: completion code, number in the pool, or the secret identifier of the session."""

_EMPTY: dict[str, Any] = {
    **dict.fromkeys(("which_group", "high", "low", "agreement", "reasons", "pool_id", "finished")),
    **dict.fromkeys(("step", "repeated", "created", "seen"), 0),
    **dict.fromkeys(("asked", "counted"), "[]"),
}
_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # no letters that look like digits


class Store:
    """Data of one study.

    Parameters
    ----------
    engine : Engine
        The database.
    study : SurveyStudy
        The study.
    clock : callable
        Returns the time in seconds.
    rng : Random, optional
        Draws groups.
    """

    def __init__(
        self,
        engine: sa.Engine,
        study: SurveyStudy,
        *,
        clock: Callable[[], float] = time.time,
        rng: random.Random | None = None,
    ) -> None:
        self.engine, self.study, self.clock = engine, study, clock
        self.rng = rng or random.SystemRandom()
        self.steps: tuple[Step, ...] = list_steps(study)
        self.secret = prepare_study(engine, study, clock())

    def add_participant(self, pool_id: str | None = None, participant: str | None = None) -> Participant | None:
        """Add a participant; return None if the study is complete.

        Participants hold places from the first rated page on. If `participant` exists, it is returned.
        """
        now = self.clock()
        with write_transaction(self.engine) as connection:
            lock_places(connection)
            self._check_unchanged(connection)
            known = _find_participant(connection, participant)
            if known is not None:
                return make_participant(known)
            twin = sa.select(participants_table.c.id).where(participants_table.c.pool_id == pool_id)
            if pool_id is not None and connection.execute(twin).first() is not None:
                raise DuplicateParticipantError
            if self._draw(connection, now) is None:
                return None
            person = {
                **_EMPTY,
                "id": participant or secrets.token_urlsafe(16),
                "status": "active",
                "pool_id": pool_id,
                "code": "".join(secrets.choice(_ALPHABET) for _ in range(10)),
                "created": now,
                "seen": now,
            }
            connection.execute(sa.insert(participants_table).values(person))
        return make_participant(person)

    def _draw(self, connection: sa.Connection, now: float) -> GroupAssignment | None:
        """Draw groups among those that need annotations."""
        free_abandoned_places(connection, self._abandoned_before(now))
        missing = self._count_missing(connection)
        return draw_groups(self.study.groups, missing, self.study.groups_per_participant, self.rng)

    def _count_missing(self, connection: sa.Connection) -> dict[str, int]:
        places = connection.execute(sa.select(places_table))
        return {row.group_name: self.study.annotations - row.valid - row.held for row in places}

    def _assign_groups(self, connection: sa.Connection, participant: str, now: float) -> None:
        """Draw groups for a participant and hold places until they finish or abandon the study."""
        drawn = self._draw(connection, now)
        if drawn is None:
            raise QuotaFullError
        connection.execute(
            sa.update(participants_table)
            .where(participants_table.c.id == participant)
            .values(
                asked=json.dumps(drawn.groups, ensure_ascii=False),
                counted=json.dumps(sorted(drawn.counted_groups), ensure_ascii=False),
                repeated=drawn.repeated,
            )
        )
        adjust_places(connection, drawn.counted_groups, held=1)

    def _abandoned_before(self, now: float) -> float:
        return now - self.study.session_minutes * 60.0

    def _check_unchanged(self, connection: sa.Connection) -> None:
        """Raise if another process wrote a changed study to the database."""
        if connection.execute(sa.select(studies_table.c.digest)).scalar_one_or_none() != self.study.digest:
            raise UsageError("the database holds another version of the study; serve that one")

    def find(self, participant: str) -> Participant | None:
        """Return a participant by their secret identifier, or None."""
        with read_transaction(self.engine) as connection:
            row = _find_participant(connection, participant)
        if row is None:
            return None
        found = make_participant(row)
        if found.status == "active" and found.seen < self._abandoned_before(self.clock()):
            self.release_abandoned()
            return replace(found, status="abandoned")
        return found

    def count_missing(self) -> dict[str, int]:
        """Count the annotations per group that nobody has given or is about to give."""
        with read_transaction(self.engine) as connection:
            return self._count_missing(connection)

    def unfinished(self) -> set[str]:
        """Return the identifiers of the participants who are still taking part."""
        here = sa.select(participants_table.c.id).where(
            participants_table.c.status == "active", participants_table.c.seen >= self._abandoned_before(self.clock())
        )
        with read_transaction(self.engine) as connection:
            return set(connection.execute(here).scalars())

    def save_step(self, participant: str, step: int, given: Mapping[str, Any]) -> bool:
        """Save the answers of a step and go to the next; return False if the participant is gone.

        A page that is sent twice, or from two windows, is saved once. After the instructions the participant holds
        places; if none are left, nothing is saved and `QuotaFullError` is raised.

        Parameters
        ----------
        participant : str
            Identifier of the participant.
        step : int
            Index of the step.
        given : mapping
            Answers, as `parse_step` returns them.
        """
        now = self.clock()
        with write_transaction(self.engine) as connection:
            if step in (0, len(self.steps) - 2):
                # The first step holds places and the last one fills them. Lock them before the participant, as
                # everywhere, to avoid a deadlock.
                lock_places(connection)
            mine = participants_table.c.id == participant
            moved = connection.execute(
                sa.update(participants_table)
                .where(mine, participants_table.c.step == step, participants_table.c.status == "active")
                .where(participants_table.c.seen >= self._abandoned_before(now))
                .values(
                    step=step + 1, seen=now, **{k: v for k, v in given.items() if k in ("which_group", "high", "low")}
                )
                .returning(participants_table.c.asked, participants_table.c.repeated)
            ).first()
            if moved is None:
                return False
            kind = self.steps[step].kind
            if kind == "instructions":
                self._assign_groups(connection, participant, now)
            elif kind == "group":
                self._annotate(connection, participant, self.steps[step].place, moved, given["ratings"], given["since"])
            elif kind == "demographics":
                answers = json.dumps(given["answers"], ensure_ascii=False)
                connection.execute(sa.insert(demographics_table).values(participant_id=participant, answers=answers))
            if self.steps[step + 1].kind == "done":
                self._finish(connection, participant, now)
        return True

    def _annotate(
        self, connection: sa.Connection, participant: str, place: int, row: Any, ratings: Sequence[int], since: float
    ) -> None:
        asked = json.loads(row.asked)
        now = self.clock()
        connection.execute(
            sa.insert(annotations_table).values(
                participant_id=participant,
                place=place,
                group_name=asked[place] if place < len(asked) else asked[row.repeated],
                ratings=json.dumps(list(ratings)),
                seconds=max(0.0, now - since),
                saved=now,
            )
        )

    def _finish(self, connection: sa.Connection, participant: str, now: float) -> None:
        """Judge the answers and fill or free the places, which are locked already."""
        person = _find_participant(connection, participant)
        assert person is not None  # its step was just saved
        pages = connection.execute(
            sa.select(annotations_table)
            .where(annotations_table.c.participant_id == participant)
            .order_by(annotations_table.c.place)
        ).all()
        verdict = judge_quality(
            ParticipantAnswers(
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
            sa.update(participants_table)
            .where(participants_table.c.id == participant)
            .values(
                status="valid" if verdict.valid else "rejected",
                agreement=verdict.agreement,
                reasons=json.dumps(verdict.reasons),
                finished=now,
            )
        )
        adjust_places(connection, json.loads(person["counted"]), held=-1, valid=int(verdict.valid))

    def release_abandoned(self) -> None:
        """Free the places of participants who abandoned the study."""
        with write_transaction(self.engine) as connection:
            lock_places(connection)
            free_abandoned_places(connection, self._abandoned_before(self.clock()))

    def delete(self, identifier: str, *, by: Identifier = "code") -> bool:
        """Delete everything the database holds about one participant; return False if there is no such participant.

        The kind of the identifier is never guessed: anybody can begin with another person's code as their pool number.
        An empty row remains, so that an open browser window can report the deletion.
        """
        identifier = identifier.strip()
        column = {
            "code": participants_table.c.code,
            "pool_id": participants_table.c.pool_id,
            "id": participants_table.c.id,
        }[by]
        matches = column == (identifier.upper() if by == "code" else identifier)
        with write_transaction(self.engine) as connection:
            lock_places(connection)
            # Wait for a page that is being saved, so that it is deleted too.
            alive = sa.select(participants_table).where(matches, participants_table.c.status != "deleted")
            person = connection.execute(alive.with_for_update()).mappings().first()
            if person is None:
                return False
            mine = person["id"]
            for table in (annotations_table, demographics_table):
                connection.execute(sa.delete(table).where(table.c.participant_id == mine))
            if person["status"] in ("active", "valid"):
                quota = "held" if person["status"] == "active" else "valid"
                adjust_places(connection, json.loads(person["counted"]), **{quota: -1})
            connection.execute(
                sa.update(participants_table)
                .where(participants_table.c.id == mine)
                .values(**_EMPTY, status="deleted", code=f"deleted {secrets.token_hex(8)}")  # codes are unique
            )
        clear_write_ahead_log(self.engine)
        return True


def _find_participant(connection: sa.Connection, participant: str | None) -> dict[str, Any] | None:
    """Return the row of a participant, or None."""
    rows = connection.execute(sa.select(participants_table).where(participants_table.c.id == participant))
    row = rows.mappings().first()
    return None if row is None else dict(row)
