"""URL, API key and request options of an endpoint, from a model string and the environment.

A key belongs to a host. BIASSAY_API_KEY and OPENAI_API_KEY are sent only to OpenAI or to the user's OPENAI_BASE_URL. A
URL in a model string gets the key in the variable that key_env= names, which cannot be OPENAI_API_KEY. Without a key,
requests have no Authorization header; OpenAI always needs a key.
"""

from __future__ import annotations

import ipaddress
import math
import os
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from biassay.errors import UsageError
from biassay.models.backend import ModelName, get_setting_consents, read_number_setting
from biassay.redaction import protect, redact

if TYPE_CHECKING:
    import httpx


_OPENAI_HOST = "api.openai.com"
_OPENAI_URL = f"https://{_OPENAI_HOST}/v1"
_OWN_VARIABLE, _OPENAI_VARIABLE = "BIASSAY_API_KEY", "OPENAI_API_KEY"
_MAX_MESSAGE_LENGTH = 300  # characters of a server's message


def make_connection_settings(path: str, concurrency: int) -> dict[str, str]:
    """Return the settings of all endpoint backends with their help; `concurrency` is the default."""
    return {
        "base_url": f"URL of the server without {path} (default OPENAI_BASE_URL or OpenAI)",
        "key_env": "environment variable with the API key, never the key itself",
        "concurrency": f"number of concurrent requests (default {concurrency})",
        "retries": "number of retries if a request fails (default 5)",
        "timeout": "seconds to wait for a response (default 60)",
    }


def get_endpoint_consents(model: ModelName) -> tuple[str, ...]:
    """List the actions that need the user's consent: texts are sent to the endpoint even if no setting names it."""
    consents = get_setting_consents(model)
    if model.settings.get("base_url", "false").lower() not in ("false", "0"):
        return consents
    return ("send texts to OpenAI, or to the URL in OPENAI_BASE_URL, with your key", *consents)


def make_selftest(backend: str) -> Callable[[Path], AbstractContextManager[str]]:
    """Return the self-test of an endpoint backend, which needs no files."""

    def serve(_: Path) -> AbstractContextManager[str]:
        from biassay.models.selftest import serve_tiny_endpoint

        return serve_tiny_endpoint(backend)

    return serve


@dataclass(frozen=True)
class RequestOptions:
    """Limits of requests: number at a time, seconds, and requests per minute."""

    concurrency: int
    retries: int
    timeout: float
    rate: float


def read_request_options(model: ModelName, concurrency: int) -> RequestOptions:
    """Read the options from a model string; `concurrency` is the default."""
    return RequestOptions(
        concurrency=int(read_number_setting(model, "concurrency", concurrency, 1, 64)),
        retries=int(read_number_setting(model, "retries", 5, 0, 100)),
        timeout=read_number_setting(model, "timeout", 60, 0.001, 3600, whole=False),
        rate=read_number_setting(model, "rate", math.inf, 0.001, 1e9, whole=False),
    )


@dataclass(frozen=True)
class EndpointUrl:
    """URL of an endpoint; `chosen_by_user` is True for OpenAI and for OPENAI_BASE_URL."""

    url: httpx.URL
    chosen_by_user: bool

    @property
    def is_openai(self) -> bool:
        """True for OpenAI's host."""
        return self.url.host == _OPENAI_HOST

    @property
    def is_loopback(self) -> bool:
        """True for a server on this machine."""
        host = self.url.host
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost" or host.endswith(".localhost")


def read_endpoint_url(model: ModelName, path: str) -> EndpointUrl:
    """Return the URL of an endpoint without the path; a URL that may contain a secret raises an error."""
    import httpx

    text, origin = model.settings.get("base_url"), "base_url"
    if text is None:
        text, origin = os.environ.get("OPENAI_BASE_URL") or _OPENAI_URL, "OPENAI_BASE_URL"
    where = f"{model.label}: {origin}"
    if "@" in text or "?" in text or "#" in text:
        raise UsageError(
            f"{where} must not contain a user, a password, a query or a fragment (not shown here); set the key in the "
            f"environment: {_OWN_VARIABLE} or {_OPENAI_VARIABLE} for OpenAI, for other servers any variable, named by "
            "key_env="
        )
    try:
        url: httpx.URL | None = httpx.URL(text.rstrip("/"))
    except httpx.InvalidURL:
        url = None
    if url is None or url.scheme not in ("http", "https") or not url.host or (url.port or 0) > 65535:
        raise UsageError(f"{where} must be like http://host:port/v1, got {text!r}")
    if url.path.endswith(path):
        raise UsageError(f"{where} must not include {path}, got {text!r}")
    return EndpointUrl(url, origin == "OPENAI_BASE_URL" or url == httpx.URL(_OPENAI_URL))


