"""DBGD: dueling bandit gradient descent (Yue and Joachims 2009)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

from rankloop.feedback.interleaving.probabilistic import TAU
from rankloop.rankers.linear import WarmStart
from rankloop.rankers.mgd import MGD, Steps


class DBGD(MGD):
    """A linear ranker that tries one direction at a time, and takes a step where users prefer it.

    For each list, a candidate w + delta u is drawn around the present weights w, u in a random direction. The list is a
    probabilistic interleaving of both. Where the candidate gets more credit from the clicks, w takes a step along u.

    Parameters
    ----------
    n_features : int
        The length of a document's feature vector, d.
    n_positions : int, optional
        How many documents of a list users see.
    learning_rate : float or tuple of float, optional
        The length of a step: a number, or a pair (scale, power) for scale * t**-power.
    delta : float, optional
        How far from w the candidate is.
    tau : float, optional
        In a list, a ranker draws a document in proportion to 1 / rank^tau.
    radius : float, optional
        W stays in the ball of this radius; by default it may go anywhere.
    warm_start : array_like or FittedRanker, optional
        The weights to begin with, such as those of `logs.fit_ranker`; 0 by default.

    Notation
    --------
    w_t: state.w, gamma: learning_rate, delta: delta, W: the ball of `radius`.

    Departures
    ----------
    The comparison is probabilistic interleaving with credit averaged over assignments; the paper leaves it open. Ties
    in score are broken at random. Credits that differ by less than 1e-9 are equal. By default there is no ball.

    References
    ----------
    Y. Yue and T. Joachims, Interactively optimizing information retrieval systems as a dueling bandits problem,
    ICML 2009, Algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> ranker = DBGD(n_features=3)
    >>> shown = ranker.rank(np.eye(3), rng=np.random.default_rng(1))
    >>> ranker.learn(shown, [0.0, 0.0, 0.0])  # no click, no preference
    >>> ranker.state.w
    array([0., 0., 0.])
    """

    summary = (
        "Observes clicks on documents, and moves its weights along a random direction where users prefer it."
    )

    def __init__(
        self,
        *,
        n_features: int,
        n_positions: int = 10,
        learning_rate: Steps = 0.01,
        delta: float = 1.0,
        tau: float = TAU,
        radius: float | None = None,
        warm_start: WarmStart | None = None,
    ) -> None:
        super().__init__(
            n_features=n_features,
            n_positions=n_positions,
            n_candidates=1,
            learning_rate=learning_rate,
            delta=delta,
            tau=tau,
            radius=radius,
            warm_start=warm_start,
        )

    @classmethod
    def bytes_for(
        cls, *, n_items: int = 0, n_positions: int | None = None, n_features: int = 0, **parameters: Any
    ) -> int:
        return super().bytes_for(n_items=n_items, n_features=n_features, n_candidates=1)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(n_features=3, n_positions=3, learning_rate=0.5)
        yield cls(n_features=4, n_positions=2, learning_rate=(0.5, 0.5), delta=0.5, radius=1.0)
        yield cls(n_features=1, n_positions=3, tau=1.0)
