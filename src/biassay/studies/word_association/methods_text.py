"""How word association tests were made, in sentences for a paper."""

from __future__ import annotations

from collections.abc import Iterator

from biassay.pages.formats import counted, percent
from biassay.pages.publish.methods import Sentence, listed, models_text, seeds
from biassay.pages.publish.model_card import version_of
from biassay.results.data import RunData
from biassay.stimuli.word_associations import Form, select_wordings

__all__ = ["sentences_of"]

_UNITS = {
    "share": "the share of answers in which a word is given to the stigmatised group",
    "log-odds": "the log-odds of the two group words behind the prompt",
}
_CLAIMS = {
    "pairs": "other words and other pairs of group words, as crossed samples",
    "answers": "other words and other answers, as crossed samples, where there is one pair of group words",
    "words": "other words, by exact permutation, where there is one pair of group words",
}


def sentences_of(run: RunData, sources: tuple[str, ...]) -> Iterator[Sentence]:
    """Which tests on which models, what was asked, and how it was tested."""
    rows, settings = run.results, run.manifest.settings
    tests = list(dict.fromkeys(row.test for row in rows))
    yield Sentence(
        f"With biassay {version_of(run)} we gave {counted(len(tests), 'word association test')} ({listed(tests)}) to "
        f"{models_text(run)}",
        ("biassay", "bai2025", *sources),
    )
    wordings = listed(list(_wordings(run)))
    asked = f"Prompts name two group words and attribute words of both poles, in the wordings {wordings}"
    by_reply = any(row.unit == "share" for row in rows)
    each = f"; each test was asked {settings.n_answers:,} times" if by_reply else ""
    yield Sentence(f"{asked}, balanced over the orders of the group words{each}")
    units = [_UNITS[unit] for unit in dict.fromkeys(row.unit for row in rows)]
    yield Sentence(
        f"The effect is the mean over negative words less that over positive ones of {listed(units or ['nothing'])}"
    )
    claims = [_CLAIMS[claim] for claim in dict.fromkeys(row.claim for row in rows if row.claim)]
    if claims:
        yield Sentence(
            f"Two-sided p-values and intervals of {percent(1.0 - settings.alpha)} hold for {'; '.join(claims)}; no "
            "p-value is below the exact ones by words exchanged between the poles and, up to 16 pairs or blocks of "
            "answers, by flipped signs",
            ("clark1973", "judd2012", "satterthwaite1946"),
        )
    if any(row.p_value_holm is not None for row in rows):
        yield Sentence(
            "p-values were corrected over the social-bias tests of a model that are not descriptive by Holm's method, "
            "with Tarone's refinement",
            ("holm1979", "tarone1990"),
        )
    if by_reply:
        read = [row for row in rows if row.unit == "share"]
        counts = {kind: sum(getattr(row, kind) or 0 for row in read) for kind in _KINDS}
        told = listed([f"{number:,} {kind}" for kind, number in counts.items() if number or kind in _ALWAYS])
        yield Sentence(f"Replies were read by rule, and nothing was guessed: {told}")
    if any(row.missing_rate for row in rows):
        yield Sentence(
            "p-values and intervals allow for missing responses: they are the largest and the widest of those with "
            "missing responses left out, counted against the stereotype, and counted for it; a test whose difference "
            "could be 0 in this way is inconclusive"
        )
    if settings.decisions:
        yield Sentence("Models were also asked to give two tasks to two people", ("bai2025",))
    yield seeds([settings.seed])


def _wordings(run: RunData) -> Iterator[str]:
    """Those of the forms of prompts that were asked."""
    units = {row.unit for row in run.results}
    for form, asked in _FORMS.items():
        if asked in units or (form == "decision" and run.manifest.settings.decisions):
            yield from (one.name for one in select_wordings(form=form) if one.name in run.manifest.inputs.wordings)


_FORMS: dict[Form, str] = {"list": "share", "word": "log-odds", "decision": ""}
_KINDS = ("complete", "partial", "refused", "filtered", "failed", "unparsed")
_ALWAYS = ("complete", "partial", "refused", "unparsed")
