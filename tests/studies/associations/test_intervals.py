"""What follows from the associations of single words: sums and loops over real runs, and words changed by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.results.made_runs import altered

import biassay
from biassay.results.outcomes import Result
from biassay.runs.run import Run
from biassay.studies.associations.contributions import (
    compute_contributions,
    find_common_words,
    get_cosines,
    pair_cosines,
)

WORDS = ("weat6", "weat9", "weat1")
SENTENCES = ("sent-weat6", "sent-weat9")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Tests over words and over sentences on the embedded vectors."""
    found = biassay.run("glove", tests=[*WORDS, *SENTENCES], cache=tmp_path_factory.mktemp("vectors"))
    assert [r.status for r in found.results] == ["measured"] * 5
    return found


def of(run: Run, test: str) -> Result:
    (found,) = [r for r in run.results if r.test == test]
    return found


def changed(result: Result, **roles: dict[str, float]) -> Result:
    """Other associations of some roles."""
    return altered(result, associations={**result.associations, **roles})


def values(result: Result, role: str) -> list[float]:
    return list(result.associations[role].values())


@pytest.mark.slow
@pytest.mark.parametrize("test", [*WORDS, *SENTENCES])
def test_contributions_of_targets_sum_to_the_effect_size_by_word(run: Run, test: str) -> None:
    result = of(run, test)
    found = compute_contributions(result)
    assert found is not None
    assert result.effect_size is not None
    shares = [share for role in ("X", "Y") for share in found.targets[role].values()]
    assert math.fsum(shares) == pytest.approx(result.effect_size, rel=1e-9)
    assert found.effect_size == pytest.approx(result.effect_size, rel=1e-9)
    assert {role: list(found.targets[role]) for role in "XY"} == {
        role: list(result.associations[role]) for role in "XY"
    }


def test_attributes_are_their_associations_in_units_of_the_spread(run: Run) -> None:
    for result in run.results:
        found = compute_contributions(result)
        assert found is not None
        means = [
            np.mean([score for word, score in result.associations[role].items() if of.get(word, word) == cluster])
            for role in "XY"
            for of in [result.clusters.get(role, {})]
            for cluster in dict.fromkeys(of.get(word, word) for word in result.associations[role])
        ]
        spread = np.std(means, ddof=1)
        for role in ("A", "B"):
            expected = {word: association / spread for word, association in result.associations[role].items()}
            assert found.attributes[role] == pytest.approx(expected, rel=1e-12)


def test_contributions_that_are_not_defined_are_none(run: Run) -> None:
    result = of(run, "weat6")
    x, y = result.associations["X"], result.associations["Y"]
    assert compute_contributions(altered(result, associations={})) is None
    for role in "XYAB":
        assert compute_contributions(changed(result, **{role: {}})) is None
    for value in (0.0, 0.1, math.nan, math.inf):
        assert compute_contributions(changed(result, X=dict.fromkeys(x, value), Y=dict.fromkeys(y, value))) is None
    assert compute_contributions(changed(result, X={**x, next(iter(x)): math.inf})) is None


@pytest.mark.parametrize("value", [0.1, 0.3, 1.0 / 3.0])
@pytest.mark.parametrize(("n", "m"), [(5, 7), (6, 9), (25, 18)])
def test_a_spread_that_is_rounding_gives_no_contributions(run: Run, value: float, n: int, m: int) -> None:
    x, y = ({f"w{i}": value for i in range(size)} for size in (n, m))
    assert compute_contributions(changed(of(run, "weat6"), X=x, Y=y)) is None


def test_cosines_of_a_result_are_found_by_its_model_and_must_fit_its_words(run: Run) -> None:
    for result in run.results:
        table = get_cosines(result, run)
        assert table is run.arrays[f"0/{result.test}/cosines"]
        assert table is not None
        x, y, a, b = (len(result.associations[role]) for role in "XYAB")
        assert table.shape == (x + y, a + b)
        fewer = {role: dict.fromkeys(list(result.associations[role])[1:], 0.0) for role in "XYAB"}
        assert all(get_cosines(changed(result, **{role: words}), run) is None for role, words in fewer.items())
        assert get_cosines(altered(result, model="stranger"), run) is None
        assert get_cosines(altered(result, test="stranger"), run) is None


def test_a_pair_holds_the_words_that_both_models_know(run: Run) -> None:
    """In the order of the first; every cosine is looked up by its words."""
    first = of(run, "weat9")
    roles = {role: list(first.associations[role]) for role in "XYAB"}
    kept = {"X": roles["X"][::-1][1:], "Y": roles["Y"][2:], "A": roles["A"], "B": roles["B"][:4]}
    second = changed(first, **{role: dict.fromkeys(["theirs", *words], 0.0) for role, words in kept.items()})
    places = [
        [{w: i for i, w in enumerate((r, w) for r in side for w in result.associations[r])} for side in ("XY", "AB")]
        for result in (first, second)
    ]
    tables = run.arrays["0/weat9/cosines"], np.random.default_rng(0).normal(size=tuple(map(len, places[1])))
    shared = {role: [w for w in roles[role] if w in kept[role]] for role in "XYAB"}
    assert find_common_words(first, second) == shared
    found = pair_cosines(first, second, tables)
    assert found.sizes == (5, 4, 7, 4)
    targets, attributes = ([(r, w) for r in side for w in shared[r]] for side in ("XY", "AB"))
    for cut, table, (rows, columns) in zip((found.first, found.second), tables, places, strict=True):
        assert cut.tolist() == [[table[rows[t], columns[a]] for a in attributes] for t in targets]
