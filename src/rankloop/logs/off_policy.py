"""The estimators of an off-policy value, each a function from arrays to one number per row.

The mean of those numbers is the estimate, and their spread its error. `w` are importance weights, the chance under the
policy in question over the chance under the policy that was logged: for whole lists a number per row, for items at
positions a number for each. `c` are clicks, `v` the value of a click at each position.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


def ips(w: Numbers, c: Numbers, v: Numbers) -> Numbers:
    """Inverse propensity scores of whole lists: unbiased whatever makes users click (Horvitz and Thompson 1952)."""
    value: Numbers = w * (v * c).sum(axis=1)
    return value


def self_normalised(w: Numbers, c: Numbers, v: Numbers) -> Numbers:
    """The same divided by the mean weight (Swaminathan and Joachims 2015): slightly biased, with less variance.

    Returned is the estimate plus each row's influence on it, so that the mean is the estimate and the spread
    that of a ratio.
    """
    reward: Numbers = (v * c).sum(axis=1)
    mean = float((w * reward).sum() / w.sum())
    value: Numbers = mean + w * (reward - mean) / w.mean()
    return value


def item_position(w: Numbers, c: Numbers, v: Numbers) -> Numbers:
    """Inverse propensity scores of items at positions (Li et al. 2018).

    Unbiased if a click depends on the item and the position alone, as in the position-based model; a list then need not
    have been shown as a whole.
    """
    value: Numbers = (v * w * c).sum(axis=1)
    return value


def item_position_self_normalised(w: Numbers, c: Numbers, v: Numbers, places: NDArray[np.int64]) -> Numbers:
    """The same with the weights at each position divided by their mean there."""
    value = np.zeros(len(w))
    for j in np.unique(places):
        here = places == j
        mean_w = float(w[here].mean())
        mean = float((w[here] * c[here]).sum() / w[here].sum()) if mean_w > 0 else 0.0
        gain = mean + w * (c - mean) / mean_w if mean_w > 0 else np.zeros_like(w)
        value += np.where(here, v * gain, 0.0).sum(axis=1)
    return value


def doubly_robust(w: Numbers, c: Numbers, v: Numbers, q_shown: Numbers, q_policy: Numbers) -> Numbers:
    """A model of the clicks, corrected by the observed ones (Dudik, Langford and Li 2011), item by item and position.

    `q_shown` guesses the click rate of what was shown, `q_policy` that of what the policy would have shown in the same
    place. Unbiased if the propensities are right, whatever the guess; and if the guess is right, whatever the
    propensities.
    """
    value: Numbers = (v * (q_policy + w * (c - q_shown))).sum(axis=1)
    return value


def switch(
    w: Numbers, c: Numbers, v: Numbers, q_shown: Numbers, q_policy: Numbers, *, threshold: float
) -> Numbers:
    """Doubly robust where weights are at most `threshold`, the guess alone where they are larger.

    This is SWITCH-DR (Wang, Agarwal and Dudik 2017): less variance, and a bias of at most `most_bias` where the guess
    is wrong.
    """
    return doubly_robust(np.where(w <= threshold, w, 0.0), c, v, q_shown, q_policy)


def most_bias(w: Numbers, v: Numbers, *, threshold: float) -> float:
    """The largest bias that `switch` can have: the value of the clicks on what it leaves to the guess."""
    return float((np.abs(v) * np.where(w > threshold, w, 0.0)).sum(axis=1).mean())


def best_threshold(w: Numbers, c: Numbers, v: Numbers, q_shown: Numbers, q_policy: Numbers) -> float:
    """The threshold, of 20, with the least sum of the estimate's variance and the square of its largest bias."""
    tried = np.unique(np.quantile(w[w > 0.0], np.linspace(0.05, 1.0, 20)))

    def error(threshold: float) -> float:
        rows = switch(w, c, v, q_shown, q_policy, threshold=threshold)
        return float(rows.var() / len(rows) + most_bias(w, v, threshold=threshold) ** 2)

    return float(min(tried, key=error))


def effective_size(w: Numbers) -> float:
    """How many rows with equal weights would give the same precision (Kish 1965).

    With weights for items at positions, the least of the columns counts.
    """
    squares = (w**2).sum(axis=0)
    return float(
        np.min(np.divide(w.sum(axis=0) ** 2, squares, out=np.zeros_like(squares), where=squares > 0))
    )
