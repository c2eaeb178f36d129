"""First names for audits: bundled lists, the user's own, and a draw that is balanced and matched across groups.

The bundled lists are the first names of the 2020 Census (`data/names/README.md`) and the names of published studies.
"""

from __future__ import annotations

import csv
import re
import tomllib
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.datasets.catalogue import load_catalogue
from biassay.datasets.data_rows import FILE_SUFFIXES, DataRow, read_rows
from biassay.datasets.fields import DATA, collect_problems, raise_problems
from biassay.errors import StimulusError, UnknownNameError, UsageError, find_nearest_names, format_examples

_DATA = DATA / "names"
CENSUS = "census2020"
NAME_LISTS = (CENSUS, "bertrand2004", "weat3", "weat4", "weat6", "weat10")
"""Bundled lists."""

_CENSUS_CITATION = "U.S. Census Bureau, names from the 2020 Census"
_CENSUS_DRAW = 20
_CALIPER = 0.2
_HINT = "expected columns name and group, and optionally count, unit, surname and sex"
_BALANCED = ("race", "sex")
_OTHER_COLUMNS = ("name", "count", "unit", "cluster", "surname")
_SEXES = {
    **dict.fromkeys(("female", "females", "woman", "women", "girl", "girls", "f"), "female"),
    **dict.fromkeys(("male", "males", "man", "men", "boy", "boys", "m"), "male"),
}
_SPELLINGS = (
    (r"(?<!^)gh", "h"),
    (r"ph|v", "f"),
    (r"x", "ks"),
    (r"sh", "x"),
    (r"ch|ck|q|c(?![eiy])", "k"),
    (r"c|z", "s"),
    (r"g(?=e)|(?:^|(?<=[aeo]))y(?=[aeou])", "j"),
    (r"(?<!^)h", ""),
    (r"([aeiouy])[aeiouy]*", r"\1"),
    (r"[iy]", "e"),
    (r"(.)\1+", r"\1"),
    (r"(?<=..)[aeou]$", ""),
)

Floats = NDArray[np.float64]
TokenCounter = Callable[[str], int]


@dataclass(frozen=True)
class ListedName:
    """A name of a list.

    Attributes
    ----------
    name : str
        First name.
    values : mapping
        Categories by column, such as ``{"race": "black", "sex": "female"}`` or ``{"group": "old"}``.
    location : str
        File and line, for error messages.
    count : int or None
        Number of people with the name.
    unit : str
        Names with one unit count as one observation; empty if not stated.
    surname : str
        Surname to use with the name; empty if not stated.
    """

    name: str
    values: Mapping[str, str]
    location: str
    count: int | None = None
    unit: str = ""
    surname: str = ""


@dataclass(frozen=True)
class NameList:
    """A list of names.

    Attributes
    ----------
    name : str
        Name of a bundled list, or the file.
    names : tuple of ListedName
        All names; each appears once.
    columns : tuple of str
        Columns that can define groups.
    citation : str
        Source of a bundled list.
    default_n : int or None
        Names per group that `select_names` draws by default; None for all.
    """

    name: str
    names: tuple[ListedName, ...]
    columns: tuple[str, ...]
    citation: str = ""
    default_n: int | None = None

    @property
    def default_by(self) -> tuple[str, ...]:
        """Columns that define the groups by default: group, else race and sex, else the only one."""
        if "group" in self.columns:
            return ("group",)
        known = tuple(column for column in _BALANCED if column in self.columns)
        return known or (self.columns if len(self.columns) == 1 else ())


@dataclass(frozen=True)
class AuditName:
    """A name of an audit.

    Attributes
    ----------
    name, surname : str
        First name, and surname or an empty text.
    group : str
        Values of the columns that define the groups, such as "api male".
    sex : {"female", "male"} or None
        Sex that decides the pronouns; None for neutral pronouns.
    unit : str
        Names with one unit count as one observation.
    count, tokens : int or None
        Number of people with the name and number of tokens, if known.
    """

    name: str
    group: str
    sex: str | None
    unit: str
    surname: str = ""
    count: int | None = None
    tokens: int | None = None

    @property
    def full_name(self) -> str:
        """First name and surname."""
        return f"{self.name} {self.surname}".rstrip()


