"""Texts of a run that people label, so that a judge can be checked against them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from biassay.datasets.rubrics import Rubric, load_rubric, rubric_names
from biassay.errors import UsageError
from biassay.io import replace_controls
from biassay.results.run_data import RunData
from biassay.studies.audit.outcomes import get_outcome
from biassay.studies.audit.outcomes.responses import Responses
from biassay.studies.audit.results import AuditText
from biassay.studies.study import derive_seed


def list_rubrics(run: RunData) -> Sequence[Rubric]:
    """Return the rubrics by which a judge rated the texts of a run; all bundled ones if there was no judge."""
    outcomes = [get_outcome(name) for name in run.manifest.settings.outcome if name.startswith("judge:")]
    rated = [outcome.rubric for outcome in outcomes if outcome.rubric is not None]
    return rated or [load_rubric(name) for name in rubric_names()]


def draw_responses(run: RunData, n: int) -> dict[str, str]:
    """Draw texts at random, equally many for every name and model where possible, and mask the names.

    Parameters
    ----------
    run : RunData
        Audit of texts.
    n : int
        Number of texts, rounded to the next multiple of the number of names. A name with fewer texts has all of them.

    Returns
    -------
    dict of str to str
        Texts by identifier, in random order.
    """
    if run.manifest.study != "audit" or not run.manifest.settings.writes:
        raise UsageError("people can rate texts of an audit with --prompts only; the run is of another kind")
    names = {(name.group, name.full_name): name for name in run.manifest.inputs.names}
    by_name: dict[tuple[str, str, str, str], list[AuditText]] = {}
    for row in run.tables.get("texts", ()):
        own = by_name.setdefault((row.model, row.options, row.group, row.name), [])
        if row.kind == "parsed":
            own.append(row)
    if not any(by_name.values()):
        raise UsageError("the run has no text that people could rate; all responses are refusals or missing")
    per_name = max(round(n / len(by_name)), 1)
    rng = np.random.default_rng(derive_seed(run.manifest.settings.seed, "audit", "labels"))
    drawn = [
        rows[i]
        for rows in by_name.values()
        for i in rng.choice(len(rows), min(per_name, len(rows)), replace=False).tolist()
    ]
    masked = Responses([row.text for row in drawn], [names[row.group, row.name] for row in drawn]).masked
    shown = ["\n".join(map(replace_controls, text.expandtabs().splitlines())) for text in masked]
    return {drawn[i].id: shown[i] for i in rng.permutation(len(drawn)).tolist()}
