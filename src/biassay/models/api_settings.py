"""What a model string and the environment say of an endpoint: where it is, how to ask it, and the key.

A key belongs to a host. The variables that are looked into unasked, BIASSAY_API_KEY and OPENAI_API_KEY, go to OpenAI or
to where the user's OPENAI_BASE_URL points; an address that a model string brings along gets the variable that key_env=
names, and never OPENAI_API_KEY. Without a key, requests have no Authorization header; OpenAI always needs a key.
"""

from __future__ import annotations

import ipaddress
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from biassay.errors import UsageError
from biassay.models.family import ModelName, consent_by_settings
from biassay.redaction import protect, redact

if TYPE_CHECKING:
    import httpx

__all__ = [
    "Address",
    "Key",
    "Options",
    "connection_settings",
    "consent",
    "find_key",
    "read_address",
    "read_number",
    "read_options",
    "who",
]

_OPENAI_HOST = "api.openai.com"
_OPENAI = f"https://{_OPENAI_HOST}/v1"
_OWN_VARIABLE, _OPENAI_VARIABLE = "BIASSAY_API_KEY", "OPENAI_API_KEY"
_SHOWN = 300  # characters of a server's message


def connection_settings(path: str, concurrency: int) -> dict[str, str]:
    """The settings of every family that asks an endpoint at a path, with so many requests at a time by default."""
    return {
        "base_url": f"address of the server, the part before {path}; by default OpenAI or OPENAI_BASE_URL",
        "key_env": "the environment variable that holds the key, never the key itself",
        "concurrency": f"requests at a time; the default is {concurrency}",
        "retries": "further attempts when a request fails; the default is 5",
        "timeout": "seconds to wait for an answer; the default is 60",
    }


def consent(model: ModelName) -> tuple[str, ...]:
    """Texts leave this machine, whether or not a setting says where to."""
    asked = consent_by_settings(model)
    if model.settings.get("base_url", "false").lower() not in ("false", "0"):
        return asked
    return ("send texts to OpenAI, or to the address in OPENAI_BASE_URL, with your key", *asked)


def who(model: ModelName) -> str:
    """The name of a model in messages: without its settings."""
    return f"model {model.head!r}"


@dataclass(frozen=True)
class Options:
    """How requests are sent, whatever they ask."""

    concurrency: int
    retries: int
    timeout: float
    rate: float  # requests in a minute


def read_options(model: ModelName, concurrency: int) -> Options:
    return Options(
        concurrency=int(read_number(model, "concurrency", concurrency, 1, 64)),
        retries=int(read_number(model, "retries", 5, 0, 100)),
        timeout=read_number(model, "timeout", 60, 0.001, 3600, whole=False),
        rate=read_number(model, "rate", math.inf, 0.001, 1e9, whole=False),
    )


def read_number(model: ModelName, name: str, default: float, least: float, most: float, *, whole: bool = True) -> float:
    """A setting that is a number within bounds."""
    text = model.settings.get(name)
    if text is None:
        return default
    try:
        number: float = int(text) if whole else float(text)
    except ValueError:
        number = float("nan")
    if not least <= number <= most:
        kind = "a whole number" if whole else "a number"
        raise UsageError(f"{who(model)}: {name} must be {kind} from {least} to {most}, got {text!r}")
    return number


@dataclass(frozen=True)
class Address:
    """Where an endpoint is; ``chosen_by_user``: OpenAI's own, or that of the environment."""

    url: httpx.URL
    chosen_by_user: bool

    @property
    def is_openai(self) -> bool:
        return self.url.host == _OPENAI_HOST

    @property
    def is_loopback(self) -> bool:
        host = self.url.host
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost" or host.endswith(".localhost")