@dataclass(frozen=True)
class GroupBalance:
    """Similarity of the names of a group to those of the others.

    Attributes
    ----------
    group : str
        The group.
    n_names, n_units : int
        Numbers of names and of units.
    mean_log_count, mean_tokens : float or None
        Means over names; None if not known for all names.
    log_count_difference, tokens_difference : float or None
        Standardized differences: the mean minus the mean of the means of the other groups, divided by the standard
        deviation within groups.
    """

    group: str
    n_names: int
    n_units: int
    mean_log_count: float | None = None
    log_count_difference: float | None = None
    mean_tokens: float | None = None
    tokens_difference: float | None = None


@dataclass(frozen=True)
class NameSelection:
    """Names of an audit, sorted by group.

    Attributes
    ----------
    names : tuple of AuditName
        Selected names.
    matched : tuple of str
        Properties for which names are matched: "frequency", "tokens", both or none.
    balance : tuple of GroupBalance
        One entry per group.
    unknown : tuple of str
        Out-of-vocabulary names of the list, which were left out.
    """

    names: tuple[AuditName, ...]
    matched: tuple[str, ...]
    balance: tuple[GroupBalance, ...]
    unknown: tuple[str, ...] = ()

    @property
    def groups(self) -> tuple[str, ...]:
        """All groups, sorted."""
        return tuple(entry.group for entry in self.balance)


def load_names(source: str | Path = CENSUS) -> NameList:
    """Load a list of names.

    Parameters
    ----------
    source : str or Path
        A bundled list (one of `NAME_LISTS`), or a CSV, TSV or JSON file with columns ``name`` and ``group``, and
        optionally ``count`` (people with the name), ``unit`` or ``cluster`` (names that count as one observation),
        ``surname``, and others that can define groups.

    Returns
    -------
    NameList
    """
    text = str(source)
    if text == CENSUS:
        return _load_census()
    if text in NAME_LISTS:
        return _load_published(text)
    if not isinstance(source, Path) and not text.lower().removesuffix(".gz").endswith(FILE_SUFFIXES):
        raise UnknownNameError(
            "list of names", text, NAME_LISTS, f"(bundled: {', '.join(NAME_LISTS)}; or a file NAMES.csv)"
        )
    return _read_names(Path(source).expanduser())


def _make_list(name: str, names: Sequence[ListedName], columns: Sequence[str], **about: Any) -> NameList:
    """Check that every name appears once, ignoring case as some models do: it would be compared with itself."""
    first: dict[str, ListedName] = {}
    problems = []
    for listed in names:
        other = first.setdefault(listed.name.casefold(), listed)
        if not listed.name.strip():
            problems.append(f"{listed.location}: the name is empty; write a name or remove the line")
        elif other is not listed and other.values == listed.values:
            problems.append(f"{listed.location}: the name {listed.name!r} is also in {other.location}; remove one")
        elif other is not listed:
            groups = " and in ".join(repr(" ".join(each.values.values())) for each in (other, listed))
            problems.append(
                f"{listed.location}: the name {listed.name!r} is in {groups} ({other.location}); keep one of the two"
            )
    raise_problems(problems)
    if not names:
        raise StimulusError(f"{name}: no name in it; {_HINT}")
    return NameList(name, tuple(names), tuple(columns), **about)


@cache
def _load_census() -> NameList:
    names = [
        ListedName(row["name"], {c: row[c] for c in _BALANCED}, f"{CENSUS}: {row['name']}", int(row["count"]))
        for row in csv.DictReader((_DATA / f"{CENSUS}.csv").read_text("utf-8").splitlines())
    ]
    return NameList(CENSUS, tuple(names), _BALANCED, _CENSUS_CITATION, _CENSUS_DRAW)


