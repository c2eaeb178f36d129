"""Signed links for participants of a recruitment pool."""

from __future__ import annotations

import hashlib
import hmac
from urllib.parse import urlencode

from biassay.errors import UsageError
from biassay.survey.study import SIGNATURE, SurveyStudy

_LENGTH = 128


def strip_unprintable(text: str) -> str:
    """Remove unprintable characters, which nobody can type and PostgreSQL rejects in part."""
    return "".join(character for character in text if character.isprintable()).strip()


def clean_pool_number(text: str) -> str:
    """Return a participant's number as it is stored."""
    return strip_unprintable(text)[:_LENGTH]


def sign_number(key: str, study: SurveyStudy, number: str) -> str:
    """Return the HMAC-SHA256 of the study's name and the number, so that a link is valid for one study only.

    Parameters
    ----------
    key : str
        Secret key.
    study : SurveyStudy
        The study.
    number : str
        Number of the participant in the pool.
    """
    return hmac.new(key.encode(), f"{study.name}\n{number}".encode(), hashlib.sha256).hexdigest()


def is_signed(key: str, study: SurveyStudy, number: str, given: str) -> bool:
    """Return whether the signature of a number is valid.

    Parameters
    ----------
    key : str
        Secret key.
    study : SurveyStudy
        The study.
    number : str
        Number of the participant in the pool.
    given : str
        Signature in the link.
    """
    return hmac.compare_digest(sign_number(key, study, number).encode(), given.encode())


def make_signed_link(site: str, key: str, study: SurveyStudy, number: str) -> str:
    """Return the signed link for a participant.

    Parameters
    ----------
    site : str
        URL of the study.
    key : str
        Secret key.
    study : SurveyStudy
        The study.
    number : str
        Number of the participant in the pool.
    """
    if number == "" or clean_pool_number(number) != number:
        raise UsageError(
            f"{number!r} is not a participant number; expected 1 to {_LENGTH} printable characters, no space around"
        )
    return f"{site.rstrip('/')}/?" + urlencode(
        {study.pool.parameter: number, SIGNATURE: sign_number(key, study, number)}
    )
