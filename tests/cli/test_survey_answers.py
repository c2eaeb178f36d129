"""``biassay survey`` with stored answers: status, export, means and delete."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from tests.survey.people import Person, go_on, take_part

from biassay.datasets.human_ratings import read_human_ratings
from biassay.survey.export import EXPORT_FILES
from biassay.survey.store import Store

from . import survey_study
from .conftest import Cli
from .survey_study import STUDY, refused

pytestmark = pytest.mark.extras
here, study, store = survey_study.here, survey_study.study, survey_study.store


# status


def test_status_counts(cli: Cli, store: Store, study: Path) -> None:
    take_part(store)
    take_part(store, Person(fault="which group"))
    take_part(store, until=1)
    code, stdout, stderr = cli("survey", "status", study)
    assert (code, stderr) == (0, "")
    assert "1 active, 1 rejected, 1 valid; 50% of those who ended passed" in stdout
    assert "rejected for which group: 1" in stdout
    assert "[red]birds" in stdout
    code, stdout, _ = cli("survey", "status", study, "--json")
    found = json.loads(stdout)
    assert code == 0
    assert found["status"] == {"active": 1, "rejected": 1, "valid": 1}
    assert sum(group["valid"] for group in found["groups"]) == 2
    assert {group["target"] for group in found["groups"]} == {2}
    assert found["digest"] == store.study.digest


def test_only_who_serves_makes_a_database(cli: Cli, study: Path) -> None:
    for command in (["status", study], ["export", study, "--out", "answers"], ["delete", study, "CODE"]):
        assert "pets.sqlite does not exist" in refused(cli, *command)
        for url in (
            "sqlite:///other.sqlite",
            f"sqlite:///{study.parent / 'other.sqlite'}",
            "sqlite+pysqlite:///other.sqlite",
        ):
            assert "other.sqlite does not exist" in refused(cli, *command, "--database", url)
    assert list(study.parent.iterdir()) == [study]


# export and means


def heard(store: Store) -> list[tuple[str, dict[str, list[int]]]]:
    """Complete a study with three participants, and return their codes and ratings."""
    people = []
    for i, gender in enumerate(("Woman", "Man", "Woman")):
        someone = store.add_participant()
        assert someone is not None
        said = {group: [60 + 10 * i + g, 7 * i + g] for g, group in enumerate(store.study.groups)}
        person = Person(said=lambda group, _, said=said: said[group], facts=(("Gender", gender),))  # type: ignore[misc]
        someone = go_on(store, someone, person)
        people.append((gender, {group: said[group] for group in someone.asked}))
    return people


def test_export_writes_all_files(cli: Cli, store: Store, study: Path, here: Path) -> None:
    people = heard(store)
    code, stdout, stderr = cli("survey", "export", study, "--out", here / "a" / "out")
    assert (code, stderr) == (0, "")
    out = here / "a" / "out"
    assert f"biassay stereotypes MODEL --human {out / 'ratings.json'} --files FILE" in " ".join(stdout.split())
    assert sorted(path.name for path in out.iterdir()) == sorted(EXPORT_FILES)
    found = read_human_ratings(out / "ratings.json")
    for a, (gender, said) in enumerate(people):
        assert found.demographics[a] == {"Gender": gender}
        for group, ratings in said.items():
            assert found.ratings[a, found.groups.index(group)].tolist() == ratings
    assert json.loads((out / "study.json").read_text())["society"] == tomllib.loads(STUDY)["society"]


def test_export_overwrites_nothing(cli: Cli, store: Store, study: Path, here: Path) -> None:
    heard(store)
    (here / "full").mkdir()
    (here / "full" / "ratings.json").write_text("mine")
    (here / "file").write_text("mine")
    for out in ("full", "file"):
        assert f"{out} is not an empty folder; choose another" in refused(cli, "export", study, "--out", out)
    assert [path.name for path in (here / "full").iterdir()] == ["ratings.json"]
    assert (here / "full" / "ratings.json").read_text() == (here / "file").read_text() == "mine"
    (here / "empty").mkdir()
    assert cli("survey", "export", study, "--out", here / "empty")[0] == 0


def test_export_needs_a_folder(cli: Cli, study: Path) -> None:
    assert "--out" in refused(cli, "export", study)


def test_means_of_all_and_of_some(cli: Cli, store: Store, study: Path, here: Path) -> None:
    people = heard(store)
    cli("survey", "export", study, "--out", here / "out")
    for gender, options in (
        ("", ()),
        ("Woman", ("--annotators", "Gender=Woman")),
        ("Man", ("--annotators", "Gender=Man")),
    ):
        code, stdout, _ = cli("survey", "means", here / "out" / "ratings.json", *options, "--json")
        found = json.loads(stdout)
        chosen = [said for own, said in people if gender in ("", own)]
        assert (code, found["annotators"]) == (0, len(chosen))
        assert found["raters"] == {group: sum(group in said for said in chosen) for group in found["means"]}
        for group, means in found["means"].items():
            own = [said[group] for said in chosen if group in said]
            for p, name in enumerate(store.study.pair_names):
                expected = sum(ratings[p] for ratings in own) / len(own) if own else None
                assert means[name] == (None if expected is None else pytest.approx(expected, abs=1e-4))


def test_means_name_the_groups_of_few_annotators(cli: Cli, here: Path) -> None:
    """Of 5 annotators all rate cats, 4 dogs and nobody of those who are chosen birds."""
    ratings = {"cold - warm": "10"}
    people = {
        f"annotator{i}": {
            "demographics": {"Gender": "Man"},
            **dict.fromkeys(("cats", "dogs")[: 1 if i == 0 else 2], ratings),
        }
        for i in range(5)
    }
    people["annotator5"] = {"demographics": {"Gender": "Woman"}, "birds": ratings}
    (here / "ratings.json").write_text(json.dumps(people))
    code, stdout, _ = cli("survey", "means", here / "ratings.json", "--annotators", "Gender=Man")
    assert code == 0
    assert "fewer than 5 annotators: dogs\n" in stdout
    code, stdout, _ = cli("survey", "means", here / "ratings.json", "--groups", "cats")
    assert code == 0
    assert "fewer than" not in stdout


# delete


def test_delete_by_code_or_number_of_the_pool(cli: Cli, store: Store, study: Path) -> None:
    first = store.find(take_part(store))
    assert first is not None
    take_part(store, pool_id="p2")
    assert "no participant has the completion code 'p2'; try again with --pool-number" in refused(
        cli, "delete", study, "p2"
    )
    for arguments in ([f" {first.code.lower()}"], ["p2", "--pool-number"]):
        code, stdout, stderr = cli("survey", "delete", study, *arguments)
        assert (code, stderr) == (0, "")
        assert stdout.startswith("Deleted. Earlier exports still contain this participant")
        assert "no participant has the" in refused(cli, "delete", study, *arguments)
    assert all(row == 2 for row in store.count_missing().values())
