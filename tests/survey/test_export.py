"""What comes out of a study: read back by the analysis, equal in all forms, and leading back to nobody."""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from biassay.datasets.human_ratings import HumanRatings, read_human_ratings
from biassay.errors import StimulusError
from biassay.survey.export import EXPORT_FILES, export_file
from biassay.survey.store import Store
from biassay.survey.study import SurveyStudy

from .people import GROUPS, PAIRS, Person, go_on, in_both, saying, small_study, take_part

pytestmark = pytest.mark.extras

# Ratings by annotator: what each was heard to say of each group that counts, and who they are.
OpenStore = Callable[[SurveyStudy], Store]
Heard = list[tuple[dict[str, list[int]], dict[str, str]]]


def asked(store: Store, number: int, seed: int = 1) -> Heard:
    """Let people take part, each at a moment of their own, with ratings and facts by chance; what counts of it."""
    rng = random.Random(seed)
    heard: Heard = []
    counts = dict.fromkeys(store.study.groups, 0)
    for i in range(number):
        someone = store.add_participant()
        if someone is None:
            break
        store.clock.now += 100.0  # type: ignore[attr-defined]
        said = {
            g: [rng.randrange(51, 101), *(rng.randrange(101) for _ in store.study.pairs[1:])]
            for g in store.study.groups
        }
        facts = {
            "Gender": rng.choice(["Woman", "Man"]),
            "Race": rng.choice(["White", "Black", "White,Asian"]),
            "": str(i),
        }
        known = {name: facts[name] for name in rng.sample(["Gender", "Race"], rng.randrange(3))}
        if any(field.name == "State" for field in store.study.demographics):
            known["State"] = f"state {i}"
        person = Person(said=saying(said), facts=tuple(known.items()))
        someone = go_on(store, someone, person)
        wanted = [group for group in someone.asked if counts[group] < store.study.annotations]
        for group in wanted:
            counts[group] += 1
        heard.append(({group: said[group] for group in wanted}, known))
    return heard


def parsed(store: Store, name: str) -> Any:
    content = export_file(store, name)[0].decode()
    return json.loads(content) if name.endswith(".json") else list(csv.DictReader(io.StringIO(content, newline="")))


def read_back(store: Store, folder: Path) -> HumanRatings:
    path = folder / "ratings.json"
    path.write_bytes(export_file(store, "ratings.json")[0])
    return read_human_ratings(path)


@in_both
def test_the_analysis_reads_what_was_answered(open_store: OpenStore, tmp_path: Path) -> None:
    store = open_store(small_study(annotations=6))
    take_part(store, Person(fault="too fast"))
    heard = asked(store, 100)
    found = read_back(store, tmp_path)
    assert found.annotators == tuple(f"annotator{i}" for i in range(len(heard)))
    assert found.pairs == PAIRS
    assert set(found.groups) == set(GROUPS)
    for a, (said, _) in enumerate(heard):
        for g, group in enumerate(found.groups):
            own = found.ratings[a, g]
            assert np.isnan(own).all() if group not in said else own.tolist() == said[group]
    assert found.raters == (6,) * 5
    assert found.counts is not None
    assert (found.counts == 6).all()
    assert found.notes == ()


def test_the_shape_is_that_of_the_released_judgements(open_store: OpenStore, reference: Path) -> None:
    """Annotator -> group -> pair -> number as a text, spelt as there."""
    spelt = set(json.loads((reference / "us_stereotypes" / "figures.json").read_text())["pairs"])
    store = open_store(small_study())
    asked(store, 3)
    ours = parsed(store, "ratings.json")
    assert list(ours) == ["annotator0", "annotator1", "annotator2"]
    for own in ours.values():
        assert set(own) <= set(GROUPS)
        for ratings in own.values():
            assert set(ratings) <= spelt
            assert all(isinstance(rating, str) and 0 <= int(rating) <= 100 for rating in ratings.values())


def test_csv_and_parquet_say_what_the_json_says(open_store: OpenStore) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    store = open_store(small_study())
    asked(store, 10)
    in_json = {
        (annotator, group, pair): int(rating)
        for annotator, own in parsed(store, "ratings.json").items()
        for group, ratings in own.items()
        for pair, rating in ratings.items()
    }
    in_csv = parsed(store, "ratings.csv")
    in_parquet = parquet.read_table(io.BytesIO(export_file(store, "ratings.parquet")[0])).to_pylist()
    assert {(row["annotator"], row["group"], row["pair"]): int(row["rating"]) for row in in_csv} == in_json
    assert len(in_csv) == len(in_json) == 30
    assert [{**row, "rating": str(row["rating"])} for row in in_parquet] == in_csv
    assert {(row["pair"], row["left"], row["right"]) for row in in_csv} == {(f"{a} - {b}", a, b) for a, b in PAIRS}


@pytest.mark.parametrize("name", EXPORT_FILES)
def test_an_export_of_nobody(open_store: OpenStore, name: str, tmp_path: Path) -> None:
    store = open_store(small_study())
    content, kind = export_file(store, name)
    if name == "study.json":
        assert json.loads(content)["name"] == "small"
    elif name.endswith(".json"):
        assert json.loads(content) == {}
    elif name.endswith(".csv"):
        assert len(content.decode().splitlines()) == 1
    else:
        parquet = pytest.importorskip("pyarrow.parquet")
        assert parquet.read_table(io.BytesIO(content)).num_rows == 0
    assert kind.partition(";")[0] in ("application/json", "text/csv", "application/vnd.apache.parquet")
    with pytest.raises(StimulusError, match="empty; expected ratings"):
        read_back(store, tmp_path)


