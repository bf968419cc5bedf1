"""CascadeLinUCB: cascading bandits with features, by upper confidence bounds (Zong et al. 2016)."""

from __future__ import annotations

from numpy.typing import ArrayLike

from rankloop.arguments import number
from rankloop.rankers.linear_clicks import LinearClickRanker


class CascadeLinUCB(LinearClickRanker):
    """Shows the items with the largest upper confidence bounds on a chance of a click that is linear in their features.

    For users who read from the top, click the first item that attracts them and leave, as in `CascadeKLUCB`; but what
    is learnt of one item carries over to all items with similar features. Of several clicks only the first counts.

    Parameters
    ----------
    n_features : int, optional
        How many features an item has, where each request brings a list of items with features.
    features : array_like, optional
        Items x features of a catalogue that is the same for everybody. Give this or `n_features`.
    n_positions : int, optional
        How many positions users see, K; None for the whole catalogue, or 10 of a list that a request brings.
    c : float, optional
        The width of the confidence bounds, in standard deviations.
    sigma : float, optional
        The standard deviation that one click is assumed to have; smaller values explore less.

    Notation
    --------
    M: I + V / sigma^2, M^-1: S' S, B: state.b, theta_bar: state.theta, x_e: a row of the features.

    Departures
    ----------
    Bounds above 1 are not cut to 1, which would only make ties of them. Equal bounds are ordered at random. A root of
    M^-1 is updated instead of M^-1 itself.

    References
    ----------
    S. Zong, H. Ni, K. Sung, N. R. Ke, Z. Wen and B. Kveton, Cascading bandits for large-scale recommendation problems,
    UAI 2016.

    Examples
    --------
    >>> import numpy as np
    >>> catalogue = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]]
    >>> ranker = CascadeLinUCB(features=catalogue, n_positions=2)
    >>> rng = np.random.default_rng(1)
    >>> for _ in range(100):
    ...     shown = ranker.rank(rng=rng)
    ...     ranker.learn(shown, shown.items == 2)  # only the last item is ever clicked
    >>> ranker.current()
    array([2, 1])
    """

    stops_at_click = True
    summary = (
        "Observes clicks of users who read down to the first good item, and learns weights for features."
    )
    draws = False
    cascade = True

    def __init__(
        self,
        *,
        n_features: int | None = None,
        features: ArrayLike | None = None,
        n_positions: int | None = None,
        c: float = 1.0,
        sigma: float = 1.0,
    ) -> None:
        self.build(n_features, features, n_positions, sigma=sigma, width=number("c", c, at_least=0))
