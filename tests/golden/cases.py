"""The golden runs: commands as a user types them, in a folder that holds the inputs."""

from __future__ import annotations

from dataclasses import dataclass

from .tables import Tolerance

# Without torch numbers differ by the order in which float64 is summed. With it by float32: instructions of another CPU
# change the sixth digit of a log-probability, and differences of these, and of cosines, have fewer digits left. Inputs
# are such that no rank, count or threshold is as near.
EXACT = Tolerance(relative=1e-9, absolute=1e-12, digits=12)
SINGLE = Tolerance(relative=1e-4, absolute=1e-5, digits=8)


@dataclass(frozen=True)
class Stop:
    """A run is stopped, as by Ctrl-C, when it first says how far a step of a model is; then it goes on by a command.

    ``{out}`` is the folder of the run.
    """

    step: str
    model: str
    then: str


@dataclass(frozen=True)
class Case:
    """A command, and what is recorded of it.

    ``refused`` are commands that end with an error: their exit codes are recorded. ``needs`` are cases whose folders
    the command reads. ``same_as`` names the case whose numbers this one must have, so that nothing is recorded of it.
    """

    name: str
    command: str
    refused: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    stop: Stop | None = None
    same_as: str | None = None
    extras: bool = False

    @property
    def tolerance(self) -> Tolerance:
        return SINGLE if self.extras else EXACT


_OWN = "--tests tests.toml,templates.toml,finished.json"
_RUN = f"run vectors:one.txt vectors:two.txt?case=fold {_OWN}"
_CATALOGUE = "weat1,weat6,C9,I3,sent-weat5b,sent-weat8,heilman_double_bind_likable_1"

RUN = (
    Case("run-exact", _RUN, refused=(f"run vectors:broken.txt {_OWN}",)),
    Case("run-catalogue", f"run glove --tests {_CATALOGUE}"),
    Case(
        "run-may2019", "run vectors:one.txt glove --tests tests.toml,templates.toml,weat6 --protocol may2019 --seed 3"
    ),
    Case(
        "run-caliskan2017",
        "run vectors:one.txt --tests tests.toml,templates.toml --protocol caliskan2017 --alternative two-sided",
    ),
    Case(
        "run-killed",
        _RUN,
        stop=Stop("tests", "vectors:two.txt?case=fold", "run --resume {out}"),
        same_as="run-exact",
    ),
    Case(
        "report-run",
        "report run-exact run-catalogue --tests plain,lost,sent*,weat6",
        needs=("run-exact", "run-catalogue"),
    ),
    Case("compare-run", "compare run-exact", needs=("run-exact",)),
)

_MASKED, _CAUSAL = "hf:models/masked?device=cpu", "hf:models/causal?device=cpu"
_LOWEST = f"{_CAUSAL}&layer=0"
_CONTEXTS = "--contexts contexts.parquet --tests tests.toml --n-samples 30"
_RANDOM = f"run {_MASKED} {_CAUSAL} {_CONTEXTS} --dtype float32"
_FIXED = f"run {_MASKED} {_LOWEST} {_CONTEXTS} --dtype float32 --mode fixed --seed 2"

CEAT = (
    Case("ceat-random", _RANDOM, extras=True),
    Case("ceat-fixed", _FIXED, extras=True),
    Case("ceat-window", f"run {_MASKED}&word=first {_CONTEXTS} --window 9 --dtype float32", extras=True),
    # In half precision another last digit of float32 may be rounded to another number, but not of these few bits.
    Case("ceat-half", f"run {_LOWEST}&word=mean {_CONTEXTS}", extras=True),
    Case(
        "ceat-random-killed",
        _RANDOM,
        stop=Stop("tests", _CAUSAL, "run --resume {out}"),
        same_as="ceat-random",
        extras=True,
    ),
    Case(
        "ceat-fixed-killed",
        _FIXED,
        stop=Stop("tests", _LOWEST, "run --resume {out}"),
        same_as="ceat-fixed",
        extras=True,
    ),
    Case("report-ceat", "report ceat-random", needs=("ceat-random",), same_as="ceat-random", extras=True),
    Case("compare-ceat", "compare ceat-fixed", needs=("ceat-fixed",), extras=True),
)

_GROUPS = "--grouping groups.toml --groups red-women --groups blue-men --n-permutations 199 --keep 20"
_WORLD = f"discover vectors:world.txt {_GROUPS}"

DISCOVER = (
    Case("discover-embedded", "discover glove --groups african-american-females --n-permutations 99 --keep 20"),
    Case(
        "discover-words", f"discover vectors:other.txt {_GROUPS} --words words.txt --compare every --rule all --seed 1"
    ),
    Case(
        "discover-vectors",
        _WORLD,
        refused=(f"{_WORLD} --max-unknown 0.1", f"discover vectors:broken.txt {_GROUPS}"),
    ),
    Case(
        "discover-killed",
        _WORLD,
        stop=Stop("bytes", "vectors:world.txt", "resume {out}"),
        same_as="discover-vectors",
    ),
    Case("report-discover", "report discover-vectors", needs=("discover-vectors",), same_as="discover-vectors"),
    Case(
        "compare-discover",
        "compare discover-vectors discover-words --mixed",
        needs=("discover-vectors", "discover-words"),
    ),
)

_ASKED = "--files own.toml --groups land --groups craft --n-bootstrap 20"
_PEOPLE = "--human people.json --annotators Gender=Woman"
_TWO = f"stereotypes {_MASKED} {_CAUSAL} {_ASKED} {_PEOPLE} --templates mine"
_IN_CONTEXTS = f"{_ASKED} --measures ceat --contexts contexts.parquet"

STEREOTYPES = (
    Case(
        "stereotypes-people",
        _TWO,
        refused=(
            f"stereotypes {_CAUSAL} {_ASKED} --templates own-first",
            f"stereotypes {_MASKED} {_IN_CONTEXTS} --min-contexts 50",
        ),
        extras=True,
    ),
    Case(
        "stereotypes-word",
        f"stereotypes {_MASKED} {_ASKED} --templates own-that --prior word --variant cao2022-code --all-adjectives",
        extras=True,
    ),
    Case("stereotypes-ceat", f"stereotypes {_MASKED} {_CAUSAL} {_IN_CONTEXTS} {_PEOPLE}", extras=True),
    Case(
        "stereotypes-pairs",
        f"stereotypes {_MASKED} {_ASKED} {_PEOPLE} --templates own-that --templates own-many --measures ilps "
        "--intersections",
        extras=True,
    ),
    Case(
        "stereotypes-killed",
        _TWO,
        stop=Stop("blanks", _CAUSAL, "resume {out}"),
        same_as="stereotypes-people",
        extras=True,
    ),
    Case(
        "report-stereotypes",
        "report stereotypes-people",
        needs=("stereotypes-people",),
        same_as="stereotypes-people",
        extras=True,
    ),
    Case("compare-stereotypes", "compare stereotypes-people", needs=("stereotypes-people",), extras=True),
)

CASES = {case.name: case for case in (*RUN, *CEAT, *DISCOVER, *STEREOTYPES)}
