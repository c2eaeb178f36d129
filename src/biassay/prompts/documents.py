"""Documents with a placeholder for a name, and the queries that they are compared with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from biassay.datasets.data_rows import FILE_SUFFIXES, read_rows
from biassay.datasets.fields import raise_problems
from biassay.datasets.names import AuditName
from biassay.errors import StimulusError, UsageError, find_nearest_names
from biassay.io import read_text

PronounRule = Literal["group", "neutral"]

_NAME_PLACES = ("name", "first", "last")
_FORMS = {
    "they": {"female": "she", "male": "he", None: "they"},
    "them": {"female": "her", "male": "him", None: "them"},
    "their": {"female": "her", "male": "his", None: "their"},
    "theirs": {"female": "hers", "male": "his", None: "theirs"},
    "themself": {"female": "herself", "male": "himself", None: "themself"},
}
_VERBS = {"is": "are", "was": "were", "has": "have"}
PLACES = (*_NAME_PLACES, *_FORMS, *_VERBS, "noise")
"""Places in a document, written in braces."""

_MEANT = {
    **dict.fromkeys(("he", "she"), "they"),
    "him": "them",
    **dict.fromkeys(("his", "her"), "their"),
    "hers": "theirs",
    **dict.fromkeys(("himself", "herself", "themselves"), "themself"),
    **{plural: singular for singular, plural in _VERBS.items()},
    **dict.fromkeys(("full_name", "fullname"), "name"),
    **dict.fromkeys(("first_name", "firstname"), "first"),
    **dict.fromkeys(("last_name", "lastname", "surname"), "last"),
}
_BRACES = re.compile(r"\{([^{}\n]*)\}")
_TEXT_SUFFIXES = (".txt", ".md")
_QUERY_FOLDER = "queries"
_MAX_SHOWN = 200  # characters of a line in an error
_HINT = "expected a column text or document, and optionally id"


@dataclass(frozen=True)
class DocumentTemplate:
    """A document with placeholders.

    Attributes
    ----------
    id : str
        Name of the file, id in a table, or number of the line.
    text : str
        Text with placeholders in braces.
    path : Path
        File of the document.
    row : str
        Line or row in the file; empty if the document is the whole file.
    """

    id: str
    text: str
    path: Path
    row: str = ""

    @cached_property
    def pieces(self) -> tuple[tuple[str, bool], ...]:
        """Literal texts (False) and placeholders without braces (True), in order."""
        pieces, end = list[tuple[str, bool]](), 0
        for match in _BRACES.finditer(self.text):
            if _is_place(match[1]):
                pieces += [(self.text[end : match.start()], False), (match[1], True)]
                end = match.end()
        return (*pieces, (self.text[end:], False))

    @property
    def places(self) -> frozenset[str]:
        """Placeholders of the document, in lower case."""
        return frozenset(piece.lower() for piece, is_place in self.pieces if is_place)

    def locate(self, position: int = 0) -> str:
        """Return the file and the line of a position in the text."""
        number = self.text.count("\n", 0, position) + 1
        return f"{self.path}: {self.row or f'line {number}'}"

    def get_line(self, position: int = 0) -> str:
        """Return the line of a position in the text, or its beginning."""
        return self.text[self.text.rfind("\n", 0, position) + 1 :].partition("\n")[0].strip()[:_MAX_SHOWN]


@dataclass(frozen=True)
class Query:
    """A text that documents are compared with, such as a job ad.

    Attributes
    ----------
    id : str
        Name of the file, id in a table, or the text itself if the user typed it.
    text : str
        The text.
    """

    id: str
    text: str


def _is_place(content: str) -> bool:
    return content.lower() in PLACES and content in (content.lower(), content.upper(), content.capitalize())


def read_documents(path: Path | str, *, named: bool = True) -> tuple[DocumentTemplate, ...]:
    """Read documents with a placeholder for a name.

    Parameters
    ----------
    path : Path or str
        A folder with one document per .txt or .md file, at any depth, without README files and the folder ``queries``;
        a .md file with one document; a .txt file with one document per line; or a table (JSON lines, CSV, TSV, Parquet)
        with a column ``text`` or ``document`` and optionally ``id``.
    named : bool
        If True, a document without a placeholder for a name is an error; if False, a document with one.

    Returns
    -------
    tuple of DocumentTemplate
        Documents in the order of the file, or sorted by file.
    """
    path = Path(path).expanduser()
    documents = _read_templates(path)
    if not documents:
        raise StimulusError(f"{path}: no document in it; a folder holds one document per .txt or .md file")
    check_documents(documents, named=named)
    return documents


def check_documents(documents: Iterable[DocumentTemplate], *, named: bool = True) -> None:
    """Raise StimulusError for wrong placeholders, and for ids and texts that occur twice.

    Parameters
    ----------
    documents : iterable of DocumentTemplate
    named : bool
        If True, a document without a placeholder for a name is an error; if False, a document with one.
    """
    problems: list[str] = []
    ids: dict[str, DocumentTemplate] = {}
    texts: dict[str, DocumentTemplate] = {}
    for document in documents:
        problems += _find_place_problems(document) if named else _find_places(document)
        if (first := ids.setdefault(document.id, document)) is not document:
            problems.append(f"{document.locate()}: the id {document.id!r} is also that of {first.locate()}; rename one")
        if (first := texts.setdefault(document.text, document)) is not document:
            problems.append(f"{document.locate()}: the same text as {first.locate()}; remove one")
    raise_problems(problems)


def _read_templates(path: Path) -> tuple[DocumentTemplate, ...]:
    suffix = path.suffix.lower()
    if path.is_dir():
        return tuple(DocumentTemplate(file.stem, read_text(file).rstrip(), file) for file in _list_texts(path))
    if not path.exists():
        raise StimulusError(f"{path}: no such file or folder")
    if suffix == ".md":
        return (DocumentTemplate(path.stem, read_text(path).rstrip(), path),)
    if suffix == ".txt":
        lines = enumerate(read_text(path).splitlines(), start=1)
        return tuple(DocumentTemplate(str(n), line.strip(), path, f"line {n}") for n, line in lines if line.strip())
    return tuple(DocumentTemplate(name, text, path, row) for name, text, row in _read_table(path))


def _list_texts(folder: Path) -> Iterator[Path]:
    """Yield the text files of a folder, sorted. Raise StimulusError for files of other kinds."""
    for file in sorted(folder.rglob("*")):
        inner = file.relative_to(folder)
        skipped = _QUERY_FOLDER in inner.parts[:-1] or file.stem.upper() == "README"
        if not file.is_file() or skipped or any(part.startswith(".") for part in inner.parts):
            continue
        if file.suffix.lower() not in _TEXT_SUFFIXES:
            raise StimulusError(
                f"{file}: a folder holds one document per .txt or .md file; convert or remove this file"
            )
        yield file


def _read_table(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield id, text and row of a table. Without a column id, the row number is the id."""
    if not path.name.lower().removesuffix(".gz").endswith(FILE_SUFFIXES):
        raise StimulusError(
            f"{path}: unknown kind of file; expected one of {', '.join((*_TEXT_SUFFIXES, *FILE_SUFFIXES))}"
        )
    for row in read_rows(path, _HINT):
        column = "document" if "document" in row.values else "text"
        row.require_columns(column)
        name = str(row.values.get("id") or "").strip()
        yield name or row.location.rpartition(" ")[2], row.text(column).strip(), row.location


