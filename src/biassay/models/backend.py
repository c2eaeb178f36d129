"""Describe model backends, parse model names and read their settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from biassay.errors import UnknownNameError, UsageError, format_install_command
from biassay.packages import import_object

if TYPE_CHECKING:
    from biassay.models.base import BlankFiller, Encoder, LikelihoodModel, TextGenerator, WordEncoder


Capability = Literal["texts", "words", "blanks", "replies", "likelihoods"]
CAPABILITIES: tuple[Capability, ...] = get_args(Capability)
ERASE = "erase"
"""Setting of all models that encode texts."""
ERASE_HELP = "METHOD:CONCEPT, such as leace:gender: erase a concept from the vectors (list them: biassay erasure)"
_CONSENT = {
    "base_url": "send texts to {}",
    "key_env": "also send the key in {}",
    "trust_remote_code": "run code that comes with the model",
}


def is_installed(package: str) -> bool:
    """Return True if a package can be imported; do not import it, because some take seconds."""
    return find_spec(package) is not None


@dataclass(frozen=True)
class ModelName:
    """A parsed model string: ``backend:name?setting=value&...``."""

    text: str
    backend: str
    name: str
    settings: Mapping[str, str]

    @property
    def head(self) -> str:
        """The string without its settings."""
        return self.text.partition("?")[0]

    def drop_setting(self, name: str) -> ModelName:
        """Return the model without one of its settings."""
        parts = self.text.partition("?")[2].split("&")
        kept = "&".join(part for part in parts if part.partition("=")[0] != name)
        settings = {key: value for key, value in self.settings.items() if key != name}
        return ModelName(f"{self.head}?{kept}" if kept else self.head, self.backend, self.name, settings)

    @property
    def label(self) -> str:
        """The model as error messages show it, without its settings: a key may have been pasted there."""
        return f"model {self.head!r}"


def read_choice_setting(model: ModelName, setting: str, allowed: Iterable[str], default: str) -> str:
    """Read a setting that takes one of a few values.

    Parameters
    ----------
    model : ModelName
        Parsed model string.
    setting : str
        Name of the setting.
    allowed : iterable of str
        Allowed values.
    default : str
        Value if the setting is not given.

    Returns
    -------
    str
        The value; any other value raises UnknownNameError.
    """
    value = model.settings.get(setting, default)
    allowed = tuple(allowed)
    if value not in allowed:
        raise UnknownNameError(f"{setting} of {model.label}:", value, allowed, f"(one of {', '.join(allowed)})")
    return value


def read_bool_setting(model: ModelName, setting: str, *, default: bool = False) -> bool:
    """Read a setting that is true or false (or 1 or 0).

    Parameters
    ----------
    model : ModelName
        Parsed model string.
    setting : str
        Name of the setting.
    default : bool
        Value if the setting is not given.
    """
    value = model.settings.get(setting, str(default)).lower()
    if value not in ("true", "false", "1", "0"):
        raise UsageError(f"{model.label}: {setting} must be true or false, got {value!r}")
    return value in ("true", "1")


def read_number_setting(
    model: ModelName, setting: str, default: float, low: float, high: float, *, whole: bool = True
) -> float:
    """Read a setting that is a number.

    Parameters
    ----------
    model : ModelName
        Parsed model string.
    setting : str
        Name of the setting.
    default : float
        Value if the setting is not given.
    low, high : float
        Smallest and largest allowed value.
    whole : bool
        If True, the value must be a whole number.
    """
    text = model.settings.get(setting)
    if text is None:
        return default
    try:
        number: float = int(text) if whole else float(text)
    except ValueError:
        number = float("nan")
    if not low <= number <= high:
        kind = "a whole number" if whole else "a number"
        raise UsageError(f"{model.label}: {setting} must be {kind} from {low} to {high}, got {text!r}")
    return number


def get_setting_consents(model: ModelName) -> tuple[str, ...]:
    """List the actions of a model with these settings that need the user's consent."""
    settings = {name: value for name, value in model.settings.items() if value.lower() not in ("false", "0")}
    return tuple(text.format(settings[name]) for name, text in _CONSENT.items() if name in settings)


def defer(target: str) -> Callable[[ModelName], Any]:
    """Return a function that opens models, and imports `target` (``module:function``) on its first call."""
    return lambda model: import_object(target)(model)


@dataclass(frozen=True, kw_only=True, eq=False)
class ModelBackend:
    """A kind of model, such as ``hf`` or ``vectors``.

    Attributes
    ----------
    name : str
        Prefix of model strings.
    syntax : str
        How to write a model string, such as ``hf:NAME[@REVISION]``.
    description : str
        Description of the models in one line.
    settings : mapping of str to str
        One line of help per setting.
    extra : str or None
        Extra of biassay that installs the dependencies.
    needs : tuple of str
        Import names of the packages that every model needs.
    packages : tuple of str
        Distributions whose versions a run records because they can change results.
    texts, words, blanks, replies, likelihoods : callable or None
        Functions from a ModelName to a model that encodes texts, encodes words in context, fills
        blanks, replies to prompts, or scores texts. None if the backend has no such models. Heavy
        libraries are imported inside these functions.
    splittable : bool
        If True, texts may be split among workers that each open the model.
    required_consents : callable
        Function from a ModelName to the actions on opening that need the user's consent.
    selftest : callable or None
        Context manager that writes a tiny model to an empty folder and yields its model string, for
        `biassay doctor`. A text encoder must know all words of "this is the red rose" and "joy", and
        its vectors must not depend on the batch. If None, the self-test is skipped.
    title, citation : str
        For a backend with one published model: its name in papers, and the work to cite (a key of
        biassay's references, or a sentence).
    alias_of : str or None
        Backend that opens the same models and has more capabilities.
    takes_bare_names : bool
        If True, a name without prefix is suggested as a model of this backend.
    """

    name: str
    syntax: str
    description: str
    settings: Mapping[str, str] = field(default_factory=dict)
    extra: str | None = None
    needs: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    texts: Callable[[ModelName], Encoder] | None = None
    words: Callable[[ModelName], WordEncoder] | None = None
    blanks: Callable[[ModelName], BlankFiller] | None = None
    replies: Callable[[ModelName], TextGenerator] | None = None
    likelihoods: Callable[[ModelName], LikelihoodModel] | None = None
    splittable: bool = True
    required_consents: Callable[[ModelName], tuple[str, ...]] = get_setting_consents
    selftest: Callable[[Path], AbstractContextManager[str]] | None = None
    title: str = ""
    citation: str = ""
    alias_of: str | None = None
    takes_bare_names: bool = False

    @property
    def takes_name(self) -> bool:
        """True if a name follows the prefix."""
        return ":" in self.syntax

    @property
    def capabilities(self) -> tuple[Capability, ...]:
        """Capabilities of its models."""
        return tuple(capability for capability in CAPABILITIES if getattr(self, capability) is not None)

    @property
    def all_settings(self) -> dict[str, str]:
        """One line of help per setting, with the one that all models share that encode texts."""
        return {**self.settings, **({ERASE: ERASE_HELP} if self.texts is not None else {})}

    @property
    def missing(self) -> tuple[str, ...]:
        """Required packages that are not installed."""
        return tuple(package for package in self.needs if not is_installed(package))

    @property
    def install(self) -> str | None:
        """Command that installs the dependencies; None if there are none."""
        if self.extra is not None:
            return format_install_command(self.extra)
        return f"pip install {' '.join(self.packages or self.needs)}" if self.needs else None
