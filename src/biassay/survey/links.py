"""Numbers of a pool, and links that carry one with proof that it was not invented."""

from __future__ import annotations

import hashlib
import hmac
from urllib.parse import urlencode

from biassay.errors import UsageError
from biassay.survey.study import SIGNATURE, Study

__all__ = ["is_signed", "pool_number", "printable", "signature", "signed_link"]

_LENGTH = 128


def printable(text: str) -> str:
    """Without characters that nobody could type again; PostgreSQL takes no NUL."""
    return "".join(character for character in text if character.isprintable()).strip()


def pool_number(text: str) -> str:
    """A participant's number as it is kept."""
    return printable(text)[:_LENGTH]


def signature(key: str, study: Study, number: str) -> str:
    """HMAC-SHA256 of the study's name and the number, a line each: a link of one study is worth nothing in another."""
    return hmac.new(key.encode(), f"{study.name}\n{number}".encode(), hashlib.sha256).hexdigest()


def is_signed(key: str, study: Study, number: str, given: str) -> bool:
    return hmac.compare_digest(signature(key, study, number).encode(), given.encode())


def signed_link(site: str, key: str, study: Study, number: str) -> str:
    """The link that is handed to the person with this number."""
    if number == "" or pool_number(number) != number:
        raise UsageError(
            f"{number!r} is not a participant number; expected 1 to {_LENGTH} printable characters, no space around"
        )
    return f"{site.rstrip('/')}/?" + urlencode({study.pool.parameter: number, SIGNATURE: signature(key, study, number)})
