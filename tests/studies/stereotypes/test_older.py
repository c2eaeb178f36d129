"""Folders of stereotypes that an older biassay wrote."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import biassay

KEPT = Path(__file__).parents[2] / "golden" / "recorded" / "folders" / "stereotypes-pairs"


def changed(folder: Path, name: str) -> tuple[Path, Any]:
    """A copy of the folder, and the content of one of its files without its digest."""
    shutil.copytree(KEPT, folder)
    content = json.loads((folder / name).read_text())
    del content["digest"]
    return folder / name, content


def test_a_folder_of_format_1_is_read_into_tables_and_arrays() -> None:
    run, nested = biassay.load(KEPT), json.loads((KEPT / "results.json").read_text())["results"][0]
    (measure,) = nested["measures"]
    np.testing.assert_array_equal(run.arrays["0/ilps/scores"], np.array(measure["scores"], dtype=float))
    assert [row.group for row in run.tables["profiles"]] == [profile["group"] for profile in measure["profiles"]]
    assert len(run.tables["group_alignments"]) == sum(len(a["groups"]) for a in measure["alignments"])
    assert run.tables["orders"][0].tau_closest == nested["intersections"][0]["tau_closest"]["value"]
    assert run.manifest.settings.n_bootstrap == 20
    assert run.manifest.inputs.human.digest is None
    assert run.manifest.models[0].words_lost
    tsv = (KEPT / "results.tsv").read_text()
    assert run.table().to_tsv() == tsv


def test_numbers_that_the_pilot_flatters_are_not_taken_over(tmp_path: Path) -> None:
    """It had the pilot groups in all numbers but three, and counted emergent traits as if it knew the noise."""
    path, content = changed(tmp_path / "run", "results.json")
    (result,) = content["results"]
    alignment, crossed = result["measures"][0]["alignments"][0], result["intersections"][0]
    for name in ("tau", "p_value", "precision"):
        alignment |= {f"{name}_held_out": alignment[name], name: alignment.pop(f"{name}_with_pilot")}
    alignment |= {"num_groups": 5, "num_cells": 80}
    del crossed["num_both_orders"]
    crossed["num_emergent"] = 3
    path.write_text(json.dumps(content))
    new, read = biassay.load(KEPT), biassay.load(tmp_path / "run")
    one, other = new.tables["alignments"][0], read.tables["alignments"][0]
    for name in ("tau", "tau_with_pilot", "p_value", "precision", "precision_with_pilot", "num_groups", "num_cells"):
        assert getattr(other, name) == getattr(one, name) is not None
    assert other.tau_groups is other.tau_both is other.tau_shuffled is other.p_value_shuffled is None
    assert one.num_annotators is not None
    assert other.num_annotators is None  # it counted those of the pilot groups too
    assert (new.tables["orders"][0].num_both_orders, read.tables["orders"][0].num_both_orders) == (6, 0)
    assert {trait.p_value_additive for trait in read.tables["emergent"]} == {None}


def test_an_older_run_that_was_not_finished_is_refused(tmp_path: Path) -> None:
    path, content = changed(tmp_path / "run", "manifest.json")
    path.write_text(json.dumps(content | {"status": "running"}))
    with pytest.raises(biassay.BiassayError, match="start a new run"):
        biassay.load(tmp_path / "run")
