"""What can be chosen."""

from __future__ import annotations

from dataclasses import dataclass

from biassay.plugin import setting

__all__ = ["Settings"]


@dataclass(frozen=True)
class Settings:
    """Choices that hold for a whole run."""

    first: str = setting("he", "The pronoun that is expected with occupations of men.", metavar="WORD")
    second: str = setting("she", "The pronoun that it is compared with.", metavar="WORD")
    occupations: str | None = setting(None, "A TOML file with occupations and sentences of your own.", metavar="FILE")
    alpha: float = setting(0.05, "Level of significance.", low=0.0, high=1.0, exclusive=True)
