"""The probability of what was observed (Algorithm 1, line 6; section 4.2).

With probability 1 - gamma the greedy order is shown, otherwise an order drawn evenly from all m!:
P(sigma) = (1 - gamma) 1[sigma = greedy] + gamma / m!.
Ties between scores are broken before, at random: `greedy` is one order, and every probability is given that order
(erratum B10). m is the length of this very list (erratum B1). Items count from 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rankloop.arguments import share, whole

Order = Sequence[int] | NDArray[np.int64]


def ordered_probability(items: Order, *, greedy: Order, gamma: float) -> float:
    """p(i_1, ..., i_k), eq. (1): that the list begins with exactly these items in exactly this order.

    With all m items this is the probability of an order.

    Parameters
    ----------
    items : array_like of int
        The items that come first, in order.
    greedy : array_like of int
        The order by falling score.
    gamma : float
        The probability of a random order.

    Returns
    -------
    float
        The probability.

    Examples
    --------
    >>> ordered_probability([1, 0], greedy=[1, 0], gamma=0.5), ordered_probability([0, 1], greedy=[1, 0], gamma=0.5)
    (0.75, 0.25)
    """
    wanted, best = _different(items, greedy, gamma)
    m, k = len(best), len(wanted)
    return (1.0 - gamma) * (wanted == best[:k]) + gamma * math.factorial(m - k) / math.factorial(m)


def inclusion_probability(items: int | Order, *, greedy: Order, gamma: float, k: int) -> float:
    """pi: that this item, or all of these items, are among the first k in any order (erratum B7).

    Parameters
    ----------
    items : int or array_like of int
        An item, or several.
    greedy : array_like of int
        The order by falling score.
    gamma : float
        The probability of a random order.
    k : int
        How many positions are seen.

    Returns
    -------
    float
        The probability.

    Examples
    --------
    >>> inclusion_probability(0, greedy=[2, 0, 1, 3], gamma=0.5, k=2)
    0.75
    >>> inclusion_probability([1, 3], greedy=[2, 0, 1, 3], gamma=0.5, k=3)
    0.25
    """
    wanted, best = _different([items] if isinstance(items, int | np.integer) else items, greedy, gamma)
    m = len(best)
    k = whole("k", k, at_least=1, at_most=m)
    by_chance = 1.0
    for taken in range(len(wanted)):
        by_chance *= max(k - taken, 0) / (m - taken)
    return (1.0 - gamma) * (set(wanted) <= set(best[:k])) + gamma * by_chance


def top_probability(item: int, *, greedy: Order, gamma: float) -> float:
    """p(i) = (1 - gamma) 1[i = greedy top] + gamma / m: that the item is on top (erratum B1).

    Parameters
    ----------
    item : int
        The item.
    greedy : array_like of int
        The order by falling score.
    gamma : float
        The probability of a random order.

    Returns
    -------
    float
        The probability.

    Examples
    --------
    >>> top_probability(1, greedy=[1, 0], gamma=0.5), top_probability(0, greedy=[0], gamma=0.5)
    (0.75, 1.0)
    """
    return inclusion_probability(item, greedy=greedy, gamma=gamma, k=1)


def pair_probability(i: int, j: int, *, greedy: Order, gamma: float) -> float:
    """p(i, j) + p(j, i) = (1 - gamma) 1[{i, j} = greedy top two] + 2 gamma / (m(m - 1)), in either order (erratum B2).

    Parameters
    ----------
    i : int
        One item.
    j : int
        The other item.
    greedy : array_like of int
        The order by falling score.
    gamma : float
        The probability of a random order.

    Returns
    -------
    float
        The probability.

    Examples
    --------
    >>> pair_probability(0, 2, greedy=[2, 0, 1], gamma=0.6)
    0.6
    """
    if len(greedy) < 2:
        raise ValueError(f"a list of {len(greedy)} has no pair")
    return inclusion_probability([i, j], greedy=greedy, gamma=gamma, k=2)


def _different(items: Order, greedy: Order, gamma: float) -> tuple[list[int], list[int]]:
    share("gamma", gamma)
    wanted, best = [int(item) for item in items], [int(item) for item in greedy]
    if sorted(best) != list(range(len(best))) or not best:
        raise ValueError(f"greedy must list each of 0..{len(best) - 1} once, got {best}")
    if len(set(wanted)) < len(wanted) or not set(wanted) <= set(best):
        raise ValueError(f"items must be different items of a list of {len(best)}, got {wanted}")
    return wanted, best
