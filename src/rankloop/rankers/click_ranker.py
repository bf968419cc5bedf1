"""What the rankers of fixed items that learn from clicks by position have in common."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankloop.arguments import whole
from rankloop.base import Array
from rankloop.compiled import CompiledRanker, read_positions
from rankloop.feedback import Clicks


class ClickRanker(CompiledRanker):
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

    @classmethod
    def bytes_for(
        cls, *, n_items: int = 0, n_positions: int | None = None, n_features: int = 0, **parameters: Any
    ) -> int:
        return cls.bytes_of(n_items, n_positions or n_items)

    @classmethod
    def bytes_of(cls, n: int, m: int) -> int:
        """About how much memory state and scratch take with `n` items on `m` positions."""
        return 24 * n * m


def check_counts(S: Array, N: Array) -> None:
    """ValueError unless clicks lie between 0 and displays."""
    if (np.asarray(S) < 0).any() or (np.asarray(S) > np.asarray(N)).any():
        raise ValueError("saved state 'S' must be click counts, from 0 to the displays in 'N'")
