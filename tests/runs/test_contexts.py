"""CEAT from contexts to a run folder: the numbers of biassay.ceat, resumable, the same on every engine."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tests.results.made_runs import stopped

import biassay
from biassay.corpus.contexts import cut_window, read_contexts
from biassay.errors import RunFolderError, UsageError
from biassay.models.registry import open_model
from biassay.runs import fetch
from biassay.runs.api import resume
from biassay.runs.contexts import find_contexts
from biassay.studies.study import derive_seed

from .conftest import WORDS, Heard, write_corpus, write_test_file
from .test_damaged_cache import put_folder

pytestmark = pytest.mark.extras


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("found")
    corpus, test_file = write_corpus(place / "corpus"), write_test_file(place / "own.toml")
    find_contexts(corpus, place / "contexts.parquet", str(test_file), per_stimulus=40, workers=1)
    return place / "contexts.parquet"


@pytest.fixture
def contexts(found: Path, tmp_path: Path) -> Path:
    """A copy of the test's own."""
    return Path(shutil.copy(found, tmp_path))


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "SHARD_ROWS", 64)


def vectors_of(model: str, contexts: Path, words: int | None, dtype: str) -> dict[str, np.ndarray]:
    """Every context encoded by itself, without batches or a store."""
    kept, encoder = read_contexts(contexts), open_model(model, "words")
    encoder.prepare()
    found = {}
    for word in (w for group in WORDS.values() for w in group):
        rows = kept.get_rows(word)
        pairs = [cut_window(t, s, words) for t, s in zip(kept.texts(rows), kept.spans(rows), strict=True)]
        found[word] = np.concatenate([encoder.encode_words([t], [s]).vectors for t, s in pairs]).astype(dtype)
    return found


@pytest.mark.parametrize(("words", "dtype", "tolerance"), [(None, "float32", 1e-4), (9, "float16", 2e-2)])
def test_numbers_are_those_of_ceat_on_the_vectors(
    contexts: Path, tiny_model: str, words: int | None, dtype: str, tolerance: float
) -> None:
    run = biassay.run(tiny_model, contexts=contexts, n_samples=300, window=words, dtype=dtype, seed=5)
    (result,) = run.results
    vectors = vectors_of(tiny_model, contexts, words, dtype)
    who = f"hf {result.model_revision} {result.options}"
    rng = np.random.default_rng(derive_seed(5, "own", "contexts", who))
    kept = read_contexts(contexts)
    documents = [[kept.table["source"].to_pylist()[kept.get_rows(w)] for w in group] for group in WORDS.values()]
    sets = ([vectors[w] for w in group] for group in WORDS.values())
    found = biassay.ceat(*sets, n_samples=300, documents=documents, rng=rng)
    assert result.status == "measured"
    assert result.pooled_effect_size == pytest.approx(found.effect_size, abs=tolerance)
    assert result.pooled_standard_error == pytest.approx(found.standard_error, abs=tolerance)
    assert result.fixed_words_p_value == pytest.approx(found.p_value_by_word, abs=0.1)
    assert run.arrays["0/own/samples"] == pytest.approx(found.samples, abs=10 * tolerance)
    assert result.num_contexts["X"]["John"] == 40
    predicted = (result.new_contexts_low, result.new_contexts_high)
    assert predicted == pytest.approx(found.prediction_interval, abs=10 * tolerance)
    assert (result.num_targ1, result.num_attr2, result.level) == (4, 4, "context")


@pytest.mark.parametrize("damage", ["flipped", "truncated", "empty", "folder", "deleted", "unreadable"])
def test_damaged_shards_are_encoded_again(contexts: Path, tiny_model: str, tmp_path: Path, damage: str) -> None:
    first = biassay.run(tiny_model, contexts=contexts, n_samples=100, cache=tmp_path / "cache")
    shards = sorted((tmp_path / "cache" / "contexts").rglob("*.npy"))
    content = shards[1].read_bytes()
    if damage == "folder":
        put_folder(shards[1])
    elif damage == "deleted":
        shards[1].unlink()
    elif damage == "unreadable":
        shards[1].chmod(0)
    else:
        flipped = content[:-3] + bytes([content[-3] ^ 1]) + content[-2:]
        shards[1].write_bytes({"flipped": flipped, "truncated": content[:-1], "empty": b""}[damage])
    heard = Heard()
    again = biassay.run(tiny_model, contexts=contexts, n_samples=100, cache=tmp_path / "cache", listener=heard)
    assert again.tables == first.tables
    told = [notice for notice in heard.notices if "damaged" in notice]
    whole = damage == "deleted" or (damage == "unreadable" and os.access(shards[1], os.R_OK))
    assert told == ([] if whole else ["removed a damaged cache file; the contents are computed again"])
    assert sorted((tmp_path / "cache" / "contexts").rglob("*.npy")) == shards


