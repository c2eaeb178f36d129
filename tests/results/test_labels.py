"""What models of a run are called."""

from __future__ import annotations

from tests.results.made_runs import result, run_of

from biassay.results.labels import model_labels


def test_a_label_names_the_options_and_tells_revisions_apart() -> None:
    assert list(model_labels(run_of("1", [result(options="case=fold")])).values()) == ["m (case=fold)"]
    plain, other = result(), result(model_revision="another")
    assert list(model_labels(run_of("1", [plain, other])).values()) == ["m", "m #2"]
    named = result("m #2")  # the name that a run has given
    assert list(model_labels(run_of("1", [plain, other, named])).values()) == ["m", "m #3", "m #2"]
