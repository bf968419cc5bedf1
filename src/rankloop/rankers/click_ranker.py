"""What the rankers of fixed items that learn from clicks by position have in common."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankloop.arguments import whole
from rankloop.base import Array, Floats, Ints, Memo, Ranking
from rankloop.compiled import read_positions
from rankloop.feedback import Clicks
from rankloop.rankers.candidates import SomeItems


class ClickRanker(SomeItems):
    """A compiled ranker that shows `n_positions` of `n_items` items and observes clicks."""

    n_items: int
    n_positions: int
    horizon: int | None

    def read_size(self, n_items: Any, n_positions: Any) -> tuple[int, int]:
        """Check and keep how many items there are and how many are shown, all by default; returns the two."""
        n = whole("n_items", n_items, at_least=1)
        m = read_positions(n_positions, n) or n
        self.n_items, self.n_positions, self.feedback = n, m, Clicks()
        return n, m

    def read_horizon(self, horizon: Any, **needed_unless: Any) -> int | None:
        """Check and keep how many rounds will be played; it may be None where each of the others is given."""
        self.horizon = None if horizon is None else whole("horizon", horizon, at_least=1)
        if self.horizon is None and any(value is None for value in needed_unless.values()):
            missing = " or ".join(needed_unless)
            raise ValueError(
                f"horizon must be a whole number of at least 1 where {missing} is None, got None"
            )
        return self.horizon

    def translate(self, ranking: Ranking, before: Ints) -> Ranking | None:
        """As it is, as long as all shown items and positions are still there."""
        if len(before) != self.n_positions or (before < 0).any():
            return None
        return Ranking(before, ranking.propensities, self.translated_memo(ranking, before), ranking.explored)

    def translated_memo(self, ranking: Ranking, before: Ints) -> Memo:
        """The memo of a ranking from before a change of items, for the items as they are now."""
        return ranking.memo

    def carry_counts(self, old: Any, origin: Ints, positions: Ints | None) -> Ints:
        """Take over the rounds, clicks S and displays N; returns for each position the one that it was before."""
        there = same_positions(positions, self.n_positions, old.n_positions)
        self.state.S[:] = carried_table(old.state.S, origin, there)
        self.state.N[:] = carried_table(old.state.N, origin, there)
        self.state.t[:] = old.state.t
        return there

    @classmethod
    def bytes_for(
        cls, *, n_items: int = 0, n_positions: int | None = None, n_features: int = 0, **parameters: Any
    ) -> int:
        return cls.bytes_of(n_items, n_positions or n_items)

    @classmethod
    def bytes_of(cls, n: int, m: int) -> int:
        """About how much memory state and scratch take with `n` items on `m` positions."""
        return 24 * n * m


def carried_table(known: Array, origin: Ints, positions: Ints, new: float = 0.0) -> Floats:
    """A table of positions x items for other items and positions; `new` where an item was not there."""
    found: Floats = np.where(origin >= 0, known[positions][:, np.maximum(origin, 0)], new)
    return found


def in_turn(values: Floats) -> float:
    """Their sum, one after the other: a library chooses the order by the machine."""
    total = 0.0
    for value in values.tolist():
        total += value
    return total


def shared_weights(known: Array, origin: Ints, positions: Ints, *, least: float) -> Floats:
    """Weights that sum to one at each position: an even share for a new item, the rest in the old proportions."""
    n, n_new = len(origin), int((origin < 0).sum())
    table = carried_table(known, origin, positions)
    for row in table:
        total = in_turn(row)
        if total > 0.0:
            row *= (1.0 - n_new / n) / total
        row[origin < 0] = 1.0 / n
        row[:] = np.maximum(row, least)
        row /= in_turn(row)
    return table


def same_positions(positions: Ints | None, n_positions: int, before: int) -> Ints:
    """For each position the one that it was before; where there are more now, the last stands for them."""
    return np.minimum(np.arange(n_positions), before - 1) if positions is None else positions


def check_counts(S: Array, N: Array) -> None:
    """ValueError unless clicks lie between 0 and displays."""
    if (np.asarray(S) < 0).any() or (np.asarray(S) > np.asarray(N)).any():
        raise ValueError("saved state 'S' must be click counts, from 0 to the displays in 'N'")


def are_chances(x: Array, rows: Array) -> bool:
    """Whether x has the chances of items at positions: each position sums to 1, each item to `rows`, at most 1."""
    return bool(
        (x > 0).all()
        and np.allclose(x.sum(axis=1), 1, rtol=0, atol=1e-8)
        and np.allclose(x.sum(axis=0), rows, rtol=0, atol=1e-8)
        and rows.max() <= 1 + 1e-8
    )
