"""Audit of 5,000 texts of 300 words: scoring by all outcomes, a judge, and the report, from cached responses.

python benchmarks/writing.py [--kill 20]

A server on loopback writes the texts and judges them. Times are CPU seconds of one process for a repeated command, with
all responses in the cache: measuring without the report, and the report alone. With --kill, audits of 128 texts and
their judgements are killed by signal 9 at a random moment instead, and repeated.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from tests.docs_endpoint import serve_models
from tests.models.answer_server import body
from tests.models.api_server import Asked, Reply

import biassay
from biassay.datasets.names import load_names
from biassay.models.word_vectors import frequent_words

WORDS, OUTCOMES = 300, ("length", "sentiment", "readability", "misgendering", "ability", "agentic", "communal")
MORE = ("feminine", "grindstone", "hedging", "masculine", "standout")
VOCABULARY = frequent_words()[:3000]


def respond(asked: Asked) -> Reply:
    prompt = str(asked["messages"][-1]["content"])
    rng = random.Random(f"{prompt} {asked.get('seed')}")
    sentences = (" ".join(rng.choices(VOCABULARY, k=15)) for _ in range(WORDS // 15))
    text = str(rng.randint(1, 7)) if "</text>" in prompt else ". ".join(sentences)
    return body({"index": 0, "finish_reason": "stop", "message": {"content": text}})


def kill_audits(trials: int) -> None:
    """Kill audits at random moments, repeat them, and count the requests that were sent twice."""
    seen: list[str] = []

    def respond_slowly(asked: Asked) -> Reply:
        seen.append(json.dumps(asked, sort_keys=True))
        time.sleep(0.005)
        return respond(asked)

    with tempfile.TemporaryDirectory() as folder, serve_models(respond_slowly) as url:
        os.chdir(folder)
        lines = [f"{entry.name},group {i % 2}" for i, entry in enumerate(load_names("bertrand2004").names[:16])]
        Path("names.csv").write_text("\n".join(["name,group", *lines]))
        model = f"chat:{{}}?base_url={url}&concurrency=8&seed=1&max_tokens=50"
        command = [sys.executable, "-m", "biassay", "audit", model.format("writer"), "--names", "names.csv", "--quiet"]
        command += ["--prompts", "recommendation-letter", "--n-responses", "1", "--judge", model.format("judge")]
        command += ["--outcome", "length,judge:warmth"]
        env = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1] / "src")}

        def start(cache: str, out: str) -> subprocess.Popen[bytes]:
            return subprocess.Popen([*command, "--cache", cache, "--out", out], env=env)

        assert start("whole", "expected").wait() == 0
        expected, n, twice, equal, killed = biassay.load("expected").results, len(seen), [], 0, 0
        assert len(set(seen)) == n
        for trial in range(trials):
            seen.clear()
            moment = random.Random(trial).randint(1, n)
            process = start(f"cache{trial}", f"killed{trial}")
            while process.poll() is None and len(seen) < moment:
                time.sleep(0.0002)
            process.send_signal(signal.SIGKILL)
            killed += process.wait() == -signal.SIGKILL
            time.sleep(0.2)  # for responses under way
            assert start(f"cache{trial}", f"again{trial}").wait() == 0
            times = Counter(seen)
            assert len(times) == n
            twice.append(times.total() - n)
            equal += biassay.load(f"again{trial}").results == expected
        print(f"{killed} of {trials} audits with {n} requests on 8 connections killed;", end=" ")
        print(f"sent twice: at most {max(twice)}, {sum(twice) / trials:.1f} on average; equal results: {equal}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kill", type=int, metavar="TRIALS")
    trials = parser.parse_args().kill
    if trials:
        kill_audits(trials)
        return
    with tempfile.TemporaryDirectory() as folder, serve_models(respond) as url:
        os.chdir(folder)
        names = [entry.name for entry in load_names("census2020").names][:126]
        lines = [f"{name},group {i % 2},{name}" for i, name in enumerate(dict.fromkeys(names))][:125]
        Path("names.csv").write_text("\n".join(["name,group,unit", *lines]))
        model = f"chat:{{}}?base_url={url}&concurrency=16&seed=1"
        for outcomes, judge in (((*OUTCOMES, *MORE), None), (("judge:warmth",), model.format("judge"))):
            for attempt in ("fetching", "from the cache"):
                for measured in Path("cache").glob("measured/*/*"):
                    measured.unlink() if measured.is_file() else None
                began = time.process_time()
                run = biassay.audit(
                    model.format("writer"),
                    prompts="recommendation-letter",
                    names="names.csv",
                    outcome=outcomes,
                    judge=judge,
                    cache="cache",
                )
                scored = time.process_time() - began
                if attempt == "fetching":
                    continue
                began = time.process_time()
                run.report("report.html")
                took, size = time.process_time() - began, Path("report.html").stat().st_size
                texts = len(run.tables["texts"])
                print(
                    f"{texts:,} texts, {len(outcomes)} outcomes ({outcomes[0]} ...): scored in {scored:.1f} s,", end=" "
                )
                print(f"report in {took:.1f} s and {size / 1e6:.1f} MB", flush=True)


if __name__ == "__main__":
    main()
