"""Linear Thompson sampling for position-based clicks on items with features."""

from __future__ import annotations

from numpy.typing import ArrayLike

from rankloop.rankers.linear_clicks import LinearClickRanker


class LinTSPBM(LinearClickRanker):
    """Draws weights of the features that fit all clicks so far, and shows the best list for them.

    The chance of a click on item x at position j is kappa_j x . theta: examination of the position times an attraction
    that is linear in the features. `PBMTS` is the same without features.

    Parameters
    ----------
    n_features : int, optional
        How many features an item has, where each request brings a list of items with features.
    features : array_like, optional
        Items x features of a catalogue that is the same for everybody. Give this or `n_features`.
    n_positions : int, optional
        How many positions users see; None for as many as `examination` has, or the whole catalogue, or 10 of a list
        that a request brings.
    examination : array_like, optional
        For each position, how likely it is looked at, in any order; None estimates them.
    sigma : float, optional
        The standard deviation that one click is assumed to have; smaller values explore less.

    Notation
    --------
    M: I + sum kappa_j^2 x x' / sigma^2, M^-1: S' S, theta: state.theta, kappa_j: state.kappa.

    Departures
    ----------
    There is no paper with this ranker: the linear bandit is applied to position-based clicks, each an observation of
    kappa_j x . theta. Unknown examinations are estimated by alternating least squares, whenever a quarter more was
    observed than before; there is no regret bound for that.

    References
    ----------
    P. Lagrée, C. Vernade and O. Cappé, Multiple-play bandits in the position-based model, NeurIPS 2016, for the model.
    S. Agrawal and N. Goyal, Thompson sampling for contextual bandits with linear payoffs, ICML 2013, for the draws.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> ranker = LinTSPBM(n_features=2, examination=[1.0, 0.5])
    >>> for _ in range(300):
    ...     shown = ranker.rank([[1.0, 0.0], [0.0, 1.0]], rng=rng)
    ...     ranker.learn(shown, (shown.items == 1) & (rng.random(2) < [1.0, 0.5]))
    >>> ranker.current([[1.0, 0.0], [0.0, 1.0]])
    array([1, 0])
    """

    summary = "Observes clicks by position, and ranks by weights for features drawn from their posterior."
    draws = True
    cascade = False

    def __init__(
        self,
        *,
        n_features: int | None = None,
        features: ArrayLike | None = None,
        n_positions: int | None = None,
        examination: ArrayLike | None = None,
        sigma: float = 1.0,
    ) -> None:
        self.build(n_features, features, n_positions, sigma=sigma, examination=examination)
