"""Supplementary tests and validation words of Guo and Caliskan, compared with their appendix."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from biassay.datasets.abc_model import load_abc
from biassay.datasets.catalogue import load_catalogue, load_tests, select_tests
from biassay.datasets.concepts import load_concept
from biassay.datasets.lexicons import read_lexicon
from biassay.datasets.schema import ROLES
from biassay.datasets.stimulus_files import read_document
from biassay.datasets.word_associations import load_word_associations
from biassay.errors import StimulusError

# Tables 3 and 4 print four rows for each of these, in this order: "EM/EF, P/U* - Attitude", "EM/EF, Career/Family",
# "EM/EF, Math/Arts", "EM/EF, Science/Arts", "EM/AM, P/U* - Attitude", ...
PAIRS = "EM/EF, EM/AM, EM/AF, EM/MM, EM/MF, EF/AM, EF/AF, EF/MM, EF/MF, AM/AF, AM/MM, AM/MF, AF/MM, AF/MF, MM/MF"
KINDS = ("attitude", "career", "math", "science")
ROWS = [(pair[:2], pair[3:], kind) for pair in PAIRS.split(", ") for kind in KINDS]
# "A_ stands for African Americans ... _F stands for females"; the first and last name of each list.
NAMES = {
    "AF": ("Aisha", "Yvette"),
    "AM": ("Alonzo", "Wardell"),
    "EF": ("Carrie", "Stephanie"),
    "EM": ("Andrew", "Stephen"),
    "MF": ("Adriana", "Yesenia"),
    "MM": ("Alberto", "Rogelio"),
}
# "pleasantness and unpleasantness as two attribute groups (as in C1)", career and family "(as in C6)", math and arts
# "(as in C7)", science and arts "(as in C8)": in C7 and C8 they are the targets.
AS_IN = {
    "attitude": ("C1", "A", "B"),
    "career": ("C6", "A", "B"),
    "math": ("C7", "X", "Y"),
    "science": ("C8", "X", "Y"),
}


def test_the_60_rows_of_the_tables_in_their_order() -> None:
    assert len(ROWS) == 60
    assert [t.name for t in select_tests(["guo2021-supplement"])] == ["-".join(row) for row in ROWS]


@pytest.mark.parametrize("row", ROWS, ids="-".join)
def test_a_row_has_the_targets_and_attributes_that_are_printed(row: tuple[str, str, str]) -> None:
    first, second, kind = row
    known = load_catalogue().tests
    test = known["-".join(row)]
    for group, concept in ((first, test.X), (second, test.Y)):
        assert (concept.words[0], concept.words[-1]) == NAMES[group]
        assert len(concept.words) == 12
    of, one, other = AS_IN[kind]
    assert known[of].concept(one) == test.A
    assert known[of].concept(other) == test.B
    assert test.level == "word"


def test_the_attributes_are_those_listed_by_caliskan_et_al() -> None:
    """Their C1 has 'agony' and 'prison' where C3 and C4 have 'bomb' and 'evil'; the arts of C7 and C8 differ too."""
    tests = load_catalogue().tests
    assert {"agony", "prison"} <= set(tests["EM-EF-attitude"].B.words)
    assert not {"bomb", "evil"} & set(tests["EM-EF-attitude"].B.words)
    assert "sculpture" in tests["EM-EF-math"].B.words
    assert "Shakespeare" in tests["EM-EF-science"].B.words


def test_supplementary_tests_are_taken_only_when_asked_for() -> None:
    default = select_tests()
    assert len(default) == 50
    assert {t.source.name for t in default} == {"caliskan2017", "may2019", "guo2021"}
    assert [t.name for t in select_tests(["guo2021"])] == ["I1", "I2", "I3", "I4"]
    assert [t.name for t in select_tests(["MM-MF-math"])] == ["MM-MF-math"]
    assert len(select_tests(["EM-*"])) == 20
    assert [t.name for t in select_tests(["?[MF]-?[MF]-science"])] == [
        f"{a}-{b}-{kind}" for a, b, kind in ROWS if kind == "science"
    ]
    assert len(select_tests(["*"])) == 50 + 10 + 60 + 10


def test_every_data_file_names_its_source_and_its_terms() -> None:
    files = sorted(Path(str(resources.files("biassay.datasets") / "data")).glob("*/*.toml"))
    assert len(files) >= 9
    readers: dict[str, Callable[[Path], Any]] = {
        "abc": lambda _: load_abc(),
        "debiasing": lambda file: load_concept(file.stem),
        "languages": lambda file: SimpleNamespace(source=SimpleNamespace(**tomllib.loads(file.read_text())["source"])),
        "lexicons": read_lexicon,
        "word_associations": load_word_associations,
    }
    for file in files:
        # Lists of names have sources of their own, see data/names/README.md; prompts and rubrics are our sentences.
        if file.parent.name in ("names", "prompts", "rubrics"):
            continue
        source = readers.get(file.parent.name, read_document)(file).source
        assert len(source.citation) > 20, file
        assert "Apache-2.0" in source.licence or "licence" in source.licence.lower(), file
        assert source.version, file


def test_emergent_words_are_intersectional_and_of_no_constituent() -> None:
    concepts = load_catalogue().concepts
    for race in ("african", "european", "mexican"):
        for gender in ("females", "males"):
            name = f"validation-{race}-american-{gender}"
            whole = set(concepts[name].words)
            constituents = {*concepts[f"validation-{race}-americans"].words, *concepts[f"validation-{gender}"].words}
            emergent = concepts.get(f"{name}-emergent") or concepts["mexican-american-female-emergent-biases"]
            expected = {"ditsy"} if name == "validation-european-american-females" else set(emergent.words)
            # The printed lists leave out 'unintelligent' for both African American groups, though it would be emergent.
            left_out = {"unintelligent"} if race == "african" else set()
            assert whole - constituents == expected | left_out, name


OWN = """
[source]
name = "pets"
citation = "A list of my own"
licence = "CC0"
version = "1"
supplementary = true

