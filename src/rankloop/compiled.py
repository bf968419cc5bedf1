"""Rankers and environments whose arithmetic is a set of kernels: the contracts filled in once for all of them.

A subclass states its kernels, params, state and the shape of its ticket. Stepwise play then calls the kernels one
by one, and `simulation.play` hands the same kernels to the compiled loop, so both tell the same story, bit by bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.base import (
    Array,
    Environment,
    Memo,
    Ranker,
    Ranking,
    draw_key,
)


class RankerKernels(NamedTuple):
    """The two halves of a compiled ranker.

    rank(params, state, context, key, scratch, items, propensities, memo) -> explored
    learn(params, state, scratch, items, propensities, memo, feedback)
    """

    rank: Callable[..., bool]
    learn: Callable[..., None]


class EnvironmentKernels(NamedTuple):
    """The four answers of a compiled environment.

    arrive(params, state, key) -> context; respond(params, state, items, key, revealed)
    value(params, state, items) -> float; hindsight(params, state) -> float
    """

    arrive: Callable[..., Any]
    respond: Callable[..., None]
    value: Callable[..., float]
    hindsight: Callable[..., float]


Ticket = tuple[NDArray[np.int64], NDArray[np.float64], Memo]


class CompiledRanker(Ranker):
    """A ranker made of kernels."""

    kernels: RankerKernels
    params: Any  # a NamedTuple of numbers and arrays that never change
    n_items: int

    def scratch(self) -> tuple[Any, ...]:
        """Room for the kernels to work in; never state."""
        return ()

    def blank_memo(self) -> Memo:
        """The arrays that `rank` writes for `learn` to read."""
        return ()

    def blank_propensities(self) -> NDArray[np.float64]:
        """Room for exact propensities; empty where there are none to tell."""
        return np.empty(0)

    def blank_ticket(self) -> Ticket:
        """An unwritten ticket."""
        return np.empty(self.n_positions, np.int64), self.blank_propensities(), self.blank_memo()

    def rank(self, context: Any = None, *, rng: np.random.Generator) -> Ranking:
        items, propensities, memo = self.blank_ticket()
        explored = self.kernels.rank(
            self.params, self.state, context, draw_key(rng), self.scratch(), items, propensities, memo
        )
        return Ranking(items, propensities if len(propensities) else None, memo, bool(explored))

    def learn(self, ranking: Ranking, feedback: Array) -> None:
        # The kernels do not check bounds, and a ticket may come from anywhere.
        revealed = self.feedback.check(feedback, self.n_positions)
        if self.max_grade is not None and revealed.max(initial=0.0) > self.max_grade:
            raise ValueError(f"feedback must be at most max_grade={self.max_grade}, got {revealed}")
        items, propensities, memo = self.blank_ticket()
        given = (ranking.items, ranking.propensities if len(propensities) else propensities, *ranking.memo)
        for name, wanted, got in zip(
            ("items", "propensities", *(f"memo.{i}" for i in range(len(memo)))),
            (items, propensities, *memo),
            given,
            strict=False,
        ):
            if got is None or got.shape != wanted.shape or got.dtype != wanted.dtype:
                raise ValueError(
                    f"ranking.{name} must be {wanted.dtype}{wanted.shape}, got {got!r}: a ticket of another ranker?"
                )
        if len(ranking.memo) != len(memo):
            raise ValueError(f"ranking.memo must have {len(memo)} parts, got {len(ranking.memo)}")
        check_items(ranking.items, self.n_items)
        self.check_ticket(ranking)
        self.kernels.learn(
            self.params, self.state, self.scratch(), ranking.items, given[1], ranking.memo, revealed
        )

    def check_ticket(self, ranking: Ranking) -> None:
        """ValueError where arrays of the right shape hold what no ticket of this ranker could hold."""
        return


class CompiledEnvironment(Environment):
    """An environment made of kernels."""

    kernels: EnvironmentKernels
    params: Any
    state: Any
    n_items: int

    def arrive(self, *, rng: np.random.Generator) -> Any:
        return self.kernels.arrive(self.params, self.state, draw_key(rng))

    def respond(self, ranking: Ranking, *, rng: np.random.Generator) -> NDArray[np.float64]:
        revealed = np.empty(self.n_positions)
        check_items(ranking.items, self.n_items)
        self.kernels.respond(self.params, self.state, ranking.items, draw_key(rng), revealed)
        return revealed

    def value(self, ranking: Ranking) -> float:
        check_items(ranking.items, self.n_items)
        return float(self.kernels.value(self.params, self.state, ranking.items))

    def hindsight(self) -> float:
        return float(self.kernels.hindsight(self.params, self.state))

    def restart(self) -> None:
        for part in self.state:
            part[...] = 0


def check_items(items: NDArray[np.int64], n_items: int) -> None:
    """ValueError unless `items` are all of `n_items` items, each once."""
    if items.shape != (n_items,) or items.dtype != np.int64:
        raise ValueError(f"items must be int64({n_items},), got {items.dtype}{items.shape}")
    if items.min() < 0 or items.max() >= n_items:
        raise ValueError(f"items must be in 0..{n_items - 1}, got {items}")
    seen = np.zeros(n_items, np.bool_)
    seen[items] = True
    if np.count_nonzero(seen) != len(items):
        raise ValueError(f"items must not repeat, got {items}")
