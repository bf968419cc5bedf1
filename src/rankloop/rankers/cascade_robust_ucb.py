"""CascadeKL-UCB for clicks of which some may be false: bounds that are wide enough for so many fake users."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Self

from rankloop.arguments import whole
from rankloop.compiled import RankerKernels
from rankloop.kernels.rankers import cascade_kl_ucb, cascade_robust_ucb
from rankloop.ranges import Range, Whole
from rankloop.rankers.cascade_kl_ucb import CascadeKLUCB


class CascadeRobustUCB(CascadeKLUCB):
    """Shows the items with the largest upper confidence bounds, allowing for `budget` users whose clicks are false.

    For users who read from the top, click the first item that attracts them and leave, while somebody who sees every
    list replaces the clicks of some of them. No item is given up before it was observed often enough to
    outweigh that many false observations.

    Parameters
    ----------
    n_items : int
        How many items there are, L.
    n_positions : int, optional
        How many of them are shown, K; None shows all.
    budget : int, optional
        How many users' clicks may be false, C. With 0 it is CascadeKLUCB.

    Notation
    --------
    T_t(e): state.N, U_t(e): the largest q with n d((W + C) / n, q) = log t + 3 log log t, n: state.N, W: state.W.

    Departures
    ----------
    There is no paper with this ranker: the radius that is wider by C / n, of bandits whose attacker has a known budget,
    is applied to the indices of CascadeKLUCB. Departures of CascadeKLUCB are those of this ranker.

    References
    ----------
    B. Kveton, Cs. Szepesvári, Z. Wen and A. Ashkan, Cascading bandits: learning to rank in the cascade model,
    ICML 2015. X. Wang, M. Liu, J. Zuo, X. Liu, J. Lui and M. Hajiesmaili, Stochastic bandits robust to adversarial
    attacks, ICLR 2025, for known budgets. J. Xie, C. Chen, Z. Wang and S. Li, Cascading bandits robust to adversarial
    corruptions, 2025, for the problem.

    Examples
    --------
    >>> import numpy as np
    >>> ranker = CascadeRobustUCB(n_items=2, n_positions=1, budget=10)
    >>> rng = np.random.default_rng(1)
    >>> for _ in range(40):  # the first ten clicks on item 0 are hidden, then item 0 is clicked and 1 never
    ...     shown = ranker.rank(rng=rng)
    ...     ranker.learn(shown, (shown.items == 0) & (ranker.state.N[0] >= 10))
    >>> ranker.current()
    array([0])
    """

    summary = "As CascadeKLUCB, with bounds wide enough for a number of false clicks."
    kernels = RankerKernels(cascade_robust_ucb.rank, cascade_kl_ucb.learn)

    def __init__(self, *, n_items: int, n_positions: int | None = None, budget: int = 200) -> None:
        super().__init__(n_items=n_items, n_positions=n_positions)
        self.params = cascade_robust_ucb.RobustParams(
            self.n_items, float(whole("budget", budget, at_least=0))
        )

    def tunable(self) -> Mapping[str, Range]:
        return {"budget": Whole(1, 10_000)}

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(n_items=5, n_positions=3, budget=2)
        yield cls(n_items=4)
        yield cls(n_items=1)
