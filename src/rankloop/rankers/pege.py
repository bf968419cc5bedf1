"""PEGE: phased exploration with greedy exploitation (Chaudhuri and Tewari 2016).

Phase b puts every item on top b times and then shows the items by their mean gains for e^b rounds. Which item is
explored next is drawn evenly from those still due, so rankings may overlap and feedback may come late.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rankloop.arguments import whole
from rankloop.base import Array, Floats, Ints, Memo, Ranking
from rankloop.compiled import RankerKernels
from rankloop.feedback import TopK
from rankloop.kernels import sorting
from rankloop.kernels.elementary import exp
from rankloop.kernels.jit import hot
from rankloop.kernels.measures import exp2_gain
from rankloop.kernels.random import below
from rankloop.kernels.sorting import by_falling_score
from rankloop.measures import Measure
from rankloop.rankers.candidates import SomeItems, inside
from rankloop.rankers.constants import learnable

_LONGEST = 40.0  # e^40 rounds are never over


class PEGEParams(NamedTuple):
    """What feedback means."""

    k: int
    exponential: bool  # g(r) = 2**r - 1 instead of r


class PEGEState(NamedTuple):
    """What exploration has revealed, and where in its phase the ranker is."""

    t: Ints  # rounds learnt
    phase: Ints  # b, counted from 1
    due: Ints  # by item: how often it is still to be explored in this phase
    left: Ints  # rounds without exploration that are left in this phase
    total: Floats  # by item: gains ...
    seen: Floats  # ... and how many of them
    order: Ints  # items by falling mean


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """The best order so far, in an exploration round behind one of the items that are due."""
    m, n_due = len(items), 0
    for i in range(m):
        n_due += state.due[i] > 0
        items[i] = state.order[i]
    memo[0][0] = 1.0 if n_due > 0 else 0.0
    if n_due == 0:
        return False
    nth = below(key, 0, n_due)
    chosen = -1
    while nth >= 0:
        chosen += 1
        nth -= state.due[chosen] > 0
    place = 0
    while items[place] != chosen:
        place += 1
    for position in range(place, 0, -1):
        items[position] = items[position - 1]
    items[0] = chosen
    return True


@hot
def learn(
    params: Any, state: Any, context: Any, scratch: Any, items: Any, propensities: Any, memo: Any, labels: Any
) -> None:
    """Count what exploration revealed; go on to the next phase when this one is over."""
    state.t[0] += 1
    open_before = _n_due(state)
    if memo[0][0] > 0.0:
        for position in range(params.k):
            item = items[position]
            gain = exp2_gain(labels[position]) if params.exponential else labels[position]
            state.total[item] += gain
            state.seen[item] += 1.0
            state.due[item] = max(state.due[item] - 1, 0)
    elif open_before == 0:
        state.left[0] -= 1
    if open_before > 0 and _n_due(state) == 0:
        state.left[0] = np.int64(exp(min(float(state.phase[0]), _LONGEST)))
        sort(state, scratch)
    if _n_due(state) == 0 and state.left[0] <= 0:
        state.phase[0] += 1
        for i in range(len(state.due)):
            state.due[i] = state.phase[0]


@hot
def sort(state: Any, scratch: Any) -> None:
    """Order the items by their mean gains."""
    scores, sort_scratch = scratch
    for i in range(len(scores)):
        scores[i] = state.total[i] / state.seen[i] if state.seen[i] > 0.0 else 0.0
    by_falling_score(scores, len(scores), state.order, sort_scratch)


@hot
def _n_due(state: Any) -> int:
    n = 0
    for i in range(len(state.due)):
        n += state.due[i] > 0
    return n


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
    kernels = RankerKernels(rank, learn)
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
        self.params = PEGEParams(k, self.learnable.exponential)
        self.state = PEGEState(
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

    def carry(self, old: Any, origin: Ints, positions: Ints | None = None) -> None:
        state, known = self.state, origin >= 0
        for name in ("t", "phase", "left"):
            getattr(state, name)[:] = getattr(old.state, name)
        for name in ("due", "total", "seen"):
            getattr(state, name)[known] = getattr(old.state, name)[origin[known]]
        # As often as the others so far, in all phases together.
        state.due[~known] = state.phase[0] * (state.phase[0] + 1) // 2
        sort(state, self.scratch(self.n_items))

    def learn_among(self, ranking: Ranking, feedback: ArrayLike, items: Ints, positions: Ints) -> None:
        # Means over exploration rounds, whatever else was a candidate in them; the other items go to the end, of which
        # nothing is observed. A phase is over when every item of the catalogue has had its turns.
        part = self.among(items, positions)
        part.learn(inside(ranking, items), feedback)  # which checks all of it
        revealed = part.feedback.check(feedback, len(ranking.items))
        rest = np.setdiff1d(np.arange(self.n_items), ranking.items)
        whole = np.concatenate([ranking.items, rest]).astype(np.int64)
        params = self.params._replace(k=len(revealed))
        learn(
            params, self.state, None, self.scratch(self.n_items), whole, np.empty(0), ranking.memo, revealed
        )

    def translate(self, ranking: Ranking, before: Ints) -> Ranking | None:
        """With the items that are new at its end, as long as those that reveal their relevance are still there."""
        if (before[: self.params.k] < 0).any():
            return None
        kept = before[before >= 0]
        rest = np.setdiff1d(np.arange(self.n_items), kept)
        return Ranking(np.concatenate([kept, rest]).astype(np.int64), None, ranking.memo, ranking.explored)

    def current(self, context: Any = None) -> Ints:
        found: Ints = self.state.order.copy()
        return found

    @classmethod
    def bytes_for(cls, *, n_items: int = 0, **parameters: Any) -> int:
        return 48 * n_items + sorting.scratch_bytes(n_items)