def test_contexts_of_one_document_predict_no_others(tiny_model: str, test_file: Path, tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus")
    found = {}
    for name in ("own", "one"):
        if name == "one":
            lines = [line for file in sorted(corpus.iterdir()) for line in file.read_text().splitlines()]
            text = " ".join(json.loads(line)["body"] for line in lines)
            shutil.rmtree(corpus)
            corpus.mkdir()
            (corpus / "one.jsonl").write_text(json.dumps({"body": text}) + "\n")
        place = tmp_path / f"{name}.parquet"
        find_contexts(corpus, place, str(test_file), per_stimulus=20, workers=1)
        found[name] = biassay.run(tiny_model, contexts=place, n_samples=100).results[0]
    assert found["own"].fewest_documents > 1
    assert found["own"].new_contexts_low < found["own"].new_contexts_high
    assert (found["one"].fewest_documents, found["one"].new_contexts_low, found["one"].new_contexts_high) == (
        1,
        None,
        None,
    )


def test_a_store_of_another_model_or_setting_is_refused(
    contexts: Path, tiny_model: str, other_model: str, tmp_path: Path
) -> None:
    biassay.run(tiny_model, contexts=contexts, n_samples=50, vectors=tmp_path / "vectors")
    biassay.run(tiny_model, contexts=contexts, n_samples=60, vectors=tmp_path / "vectors")
    (folder,) = (tmp_path / "vectors").iterdir()
    for settings in ({"window": 5}, {"dtype": "float32"}):
        with pytest.raises(RunFolderError, match=r"window|dtype"):
            biassay.run(tiny_model, contexts=contexts, n_samples=50, vectors=tmp_path / "vectors", **settings)
    folder.rename(folder.with_name(other_model.replace("/", "-").replace(":", "-").replace("--", "-")))
    with pytest.raises(RunFolderError, match="revision"):
        biassay.run(other_model, contexts=contexts, n_samples=50, vectors=tmp_path / "vectors")


def test_a_killed_embedding_goes_on(contexts: Path, tiny_model: str, tmp_path: Path) -> None:
    whole = biassay.run(tiny_model, contexts=contexts, n_samples=100, cache=tmp_path / "elsewhere")
    script = (
        "import time, biassay; from biassay.runs import fetch as e\n"
        "e.SHARD_ROWS = 64; write = e.ShardStore.write\n"
        "e.ShardStore.write = lambda self, n, v: (write(self, n, v), time.sleep(0.3))[0]\n"
        f"biassay.run({tiny_model!r}, contexts={str(contexts)!r}, n_samples=100, out={str(tmp_path / 'run')!r})\n"
    )
    store = Path(os.environ["BIASSAY_CACHE"]) / "contexts"
    with subprocess.Popen([sys.executable, "-c", script]) as process:
        deadline = time.monotonic() + 120.0
        while len(list(store.glob("*/*.npy"))) < 3:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGKILL)
    run = resume(tmp_path / "run")
    assert run.results == whole.results
    assert 0 < run.manifest.models[0].encoded <= 640 - 3 * 40


def test_tests_without_contexts_are_refused_and_not_encoded(contexts: Path, tiny_model: str) -> None:
    with pytest.raises(UsageError, match="C1"):
        biassay.run(tiny_model, tests=["C6", "C1"], contexts=contexts, n_samples=50)
    run = biassay.run(tiny_model, tests=["C6"], contexts=contexts, n_samples=50)
    assert [r.status for r in run.results] == ["skipped"]
    assert run.manifest.models[0].encoded == 0


def test_resume_refuses_other_contexts(
    contexts: Path, tiny_model: str, corpus: Path, test_file: Path, tmp_path: Path
) -> None:
    run = biassay.run(tiny_model, contexts=contexts, n_samples=50)
    stopped(run).save(tmp_path / "run")
    contexts.unlink()
    find_contexts(corpus, contexts, str(test_file), per_stimulus=30, workers=1)
    with pytest.raises(UsageError, match="have changed since the run began"):
        resume(tmp_path / "run")
    assert run.manifest.status == "complete"
