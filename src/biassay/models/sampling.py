"""How answers in words are drawn, by an endpoint or here."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from biassay.errors import UsageError
from biassay.models.api_settings import read_number, who
from biassay.models.family import ModelName

__all__ = ["SAMPLING_SETTINGS", "Sampling", "check_not_sampled"]

SAMPLING_SETTINGS = {
    "temperature": "0 for the likeliest answer, 1 (the default) for answers as likely as the model holds them",
    "max_tokens": "the most tokens of an answer; the default is 512",
    "system": "a system message before every prompt",
    "seed": "of the answers, where the model takes one",
}


@dataclass(frozen=True)
class Sampling:
    """How answers are drawn: part of what a model is, for other ones give other answers."""

    temperature: float
    max_tokens: int
    system: str | None
    seed: int | None

    @classmethod
    def of(cls, model: ModelName, seed: int | None = None) -> Sampling:
        """What a model string says; ``seed`` is that of models that need one."""
        given = model.settings.get("seed")
        return cls(
            temperature=read_number(model, "temperature", 1.0, 0, 100, whole=False),
            max_tokens=int(read_number(model, "max_tokens", 512, 1, 1_000_000)),
            system=model.settings.get("system"),
            seed=seed if given is None else int(read_number(model, "seed", 0, 0, 2**31 - 1)),
        )

    @property
    def settings(self) -> dict[str, str]:
        """All of it, as part of an identity."""
        named = {"system": self.system, "seed": self.seed}
        always = {"temperature": f"{self.temperature:g}", "max_tokens": str(self.max_tokens)}
        return always | {name: str(value) for name, value in named.items() if value is not None}

    def seed_of(self, key: str) -> int | None:
        """A seed for one request: n answers to a prompt are not one answer n times."""
        if self.seed is None:
            return None
        digest = hashlib.blake2b(f"{self.seed} {key}".encode(), digest_size=4).digest()
        return int.from_bytes(digest, "big") >> 1


def check_not_sampled(model: ModelName, what: str) -> None:
    """Refuse settings of answers in words for anything else."""
    wrong = next((name for name in SAMPLING_SETTINGS if name in model.settings), None)
    if wrong is not None:
        raise UsageError(f"{who(model)}: {wrong}= is for answers in words, not for {what}")
