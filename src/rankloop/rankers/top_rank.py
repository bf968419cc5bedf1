"""TopRank: sort items into blocks by pairwise clicks (Lattimore, Kveton, Li and Szepesvári 2018)."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankloop import state_file
from rankloop.arguments import share, whole
from rankloop.base import Array, Memo, Ranking
from rankloop.compiled import RankerKernels
from rankloop.kernels.call_checks import within
from rankloop.kernels.elementary import log
from rankloop.kernels.rankers import top_rank
from rankloop.ranges import Between, Range
from rankloop.rankers.click_ranker import ClickRanker

_UNWRITTEN = np.full(1, -1)
_NOT_FROM_WORSE = "saved state 'block' and 'order' must follow from 'worse': is it a state of another ranker?"
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
    L: n_items, K: n_positions, S and N: differences and sums of `wins`, G: state.worse, P_1, P_2, ...: state.block.

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

    algorithm_version = 2
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
            clicks=np.zeros(n, np.int64),
            pairs=np.zeros((n, n), np.int32),
            worse=np.zeros((n, -(-n // 64)), np.uint64),
            fingerprint=np.zeros(1, np.int64),
            block=np.zeros(n, np.int64),
            order=np.arange(n),
            ends=np.full(n, n),
            due=np.full(n, math.ceil(2.0 * self.params.log_c_delta - 1e-6)),  # an item that wins every time
        )

    @property
    def blocks(self) -> list[NDArray[np.int64]]:
        """The items of each block, best block first."""
        block = self.state.block
        return [np.flatnonzero(block == number) for number in range(int(block.max()) + 1)]

    @property
    def wins(self) -> NDArray[np.int64]:
        """[i, k]: clicks on i and not on k while they shared a block. S is wins - wins.T, and N is wins + wins.T."""
        return _wins(self.state, np.arange(self.n_items))

    def tunable(self) -> Mapping[str, Range]:
        return {"delta": Between(min(self.delta, 1e-9), 0.5)}

    def scratch(self, n: int) -> tuple[Any, ...]:
        n_items, m = self.n_items, self.n_positions
        moved = np.zeros(n_items, np.int64), np.empty(m, np.int64), np.empty(m, np.int64)
        return (
            *moved,
            np.empty(n_items, np.int64),
            np.empty(n_items, np.bool_),
            np.empty_like(self.state.worse[0]),
        )

    def blank_propensities(self, n: int) -> NDArray[np.float64]:
        return np.empty(n)

    def blank_memo(self, n: int) -> Memo:
        return _UNWRITTEN.copy(), np.empty(self.n_items, np.int32)

    def check_ticket(self, ranking: Ranking) -> None:
        block = ranking.memo[1]
        if not within(block, 0, self.n_items - 1):
            raise ValueError(f"ranking.memo must be a block for each item, got {block}")

    def load(self, saved: Mapping[str, Array] | str | os.PathLike[str]) -> None:
        if isinstance(saved, str | os.PathLike):
            saved = state_file.read(saved)
        super().load(self._of_version_1(saved) if {"S", "N"} <= set(saved) else saved)

    def _of_version_1(self, saved: Mapping[str, Array]) -> Mapping[str, Array]:
        # It had S and N themselves, and a number for each pair in `worse`.
        n = self.n_items
        for name in ("S", "N", "worse"):
            if np.shape(saved[name]) != (n, n):
                raise ValueError(
                    f"saved state {name!r} has the shape {np.shape(saved[name])}, this TopRank has {n} items"
                )
        ranker = self.clone()
        wins = ((np.asarray(saved["N"]) + saved["S"]) / 2).astype(np.int64)
        ranker._know(np.asarray(saved["t"]), wins.max(axis=1), wins, np.asarray(saved["worse"]) != 0)
        same = np.array_equal(ranker.state.block, saved["block"])
        if not (same and np.array_equal(ranker.state.order, saved["order"])):
            raise ValueError(_NOT_FROM_WORSE)
        kept = {state_file.ORIGIN: saved[state_file.ORIGIN]} if state_file.ORIGIN in saved else {}
        return ranker.state_arrays() | kept

    def check_state(self, saved: Mapping[str, Array]) -> None:
        found = self.clone().state
        found.worse[:] = saved["worse"]
        if (_unpacked(found.worse, 64 * found.worse.shape[1])[:, self.n_items :]).any():
            raise ValueError(f"saved state 'worse' must be of {self.n_items} items, got {saved['worse']}")
        top_rank.take_fingerprint(found)
        top_rank.partition(found.worse, np.empty_like(found.worse[0]), found.block, found.order, found.ends)
        for name in ("block", "order", "ends", "fingerprint"):
            if not np.array_equal(getattr(found, name), saved[name]):
                raise ValueError(_NOT_FROM_WORSE)
        clicks, pairs = np.asarray(saved["clicks"]), np.asarray(saved["pairs"])
        if (pairs < 0).any() or (pairs > clicks[:, None]).any():
            raise ValueError(f"saved state 'pairs' must be from 0 to 'clicks', got {pairs} and {clicks}")

    def carry(self, old: Any, origin: NDArray[np.int64], positions: NDArray[np.int64] | None = None) -> None:
        """A new item has been compared with no other: it begins in the first block."""
        known, before = origin >= 0, np.maximum(origin, 0)
        pairs = known[:, None] & known[None, :]
        worse = _unpacked(old.state.worse[before], old.n_items)[:, before]
        clicks = np.where(known, old.state.clicks[before], 0)
        self._know(old.state.t, clicks, np.where(pairs, _wins(old.state, before), 0), worse & pairs)

    def _know(self, t: Array, clicks: Array, wins: NDArray[np.int64], worse: NDArray[np.bool_]) -> None:
        state = self.state
        state.t[:], state.clicks[:], state.worse[:] = t, clicks, _packed(worse)
        top_rank.take_fingerprint(state)
        top_rank.partition(state.worse, np.empty_like(state.worse[0]), state.block, state.order, state.ends)
        state.pairs[:] = _pairs(state, np.arange(self.n_items), wins)
        state.due[:] = 0

    def absorb(
        self,
        part: Any,
        items: NDArray[np.int64],
        positions: NDArray[np.int64],
        ranking: Ranking,
        feedback: NDArray[np.float64],
    ) -> None:
        state = self.state
        # The clicks count against no item that was not a candidate.
        clicks = part.state.clicks - state.clicks[items]
        state.pairs[items] += (clicks[:, None] * (state.block[items, None] == state.block)).astype(np.int32)
        state.clicks[items] = part.state.clicks
        state.pairs[np.ix_(items, items)] = _pairs(state, items, part.wins)
        state.t[0] += 1
        worse = _unpacked(state.worse[items], self.n_items)
        found = _unpacked(part.state.worse, len(items))
        if not np.array_equal(worse[:, items], found):
            worse[:, items] = found
            state.worse[items] = _packed(worse)
            top_rank.take_fingerprint(state)
            top_rank.regroup(
                self.params.log_c_delta, state, np.empty_like(state.block), np.empty_like(state.worse[0])
            )

    def translate(self, ranking: Ranking, before: NDArray[np.int64]) -> Ranking | None:
        """None: clicks count for the blocks of the items that were there."""
        return None

    def current(self, context: Any = None) -> NDArray[np.int64]:
        """Items by block, within a block by how much more often they were clicked than the others."""
        self.read_context(context)
        lead = np.empty(self.n_items)
        top_rank.leads(self.state, lead)
        return np.lexsort((-lead, self.state.block))[: self.n_positions].astype(np.int64)

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
        return 4 * n**2 + n * -(-n // 64) * 8 + 57 * n + 24 * m

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(n_items=5, n_positions=3, horizon=1000)
        yield cls(n_items=6, n_positions=3, delta=0.9)
        yield cls(n_items=4, horizon=10)
        yield cls(n_items=1, horizon=1)


def _wins(state: Any, items: NDArray[np.int64]) -> NDArray[np.int64]:
    return _pairs(state, items, state.pairs[np.ix_(items, items)])


def _pairs(state: Any, items: NDArray[np.int64], wins: NDArray[Any]) -> NDArray[np.int64]:
    # Wins of these items as `state.pairs` has them; the same makes `state.pairs` into wins.
    block = state.block[items]
    turned: NDArray[np.int64] = np.where(block[:, None] == block, state.clicks[items, None] - wins, wins)
    np.fill_diagonal(turned, 0)
    return turned


def _unpacked(worse: NDArray[np.uint64], n: int) -> NDArray[np.bool_]:
    bits = np.unpackbits(worse.astype("<u8").view(np.uint8), axis=1, count=n, bitorder="little")
    return bits.astype(np.bool_)


def _packed(worse: NDArray[np.bool_]) -> NDArray[np.uint64]:
    n = worse.shape[1]
    padded = np.zeros((len(worse), 64 * -(-n // 64)), np.bool_)
    padded[:, :n] = worse
    return np.packbits(padded, axis=1, bitorder="little").view("<u8").astype(np.uint64)