@cache
def load_surnames() -> tuple[str, ...]:
    """Return frequent surnames of the 2020 Census whose bearers differ least from the population by race."""
    rows = csv.DictReader((_DATA / "surnames2020.csv").read_text("utf-8").splitlines())
    return tuple(row["name"] for row in rows)


@cache
def _load_published(name: str) -> NameList:
    entry = tomllib.loads((_DATA / "published.toml").read_text("utf-8"))[name]
    concepts = load_catalogue().concepts
    names = []
    for group in entry["groups"]:
        words = group.pop("names")
        words = concepts[words].words if isinstance(words, str) else words
        names += [ListedName(word, group, f"{name}: {word}") for word in words]
    citation = entry.get("citation", "Caliskan, Bryson and Narayanan 2017")
    return _make_list(name, names, tuple(entry["groups"][0]), citation=citation)


def _read_names(path: Path) -> NameList:
    names, problems, columns = list[ListedName](), list[str](), dict[str, None]()
    for row in read_rows(path, _HINT):
        row.require_columns("name")
        columns.update(dict.fromkeys(column for column in row.values if column not in _OTHER_COLUMNS))
        with collect_problems(problems):
            names.append(_parse_name(row))
    raise_problems(problems)
    return _make_list(str(path), names, tuple(columns))


def _parse_name(row: DataRow) -> ListedName:
    texts = {column: str(value).strip() for column, value in row.values.items() if value not in (None, "")}
    count = row.whole_number("count") if "count" in texts else None
    if count == 0:
        row.fail("count", "expected the number of people with the name, got 0")
    return ListedName(
        row.text("name").strip(),
        {column: text for column, text in texts.items() if column not in _OTHER_COLUMNS},
        f"{row.path}: {row.location}",
        count,
        texts.get("unit", texts.get("cluster", "")),
        texts.get("surname", ""),
    )


@cache
def spelling_key(name: str) -> str:
    """Return a key that spellings of one name share: Ann, Anna and Anne; Kristin and Kristyn; Eric and Erik.

    The rules, in this order: no accents; ph and v as f; x as ks; ch, ck, q and a hard c as k; a soft c and z as s; g
    before e, and y before a vowel at the start or between vowels, as j; no h after the first letter, but sh stays; of
    adjacent vowels the first; i and y as e; no double letters; no vowel at the end of a key of three letters or more.
    They miss pairs such as Debra and Deborah. A column ``unit`` in the user's own list overrides them.
    """
    plain = unicodedata.normalize("NFKD", name.casefold())
    key = re.sub(r"[^a-z]", "", plain)
    for pattern, replacement in _SPELLINGS:
        key = re.sub(pattern, replacement, key)
    return key or plain


