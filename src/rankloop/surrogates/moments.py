"""The spread of an estimate: exact second moments, and what Lemma 5 guarantees.

The regret bound of the paper grows with E||X^T z||^2 (eq. 4). Here it is computed exactly, and beside it the bound of
Lemma 5 in a form that holds (errata B13, B14).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from rankloop.arguments import whole
from rankloop.surrogates.estimators import Order, get
from rankloop.surrogates.losses import (
    KL,
    Floats,
    Ints,
    RankSVM,
    SmoothDCG,
    Squared,
    Surrogate,
    one_list,
    require,
)


def expectation(estimate: Callable[[Ints], Floats | float], *, greedy: Order, gamma: float, k: int) -> Floats:
    """E over the orders of Algorithm 1 of an `estimate` that depends only on which `k` items come first.

    Exact: the C(m, k) sets of first items stand for the m! orders. `greedy` and `gamma` as in `estimators`.

    Examples
    --------
    >>> float(expectation(lambda shown: float(shown[0] == 2), greedy=[2, 0, 1], gamma=0.75, k=1))
    0.5
    """
    best = np.asarray(greedy, dtype=np.int64)
    m, k = len(best), min(whole("k", k, at_least=1), len(best))
    total: Floats = np.asarray((1.0 - gamma) * estimate(best))
    for first in itertools.combinations(range(m), k):
        rest = [item for item in range(m) if item not in first]
        total = total + gamma / math.comb(m, k) * estimate(np.array([*first, *rest]))
    return total


def second_moment(
    estimator: str,
    surrogate: Surrogate,
    *,
    X: ArrayLike,
    s: ArrayLike,
    R: ArrayLike,
    greedy: Order,
    gamma: float,
    k: int,
    baseline: ArrayLike | None = None,
) -> float:
    """E||X^T z||^2 for the estimates z of `estimator` on a list with features X, scores s and relevance R.

    Parameters
    ----------
    estimator : str
        The name of an estimator.
    surrogate : Surrogate
        The surrogate.
    X : array_like
        The features, a row for each item.
    s, R : array_like
        The scores, and the relevance.
    greedy : array_like of int
        The order by falling score.
    gamma : float
        The probability of a random order.
    k : int
        How many labels are seen.
    baseline : array_like, optional
        A guess at the label of each item.

    Examples
    --------
    >>> second_moment("paper", Squared(), X=np.eye(2), s=[0, 0], R=[1, 0], greedy=[1, 0], gamma=0.5, k=1)
    16.0
    """
    rows, relevance, z = np.asarray(X, dtype=np.float64), one_list("R", R), get(estimator)
    if estimator == "paper":
        k = min(k, require(surrogate, k).level or k)  # it discards further labels

    def squared_length(shown: Ints) -> float:
        labels = relevance[shown[:k]]
        estimate = z(
            surrogate, s=s, shown=shown, labels=labels, greedy=greedy, gamma=gamma, baseline=baseline
        )
        step = rows.T @ estimate
        return float(step @ step)

    return float(expectation(squared_length, greedy=greedy, gamma=gamma, k=k))


def lemma5(
    surrogate: Surrogate, *, n_items: int, feature_bound: float, radius: float, max_grade: float
) -> float:
    """C such that E||X^T z||^2 <= C / gamma for the estimators without a baseline, whatever the list.

    The proof of Lemma 5, carried through. ||X^T z||_2 <= R_D ||z||_1 (Lemma 4); the sum over items of 1 / p(i) is at
    most m^2 / gamma, and over pairs of 1 / (p(i, j) + p(j, i)) at most (m(m - 1) / 2)^2 / gamma.

    - squared: ||z||_1 <= 2(m R_D U + R_max / p). Squared and averaged, 4(a^2 + 2 a b m + b^2 m^2 / gamma) with
      a = m R_D U and b = R_max, so C = 4 m^2 R_D^2 (R_D U + R_max)^2 (erratum B13).
    - ranksvm: ||z||_1 <= 2 / (p(i, j) + p(j, i)), so C = m^2 (m - 1)^2 R_D^2.
    - kl: ||z||_1 <= max(e^(R_D U), e^R_max) / p, so C = m^2 R_D^2 max(e^(2 R_D U), e^(2 R_max)) (erratum B14).
    - smooth_dcg, not in the paper: ||z||_1 <= 2 q(1 - q) G_max / (epsilon p), so C = m^2 R_D^2 G_max^2 / (4 epsilon^2).

    For Horvitz-Thompson the same C holds at every k: by Cauchy-Schwarz (sum over k items of 1 / pi)^2 is at most k
    times the sum of 1 / pi^2, whose mean is at most k m (m / (gamma k)) = m^2 / gamma; and likewise for pairs.

    Notation: m = n_items, R_D = feature_bound, U = radius, R_max = max_grade.

    Parameters
    ----------
    surrogate : Surrogate
        The surrogate.
    n_items : int
        The length of the list, m.
    feature_bound : float
        The largest Euclidean length of a row of features, R_D.
    radius : float
        The largest length of the weights, U.
    max_grade : float
        The largest label, R_max.
    """
    m, R_D, U, R_max = float(n_items), feature_bound, radius, max_grade
    if isinstance(surrogate, Squared):
        return 4.0 * m**2 * R_D**2 * (R_D * U + R_max) ** 2
    if isinstance(surrogate, RankSVM):
        return m**2 * (m - 1.0) ** 2 * R_D**2
    if isinstance(surrogate, KL):
        return m**2 * R_D**2 * math.exp(2.0 * min(max(R_D * U, R_max), surrogate.max_exponent))
    if isinstance(surrogate, SmoothDCG):
        return m**2 * R_D**2 * (math.exp2(R_max) - 1.0) ** 2 / (4.0 * surrogate.epsilon**2)
    raise ValueError(f"lemma5 knows squared, ranksvm, kl and smooth_dcg, got {surrogate.name}")
