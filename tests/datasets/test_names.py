"""Names of audits: bundled lists, the user's own files with their mistakes, and the draw."""

from __future__ import annotations

import itertools
import math
import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from biassay.datasets.catalogue import load_catalogue, load_first_names
from biassay.datasets.names import (
    NAME_LISTS,
    AuditName,
    NameSelection,
    load_names,
    load_surnames,
    select_names,
    spelling_key,
)
from biassay.errors import StimulusError, UsageError

OWN = "name,group\nAnn,a\nBeth,a\nCarl,b\nDan,b\n"


def write(folder: Path, text: str, name: str = "names.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def split(selection: NameSelection) -> dict[str, list[AuditName]]:
    return {group: [name for name in selection.names if name.group == group] for group in selection.groups}


def count_letters(name: str) -> int:
    return (len(name) + 3) // 4


# Bundled lists


def test_census_has_the_published_numbers_of_bearers() -> None:
    names = {entry.name: entry for entry in load_names().names}
    sizes = Counter(f"{entry.values['race']} {entry.values['sex']}" for entry in names.values())
    assert names["John"].count == 3_125_114
    assert names["Ebony"].count == 30_676
    assert sizes == {
        "white male": 723,
        "white female": 980,
        "black male": 207,
        "black female": 250,
        "api male": 269,
        "api female": 338,
        "hispanic male": 483,
        "hispanic female": 603,
    }


def test_census_names_are_capitalised_and_misspellings_are_removed() -> None:
    names = {entry.name for entry in load_names().names}
    assert {"McKenna", "McKinlee", "McArthur", "Deandre"} <= names
    assert not names & {"Mckenna", "Willaim", "Jjesus", "Mariade"}
    assert all(re.fullmatch("(Mc)?[A-Z][a-z]+", name) for name in names)


def test_bertrand_and_mullainathan_have_the_names_of_weat4() -> None:
    """Caliskan et al. took the names of WEAT 4 from the same paper and left out four, which GloVe does not hold."""
    selection = select_names(load_names("bertrand2004"))
    groups = split(selection)
    assert {group: len(names) for group, names in groups.items()} == dict.fromkeys(groups, 9)
    concepts = load_catalogue().concepts
    for race, concept in (("white", "european-american-names-4"), ("black", "african-american-names-4")):
        names = {name.name for sex in ("female", "male") for name in groups[f"{race} {sex}"]}
        assert set(concepts[concept].words) < names
        assert len(names) == 18


def test_names_of_weat_are_the_word_sets_of_the_tests() -> None:
    groups = split(select_names(load_names("weat6")))
    test = load_catalogue().tests["weat6"]
    assert {name.name for name in groups["male"]} == set(test.X.words)
    assert {name.name for name in groups["female"]} == set(test.Y.words)
    assert {name.sex for name in groups["male"]} == {"male"}


@pytest.mark.parametrize("name", NAME_LISTS)
def test_bundled_lists_make_an_audit(name: str) -> None:
    selection = select_names(load_names(name))
    assert len(selection.groups) >= 2
    assert all(entry.n_units >= 8 for entry in selection.balance)


# The user's own list


def test_columns_of_a_file(tmp_path: Path) -> None:
    text = """name,group,count,cluster,surname,note
Ann,old women,10,ann,Hill,x
 Anna ,old women,20,ann,,
Bo,young men,5,,,
Cy,young men,7,,,
Di,old women,8,,,
"""
    selection = select_names(load_names(write(tmp_path, text)))
    names = {name.name: name for name in selection.names}
    assert names["Ann"] == AuditName("Ann", "old women", "female", "ann", "Hill", 10)
    assert names["Anna"].unit == "ann"
    assert names["Bo"] == AuditName("Bo", "young men", "male", "Bo", "", 5)
    assert names["Ann"].full_name == "Ann Hill"
    assert names["Bo"].full_name == "Bo"
    assert [(entry.n_names, entry.n_units) for entry in selection.balance] == [(3, 2), (2, 2)]


def test_groups_by_several_columns(tmp_path: Path) -> None:
    rows = [f"N{i},{age},{sex}" for i, (age, sex) in enumerate(itertools.product(("old", "young"), ("f", "m")))]
    path = write(tmp_path, "\n".join(["name,age,sex", *rows, *(f"Zed{row}" for row in rows)]))
    assert select_names(load_names(path), ["age", "sex"]).groups == ("old f", "old m", "young f", "young m")
    assert select_names(load_names(path)).groups == ("f", "m")
    assert {name.sex for name in select_names(load_names(path), ["age"]).names} == {"female", "male"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Name,group\nAnn,a\n", "line 2: the column 'name' is missing; rename 'Name'"),
        (
            "name,grup,note\nAnn,a,x\n",
            "no column 'group'; found grup, note; rename 'grup', or choose columns with --by",
        ),
        ("name\nAnn\n", "no column 'group'; found no other column"),
        (OWN + "Ann,a\n", r"line 6: the name 'Ann' is also in .*line 2; remove one"),
        (OWN + "ANN,b\n", r"line 6: the name 'ANN' is in 'a' and in 'b' \(.*line 2\)"),
        (OWN + ",b\n", "line 6: field name: expected a text that is not empty"),
        (OWN + "Eve,bb\n", "line 6: the group 'bb' has only one name, 'Eve'; did you mean 'b'"),
        (OWN + "Eve,\n", "line 6: the name 'Eve' has no group; fill in the column or remove the line"),
        ("name,group\nAnn,a\nAnne,a\nBo,b\nCy,b\n", "line 2: all names of the group 'a' are one unit: Ann, Anne"),
        ("name,group\nAnn,a\nBo,a\n", "all names are in the group 'a'; an audit needs two groups"),
        ("name,group,count\nAnn,a,many\n", "line 2: field count: expected a whole number from 0, got str 'many'"),
        ("name,group,count\nAnn,a,0\n", "line 2: field count: expected the number of people with the name, got 0"),
        ("name,group\n", "no name in it; expected columns name and group"),
        ("name,group\nAnn\n", "line 2: expected 2 cells, as in the header"),
    ],
)
def test_mistakes_in_a_file(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(StimulusError, match=message) as caught:
        select_names(load_names(path))
    assert str(path) in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(StimulusError, match=r"missing.csv: cannot be read"):
        load_names(tmp_path / "missing.csv")
    (tmp_path / "latin.csv").write_bytes("name,group\nJosé,a\n".encode("latin-1"))
    with pytest.raises(StimulusError, match=r"latin.csv: not UTF-8 text"):
        load_names(tmp_path / "latin.csv")


# The draw


def test_the_draw_is_balanced_and_matched() -> None:
    matched = select_names(load_names(), count_tokens=count_letters)
    assert matched.matched == ("frequency", "tokens")
    assert len(matched.groups) == 8
    for entry in matched.balance:
        assert (entry.n_names, entry.n_units) == (20, 20)
        assert abs(entry.log_count_difference or 9.0) < 0.1
        assert entry.tokens_difference == 0.0
    plain = select_names(load_names(), match=())
    assert max(abs(entry.log_count_difference or 0.0) for entry in plain.balance) > 0.5


def test_the_draw_depends_on_the_seed_and_not_on_the_order_of_the_list() -> None:
    names = load_names()
    shuffled = list(names.names)
    random.Random(1).shuffle(shuffled)
    first = select_names(names, seed=3)
    assert select_names(replace(names, names=tuple(shuffled)), seed=3) == first
    assert select_names(names, seed=4).names != first.names


def test_spellings_of_a_male_and_a_female_name_are_two_units(tmp_path: Path) -> None:
    text = "name,group,sex\nGabriel,a,male\nGabriela,a,female\nGabriella,a,female\nBo,b,male\nMia,b,female\n"
    selection = select_names(load_names(write(tmp_path, text)))
    assert {name.name: name.unit for name in selection.names if name.group == "a"} == {
        "Gabriel": "Gabriel",
        "Gabriela": "Gabriela",
        "Gabriella": "Gabriela",
    }


def make_list(counts: dict[str, Sequence[int]]) -> dict[str, dict[str, int]]:
    """Return names with these counts by group; no two are near-duplicates."""
    stems = iter([f"{a}o{b.lower()}" for a, b in itertools.permutations("BDFJKLMNPRST", 2)])
    return {group: {next(stems): count for count in values} for group, values in counts.items()}


def write_list(folder: Path, groups: dict[str, dict[str, int]]) -> Path:
    rows = [f"{name},{group},{count}" for group, names in groups.items() for name, count in names.items()]
    return write(folder, "\n".join(["name,group,count", *rows]))


def test_only_names_with_a_counterpart_in_every_group_are_drawn(tmp_path: Path) -> None:
    """Both groups have names near 100, 1,000 and 10,000; one has rare, the other frequent names besides."""
    groups = make_list({"a": [100, 1000, 10_000, 2, 3], "b": [101, 1010, 10_100, 10**6, 10**7, 10**8]})
    names = load_names(write_list(tmp_path, groups))
    for seed in range(20):
        for drawn in split(select_names(names, n=3, seed=seed)).values():
            assert sorted(round(math.log10(name.count or 0)) for name in drawn) == [2, 3, 4]


def test_the_i_th_names_of_all_groups_are_within_the_caliper() -> None:
    names = load_names()
    caliper = 0.2 * np.std([math.log(entry.count or 0) for entry in names.names])
    for seed in range(3):
        groups = split(select_names(names, seed=seed, count_tokens=count_letters))
        for matched in zip(*groups.values(), strict=True):
            assert len({name.tokens for name in matched}) == 1
            logs = [math.log(name.count or 0) for name in matched]
            reference = logs[list(groups).index("black male")]
            assert max(abs(log - reference) for log in logs) <= caliper


def test_frequent_names_are_drawn_as_often_as_people_bear_them(tmp_path: Path) -> None:
    """Without replacement, a name with share p is among the first two draws with probability p + sum q p/(1-q)."""
    counts = [600, 300, 100]
    names = load_names(write_list(tmp_path, make_list({"a": counts, "b": [600, 300, 100]})))
    drawn = [
        name.count for seed in range(600) for name in select_names(names, n=2, seed=seed).names if name.group == "a"
    ]
    p = [count / 1000 for count in counts]
    for i, count in enumerate(counts):
        expected = p[i] + sum(p[j] * p[i] / (1 - p[j]) for j in range(3) if j != i)
        assert abs(drawn.count(count) / 600 - expected) < 4 * math.sqrt(expected * (1 - expected) / 600)


def test_names_match_for_tokens_alone(tmp_path: Path) -> None:
    path = write(tmp_path, "name,group\nBo,a\nAlexandra,a\nCy,a\nDi,b\nMaximilian,b\nOkwudili,b\nFabianna,b\n")
    selection = select_names(load_names(path), n=3, count_tokens=count_letters)
    assert selection.matched == ("tokens",)
    names = split(selection)
    assert sorted(name.tokens or 0 for name in names["b"])[:2] == [1, 2]
    assert selection.balance[0].mean_log_count is None


def test_balance_table(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    groups = make_list({group: rng.integers(1, 1000, size).tolist() for group, size in (("a", 4), ("b", 6), ("c", 5))})
    balance = select_names(load_names(write_list(tmp_path, groups)), count_tokens=len).balance
    logs = {group: np.log(list(names.values())) for group, names in groups.items()}
    spread = math.sqrt(sum(np.var(values, ddof=1) for values in logs.values()) / 3)
    for entry in balance:
        others = [values.mean() for group, values in logs.items() if group != entry.group]
        expected = (logs[entry.group].mean() - sum(others) / 2) / spread
        assert entry.mean_log_count == pytest.approx(logs[entry.group].mean())
        assert entry.log_count_difference == pytest.approx(expected)
        assert (entry.mean_tokens, entry.tokens_difference) == (3.0, 0.0)


def test_names_that_the_model_does_not_know_are_left_out(tmp_path: Path) -> None:
    names = load_names(write(tmp_path, f"{OWN}Zed,a\nEd,b\n"))
    selection = select_names(names, known=lambda name: name != "Zed")
    assert selection.unknown == ("Zed",)
    assert [name.name for name in selection.names] == ["Ann", "Beth", "Carl", "Dan", "Ed"]
    with pytest.raises(StimulusError, match=r"the model knows no name of the group 'b'.*Carl, Dan, Ed"):
        select_names(names, known=lambda name: name not in ("Carl", "Dan", "Ed"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 1}, "at least 2 names per group, got 1"),
        ({"n": 500}, r"the group 'api female' has \d+ names, not counting other spellings.*--n-names \d+ or less"),
        ({"match": ["length"]}, "unknown property to match names for 'length'"),
        ({"match": ["tokens"]}, "the model has no tokenizer; use --match frequency"),
    ],
)
def test_impossible_draws(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        select_names(load_names(), **arguments)  # type: ignore[arg-type]


def test_matching_needs_counts_and_a_number_of_names() -> None:
    names = load_names("bertrand2004")
    with pytest.raises(UsageError, match="some have no count; add a column count"):
        select_names(names, n=5, match=["frequency"])
    with pytest.raises(UsageError, match="all names are used; set their number with --n-names"):
        select_names(names, match=["frequency"])
    assert select_names(names, n=5).matched == ()


@pytest.mark.parametrize(
    "names",
    [
        ("Ann", "Anna", "Anne"),
        ("Eric", "Erik"),
        ("Kristin", "Kristen", "Kristyn"),
        ("Sara", "Sarah"),
        ("Stephen", "Steven"),
        ("Jeffrey", "Geoffrey"),
        ("Lakisha", "Lakeisha", "Lakesha"),
        ("Zachary", "Zackary", "Zakary"),
        ("José", "Jose"),
        ("Haley", "Hayley", "Haleigh"),
    ],
)
def test_spellings_of_one_name_share_a_key(names: tuple[str, ...]) -> None:
    assert len(set(map(spelling_key, names))) == 1


@pytest.mark.parametrize(
    "names",
    [
        ("Lakisha", "Latisha", "Tamika", "Tanisha"),
        ("Jamal", "Jamel", "Jermaine"),
        ("Dan", "Don", "Dean"),
        ("Emily", "Amelia"),
        ("Maria", "Marisol", "Marcus"),
        ("Mai", "Mia"),
        ("Владимир", "Ольга"),
    ],
)
def test_different_names_have_different_keys(names: tuple[str, ...]) -> None:
    assert len(set(map(spelling_key, names))) == len(names)


def test_every_group_gets_the_same_surnames() -> None:
    groups = split(select_names(load_names(), surnames=load_surnames()))
    lists = [[name.surname for name in names] for names in groups.values()]
    assert all(surnames == lists[0] for surnames in lists)
    assert set(lists[0]) < set(load_surnames())


def test_surnames_are_no_first_names() -> None:
    assert len(load_surnames()) == 24
    assert not load_first_names() & {name.casefold() for name in load_surnames()}
