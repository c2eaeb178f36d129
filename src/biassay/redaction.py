"""Remove secrets from texts before they are stored or shown.

Servers echo keys in many forms: escaped, percent-encoded, split by spaces or invisible characters, in Base64. Texts are
therefore compared by their letters and digits only, ignoring case, as written and with the usual escapes decoded.
"""

from __future__ import annotations

import base64
import html
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

__all__ = ["has_password", "protect", "redact", "redact_url"]

_MARK = "[key]"
_SHORTEST = 8  # letters and digits of a key; shorter ones are placeholders such as "none" or "x"
_LONG = 16  # a shorter key of letters only may be a word
_PART = 12  # shortest part of a key that is redacted, because servers truncate keys
_NON_LETTERS = re.compile(r"[\W_]+")
_BACKSLASH = re.compile(r"\\+(?:u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2}))")
_PERCENT = re.compile(r"%([0-9A-Fa-f]{2})")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|\w{1,31});")
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
    letters = _keep_letters(secret)
    mixed = any(map(str.isdigit, letters)) and not letters.isdigit()
    if len(letters) >= _LONG or (len(letters) >= _SHORTEST and mixed):
        _protected.add(secret)


def redact(text: str, *secrets: str) -> str:
    """Replace all protected secrets, and the given ones, by ``[key]``.

    Long parts of a secret are replaced too. The given secrets are always replaced. A protected one with fewer than 8
    letters and digits, or a short one without a digit, is treated as a placeholder and kept.
    """
    wanted = {*_protected, *filter(None, secrets)}
    if not wanted or not text:
        return text
    for secret in wanted:
        if not _keep_letters(secret):
            text = text.replace(secret, _MARK)
    spans = sorted(span for decode in _iter_decodings(text) for span in _find_spans(text, decode, wanted))
    shown: list[str] = []
    end = 0
    for start, stop in spans:
        if start > end or not shown:
            shown += [text[end:start], _MARK]
        end = max(end, stop)
    return "".join([*shown, text[end:]])


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


def _keep_letters(text: str) -> str:
    return _NON_LETTERS.sub("", unicodedata.normalize("NFKD", text).casefold())


Decoding = tuple[re.Pattern[str], Callable[[re.Match[str]], str]]
_DECODINGS: dict[str, Decoding] = {
    "\\": (_BACKSLASH, lambda match: chr(int(match[1] or match[2], 16))),
    "%": (_PERCENT, lambda match: chr(int(match[1], 16))),
    "&": (_ENTITY, lambda match: html.unescape(match[0])),
}
_ANY_ESCAPE = re.compile("|".join(pattern.pattern for pattern, _ in _DECODINGS.values()))


def _decode_all(match: re.Match[str]) -> str:
    pattern, decode = _DECODINGS[match[0][0]]
    again = pattern.fullmatch(match[0])
    return match[0] if again is None else decode(again)


def _iter_decodings(text: str) -> Iterator[Decoding | None]:
    """Yield the ways to read a text: as written, with each kind of escape decoded, and with all decoded."""
    yield None
    used = [decode for sign, decode in _DECODINGS.items() if sign in text]
    yield from used
    if len(used) > 1:
        yield _ANY_ESCAPE, _decode_all


def _find_spans(text: str, decode: Decoding | None, secrets: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Yield the spans of a text that spell a secret or a long part of one."""
    stream = _keep_letters(text if decode is None else decode[0].sub(decode[1], text))
    hit = [form for secret in secrets for form in _make_forms(secret) if any(block in stream for block in form.blocks)]
    if not hit:
        return
    letters, spans = _index_letters(text, decode)
    for form in hit:
        for start in range(len(letters) - form.length + 1):
            if letters[start : start + form.length] in form.parts:
                yield spans[start][0], spans[start + form.length - 1][1]


def _index_letters(text: str, decode: Decoding | None) -> tuple[str, list[tuple[int, int]]]:
    """Return the letters and digits of a text, and the span that each comes from."""
    letters, spans = [], []
    end = 0
    escapes = [] if decode is None else [(m.start(), m.end(), decode[1](m)) for m in decode[0].finditer(text)]
    for start, stop, decoded in [*escapes, (len(text), len(text), "")]:
        pieces = [*((index, index + 1, text[index]) for index in range(end, start)), (start, stop, decoded)]
        for first, last, piece in pieces:
            for letter in _keep_letters(piece):
                letters.append(letter)
                spans.append((first, last))
        end = stop
    return "".join(letters), spans


class _SecretForm:
    """One spelling of a secret in letters and digits; each of its `parts` is redacted."""

    def __init__(self, letters: str) -> None:
        n = len(letters)
        self.length = n if n < _PART else max(_PART, n // 2)
        self.parts = frozenset(letters[start : start + self.length] for start in range(n - self.length + 1))
        half = (self.length + 1) // 2  # every part holds one of these blocks
        self.blocks = [letters[start : start + half] for start in range(0, n - half + 1, half // 2 or 1)]


@lru_cache(maxsize=64)
def _make_forms(secret: str) -> tuple[_SecretForm, ...]:
    written = {_keep_letters(secret)}
    if len(_keep_letters(secret)) >= _SHORTEST:
        content = secret.encode(errors="surrogatepass")
        written |= {content.hex(), *(_keep_letters(_encode_core(content, shift)) for shift in range(3))}
    return tuple(_SecretForm(letters) for letters in sorted(written) if letters)


def _encode_core(content: bytes, shift: int) -> str:
    """Return the part of a Base64 text that depends on `content` only, after `shift` other bytes (modulo 3)."""
    encoded = base64.b64encode(bytes(shift) + content).decode()
    rest = (len(content) + shift) % 3
    return encoded[(0, 2, 3)[shift] : len(encoded) - (4 if rest else 0)]
