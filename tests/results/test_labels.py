"""Labels of the models of a run."""

from __future__ import annotations

import pytest
from tests.results.made_runs import record, result, run_of

from biassay.errors import UnknownNameError
from biassay.results.comparison import choose_baseline
from biassay.results.run_data import belongs_to, group_rows_by_model, model_labels, record_labels, short_name

Given = tuple[str, str, dict[str, str]]
"""Text, name and settings of a model."""


def labels(*models: Given) -> list[str]:
    """Labels of models with these texts, names and settings; the family is what stands before the colon."""
    made = [
        record(n, text=t, settings=s, backend=n.partition(":")[0], revision=str(i))
        for i, (t, n, s) in enumerate(models)
    ]
    rows = [result(one.name, options=one.options, model_revision=one.revision) for one in made]
    run = run_of("1", rows, models=tuple(made))
    found = list(model_labels(run).values())
    assert found == record_labels(run)
    return found


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("hf:sentence-transformers/all-MiniLM-L6-v2", "all-MiniLM-L6-v2"),
        ("hf:org/model@refs/pr/1", "model"),
        ("hf:/long/path/bert-tiny/", "bert-tiny"),
        ("st:path/bert-tiny", "bert-tiny"),
        ("vectors:glove.txt", "glove.txt"),
        ("vectors:/a/b/glove@1.txt", "glove@1.txt"),
        ("python:package.module:Class", "Class"),
        ("object:package.module:Outer.Inner", "Inner"),
        ("api:text-embedding-3-small", "text-embedding-3-small"),
        ("hf:org/model [run/one]", "model [run/one]"),
        ("glove", "glove"),
        ("my own/name", "my own/name"),
    ],
)
def test_a_model_without_a_name_is_called_by_the_last_part_of_its_own(name: str, label: str) -> None:
    assert short_name(name) == label
    settings = {"pool": "mean", "layer": "-1"}
    assert labels((name, name, settings)) == [label]  # settings tell nothing apart here


def test_models_of_the_same_short_name_are_told_apart_by_folder_then_settings_then_numbers() -> None:
    both: list[Given] = [("vectors:a/v.txt", "vectors:v.txt", {}), ("vectors:b/v.txt", "vectors:v.txt #2", {})]
    assert labels(*both) == ["a/v.txt", "b/v.txt"]
    hub: list[Given] = [(name, name, {}) for name in ("hf:one/m", "hf:two/m", "hf:other")]
    assert labels(*hub) == ["one/m", "two/m", "other"]
    revisions: list[Given] = [(name, name, {}) for name in ("hf:one/m", "hf:one/m@old")]
    assert labels(*revisions) == ["m", "m@old"]
    cases = [("vectors:v.txt", "vectors:v.txt", {"case": case, "x": "1"}) for case in ("keep", "fold")]
    assert labels(*cases) == ["v.txt (case=keep)", "v.txt (case=fold)"]
    assert labels(*cases, ("vectors:w/v.txt", "vectors:v.txt", {"case": "fold", "x": "1"})) == [
        *("v.txt (case=keep)", "v.txt (case=fold)", "w/v.txt")
    ]
    objects: list[Given] = [(name, name, {}) for name in ("object:one:Mine", "object:two:Mine", "object:two:Mine #2")]
    assert labels(*objects) == ["one:Mine", "two:Mine", "two:Mine #2"]


def test_a_part_of_a_run_has_the_labels_of_the_whole() -> None:
    made = [record("vectors:v.txt", text="vectors:a/v.txt", backend="vectors", revision="1")]
    made.append(record("vectors:v.txt #2", text="vectors:b/v.txt", backend="vectors", revision="2"))
    run = run_of("1", [result(one.name, model_revision=one.revision) for one in made], models=tuple(made))
    assert list(model_labels(run).values()) == ["a/v.txt", "b/v.txt"]
    for item in ("b/v.txt", "vectors:v.txt #2"):
        part = run[item]
        assert [row.model for row in part.results] == ["vectors:v.txt #2"]
        assert list(model_labels(part).values()) == ["b/v.txt"]


def test_a_baseline_is_named_by_its_label_or_as_it_was_typed() -> None:
    assert choose_baseline(["m", "n"], "n") == choose_baseline(["m", "n"], "hf:org/n") == "n"
    with pytest.raises(UnknownNameError):
        choose_baseline(["m", "n"], "hf:org/k")


def test_rows_stand_with_the_models_that_they_are_of() -> None:
    models = [record(f"m{i % 3}", settings={"layer": str(i % 2)}, revision=str(i % 4)) for i in range(12)]
    rows = [
        result(f"m{i % 4}", options=f"layer={i % 2}", model_revision=str(i % 5)) for i in range(120)
    ]  # some are of none
    found = group_rows_by_model(models, rows)
    assert found == [[row for row in rows if belongs_to(row, model)] for model in models]
    assert any(found)
    assert 0 < sum(map(len, found)) < len(rows)
