"""Length of a response in words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from biassay.studies.audit.outcomes import ResponseOutcome
from biassay.studies.audit.outcomes.responses import Responses


def _count_words(responses: Responses) -> NDArray[np.float64]:
    return np.where(responses.has_spaced_words, responses.lengths, np.nan)


OUTCOME = ResponseOutcome(
    name="length",
    title="length",
    unit="words",
    measures="Number of words. A name counts as one word, also with several parts.",
    source="own rule: runs of letters and digits, joined by apostrophes and hyphens",
    weakness="A limit on tokens cuts responses off; then length is not informative. Undefined in scripts without "
    "blanks.",
    compute=_count_words,
    undefined="script without blanks",
)
