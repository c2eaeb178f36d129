"""Study files and translated texts of a survey."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

from biassay.datasets.fields import FieldReader, describe_type, parse_toml
from biassay.datasets.trait_pairs import TraitPairIndex
from biassay.errors import StimulusError, UnknownNameError, UsageError
from biassay.io import read_text

_SLOT = re.compile(r"\{(\w+)\}")
_BUNDLED = ("english", "responses")  # texts about groups, and about responses of a model


@dataclass(frozen=True)
class SurveyTexts:
    """Texts of the pages that participants read, by section and name."""

    language: str
    direction: str
    sections: Mapping[str, Mapping[str, str]]

    def __getitem__(self, section: str) -> Mapping[str, str]:
        return self.sections[section]

    def format_text(self, section: str, name: str, **values: Any) -> str:
        """Return a text with the values in its slots. Slots inside values stay as they are.

        Parameters
        ----------
        section, name : str
            Section of the texts and name of the text.
        **values
            Value per slot.
        """
        return _SLOT.sub(lambda slot: str(values.get(slot[1], slot[0])), self.sections[section][name])

    def paragraphs(self, section: str, name: str, **values: Any) -> list[str]:
        """Return the paragraphs of a text, with the values in its slots.

        Parameters
        ----------
        section, name, **values
            See `format_text`.
        """
        text = self.format_text(section, name, **values)
        return [" ".join(part.split()) for part in re.split(r"\n\s*\n", text.strip()) if part.strip()]


def read_texts(name: str, beside: Path | None = None, like: str = _BUNDLED[0]) -> SurveyTexts:
    """Read bundled texts, or a file next to the study that has the same texts.

    Parameters
    ----------
    name : str
        Name of bundled texts, or of a file.
    beside : Path, optional
        Folder of the study.
    like : str
        Bundled texts that the file translates.
    """
    shipped = tomllib.loads(read_bundled_study(name if name in _BUNDLED else like))
    if name in _BUNDLED:
        return _make_texts(shipped)
    path = (beside or Path()) / name
    own = parse_toml(path, read_text(path))
    _check_texts(path, own, shipped)
    return _make_texts(own)


def _check_texts(path: Path, own: Mapping[str, Any], shipped: Mapping[str, Any]) -> None:
    """Raise if a text or a slot is missing or unknown."""
    given, expected = dict(_list_texts(own)), dict(_list_texts(shipped))
    for name, text in expected.items():
        found = given.pop(name, None)
        if not isinstance(found, str) or not found.strip():
            raise StimulusError(f"{path}: {name} is missing or empty; expected a text")
        slots, given_slots = set(_SLOT.findall(text)), set(_SLOT.findall(found))
        for slot in sorted(given_slots ^ slots):
            problem = f"{{{slot}}} is missing" if slot in slots else f"unknown slot {{{slot}}}"
            raise StimulusError(f"{path}: {name}: {problem}")
    if given:
        raise StimulusError(f"{path}: {next(iter(given))}: unknown text")
    if own["direction"] not in ("ltr", "rtl"):
        raise StimulusError(f"{path}: direction must be 'ltr' or 'rtl', got {own['direction']!r}")


def _list_texts(content: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the name and value of every text. Texts in a table are named ``[section] name``."""
    for name, value in content.items():
        if isinstance(value, dict):
            yield from ((f"[{name}] {key}", text) for key, text in value.items())
        else:
            yield name, value


def _make_texts(content: Mapping[str, Any]) -> SurveyTexts:
    sections = {name: dict(texts) for name, texts in content.items() if isinstance(texts, dict)}
    return SurveyTexts(content["language"], content["direction"], sections)


SIGNATURE = "signature"  # query parameter of a link


def _value(default: Any, *limits: float) -> Any:
    """Declare a value of a study file: its default and, if it is a number, its limits."""
    return dataclasses.field(default=default, metadata={"limits": limits})


@dataclass(frozen=True)
class DemographicField:
    """Question about the participant: one or several choices, or a text of at most `most` characters."""

    name: str
    choices: tuple[str, ...]
    several: bool = _value(False)
    most: int = _value(60, 1, 500)


