"""Unbiased estimates of a surrogate's gradient from the labels at the top of a shown list.

Everything here is exact and written for clarity; the compiled rankers are tested against it. All estimates are in
score space: z with E[z] = the gradient with respect to s, so that X^T z estimates the gradient with respect to w.

Three ways to use the k revealed labels:

* `paper`: the first `level` labels, each term divided by the probability of having seen just these (section 4.1).
* `horvitz_thompson`: all k labels, each term divided by the probability that its items are among the first k
  (erratum B7).
* `lemma1`: eq. (3), for any decomposition and any distribution of orders; `by_lemma1` is the same for a surrogate.

Each takes a control variate `baseline` = R_hat, a guess of R that does not use the labels of this round (erratum B6):

    z = gradient(s, R_hat) + sum over the terms seen of (h(R) - h(R_hat)) / probability.

The better the guess, the smaller the part that has to be estimated. It is unbiased for every guess, good or bad.
Without a baseline these are the paper's forms: no guess, except for the squared loss, where the paper estimates R
alone, which is the guess 0.

The probabilities are those of Algorithm 1, line 6, and section 4.2. With probability 1 - gamma the greedy order is
shown, otherwise, with probability `gamma`, one drawn evenly from all m!: P(sigma) = (1 - gamma) 1[sigma = greedy] +
gamma / m!. Ties between scores are broken before, at random: `greedy` is one order, and every probability is given that
order (erratum B10). m is the length of this very list (erratum B1). Items count from 0.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop.arguments import numbers, share, whole
from rankloop.surrogates.losses import Floats, Ints, Surrogate, one_list, require

__all__ = [
    "Estimator",
    "by_lemma1",
    "get",
    "horvitz_thompson",
    "inclusion_probability",
    "lemma1",
    "names",
    "ordered_probability",
    "pair_probability",
    "paper",
    "top_probability",
]

Order = Sequence[int] | NDArray[np.int64]
Decomposition = Callable[[Floats, Ints, Floats], Floats]


def ordered_probability(items: Order, *, greedy: Order, gamma: float) -> float:
    """p(i_1, ..., i_k), eq. (1): that the list begins with exactly these `items` in exactly this order.

    With all m items this is the probability of an order.

    Examples
    --------
    >>> ordered_probability([1, 0], greedy=[1, 0], gamma=0.5), ordered_probability([0, 1], greedy=[1, 0], gamma=0.5)
    (0.75, 0.25)
    """
    wanted, best = _different(items, greedy, gamma)
    m, k = len(best), len(wanted)
    return (1.0 - gamma) * (wanted == best[:k]) + gamma * math.factorial(m - k) / math.factorial(m)


def inclusion_probability(items: int | Order, *, greedy: Order, gamma: float, k: int) -> float:
    """pi: that one item, or all of several `items`, are among the first `k` in any order (erratum B7).

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
    """p(i) = (1 - gamma) 1[i = greedy top] + gamma / m: that the `item` is on top (erratum B1).

    Examples
    --------
    >>> top_probability(1, greedy=[1, 0], gamma=0.5), top_probability(0, greedy=[0], gamma=0.5)
    (0.75, 1.0)
    """
    return inclusion_probability(item, greedy=greedy, gamma=gamma, k=1)


