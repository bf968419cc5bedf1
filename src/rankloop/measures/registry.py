"""Measures by name."""

from __future__ import annotations

from rankloop.measures.cascade import err
from rankloop.measures.measure import Measure
from rankloop.measures.normalised import average_precision, ndcg
from rankloop.measures.pairs import auc, pairwise_loss
from rankloop.measures.positional import dcg, precision, sum_loss

_MEASURES = {
    measure.family: measure
    for measure in (sum_loss, pairwise_loss, dcg, precision, ndcg, average_precision, auc, err)
}
_ALIASES = {"map": "average_precision"}


def names() -> list[str]:
    """Every measure, without cut-offs.

    Returns
    -------
    list of str
        The names, sorted.
    """
    return list(_MEASURES)


def get(name: str | Measure, *, max_grade: int | None = None) -> Measure:
    """The measure called `name`, with or without a cut-off; a measure is returned as it is.

    Parameters
    ----------
    name : str or Measure
        A name such as "dcg" or "ndcg@10", or a measure.
    max_grade : int, optional
        The largest relevance, where that matters.

    Returns
    -------
    Measure
        The measure.

    Examples
    --------
    >>> get("ndcg@10")
    <measure ndcg@10>
    >>> get("err@10", max_grade=4).max_grade
    4
    """
    measure = name if isinstance(name, Measure) else _parse(name)
    return measure if max_grade is None else measure.graded(max_grade)


def _parse(name: str) -> Measure:
    family, at, k = str(name).partition("@")
    measure = _MEASURES.get(_ALIASES.get(family, family))
    if measure is None:
        ending = {"none": "", "optional": "[@k]", "required": "@k"}
        known = ", ".join(known.family + ending[known.cutoffs] for known in _MEASURES.values())
        raise ValueError(f"measure {name!r} is not known; known are {known}")
    if not at:
        return measure
    if not (k.isascii() and k.isdigit()):
        raise ValueError(f"measure {name!r} has a cut-off that is not a whole number")
    return measure.at(int(k))
