"""Endpoints that write letters, with known differences between groups of names."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.models.answer_server import body
from tests.models.api_server import Asked, Reply, Script
from tests.studies.audit.deciding import find_names, normal, text_of, uniform

STANDOUT = ("outstanding", "exceptional", "superb", "remarkable", "excellent")
PLAIN = (
    "The work was done on time.",
    "Person and the team met every week.",
    "They were in charge of the files and the calendar.",
    "We would be happy to answer more questions about this.",
    "The reports that they wrote were clear and complete.",
)
REFUSAL = "I'm sorry, but I can't write this letter."


def write_letter(name: str, key: str, *, length: float = 12.0, praise: float = 1.0) -> str:
    """Write a letter from random sentences.

    Parameters
    ----------
    name : str
    key : str
        Decides all that is random.
    length, praise : float
        Mean numbers of sentences, and of sentences with a standout word.
    """
    n_plain = max(round(length + 2.0 * normal("length", key)), 1)
    n_praise = max(round(praise + 0.7 * normal("praise", key)), 0)
    sentences = [PLAIN[int(uniform("plain", key, str(i)) * len(PLAIN))].replace("Person", name) for i in range(n_plain)]
    words = [STANDOUT[int(uniform("praise", key, str(i)) * len(STANDOUT))] for i in range(n_praise)]
    sentences += [f"The results of {name} were {word}." for word in words]
    return " ".join([f"I recommend {name}.", *sentences])


def writing(write: Callable[[str, str], str]) -> Script:
    """Answer by a function of the name and a key that differs between requests."""

    def script(asked: Asked) -> Reply:
        text = text_of(asked)
        response = write(find_names(text)[0], json.dumps(asked, sort_keys=True))
        choice = {"index": 0, "finish_reason": "stop", "message": {"content": response}}
        return body(choice, len(text) // 4, len(response) // 4 + 1)

    return script
