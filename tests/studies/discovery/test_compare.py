"""Which words of two discoveries are those of both models, against sets."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import biassay
from biassay.errors import UsageError
from biassay.runs.reports import compare_models as compare
from biassay.runs.run import Run
from biassay.studies.registry import get_study

from .planted_words import with_counts

FEMALES, MALES = "african-american-females", "european-american-males"
PARTS = ("settings", "inputs")


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Two of every three words that were kept are associated with the group, and no others."""
    cache = tmp_path_factory.mktemp("vectors")
    found = biassay.discover("glove", [FEMALES, MALES], n_permutations=199, alpha=0.5, keep=150, cache=cache)
    return with_words(found, [dataclasses.replace(w, associated=i % 3 != 2) for i, w in enumerate(found.results)])


def with_words(run: Run, words: Sequence[Any]) -> Run:
    """The run with other words, counted."""
    counts = {group: sum(w.associated for w in words if w.group == group) for group in (FEMALES, MALES)}
    groups = [with_counts(row, associated=counts[row.group]) for row in run.tables["groups"]]
    return dataclasses.replace(run, tables={**run.tables, "results": tuple(words), "groups": tuple(groups)})


def other_words(found: Run, seed: int = 1, **given: Any) -> Run:
    """Another model that associates about half of the words, and some others, with the groups."""
    rng = np.random.default_rng(seed)
    tables = {name: [dataclasses.replace(r, model="other") for r in rows] for name, rows in found.tables.items()}
    shown = [dataclasses.replace(w, associated=bool(rng.random() < 0.5)) for w in tables["results"]]
    models = (dataclasses.replace(found.manifest.models[0], name="other"),)
    own = {name: {k: v for k, v in given.items() if hasattr(getattr(found.manifest, name), k)} for name in PARTS}
    parts = {name: dataclasses.replace(getattr(found.manifest, name), **own[name]) for name in PARTS}
    manifest = dataclasses.replace(found.manifest, run_id="other", models=models, **parts)
    return with_words(dataclasses.replace(found, manifest=manifest, tables=tables), shown)  # type: ignore[arg-type]


def associated(found: Run, group: str) -> set[str]:
    return {w.word for w in found.results if w.group == group and w.associated}


def test_words_are_shared_as_sets_are(words: Run) -> None:
    other = other_words(words)
    found = compare({"a": words, "b": other})
    assert (found.baseline, set(found.tables), found.results) == ("glove", {"words"}, ())
    assert [(r.group, r.model) for r in found.tables["words"]] == [(FEMALES, "other"), (MALES, "other")]
    for r in found.tables["words"]:
        mine, theirs = associated(words, r.group), associated(other, r.group)
        assert all((r.both, r.only_baseline, r.only_model))
        assert (set(r.both), set(r.only_baseline), set(r.only_model)) == (mine & theirs, mine - theirs, theirs - mine)
        assert len({*r.both, *r.only_baseline, *r.only_model}) == len(r.both) + len(r.only_baseline) + len(r.only_model)
        ranked = [w.word for w in words.results if w.group == r.group]
        assert sorted(r.both, key=ranked.index) == list(r.both)
        (shown,) = get_study("discovery").presenter.comparison_report(found).tables
        assert f"{len(r.both)}: {r.both[0]}, " in repr(shown)
    content = json.loads(found.to_json())
    assert content["words"] == [dataclasses.asdict(r) | {"both": [*r.both], "only_baseline": [*r.only_baseline],
                                "only_model": [*r.only_model]} for r in found.tables["words"]]  # fmt: skip


def test_groups_that_one_run_lacks_are_left_out(words: Run) -> None:
    some = other_words(words)[MALES]
    assert [r.group for r in compare({"a": words, "b": some}).tables["words"]] == [MALES]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("grouping_digest", "another"),
        ("threshold", 0.25),
        ("n_permutations", 7),
    ],
)
def test_discoveries_made_otherwise_are_refused_unless_mixed(words: Run, field: str, value: Any) -> None:
    runs = {"old": words, "new": other_words(words, **{field: value})}
    parts = [getattr(words.manifest, part) for part in PARTS]
    before = next(getattr(part, field) for part in parts if hasattr(part, field))
    with pytest.raises(UsageError, match="cannot be compared") as refused:
        compare(runs)
    assert f"{before} in old, {value} in new" in str(refused.value)
    assert "--mixed" in str(refused.value)
    found = compare(runs, mixed=True)
    assert len(found.tables["words"]) == 2
    (note,) = found.notes
    assert note.endswith(f"{before} in old, {value} in new")


def test_words_that_were_not_kept_are_not_said_to_be_another_models_alone(words: Run) -> None:
    """The same model and settings, of which one run has kept fewer words: nothing differs between the two."""
    cut = {**words.tables, "results": words.results[:5]}
    manifest = dataclasses.replace(words.manifest, run_id="cut")
    with pytest.raises(UsageError, match="--keep"):
        compare({"a": words, "b": dataclasses.replace(words, manifest=manifest, tables=cut)})


def test_discoveries_without_a_group_in_common_have_nothing_to_compare(words: Run) -> None:
    with pytest.raises(UsageError, match="in common"):
        compare({"a": words[FEMALES], "b": other_words(words)[MALES]})


def test_runs_of_other_studies_are_refused_even_if_mixed(words: Run) -> None:
    with pytest.raises(UsageError, match="associations, discovery"):
        compare({"a": words, "b": biassay.run("glove", "weat6")}, mixed=True)
