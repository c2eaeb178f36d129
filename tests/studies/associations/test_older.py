"""What older folders of association tests do not say, and the catalogue does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.results.made_runs import result

from biassay.results.codec import unstructured
from biassay.stimuli.catalogue import catalogue
from biassay.studies.associations.older import upgrade
from biassay.texts.sentences import digest_of

GOLDEN = Path(__file__).parents[2] / "golden" / "recorded" / "folders"


@pytest.mark.parametrize(
    ("name", "digest", "known"),
    [
        ("sent-weat1", None, ("method", "things", "weat1", "bleached")),
        ("sent-weat1", "of other texts", (None, None, None, None)),
        ("own", None, (None, None, None, None)),
    ],
)
def test_what_an_older_test_is_about_is_known_by_its_name_and_texts(
    tmp_path: Path, name: str, digest: str | None, known: tuple[str | None, ...]
) -> None:
    digest = digest or digest_of(catalogue().tests["sent-weat1"])
    row = unstructured(result("m", name, test_digest=digest))
    fields = ("about", "topic", "variant_of", "template")
    row = {key: value for key, value in row.items() if key not in fields}
    manifest = json.loads((GOLDEN / "run-exact" / "manifest.json").read_text())
    (found,) = upgrade(tmp_path, manifest, {"results": [row]}).tables["results"]
    assert tuple(found.get(field) for field in fields) == known


def test_settings_of_contexts_stood_with_their_file() -> None:
    folder = GOLDEN / "ceat-random"
    manifest, results = (json.loads((folder / f"{name}.json").read_text()) for name in ("manifest", "results"))
    older = upgrade(folder, manifest, results)
    assert older.manifest["settings"]["n_samples"] == manifest["contexts"]["n_samples"] == 30
    assert older.manifest["settings"]["contexts"] == older.manifest["inputs"]["contexts"]["file"]
    assert len(older.arrays["0/plain/samples"]) == 30
