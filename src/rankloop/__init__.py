"""Ranking algorithms that learn from partial feedback.

>>> from rankloop import environments, rankers, simulation
>>> people = environments.FixedItems(environments.users.noisy_halves(n_items=10), measure="dcg")
>>> ranker = rankers.RTop1F(n_items=10, horizon=10_000, measure="dcg")
>>> trace = simulation.play(ranker, people, rounds=10_000, seed=1)
>>> bool(trace.total_regret < 2_000)
True

A plain installation ranks, learns and simulates. Extras bring more: ``rankloop[plot]`` figures, ``[data]`` click
logs and tables, ``[cli]`` the command ``rankloop``, ``[serve]`` the live service, ``[client]`` its `Client` and
`AsyncClient`, ``[all]`` all of these. Whatever needs an extra that is missing says so in one sentence.
"""

from __future__ import annotations

import importlib
from typing import Any

from rankloop.extras import installed, require

__version__ = "0.2.0"

_ROOMS = frozenset(
    {
        "base",
        "checks",
        "data",
        "environments",
        "experiments",
        "feedback",
        "games",
        "kernels",
        "logs",
        "measures",
        "rankers",
        "serving",
        "simulation",
        "surrogates",
    }
)

_CLIENTS = frozenset({"AsyncClient", "Client"})  # of the ranking service
_FOR_CLIENTS = ("httpx",)

__all__ = ["__version__"]


def __getattr__(name: str) -> Any:
    # Packages are imported on first use, so that `import rankloop` stays quick and pulls in no compiler.
    if name in _ROOMS:
        return importlib.import_module(f"rankloop.{name}")
    if name in _CLIENTS:
        require(*_FOR_CLIENTS, extra="client", for_=f"rankloop.{name}")
        return getattr(importlib.import_module("rankloop.serving.client"), name)
    raise AttributeError(f"module 'rankloop' has no attribute {name!r}")


def __dir__() -> list[str]:
    # `help` and tab completion look at every name: only those that open without a missing extra.
    names = {*globals(), *_ROOMS, *_CLIENTS}
    if not installed("msgspec"):
        names -= {"serving"}
    if not all(installed(module) for module in _FOR_CLIENTS):
        names -= _CLIENTS
    return sorted(names)
