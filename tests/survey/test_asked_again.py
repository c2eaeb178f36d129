"""The participant's way over HTTP: what is asked for again, and what of it is kept."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.survey import walks
from tests.survey.walks import Place

pytestmark = pytest.mark.extras

study = walks.study


@pytest.mark.parametrize(
    "rating",
    [
        *("", " ", "-1", "101", "1e1", "50.0", "0x10", "+5", "NaN", "inf", "٥٠", "⁵", "5 0", "9" * 400, "\0", "50\0"),
        *("none", "[50]", "50,", "½"),
    ],
)
def test_what_is_no_whole_number_up_to_100_is_no_rating(study: Callable[..., Place], rating: str) -> None:
    place = study()
    person = place.browser()
    person.begin()
    person.go("group")
    page = person.send(**{**person.answers(), "pair-2": rating})
    assert page.status == 400
    assert "cold – warm" in page.alert
    assert place.rows("SELECT * FROM annotations") == []