def pair_probability(i: int, j: int, *, greedy: Order, gamma: float) -> float:
    """p(`i`, `j`) + p(j, i) = (1 - gamma) 1[{i, j} = greedy top two] + 2 gamma / (m(m - 1)) (erratum B2).

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


class Estimator(Protocol):
    """z from one round: the order that was shown, and the labels of its first k items."""

    def __call__(
        self,
        surrogate: Surrogate,
        *,
        s: ArrayLike,
        shown: Order,
        labels: ArrayLike,
        greedy: Order,
        gamma: float,
        baseline: ArrayLike | None = None,
    ) -> Floats:
        """An estimate of the gradient at `s`, as long as `s`. k is the number of `labels`."""


def horvitz_thompson(
    surrogate: Surrogate,
    *,
    s: ArrayLike,
    shown: Order,
    labels: ArrayLike,
    greedy: Order,
    gamma: float,
    baseline: ArrayLike | None = None,
) -> Floats:
    """Sum over the terms seen of h / pi, pi the probability that the items of the term are among the first k.

    Level 1: the sum of h_i(R_i) / pi_i over the k items seen. Level 2: the sum of (h_ij + h_ji) / pi_ij over the pairs
    seen. Once the whole list is seen, z is the gradient itself.

    Parameters
    ----------
    surrogate : Surrogate
        The surrogate whose gradient is estimated.
    s : array_like
        The scores of the list.
    shown : array_like of int
        The order that was shown.
    labels : array_like
        The labels of its first k items.
    greedy : array_like of int
        The order by falling score.
    gamma : float
        The probability of a random order.
    baseline : array_like, optional
        A guess at the label of each item.

    Examples
    --------
    >>> from rankloop.surrogates import Squared
    >>> round_ = dict(s=[0.0, 0.0, 0.0], greedy=[0, 1, 2], gamma=0.5)
    >>> horvitz_thompson(Squared(), shown=[2, 0, 1], labels=[1.0], **round_)
    array([ 0., 0., -12.])
    >>> horvitz_thompson(Squared(), shown=[2, 0, 1], labels=[1.0, 0.0], baseline=[0, 0, 1], **round_)
    array([ 0., 0., -2.])
    """
    scores, items, seen, R_hat = _read(s, shown, labels, _guess(surrogate, baseline))
    m, k = len(items), len(seen)
    if k == m:
        # Every pi is 1. This also takes care of lists too short to hold a single term, such as one item for RankSVM.
        return surrogate.gradient(scores, _by_item(items, seen))
    level = require(surrogate, k).level
    z = np.zeros(m) if R_hat is None else surrogate.gradient(scores, R_hat)
    for places in itertools.permutations(range(k), level):
        term = items[list(places)]
        h = surrogate.h(scores, term, seen[list(places)])
        if R_hat is not None:
            h = h - surrogate.h(scores, term, R_hat[term])
        z += h / inclusion_probability(term, greedy=greedy, gamma=gamma, k=k)
    return z


def paper(
    surrogate: Surrogate,
    *,
    s: ArrayLike,
    shown: Order,
    labels: ArrayLike,
    greedy: Order,
    gamma: float,
    baseline: ArrayLike | None = None,
) -> Floats:
    """The estimators printed in sections 4.1 and 4.1.1: the first `level` labels; further ones are discarded.

    This is `horvitz_thompson` at k = level: the probability that just these items come first, in any order, is that of
    section 4.2. Parameters as of `horvitz_thompson`.

    Examples
    --------
    >>> from rankloop.surrogates import Squared
    >>> paper(Squared(), s=[1.0, 0.0], shown=[0, 1], labels=[2.0], greedy=[0, 1], gamma=0.5)
    array([-3.33333333, 0. ])
    """
    return horvitz_thompson(
        surrogate,
        s=s,
        shown=shown,
        labels=one_list("labels", labels)[: surrogate.level],
        greedy=greedy,
        gamma=gamma,
        baseline=baseline,
    )


def lemma1(
    h: Decomposition,
    *,
    level: int,
    s: ArrayLike,
    shown: Order,
    labels: ArrayLike,
    probability: Callable[[Ints], float],
    k: int | None = None,
    baseline: ArrayLike | None = None,
) -> Floats:
    """Eq. (3) of Lemma 1, for F(R) = sum over ordered tuples of `level` different items of h(s, items, labels).

    `probability(items)` is p(i_1, ..., i_k) of eq. (1), under whatever distribution the order was drawn from; k is
    the number of labels, or fewer if given. Takes k! steps.

    For k > level the lemma wants F as a sum over tuples of k items. Spread each term evenly: a tuple of `level` items
    is the beginning of (m - level)! / (m - k)! tuples of k items, so let
    h'_{i_1..i_k} = h_{i_1..i_level} (m - k)! / (m - level)!. Summed over the k! orders of the items seen, each of their
    `level`-tuples appears (k - level)! times, hence with weight 1 / C(m - level, k - level).

    Parameters
    ----------
    h : Decomposition
        One term of the sum, from scores, items and labels.
    level : int
        How many items a term looks at.
    s : array_like
        The scores of the list.
    shown : array_like of int
        The order that was shown.
    labels : array_like
        The labels of its first items.
    probability : callable
        The probability of a beginning of the list.
    k : int, optional
        How many labels to use; by default all that are given.
    baseline : array_like, optional
        A guess at the label of each item.
    """
    scores, items, seen, R_hat = _read(s, shown, labels, baseline)
    m, k = len(items), len(seen) if k is None else k
    if not 1 <= level <= k <= len(seen):
        raise ValueError(
            f"need 1 <= level <= k <= number of labels, got level={level}, k={k}, {len(seen)} labels"
        )
    spread = math.factorial(m - k) / math.factorial(m - level)
    numerator: Floats | float = 0.0
    denominator = 0.0
    for places in itertools.permutations(range(k)):
        beginning = list(places[:level])
        term = items[beginning]
        numerator = numerator + spread * h(scores, term, seen[beginning])
        if R_hat is not None:
            numerator = numerator - spread * h(scores, term, R_hat[term])
        denominator += probability(items[list(places)])
    z: Floats = np.asarray(numerator / denominator)
    if R_hat is not None:
        for known in itertools.permutations(range(m), level):
            z = z + h(scores, np.array(known), R_hat[list(known)])
    return z


def by_lemma1(
    surrogate: Surrogate,
    *,
    s: ArrayLike,
    shown: Order,
    labels: ArrayLike,
    greedy: Order,
    gamma: float,
    baseline: ArrayLike | None = None,
) -> Floats:
    """`lemma1` for a surrogate and the orders of Algorithm 1. It is `horvitz_thompson` at k = level, not beyond.

    Parameters as of `horvitz_thompson`.
    """
    n_labels = len(one_list("labels", labels))
    if n_labels == len(shown):
        # "For k = m ... the unbiased estimator of F(x) is actually F(x) itself" (end of the proof of Lemma 1).
        return horvitz_thompson(surrogate, s=s, shown=shown, labels=labels, greedy=greedy, gamma=gamma)
    level = require(surrogate, n_labels).level
    assert level is not None  # or `require` would have refused
    return lemma1(
        surrogate.h,
        level=level,
        s=s,
        shown=shown,
        labels=labels,
        probability=partial(ordered_probability, greedy=greedy, gamma=gamma),
        baseline=_guess(surrogate, baseline),
    )


_ESTIMATORS: dict[str, Estimator] = {
    "paper": paper,
    "horvitz-thompson": horvitz_thompson,
    "lemma-1": by_lemma1,
}


def names() -> list[str]:
    """Every estimator."""
    return list(_ESTIMATORS)


def get(name: str) -> Estimator:
    """The estimator called `name`: "paper", "horvitz-thompson" or "lemma-1"."""
    if name not in _ESTIMATORS:
        raise ValueError(f"estimator {name!r} is not known; known are {', '.join(_ESTIMATORS)}")
    return _ESTIMATORS[name]


def _guess(surrogate: Surrogate, baseline: ArrayLike | None) -> ArrayLike | None:
    return surrogate.printed_baseline if baseline is None else baseline


def _by_item(items: Ints, seen: Floats) -> Floats:
    R = np.empty(len(seen))
    R[items] = seen
    return R


def _read(
    s: ArrayLike, shown: Order, labels: ArrayLike, baseline: ArrayLike | None
) -> tuple[Floats, Ints, Floats, Floats | None]:
    scores, items, seen = one_list("s", s), np.asarray(shown, dtype=np.int64), one_list("labels", labels)
    m = len(scores)
    if sorted(items.tolist()) != list(range(m)):
        raise ValueError(f"shown must list each of 0..{m - 1} once, got {items.tolist()}")
    if len(seen) > m:
        raise ValueError(f"labels are given for {len(seen)} items of a list of {m}")
    if baseline is None:
        return scores, items, seen, None
    guess = numbers("baseline", baseline)
    if guess.shape not in {(), (m,)} or not np.isfinite(guess).all():
        raise ValueError(f"baseline must be one number, or one for each of {m} items, got {baseline!r}")
    return scores, items, seen, np.broadcast_to(guess, (m,))
