"""A world in which users look at the middle of the list first, which a ranker has to find out by itself."""

from __future__ import annotations

from rankloop import environments, simulation
from rankloop.base import Ranker


def regret_where_the_middle_is_seen_first(ranker: Ranker) -> float:
    """Regret after 30,000 rounds, at the end of which the ranker must know the best list of five items."""
    users = environments.PositionBased(attraction=[0.9, 0.2, 0.6, 0.4, 0.1], examination=[0.2, 1.0, 0.5])
    trace = simulation.play(ranker, users, rounds=30_000, seed=1, points=10)
    assert ranker.current().tolist() == users.best().items.tolist() == [3, 0, 2]
    return trace.total_regret
