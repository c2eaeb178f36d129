"""Documents with placeholders for names, queries, and the example documents."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from biassay.datasets.names import NAME_LISTS, AuditName, load_names
from biassay.errors import BiassayError, StimulusError, UsageError
from biassay.prompts.documents import (
    DocumentTemplate,
    check_names_in_documents,
    fill_document,
    read_documents,
    read_queries,
)

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "audit"
EMILY = AuditName("Emily", "white female", "female", "Emily", "Lang")
JAMES = AuditName("James", "white male", "male", "James")
ALEX = AuditName("Alex", "other", None, "Alex")


def write(folder: Path, text: str, name: str = "document.md") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def template(text: str) -> DocumentTemplate:
    return DocumentTemplate("d", text, Path("d.md"))


# Reading


def test_a_folder_holds_one_document_per_file(tmp_path: Path) -> None:
    write(tmp_path, "{name} b\n", "b.md")
    write(tmp_path, "\ufeff{name} a\n\n", "deeper/a.txt")
    write(tmp_path, "no document", "README.md")
    write(tmp_path, "a job ad", "queries/job.txt")
    write(tmp_path, "x", ".hidden/notes.pdf")
    documents = read_documents(tmp_path)
    assert [(document.id, document.text) for document in documents] == [("b", "{name} b"), ("a", "{name} a")]


def test_a_text_file_holds_one_document_per_line_and_a_markdown_file_one_document(tmp_path: Path) -> None:
    text = "{name} one\n\n  {first} two\n"
    lines = read_documents(write(tmp_path, text, "lines.txt"))
    assert [(document.id, document.text) for document in lines] == [("1", "{name} one"), ("3", "{first} two")]
    (whole,) = read_documents(write(tmp_path, text, "whole.md"))
    assert (whole.id, whole.text) == ("whole", text.rstrip())


def test_tables_hold_one_document_per_row(tmp_path: Path) -> None:
    rows = [{"id": "x", "text": "{name} one"}, {"id": 7, "text": "{name}\ntwo"}]
    path = write(tmp_path, "\n".join(map(json.dumps, rows)), "documents.jsonl")
    assert [(document.id, document.text) for document in read_documents(path)] == [
        ("x", "{name} one"),
        ("7", "{name}\ntwo"),
    ]
    path = write(tmp_path, 'document,score\n"{name}, one",1\n{name} two,2\n', "documents.csv")
    assert [(document.id, document.text) for document in read_documents(path)] == [
        ("2", "{name}, one"),
        ("3", "{name} two"),
    ]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("d.md", "Curriculum vitae", r"d\.md: no placeholder for a name; write \{name\} where"),
        ("d.md", "{They} {has} a dog", r"d\.md: no placeholder for a name"),
        (
            "d.txt",
            "{name}\nAnn\n",
            r"d\.txt: line 2: no placeholder for a name.*one document per line, a \.md file holds one",
        ),
        (
            "d.md",
            "{name}\n\nOf {nmae}!",
            r"line 3: unknown placeholder \{nmae\}; did you mean \{name\}\?.*: Of \{nmae\}!",
        ),
        ("d.md", "{name} {thier}", r"line 1: unknown placeholder \{thier\}; did you mean \{their\}\?"),
        ("d.md", "{ name }", r"unknown placeholder \{ name \}; did you mean \{name\}\?"),
        ("d.md", "{name} {tHeY}", r"unknown placeholder \{tHeY\}; did you mean \{they\}\?"),
        ("d.md", "{name} {his}", r"unknown placeholder \{his\}; did you mean \{their\}\?"),
        ("d.md", "{name} {Her}", r"unknown placeholder \{Her\}; did you mean \{their\}\?"),
        ("d.md", "{name} {are}", r"unknown placeholder \{are\}; did you mean \{is\}\?"),
        ("d.md", "{first_name}", r"unknown placeholder \{first_name\}; did you mean \{first\}\?"),
        ("d.md", "{name} {noize}", r"did you mean \{noise\}\?"),
        ("d.md", "Dear {{name}}", r"line 1: write \{name\} with single braces: Dear \{\{name\}\}"),
        ("d.csv", "id,text\na,{name}\na,{name}!\n", r"line 3: the id 'a' is also that of .*line 2; rename one"),
        ("d.csv", "text\n{name}\n{name}\n", r"line 3: the same text as .*line 2; remove one"),
        ("d.csv", "id,txt\na,{name}\n", r"line 2: the column 'text' is missing; rename 'txt'"),
        ("d.csv", "id,text\na,\n", r"line 2: field text: expected a text that is not empty"),
        ("d.jsonl", '{"text": "{name}"}\n{"text": 3}\n', r"line 2: field text: expected a text"),
        ("d.txt", "\n\n", r"d\.txt: no document in it"),
        ("d.docx", "{name}", r"unknown kind of file; expected one of \.txt, \.md, \.jsonl"),
    ],
)
def test_mistakes(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(StimulusError, match=message):
        read_documents(write(tmp_path, text, name))


def test_mistakes_in_folders(tmp_path: Path) -> None:
    with pytest.raises(StimulusError, match="missing: no such file or folder"):
        read_documents(tmp_path / "missing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(StimulusError, match=r"empty: no document in it; a folder holds one document per \.txt or \.md"):
        read_documents(tmp_path / "empty")
    write(tmp_path, "{name} one", "same/a.md")
    write(tmp_path, "{name} two", "same/a.txt")
    with pytest.raises(StimulusError, match=r"a\.txt: line 1: the id 'a' is also that of .*a\.md: line 1; rename one"):
        read_documents(tmp_path / "same")
    (tmp_path / "latin").mkdir()
    (tmp_path / "latin" / "a.md").write_bytes("{name} résumé".encode("latin-1"))
    with pytest.raises(StimulusError, match=r"a\.md: not UTF-8 text \(byte 8\)"):
        read_documents(tmp_path / "latin")
    write(tmp_path, "{name}", "mixed/a.md")
    write(tmp_path, "{name}", "mixed/b.pdf")
    with pytest.raises(StimulusError, match=r"b\.pdf: a folder holds one document per .* convert or remove"):
        read_documents(tmp_path / "mixed")


# Names in documents


def test_documents_that_contain_a_name_are_reported_with_the_line(tmp_path: Path) -> None:
    write(tmp_path, "{name}\n\nEmily's experience", "a.md")
    write(tmp_path, "JAMES HALL {name}", "b.md")
    write(tmp_path, "{name} of Jamestown, emily", "c.md")
    with pytest.raises(StimulusError) as caught:
        check_names_in_documents(read_documents(tmp_path), [EMILY, JAMES])
    assert re.findall(r"(\w\.md: line \d).*name ('\w+')", str(caught.value)) == [
        ("a.md: line 3", "'Emily'"),
        ("b.md: line 1", "'JAMES'"),
    ]


# Filling


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (EMILY, "She has her dog; it likes her and is hers. She did it herself, was glad and is here."),
        (JAMES, "He has his dog; it likes him and is his. He did it himself, was glad and is here."),
        (ALEX, "They have their dog; it likes them and is theirs. They did it themself, were glad and are here."),
    ],
)
def test_pronouns_and_verbs_follow_the_sex(name: AuditName, expected: str) -> None:
    text = (
        "{They} {has} {their} dog; it likes {them} and is {theirs}. {They} did it {themself}, {was} glad and {is} here."
    )
    assert fill_document(template(text), name) == expected


def test_a_verb_agrees_with_the_name_or_pronoun_before_it() -> None:
    document = template("{name} {is} a nurse. {They} {has} a license. {First} {was} first.")
    assert fill_document(document, ALEX) == "Alex is a nurse. They have a license. Alex was first."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{name}", "Emily Lang"),
        ("{NAME}: {first} {LAST}", "EMILY LANG: Emily LANG"),
        ("{Their} {THEIR} {their}", "Her HER her"),
        ("{name}'s and {first}'s", "Emily Lang's and Emily's"),
    ],
)
def test_capitals_and_possessives(text: str, expected: str) -> None:
    assert fill_document(template(text), EMILY) == expected


def test_noise_changes_a_number_and_nothing_else() -> None:
    document = template("Reference {noise}: {name}")
    texts = [fill_document(document, EMILY, noise=noise) for noise in range(9000)]
    assert all(re.fullmatch(r"Reference [1-9]\d{3}: Emily Lang", text) for text in texts)
    assert len(set(texts)) == 9000
    assert fill_document(document, EMILY) == texts[0]


# Queries


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["nurse.txt"], r"nurse\.txt: cannot be read: No such file"),
        (["night nurse.csv"], r"night nurse\.csv: cannot be read: No such file"),
        (["nurse", "nurse"], "nurse: the query appears twice"),
        ([" "], "the query is empty"),
        (["Is {name} a nurse?"], "a query has no placeholders; use --documents"),
    ],
)
def test_mistakes_in_queries(values: list[str], message: str) -> None:
    with pytest.raises(BiassayError, match=message):
        read_queries(values)


# The example documents


def test_the_examples_have_24_resumes_and_4_queries() -> None:
    documents = read_documents(EXAMPLES)
    occupations = [document.id.partition("-")[0] for document in documents]
    assert {name: occupations.count(name) for name in occupations} == dict.fromkeys(
        ("accountant", "developer", "nurse", "warehouse"), 6
    )
    assert [query.id for query in read_queries(documents=EXAMPLES)] == ["accountant", "developer", "nurse", "warehouse"]
    for document in documents:
        assert {"name", "noise", "they"} <= document.places
        assert 120 <= len(document.text.split()) <= 220


def test_no_example_contains_a_name_of_a_bundled_list() -> None:
    names = {entry.name for name in NAME_LISTS for entry in load_names(name).names}
    check_names_in_documents(read_documents(EXAMPLES), [AuditName(name, "g", None, name) for name in names])


def test_examples_name_no_pronoun_and_no_birth() -> None:
    for document in read_documents(EXAMPLES):
        literal = " ".join(piece for piece, is_place in document.pieces if not is_place)
        found = re.search(r"\b(he|she|him|his|hers?|himself|herself|born|aged?|graduated)\b", literal, re.IGNORECASE)
        assert found is None, (document.id, found)


def test_the_place_last_needs_surnames() -> None:
    document = template("Dear\n{first} {Last}")
    check_names_in_documents([document], [EMILY])
    with pytest.raises(StimulusError, match=r"d\.md: line 2: \{last\} needs a surname, and 'James' .*--surnames"):
        check_names_in_documents([document], [EMILY, JAMES])


def test_a_folder_without_queries(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no query in it"):
        read_queries([tmp_path])
