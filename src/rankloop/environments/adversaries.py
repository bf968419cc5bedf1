"""Two worlds that top-1 feedback cannot tell apart, although different rankings are best in them (2015, Lemma 11).

Take the difference of the first and the last row of the measure's matrix over all relevance vectors, remove what
the relevance of single items can explain, and add what is left to (world 0) or take it from (world 1) the uniform
distribution. Every item is then relevant with the same probability in both worlds, so a learner that observes the
relevance of one item a round behaves alike in both, and loses in one what it gains in the other: linear regret.
"""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
from numpy.typing import NDArray

from rankloop import measures
from rankloop.arguments import one_of, whole
from rankloop.environments.users import Listed, listed

_FEWEST_ITEMS = {"ndcg": 3, "average_precision": 3, "auc": 4}
_MOST_ITEMS = 6


def adversary(measure: str, *, n_items: int | None = None, world: int = 0) -> Listed:
    """One of the two worlds that make `measure` unlearnable from top-1 feedback.

    Parameters
    ----------
    measure : str
        A measure that cannot be learnt from top-1 feedback.
    n_items : int, optional
        How many items; by default as few as it takes.
    world : int, optional
        Which of the two worlds, 0 or 1.

    Returns
    -------
    Listed
        The users of that world.

    Examples
    --------
    >>> zero, one = (adversary("ndcg", world=world) for world in (0, 1))
    >>> bool(np.allclose(zero.weights @ zero.vectors, one.weights @ one.vectors))
    True
    """
    outcomes, _, direction = _unexplained(measure, n_items)
    if world not in (0, 1):
        raise ValueError(f"world must be 0 or 1, got {world!r}")
    return listed(outcomes, weights=_uniform_plus(direction, 1 if world == 0 else -1))


def forced_regret(measure: str, *, n_items: int | None = None) -> float:
    """Regret per round, averaged over the two worlds, of every learner from top-1 feedback.

    Averaged over the worlds, relevance is uniform and all rankings have the same value, so nothing a learner plays
    matters: what it loses is half the distance between the best of world 0 and the best of world 1.

    Parameters
    ----------
    measure : str
        A measure that cannot be learnt.
    n_items : int, optional
        How many items; by default as few as it takes.

    Returns
    -------
    float
        The regret a round that no learner can avoid.

    Examples
    --------
    >>> round(forced_regret("ndcg"), 4)
    0.0242
    """
    _, values, direction = _unexplained(measure, n_items)
    sign = -1 if measures.get(measure).is_loss else 1
    best = [(sign * values @ _uniform_plus(direction, side)).max() for side in (1, -1)]
    return float(np.mean(best) - sign * values.mean())


def _uniform_plus(direction: NDArray[np.float64], side: int) -> NDArray[np.float64]:
    shares = 1 / len(direction) + side * direction
    return np.where(shares < 1e-12, 0.0, shares)  # the extreme entry is zero up to rounding


def _unexplained(
    measure: str, n_items: int | None
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """All outcomes, the value of each ranking for each, and the largest step from uniform along the residual."""
    scored = measures.get(measure)
    fewest = _FEWEST_ITEMS[one_of("measure", scored.name, _FEWEST_ITEMS)]
    # Not more than that, because all rankings are listed.
    m = fewest if n_items is None else whole("n_items", n_items, at_least=fewest, at_most=_MOST_ITEMS)
    outcomes = np.array(list(product((0, 1), repeat=m)))
    orders = np.array(list(permutations(range(m))))
    values = np.asarray(scored(orders[:, None, :], outcomes[None, :, :]))
    explained = np.column_stack(
        [np.ones(len(outcomes)), outcomes]
    )  # the span of all signal matrices, erratum A19
    difference = values[0] - values[-1]
    residual = difference - explained @ np.linalg.lstsq(explained, difference, rcond=None)[0]
    return outcomes, values, residual / (np.abs(residual).max() * len(outcomes))
