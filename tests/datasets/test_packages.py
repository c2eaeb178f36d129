"""Collections of tests that other packages add: like the shipped ones, but taken only when named."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

import pytest

from biassay import packages
from biassay.datasets.catalogue import ENTRY_POINT_GROUP, load_catalogue, load_tests, select_grouping, select_tests
from biassay.errors import PluginWarning

Add = Callable[..., None]
SHIPPED = load_catalogue()

SOURCE = """
[source]
name = "NAME"
citation = "A list"
licence = "CC0-1.0"
version = "1"
"""
PETS = (
    SOURCE.replace("NAME", "animals")
    + """
[concepts.cats]
words = ["cat", "lynx"]
[concepts.dogs]
words = ["dog", "wolf"]
[tests.pets]
topic = "religion"
X = "cats"
Y = "dogs"
A = "pleasant"
B = "unpleasant"
"""
)
SEEN = SOURCE.replace("NAME", "animals") + '[sets.seen]\ntemplates = ["I saw {a T}."]\n'
SEEN += '[tests.sent-pets]\nof = "pets"\ntargets = "seen"\nattributes = "bleached"\n'


@pytest.fixture
def add(monkeypatch: pytest.MonkeyPatch) -> Iterator[Add]:
    """Pretends that a package is installed whose entry points give these objects."""

    def forget() -> None:
        packages._get_entry_points.cache_clear()
        load_catalogue.cache_clear()

    def add(**given: object) -> None:
        module = ModuleType("another_package")
        module.__dict__.update(given)
        monkeypatch.setitem(sys.modules, "another_package", module)
        points = [EntryPoint(name, f"another_package:{name}", ENTRY_POINT_GROUP) for name in given]
        monkeypatch.setattr(
            "importlib.metadata.entry_points", lambda *, group: points if group == ENTRY_POINT_GROUP else []
        )
        forget()

    yield add
    forget()


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    path = tmp_path / "pets.toml"
    path.write_text(PETS)
    return path


@pytest.mark.parametrize("form", [str, Path])
def test_a_collection_is_chosen_like_the_shipped_ones(add: Add, pets: Path, form: Callable[[Path], object]) -> None:
    add(mine=form(pets))
    (test,) = select_tests("pets")
    assert select_tests("animals") == select_tests("pet*") == (test,)
    assert select_tests("religion") == (test,)  # of which the shipped collections have no test
    assert test.source.supplementary
    assert load_catalogue().concepts["pleasant"] == test.A
    assert list(load_catalogue().tests) == [*SHIPPED.tests, "pets"]


@pytest.mark.usefixtures("pets")
def test_files_of_a_folder_refer_to_each_other(add: Add, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(SEEN)
    (tmp_path / "README.md").write_text("not read")
    add(mine=tmp_path)
    assert [test.name for test in select_tests("animals")] == ["pets", "sent-pets"]
    assert select_tests("sent-pets")[0].level == "sentence"


def test_a_users_file_may_use_what_a_package_gives(add: Add, tmp_path: Path, pets: Path) -> None:
    add(mine=pets)
    (tmp_path / "own.toml").write_text('[tests.own]\nof = "pets"\nattributes = "bleached"\n')
    (test,) = load_tests(tmp_path / "own.toml")
    assert test.X.words == ("cat", "lynx")


def test_groups_come_with_it(add: Add, pets: Path) -> None:
    groups = [
        f'[groups.{a}{b}]\nbelongs = {{ a = "{a}", b = "{b}" }}\nnames = ["{a}{b}1", "{a}{b}2"]\n'
        for a in "xy"
        for b in "zw"
    ]
    pets.write_text(PETS + "".join(groups))
    add(mine=pets)
    assert [group.name for group in select_grouping("animals").groups] == ["xz", "xw", "yz", "yw"]


@pytest.mark.parametrize(
    ("before", "after", "parts"),
    [
        ("tests.pets", "tests.weat6", ("'weat6'", "biassay")),
        ("tests.pets", "tests.may2019", ("'may2019'", "biassay")),
        ("tests.pets", "tests.animals", ("'animals'", "twice")),
        ('"animals"', '"may2019"', ("'may2019'", "biassay")),
        ('"animals"', '"gender"', ("'gender'", "biassay")),
        ("concepts.cats", "concepts.flowers", ("concept 'flowers'", "biassay")),
        ("[tests.pets]", '[sets.bleached]\ntemplates = ["{T}."]\n[tests.pets]', ("template set 'bleached'", "biassay")),
        ('"unpleasant"', '"unplesant"', ("pets.toml", "'unplesant'")),
        ('["dog", "wolf"]', '["dog"]', ("pets.toml", "'dog'")),
        ("[source]", "[source", ("pets.toml", "TOML")),
        (SOURCE.replace("NAME", "animals"), "", ("pets.toml", "[source]")),
    ],
)
def test_a_file_that_cannot_be_used_is_named_and_left_out(
    add: Add, pets: Path, before: str, after: str, parts: tuple[str, ...]
) -> None:
    assert before in PETS
    pets.write_text(PETS.replace(before, after))
    add(mine=pets)
    with pytest.warns(PluginWarning, match="'mine'") as caught:
        assert load_catalogue() == SHIPPED
    assert all(part in str(caught[0].message) for part in parts), str(caught[0].message)


@pytest.mark.parametrize(
    "given", [3, "pets.toml", "/no/such/place/pets.toml", str(Path(__file__)), str(Path(__file__).parent)]
)
def test_what_is_no_path_of_tests_is_named_and_left_out(add: Add, given: object) -> None:
    add(mine=given)
    with pytest.warns(PluginWarning, match="'mine'"):
        assert load_catalogue() == SHIPPED


def test_one_that_cannot_be_imported_leaves_the_others(add: Add, pets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add(mine=pets)
    points = [
        EntryPoint("broken", "no_such_package_here:tests", ENTRY_POINT_GROUP),
        EntryPoint("mine", "another_package:mine", ENTRY_POINT_GROUP),
    ]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: points)
    with pytest.warns(PluginWarning, match="'broken'.*no_such_package_here"):
        assert [test.name for test in select_tests("animals")] == ["pets"]


def test_of_two_packages_with_one_name_the_second_is_left_out(add: Add, tmp_path: Path, pets: Path) -> None:
    (tmp_path / "other.toml").write_text(PETS.replace('"animals"', '"others"').replace("tests.pets", "tests.more"))
    add(mine=pets, second=tmp_path / "other.toml")
    with pytest.warns(PluginWarning, match="'second'.*'animals'.*concept 'cats'"):
        assert "more" not in load_catalogue().tests
    assert "pets" in load_catalogue().tests
