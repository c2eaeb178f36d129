"""The collection `gate`: questions with enough words per set for a gate to detect a change."""

from __future__ import annotations

from itertools import combinations

import pytest

from biassay.datasets.catalogue import load_catalogue, select_tests
from biassay.datasets.schema import ROLES, Test
from biassay.models.word_vectors import load_embedded_vectors

MIN_CLUSTERS = 24
TESTS = select_tests("gate")


def test_it_asks_about_gender_race_and_age() -> None:
    assert {test.topic for test in TESTS} == {"gender", "race", "age"}
    assert {test.direction for test in TESTS} == {"positive"}


def test_default_runs_do_without_it() -> None:
    names = {test.name for test in TESTS}
    assert not names & {test.name for test in select_tests()}
    assert not names & {test.name for test in select_tests("gender")}


@pytest.mark.parametrize("test", TESTS, ids=lambda test: test.name)
def test_every_set_has_enough_clusters(test: Test) -> None:
    clusters = {role: len(set(test.concept(role).cluster_labels.values())) for role in ROLES}
    assert min(clusters.values()) >= MIN_CLUSTERS


@pytest.mark.parametrize("test", TESTS, ids=lambda test: test.name)
def test_no_word_is_in_two_sets(test: Test) -> None:
    words = {role: {word.lower() for word in test.concept(role).words} for role in ROLES}
    assert [roles for roles in combinations(ROLES, 2) if words[roles[0]] & words[roles[1]]] == []


@pytest.mark.parametrize("test", TESTS, ids=lambda test: test.name)
def test_the_bundled_vectors_know_every_word(test: Test) -> None:
    known = load_embedded_vectors()
    assert [word for role in ROLES for word in test.concept(role).words if word.lower() not in known] == []


def test_attributes_hold_no_names_and_no_gendered_words() -> None:
    concepts = load_catalogue().concepts
    targets = [
        name for name in concepts if "names" in name or "-terms" in name or name.endswith(("-males", "-females"))
    ]
    people = {word.lower() for name in targets if "validation" not in name for word in concepts[name].words}
    attributes = {word.lower() for test in TESTS for role in "AB" for word in test.concept(role).words}
    assert attributes & people == set()


def test_every_list_states_its_source() -> None:
    used = {test.concept(role).name: test.concept(role) for test in TESTS for role in ROLES}
    own = {name: concept for name, concept in used.items() if name.startswith("gate-")}
    assert used.keys() - own.keys() == {"pleasant", "unpleasant"}  # of caliskan2017
    published = ("U.S. Census Bureau", "U.S. Social Security Administration", "Caliskan et al. 2017", "May et al. 2019")
    unsourced = [name for name, c in own.items() if not (c.source == "ours" or c.source.startswith(published))]
    assert unsourced == []
