"""``biassay stereotypes`` as a user types it, on a tiny model that knows the words of the sentences."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.encoders.tiny_models import save_tiny
from tests.studies.stereotypes.asked_models import GROUPS, Place, judgements, save_masked

from biassay.results.stereotypes import Stereotypes
from biassay.studies.stereotypes.words import (
    MEANING_OF_PROFILES,
    stereotypes_headline,
    stereotypes_summary,
    templates_text,
)

from .conftest import Cli
from .shown_runs import manifest_in

pytestmark = pytest.mark.extras
Asked = Callable[..., tuple[int, str, str]]
Refused = Callable[..., str]


@pytest.fixture(scope="module")
def place(asked_place: Place) -> Place:
    return asked_place


@pytest.fixture
def asked(cli: Cli, place: Place) -> Asked:
    """``biassay stereotypes MODEL --with own.toml ...`` about the groups of that file in its templates."""

    def call(*args: object) -> tuple[int, str, str]:
        own = ("--with", place.files[0], "--group", "land", "--group", "craft", "--template", "mine", "--draws", 20)
        return cli("stereotypes", place.model, *own, *args)

    return call


@pytest.fixture
def refused(cli: Cli, place: Place, tmp_path: Path) -> Refused:
    """Runs a command that must be refused without a trace; returns what it said."""

    def call(*args: object, model: object = None) -> str:
        before = sorted(tmp_path.rglob("*"))
        models = (place.model,) if model is None else (model,) if model else ()
        own = ("--with", place.files[0], "--out", tmp_path / "refused")
        code, stdout, stderr = cli("stereotypes", *models, *own, *args)
        assert (code, stdout) == (2, ""), stderr
        assert "Traceback" not in stderr
        assert sorted(tmp_path.rglob("*")) == before
        return " ".join(stderr.split())

    return call


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("│").split("│")]


def test_tables_and_sentences_are_printed(asked: Asked, place: Place) -> None:
    code, stdout, _ = asked("--human", place.human, "--annotators", "Gender=Woman", "--measure", "ilps")
    assert code == 0
    found = place(human=place.human, annotators=[("Gender", "Woman")], measures="ilps", draws=20)
    lines, flat = stdout.splitlines(), " ".join(stdout.split())
    assert lines[0] == stereotypes_headline(found)
    (record,) = found.results[0].measures
    for alignment in record.alignments:
        start = f"│ ILPS    │ {alignment.annotators} ({alignment.num_annotators})"
        row = next(cells(line) for line in lines if line.startswith(start))
        two_digits = (alignment.tau, alignment.tau_shuffled, alignment.precision, alignment.tau_with_pilot)
        assert (row[2], row[4], row[6], row[7]) == tuple(f"{value:.2f}" for value in two_digits)
        low, high = alignment.tau_both or (0, 0)
        assert row[3] == f"{low:.2f} to {high:.2f}"
        assert row[8] in templates_text(record, found)
    for sentence in (*stereotypes_summary(found), *found.manifest.human_notes, MEANING_OF_PROFILES):
        assert sentence in flat
    at = next(i for i, line in enumerate(lines) if line.endswith(f": ILPS, {templates_text(record, found)}"))
    rows = [cells(line) for line in lines[at:] if line.startswith("│")]
    pilot = {group.group for group in record.alignments[0].groups if group.pilot}
    names = {f"{group} (pilot)" if group in pilot else group: group for group in GROUPS}
    firsts = [row for row in rows if row[0] in names]
    assert [names[row[0]] for row in firsts] == list(GROUPS)
    assert len(pilot) == 2
    for row, profile in zip(firsts, record.profiles, strict=True):
        best = max((score, pair) for score, pair in zip(profile.scores, found.manifest.pairs, strict=True))
        worst = min((score, pair) for score, pair in zip(profile.scores, found.manifest.pairs, strict=True))
        assert row[1].startswith(f"{best[1]} {best[0]:+.2f}")
        assert row[2].startswith(f"{worst[1]} {worst[0]:+.2f}")
    taus = {group.group: group for group in record.alignments[0].groups}
    for row in firsts:
        own = taus.get(names[row[0]])
        assert row[3:] == ([f"{own.tau:.2f}", f"{own.precision:.2f}"] if own else ["", ""])


def test_without_people_nothing_is_said_of_agreement(asked: Asked) -> None:
    code, stdout, _ = asked("--measure", "set")
    assert code == 0
    assert "agreement with people" not in stdout
    assert "tau │" not in stdout
    assert "SeT, all 4 templates" in stdout


def test_paired_groups_are_printed(asked: Asked, place: Place) -> None:
    code, stdout, _ = asked("--measure", "ilps", "--intersections")
    (crossed,) = place(measures="ilps", intersections=True, draws=20).results[0].intersections
    lines = stdout.splitlines()
    assert code == 0
    at = next(i for i, line in enumerate(lines) if line.endswith("ILPS, traits that emerge in paired groups"))
    end = next(i for i in range(at, len(lines)) if lines[i].startswith("└"))
    rows = [cells(line) for line in lines[at:end] if line.startswith("│")]
    assert [row[:3] for row in rows] == [[e.group, e.trait, e.direction] for e in crossed.emergent[:15]]
    assert [row[3:5] for row in rows] == [[f"{e.excess:.3f}", f"{e.bound:.3f}"] for e in crossed.emergent[:15]]
    flat = " ".join(stdout.split())
    assert f"15 paired groups: a pair agrees with the group named first with tau {crossed.tau_first.value:.2f}" in flat


def test_json_holds_what_is_written(asked: Asked, place: Place, tmp_path: Path) -> None:
    out = tmp_path / "new" / "out"
    code, stdout, _ = asked("--human", place.human, "--json", "--out", out, "--seed", 3, "--all-adjectives")
    assert code == 0
    printed = json.loads(stdout)
    assert printed["manifest"] == manifest_in(out)
    assert printed["results"] == json.loads((out / "results.json").read_text())["results"]
    assert printed["manifest"]["seed"] == 3
    assert printed["manifest"]["all_adjectives"] is True
    assert printed["manifest"]["groups"] == list(GROUPS)
    assert [m["measure"] for m in printed["results"][0]["measures"]] == ["ilps", "ilps-star", "set"]


def test_out_writes_the_four_files_and_says_where(asked: Asked, tmp_path: Path) -> None:
    out = tmp_path / "out"
    code, stdout, _ = asked("--out", out, "--measure", "ilps", "--variant", "cao2022-code", "--prior", "word")
    assert code == 0
    assert {path.name for path in out.iterdir()} == {"manifest.json", "results.json", "results.tsv", "report.html"}
    assert stdout.splitlines()[-1] == f"written to {out}; open {out / 'report.html'}"
    made = Stereotypes.load(out).manifest
    assert (made.variant, made.prior, made.measures) == ("cao2022-code", "word", ("ilps",))


def test_quiet_prints_nothing(asked: Asked, tmp_path: Path) -> None:
    assert asked("--quiet", "--measure", "ilps", "--out", tmp_path / "out") == (0, "", "")
    assert (tmp_path / "out" / "report.html").is_file()


def test_a_file_of_ones_own_adds_groups_traits_and_templates(cli: Cli, place: Place, tmp_path: Path) -> None:
    more = tmp_path / "more.toml"
    more.write_text(
        '[groups]\nwest = { domain = "land", singular = "western baker", plural = "western bakers" }\n'
        '[pairs.slow-quick]\ndimension = "wit"\nleft = "slow"\nright = "quick"\n'
    )
    own = ("--with", place.files[0], "--with", more, "--group", "west", "--template", "own-so", "--json")
    code, stdout, _ = cli("stereotypes", place.model, *own, "--measure", "ilps")
    printed = json.loads(stdout)
    assert code == 0
    assert printed["manifest"]["groups"] == ["west"]
    assert printed["manifest"]["pairs"][-2:] == ["dull-witty", "slow-quick"]
    assert printed["manifest"]["templates"] == {"own-so": "I know {group}, so {trait}!"}
    assert printed["results"][0]["unknown_adjectives"] == ["slow"]
    assert printed["results"][0]["measures"][0]["profiles"][0]["scores"][-1] is None


def test_a_causal_model_is_noticed(cli: Cli, place: Place, tmp_path: Path) -> None:
    model = f"hf:{save_tiny('gpt2', tmp_path / 'm', head=True)}"
    own = ("--with", place.files[0], "--group", "north", "--template", "mine", "--measure", "ilps")
    code, stdout, stderr = cli("stereotypes", model, *own)
    assert code == 0
    assert "a causal model has no mask; groups are compared with people in general" in " ".join(stderr.split())
    assert "cannot be asked where words follow the trait: own-first." in " ".join(stdout.split())


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--annotators", "Gender=Woman"), "--annotators is for --human"),
        (("--annotators", "Woman", "--human", "h.json"), "--annotators is written FIELD=VALUE, got 'Woman'"),
        (("--group", "nort"), "error: unknown group 'nort'; did you mean 'north'?"),
        (("--group", "Asiann"), "error: unknown group 'Asiann'; did you mean 'Asian'"),
        (("--template", "own-mny"), "error: unknown template 'own-mny'; did you mean 'own-many' or"),
        (("--human", "/none/h.json"), "error: /none/h.json: cannot be read: No such file or directory"),
        (("--with", "/none/own.toml"), "error: /none/own.toml: cannot be read: No such file or directory"),
        (("--measure", "ipls"), "'ipls' is not one of"),
        (("--prior", "none"), "'none' is not one of"),
        (("--variant", "code"), "'code' is not one of"),
        (("--draws", "3"), "draws must be at least 10, got 3"),
        (("--seed", "-4"), "the seed must not be negative"),
    ],
)
def test_bad_input_is_one_plain_sentence(refused: Refused, args: tuple[str, ...], words: str) -> None:
    assert words in refused(*args)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "line 1: not valid JSON"),
        ("[]", "expected an object"),
        ('{"martians": {"cold - warm": 3}}', "holds none of the groups that are asked about; it has martians"),
        ('{"smiths": {"cold - hot": 3}}', "unknown pair"),
        ('{"smiths": {"cold - warm": 300}}', "expected a number from 0 to 100"),
    ],
)
def test_human_files_that_cannot_be_used(
    refused: Refused, tmp_path_factory: pytest.TempPathFactory, content: str, words: str
) -> None:
    path = tmp_path_factory.mktemp("people") / "h.json"
    path.write_text(content)
    said = refused("--human", path, "--group", "craft")
    assert said.startswith(f"error: {path}: ")
    assert words in said


def test_annotators_that_are_not_there(refused: Refused, place: Place, tmp_path_factory: Any) -> None:
    asked = ("--human", place.human, "--group", "craft", "--annotators")
    assert "unknown value of 'Gender' 'Womn'; did you mean 'Woman'" in refused(*asked, "Gender=Womn")
    assert "unknown field of demographics 'Sex'" in refused(*asked, "Sex=Woman")
    means = judgements(tmp_path_factory.mktemp("means"), means=True)
    said = refused("--human", means, "--group", "craft", "--annotators", "Gender=Woman")
    assert "nothing is known of the annotators" in said


def test_models_that_cannot_be_asked(refused: Refused, place: Place, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert "name at least one MODEL: biassay stereotypes hf:NAME" in refused(model=())
    assert "hf:NAME" in refused(model="glove")
    assert "pool= is for vectors, not for predictions" in refused(model=f"{place.model}?pool=mean")
    missing = tmp_path_factory.mktemp("models") / "none"
    assert str(missing) in refused(model=f"hf:{missing}")
    headless = save_masked(missing.parent / "m", place.abc, head=False)
    few = ("--group", "north", "--template", "own-so", "--measure", "ilps")
    assert "lacks cls.predictions" in refused(*few, model=f"hf:{headless}")


def test_a_folder_in_use_is_refused(asked: Asked, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("mine")
    code, stdout, stderr = asked("--out", tmp_path)
    assert (code, stdout) == (2, "")
    assert "is not an empty folder; choose another" in " ".join(stderr.split())
    assert [path.name for path in tmp_path.iterdir()] == ["note.txt"]


def test_an_interrupt_is_told_and_leaves_no_folder(
    asked: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("biassay.encoders.lm.LanguageModel._forward", stop)
    code, stdout, stderr = asked("--out", tmp_path / "out", "--measure", "ilps")
    assert (code, stdout, stderr.splitlines()[-2]) == (1, "", "interrupted")
    assert stderr.splitlines()[-1] == "what was answered is kept: the same command goes on from there"
    assert not (tmp_path / "out").exists()