def test_all_pages_has_everything_with_why_it_does_not_count(open_store: OpenStore) -> None:
    store = open_store(small_study(annotations=1))
    rejected = store.add_participant()
    assert rejected is not None
    people = [go_on(store, rejected, Person(fault="self-agreement"))]
    for until in (None, 3, None):
        store.clock.now += 10.0  # type: ignore[attr-defined]
        someone = store.add_participant()
        if someone is not None:
            people.append(go_on(store, someone, Person(), until))
    pages = parsed(store, "all_pages.csv")
    counted = parsed(store, "ratings.json")
    assert len(people) == 3
    own = [[page for page in pages if page["participant"] == f"participant{i}"] for i in range(3)]
    assert [len(each) for each in own] == [4, 4, 1]
    for person, each in zip(people, own, strict=True):
        groups = [*person.asked, person.asked[person.repeated]]
        assert [(page["place"], page["group"]) for page in each] == [
            (str(i + 1), group) for i, group in enumerate(groups[: len(each)])
        ]
        assert [page["repeat"] for page in each] == ["false", "false", "false", "true"][: len(each)]
    assert {(page["status"], page["self_agreement"]) for page in own[0]} == {("rejected", "0.0")}
    assert [page["reasons"] for page in own[0]] == [*["self-agreement"] * 3, "self-agreement; repeated page"]
    assert {(page["status"], page["self_agreement"]) for page in own[1]} == {("valid", "1.0")}
    assert [page["reasons"] for page in own[1]] == ["", "", "", "repeated page"]
    assert {(page["status"], page["counts"]) for page in own[2]} == {("active", "false")}
    # Two groups of five are still wanted, and three are rated; the first page may be of the third.
    enough = "" if own[2][0]["group"] not in people[1].asked else "; the group had enough"
    assert own[2][0]["reasons"] == f"unfinished{enough}"
    assert all((page["counts"] == "true") == (page["reasons"] == "") for page in pages)
    assert [page["poor - wealthy"] for page in own[0]] == ["90", "90", "90", "10"]
    assert all(page["seconds"] == "20.0" for page in pages)
    assert {page["group"] for page in pages if page["counts"] == "true"} == {g for o in counted.values() for g in o}


# Facts about people


def with_state(**changes: Any) -> SurveyStudy:
    """A study that asks for something that is different for everybody."""
    from biassay.survey.study import DemographicField

    study = small_study(annotations=100, **changes)
    return small_study(
        annotations=100,
        demographics=(*study.demographics, DemographicField("State", (), several=False, most=40)),
        **changes,
    )


def test_facts_that_are_not_linked_cannot_be_joined(open_store: OpenStore) -> None:
    store = open_store(with_state())
    heard = asked(store, 30)
    facts = parsed(store, "demographics.json")
    again = parsed(store, "demographics.json")
    ratings = export_file(store, "ratings.json")[0].decode()
    pages = parsed(store, "all_pages.csv")
    study = json.loads(export_file(store, "study.json")[0])
    # Everybody is there, with every field, and nothing else.
    told = [{"Gender": "", "Race": "", **known} for _, known in heard]
    assert sorted(map(json.dumps, (dict(sorted(f.items())) for f in facts.values()))) == sorted(
        map(json.dumps, (dict(sorted(f.items())) for f in told))
    )
    assert all(list(fact) == ["Gender", "Race", "State"] for fact in facts.values())
    # No number is shared, the order is chance (one in 30! of being the order of coming), and differs each time.
    assert not set(facts) & set(json.loads(ratings))
    assert not set(facts) & {page["participant"] for page in pages}
    order = [fact["State"] for fact in facts.values()]
    came = [f"state {i}" for i in range(30)]
    assert order not in (came, came[::-1])
    assert order != [fact["State"] for fact in again.values()]
    # Nothing of them stands anywhere else.
    assert "state" not in ratings.replace("low status", "").replace("high status", "")
    assert not any("state" in value for page in pages for value in page.values())
    assert study["link_demographics"] is False


def test_means_by_annotators_equal_those_of_what_was_heard(open_store: OpenStore, tmp_path: Path) -> None:
    """The analysis of Cao et al. 2022, Tables A14 to A17: mean ratings by who gave them."""
    store = open_store(small_study(annotations=30, link_demographics=True))
    heard = asked(store, 40)
    everybody = read_back(store, tmp_path)
    facts = [("Gender", "Woman"), ("Gender", "Man"), ("Race", "White"), ("Race", "Asian"), ("Race", "Black")]
    for field, value in facts:
        found = everybody.subgroup(field, value)
        chosen = [said for said, known in heard if value in known.get(field, "").split(",")]
        assert len(found.annotators) == len(chosen) > 3
        for (g, group), p in product(enumerate(found.groups), range(len(PAIRS))):
            own = [said[group][p] for said in chosen if group in said]
            expected = sum(own) / len(own) if own else float("nan")
            assert found.means[g, p] == pytest.approx(expected, abs=1e-9, nan_ok=True)


# Spreadsheets


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\t=", '"='])
def test_what_spreadsheets_would_run_is_made_harmless(open_store: OpenStore, sign: str) -> None:
    bad = f"{sign}HYPERLINK(1)"
    study = small_study(groups=(bad, *GROUPS), pairs=((f"{bad}2", "nice"), *PAIRS), annotations=1)
    store = open_store(study)
    asked(store, 10)
    for name in ("ratings.csv", "all_pages.csv"):
        cells = [
            cell for row in csv.reader(io.StringIO(export_file(store, name)[0].decode(), newline="")) for cell in row
        ]
        assert any(bad in cell for cell in cells)
        assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r", '"')) for cell in cells)
    # The forms that no spreadsheet runs keep the name.
    assert any(bad in own for own in parsed(store, "ratings.json").values())