def select_names(
    names: NameList,
    by: Sequence[str] = (),
    n: int | None = None,
    *,
    match: Sequence[str] | None = None,
    seed: int = 0,
    count_tokens: TokenCounter | None = None,
    known: Callable[[str], bool] | None = None,
    surnames: Sequence[str] = (),
) -> NameSelection:
    """Select the names of an audit: all of a list, or a draw that is balanced and matched across groups.

    Parameters
    ----------
    names : NameList
        List to select from.
    by : sequence of str
        Columns that define the groups. By default `NameList.default_by`.
    n : int, optional
        Names to draw per group. By default 20 from the Census, and all names of other lists.
    match : sequence of {"frequency", "tokens"}, optional
        Properties to match names for. By default frequency if the list has counts, and tokens with `count_tokens`.
    seed : int
        Random seed.
    count_tokens : callable, optional
        Function from a name to its number of tokens.
    known : callable, optional
        Function from a name to whether the model knows it. Others are left out.
    surnames : sequence of str
        Surnames for names without their own. Every group gets the same ones.

    Returns
    -------
    NameSelection

    Notes
    -----
    At most one spelling of a name is drawn, the most frequent one. A draw by one of race and sex has equal numbers of
    names for each value of the other if all groups have these values.

    The group with the fewest names is the reference. Its names come up one after the other, at random, with
    probabilities proportional to the number of people with the name if the draw is matched for frequency. Each gets the
    nearest name that is left in every other group. A name is skipped if that neighbour has another number of tokens, or
    a log count that differs by more than .2 standard deviations (the caliper of Austin 2011, Pharmaceutical Statistics
    10(2)). If this yields fewer than `n` names, skipped ones are added, the best matched first. The draw depends on the
    seed and the content of the list, not on its order.
    """
    by = _check_columns(names, by or names.default_by)
    left_out = {entry.name for entry in names.names if known is not None and not known(entry.name)}
    groups: dict[str, list[ListedName]] = {}
    for entry in sorted(names.names, key=lambda entry: (-(entry.count or 0), entry.name)):
        known_names = groups.setdefault(" ".join(_get_category(entry, column) for column in by), [])
        known_names += [entry] if entry.name not in left_out else []
    candidates = {label: _make_audit_names(label, groups[label], count_tokens) for label in sorted(groups)}
    _check_groups(names, groups, candidates, left_out)
    counted = all(name.count is not None for members in candidates.values() for name in members)
    n = names.default_n if n is None else n
    matched = _check_match(names, match, n, counted, count_tokens is not None)
    if n is None:
        selected = {label: sorted(members, key=lambda name: name.name) for label, members in candidates.items()}
    else:
        columns = _find_balanced(names, groups, by)
        cells = {entry.name: _get_cell(entry, columns) for entry in names.names}
        selected = _draw(candidates, cells, n, matched, np.random.default_rng(seed))
    if surnames:
        shuffled = np.random.default_rng([seed, 1]).permutation(sorted(surnames)).tolist()
        for label, members in selected.items():
            selected[label] = [
                replace(name, surname=name.surname or shuffled[i % len(shuffled)]) for i, name in enumerate(members)
            ]
    chosen = tuple(name for members in selected.values() for name in members)
    return NameSelection(chosen, matched, _measure_balance(selected), tuple(sorted(left_out)))


def _check_columns(names: NameList, by: Sequence[str]) -> tuple[str, ...]:
    found = ", ".join(names.columns) or "no other column"
    if not by:
        similar = find_nearest_names("group", names.columns)
        hint = f"rename {similar[0]!r}" if similar else "add it"
        raise StimulusError(f"{names.name}: no column 'group'; found {found}; {hint}, or choose columns with --by")
    for column in by:
        if column not in names.columns:
            raise UnknownNameError("column", column, names.columns, f"(in {names.name}: {found})")
    return tuple(dict.fromkeys(by))


def _get_category(entry: ListedName, column: str) -> str:
    if column not in entry.values:
        raise StimulusError(
            f"{entry.location}: the name {entry.name!r} has no {column}; fill in the column or remove the line"
        )
    return entry.values[column]


def _make_audit_names(group: str, entries: Sequence[ListedName], count_tokens: TokenCounter | None) -> list[AuditName]:
    """Make the names of a group. Spellings of one name with one sex share a unit, named after the first of them."""
    units: dict[tuple[str, str | None], str] = {}
    names = []
    for entry in entries:
        sex = _find_sex(entry, group)
        unit = entry.unit or units.setdefault((spelling_key(entry.name), sex), entry.name)
        tokens = None if count_tokens is None else count_tokens(entry.name)
        names.append(AuditName(entry.name, group, sex, unit, entry.surname, entry.count, tokens))
    return names


