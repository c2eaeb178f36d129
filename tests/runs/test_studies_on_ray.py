"""Every study on a cluster of two nodes, as a user types it: the same files, and the same answers kept, bit for bit."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
from tests.golden.made_inputs import make_inputs
from tests.golden.models import make_models
from tests.models.tiny_models import byte_tokenizer
from tests.ray_cluster import MARKS, cluster_of
from tests.studies.benchmarks.test_real_model import SENTENCES

from biassay.cli import main
from biassay.results.run_folder import read_run_json

pytestmark = [*MARKS, pytest.mark.slow]

MASKED, CAUSAL, LONG = (f"hf:models/{name}?device=cpu" for name in ("masked", "causal", "long"))
CONTEXTS = "--contexts contexts.parquet --tests tests.toml --n-samples 30"
ASKED = "--files own.toml --groups land --groups craft --n-bootstrap 20"
COMMANDS = {
    "run": f"run vectors:one.txt {MASKED} vectors:two.txt {MASKED}&layer=1 --tests tests.toml",
    "ceat": f"run {MASKED} {CAUSAL} {CONTEXTS}",
    "discover": "discover vectors:world.txt --grouping groups.toml --groups red-women --n-permutations 99 --keep 20",
    "stereotypes": f"stereotypes {MASKED} {CAUSAL} {ASKED} --templates mine",
    "ask": f"ask {LONG}&chat=false --tests wat-racism --wordings one-word",
    "benchmark": f"benchmark crows-pairs {LONG} {MASKED} --data crows.csv",
    "robustness": f"robustness {MASKED} --tests tests.toml",
    "audit": f"audit {LONG} --documents reports.txt --query ads.txt --names weat6",
}


def save_long(folder: Path) -> None:
    """A causal model that knows every byte, and reads long prompts."""
    import torch
    import transformers as library

    torch.manual_seed(7)
    tokenizer = byte_tokenizer(special=False, max_length=2048)
    config = library.GPT2Config(
        vocab_size=len(tokenizer), n_embd=16, n_layer=2, n_head=2, n_positions=2048, bos_token_id=2, eos_token_id=2
    )
    library.GPT2LMHeadModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


@pytest.fixture(scope="module")
def place(one_thread: None, tmp_path_factory: pytest.TempPathFactory) -> Path:  # noqa: ARG001
    """A folder with the inputs of all commands."""
    folder = tmp_path_factory.mktemp("place")
    make_inputs(folder)
    make_models(folder / "models")
    save_long(folder / "models" / "long")
    rows = [f'{i},"{f.format(a)}","{f.format(b)}",stereo,{kind},a' for i, (f, a, b, kind) in enumerate(SENTENCES)]
    header = ",sent_more,sent_less,stereo_antistereo,bias_type,anon_writer"
    (folder / "crows.csv").write_text("\n".join([header, *rows]) + "\n")
    lines = "".join(f"{{name}} wrote report {number}\n" for number in range(5))
    (folder / "reports.txt").write_text(lines, encoding="utf-8")
    (folder / "ads.txt").write_text("We look for a person who writes reports.", encoding="utf-8")
    call("contexts corpus.txt --tests tests.toml --abc --files own.toml --out contexts.parquet --workers 1", folder)
    return folder


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with cluster_of([1, 1]) as cluster:
        yield cluster.address


def call(command: str, folder: Path) -> int:
    with chdir(folder), pytest.raises(SystemExit) as end:
        main([*shlex.split(command), "--quiet"])
    return int(end.value.code or 0)


def written(out: Path) -> dict[str, Any]:
    """Tables and arrays of a run."""
    arrays = {path.name: path.read_bytes() for path in sorted((out / "arrays").rglob("*.npz"))}
    return {"tables": read_run_json(out / "results.json")["tables"], "arrays": arrays}


def kept(cache: Path) -> list[str]:
    """Answers are in files that are named by the hash of their content."""
    return sorted(str(path.relative_to(cache)) for path in cache.rglob("*.np[yz]"))


@pytest.mark.parametrize("study", COMMANDS)
def test_a_study_has_the_same_numbers(
    study: str, place: Path, address: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    codes = [
        call(f"{COMMANDS[study]} --out {out} --cache {out}-cache {how}", place)
        for out, how in ((here, ""), (there, f"--engine ray --address {address}"))
    ]
    assert codes[0] == codes[1] < 2
    assert capfd.readouterr().out == ""
    assert json.dumps(written(there)["tables"]) == json.dumps(written(here)["tables"])
    assert written(there)["arrays"] == written(here)["arrays"]
    caches = [kept(Path(f"{out}-cache")) for out in (here, there)]
    assert caches[0] == caches[1]
    assert caches[0]


def test_a_driver_that_is_killed_is_gone_on_with(place: Path, address: str, tmp_path: Path) -> None:
    """A list of models, of which one fails; the driver is killed when it has kept the first answers."""
    listed = [f"m{layer}={MASKED}&layer={layer}" for layer in (0, 1)]
    lines = [*listed, "damaged=vectors:broken.txt", "words=vectors:one.txt", "# the end"]
    (place / "models.txt").write_text("\n".join(lines) + "\n")
    what = "run @models.txt --tests tests.toml"
    assert call(f"{what} --out {tmp_path / 'here'} --cache {tmp_path / 'here-cache'}", place) == 1
    out, cache = tmp_path / "there", tmp_path / "there-cache"
    how = f"--cache {cache} --engine ray --address {address}"
    command = [sys.executable, "-c", "import sys; from biassay.cli import main; main(sys.argv[1:])"]
    driver = subprocess.Popen([*command, *shlex.split(f"{what} --out {out} {how} --quiet")], cwd=place)
    while not list(cache.rglob("*.npz")) and driver.poll() is None:
        time.sleep(0.02)
    driver.kill()
    assert driver.wait() == -signal.SIGKILL
    assert call(f"resume {out} {how}", place) == 1
    assert written(out) == written(tmp_path / "here")
    assert kept(cache) == kept(tmp_path / "here-cache")
    failed = [model["failed"] for model in read_run_json(out / "manifest.json")["models"]]
    assert [why is not None for why in failed] == [False, False, True, False]
