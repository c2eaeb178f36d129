"""Study files in which people rate responses of a model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

_HEAD = """\
# People rate texts that a model wrote; names are masked. The identifiers below connect the ratings with the run: do not
# change them. Once somebody has taken part, only [pool] may change.

name = "responses"
researcher = ""            # who runs the study; shown on the consent page, like the next two
contact = ""               # address for questions of participants
approval = ""              # approval of the review board, with its number
society = "readers"
texts = "responses"
minimum_age = 18
minutes = {minutes}

# Left is 0, right is 100.
pairs = {pairs}

[target]
annotations = 1            # valid annotations per text
groups_per_participant = {each}  # texts per person; one of them is shown twice

[quality]
which_group = false
high_low = false
self_agreement = 0.5       # share of pairs on which the repeated page agrees with the first
tolerance = 20
seconds_per_group = 4        # a page that takes less time excludes the participant
spread = 0

[responses]
"""
_EACH = 10
_MINUTES_PER_TEXT = 1


def format_response_study(responses: Mapping[str, str], pairs: Sequence[tuple[str, str]]) -> str:
    """Return a study file.

    Parameters
    ----------
    responses : mapping of str to str
        Texts with masked names, by identifier.
    pairs : sequence of (low, high)
        Ends of the scales.
    """
    each = min(_EACH, len(responses))
    listed = json.dumps([list(pair) for pair in pairs], ensure_ascii=False)
    head = _HEAD.format(minutes=_MINUTES_PER_TEXT * (each + 1), pairs=listed, each=each)
    return head + "".join(f"{id} = {_quote(text)}\n" for id, text in responses.items())


def _quote(text: str) -> str:
    """Return a TOML string; unlike JSON, TOML forbids a bare DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
