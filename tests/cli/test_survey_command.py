"""``biassay survey`` as a researcher types it; people take part through the store, as the pages do."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy")
pytest.importorskip("starlette")

from tests.survey.people import Person, go_on, opened, take_part

from biassay.stimuli.human import read_human
from biassay.survey.export import FILES
from biassay.survey.store import Store
from biassay.survey.study import read_study, study_text

from .conftest import Cli

pytestmark = pytest.mark.extras

STUDY = """\
name = "pets"
society = "Utopia"
groups = ["cats", "dogs", "[red]birds"]
pairs = [["cold", "warm"], ["poor", "wealthy"]]
[target]
annotations = 2
groups_a_participant = 2
[quality]
seconds_a_group = 0
[privacy]
link_demographics = true
[demographics.Gender]
choices = ["Woman", "Man"]
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Databases are made in the folder in which a command is typed."""
    monkeypatch.chdir(tmp_path)
    for name in ("BIASSAY_SURVEY_TOKEN", "BIASSAY_SURVEY_DATABASE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def study(here: Path) -> Path:
    path = here / "pets.toml"
    path.write_text(STUDY, encoding="utf-8")
    return path


@pytest.fixture
def store(study: Path, here: Path) -> Iterator[Store]:
    """The database that commands on ``pets.toml`` use if none is named."""
    with opened(f"sqlite:///{here / 'pets.sqlite'}", read_study(study)) as made:
        yield made


def refused(cli: Cli, *args: object) -> str:
    code, stdout, stderr = cli("survey", *args)
    assert (code, stdout) == (2, ""), stderr
    assert "Traceback" not in stderr
    return " ".join(stderr.split())


# new


def test_new_writes_the_shipped_study_to_change(cli: Cli, here: Path) -> None:
    code, stdout, _ = cli("survey", "new", here / "mine.toml")
    assert code == 0
    assert f"biassay survey serve {here / 'mine.toml'}" in stdout
    assert (here / "mine.toml").read_text(encoding="utf-8") == study_text("cao2022")
    assert read_study(here / "mine.toml") == read_study("cao2022")


def test_new_overwrites_nothing(cli: Cli, study: Path, here: Path) -> None:
    assert "exists; choose another file" in refused(cli, "new", study)
    assert study.read_text(encoding="utf-8") == STUDY
    assert "does not exist" in refused(cli, "new", here / "none" / "mine.toml")


# Studies and databases that cannot be used

WITH_STUDY = [("serve",), ("status",), ("export", "--out", "out"), ("delete",)]


def called(command: tuple[str, ...], study: object, *args: object) -> tuple[object, ...]:
    rest = ("CODE",) if command[0] == "delete" else ()
    return (command[0], study, *rest, *command[1:], *args)


@pytest.mark.parametrize("command", WITH_STUDY, ids=lambda command: command[0])
def test_an_unknown_study_offers_names_and_leaves_nothing(command: tuple[str, ...], cli: Cli, here: Path) -> None:
    said = refused(cli, *called(command, "cao2202"))
    assert "unknown study 'cao2202'; did you mean 'cao2022'?" in said
    assert ".toml" in said
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("command", WITH_STUDY, ids=lambda command: command[0])
def test_a_bad_study_is_refused_with_its_line(command: tuple[str, ...], cli: Cli, study: Path, here: Path) -> None:
    study.write_text(STUDY.replace("annotations = 2", "annotations = -2"))
    said = refused(cli, *called(command, study))
    assert f"{study}: line 6: field target.annotations: expected a whole number from 1 to 1000000" in said
    assert list(here.iterdir()) == [study]


@pytest.mark.parametrize("command", WITH_STUDY, ids=lambda command: command[0])
@pytest.mark.parametrize("url", ["nonsense", "mysql://u:geheim@h/d", "postgresql://u:geheim@h:port/d", "sqlite://"])
def test_a_database_address_that_is_none(command: tuple[str, ...], url: str, cli: Cli, study: Path) -> None:
    said = refused(cli, *called(command, study, "--database", url))
    assert "postgresql" in said.lower()
    assert "sqlite" in said.lower()
    assert "geheim" not in said


def test_an_unreachable_server_is_named_without_the_password(cli: Cli, study: Path) -> None:
    said = refused(cli, "status", study, "--database", "postgresql://someone:geheim@127.0.0.1:1/pets")
    assert "127.0.0.1" in said
    assert "cannot be used" in said
    assert "geheim" not in said


def test_the_database_may_come_from_the_environment(
    cli: Cli, study: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BIASSAY_SURVEY_DATABASE", f"sqlite:///{here / 'elsewhere.sqlite'}")
    assert cli("survey", "status", study)[0] == 0
    assert (here / "elsewhere.sqlite").exists()
    assert not (here / "pets.sqlite").exists()


def test_a_file_that_is_no_database(cli: Cli, study: Path, here: Path) -> None:
    (here / "notes.txt").write_text("no database " * 100)
    assert "cannot be used" in refused(cli, "status", study, "--database", f"sqlite:///{here / 'notes.txt'}")


@pytest.mark.parametrize("name", ["what?", "50%25", "a#b", "ünï cödé", "../up", "a/b", "x?mode=ro"])
def test_any_name_of_a_study_makes_a_database_in_this_folder_or_is_refused(
    name: str, cli: Cli, study: Path, here: Path
) -> None:
    study.write_text(STUDY.replace('"pets"', json.dumps(name, ensure_ascii=False)), encoding="utf-8")
    code, _, stderr = cli("survey", "status", study)
    assert code in (0, 2), stderr
    made = [path.name for path in here.iterdir() if path != study and not path.name.endswith(("-wal", "-shm"))]
    assert made == ([f"{name}.sqlite"] if code == 0 else [])
    assert not (here.parent / "up.sqlite").exists()


def test_a_changed_study_is_refused_once_there_are_data(cli: Cli, store: Store, study: Path) -> None:
    take_part(store)
    study.write_text(STUDY.replace("Utopia", "Atlantis"))
    said = refused(cli, "status", study)
    assert "a study is frozen once somebody has taken part" in said
    assert store.study.digest in said


# serve


def test_a_short_token_is_refused_before_anything_is_made(
    cli: Cli, study: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BIASSAY_SURVEY_TOKEN", "geheim")
    said = refused(cli, "serve", study)
    assert "$BIASSAY_SURVEY_TOKEN has 6 characters; a token needs at least 12" in said
    assert "geheim" not in said
    assert list(here.iterdir()) == [study]


@pytest.mark.parametrize("port", ["-1", "65536", "http"])
def test_a_port_that_is_none(port: str, cli: Cli, study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uvicorn.run", lambda *_, **__: pytest.fail("it was served"))
    assert "--port" in refused(cli, "serve", study, "--port", port)


@pytest.mark.parametrize("option", ["--begin-limit", "--page-limit"])
def test_a_limit_below_zero(option: str, cli: Cli, study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uvicorn.run", lambda *_, **__: pytest.fail("it was served"))
    assert option in refused(cli, "serve", study, option, "-5")


def test_what_serve_says_holds_no_secret(cli: Cli, study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[dict[str, object]] = []
    monkeypatch.setattr("uvicorn.run", lambda _, **options: served.append(options))
    code, stdout, _ = cli("survey", "serve", study)
    assert code == 0
    assert "researchers:  off; put a token into $BIASSAY_SURVEY_TOKEN" in stdout
    monkeypatch.setenv("BIASSAY_SURVEY_TOKEN", "a-long-secret-token")
    code, stdout, stderr = cli("survey", "serve", study, "--port", 8123)
    assert code == 0
    assert "http://127.0.0.1:8123/researcher" in stdout
    assert "a-long-secret-token" not in stdout + stderr
    assert [(options["host"], options["port"], options["access_log"]) for options in served] == [
        ("127.0.0.1", 8000, False),
        ("127.0.0.1", 8123, False),
    ]


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
        code, _, errors = cli("survey", *command)
        assert code == 2
        assert "is not in this folder" in errors
    assert not list(Path().glob("*.sqlite"))


def test_status_of_nobody(cli: Cli, study: Path) -> None:
    code, stdout, _ = cli("survey", "status", study, "--database", "sqlite:///nobody.sqlite")
    assert code == 0
    assert "participants: nobody yet" in stdout


# export and means


def heard(store: Store) -> list[tuple[str, dict[str, list[int]]]]:
    """Three people fill the study; who they are, and what they said of the groups they were asked about."""
    people = []
    for i, gender in enumerate(("Woman", "Man", "Woman")):
        someone = store.begin()
        assert someone is not None
        said = {group: [60 + 10 * i + g, 7 * i + g] for g, group in enumerate(store.study.groups)}
        go_on(store, someone, Person(said=lambda group, _, said=said: said[group], facts=(("Gender", gender),)))
        people.append((gender, {group: said[group] for group in someone.asked}))
    return people


def test_export_writes_all_files(cli: Cli, store: Store, study: Path, here: Path) -> None:
    people = heard(store)
    code, stdout, stderr = cli("survey", "export", study, "--out", here / "a" / "out")
    assert (code, stderr) == (0, "")
    out = here / "a" / "out"
    assert f"biassay stereotypes MODEL --human {out / 'ratings.json'}" in " ".join(stdout.split())
    assert sorted(path.name for path in out.iterdir()) == sorted(FILES)
    found = read_human(out / "ratings.json")
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
        for group, means in found["means"].items():
            own = [said[group] for said in chosen if group in said]
            for p, name in enumerate(store.study.pair_names):
                expected = sum(ratings[p] for ratings in own) / len(own) if own else None
                assert means[name] == (None if expected is None else pytest.approx(expected, abs=1e-4))


def test_means_as_a_table(cli: Cli, store: Store, study: Path, here: Path) -> None:
    heard(store)
    cli("survey", "export", study, "--out", here / "out")
    code, stdout, _ = cli("survey", "means", here / "out" / "ratings.json", "--group", "[red]birds", "--group", "cats")
    assert code == 0
    assert "3 annotators" in stdout
    assert "[red]birds" in stdout
    assert "cold - warm" in stdout
    assert "dogs" not in stdout


def test_means_that_cannot_be_taken(cli: Cli, store: Store, study: Path, here: Path) -> None:
    cli("survey", "export", study, "--out", here / "nobody")
    heard(store)
    cli("survey", "export", study, "--out", here / "out")
    ratings = here / "out" / "ratings.json"
    assert "empty; expected ratings" in refused(cli, "means", here / "nobody" / "ratings.json")
    assert "written FIELD=VALUE, got 'Gender'" in refused(cli, "means", ratings, "--annotators", "Gender")
    assert "did you mean 'Gender'?" in refused(cli, "means", ratings, "--annotators", "Gendre=Man")
    assert "did you mean 'Woman'?" in refused(cli, "means", ratings, "--annotators", "Gender=Women")
    assert "did you mean 'cats'?" in refused(cli, "means", ratings, "--group", "cat")
    assert "cannot be read" in refused(cli, "means", here / "none.json")


# delete


def test_delete_by_code_or_number_of_the_pool(cli: Cli, store: Store, study: Path) -> None:
    first = store.find(take_part(store))
    assert first is not None
    take_part(store, pool_id="p2")
    for known_as in (first.code, "p2"):
        code, stdout, stderr = cli("survey", "delete", study, known_as)
        assert (code, stdout, stderr) == (0, "deleted\n", "")
        assert f"nobody is known by {known_as!r}" in refused(cli, "delete", study, known_as)
    assert all(row == 2 for row in store.lacking().values())


def test_commands_are_named_in_the_help(cli: Cli) -> None:
    code, stdout, _ = cli("survey", "--help")
    assert code == 0
    assert all(f"  {name} " in stdout for name in ("new", "serve", "status", "export", "means", "delete"))
