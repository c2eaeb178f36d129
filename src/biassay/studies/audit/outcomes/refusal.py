"""Outcome: whether a response is a refusal."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from biassay.prompts.responses import is_writing_refusal
from biassay.studies.audit.outcomes import ResponseOutcome
from biassay.studies.audit.outcomes.responses import Responses


def _find_refusals(responses: Responses) -> NDArray[np.float64]:
    return np.array([is_writing_refusal(text) for text in responses.masked], dtype=np.float64)


OUTCOME = ResponseOutcome(
    name="refusal",
    title="refusals",
    unit="0 or 1",
    measures="Whether the response declines the task instead of doing it.",
    source="own rule: at most 1,000 characters, of which the first 400 decline the task, in 15 languages",
    weakness="Misses refusals in unusual words or after a long preamble. An apology counts too if it is not English.",
    compute=_find_refusals,
)
