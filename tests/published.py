"""Published test files, known by the digests of their words and sentences."""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

from biassay.datasets.catalogue import load_catalogue
from biassay.datasets.schema import ROLES
from biassay.prompts.sentences import make_texts

KEYS = dict(zip(ROLES, ("targ1", "targ2", "attr1", "attr2"), strict=True))


def published_digests(reference: Path) -> dict[str, Any]:
    """File -> targ1, targ2, attr1 or attr2 -> category, and a digest of every example."""
    found: dict[str, Any] = json.loads((reference / "sent_bias_tests" / "digests.json").read_text())
    return found


def digests(texts: Iterable[str]) -> list[str]:
    return [sha256(text.encode()).hexdigest()[:12] for text in texts]


def rebuilt(name: str, published: dict[str, Any]) -> dict[str, Any]:
    """The content of a published file, put together from our texts with the digests of its own."""
    ours = make_texts(load_catalogue().tests[name])
    content = {}
    for role, key in KEYS.items():
        texts = [text.text for text in ours.role(role)]
        known = dict(zip(digests(texts), texts, strict=True))
        wanted = published[key]["examples"]
        lost = [digest for digest in wanted if digest not in known]
        strange = [text for digest, text in known.items() if digest not in wanted]
        assert not lost, f"{name}, {key}: {len(lost)} published texts are not made; not published: {strange}"
        content[key] = {"category": published[key]["category"], "examples": [known[digest] for digest in wanted]}
    return content
