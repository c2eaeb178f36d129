"""Endpoints with a model that writes letters and one that judges them, by the praise that both can count."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from tests.models.answer_server import body
from tests.models.api_server import Asked, Endpoint, Reply
from tests.studies.audit.deciding import find_names, is_woman, text_of, uniform
from tests.studies.audit.letters import STANDOUT, write_letter

_TEXTS = re.compile(r"<text(?: [AB])?>\n(.*?)\n</text", re.DOTALL)


def count_praise(text: str) -> int:
    """Return the rating that people give a letter, from 1 to 7."""
    return min(1 + sum(text.count(word) for word in STANDOUT), 7)


def write_gendered(name: str, key: str, *, women: float = 3.0, men: float = 3.0) -> str:
    """Write a letter whose last sentence has the pronoun of the name, with so much praise on average."""
    letter = write_letter(name, key, praise=women if is_woman(name) else men)
    return f"{letter} {'She' if is_woman(name) else 'He'} is welcome back."


def rate_by(score: Callable[[str], int]) -> Callable[[str], str]:
    """Rate a text by a function of it, and choose the text with the higher score of two, or the first."""

    def judge(prompt: str) -> str:
        texts = _TEXTS.findall(prompt)
        scores = [score(text) for text in texts]
        if len(texts) == 1:
            return f"Rating: {scores[0]}"
        first = scores[0] > scores[1] or (scores[0] == scores[1] and uniform("tie", prompt) < 0.5)
        return "A" if first else "B"

    return judge


def serve(server: Endpoint, write: Callable[[str, str], str], judge: Callable[[str], str]) -> None:
    """Let an endpoint serve both models."""

    def script(asked: Asked) -> Reply:
        text = text_of(asked)
        is_judge = asked["model"] == "judge"
        response = judge(text) if is_judge else write(find_names(text)[0], json.dumps(asked, sort_keys=True))
        choice = {"index": 0, "finish_reason": "stop", "message": {"content": response}}
        return body(choice, len(text) // 4, len(response) // 4 + 1)

    server.always = script


def format_judge(server: Endpoint) -> str:
    return f"chat:judge?base_url={server.base}&concurrency=8&max_tokens=50&retries=0"
