"""GRAB: clicks by positions whose order is unknown (Gauthier, Gaudel, Fromont and Lompo 2021)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankloop.arguments import whole
from rankloop.base import Array, Memo, Ranking
from rankloop.compiled import RankerKernels
from rankloop.kernels.call_checks import within
from rankloop.kernels.rankers import grab
from rankloop.kernels.solvers import assignment
from rankloop.kernels.solvers.assignment import best_list
from rankloop.kernels.solvers.ties import in_order
from rankloop.ranges import Range, Whole
from rankloop.rankers.click_ranker import ClickRanker, carried_table, check_counts, same_positions

_TABLE = 4096  # leaders that are remembered; a run has a few hundred


class GRAB(ClickRanker):
    """Moves from the best list so far to the neighbour that could be better, one step at a time.

    Every item at every position has a mean and an upper bound. The best list by the means leads. Shown is the leader
    or, unless its turn has come, the neighbour with the largest sum of bounds: two positions next to each other in
    attention exchange their items, or the item at the least attended position is replaced. It needs to know neither the
    examination probabilities nor which positions are looked at most.

    Parameters
    ----------
    n_items : int
        How many items there are, K.
    n_positions : int, optional
        How many of them are shown, L; None shows all.
    gamma : int, optional
        Every how many times that it leads a leader is shown for certain; None is K.

    Notation
    --------
    rho_hat: state.S / state.N; T_k,i: state.N; T~: state.led; F: the KL-UCB index of level log T~ + 3 log log T~.

    Departures
    ----------
    It begins with the K circular lists. Equally good leaders take turns. How often each list has led is kept in a table
    of limited size, which forgets lists that led least. t counts the rounds with feedback.

    References
    ----------
    C. Gauthier, R. Gaudel, E. Fromont and B. A. Lompo, Parametric graph for unimodal ranking bandit, ICML 2021.

    Examples
    --------
    >>> ranker = GRAB(n_items=5, n_positions=2)
    >>> rng = np.random.default_rng(1)
    >>> for _ in range(200):
    ...     shown = ranker.rank(rng=rng)
    ...     ranker.learn(shown, (shown.items == 3) & (np.arange(2) == 1))  # item 3, and only at the second position
    >>> int(ranker.current()[1])
    3
    """

    summary = "Observes clicks, and explores the neighbours of the best list so far."
    kernels = RankerKernels(grab.rank, grab.learn)

    def __init__(self, *, n_items: int, n_positions: int | None = None, gamma: int | None = None) -> None:
        n, m = self.read_size(n_items, n_positions)
        self.gamma = n if gamma is None else whole("gamma", gamma, at_least=1)
        self.params = grab.GRABParams(self.gamma)
        self.state = grab.GRABState(
            t=np.zeros(1, np.int64),
            S=np.zeros((m, n)),
            N=np.zeros((m, n)),
            leaders=np.zeros(_TABLE, np.uint64),
            led=np.zeros(_TABLE, np.int64),
        )

    def tunable(self) -> Mapping[str, Range]:
        return {"gamma": Whole(1, 2 * self.n_items)}

    def scratch(self, n: int) -> tuple[Any, ...]:
        m, k = self.n_positions, self.n_items
        return np.empty((m, k)), assignment.room(m, k), np.empty(m, np.int64)

    def blank_memo(self, n: int) -> Memo:
        return (np.empty(n, np.int64),)

    def check_ticket(self, ranking: Ranking) -> None:
        leader = ranking.memo[0]
        if not within(leader, -1, self.n_items - 1):
            raise ValueError(f"ranking.memo must name items below {self.n_items}, got {leader}")

    def check_state(self, saved: Mapping[str, Array]) -> None:
        check_counts(saved["S"], saved["N"])
        if (saved["led"] < 0).any():
            raise ValueError("saved state 'led' must not be negative")

    def carry(self, old: Any, origin: NDArray[np.int64], positions: NDArray[np.int64] | None = None) -> None:
        """A new item was never shown: the circular lists that lack it come first, then it is one among neighbours."""
        there = same_positions(positions, self.n_positions, old.n_positions)
        state = self.state
        state.S[:] = carried_table(old.state.S, origin, there)
        state.N[:] = carried_table(old.state.N, origin, there)
        state.t[:] = old.state.t
        # Lists of other items have led so far. The present leader has been shown about as often as the one of its
        # places that was shown least.
        leader = np.empty(self.n_positions, np.int64)
        grab.find_leader(state, self.scratch(self.n_positions), leader)
        key = np.uint64(grab.leader_key(leader))
        state.leaders[grab.find(state, key)] = key
        state.led[grab.find(state, key)] = int(state.N[np.arange(self.n_positions), leader].min())

    def absorb(
        self,
        part: Any,
        items: NDArray[np.int64],
        positions: NDArray[np.int64],
        ranking: Ranking,
        feedback: NDArray[np.float64],
    ) -> None:
        self.state.S[np.ix_(positions, items)] = part.state.S
        self.state.N[np.ix_(positions, items)] = part.state.N
        self.state.t[0] += 1

    def translated_memo(self, ranking: Ranking, before: NDArray[np.int64]) -> Memo:
        return (np.full(self.n_positions, -1, np.int64),)  # another list led

    def learn_shown(self, items: NDArray[np.int64], feedback: Any) -> bool:
        """Learns: its counts are of whatever was shown."""
        self.learn(Ranking(items, None, (np.full(len(items), -1, np.int64),)), feedback)
        return True

    def current(self, context: Any = None) -> NDArray[np.int64]:
        """The leader: the list with the most clicks according to the means so far."""
        self.read_context(context)
        means = self.state.S / np.maximum(self.state.N, 1.0)
        leader = np.empty(self.n_positions, np.int64)
        best_list(means, leader)
        return in_order(means, leader)

    @classmethod
    def bytes_of(cls, n: int, m: int) -> int:
        return 24 * m * n + 40 * n + 16 * (m + _TABLE)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(n_items=5, n_positions=3)
        yield cls(n_items=4, gamma=2)
        yield cls(n_items=3, n_positions=1)
        yield cls(n_items=1)