def read_address(model: ModelName, path: str) -> Address:
    """Where the endpoint is, without the path. What may hold a secret is refused, and not repeated in the message."""
    import httpx

    given, origin = model.settings.get("base_url"), "base_url"
    if given is None:
        given, origin = os.environ.get("OPENAI_BASE_URL") or _OPENAI, "OPENAI_BASE_URL"
    where = f"{who(model)}: {origin}"
    if "@" in given or "?" in given or "#" in given:
        raise UsageError(
            f"{where} must not hold a user, a password, a query or a fragment (not shown here); "
            f"the key is read from the environment: {_OWN_VARIABLE} or {_OPENAI_VARIABLE} for OpenAI, for others the "
            "variable that key_env= names"
        )
    try:
        url: httpx.URL | None = httpx.URL(given.rstrip("/"))
    except httpx.InvalidURL:
        url = None
    if url is None or url.scheme not in ("http", "https") or not url.host or (url.port or 0) > 65535:
        raise UsageError(f"{where} must be like http://host:port/v1, got {given!r}")
    if url.path.endswith(path):
        raise UsageError(f"{where} is the part before {path}, got {given!r}")
    return Address(url, origin == "OPENAI_BASE_URL" or url == httpx.URL(_OPENAI))


@dataclass(frozen=True, repr=False)
class Key:
    """A secret, or its absence, and the variables it was looked for in."""

    value: str | None
    variables: tuple[str, ...]

    def __repr__(self) -> str:
        return f"<key of {self.names}>" if self.value else f"<no key in {self.names}>"

    @property
    def names(self) -> str:
        return " or ".join(self.variables) or "the variable that key_env= names"

    @property
    def advice(self) -> str:
        """What to check or to set after a server answered 401 or 403."""
        if self.value:
            return f"check the key in {self.names}"
        if self.variables:
            return f"the server asks for a key: set the environment variable {self.names}"
        return (
            "the server asks for a key: set an environment variable, such as MY_KEY, and add key_env=MY_KEY "
            f"({_OWN_VARIABLE} and {_OPENAI_VARIABLE} are not sent to an address given by base_url=)"
        )

    @property
    def header(self) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {self.value}"} if self.value else {}

    def redacted(self, words: str) -> str:
        """A text without this key, and without any other key that is in use."""
        return redact(words, self.value or "")

    def hidden_in(self, words: str) -> str:
        """What a server said, fit to be shown: on one line, printable, short, and without the key."""
        words = self.redacted(words)
        words = "".join(c if c.isprintable() or c.isspace() else "?" for c in words)
        words = " ".join(words.split())
        return words if len(words) <= _SHOWN else words[: _SHOWN - 1] + "…"


def find_key(model: ModelName, address: Address) -> Key:
    """Return the key for an address, from the environment. Servers other than OpenAI's may need none."""
    variables = _variables(model, address)
    for variable in variables:
        value = os.environ.get(variable, "").strip()
        if value and not (value.isascii() and value.isprintable() and " " not in value):
            raise UsageError(f"the environment variable {variable} holds characters that cannot be part of a key")
        if value:
            protect(value)
            for text in (model.text, str(address.url)):
                if redact(text) != text:
                    raise UsageError(f"the {model.family}: model string or its base_url holds the key itself")
            return Key(value, (variable,))
    missing = Key(None, variables)
    if "key_env" in model.settings:
        raise UsageError(f"{who(model)}: the environment variable {missing.names} that key_env= names is not set")
    if address.is_openai:
        hint = f"set the environment variable {missing.names}" if variables else f"only {_OPENAI} is sent one"
        raise UsageError(f"{who(model)} needs a key: {hint}; give base_url= if the model is on another server")
    return missing


def _variables(model: ModelName, address: Address) -> tuple[str, ...]:
    """The variables a key for this address may come from."""
    named = model.settings.get("key_env")
    if named is None:
        return (_OWN_VARIABLE, _OPENAI_VARIABLE) if address.chosen_by_user else ()
    # A key pasted here by mistake would end in the manifest; keys hardly ever look like a variable's name.
    if not re.fullmatch(r"[A-Z_][A-Z0-9_]*", named):
        raise UsageError(
            f"{who(model)}: key_env takes the name of an environment variable, of capital letters, digits "
            "and _, never the key itself (what was given is not shown here)"
        )
    if named == _OPENAI_VARIABLE and not address.chosen_by_user:
        raise UsageError(
            f"{who(model)}: {_OPENAI_VARIABLE} is not sent to an address given by base_url=; if {address.url} is "
            f"to have it, set OPENAI_BASE_URL to that and leave base_url= and key_env= out"
        )
    return (named,)
