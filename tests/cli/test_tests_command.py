"""``biassay tests``: the catalogue and a user's own files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from biassay.cli import main
from biassay.datasets.catalogue import Catalogue, add_plugin_tests, load_catalogue, load_tests
from biassay.datasets.languages import load_languages
from biassay.datasets.schema import ROLES, Test, describe_test
from biassay.datasets.word_associations import select_word_associations
from biassay.prompts.sentences import hash_texts, make_texts

Cli = Callable[..., tuple[int, str, str]]
NAMES = sorted(load_catalogue().tests)

TWO_TESTS = """
[concepts.cats]
label = "Cats"
words = ["cat", "kitten"]
[concepts.dogs]
label = "Dogs"
words = ["dog", "puppy", "hound"]
[tests.pets]
title = "Cats or dogs, pleasant or unpleasant"
X = "cats"
Y = "dogs"
A = "pleasant"
B = "unpleasant"
[tests.sent-pets]
of = "pets"
targets = "bleached"
"""


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs a command in this process: exit code, stdout, stderr."""

    def call(*args: object) -> tuple[int, str, str]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main(["tests", *map(str, args)])
        said = capsys.readouterr()
        return int(stop.value.code or 0), said.out, said.err

    return call


@pytest.fixture
def own(tmp_path: Path) -> Path:
    concepts = {"pleasant": ["love", "peace"], "unpleasant": ["war", "hate"]}
    more = "".join(f"[concepts.{name}]\nwords = {json.dumps(words)}\n" for name, words in concepts.items())
    path = tmp_path / "pets.toml"
    path.write_text(more + TWO_TESTS)
    return path


def all_texts(test: Test) -> dict[str, list[str]]:
    return {role: [text.text for text in make_texts(test).role(role)] for role in ROLES}