def _find_place_problems(document: DocumentTemplate) -> Iterator[str]:
    text, mistyped = document.text, False
    for match in _BRACES.finditer(text):
        where, written, line = document.locate(match.start()), match[0], document.get_line(match.start())
        if _is_place(match[1]):
            if text[: match.start()].endswith("{") and text[match.end() :].startswith("}"):
                yield f"{where}: write {written} with single braces: {line}"
        elif meant := _find_meant_place(match[1]):
            mistyped = True
            hint = f"did you mean {{{meant}}}? Use other brackets for a literal text"
            yield f"{where}: unknown placeholder {written}; {hint}: {line}"
    if not mistyped and not document.places.intersection(_NAME_PLACES):
        hint = "; a .txt file holds one document per line, a .md file holds one document" if document.row else ""
        where = document.locate() if document.row else str(document.path)
        message = f"no placeholder for a name; write {{name}} where the document names the person{hint}"
        yield f"{where}: {message}: {document.get_line()}"


def _find_places(document: DocumentTemplate) -> Iterator[str]:
    for match in _BRACES.finditer(document.text):
        if _is_place(match[1]):
            where = document.locate(match.start())
            yield f"{where}: {match[0]} is about another person, but the name is the user's; write I, me or my"


def _find_meant_place(content: str) -> str | None:
    """Return the placeholder nearest to a misspelt one, or None."""
    content = content.strip().lower()
    nearest = find_nearest_names(content, PLACES)
    return content if content in PLACES else _MEANT.get(content, nearest[0] if nearest else None)


