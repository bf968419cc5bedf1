"""TopRank: sort items into blocks by pairwise clicks (Lattimore, Kveton, Li and Szepesvári 2018)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankloop.arguments import share, whole
from rankloop.base import Array, Memo, Ranking
from rankloop.compiled import RankerKernels
from rankloop.kernels.call_checks import within
from rankloop.kernels.elementary import log
from rankloop.kernels.rankers import top_rank
from rankloop.ranges import Between, Range
from rankloop.rankers.click_ranker import ClickRanker

C = 3.3436764018810767  # 4 sqrt(2 / pi) / erf(sqrt(2)); 3.43 in print


class TopRank(ClickRanker):
    """Shuffles items that clicks cannot tell apart yet, and never again shows a worse one above a better one.

    Items stand in blocks. Each round every block is shuffled and the blocks are shown one below the other. When one
    item of a block has been clicked without another significantly more often than the reverse, the other falls behind
    it for good. It assumes of clicks only that higher positions are examined no less, and that better items are
    clicked no less at any position.

    Parameters
    ----------
    n_items : int
        How many items there are, L.
    n_positions : int, optional
        How many of them are shown, K; None shows all.
    horizon : int, optional
        How many rounds will be played, for delta; needed unless `delta` is given.
    delta : float, optional
        The chance of ever putting a better item behind a worse one, for each pair; None is 1 / horizon.

    Notation
    --------
    L: n_items, K: n_positions, S and N: state.S, state.N, G: state.worse, P_1, P_2, ...: state.block.

    Departures
    ----------
    t counts the rounds with feedback. Feedback counts for the blocks that were shown, however late it comes.

    References
    ----------
    T. Lattimore, B. Kveton, S. Li and Cs. Szepesvári, TopRank: a practical algorithm for online stochastic ranking,
    NeurIPS 2018.

    Examples
    --------
    >>> ranker = TopRank(n_items=4, n_positions=2, delta=0.9)
    >>> rng = np.random.default_rng(1)
    >>> for _ in range(30):
    ...     shown = ranker.rank(rng=rng)
    ...     ranker.learn(shown, shown.items == 3)  # users click item 3 at any position
    >>> ranker.blocks
    [array([3]), array([0, 1, 2])]
    """

    summary = "Observes clicks, and sorts items into blocks that clicks tell apart."
    kernels = RankerKernels(top_rank.rank, top_rank.learn)

    def __init__(
        self,
        *,
        n_items: int,
        n_positions: int | None = None,
        horizon: int | None = None,
        delta: float | None = None,
    ) -> None:
        n, _ = self.read_size(n_items, n_positions)
        T = self.read_horizon(horizon, delta=delta) or 1
        self.delta = share("delta", 1 / T if delta is None else delta)
        self.params = top_rank.TopRankParams(log(C / self.delta))
        self.state = top_rank.TopRankState(
            t=np.zeros(1, np.int64),
            S=np.zeros((n, n)),
            N=np.zeros((n, n)),
            worse=np.zeros((n, n), np.int64),
            block=np.zeros(n, np.int64),
            order=np.arange(n),
        )

    @property
    def blocks(self) -> list[NDArray[np.int64]]:
        """The items of each block, best block first."""
        block = self.state.block
        return [np.flatnonzero(block == number) for number in range(int(block.max()) + 1)]

    def tunable(self) -> Mapping[str, Range]:
        return {"delta": Between(min(self.delta, 1e-9), 0.5)}

    def scratch(self, n: int) -> tuple[Any, ...]:
        return np.empty(self.n_items, np.int64), np.empty(self.n_items)

    def blank_propensities(self, n: int) -> NDArray[np.float64]:
        return np.empty(n)

    def blank_memo(self, n: int) -> Memo:
        return (np.empty(self.n_items, np.int64),)

    def check_ticket(self, ranking: Ranking) -> None:
        block = ranking.memo[0]
        if not within(block, 0, self.n_items - 1):
            raise ValueError(f"ranking.memo must be a block for each item, got {block}")

    def check_state(self, saved: Mapping[str, Array]) -> None:
        block, order = np.empty(self.n_items, np.int64), np.empty(self.n_items, np.int64)
        worse = np.asarray(saved["worse"])
        if not np.isin(worse, (0, 1)).all():
            raise ValueError(f"saved state 'worse' must be 0 or 1, got {worse}")
        top_rank.partition(worse, block, order)
        if not (np.array_equal(block, saved["block"]) and np.array_equal(order, saved["order"])):
            raise ValueError(
                "saved state 'block' and 'order' must follow from 'worse': is it a state of another ranker?"
            )

    def carry(self, old: Any, origin: NDArray[np.int64], positions: NDArray[np.int64] | None = None) -> None:
        """A new item has been compared with no other: it begins in the first block."""
        pairs = (origin[:, None] >= 0) & (origin[None, :] >= 0)
        at = np.ix_(np.maximum(origin, 0), np.maximum(origin, 0))
        for name in ("S", "N", "worse"):
            getattr(self.state, name)[:] = np.where(pairs, getattr(old.state, name)[at], 0)
        self.state.t[:] = old.state.t
        top_rank.partition(self.state.worse, self.state.block, self.state.order)

    def absorb(
        self,
        part: Any,
        items: NDArray[np.int64],
        positions: NDArray[np.int64],
        ranking: Ranking,
        feedback: NDArray[np.float64],
    ) -> None:
        for name in ("S", "N", "worse"):
            getattr(self.state, name)[np.ix_(items, items)] = getattr(part.state, name)
        self.state.t[0] += 1
        top_rank.partition(self.state.worse, self.state.block, self.state.order)

    def translate(self, ranking: Ranking, before: NDArray[np.int64]) -> Ranking | None:
        """None: clicks count for the blocks of the items that were there."""
        return None

    def current(self, context: Any = None) -> NDArray[np.int64]:
        """Items by block, within a block by how much more often they were clicked than the others."""
        self.read_context(context)
        block = self.state.block
        lead = (self.state.S * (block[:, None] == block[None, :])).sum(axis=1)
        return np.lexsort((-lead, block))[: self.n_positions].astype(np.int64)

    def regret_bound(self, attraction: Array, rounds: int) -> float:
        """The bound of Theorem 1 for clicks with these attractions where a position is looked at.

        delta T m n^2 + sum over pairs i < j, i <= m, of 1 + 6 (a_i + a_j) log(c sqrt(T) / delta) / (a_i - a_j).

        Parameters
        ----------
        attraction : array_like
            The attraction of each item, a.
        rounds : int
            The number of rounds, T.

        Returns
        -------
        float
            The bound on the expected regret.

        Examples
        --------
        >>> ranker = TopRank(n_items=10, n_positions=5, horizon=1_000_000)
        >>> round(ranker.regret_bound(0.95 - 0.03 * np.arange(10), 1_000_000))
        96790
        """
        T, alpha = whole("rounds", rounds, at_least=1), np.sort(np.asarray(attraction, np.float64))[::-1]
        m, n = self.n_positions, self.n_items
        if alpha.shape != (n,):
            raise ValueError(f"attraction must be one number per item ({n}), got shape {alpha.shape}")
        total = self.delta * T * m * n**2
        for j in range(1, n):
            for i in range(min(m, j)):
                gap = alpha[i] - alpha[j]
                if gap > 0:
                    total += 1 + 6 * (alpha[i] + alpha[j]) * math.log(C * math.sqrt(T) / self.delta) / gap
        return float(total)

    @classmethod
    def bytes_of(cls, n: int, m: int) -> int:
        return 24 * n**2 + 32 * n

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(n_items=5, n_positions=3, horizon=1000)
        yield cls(n_items=6, n_positions=3, delta=0.9)
        yield cls(n_items=4, horizon=10)
        yield cls(n_items=1, horizon=1)
