"""mteb: against direct calls of sentence-transformers with the prompts that mteb gives, on a tiny model."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import biassay
from biassay.errors import UnknownNameError, UsageError
from biassay.models.registry import get_backends, get_required_consents, open_encoder
from biassay.models.selftest import TEXTS, check_encoder, run_self_test

pytestmark = pytest.mark.extras
NAME = "tiny/bert"


@pytest.fixture
def register(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Write a model to the folder that mteb's loader finds under its name, and return a function that registers it."""
    import mteb

    from biassay.models.sentence_transformers import write_tiny_sentence_transformer

    (tmp_path / NAME).mkdir(parents=True)
    write_tiny_sentence_transformer(tmp_path / NAME)
    monkeypatch.chdir(tmp_path)
    registry = import_module("mteb.models.model_implementations").MODEL_REGISTRY
    known = mteb.get_model_meta("sentence-transformers/all-MiniLM-L6-v2")

    def add(**loader_kwargs: Any) -> None:
        given = {"name": NAME, "revision": "7", "loader_kwargs": loader_kwargs}
        monkeypatch.setitem(registry, NAME, known.model_copy(update=given))

    return add


@pytest.mark.parametrize(
    ("prompts", "settings", "used"),
    [
        ({}, "", ""),
        ({"STS": "red ", "query": "rose "}, "", "red "),
        ({"STS": "red ", "Retrieval": "this "}, "?task=NFCorpus", "this "),
        ({"query": "rose "}, "", ""),
        ({"query": "rose ", "document": "the "}, "?prompt=query", "rose "),
        ({"query": "rose ", "document": "the "}, "?prompt=document", "the "),
    ],
)
def test_texts_get_the_prompt_of_the_task(register: Any, prompts: dict[str, str], settings: str, used: str) -> None:
    register(model_prompts=prompts)
    encoder = open_encoder(f"mteb:{NAME}{settings}")
    check_encoder(encoder)
    library = import_module("sentence_transformers")
    expected = library.SentenceTransformer(NAME).encode([used + text for text in TEXTS])
    np.testing.assert_allclose(encoder.encode(TEXTS).vectors, expected, atol=1e-5)


def test_a_run_records_model_version_and_task(register: Any) -> None:
    register()
    sets = {"X": ["red", "rose"], "Y": ["this", "is"], "A": ["joy", "the"], "B": ["red rose", "the joy"]}
    run = biassay.run(f"mteb:{NAME}?task=SICK-R", tests=sets, random_sets=0)
    (record,) = run.manifest.models
    assert record.name == f"mteb:{NAME}"
    assert record.revision is not None
    assert record.revision.startswith(f"{NAME} 7, mteb ")
    assert record.settings == {"task": "SICK-R"}
    assert [result.status for result in run.results] == ["measured"]


def test_loaders_that_may_run_code_need_permission(register: Any) -> None:
    register(trust_remote_code=True)
    with pytest.raises(UsageError, match=r"may run code .*tiny/bert\?trust_remote_code=true"):
        open_encoder(f"mteb:{NAME}")
    assert open_encoder(f"mteb:{NAME}?trust_remote_code=true").identity.name == f"mteb:{NAME}"
    with pytest.raises(UsageError, match="send texts to an endpoint"):
        open_encoder("mteb:openai/text-embedding-3-small")
    assert len(get_required_consents(f"mteb:{NAME}?trust_remote_code=true")) == 1


def test_unknown_names_are_explained(register: Any) -> None:
    register()
    with pytest.raises(UnknownNameError, match=r"did you mean 'intfloat/e5-small'.*st:NAME"):
        open_encoder("mteb:intfloat/e5-smal")
    with pytest.raises(UnknownNameError, match="did you mean 'STSBenchmark"):
        open_encoder(f"mteb:{NAME}?task=STSBenchmrk")
    with pytest.raises(UnknownNameError, match="one of none, query, document"):
        open_encoder(f"mteb:{NAME}?prompt=passage")


def test_the_selftest_of_the_backend_passes() -> None:
    assert run_self_test(get_backends()["mteb"]).error == ""
