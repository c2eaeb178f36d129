"""Claims, doubts and warnings of word association tests."""

from __future__ import annotations

from collections.abc import Iterator

from biassay.reporting.formats import format_count, format_decimal, format_interval, format_p, format_percent
from biassay.results.outcomes import Claim
from biassay.studies.word_association.results import WordAssociationResult

__all__ = ["REPLY_LABELS", "choose_claim", "explain_no_interval", "is_order_driven", "label_kind", "list_warnings"]

REPLY_LABELS = {"filtered": "filtered by the endpoint", "failed": "failed after retries"}
"""Labels of kinds of replies that differ from the name of the kind."""
_LEANS = {"share": (0.5, 0.2), "log-odds": (0.0, 0.85)}
"""What the group word named first gets if order does not matter, and the distance from it that is reported."""


def label_kind(kind: str) -> str:
    """Return the text that follows a count of replies: 12 filtered by the endpoint."""
    return REPLY_LABELS.get(kind, kind)


def choose_claim(row: WordAssociationResult, alpha: float, *, is_descriptive: bool) -> tuple[Claim, str | None]:
    """Return what the p-value of a test may be used for, and why it may not be used as evidence.

    Parameters
    ----------
    row : WordAssociationResult
        A test with its outcome.
    alpha : float
        Level of significance.
    is_descriptive : bool
        If True, no response could make the test significant.
    """
    outcome = row.outcome
    if is_descriptive:  # a sanity check that cannot be tested neither passes nor fails
        return "descriptive" if row.about == "people" else "tested", _explain_too_few(row)
    if outcome.p_value is None or (outcome.p_floor or 0.0) > alpha:
        return "tested", _explain_not_testable(row)
    if row.follows_order:
        return "inconclusive", _explain_order(row)
    doubt = _explain_missing(row, alpha) if outcome.p_value > alpha else None
    return "inconclusive" if doubt and _may_turn(row) else "tested", doubt


def explain_no_interval(row: WordAssociationResult, alpha: float) -> str | None:
    """Return why the difference has no interval, or None if it has one."""
    if row.outcome.ci_low is not None:
        return None
    if row.generalizes_to == "words":
        return "one pair of group words"
    by_pair = row.generalizes_to == "pairs"
    units = format_count(row.pairs, "pair") + " of group words" if by_pair else format_count(row.answers, "answer")
    if row.outcome.p_value is None:
        return f"too little was read of {units}"
    if (row.outcome.p_floor or 0.0) > alpha:
        return f"{units} are too few"
    return "the log-odds do not vary, which bounds their sign only"


def list_warnings(row: WordAssociationResult) -> Iterator[str]:
    """Yield what changes how a difference is read: missing responses, and a lean to the group word named first."""
    kinds = ("partial", "refused", "filtered", "failed", "unparsed")
    lost = [(count, kind) for kind in kinds if (count := getattr(row, kind))]
    if lost:
        yield f"of {row.answers:,} replies {', '.join(f'{count:,} {label_kind(kind)}' for count, kind in lost)}"
        yield from _describe_bounds(row)
    if row.cut_off and lost:
        yield f"{row.cut_off:,} of {row.answers:,} replies were cut off by max_tokens=; a larger one lets them end"
    if is_order_driven(row) and not row.follows_order:
        yield f"the group word named first gets {row.outcome.scale} of {format_decimal(row.first)}"


def is_order_driven(row: WordAssociationResult) -> bool:
    """Return whether the group word named first gets far more than the other, or far less, whatever the difference."""
    middle, most = _LEANS[row.outcome.scale]
    return row.first is not None and abs(row.first - middle) >= most


def _describe_bounds(row: WordAssociationResult) -> Iterator[str]:
    low, high = row.outcome.bound_low, row.outcome.bound_high
    if low is not None and high is not None and low < high:
        bounds = format_interval(low, high)
        if bounds not in (row.doubt or ""):
            yield f"missing responses counted either way: {bounds}"


def _may_turn(row: WordAssociationResult) -> bool:
    """Return whether missing responses could turn the sign of the difference."""
    low, high = row.outcome.bound_low, row.outcome.bound_high
    return bool(row.missing_rate) and low is not None and high is not None and low <= 0.0 <= high


def _explain_too_few(row: WordAssociationResult) -> str:
    if row.generalizes_to == "pairs":
        n_pairs = f"{format_count(row.pairs, 'pair')} of group words"
        return (
            f"{n_pairs} cannot show whether other group words would give the same (p is never below "
            f"{_format_floor(row)})"
        )
    return f"too few words for a test (p is never below {_format_floor(row)})"


def _explain_not_testable(row: WordAssociationResult) -> str:
    if row.outcome.scale == "log-odds" and row.missing_rate:
        gone = f"{_format_share(row.missing_rate)} of the log-odds were not reported"
        return f"{gone}, and nothing bounds them; use --read replies"
    if row.outcome.p_value is None:
        return "too few responses were read"
    few = "pairs of group words" if row.generalizes_to == "pairs" else "words"
    return f"too few {few} were asked about (p is never below {_format_floor(row)})"


def _format_share(share: float) -> str:
    return format_percent(float(f"{share:.2g}"))


def _format_floor(row: WordAssociationResult) -> str:
    return format_p(row.outcome.p_floor)


def _explain_order(row: WordAssociationResult) -> str:
    named = (
        f"the group word named first gets {'a share' if row.outcome.scale == 'share' else 'log-odds'} of "
        f"{format_decimal(row.first)}"
    )
    return f"the responses follow the order of the group words ({named})"


def _explain_missing(row: WordAssociationResult, alpha: float) -> str | None:
    """Return how missing responses alone could have changed the conclusion, or None if they could not."""
    outcome, p_read = row.outcome, row.alternatives["read"].p_value
    if outcome.bound_low is None or outcome.bound_high is None or not row.missing_rate:
        return None
    gone = (
        f"{_format_share(row.missing_rate)} of responses are missing (refused, filtered, failed, unparsed or left out)"
    )
    if _may_turn(row):
        bounds = format_interval(outcome.bound_low, outcome.bound_high)
        return f"{gone}; depending on how they count, the difference is {bounds}"
    if p_read is not None and p_read <= alpha:
        against = format_p(outcome.p_value)
        return f"{gone}; p = {format_p(p_read)} without them, and {against} if they are counted against it"
    return None