def with_added(path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalogue:
    """The catalogue as it would be if a package gave that file."""
    monkeypatch.setattr("biassay.datasets.catalogue.load_plugins", lambda *_, convert: convert(path))
    return add_plugin_tests(load_catalogue())


def names_in_the_table(stdout: str) -> set[str]:
    lines = [line for line in stdout.splitlines()[2:] if not re.search(r": \d+ more tests?, ", line)]
    assert max(map(len, lines)) <= 100
    return {line.split()[0] for line in lines}


def test_list_names_every_test_of_the_main_collections(cli: Cli) -> None:
    code, stdout, _ = cli("list")
    assert code == 0
    assert names_in_the_table(stdout) == {t.name for t in load_catalogue().tests.values() if not t.source.supplementary}
    row = next(row for row in stdout.splitlines() if row.startswith("sent-weat6 "))
    assert str(sum(map(len, all_texts(load_catalogue().tests["sent-weat6"]).values()))) in row
    assert "same as weat6" in next(row for row in stdout.splitlines() if row.startswith("C6 "))


def test_list_sums_up_supplementary_collections_and_shows_them_when_named(cli: Cli) -> None:
    *_, supplement, gate, languages = cli("list")[1].splitlines()
    assert languages.startswith("weathub-CODE: 390 more tests")
    assert all(f"{name} ({code})" in languages for code, name in load_languages().items())
    assert supplement.startswith("guo2021-supplement: 60 more tests")
    assert "biassay tests list guo2021-supplement" in supplement
    assert gate.startswith("gate: 10 more tests")
    code, stdout, _ = cli("list", "guo2021-supplement")
    assert code == 0
    assert names_in_the_table(stdout) == {
        t.name for t in load_catalogue().tests.values() if t.source.name == "guo2021-supplement"
    }
    assert "more tests" not in stdout
    assert "weathub" not in stdout
    listed = json.loads(cli("list", "EM-*", "weat6", "--json")[1])
    assert [entry["supplementary"] for entry in listed] == [True] * 20 + [False]


def test_show_joins_the_words_of_a_cluster_and_names_the_source_of_a_list(cli: Cli) -> None:
    shown = " ".join(cli("show", "gate-gender-science")[1].split())
    assert "(48 words, 24 clusters, 48 texts)" in shown
    assert "man/men, boy/boys, " in shown
    assert "source: Caliskan et al. 2017, WEAT 7 and 8" in shown


def test_list_as_json_describes_every_test(cli: Cli) -> None:
    code, stdout, _ = cli("list", "--json")
    assert code == 0
    listed = {entry["name"]: entry for entry in json.loads(stdout)}
    assert sorted(listed) == NAMES
    for name, entry in listed.items():
        test = load_catalogue().tests[name]
        assert entry["digest"] == hash_texts(test)
        assert entry | describe_test(test) == entry
        stated = {"clusters": [list(of) for of in test.A.clusters], "source": test.A.source}
        expected = {"label": test.A.label, "words": list(test.A.words), **{k: v for k, v in stated.items() if v}}
        assert entry["concepts"]["A"] == expected
        for field in ("citation", "licence", "version", "source", "title"):
            assert entry[field]


def test_tests_for_models_that_answer_are_listed_and_shown_when_named(cli: Cli) -> None:
    published = select_word_associations()
    assert len(published) == 21
    assert "bai2025: 21 more tests, " in cli("list")[1]
    assert "wat-age" in cli("list", "age")[1]
    for pattern in ("bai2025", "wat-*"):
        _, stdout, stderr = cli("list", pattern)
        assert names_in_the_table(stdout) == {test.name for test in published}
        assert stdout.count("descriptive") == 11
        assert "--tests all" in stderr
    everything = json.loads(cli("list", "*", "--json")[1])
    assert {entry["name"] for entry in everything} == {*NAMES, *(test.name for test in published)}
    listed = json.loads(cli("list", "weat6", "wat-career", "--json")[1])
    assert [entry["name"] for entry in listed] == ["weat6", "wat-career"]
    shown = json.loads(cli("show", "wat-career", "--json")[1])
    assert shown == listed[1]
    (career,) = select_word_associations("wat-career")
    assert {role: tuple(of["words"]) for role, of in shown["concepts"].items()} == {
        role: concept.words for role, concept in career.concepts.items()
    }
    assert [tuple(pair) for pair in shown["pairs"]] == [*career.pairs]
    code, stdout, _ = cli("show", "wat-arab-muslim")
    text = " ".join(stdout.split())
    assert (code, "Ernesto or Hakim; Matthais or Sharif" in text, career.source.licence in text) == (0, True, True)


def test_a_collection_of_another_package_is_summed_up_listed_shown_and_exported(
    cli: Cli, own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = '[source]\nname = "animals"\ncitation = "A list"\nlicence = "CC0-1.0"\nversion = "1"\n'
    own.write_text(source + TWO_TESTS)
    known = with_added(own, monkeypatch)
    monkeypatch.setattr("biassay.datasets.catalogue.load_catalogue", lambda: known)
    monkeypatch.setattr("biassay.cli.tests.load_catalogue", lambda: known)
    assert cli("list")[1].splitlines()[-2].startswith("animals: 2 more tests")
    listed = json.loads(cli("list", "animals", "--json")[1])
    assert [(entry["name"], entry["supplementary"]) for entry in listed] == [("pets", True), ("sent-pets", True)]
    assert "dog, puppy, hound" in cli("show", "pets")[1]
    assert cli("export", "sent-pets", "--format", "toml", "--out", tmp_path / "back.toml")[0] == 0
    assert hash_texts(load_tests(tmp_path / "back.toml")[0]) == listed[1]["digest"]


def test_show_gives_words_source_and_an_example(cli: Cli) -> None:
    code, stdout, _ = cli("show", "sent-weat6")
    flat = " ".join(stdout.split())
    test = load_catalogue().tests["sent-weat6"]
    assert code == 0
    for role in ROLES:
        assert ", ".join(test.concept(role).words) in flat
        assert f"({len(test.concept(role).words)} words, {len(make_texts(test).role(role))} texts)" in flat
    assert make_texts(test).X[0].text in flat
    assert test.source.licence in flat
    assert make_texts(test).X[-1].text not in flat
    assert "about: people, topic: gender, variant of: weat6, template: bleached" in flat


def test_markup_in_a_file_is_shown_as_it_is(cli: Cli, own: Path) -> None:
    own.write_text(own.read_text().replace('"kitten"', '"[red]kitten[/red]"').replace('"Cats"', '"[b]Cats"'))
    stdout = cli("show", own)[1]
    assert "[red]kitten[/red]" in stdout
    assert "[b]Cats" in stdout


def test_validate_reports_words_clusters_direction_and_question(cli: Cli, own: Path) -> None:
    text = own.read_text()
    text = text.replace("[tests.pets]", '[tests.pets]\ndirection = "negative"')
    own.write_text(re.sub(r'(words = \["cat", "kitten"\])', r'\1\nclusters = [["cat", "kitten"]]', text))
    code, stdout, stderr = cli("validate", own)
    assert (code, stderr) == (0, "")
    pets, sentences = load_tests(own)
    sizes = {role: len(texts) for role, texts in all_texts(sentences).items()}
    assert sizes["Y"] > 3
    lines = [line for line in stdout.splitlines() if ": valid," in line or line[:5] in ("  X  ", "  Y  ")]
    direction = "direction: negative (the stereotype associates X with B)"
    assert [" ".join(line.split()) for line in lines] == [
        f"{own}: pets: valid, word level; question: pets; {direction}",
        f"X {pets.X.label} 2 words in 1 cluster",
        f"Y {pets.Y.label} 3 words in 3 clusters",
        f"{own}: sent-pets: valid, sentence level; question: pets; {direction}",
        f"X {pets.X.label} 2 words in 1 cluster, {sizes['X']} texts",
        f"Y {pets.Y.label} 3 words in 3 clusters, {sizes['Y']} texts",
    ]
    own.write_text(text.replace('direction = "negative"', ""))
    assert "question: pets; direction: not stated" in cli("validate", own)[1]


def test_validate_names_words_in_another_script(cli: Cli, own: Path) -> None:
    """A Cyrillic letter that looks like a Latin one, and a word in another script; names with accents are Latin."""
    text = (
        own.read_text()
        .replace('"kitten"', '"kitt\u0435n", "Zo\u00eb"')
        .replace('"puppy"', '"\u0449\u0435\u043d\u043e\u043a"')
    )
    own.write_text(text, encoding="utf-8")
    code, stdout, _ = cli("validate", own)
    assert code == 0
    assert "note: word in another script (X): kitt\u0435n" in stdout
    assert "note: word in another script (Y): \u0449\u0435\u043d\u043e\u043a" in stdout
    assert "Zo\u00eb" not in stdout.partition("note: word in another script")[2]


def test_validate_refuses_what_run_would_refuse(cli: Cli, own: Path) -> None:
    own.write_text(own.read_text().replace('["cat", "kitten"]', '["cat", "dog"]'))
    code, stdout, stderr = cli("validate", own)
    assert (code, stdout) == (2, "")
    assert str(own) in stderr
    assert "X and Y share 'dog'" in stderr


def test_every_published_sentence_file_is_valid(published_files: Path, cli: Cli) -> None:
    files = sorted(published_files.iterdir())
    assert len(files) == 27
    for file in files:
        code, stdout, stderr = cli("validate", file)
        assert code == 0, stderr
        assert ": valid, " in stdout


@pytest.mark.slow
@pytest.mark.parametrize(("form", "ending"), [("sent-bias", "json"), ("toml", "toml")])
def test_every_test_exports_to_a_file_that_reads_back_to_the_same_texts(
    form: str, ending: str, tmp_path: Path, cli: Cli
) -> None:
    for name in NAMES:
        test = load_catalogue().tests[name]
        path = tmp_path / f"{name}.{ending}"
        code, stdout, stderr = cli("export", name, "--format", form, "--out", path)
        assert (code, stderr) == (0, ""), name
        assert str(path) in stdout
        (back,) = load_tests(path)
        assert back.name == name
        assert all_texts(back) == all_texts(test), name
        assert [back.concept(role).label for role in ROLES] == [test.concept(role).label for role in ROLES], name
        assert back.level == test.level, name
        assert [(t.stimulus, t.spans) for t in make_texts(back)] == [(t.stimulus, t.spans) for t in make_texts(test)], (
            name
        )
        assert hash_texts(back) == hash_texts(test), name
        assert describe_test(back) == describe_test(test), name
        if form == "toml":
            assert (back.title, back.source) == (test.title, test.source), name


def test_export_refuses_to_overwrite(tmp_path: Path, cli: Cli) -> None:
    path = tmp_path / "weat6.json"
    path.write_text("mine")
    code, stdout, stderr = cli("export", "weat6", "--out", path)
    assert (code, stdout) == (2, "")
    assert f"{path} exists" in stderr
    assert path.read_text() == "mine"


def test_show_texts_gives_every_text(cli: Cli) -> None:
    lines = {line.strip() for line in cli("show", "sent-weat6", "--texts")[1].splitlines()}
    for texts in all_texts(load_catalogue().tests["sent-weat6"]).values():
        assert lines >= set(texts)


def test_export_prints_what_it_would_write(tmp_path: Path, cli: Cli) -> None:
    for form in ("sent-bias", "toml"):
        _, stdout, _ = cli("export", "weat6", "--format", form)
        path = tmp_path / form
        cli("export", "weat6", "--format", form, "--out", path)
        assert path.read_text() == stdout
    assert set(json.loads((tmp_path / "sent-bias").read_text())) == {"targ1", "targ2", "attr1", "attr2"}


def test_export_takes_one_test(cli: Cli) -> None:
    code, stdout, stderr = cli("export", "sent-weat*")
    assert (code, stdout) == (2, "")
    assert "matches 15 tests" in stderr
