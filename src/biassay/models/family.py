"""What a family of models is: how its models are named, what they can do, and what they need."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from biassay.models.answering import Answerer, LikelihoodModel
    from biassay.models.base import BlankFiller, Encoder, WordEncoder

__all__ = ["ABILITIES", "Ability", "Family", "ModelName", "consent_by_settings", "is_installed"]

Ability = Literal["texts", "words", "blanks", "replies", "likelihoods"]
ABILITIES: tuple[Ability, ...] = get_args(Ability)
_CONSENT = {
    "base_url": "send texts to {}",
    "key_env": "send the key in {} along",
    "trust_remote_code": "run code that comes with the model",
}


def is_installed(package: str) -> bool:
    """Can a package be imported? It is looked for and not imported: some take seconds."""
    return find_spec(package) is not None


@dataclass(frozen=True)
class ModelName:
    """A parsed model string: ``family:name?setting=value&...``."""

    text: str
    family: str
    name: str
    settings: Mapping[str, str]

    @property
    def head(self) -> str:
        """The string without its settings."""
        return self.text.partition("?")[0]


def consent_by_settings(model: ModelName) -> tuple[str, ...]:
    """What the settings of a model make it do that only the user may decide."""
    asked = {name: value for name, value in model.settings.items() if value.lower() not in ("false", "0")}
    return tuple(text.format(asked[name]) for name, text in _CONSENT.items() if name in asked)


@dataclass(frozen=True, kw_only=True, eq=False)
class Family:
    """A kind of model.

    Attributes
    ----------
    name, form, about : str
        What stands before the colon, how a model string is written, and what the models are, in one line.
    settings : mapping of str to str
        What each setting does, in one line.
    extra : str or None
        The extra of biassay that installs what the family needs.
    needs : tuple of str
        Names by which packages are imported without which no model of the family can be opened.
    packages : tuple of str
        Distributions whose versions a run records, because they can change a number.
    texts, words, blanks, replies, likelihoods : callable or None
        Open a model that encodes texts, that encodes words in their contexts, that fills blanks, that answers prompts,
        that gives likelihoods of texts. They import what they need when they are called. None: the family has no such
        models.
    splits : bool
        Whether texts can be split among workers that each open the model.
    consent : callable
        What opening a model does that only the user may decide, and no file of somebody else.
    selftest : callable or None
        Makes a tiny model in an empty folder and gives its model string. A model of texts is asked for "this is the red
        rose" and "joy", together and one by one: it must know all of these words, and its vectors must not depend on
        what they are encoded with. Any other model is asked whatever it can answer. None: `biassay doctor` skips the
        family.
    title, work : str
        Where its models are one and the same that was published: what papers call it, and the work to cite for it, by
        its key in the references of biassay or in words.
    same_as : str or None
        A family that opens the same models and can do more.
    takes_bare_names : bool
        Whether a name without a family is suggested as a model of this one.
    """

    name: str
    form: str
    about: str
    settings: Mapping[str, str] = field(default_factory=dict)
    extra: str | None = None
    needs: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    texts: Callable[[ModelName], Encoder] | None = None
    words: Callable[[ModelName], WordEncoder] | None = None
    blanks: Callable[[ModelName], BlankFiller] | None = None
    replies: Callable[[ModelName], Answerer] | None = None
    likelihoods: Callable[[ModelName], LikelihoodModel] | None = None
    splits: bool = True
    consent: Callable[[ModelName], tuple[str, ...]] = consent_by_settings
    selftest: Callable[[Path], AbstractContextManager[str]] | None = None
    title: str = ""
    work: str = ""
    same_as: str | None = None
    takes_bare_names: bool = False

    @property
    def takes_name(self) -> bool:
        return ":" in self.form

    @property
    def abilities(self) -> tuple[Ability, ...]:
        return tuple(ability for ability in ABILITIES if getattr(self, ability) is not None)

    @property
    def missing(self) -> tuple[str, ...]:
        """What it needs and is not installed."""
        return tuple(package for package in self.needs if not is_installed(package))

    @property
    def install(self) -> str | None:
        """The command that installs what it needs; None: nothing but biassay is needed."""
        if self.extra is not None:
            return f'pip install "biassay[{self.extra}]"'
        return f"pip install {' '.join(self.packages or self.needs)}" if self.needs else None