def _find_sex(entry: ListedName, group: str) -> str | None:
    """Return the sex from the column sex or gender, or from a word of the group, such as "old women"."""
    stated = entry.values.get("sex", entry.values.get("gender", group))
    sexes = {_SEXES[word] for word in re.findall(r"[a-z]+", stated.casefold()) if word in _SEXES}
    return sexes.pop() if len(sexes) == 1 else None


def _check_groups(
    names: NameList,
    groups: Mapping[str, Sequence[ListedName]],
    candidates: Mapping[str, Sequence[AuditName]],
    left_out: Iterable[str],
) -> None:
    if len(groups) < 2:
        raise StimulusError(
            f"{names.name}: all names are in the group {next(iter(groups))!r}; an audit needs two groups"
        )
    problems = []
    for label, members in candidates.items():
        if len({name.unit for name in members}) > 1:
            continue
        if not members:
            problem = f"{names.name}: the model knows no name of the group {label!r}; add names or use another model"
        elif len(members) == 1:
            similar = find_nearest_names(label, groups.keys() - {label})
            hint = f"did you mean {similar[0]!r}?" if similar else "add names"
            problem = f"{groups[label][0].location}: the group {label!r} has only one name, {members[0].name!r}; {hint}"
        else:
            listed = format_examples([name.name for name in members])
            problem = f"{groups[label][0].location}: all names of the group {label!r} are one unit: {listed}; add names"
        problems.append(problem + (f" (unknown to the model: {format_examples(sorted(left_out))})" if left_out else ""))
    raise_problems(problems)


def _check_match(
    names: NameList, match: Sequence[str] | None, n: int | None, counted: bool, has_tokens: bool
) -> tuple[str, ...]:
    known = {"frequency": counted, "tokens": has_tokens}
    if n is not None and n < 2:
        raise UsageError(f"an audit needs at least 2 names per group, got {n}")
    if match is None:
        return () if n is None else tuple(kind for kind, available in known.items() if available)
    for kind in match:
        if kind not in known:
            raise UnknownNameError("property to match names for", kind, known, "(frequency or tokens)")
    if match and n is None:
        raise UsageError(
            "names are matched when they are drawn, and all names are used; set their number with --n-names"
        )
    if "frequency" in match and not counted:
        raise UsageError(
            f"{names.name}: names cannot be matched for frequency, because some have no count; add a column count"
        )
    if "tokens" in match and not has_tokens:
        raise UsageError(
            "names cannot be matched for tokens, because the model has no tokenizer; use --match frequency"
        )
    return tuple(kind for kind in known if kind in match)


def _find_balanced(names: NameList, groups: Mapping[str, Sequence[ListedName]], by: Sequence[str]) -> tuple[str, ...]:
    """Return the columns race and sex, without those that define the groups, if all groups have the same values."""
    columns = tuple(column for column in _BALANCED if column in names.columns and column not in by)
    values = {frozenset(_get_cell(entry, columns) for entry in entries) for entries in groups.values()}
    return columns if len(values) == 1 else ()


def _get_cell(entry: ListedName, columns: Sequence[str]) -> tuple[str, ...]:
    return tuple(entry.values.get(column, "") for column in columns)