[concepts.cats]
label = "Cats"
words = ["cat", "lynx"]
[concepts.dogs]
label = "Dogs"
words = ["dog", "wolf"]
[concepts.fish]
words = ["carp", "pike"]

[pairs.groups]
C = "cats"
D = "dogs"
F = "fish"

[pairs.attributes]
attitude = ["pleasant-5", "unpleasant-5"]
career = ["career", "family"]

[[sentences]]
prefix = "sent-"
targets = "bleached"
attributes = "bleached"
of = ["C-F-career"]
"""


def test_pairs_of_ones_own_groups(tmp_path: Path) -> None:
    path = tmp_path / "pets.toml"
    path.write_text(OWN)
    tests = {test.name: test for test in load_tests(path)}
    assert list(tests)[:4] == ["C-D-attitude", "C-D-career", "C-F-attitude", "C-F-career"]
    assert list(tests)[4:] == ["D-F-attitude", "D-F-career", "sent-C-F-career"]
    assert [tests["C-F-career"].concept(role).name for role in ROLES] == ["cats", "fish", "career", "family"]
    assert tests["C-F-career"].title == "Cats or fish, Career or Family"
    assert tests["sent-C-F-career"].level == "sentence"
    assert len(select_tests([str(path)])) == 7  # a file that is named is asked for


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('D = "dogs"\nF = "fish"\n', ""), r"line 18: field pairs\.groups: expected at least two groups, got 1"),
        (('D = "dogs"', "D = 3"), r"line 20: field pairs\.groups\.D: expected a text"),
        (('F = "fish"', 'F = "fihs"'), r"field pairs: Y: unknown concept 'fihs'; did you mean 'fish'"),
        (('F = "fish"', 'F = "dogs"'), r"field pairs: X and Y share 'dog', 'wolf'"),
        (
            ('["career", "family"]', '["career"]'),
            r"field pairs\.attributes\.career: expected the names of two .* got 1",
        ),
        (('["career", "family"]', '"career"'), r"field pairs\.attributes\.career: expected a list of texts"),
        (("[pairs.attributes]", "[pairs.attribute]"), r"pairs\.attribute: unknown field; did you mean 'attributes'"),
        (("supplementary = true", 'supplementary = "yes"'), r"source\.supplementary: expected true or false, got str"),
        (
            ("[pairs.groups]", "[tests.C-D-career]\nof = 'weat1'\n[pairs.groups]"),
            r"defines the test 'C-D-career' twice",
        ),
    ],
)
def test_faults_of_pairs_are_named(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    path = tmp_path / "faulty.toml"
    assert change[0] in OWN
    path.write_text(OWN.replace(*change))
    with pytest.raises(StimulusError, match=message) as caught:
        load_tests(path)
    assert str(path) in str(caught.value)