@dataclass(frozen=True, repr=False)
class ApiKey:
    """An API key or its absence, and the environment variables that were read."""

    value: str | None
    variables: tuple[str, ...]

    def __repr__(self) -> str:
        return f"<key of {self.names}>" if self.value else f"<no key in {self.names}>"

    @property
    def names(self) -> str:
        """Names of the variables, for messages."""
        return " or ".join(self.variables) or "the variable that key_env= names"

    @property
    def advice(self) -> str:
        """Advice for errors with status 401 or 403."""
        if self.value:
            return f"check the key in {self.names}"
        if self.variables:
            return f"the server requires a key: set the environment variable {self.names}"
        return (
            "the server requires a key: set an environment variable, such as MY_KEY, and add key_env=MY_KEY "
            f"({_OWN_VARIABLE} and {_OPENAI_VARIABLE} are not sent to a URL given by base_url=)"
        )

    @property
    def header(self) -> Mapping[str, str]:
        """Authorization header, empty without a key."""
        return {"Authorization": f"Bearer {self.value}"} if self.value else {}

    def redact(self, text: str) -> str:
        """Remove this key and all other keys in use from a text."""
        return redact(text, self.value or "")

    def redact_message(self, text: str) -> str:
        """Make a server's message safe to show: one short, printable line without keys."""
        text = "".join(c if c.isprintable() or c.isspace() else "?" for c in self.redact(text))
        text = " ".join(text.split())
        return text if len(text) <= _MAX_MESSAGE_LENGTH else text[: _MAX_MESSAGE_LENGTH - 1] + "…"


def find_api_key(model: ModelName, endpoint: EndpointUrl) -> ApiKey:
    """Return the key for an endpoint from the environment; servers other than OpenAI may need none."""
    variables = _list_key_variables(model, endpoint)
    for variable in variables:
        value = os.environ.get(variable, "").strip()
        if value and not (value.isascii() and value.isprintable() and " " not in value):
            raise UsageError(f"the environment variable {variable} has characters that cannot be part of a key")
        if value:
            protect(value)
            for text in (model.text, str(endpoint.url)):
                if redact(text) != text:
                    raise UsageError(f"the {model.backend}: model string or its base_url contains the key itself")
            return ApiKey(value, (variable,))
    missing = ApiKey(None, variables)
    if "key_env" in model.settings:
        raise UsageError(f"{model.label}: the environment variable {missing.names} that key_env= names is not set")
    if endpoint.is_openai:
        hint = f"set the environment variable {missing.names}" if variables else f"keys are sent only to {_OPENAI_URL}"
        raise UsageError(f"{model.label} needs a key: {hint}; add base_url= if the model is on another server")
    return missing


def _list_key_variables(model: ModelName, endpoint: EndpointUrl) -> tuple[str, ...]:
    """List the variables that may hold the key for an endpoint."""
    variable = model.settings.get("key_env")
    if variable is None:
        return (_OWN_VARIABLE, _OPENAI_VARIABLE) if endpoint.chosen_by_user else ()
    # A key pasted here by mistake would end in the manifest; keys hardly ever look like variable names.
    if not re.fullmatch(r"[A-Z_][A-Z0-9_]*", variable):
        raise UsageError(
            f"{model.label}: key_env must be the name of an environment variable (capital letters, digits and _), "
            "never the key itself (the value is not shown here)"
        )
    if variable == _OPENAI_VARIABLE and not endpoint.chosen_by_user:
        raise UsageError(
            f"{model.label}: {_OPENAI_VARIABLE} is not sent to a URL given by base_url=; to send it to {endpoint.url}, "
            "set OPENAI_BASE_URL to that URL and leave out base_url= and key_env="
        )
    return (variable,)
