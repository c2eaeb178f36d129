"""The inputs of golden runs, the same bits on every machine: files as they lie in `inputs`, and what is made here.

Vectors, weights and ratings are fractions with few bits, from bytes of a hash: no generator of random numbers and no
rounding stands between a name and its numbers. A model is known by the content of its files, and CEAT draws contexts by
it, so that a model's files hold nothing that a library would write of itself.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

SHIPPED = Path(__file__).parent / "inputs"
LISTS = {name: text.split() for name, text in tomllib.loads((SHIPPED / "lists.toml").read_text("utf-8")).items()}
GROUPS = {"rw": ("red", "women"), "rm": ("red", "men"), "bw": ("blue", "women"), "bm": ("blue", "men")}
PLANTED = {"blossom": "rw", "crimson": "red", "hammer": "bm"}


def fractions(name: str, *shape: int) -> NDArray[np.float32]:
    """Numbers between -1 and 1 that follow from a name: odd multiples of 1/256."""
    content = hashlib.shake_128(name.encode()).digest(int(np.prod(shape)))
    return ((2.0 * np.frombuffer(content, np.uint8) - 255.0) / 256.0).astype(np.float32).reshape(shape)


def make_inputs(folder: Path) -> None:
    """Everything that needs no extra."""
    shutil.copytree(SHIPPED, folder, dirs_exist_ok=True)
    for name, fold in (("one.txt", False), ("two.txt", True)):
        _write_vectors(folder / name, _words(name, fold=fold))
    for name in ("world.txt", "other.txt"):
        _write_vectors(folder / name, _world(name))
    _write_vectors(folder / "broken.txt", _world("broken.txt") | dict.fromkeys(("any0", "John"), np.zeros(24)))
    (folder / "people.json").write_text(json.dumps(_people()), encoding="utf-8")
    (folder / "corpus.txt").write_text("\n".join(_sentences()), encoding="utf-8")


def _write_vectors(path: Path, table: dict[str, Any]) -> None:
    lines = (f"{word} {' '.join(repr(float(x)) for x in vector)}\n" for word, vector in table.items())
    path.write_text("".join(lines), encoding="utf-8")


def _words(salt: str, *, fold: bool) -> dict[str, Any]:
    """Names, and words that the first six names are nearer to than the others; some words alike."""
    names, work, house, frame = (LISTS[name] for name in ("names", "work", "house", "frame"))
    lean = dict.fromkeys((*names[:6], *work), 0.1875) | dict.fromkeys((*names[6:], *house), -0.1875)
    table = {word: fractions(f"{salt} {word}", 12) + lean.get(word, 0.0) for word in (*names, *work, *house, *frame)}
    table |= dict.fromkeys(LISTS["alike"], fractions(f"{salt} alike", 12))
    return {word.lower() if fold else word: vector for word, vector in table.items()}


def _world(salt: str) -> dict[str, Any]:
    """Names share directions by colour, gender and group; planted words point there, ``even`` points away from all."""
    axis = dict(zip(("all", "red", "blue", "women", "men", *GROUPS, "none"), np.eye(24), strict=False))
    noise = np.arange(24) >= len(axis)  # where only noise is

    def name(group: str, colour: str, gender: str, salted: str) -> Any:
        return axis["all"] + (axis[colour] + axis[gender]) / 2 + axis[group] + fractions(salted, 24) / 4 * noise

    known = [(group, i) for group in GROUPS for i in range(8) if (group, i) not in (("rw", 0), ("rw", 1))]
    table = {f"{group}{i}": name(group, *GROUPS[group], f"{salt} {group}{i}") for group, i in known}
    planted = [(word, to, i) for word, to in PLANTED.items() for i in range(4)]
    table |= {f"{word}{i}": axis[to] / 2 + fractions(f"{salt} {word}{i}", 24) / 2 for word, to, i in planted}
    table |= {f"any{i}": fractions(f"{salt} any{i}", 24) * noise for i in range(24)}
    return table | {"even": axis["none"]}


def _people() -> dict[str, Any]:
    """Ratings by six people of two kinds, of five groups and of one that nobody asks about."""
    groups = ("northerners", "southerners", "easterners", "smiths", "bakers", "average people")
    pairs = [pair.replace("~", " ") for pair in LISTS["rated"]]

    def rated(who: str) -> dict[str, dict[str, int]]:
        return {g: {p: int(abs(100 * fractions(f"{who} {g} {p}", 1)[0])) for p in pairs} for g in groups}

    return {f"p{i}": {**rated(f"p{i}"), "demographics": {"Gender": ("Woman", "Man")[i % 2]}} for i in range(6)}


def _sentences() -> list[str]:
    """Six contexts of every word; fewer of a name, a trait and a group, none of likable and of two names."""
    words = [word for name in ("names", "work", "house", "alike", "forms", "sought") for word in LISTS[name]]
    words += [f"{land} people" for land in LISTS["lands"]] + ["hearth", "Zenobia", "hermit"]
    few = {"Zenobia": 2, "repellent": 2, "hermit": 3}
    return [_sentence(word, i) for word in words for i in range(few.get(word, 6))]


def _sentence(word: str, number: int) -> str:
    places = hashlib.shake_128(f"{word} {number}".encode()).digest(7)
    chosen = [LISTS["fillers"][place % len(LISTS["fillers"])] for place in places]
    return f"So {' '.join(chosen[:4])} {word} {' '.join(chosen[4:])} {number}."
