"""Pages of words and of stereotypes in a real browser: panels of named bars, and tables that fit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.reporting.browser import Opened, violations
from tests.studies.stereotypes.made_runs import alignment, run_of

import biassay
from biassay.datasets.abc_model import load_abc
from biassay.results.run_data import ModelRecord
from biassay.runs.run import Run
from biassay.studies.stereotypes.results import HumanRecord, MeasureRow, ProfileRow, StereotypeModelRow

pytestmark = pytest.mark.extras
CUT = (
    "[...document.querySelectorAll('.panels .label, .panels .name')]"
    ".filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.textContent)"
)


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Run:
    groups = ["african-american-females", "european-american-males"]
    return biassay.discover("glove", groups, n_permutations=499, alpha=0.5, keep=40, cache=tmp_path_factory.mktemp("v"))


@pytest.fixture(scope="module")
def stereotypes() -> Run:
    """All groups that are shipped, with scores at random; people rated a few."""
    abc, rng = load_abc(), np.random.default_rng(3)
    who = {"model": "m", "options": ""}
    profiles = [
        ProfileRow(
            **who,
            measure="ilps",
            group=group.name,
            domain=group.domain,
            parts=(),
            scores=tuple(rng.normal(size=len(abc.pairs)).tolist()),
            human=tuple(rng.uniform(0, 100, len(abc.pairs)).tolist()) if place % 9 == 0 else None,
        )
        for place, group in enumerate(abc.groups)
    ]
    names = tuple(group.name for group in abc.groups)
    tables = {
        "models": (StereotypeModelRow("m", "", "masked", "mask", (), (), (), 1, 1, 1),),
        "measures": (MeasureRow("m", "", "ilps", names, (), (), 0),),
        "profiles": tuple(profiles),
        "alignments": (alignment("m", "ilps", 0.125, interval=(-0.25, 0.375), tau_shuffled=0.1, p_value=0.3),),
    }
    return run_of(
        (ModelRecord("m", "m", "hf", None, {}, measured=True),),
        tables,
        pairs=tuple(pair.name for pair in abc.pairs),
        traits={pair.name: (pair.left, pair.right) for pair in abc.pairs},
        dimensions={pair.name: pair.dimension for pair in abc.pairs},
        groups=names,
        human=HumanRecord("human.json", "d"),
    )


@pytest.fixture(params=["words", "stereotypes"])
def page_of(request: pytest.FixtureRequest) -> Run:
    found: Run = request.getfixturevalue(request.param)
    return found


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_panels_fit_and_their_names_are_whole(width: int, page_of: Run, opened: Callable[..., Opened]) -> None:
    page = opened(page_of, width=width).page
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator(".panels .label").count() >= 30
    assert page.evaluate(CUT) == []


def test_a_bar_says_what_it_means_to_pointer_finger_and_keyboard(words: Run, opened: Callable[..., Opened]) -> None:
    one = opened(words)
    strips = one.page.locator(".panels .strip")
    meant = [strips.nth(place).get_attribute("aria-label") for place in (0, 1)]
    strips.nth(0).hover()
    assert one.tip == meant[0]
    strips.nth(1).click()
    assert one.tip == meant[1]
    one.page.mouse.move(0, 0)
    one.page.locator(".panels .strip[tabindex='0']").first.focus()
    assert one.tip == meant[0]
    one.page.keyboard.press("ArrowDown")
    assert one.tip == meant[1]


@pytest.mark.parametrize(("width", "dark"), [(390, False), (1280, True)])
def test_nothing_is_out_of_reach(width: int, dark: bool, page_of: Run, opened: Callable[..., Opened]) -> None:
    assert violations(opened(page_of, width=width, dark=dark)) == []
