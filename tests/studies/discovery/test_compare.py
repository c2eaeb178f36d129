"""Which words of two discoveries are those of both models, against sets."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest

import biassay
from biassay.errors import UsageError
from biassay.results.discovery import Discovery
from biassay.studies.presenters import compare

FEMALES, MALES = "african-american-females", "european-american-males"


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Discovery:
    """Two of every three words that were kept are tied to the group, and no others."""
    cache = tmp_path_factory.mktemp("vectors")
    found = biassay.discover("glove", [FEMALES, MALES], permutations=199, alpha=0.5, keep=150, cache=cache)
    results = []
    for group in found.results:
        told = tuple(dataclasses.replace(w, associated=i % 3 != 2) for i, w in enumerate(group.words))
        results.append(dataclasses.replace(group, words=told, num_associated=sum(w.associated for w in told)))
    return Discovery(found.manifest, tuple(results))


def other_words(found: Discovery, seed: int = 1, **given: Any) -> Discovery:
    """Another model that ties about half of the words, and some others, to the groups."""
    rng = np.random.default_rng(seed)
    results = []
    for group in found.results:
        told = tuple(dataclasses.replace(w, associated=bool(rng.random() < 0.5)) for w in group.words)
        results.append(dataclasses.replace(group, words=told, num_associated=sum(w.associated for w in told)))
    models = (dataclasses.replace(found.manifest.models[0], name="other"),)
    manifest = dataclasses.replace(found.manifest, **{"run_id": "other", "models": models} | given)
    return Discovery(manifest, tuple(results))


def tied(found: Discovery, group: str) -> set[str]:
    return {w.word for g in found.results if g.group == group for w in g.words if w.associated}


def test_words_are_shared_as_sets_are(words: Discovery) -> None:
    other = other_words(words)
    found = compare({"a": words, "b": other})
    assert (found.baseline, set(found.tables), found.results) == ("glove", {"words"}, ())
    assert [(r.group, r.model) for r in found.tables["words"]] == [(FEMALES, "other"), (MALES, "other")]
    for r in found.tables["words"]:
        mine, theirs = tied(words, r.group), tied(other, r.group)
        assert all((r.both, r.only_baseline, r.only_model))
        assert (set(r.both), set(r.only_baseline), set(r.only_model)) == (mine & theirs, mine - theirs, theirs - mine)
        assert len({*r.both, *r.only_baseline, *r.only_model}) == len(r.both) + len(r.only_baseline) + len(r.only_model)
        ranked = [w.word for w in words.of(r.group).words]
        assert sorted(r.both, key=ranked.index) == list(r.both)
    content = json.loads(found.to_json())
    assert content["words"] == [dataclasses.asdict(r) | {"both": [*r.both], "only_baseline": [*r.only_baseline],
                                "only_model": [*r.only_model]} for r in found.tables["words"]]  # fmt: skip


def test_a_named_baseline_turns_the_words(words: Discovery) -> None:
    runs = {"a": words, "b": other_words(words)}
    for r, turned in zip(compare(runs).tables["words"], compare(runs, baseline="other").tables["words"], strict=True):
        assert (set(r.only_baseline), set(r.only_model)) == (set(turned.only_model), set(turned.only_baseline))
        assert (turned.baseline, turned.model) == ("other", "glove")


def test_words_that_were_not_kept_are_not_said_to_be_another_models_alone(words: Discovery) -> None:
    """The same model and settings, of which one run has kept fewer words: nothing differs between the two."""
    cut = tuple(dataclasses.replace(group, words=group.words[:5]) for group in words.results)
    manifest = dataclasses.replace(words.manifest, run_id="cut", keep=5)
    try:
        found = compare({"a": words, "b": Discovery(manifest, cut)})
    except UsageError as refused:
        assert "kept" in str(refused)  # noqa: PT017
        return
    for r in found.tables["words"]:
        assert (r.only_baseline, r.only_model) == ((), ())


def test_groups_that_one_run_lacks_are_left_out(words: Discovery) -> None:
    other = other_words(words)
    some = Discovery(other.manifest, other.results[1:])
    assert [r.group for r in compare({"a": words, "b": some}).tables["words"]] == [MALES]


def test_discoveries_without_a_group_in_common_have_nothing_to_compare(words: Discovery) -> None:
    other = other_words(words)
    with pytest.raises(UsageError, match="in common"):
        compare({"a": Discovery(words.manifest, words.results[:1]), "b": Discovery(other.manifest, other.results[1:])})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("grouping_digest", "another"),
        ("vocabulary_digest", "another"),
        ("threshold", 0.25),
        ("rule", "another"),
        ("compare", "another"),
        ("alpha", 0.25),
        ("permutations", 7),
        ("positive_only", "another"),
    ],
)
def test_discoveries_made_otherwise_are_refused_unless_mixed(words: Discovery, field: str, value: Any) -> None:
    runs = {"old": words, "new": other_words(words, **{field: value})}
    before = getattr(words.manifest, field)
    with pytest.raises(UsageError, match="cannot be compared") as refused:
        compare(runs)
    assert f"{before} in old, {value} in new" in str(refused.value)
    assert "--mixed" in str(refused.value)
    found = compare(runs, mixed=True)
    assert len(found.tables["words"]) == 2
    (note,) = found.notes
    assert note.endswith(f"{before} in old, {value} in new")


def test_discoveries_of_one_model_in_two_runs_are_told_apart(words: Discovery) -> None:
    again = Discovery(dataclasses.replace(words.manifest, run_id="again"), words.results)
    found = compare({"a": words, "b": again})
    assert (found.baseline, {r.model for r in found.tables["words"]}) == ("glove [a]", {"glove [b]"})
    for r in found.tables["words"]:
        assert set(r.both) == tied(words, r.group)
        assert (r.only_baseline, r.only_model) == ((), ())


def test_copies_of_a_discovery_are_refused(words: Discovery) -> None:
    with pytest.raises(UsageError, match="copies of one run"):
        compare({"a": words, "b": words})


def test_a_single_discovery_is_refused(words: Discovery) -> None:
    with pytest.raises(UsageError, match=r"one model only \(glove\)"):
        compare({"a": words})
