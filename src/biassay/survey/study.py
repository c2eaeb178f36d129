"""A study as a file: whom and what it asks about, how much is wanted, and what counts as valid."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

from biassay.errors import StimulusError, UnknownNameError, UsageError
from biassay.files import read_text
from biassay.stimuli.fields import FieldReader, kind
from biassay.stimuli.trait_pairs import PairNames
from biassay.survey.texts import Texts, read_texts

__all__ = ["SIGNATURE", "Field", "Pool", "Rules", "Study", "read_study", "shipped_studies", "study_text"]

SIGNATURE = "signature"  # where a link carries it
_TOP = {
    *("name", "researcher", "contact", "approval", "society", "texts", "minimum_age", "minutes", "groups", "pairs"),
    *("target", "quality", "session", "privacy", "pool", "demographics"),
}


@dataclass(frozen=True)
class Field:
    """A question about the participant: choices, one or several of them, or a text of at most ``most`` characters."""

    name: str
    choices: tuple[str, ...]
    several: bool
    most: int


@dataclass(frozen=True)
class Rules:
    """What makes the annotations of a participant valid."""

    which_group: bool
    high_low: bool
    self_agreement: float
    tolerance: int
    seconds_a_group: float
    spread: int = 1


@dataclass(frozen=True)
class Pool:
    """How participants come from a pool and go back to it; empty texts: they do not.

    ``required``: nobody takes part without a number of the pool; ``signed``: a number counts only in a signed link,
    which is then required.
    """

    parameter: str
    completion_url: str
    completion_code: str
    required: bool
    signed: bool = False


@dataclass(frozen=True)
class Study:
    """Everything that a study is. ``researcher``, ``contact`` and ``approval`` stand on the page of consent."""

    name: str
    researcher: str
    contact: str
    approval: str
    society: str
    minimum_age: int
    minutes: int
    groups: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    annotations: int
    groups_a_participant: int
    rules: Rules
    session_minutes: float
    link_demographics: bool
    pool: Pool
    demographics: tuple[Field, ...]
    texts: Texts

    @property
    def definition(self) -> str:
        """The study as JSON, to be kept with the data."""
        return json.dumps(dataclasses.asdict(self), ensure_ascii=False, sort_keys=True)

    @cached_property
    def digest(self) -> str:
        """Of all that answers depend on; how people come and go may be mended while a study runs."""
        # The pool as it was empty when there were fewer fields: databases know their study by this text.
        pool = {"parameter": "", "completion_url": "", "completion_code": "", "required": False}
        content = {**dataclasses.asdict(self), "pool": pool}
        content["texts"]["sections"].pop("crowded", None)  # came later; who takes part does not read it
        text = json.dumps(content, ensure_ascii=False, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def pair_names(self) -> tuple[str, ...]:
        """As in the released judgements."""
        return tuple(f"{left} - {right}" for left, right in self.pairs)


def shipped_studies() -> list[str]:
    """Names of the studies that come with the package."""
    files = (entry.name for entry in (resources.files("biassay.survey") / "data").iterdir())
    return sorted(name.removesuffix(".toml") for name in files if name.endswith(".toml") and name != "english.toml")


def study_text(name: str) -> str:
    """The file of a study that is shipped."""
    return (resources.files("biassay.survey") / "data" / f"{name}.toml").read_text("utf-8")


def read_study(name: str | Path) -> Study:
    """A study file, or the name of a shipped one; an error names the file, the line and the field."""
    if str(name) in shipped_studies():
        return _Reader(Path(f"{name}.toml"), study_text(str(name))).study()
    path = Path(name)
    if not path.exists() and path.suffix != ".toml":
        raise UnknownNameError("study", str(name), shipped_studies(), "(or the path of a .toml file)")
    return _Reader(path, read_text(path)).study()


class _Reader(FieldReader):
    """A study from parsed TOML, every value checked."""

    def __init__(self, path: Path, text: str) -> None:
        super().__init__(path, text)
        try:
            self.content = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise StimulusError(f"{path}: not valid TOML: {error}") from error

    def study(self) -> Study:
        top = self.table(self.content, "", _TOP)
        target = self.part(top, "target", {"annotations", "groups_a_participant"})
        session = self.part(top, "session", {"minutes"})
        privacy = self.part(top, "privacy", {"link_demographics"})
        groups = self.distinct(top.get("groups"), "groups")
        if "demographics" in groups:
            self.fail("groups", "'demographics' cannot be a group: exports call facts about people so")
        number = self.whole(target.get("groups_a_participant", 4), "target.groups_a_participant", 1, len(groups))
        rules = self.rules(top)
        if rules.high_low and number < 2:
            self.fail("quality.high_low", "this question comes after the second group, and there is one group only")
        return Study(
            name=self.string(top.get("name"), "name"),
            researcher=self.text(top.get("researcher", ""), "researcher"),
            contact=self.text(top.get("contact", ""), "contact"),
            approval=self.text(top.get("approval", ""), "approval"),
            society=self.string(top.get("society"), "society"),
            minimum_age=self.whole(top.get("minimum_age", 18), "minimum_age", 0, 120),
            minutes=self.whole(top.get("minutes", 10), "minutes", 1, 600),
            groups=groups,
            pairs=self.pairs(top.get("pairs")),
            annotations=self.whole(target.get("annotations", 20), "target.annotations", 1, 1_000_000),
            groups_a_participant=number,
            rules=rules,
            session_minutes=self.real(session.get("minutes", 60), "session.minutes", 0.01, 100_000.0),
            link_demographics=self.flag(privacy.get("link_demographics", False), "privacy.link_demographics"),
            pool=self.pool(top),
            demographics=self.fields(top.get("demographics", {})),
            texts=read_texts(self.string(top.get("texts", "english"), "texts"), self.path.parent),
        )

    def part(self, top: Mapping[str, Any], name: str, allowed: set[str]) -> dict[str, Any]:
        return self.table(top.get(name, {}), name, allowed)

    def rules(self, top: Mapping[str, Any]) -> Rules:
        given = self.part(top, "quality", {field.name for field in dataclasses.fields(Rules)})
        return Rules(
            which_group=self.flag(given.get("which_group", True), "quality.which_group"),
            high_low=self.flag(given.get("high_low", True), "quality.high_low"),
            self_agreement=self.real(given.get("self_agreement", 0.8), "quality.self_agreement", 0.0, 1.0),
            tolerance=self.whole(given.get("tolerance", 10), "quality.tolerance", 0, 100),
            spread=self.whole(given.get("spread", 1), "quality.spread", 0, 100),
            seconds_a_group=self.real(given.get("seconds_a_group", 8), "quality.seconds_a_group", 0.0, 3600.0),
        )

    def pool(self, top: Mapping[str, Any]) -> Pool:
        given = self.part(top, "pool", {field.name for field in dataclasses.fields(Pool)})
        flags = {name: self.flag(given.get(name, False), f"pool.{name}") for name in ("required", "signed")}
        values = {name: self.text(value, f"pool.{name}") for name, value in given.items() if name not in flags}
        for name in flags:
            if flags[name] and not values.get("parameter"):
                self.fail(f"pool.{name}", f"a number is {name}, and pool.parameter does not say where it stands")
        flags["required"] |= flags["signed"]  # or who leaves the number out needs no signature
        if flags["signed"] and values["parameter"] == SIGNATURE:
            self.fail("pool.parameter", f"{SIGNATURE!r} is where a link carries the signature; expected another name")
        url = values.get("completion_url", "")
        if url and not url.startswith(("https://", "http://")):
            self.fail("pool.completion_url", f"expected an address that begins with https://, got {url!r}")
        unknown = set(re.findall(r"\{(\w*)\}", url)) - {"code"}
        if unknown:
            self.fail("pool.completion_url", f"nothing is known of {{{sorted(unknown)[0]}}}; {{code}} is filled in")
        return Pool(values.get("parameter", ""), url, values.get("completion_code", ""), **flags)

    def fields(self, value: Any) -> tuple[Field, ...]:
        return tuple(self.field(name, given) for name, given in self.table(value, "demographics").items())

    def field(self, name: str, value: Any) -> Field:
        where = f"demographics.{name}"
        given = self.table(value, where, {"choices", "several", "most"})
        choices = self.distinct(given["choices"], f"{where}.choices") if "choices" in given else ()
        several = self.flag(given.get("several", False), f"{where}.several")
        if several and not choices:
            self.fail(f"{where}.several", "several answers need choices")
        for choice in choices:
            if "," in choice and several:
                self.fail(
                    f"{where}.choices", f"{choice!r}: commas separate several answers, so an answer cannot hold one"
                )
        return Field(name, choices, several, self.whole(given.get("most", 60), f"{where}.most", 1, 500))

    def pairs(self, value: Any) -> tuple[tuple[str, str], ...]:
        if not isinstance(value, list) or not value:
            self.fail("pairs", f"expected a list of pairs [left, right], got {kind(value)}")
        found = []
        for i, given in enumerate(value):
            if not isinstance(given, list) or len(given) != 2:
                self.fail(f"pairs[{i}]", f"expected two opposite traits [left, right], got {kind(given)}")
            found.append(tuple(_plain(self.string(trait, f"pairs[{i}]")) for trait in given))
        traits = [trait for pair in found for trait in pair]
        folded = [" ".join(trait.casefold().split()) for trait in traits]
        twice = next((trait for i, trait in enumerate(traits) if folded[i] in folded[:i]), None)
        if twice is not None:
            self.fail("pairs", f"the trait {twice!r} stands twice")
        names = PairNames(None, {})
        for i, (left, right) in enumerate(found):
            try:
                names.find(f"{left} - {right}")
            except UsageError as error:
                self.fail(f"pairs[{i}]", f"an export could not be read again: '{left} - {right}': {error}")
            if names.pairs[i] != (left, right):
                self.fail(
                    f"pairs[{i}]", f"an export could not be read again: '{left} - {right}' has a dash at its edge"
                )
        return tuple((pair[0], pair[1]) for pair in found)

    def distinct(self, value: Any, where: str) -> tuple[str, ...]:
        names: Sequence[str] = [_plain(name) for name in self.strings(value, where)]
        twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
        if twice is not None:
            self.fail(where, f"{twice!r} stands twice")
        return tuple(names)

    def text(self, value: Any, where: str) -> str:
        if not isinstance(value, str):
            self.fail(where, f"expected a text, got {kind(value)}")
        return value.strip()

    def whole(self, value: Any, where: str, least: int, most: int) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            self.fail(where, f"expected a whole number from {least} to {most}, got {kind(value)}")
        return value

    def real(self, value: Any, where: str, least: float, most: float) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            self.fail(where, f"expected a number from {least:g} to {most:g}, got {kind(value)}")
        return float(value)


def _plain(text: str) -> str:
    """With single spaces: that is what a browser makes of others, and sends back."""
    return " ".join(text.split())
