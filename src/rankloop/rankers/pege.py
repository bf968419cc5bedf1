"""PEGE: phased exploration with greedy exploitation (Chaudhuri and Tewari 2016)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop.arguments import whole
from rankloop.base import Array, Memo, Ranking
from rankloop.compiled import RankerKernels
from rankloop.feedback import TopK
from rankloop.kernels import sorting
from rankloop.kernels.rankers import pege
from rankloop.measures import Measure
from rankloop.rankers.constants import learnable
from rankloop.rankers.some_items import SomeItems, inside


class PEGE(SomeItems):
    """Explores in phases, and in between shows the items by the mean of what exploration revealed.

    Phase b puts every item on top b times, then shows the best order found so far for e^b rounds. Regret O(log^2 T)
    where users come from one population. It never forgets: where users change, regret is linear.

    Parameters
    ----------
    n_items : int
        How many items there are, m.
    measure : str or Measure, optional
        "sum_loss", "pairwise_loss", "dcg" or "precision@k" (also "dcg@k"): the measure of the ranking.
    k : int, optional
        How many top items reveal their relevance.
    max_grade : int, optional
        The largest relevance that can come back.

    Notation
    --------
    b: state.phase; the observable set: every item on top, in front of the order found so far.

    Departures
    ----------
    Which item is explored next is random. Where k > 1, all k relevances of an exploration round count.

    References
    ----------
    S. Chaudhuri and A. Tewari, Phased exploration with greedy exploitation in stochastic combinatorial partial
    monitoring games, NeurIPS 2016.

    Examples
    --------
    >>> ranker = PEGE(n_items=4, measure="dcg")
    >>> shown = ranker.rank(rng=np.random.default_rng(1))
    >>> ranker.learn(shown, [1.0])  # the relevance of shown.items[0]
    >>> int(ranker.state.due.sum())
    3
    """

    summary = "Observes the relevance of the top items, explores in phases, and trusts what it found."
    kernels = RankerKernels(pege.rank, pege.learn)
    n_items: int

    def __init__(
        self, *, n_items: int, measure: str | Measure = "dcg", k: int = 1, max_grade: int = 1
    ) -> None:
        m = whole("n_items", n_items, at_least=1)
        k = whole("k", k, at_least=1, at_most=m)
        self.learnable = learnable(measure, max_grade=max_grade, n_items=m)
        self.n_items = self.n_positions = m
        self.max_grade = max_grade
        self.feedback = TopK(k)
        self.params = pege.PEGEParams(k, self.learnable.exponential)
        self.state = pege.PEGEState(
            t=np.zeros(1, np.int64),
            phase=np.ones(1, np.int64),
            due=np.ones(m, np.int64),
            left=np.zeros(1, np.int64),
            total=np.zeros(m),
            seen=np.zeros(m),
            order=np.arange(m, dtype=np.int64),
        )

    def scratch(self, n: int) -> tuple[Any, ...]:
        return np.empty(n), sorting.scratch(n)

    def blank_memo(self, n: int) -> Memo:
        return (np.empty(1),)

    def check_state(self, saved: Mapping[str, Array]) -> None:
        if (
            saved["t"][0] < 0
            or saved["phase"][0] < 1
            or (saved["due"] < 0).any()
            or (saved["seen"] < 0).any()
        ):
            raise ValueError("saved state 't', 'due' and 'seen' must not be negative, and 'phase' at least 1")
        if sorted(saved["order"].tolist()) != list(range(self.n_items)):
            raise ValueError(f"saved state 'order' must be all items, none twice, got {saved['order']}")

    def carry(self, old: Any, origin: NDArray[np.int64], positions: NDArray[np.int64] | None = None) -> None:
        state, known = self.state, origin >= 0
        for name in ("t", "phase", "left"):
            getattr(state, name)[:] = getattr(old.state, name)
        for name in ("due", "total", "seen"):
            getattr(state, name)[known] = getattr(old.state, name)[origin[known]]
        # As often as the others so far, in all phases together.
        state.due[~known] = state.phase[0] * (state.phase[0] + 1) // 2
        pege.sort(state, self.scratch(self.n_items))

    def learn_among(
        self,
        ranking: Ranking,
        feedback: ArrayLike,
        items: NDArray[np.int64],
        positions: NDArray[np.int64],
    ) -> None:
        # Means over exploration rounds, whatever else was a candidate in them; the other items go to the end, of which
        # nothing is observed. A phase is over when every item of the catalogue has had its turns.
        part = self.among(items, positions)
        part.learn(inside(ranking, items), feedback)  # which checks all of it
        revealed = part.feedback.check(feedback, len(ranking.items))
        rest = np.setdiff1d(np.arange(self.n_items), ranking.items)
        whole = np.concatenate([ranking.items, rest]).astype(np.int64)
        params = self.params._replace(k=len(revealed))
        pege.learn(
            params, self.state, None, self.scratch(self.n_items), whole, np.empty(0), ranking.memo, revealed
        )

    def translate(self, ranking: Ranking, before: NDArray[np.int64]) -> Ranking | None:
        """With the items that are new at its end, as long as those that reveal their relevance are still there."""
        if (before[: self.params.k] < 0).any():
            return None
        kept = before[before >= 0]
        rest = np.setdiff1d(np.arange(self.n_items), kept)
        return Ranking(np.concatenate([kept, rest]).astype(np.int64), None, ranking.memo, ranking.explored)

    def current(self, context: Any = None) -> NDArray[np.int64]:
        found: NDArray[np.int64] = self.state.order.copy()
        return found

    @classmethod
    def bytes_for(
        cls, *, n_items: int = 0, n_positions: int | None = None, n_features: int = 0, **parameters: Any
    ) -> int:
        return 48 * n_items + sorting.scratch_bytes(n_items)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(n_items=4)
        yield cls(n_items=5, measure="sum_loss", k=2)
        yield cls(n_items=3, measure="dcg", max_grade=4)
        yield cls(n_items=1)
