"""Rank a list, hear back about only a sliver of it, learn, rank better.

>>> from rankloop import environments, rankers, simulation
>>> people = environments.FixedItems(environments.users.noisy_halves(n_items=10), measure="dcg")
>>> ranker = rankers.RTop1F(n_items=10, horizon=10_000, measure="dcg")
>>> trace = simulation.play(ranker, people, rounds=10_000, seed=1)
>>> bool(trace.total_regret < 2_000)
True
"""

from __future__ import annotations

import importlib
from types import ModuleType

__version__ = "0.1.0"

_ROOMS = frozenset(
    {
        "base",
        "checks",
        "data",
        "environments",
        "experiments",
        "feedback",
        "kernels",
        "logs",
        "measures",
        "rankers",
        "simulation",
        "surrogates",
    }
)

__all__ = ["__version__"]


def __getattr__(name: str) -> ModuleType:
    # Rooms open on first use, so that `import rankloop` stays quick and pulls in no compiler.
    if name in _ROOMS:
        return importlib.import_module(f"rankloop.{name}")
    raise AttributeError(f"module 'rankloop' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_ROOMS})
