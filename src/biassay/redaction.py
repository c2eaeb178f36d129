"""Remove secrets from texts before they are stored or shown."""

from __future__ import annotations

import json
import re

_MARK = "[key]"
_SHORTEST = 8  # characters of a key; shorter ones are placeholders such as "none" or "x"
_LONG = 16  # a shorter key of letters only may be a word
_PART = 12  # shortest part of a key that is redacted, because servers truncate keys
_SCHEME = r"([A-Za-z][\w+.-]+:/{1,3}|\b(?:s3|gs|gcs|hf):)"
_PASSWORD = re.compile(_SCHEME + r"(?!\[)[^\s'\"]*:[^\s'\"]*@")
_PARAMETER = re.compile(
    r"(?i)(?<=[?&;])((?:[\w.-]*(?:key|secret|token|passw|signature|credential)[\w.-]*|sig)=)[^\s&;'\"]+"
)
# S3 has a key before the @, the web a token. Other storage has a user name (sftp, gs) or a container (abfs).
_TOKEN = re.compile(r"(?i)((?:s3a?|https?)://)[^\s/@?#'\"]+@|([a-z][\w+.-]*://)[^\s/@?#'\"]*%3A[^\s/@?#'\"]*@")
_PORT = re.compile(_SCHEME + r"[^/:@]*:\d{0,5}(/|$)")

_protected: set[str] = set()


def protect(secret: str) -> None:
    """Let all later calls of `redact` remove a secret."""
    mixed = any(map(str.isdigit, secret)) and any(map(str.isalpha, secret))
    if len(secret) >= _LONG or (len(secret) >= _SHORTEST and mixed):
        _protected.add(secret)


def redact(text: str, *secrets: str) -> str:
    """Replace all protected secrets, and the given ones, by ``[key]``.

    Long parts of a secret are replaced too. The given secrets are always replaced. A protected one with fewer than 8
    characters, or a short one without letters and digits, is treated as a placeholder and kept.
    """
    for secret in sorted({*_protected, *filter(None, secrets)}, key=lambda secret: (-len(secret), secret)):
        for form in _list_forms(secret):
            text = text.replace(form, _MARK)
        size = max(_PART, len(secret) // 2)
        for start in [i for i in range(len(secret) - size + 1) if secret[i : i + size] in text]:
            for stop in range(len(secret), start + size - 1, -1):
                text = text.replace(secret[start:stop], _MARK)
    return text


def _list_forms(secret: str) -> list[str]:
    """List the forms in which servers echo a secret: as it is, and escaped for JSON, HTML and URLs."""
    from html import escape  # both are slow to import, and few runs have a key
    from urllib.parse import quote

    dumped = json.dumps(secret)[1:-1]
    forms = {secret, dumped, dumped.replace("/", "\\/"), escape(secret), quote(secret), quote(secret, safe="")}
    return sorted(forms, key=lambda form: (-len(form), form))


def has_password(url: str) -> bool:
    """Return True if a URL seems to hold a secret: ``s3://KEY:SECRET@...``, ``https://TOKEN@...``, ``?token=...``."""
    if _PASSWORD.match(url) is not None and _PORT.match(url) is None:
        return True
    return _TOKEN.match(url) is not None or ("://" in url and _PARAMETER.search(url) is not None)


def redact_url(text: str) -> str:
    """Replace passwords and keys in the URLs of a text by ``[secret]``."""
    text = _PASSWORD.sub(r"\1[secret]@", text)
    text = _TOKEN.sub(lambda match: f"{match[1] or match[2]}[secret]@", text)
    return _PARAMETER.sub(r"\1[secret]", text)
