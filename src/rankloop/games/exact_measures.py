"""The measures as fractions: the value of an order, without rounding (2015, section 3; errata A6, A16, A17)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from rankloop.games.rationals import log_discount
from rankloop.measures import Measure


def exact_value(
    measure: Measure, order: Sequence[int], relevance: Sequence[int], *, max_grade: int = 1
) -> Fraction:
    """The value of `order`; logarithms are taken to 256 binary digits.

    >>> from rankloop import measures
    >>> exact_value(measures.get("map"), [0, 1, 2], [0, 1, 1])
    Fraction(7, 12)
    """
    shown = [int(relevance[item]) for item in order]
    return _VALUES[measure.family](shown, measure.cutoff or len(shown), max_grade)


def discounts(measure: Measure, n_items: int) -> list[Fraction]:
    """The weight of gain at each position, f; the rank itself for losses."""
    if measure.kind < 0:
        raise ValueError(f"{measure.name} is not of the form f(order) . g(relevance)")
    cutoff = measure.cutoff or n_items
    ranks = range(1, n_items + 1)
    if measure.family in ("dcg", "ndcg"):
        return [log_discount(rank) if rank <= cutoff else Fraction(0) for rank in ranks]
    if measure.family == "precision":
        return [Fraction(int(rank <= cutoff)) for rank in ranks]
    return [Fraction(rank) for rank in ranks]


def _sum_loss(shown: list[int], cutoff: int, max_grade: int) -> Fraction:
    return Fraction(sum(rank * r for rank, r in enumerate(shown, 1)))


def _pairwise_loss(shown: list[int], cutoff: int, max_grade: int) -> Fraction:
    above: dict[int, int] = {}
    pairs = 0
    for r in shown:
        pairs += sum(count for grade, count in above.items() if grade < r)
        above[r] = above.get(r, 0) + 1
    return Fraction(pairs)


def _auc(shown: list[int], cutoff: int, max_grade: int) -> Fraction:
    pairs = sum(shown) * (len(shown) - sum(shown))
    return _pairwise_loss(shown, cutoff, max_grade) / pairs if pairs else Fraction(0)


def _dcg(shown: list[int], cutoff: int, max_grade: int) -> Fraction:
    gains = ((2**r - 1) * log_discount(rank) for rank, r in enumerate(shown[:cutoff], 1) if r)
    return sum(gains, Fraction(0))


def _ndcg(shown: list[int], cutoff: int, max_grade: int) -> Fraction:
    ideal = _dcg(sorted(shown, reverse=True), cutoff, max_grade)
    return _dcg(shown, cutoff, max_grade) / ideal if ideal else Fraction(1)


def _precision(shown: list[int], cutoff: int, max_grade: int) -> Fraction:
    return Fraction(sum(shown[:cutoff]))


def _average_precision(shown: list[int], cutoff: int, max_grade: int) -> Fraction:
    if not any(shown):
        return Fraction(1)
    hits, total = 0, Fraction(0)
    for rank, r in enumerate(shown[:cutoff], 1):
        if r:
            hits += 1
            total += Fraction(hits, rank)
    return total / sum(shown)


def _err(shown: list[int], cutoff: int, max_grade: int) -> Fraction:
    reading, value = Fraction(1), Fraction(0)
    for rank, r in enumerate(shown[:cutoff], 1):
        if not r:
            continue
        stop = Fraction(2**r - 1, 2**max_grade)
        value += reading * stop / rank
        reading *= 1 - stop
    return value


_VALUES = {
    "sum_loss": _sum_loss,
    "pairwise_loss": _pairwise_loss,
    "dcg": _dcg,
    "precision": _precision,
    "ndcg": _ndcg,
    "average_precision": _average_precision,
    "auc": _auc,
    "err": _err,
}
