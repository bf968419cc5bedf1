"""CascadeKL-UCB: users read down to the first item that attracts them (Kveton, Szepesvári, Wen and Ashkan 2015)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankloop.base import Array, Ranking
from rankloop.compiled import RankerKernels
from rankloop.kernels import sorting
from rankloop.kernels.rankers import cascade_kl_ucb
from rankloop.rankers.click_ranker import ClickRanker


class CascadeKLUCB(ClickRanker):
    """Shows the items with the largest upper confidence bounds on how attractive they are.

    For users who read from the top, click the first item that attracts them and leave: everything above a click was
    examined and not clicked, and nothing is observed below it. The goal is that users find
    at least one attractive item. Of several clicks only the first counts.

    Parameters
    ----------
    n_items : int
        How many items there are, L.
    n_positions : int, optional
        How many of them are shown, K; None shows all.

    Notation
    --------
    T_t(e): state.N, w_hat(e): state.W / state.N, U_t(e): the indices with n d(w_hat, U) = log t + 3 log log t.

    Departures
    ----------
    Items never observed come before all others, instead of a separate initial phase. Equal indices take turns. t counts


    the
    rounds with feedback.

    References
    ----------
    B. Kveton, Cs. Szepesvári, Z. Wen and A. Ashkan, Cascading bandits: learning to rank in the cascade model,
    ICML 2015.

    Examples
    --------
    >>> ranker = CascadeKLUCB(n_items=5, n_positions=3)
    >>> shown = ranker.rank(rng=np.random.default_rng(1))
    >>> ranker.learn(shown, [0, 1, 0])  # the first was passed over, the second clicked, the third not reached
    >>> ranker.state.N
    array([1., 1., 0., 0., 0.])
    """

    stops_at_click = True
    summary = "Observes clicks of users who read down to the first good item, and keeps confidence bounds."
    kernels = RankerKernels(cascade_kl_ucb.rank, cascade_kl_ucb.learn)

    def __init__(self, *, n_items: int, n_positions: int | None = None) -> None:
        n, _ = self.read_size(n_items, n_positions)
        self.params = cascade_kl_ucb.CascadeParams(n)
        self.state = cascade_kl_ucb.CascadeState(np.zeros(1, np.int64), np.zeros(n), np.zeros(n))

    def scratch(self, n: int) -> tuple[Any, ...]:
        k = self.n_items
        return np.empty(k), np.empty(k), np.empty(k, np.int64), sorting.scratch(k)

    def check_state(self, saved: Mapping[str, Array]) -> None:
        if (saved["W"] < 0).any() or (saved["W"] > saved["N"]).any():
            raise ValueError("saved state 'W' must be click counts, from 0 to the observations in 'N'")

    def carry(self, old: Any, origin: NDArray[np.int64], positions: NDArray[np.int64] | None = None) -> None:
        """A new item was never examined: it comes before all others."""
        known = origin >= 0
        for name in ("N", "W"):
            getattr(self.state, name)[known] = getattr(old.state, name)[origin[known]]
        self.state.t[:] = old.state.t

    def absorb(
        self,
        part: Any,
        items: NDArray[np.int64],
        positions: NDArray[np.int64],
        ranking: Ranking,
        feedback: NDArray[np.float64],
    ) -> None:
        self.state.N[items], self.state.W[items] = part.state.N, part.state.W
        self.state.t[0] += 1

    def learn_shown(self, items: NDArray[np.int64], feedback: Any) -> bool:
        """Learns: its counts are of whatever was shown."""
        self.learn(Ranking(items, None, ()), feedback)
        return True

    def current(self, context: Any = None) -> NDArray[np.int64]:
        """The items with the highest click rate where they were observed."""
        self.read_context(context)
        means = self.state.W / np.maximum(self.state.N, 1)
        return np.argsort(-means, kind="stable")[: self.n_positions].astype(np.int64)

    @classmethod
    def bytes_of(cls, n: int, m: int) -> int:
        return 40 * n + sorting.scratch_bytes(n)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(n_items=5, n_positions=3)
        yield cls(n_items=4)
        yield cls(n_items=1)
