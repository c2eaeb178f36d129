"""Write docs/replications.md, which compares biassay with papers and released code, from tests/reference.

It needs `biassay[hf]`: python scripts/replications.py

With the folder of a full release, the script prints the tables of released responses instead:
python scripts/replications.py --word-associations FOLDER (NAME.csv), --bbq FOLDER (preds_CATEGORY.jsonl)
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import biassay
from biassay.datasets.schema import ROLES

sys.path.insert(0, str(Path(__file__).resolve().parent))

import released_answers

ROOT = Path(__file__).resolve().parents[1]
PAGE, REFERENCE = ROOT / "docs" / "replications.md", ROOT / "tests" / "reference"
BEGIN, END = "<!-- figures: scripts/replications.py -->\n", "<!-- end of figures -->\n"

# d in Table 1 of Caliskan et al. 2017, of WEAT 1 to 10, and of CBoW on words in Table 4 of May et al. 2019.
CALISKAN = (1.50, 1.53, 1.41, 1.50, 1.28, 1.81, 1.06, 1.24, 1.38, 1.21)
MAY = {"weat1": 1.50, "weat3": 1.41, "weat6": 1.81}


class Compared(NamedTuple):
    """Comparison of biassay with released code: number of values and largest difference."""

    what: str
    code: str
    numbers: int
    difference: float


def expected(folder: str) -> Any:
    return json.loads((REFERENCE / folder / "expected.json").read_text(encoding="utf-8"))


def published() -> str:
    """Make a table of the ten tests of Caliskan et al. on the 300-dimensional GloVe vectors that they used."""
    folder = REFERENCE / "glove840b_caliskan"
    words = (folder / "words.txt").read_text(encoding="utf-8").splitlines()
    vectors = dict(zip(words, np.load(folder / "vectors.npy"), strict=True))
    head = "| test | Caliskan et al. | May et al. | biassay | p (these words only) | p |"
    lines = [head, "|---|---|---|---|---|---|"]
    for number, printed in enumerate(CALISKAN, 1):
        (test,) = biassay.select_tests(f"weat{number}")
        found = biassay.weat(*([vectors[word] for word in test.concept(role).words] for role in ROLES))
        in_may = f"{MAY[test.name]:.2f}" if test.name in MAY else ""
        ours = f"{found.effect_size:.3f} | {found.p_value:.1e} | {found.crossed.p_value:.1e}"
        lines.append(f"| {test.title} (`{test.name}`) | {printed:.2f} | {in_may} | {ours} |")
    return "\n".join(lines)


def released() -> Iterator[Compared]:
    yield from _weat()
    yield from _ceat()
    yield from _ibd()
    yield from _blanks()
    yield from (Compared(*found) for found in released_answers.compared())


def _weat() -> Iterator[Compared]:
    sizes, tails = [], []
    for name, values in expected("weat").items():
        with np.load(REFERENCE / "weat" / f"{name}.npz") as case:
            found = biassay.weat(*(case[key] for key in ROLES))
        sizes.append(abs(found.effect_size - values["effect_size"]))
        tails.append(abs(found.p_value / values["exact"]["p_ge"] - 1))
    yield Compared("WEAT: effect sizes", "sent-bias, `weat.py`", len(sizes), max(sizes))
    counted = "exact enumeration; sent-bias if it enumerates"
    yield Compared("WEAT: p-values (relative)", counted, len(tails), max(tails))


def _ceat() -> Iterator[Compared]:
    draws, pooled = [], []
    for name, values in expected("ceat").items():
        with np.load(REFERENCE / "ceat" / f"{name}.npz") as case:
            rows = np.split(case["vectors"], np.cumsum(case["pool_sizes"])[:-1])
            sizes = case["set_sizes"]
            sets = [rows[end - size : end] for size, end in zip(sizes, np.cumsum(sizes), strict=True)]
            found = biassay.ceat(*sets, draws=case["index_table"], rng=0)
            draws.append(np.abs(found.samples - case["effect_sizes"]))
        pooled += [abs(found.effect_size - values["released"]["CES"])]
    yield Compared("CEAT: effect sizes of samples", "CEAT, `ceat.py`", sum(map(len, draws)), max(map(np.max, draws)))
    yield Compared("CEAT: pooled effects", "CEAT, `ceat.py`", len(pooled), max(pooled))


def _ibd() -> Iterator[Compared]:
    values = expected("ibd")
    with np.load(REFERENCE / "ibd" / "vectors.npz") as arrays:
        names = {name: arrays[name] for name in arrays.files}
    with np.load(REFERENCE / "ibd" / "scores.npz") as arrays:
        scores = {name: arrays[name] for name in arrays.files}
    words = names.pop("words")
    gaps, wrong, sets = [], 0, 0
    for target in ("AF", "LF"):
        pairs = values["pairs"]["intersectional"][target]
        others = [names[pair.split("-")[1]] for pair in pairs]
        for threshold, detected in values["detected"].items():
            found = biassay.ibd(words, names[target], others, threshold=float(threshold))
            listed = [f"w{i:02d}" for i in np.flatnonzero(found.detected)]
            wrong, sets = wrong + (listed != detected[target]["IBD"]), sets + 1
        gaps.append(np.abs(found.scores - np.stack([scores[pair] for pair in pairs], axis=1)))
    yield Compared("IBD: scores of words", "CEAT, `ibd.py`", sum(map(np.size, gaps)), max(map(np.max, gaps)))
    yield Compared("IBD: word sets that differ", "CEAT, `ibd.py`, corrected", sets, wrong)


def _blanks() -> Iterator[Compared]:
    """Compare ILPS, ILPS* and SeT with the released functions on tiny masked models and a prior word."""
    found: dict[str, list[NDArray[np.float64]]] = {"ilps": [], "ilps_star": [], "set": []}
    content = expected("masked_lm")
    for name, of_model in content["models"].items():
        ours = _Filled(name, [word for trait in content["trait_order"] for word in content["traits"][trait]])
        firsts = np.cumsum([0, *(len(content["traits"][trait]) for trait in content["trait_order"][:-1])])
        for template, values in zip(content["templates"], of_model["scores"], strict=True):
            for group in template["groups"]:
                for measure, gaps in found.items():
                    scores = ours.scores(template, group, measure.replace("_", "-"))[firsts]
                    gaps.append(np.abs(scores - np.array(values[measure]["one"][group])))
    for measure, gaps in found.items():
        label = {"ilps": "ILPS", "ilps_star": "ILPS*", "set": "SeT, as in the code"}[measure]
        yield Compared(f"{label}: scores of traits", "U.S_Stereotypes", sum(map(len, gaps)), max(map(np.max, gaps)))


class _Filled:
    """A tiny model with cached scores of all adjectives per sentence."""

    def __init__(self, name: str, adjectives: list[str]) -> None:
        from biassay.models.registry import open_model

        self.model = open_model(f"hf:{REFERENCE / 'masked_lm' / name}", "blanks")
        self.adjectives = adjectives
        self.kept: dict[str, Any] = {}

    def pieces(self, text: str) -> Any:
        from biassay.prompts.requests import Blank, Slot
        from biassay.studies.stereotypes.ilps import WordPieces

        if text not in self.kept:
            segments = (Slot.BLANK if part == "<mask>" else part for part in re.split("(<mask>)", text) if part)
            (filled,) = self.model.fill([Blank(tuple(segments), tuple(self.adjectives))])
            self.kept[text] = WordPieces.from_columns(filled.columns, filled.starts)
        return self.kept[text]

    def scores(self, template: dict[str, Any], group: str, measure: Any) -> NDArray[np.float64]:
        from biassay.studies.stereotypes.ilps import score_words

        own, prior = (self.pieces(template["template"].replace("<group>", g)) for g in (group, template["prior_group"]))
        return np.asarray(score_words(own, prior, measure, "cao2022-code"))


def figures() -> str:
    """Make all tables; differences are shown as bounds, which do not depend on the machine."""
    lines = ["| quantity | released code | numbers compared | largest difference |", "|---|---|---|---|"]
    lines += [f"| {c.what} | {c.code} | {c.numbers:,} | {_below(c.difference)} |" for c in released()]
    parts = {
        "Word associations of GPT-4o": released_answers.word_associations(),
        "BBQ, responses of UnifiedQA 11B": released_answers.bbq(),
        "Released code and responses": "\n".join(lines),
    }
    return "\n\n".join([published(), *(f"### {title}\n\n{table}" for title, table in parts.items())])


def _below(difference: float) -> str:
    if difference == 0:
        return "0"
    limit = next(limit for limit in (1e-9, 1e-6, 1e-3, np.inf) if difference < limit)
    return f"below {limit:.0e}".replace("e-0", "e-")


def with_figures(page: str) -> str:
    """Insert the figures between the markers of the page."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n{figures()}\n\n{END}{rest.partition(END)[2]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--word-associations", type=Path, metavar="FOLDER")
    parser.add_argument("--bbq", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    if options.word_associations:
        print(released_answers.word_associations(options.word_associations))
    if options.bbq:
        print(released_answers.bbq(options.bbq))
    if not options.word_associations and not options.bbq:
        PAGE.write_text(with_figures(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
