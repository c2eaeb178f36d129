"""What a search shows, as records; and the settings, which the function, the options and the folder share."""

from __future__ import annotations

from pathlib import Path

import pytest

import biassay
from biassay.studies.discovery.results import count_needed_at_floor, find_needed_permutations
from biassay.studies.discovery.settings import DiscoverySettings

from .planted_words import discovered, with_counts


@pytest.fixture(scope="module")
def found(place: Path) -> biassay.Run:
    return discovered(place, ["red-women", "blue-men"])


def test_a_finding_counts_the_words_of_a_group_and_names_the_first(found: biassay.Run) -> None:
    for finding, row in zip(found.findings(), found.tables["groups"], strict=True):
        words = [word.word for word in found.results if word.group == row.group and word.associated]
        assert len(words) == row.n_associated >= 5
        assert (finding.model, finding.item, finding.title) == ("v.txt", row.group, row.title)
        assert (finding.topic, finding.about, finding.evidence) == ("colour, gender", "people", "significant")
        assert (finding.effect, finding.unit, finding.words) == (len(words), "words", tuple(words[:5]))


@pytest.mark.parametrize(
    ("n_permutations", "associated", "together", "wanted"),
    [
        (9_999, 0, 40, 79_835),  # 19,959 words at 0.05: 39 at 1 / 10,000 are not found, 40 are
        (9_999, 80, 40, 79_835),
        (9_999, 400, 40, None),
        (79_834, 0, 6, 79_835),
        (79_835, 0, 5, None),
        (99_999, 0, 4, None),
    ],
)
def test_so_few_permutations_that_words_hang_on_the_seed(
    found: biassay.Run, n_permutations: int, associated: int, together: int, wanted: int | None
) -> None:
    settings = DiscoverySettings(n_permutations=n_permutations, alpha=0.05)
    row = with_counts(found.tables["groups"][0], words=19_959, associated=associated)
    assert (count_needed_at_floor(row, settings), find_needed_permutations(row, settings)) == (together, wanted)