@dataclass(frozen=True)
class QualityRules:
    """Rules that decide whether the annotations of a participant are valid."""

    which_group: bool = _value(True)
    high_low: bool = _value(True)
    self_agreement: float = _value(0.8, 0, 1)
    tolerance: int = _value(10, 0, 100)
    seconds_per_group: float = _value(8.0, 0, 3600)
    spread: int = _value(1, 0, 100)


@dataclass(frozen=True)
class ParticipantPool:
    """Recruitment pool: how participants arrive and where they return to; empty strings if there is none.

    If `required`, only people with a number of the pool take part. If `signed`, the number must come in a signed link.
    """

    parameter: str = _value("")
    completion_url: str = _value("")
    completion_code: str = _value("")
    required: bool = _value(False)
    signed: bool = _value(False)


@dataclass(frozen=True)
class SurveyStudy:
    """Definition of a study. The consent page shows `researcher`, `contact` and `approval`.

    If people rate responses of a model, `responses` has their texts and `groups` their identifiers.
    """

    name: str
    society: str
    groups: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    groups_per_participant: int
    rules: QualityRules
    pool: ParticipantPool
    demographics: tuple[DemographicField, ...]
    texts: SurveyTexts
    responses: Mapping[str, str]
    researcher: str = _value("")
    contact: str = _value("")
    approval: str = _value("")
    minimum_age: int = _value(18, 0, 120)
    minutes: int = _value(10, 1, 600)
    annotations: int = 20
    session_minutes: float = 60.0
    link_demographics: bool = False

    @property
    def definition(self) -> str:
        """Study as JSON, which is stored with the data."""
        return json.dumps(dataclasses.asdict(self), ensure_ascii=False, sort_keys=True)

    @cached_property
    def digest(self) -> str:
        """Digest of everything that responses depend on. The pool may change while a study runs."""
        content = {name: value for name, value in dataclasses.asdict(self).items() if name != "pool"}
        del content["texts"]["sections"]["crowded"]  # participants do not read it
        text = json.dumps(content, ensure_ascii=False, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def pair_names(self) -> tuple[str, ...]:
        """Names of the pairs, as in the released judgements."""
        return tuple(f"{left} - {right}" for left, right in self.pairs)


def list_bundled_studies() -> list[str]:
    """List the names of the bundled studies."""
    files = (entry.name for entry in (resources.files("biassay.survey") / "data").iterdir())
    return sorted({name.removesuffix(".toml") for name in files if name.endswith(".toml")} - set(_BUNDLED))


def read_bundled_study(name: str) -> str:
    """Return the file of a bundled study, or of bundled texts."""
    return (resources.files("biassay.survey") / "data" / f"{name}.toml").read_text("utf-8")


def read_study(name: str | Path) -> SurveyStudy:
    """Read a study file or a bundled study; errors name the file, the line and the field."""
    if str(name) in list_bundled_studies():
        return _StudyReader(Path(f"{name}.toml"), read_bundled_study(str(name))).study()
    path = Path(name)
    if not path.exists() and path.suffix != ".toml":
        raise UnknownNameError("study", str(name), list_bundled_studies(), "(or the path of a .toml file)")
    return _StudyReader(path, read_text(path)).study()


_TABLES = {
    "target": {"annotations", "groups_per_participant"},
    "session": {"minutes"},
    "privacy": {"link_demographics"},
    "quality": {field.name for field in dataclasses.fields(QualityRules)},
    "pool": {field.name for field in dataclasses.fields(ParticipantPool)},
}
_TOP_LEVEL_KEYS = {
    *("name", "researcher", "contact", "approval", "society", "texts", "minimum_age", "minutes", "groups", "pairs"),
    *("demographics", "responses", *_TABLES),
}


class _StudyReader(FieldReader):
    """Read a study from TOML and check every value."""

    def __init__(self, path: Path, text: str) -> None:
        super().__init__(path, text)
        self.content = parse_toml(path, text)

    def study(self) -> SurveyStudy:
        """Return the study."""
        top = self.table(self.content, "", _TOP_LEVEL_KEYS)
        target, session, privacy, quality, pool = (
            self.table(top.get(name, {}), name, keys) for name, keys in _TABLES.items()
        )
        responses = dict(self.texts_by_name(top.get("responses", {}), "responses"))
        if responses and "groups" in top:
            self.fail("groups", "a study has groups or responses, not both; leave out one of them")
        groups = tuple(responses) or self.distinct_words(top.get("groups"), "groups")
        if "demographics" in groups:
            self.fail("groups", "'demographics' cannot be a group: exports use this name for facts about people")
        number = self.whole(target.get("groups_per_participant", 4), "target.groups_per_participant", 1, len(groups))
        rules = QualityRules(**self.values(QualityRules, quality, "quality."))
        if rules.high_low and number < 2:
            self.fail(
                "quality.high_low", "this question follows the second group, but participants rate one group only"
            )
        demographics = self.table(top.get("demographics", {}), "demographics")
        bundled = _BUNDLED[bool(responses)]
        return SurveyStudy(
            name=self.string(top.get("name"), "name"),
            society=self.string(top.get("society"), "society"),
            groups=groups,
            pairs=self.pairs(top.get("pairs")),
            annotations=self.whole(target.get("annotations", 20), "target.annotations", 1, 1_000_000),
            groups_per_participant=number,
            rules=rules,
            session_minutes=self.real(session.get("minutes", 60), "session.minutes", 0.01, 100_000.0),
            link_demographics=self.flag(privacy.get("link_demographics", False), "privacy.link_demographics"),
            pool=self.pool(pool),
            demographics=tuple(self.field(name, given) for name, given in demographics.items()),
            texts=read_texts(self.string(top.get("texts", bundled), "texts"), self.path.parent, bundled),
            responses=responses,
            **self.values(SurveyStudy, top),
        )

    def values(self, kind: type, given: Mapping[str, Any], table: str = "") -> dict[str, Any]:
        """Read the values that a dataclass declares; those that are missing keep their defaults.

        Parameters
        ----------
        kind : type
            The dataclass.
        given : mapping
            Table of the file.
        table : str
            Name of the table with a dot, for messages.
        """
        read: dict[type, Callable[..., Any]] = {bool: self.flag, str: self.text, int: self.whole, float: self.real}
        return {
            field.name: read[type(field.default)](given[field.name], table + field.name, *field.metadata["limits"])
            for field in dataclasses.fields(kind)
            if field.metadata and field.name in given
        }

    def pool(self, given: Mapping[str, Any]) -> ParticipantPool:
        """Return the recruitment pool."""
        pool = ParticipantPool(**self.values(ParticipantPool, given, "pool."))
        for name in ("required", "signed"):
            if getattr(pool, name) and not pool.parameter:
                self.fail(f"pool.{name}", f"a number is {name}, but pool.parameter is missing")
        if pool.signed and pool.parameter == SIGNATURE:
            self.fail("pool.parameter", f"{SIGNATURE!r} holds the signature of a link; choose another name")
        url = pool.completion_url
        if url and not url.startswith(("https://", "http://")):
            self.fail("pool.completion_url", f"expected a URL that starts with https://, got {url!r}")
        unknown = set(re.findall(r"\{(\w*)\}", url)) - {"code"}
        if unknown:
            self.fail("pool.completion_url", f"unknown slot {{{sorted(unknown)[0]}}}; only {{code}} is filled in")
        # Otherwise a link without a number needs no signature.
        return dataclasses.replace(pool, required=pool.required or pool.signed)

    def field(self, name: str, value: Any) -> DemographicField:
        """Return one question about the participant."""
        where = f"demographics.{name}"
        given = self.table(value, where, {"choices", "several", "most"})
        choices = self.distinct_words(given["choices"], f"{where}.choices") if "choices" in given else ()
        field = DemographicField(name, choices, **self.values(DemographicField, given, f"{where}."))
        if field.several and not choices:
            self.fail(f"{where}.several", "several answers need choices")
        for choice in choices if field.several else ():
            if "," in choice:
                self.fail(
                    f"{where}.choices", f"{choice!r}: commas separate several answers, so a choice cannot contain one"
                )
        return field

    def pairs(self, value: Any) -> tuple[tuple[str, str], ...]:
        """Return the pairs of opposite traits."""
        if not isinstance(value, list) or not value:
            self.fail("pairs", f"expected a list of pairs [left, right], got {describe_type(value)}")
        found = []
        for i, given in enumerate(value):
            if not isinstance(given, list) or len(given) != 2:
                self.fail(f"pairs[{i}]", f"expected two opposite traits [left, right], got {describe_type(given)}")
            found.append(tuple(_collapse_spaces(self.string(trait, f"pairs[{i}]")) for trait in given))
        traits = [trait for pair in found for trait in pair]
        folded = [" ".join(trait.casefold().split()) for trait in traits]
        twice = next((trait for i, trait in enumerate(traits) if folded[i] in folded[:i]), None)
        if twice is not None:
            self.fail("pairs", f"the trait {twice!r} appears twice")
        names = TraitPairIndex(None, {})
        for i, (left, right) in enumerate(found):
            try:
                names.find(f"{left} - {right}")
            except UsageError as error:
                self.fail(f"pairs[{i}]", f"exports with the pair '{left} - {right}' could not be read: {error}")
            if names.pairs[i] != (left, right):
                self.fail(
                    f"pairs[{i}]", f"exports with the pair '{left} - {right}' could not be read: dash at its edge"
                )
        return tuple((pair[0], pair[1]) for pair in found)

    def distinct_words(self, value: Any, where: str) -> tuple[str, ...]:
        """Return names, each of which may appear once."""
        names: Sequence[str] = [_collapse_spaces(name) for name in self.strings(value, where)]
        twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
        if twice is not None:
            self.fail(where, f"{twice!r} appears twice")
        return tuple(names)

    def text(self, value: Any, where: str) -> str:
        """Return a string, which may be empty."""
        if not isinstance(value, str):
            self.fail(where, f"expected a text, got {describe_type(value)}")
        return value.strip()

    def whole(self, value: Any, where: str, least: int, most: int) -> int:
        """Return a whole number within limits."""
        if not isinstance(value, int):
            self.fail(where, f"expected a whole number from {least} to {most}, got {describe_type(value)}")
        return int(self.real(value, where, least, most, "whole number"))

    def real(self, value: Any, where: str, least: float, most: float, kind: str = "number") -> float:
        """Return a number within limits."""
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            self.fail(where, f"expected a {kind} from {least:.7g} to {most:.7g}, got {describe_type(value)}")
        return float(value)


def _collapse_spaces(text: str) -> str:
    """Replace runs of whitespace by one space, as browsers do when they send a form."""
    return " ".join(text.split())


_RESPONSE_STUDY = """\
# People rate texts that a model wrote; names are masked. The identifiers below connect the ratings with the run: do not
# change them. Once somebody has taken part, only [pool] may change.

name = "responses"
researcher = ""            # who runs the study; shown on the consent page, like the next two
contact = ""               # address for questions of participants
approval = ""              # approval of the review board, with its number
society = "readers"
texts = "responses"
minimum_age = 18
minutes = {minutes}

# Left is 0, right is 100.
pairs = {pairs}

[target]
annotations = 1            # valid annotations per text
groups_per_participant = {each}  # texts per person; one of them is shown twice

[quality]
which_group = false
high_low = false
self_agreement = 0.5       # share of pairs on which the repeated page agrees with the first
tolerance = 20
seconds_per_group = 4        # a page that takes less time excludes the participant
spread = 0

[responses]
"""
_MAX_TEXTS_PER_PARTICIPANT = 10
_MINUTES_PER_TEXT = 1


def format_response_study(responses: Mapping[str, str], pairs: Sequence[tuple[str, str]]) -> str:
    """Return a study file.

    Parameters
    ----------
    responses : mapping of str to str
        Texts with masked names, by identifier.
    pairs : sequence of (low, high)
        Ends of the scales.
    """
    each = min(_MAX_TEXTS_PER_PARTICIPANT, len(responses))
    listed = json.dumps([list(pair) for pair in pairs], ensure_ascii=False)
    head = _RESPONSE_STUDY.format(minutes=_MINUTES_PER_TEXT * (each + 1), pairs=listed, each=each)
    return head + "".join(f"{id} = {_quote(text)}\n" for id, text in responses.items())


def _quote(text: str) -> str:
    """Return a TOML string; unlike JSON, TOML forbids a bare DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
