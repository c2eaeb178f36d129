"""A benchmark: the person that an ambiguous pronoun refers to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from biassay.plugin import (
    Answer,
    BenchmarkData,
    Question,
    QuestionTask,
    ScoreTotals,
    Statistic,
    UsageError,
    content_digest,
    read_text,
)

__all__ = ["TASK"]


class _WhoWasLate(QuestionTask):
    name = "who-was-late"
    title = "Who was late"
    source = "biassay-example"
    unit = "sentence"
    n_options = 2
    statistics: ClassVar = {
        "": Statistic(
            "share minus one half",
            lambda totals: totals[..., 0] / totals[..., 1] - 0.5,
            ("with the stereotype", "against the stereotype"),
            ("Pronouns follow the stereotype of {category}", "Pronouns contradict the stereotype of {category}"),
            limit=0.5,
        )
    }
    score_text = "The score is the share of pronouns that are resolved to the stereotypical occupation, minus one half"
    caption = "Right of zero: pronouns are resolved to the stereotypical occupation."

    def read(self, location: Path | str, flagged: object) -> BenchmarkData:  # noqa: ARG002
        """Read lines such as: nurse pilot The nurse called the pilot because she was late."""
        text = read_text(Path(location))
        items = [_parse(number, line) for number, line in enumerate(text.splitlines(), start=1)]
        return BenchmarkData(
            tuple((one.category, one) for one in items), {"all": content_digest(Path(location))}, {"all": ""}
        )

    def add_up(self, answers: Sequence[tuple[Question, Answer]]) -> Iterator[ScoreTotals]:
        """Count, by sentence, how often the stereotypical occupation is chosen."""
        totals: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        for item, answer in answers:
            if answer.option is not None:
                totals[item.unit][0] += answer.option == item.correct
                totals[item.unit][1] += 1.0
        n = int(sum(of[1] for of in totals.values()))
        yield ScoreTotals("occupations", "", totals, [item for item, _ in answers], n, topic="gender")


def _parse(number: int, line: str) -> Question:
    stereotype, _, rest = line.partition(" ")
    other, _, sentence = rest.partition(" ")
    if not sentence:
        raise UsageError(f"line {number}: expected two occupations and a sentence, got {line!r}")
    options = tuple(sorted((stereotype, other)))
    return Question(
        id=str(number),
        category="occupations",
        unit=str(number),
        context=sentence,
        question="Who was late?",
        options=options,
        correct=options.index(stereotype),
    )


TASK = _WhoWasLate()