def check_names_in_documents(documents: Iterable[DocumentTemplate], names: Sequence[AuditName]) -> None:
    """Raise StimulusError if a document already contains one of the names, or needs surnames that are missing."""
    spellings = {spelling for name in names for spelling in (name.name, name.name.upper())}
    pattern = re.compile(rf"(?<!\w)({'|'.join(map(re.escape, sorted(spellings)))})(?!\w)")
    without_surname = next((name.name for name in names if not name.surname), None)
    problems = []
    for document in documents:
        if without_surname is not None and "last" in document.places:
            problems.append(
                f"{document.locate(document.text.lower().index('{last}'))}: {{last}} needs a surname, and "
                f"{without_surname!r} has none; write {{name}}, or add surnames (--surnames)"
            )
        if match := pattern.search(document.text):
            problems.append(
                f"{document.locate(match.start())}: the document already contains the name {match[0]!r}; write "
                f"{{name}} there, change the text, or draw other names (--seed): {document.get_line(match.start())}"
            )
    raise_problems(problems)


def fill_document(document: DocumentTemplate, name: AuditName, pronouns: PronounRule = "group", noise: int = 0) -> str:
    """Put a name into a document.

    Parameters
    ----------
    document : DocumentTemplate
        Document with placeholders.
    name : AuditName
        Name to put in.
    pronouns : {"group", "neutral"}
        Whether pronouns follow the sex of the name (they, if it has none) or are always they.
    noise : int
        Number of the meaningless edit: each value below 9,000 gives another four-digit number for {noise}.

    Notes
    -----
    A verb agrees with the last {name}, {first}, {last} or {they} before it: "Emily is", "they are". A capitalized
    placeholder gives a capitalized text, and a placeholder in capitals gives capitals.
    """
    sex = name.sex if pronouns == "group" else None
    values = {
        **{place: forms[sex] for place, forms in _FORMS.items()},
        "name": name.full_name,
        "first": name.name,
        "last": name.surname,
        "noise": str(1000 + (3817 + 7919 * noise) % 9000),
    }
    texts, is_plural = [], sex is None
    for piece, is_place in document.pieces:
        place = piece.lower()
        if not is_place:
            texts.append(piece)
            continue
        if place in _NAME_PLACES or place == "they":
            is_plural = place == "they" and sex is None
        value = values[place] if place in values else _VERBS[place] if is_plural else place
        if piece.isupper():
            value = value.upper()
        elif piece[0].isupper():
            value = value[:1].upper() + value[1:]
        texts.append(value)
    return "".join(texts)


def read_queries(queries: Iterable[str | Path] = (), documents: Path | str | None = None) -> tuple[Query, ...]:
    """Read queries.

    Parameters
    ----------
    queries : iterable of str or Path
        Texts; .txt or .md files with one query each; folders of such files; or tables with a column ``text`` and
        optionally ``id``.
    documents : Path or str, optional
        Folder of the documents. Without `queries`, its folder ``queries`` is read if there is one.

    Returns
    -------
    tuple of Query
    """
    queries = tuple(queries)
    if not queries and documents is not None and (folder := Path(documents).expanduser() / _QUERY_FOLDER).is_dir():
        queries = (folder,)
    read = [query for value in queries for query in _read_query(value)]
    problems = []
    for i, query in enumerate(read):
        if not query.text:
            problems.append(f"{query.id or 'query'}: the query is empty")
        elif any(_is_place(match[1]) for match in _BRACES.finditer(query.text)):
            problems.append(f"{query.id}: a query has no placeholders; use --documents for documents with {{name}}")
        elif any(query.text == other.text or query.id == other.id for other in read[:i]):
            problems.append(f"{query.id}: the query appears twice; remove or rename one")
    raise_problems(problems)
    return tuple(read)


def _read_query(value: str | Path) -> Iterator[Query]:
    path, text = Path(value).expanduser(), str(value).strip()
    can_exist = len(text) < 256 and "\n" not in text
    if can_exist and path.is_dir():
        files = [file for file in sorted(path.iterdir()) if file.suffix.lower() in _TEXT_SUFFIXES]
        if not files:
            raise UsageError(f"{path}: no query in it; a folder holds one query per .txt or .md file")
        yield from (Query(file.stem, read_text(file).strip()) for file in files)
    elif can_exist and path.name.lower().removesuffix(".gz").endswith(FILE_SUFFIXES):
        yield from (Query(name, query) for name, query, _ in _read_table(path))
    elif can_exist and (path.suffix.lower() in _TEXT_SUFFIXES or path.is_file()):
        yield Query(path.stem, read_text(path).strip())
    else:
        yield Query(text, text)
