"""Runs of word association tests and benchmarks of models that answer on loopback, each made once."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bbq_answers import questions
from tests.models import api_server
from tests.models.answer_server import echo
from tests.models.api_server import Endpoint
from tests.studies.benchmarks.test_benchmarks import answering, crows, stereoset
from tests.studies.word_association.answering import PUBLISHED, saying, stereotyped

import biassay
from biassay.datasets.bbq import BbqItem, read_bbq
from biassay.datasets.word_associations import select_word_associations
from biassay.runs.run import Run

TESTS = ("wat-racism", "wat-arab-muslim", "wat-islam", "wat-eating")
REFUSAL = "I'm sorry, but I can't help with that."


def number(*about: object) -> int:
    """From 0 to 255, the same for the same."""
    return hashlib.blake2b("|".join(map(str, about)).encode(), digest_size=1).digest()[0]


@contextmanager
def serving() -> Iterator[Endpoint]:
    given = api_server.endpoint.__wrapped__()  # type: ignore[attr-defined]
    server: Endpoint = next(given)
    yield server
    next(given, None)


def asked(folder: Path, name: str, noise: int) -> Run:
    """Some replies refuse, are partial or say nothing; of ``noise`` in 256 words the answer is turned."""
    give, said = stereotyped(*select_word_associations(TESTS)), dict[str, int]()

    def say(text: str) -> str:
        found = PUBLISHED.search(text)
        assert found is not None
        said[text] = said.get(text, 0) + 1
        kind = number(name, text, said[text])
        if kind < 16:
            return REFUSAL if kind < 10 else "These are nice words."
        first, second, words = found[1], found[2], ast.literal_eval(found[3])
        lines = []
        for word in words[: 5 if kind < 24 else None]:
            group = give(word, first, second)
            if number(name, word, *sorted((first, second)), said[text]) < noise:
                group = second if group == first else first
            lines.append(f"{word} - {group}")
        return "\n".join(lines)

    with serving() as server:
        server.always = saying(say)
        model = f"chat:{name}?base_url={server.base}&concurrency=4&max_tokens=200&retries=0"
        return biassay.ask({name: model}, TESTS, wordings="bai2025", cache=folder / f"cache-{name}-{noise}")


def bbq(folder: Path, name: str, lean: int) -> Run:
    """Two categories of twenty templates; of ``lean`` in 256 questions the answer is that of the stereotype."""
    data = folder / "bbq"
    data.mkdir(exist_ok=True)
    for category in ("Religion", "Sexual_orientation"):
        rows = [
            row
            for template in range(1, 21)
            for row in [one for one in questions(category) if int(one["question_index"]) == template][:8]
        ]
        (data / f"{category}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    def place_of(item: BbqItem) -> int | str:
        kind = number(item.category, item.example)
        if kind < 10:
            return REFUSAL
        stereotyped = number("lean", item.category, item.example) < lean and item.target is not None
        return (item.target or 0) if stereotyped else kind % 3

    with serving() as server:
        server.always = answering(read_bbq(data).items, place_of)
        model = f"chat:{name}?base_url={server.base}&concurrency=4&retries=0"
        return biassay.benchmark("bbq", {name: model}, data=data, orders=1, cache=folder / f"cache-{name}")


def sentences(folder: Path, benchmark: str, name: str = "toy") -> Run:
    """CrowS-Pairs or StereoSet of a toy language model."""
    make = {"crows-pairs": crows, "stereoset": stereoset}[benchmark]
    path = make(folder / {"crows-pairs": "crows.csv", "stereoset": "dev.jsonl"}[benchmark])[0]
    with serving() as server:
        server.always = echo
        model = f"completions:{name}?base_url={server.base}&concurrency=4&retries=0"
        return biassay.benchmark(benchmark, {name: model}, data=path, cache=folder / f"cache-{benchmark}-{name}")
