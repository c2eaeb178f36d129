"""An outcome of responses: exclamation marks per 100 words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from biassay.plugin import ResponseOutcome, Responses

__all__ = ["OUTCOME"]


def _count_exclamations(responses: Responses) -> NDArray[np.float64]:
    counts = np.array([text.count("!") for text in responses.masked])
    per_hundred: NDArray[np.float64] = 100.0 * counts / np.maximum(responses.lengths, 1.0)
    return per_hundred


OUTCOME = ResponseOutcome(
    name="exclamations",
    title="exclamation marks",
    unit="per 100 words",
    measures="Exclamation marks per 100 words.",
    source="biassay-example",
    weakness="Some models never write any.",
    compute=_count_exclamations,
)
