"""PBM-PIE: parsimonious exploration at the last position (Lagrée, Vernade and Cappé 2016)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop.arguments import number, shares, whole
from rankloop.base import Array
from rankloop.compiled import RankerKernels
from rankloop.kernels import click_counts, sorting
from rankloop.kernels.elementary import log
from rankloop.kernels.rankers import pbm_pie
from rankloop.kernels.solvers import pbm_order
from rankloop.ranges import Between, Range
from rankloop.rankers.click_ranker import ClickRanker, check_counts


class PBMPIE(ClickRanker):
    """Shows the items that look best, and explores others only at the last position, half of the time.

    Which others: those whose upper confidence bound reaches the estimate of the item they would replace. Nearly the
    least exploration that is possible where examination probabilities are known. Where they are not, they are
    estimated together with the attractions, and neighbours change places while the clicks leave their order open.

    Parameters
    ----------
    n_items : int
        How many items there are, K.
    n_positions : int, optional
        How many of them are shown, L; None shows all.
    horizon : int
        How many rounds will be played, T.
    examination : array_like, optional
        For each position, how likely it is looked at, none rising; None estimates them.
    epsilon : float, optional
        Bounds are of level (1 + epsilon) log T.
    refresh : int, optional
        Every how many rounds examinations are estimated anew, after the first 100.
    check_order : bool, optional
        Whether, where examinations are estimated, the order of the leaders is questioned; False is as in the papers.

    Notation
    --------
    kappa: state.kappa, S and N: state.S, state.N, U_k(t, delta): upper_bounds(), theta_hat: estimates().

    Departures
    ----------
    Leaders with equal estimates stand in turns. t counts the rounds with feedback. Where examinations are estimated,
    which the paper does not treat, neighbours in the list change places in some of the exploring rounds, as long as the
    likelihood does not tell which is the better one (erratum C16).

    References
    ----------
    P. Lagrée, C. Vernade and O. Cappé, Multiple-play bandits in the position-based model, NeurIPS 2016.
    J. Komiyama, J. Honda and A. Takeda, Position-based multiple-play bandit problem with unknown position bias,
    NeurIPS 2017.

    Examples
    --------
    >>> ranker = PBMPIE(n_items=4, n_positions=2, horizon=1000, examination=[1.0, 0.5])
    >>> rng = np.random.default_rng(1)
    >>> ranker.rank(rng=rng).items
    array([0, 1])
    >>> for _ in range(4):
    ...     shown = ranker.rank(rng=rng)
    ...     ranker.learn(shown, shown.items == 2)
    >>> ranker.estimates()  # it was clicked at both positions: 2 clicks by 1.5 looks
    array([0.        , 0.        , 1.33333333, 0.        ])
    """

    summary = "Observes clicks, and explores one item at the last position."
    unservable = "it needs to know beforehand how many rounds there will be"
    no_candidates = "it explores at the last position of a list of all its positions"
    kernels = RankerKernels(pbm_pie.rank, pbm_pie.learn)
    algorithm_version = 2

    def __init__(
        self,
        *,
        n_items: int,
        n_positions: int | None = None,
        horizon: int,
        examination: ArrayLike | None = None,
        epsilon: float = 0.01,
        refresh: int = 20,
        check_order: bool = True,
    ) -> None:
        n, m = self.read_size(n_items, n_positions)
        self.horizon = whole("horizon", horizon, at_least=1)
        self.epsilon = number("epsilon", epsilon, above=0, below=1e6)
        refresh = whole("refresh", refresh, at_least=1)
        kappa = np.ones(m) if examination is None else falling_examination(examination, m)
        self.params = pbm_pie.PBMPIEParams(
            (1 + self.epsilon) * log(self.horizon), refresh if examination is None else 0
        )
        self.state = pbm_pie.PBMPIEState(
            t=np.zeros(1, np.int64),
            S=np.zeros((m, n)),
            N=np.zeros((m, n)),
            kappa=kappa,
            theta=np.zeros(n),
            unproved=np.zeros(m - 1 if examination is None and check_order else 0, np.int64),
        )

    def tunable(self) -> Mapping[str, Range]:
        return {"epsilon": Between(0.001, 10.0)}

    def scratch(self, n: int) -> pbm_pie.PBMPIEScratch:
        k = self.n_items
        return pbm_pie.PBMPIEScratch(
            theta=np.empty(k),
            turned=np.empty(k),
            order=np.empty(k, np.int64),
            sorting=sorting.scratch(k),
            others=np.empty(k, np.int64),
            pair=pbm_order.room(k, self.n_positions),
        )

    def blank_propensities(self, n: int) -> NDArray[np.float64]:
        return np.empty(n)

    def check_state(self, saved: Mapping[str, Array]) -> None:
        check_counts(saved["S"], saved["N"])
        kappa = np.asarray(saved["kappa"])
        if kappa[0] <= 0 or kappa.min() < 0 or kappa.max() > 1:
            raise ValueError(f"saved state 'kappa' must be probabilities, got {kappa}")
        if not np.isin(saved["unproved"], (0, 1)).all():
            raise ValueError(f"saved state 'unproved' must be 0 or 1, got {saved['unproved']}")

    def estimates(self) -> NDArray[np.float64]:
        """The estimated attraction of each item, clicks by examinations; zero for items not shown yet."""
        looks = self.state.kappa @ self.state.N
        found: NDArray[np.float64] = self.state.S.sum(axis=0) / np.where(looks > 0, looks, 1)
        return found

    def upper_bounds(self) -> NDArray[np.float64]:
        """U_k(t, delta) of each item: the largest attraction that the feedback does not contradict."""
        bounds = np.ones(self.n_items)
        for k in range(self.n_items):
            low, high = 0.0, 1.0
            arguments = (self.state.S, self.state.N, self.state.kappa, k)
            if pbm_pie.reaches(*arguments, 1.0, self.params.delta):
                continue
            while high - low > 1e-13:
                middle = 0.5 * (low + high)
                if pbm_pie.reaches(*arguments, middle, self.params.delta):
                    low = middle
                else:
                    high = middle
            bounds[k] = low
        return bounds

    def candidates(self) -> NDArray[np.int64]:
        """B(t): items outside the leaders that might be better than the last leader; empty in the beginning."""
        if click_counts.first_unseen(self.state.N) >= 0:
            return np.empty(0, np.int64)
        scratch = self.scratch(self.n_positions)
        q = pbm_pie.leaders(self.state, scratch)
        others = scratch.order[self.n_positions :]
        found: NDArray[np.int64] = others[self.upper_bounds()[others] >= q]
        return found

    def current(self, context: Any = None) -> NDArray[np.int64]:
        """The items that look best, in order."""
        self.read_context(context)
        if click_counts.first_unseen(self.state.N) >= 0:
            return np.argsort(-self.estimates(), kind="stable")[: self.n_positions].astype(np.int64)
        scratch = self.scratch(self.n_positions)
        pbm_pie.leaders(self.state, scratch)
        order: NDArray[np.int64] = scratch.order[: self.n_positions].copy()
        return order

    @classmethod
    def bytes_of(cls, n: int, m: int) -> int:
        return 16 * m * n + 40 * n + 16 * m + sorting.scratch_bytes(n) + pbm_order.room_bytes(n, m)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(n_items=5, n_positions=3, horizon=1000, examination=[1.0, 0.5, 0.2])
        yield cls(n_items=6, n_positions=3, horizon=1000)
        yield cls(n_items=4, horizon=100)
        yield cls(n_items=1, horizon=1)


def falling_examination(examination: ArrayLike, n_positions: int) -> NDArray[np.float64]:
    """One examination probability per position, positive and not increasing; ValueError otherwise."""
    kappa = shares("examination", examination, length=n_positions, positive=True)
    if (np.diff(kappa) > 0).any():
        raise ValueError(f"examination must not rise from position to position, got {examination!r}")
    return kappa