def _draw(
    candidates: Mapping[str, Sequence[AuditName]],
    cells: Mapping[str, tuple[str, ...]],
    n: int,
    matched: Sequence[str],
    rng: np.random.Generator,
) -> dict[str, list[AuditName]]:
    """Draw `n` names per group, equally from every cell. The i-th names of all groups are matched."""
    all_names = [name for members in candidates.values() for name in members]
    caliper = _CALIPER * float(np.std(_get_log_counts(all_names))) if "frequency" in matched else 1.0
    drawn: dict[str, list[AuditName]] = {label: [] for label in candidates}
    ordered = sorted({cells[name.name] for name in all_names})
    for i, cell in enumerate(ordered):
        size = n // len(ordered) + (i < n % len(ordered))
        pools = {}
        for label, members in candidates.items():
            units = {name.unit: name for name in reversed(members) if cells[name.name] == cell}
            if len(units) < size:
                most = len(units) * len(ordered)
                kind = " ".join([*cell, "names"])
                raise UsageError(
                    f"cannot draw {n} names per group: the group {label!r} has {len(units)} {kind}, not counting other "
                    f"spellings, and {size} are needed; use --n-names {most} or less"
                )
            pool = list(units.values())
            pools[label] = [pool[j] for j in rng.permutation(len(pool))]
        features = {label: _get_features(pool, matched, caliper or 1.0) for label, pool in pools.items()}
        reference = min(pools, key=lambda label: (len(pools[label]), label))
        weights = [float(name.count or 1) if "frequency" in matched else 1.0 for name in pools[reference]]
        order = rng.choice(len(weights), len(weights), replace=False, p=np.array(weights) / sum(weights))
        for label, indices in _match(features, reference, order, size).items():
            drawn[label] += [pools[label][j] for j in indices]
    return drawn


def _get_features(names: Sequence[AuditName], matched: Sequence[str], caliper: float) -> Floats:
    """Return one row per name. Names that differ by at most 1 in every column are matched.

    Tokens have a weight that no difference in frequency outweighs.
    """
    rows = np.zeros((len(names), 2))
    if "frequency" in matched:
        rows[:, 0] = _get_log_counts(names) / caliper
    if "tokens" in matched:
        rows[:, 1] = [1000.0 * (name.tokens or 0) for name in names]
    return rows


def _match(features: Mapping[str, Floats], reference: str, order: NDArray[np.intp], size: int) -> dict[str, list[int]]:
    """Return the indices of `size` names per group, one nearest neighbour after the other."""
    chosen: dict[str, list[int]] = {label: [] for label in features}

    def find_nearest(j: int) -> dict[str, tuple[float, int]]:
        """Return distance and index of the nearest name that is left, by group."""
        nearest = {}
        for label, rows in features.items():
            distances = np.abs(rows - features[reference][j]).max(axis=1)
            distances[chosen[label]] = np.inf
            nearest[label] = (float(distances.min()), int(distances.argmin()))
        return nearest

    farthest = np.array([max(find_nearest(j).values())[0] for j in range(len(order))])
    for limit, indices in ((1.0, order), (np.inf, np.argsort(farthest, kind="stable"))):
        for j in indices:
            if len(chosen[reference]) < size and j not in chosen[reference]:
                nearest = find_nearest(j)
                if max(nearest.values())[0] <= limit:
                    for label, (_, index) in nearest.items():
                        chosen[label].append(index)
    return chosen


def _get_log_counts(names: Sequence[AuditName]) -> Floats:
    return np.log([name.count or np.nan for name in names])


def _measure_balance(groups: Mapping[str, Sequence[AuditName]]) -> tuple[GroupBalance, ...]:
    counts = _compare_means([_get_log_counts(members) for members in groups.values()])
    tokens = _compare_means(
        [np.array([float("nan" if m.tokens is None else m.tokens) for m in members]) for members in groups.values()]
    )
    return tuple(
        GroupBalance(label, len(members), len({name.unit for name in members}), *count, *token)
        for (label, members), count, token in zip(groups.items(), counts, tokens, strict=True)
    )


def _compare_means(values: Sequence[Floats]) -> list[tuple[float | None, float | None]]:
    """Return each group's mean, and its standardized difference from the mean of the means of the other groups."""
    if np.isnan(np.concatenate(values)).any():
        return [(None, None)] * len(values)
    means = np.array([group.mean() for group in values])
    spread = float(np.sqrt(np.mean([group.var(ddof=1) for group in values])))
    differences = (means - means.mean()) * len(values) / (len(values) - 1)
    return [
        (float(mean), float(difference / spread) if spread else 0.0 if not difference else None)
        for mean, difference in zip(means, differences, strict=True)
    ]
