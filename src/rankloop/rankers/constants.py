"""The quantities of a measure that the 2015 analysis uses: its gain, and D, R, A of the appendix."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rankloop import measures
from rankloop.arguments import whole
from rankloop.measures import HIGHEST_GRADE, Measure

_LEARNABLE = ("sum_loss", "pairwise_loss", "dcg", "precision")
NORMALISED = ("ndcg", "auc")
_PROVED_HOPELESS = ("ndcg", "average_precision", "auc")


@dataclass(frozen=True, slots=True)
class Learnable:
    """A measure f(order) . g(relevance), with the largest g(r) that can be revealed."""

    measure: Measure
    exponential: bool
    largest_gain: float

    @property
    def normalised(self) -> bool:
        """Whether g divides by a number that depends on all labels."""
        return self.measure.family in NORMALISED


def learnable(measure: str | Measure, *, max_grade: int, n_items: int) -> Learnable:
    """`measure` if it can be learnt from the relevance of single items, otherwise a ValueError that says why not."""
    scored = measures.get(measure).within(n_items)
    n = whole("max_grade", max_grade, at_least=1, at_most=HIGHEST_GRADE)
    if scored.family not in _LEARNABLE:
        why = "2015, Theorem 12" if scored.family in _PROVED_HOPELESS else "it is not f(order) . g(relevance)"
        raise ValueError(
            f"measure {scored.name!r} cannot be learnt from the relevance of single items ({why}): "
            f"choose {', '.join(_LEARNABLE)}"
        )
    scored.discount(1)  # refuses precision without a cut-off
    if scored.family == "pairwise_loss":
        if n > 1:
            raise ValueError(
                f"pairwise_loss is learnt through sum_loss, which is the same only for binary relevance (erratum A5), "
                f"got max_grade={max_grade}"
            )
        scored = measures.get("sum_loss")
    exponential = scored.family == "dcg"
    return Learnable(scored, exponential, float(2**n - 1) if exponential else float(n))


def with_all_labels(measure: str | Measure, *, max_grade: int, n_items: int) -> Learnable:
    """`measure` if it is f(order) . g(relevance), where g may look at all labels at once; otherwise a ValueError."""
    scored = measures.get(measure).within(n_items)
    if scored.family not in NORMALISED:
        return learnable(measure, max_grade=max_grade, n_items=n_items)
    n = whole("max_grade", max_grade, at_least=1, at_most=HIGHEST_GRADE)
    return Learnable(scored.graded(n), scored.family == "ndcg", 1.0)


def constants_of(learnable: Learnable, n_items: int) -> tuple[float, float, float]:
    """D, R, A of appendix 13.2, 14.1.3 and 14.2.1: bounds on |f(order)|_1, f(order) . g(r) and |g(r)|_1.

    Of NDCG and AUC, R is 1: the proof needs no more than how far two orders can differ. NDCG's gains, labels sorted,
    are a mixture of 1 / Z(s) for each of the first s items, so A is m / Z(m). AUC's are 1 / (s (m - s)) for s items,
    and two orders of ranks 1 to m differ by at most m^2 / 4 upwards.

    >>> constants_of(learnable("precision@2", max_grade=1, n_items=10), 10)
    (2.0, 2.0, 10.0)
    >>> constants_of(with_all_labels("auc", max_grade=1, n_items=10), 10)
    (25.0, 1.0, 1.0)
    """
    if learnable.measure.family == "auc":
        return max(1.0, n_items * n_items / 4), 1.0, 1.0
    D = math.fsum(learnable.measure.discount(n_items))
    if learnable.measure.family == "ndcg":
        return D, 1.0, n_items / D
    return D, D * learnable.largest_gain, n_items * learnable.largest_gain
