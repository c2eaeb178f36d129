"""The test whose contexts the tests of ``biassay run --contexts`` embed."""

from __future__ import annotations

import json
from pathlib import Path

WORDS = {
    "X": ["John", "Paul", "Mike", "Kevin"],
    "Y": ["Amy", "Joan", "Lisa", "Sarah"],
    "A": ["office", "salary", "business", "career"],
    "B": ["home", "wedding", "family", "children"],
}
EACH = 8


def write_test(path: Path, words: dict[str, list[str]]) -> Path:
    concepts = "".join(
        f'[concepts.{role}]\nlabel = "{role}"\nwords = {json.dumps(given)}\n' for role, given in words.items()
    )
    roles = "".join(f'{role} = "{role}"\n' for role in words)
    path.write_text(f'{concepts}[tests.{path.stem}]\ntitle = "Names, work or home"\n{roles}')
    return path
