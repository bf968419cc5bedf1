"""Ranking algorithms that learn from partial feedback.

>>> from rankloop import environments, rankers, simulation
>>> users = environments.FixedItems(environments.users.noisy_halves(n_items=10), measure="dcg")
>>> ranker = rankers.RTop1F(n_items=10, horizon=10_000, measure="dcg")
>>> trace = simulation.play(ranker, users, rounds=10_000, seed=1)
>>> bool(trace.total_regret < 2_000)
True

A plain installation ranks, learns and simulates. Extras bring more: ``rankloop[plot]`` figures, ``[data]`` click
logs and tables, ``[cli]`` the command ``rankloop``, ``[serve]`` the live service, ``[client]`` its `Client` and
`AsyncClient`, ``[all]`` all of these; ``[torch]`` rankers with a neural network. Whatever needs an extra that is
missing says so in one sentence.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
import warnings
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from rankloop.extras import installed, require

if TYPE_CHECKING:  # the same names as `__getattr__` opens, for type checkers and editors
    from rankloop import advice as advice
    from rankloop import arguments as arguments
    from rankloop import base as base
    from rankloop import checks as checks
    from rankloop import claims as claims
    from rankloop import data as data
    from rankloop import environments as environments
    from rankloop import experiments as experiments
    from rankloop import feedback as feedback
    from rankloop import games as games
    from rankloop import kernels as kernels
    from rankloop import logs as logs
    from rankloop import measures as measures
    from rankloop import rankers as rankers
    from rankloop import serving as serving
    from rankloop import simulation as simulation
    from rankloop import surrogates as surrogates
    from rankloop.advice import advise as advise
    from rankloop.rankers.registry import load as load
    from rankloop.serving.client import AsyncClient as AsyncClient
    from rankloop.serving.client import Client as Client

__version__ = "0.3.0"

_MODULES = frozenset(
    {
        "advice",
        "arguments",
        "base",
        "checks",
        "claims",
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
_FOR_CLIENTS = ("httpx", "msgspec")
_FUNCTIONS = {"advise": "rankloop.advice", "load": "rankloop.rankers.registry"}

__all__ = ["__version__"]


if not TYPE_CHECKING:  # a checker would take every name for known, and of any type

    def __getattr__(name: str) -> Any:
        # Packages are imported on first use, so that `import rankloop` stays quick and pulls in no compiler.
        if name in _MODULES:
            return importlib.import_module(f"rankloop.{name}")
        if name in _FUNCTIONS:
            return getattr(importlib.import_module(_FUNCTIONS[name]), name)
        if name in _CLIENTS:
            require(*_FOR_CLIENTS, extra="client", for_=f"rankloop.{name}")
            return getattr(importlib.import_module("rankloop.serving.client"), name)
        raise AttributeError(f"module 'rankloop' has no attribute {name!r}")


# Paths that were published once; version 0.4 drops them.
MOVED = {
    "rankloop.games.near_walls": "rankloop.games",
    "rankloop.kernels.gain_kinds": "rankloop.kernels.discounts",
    "rankloop.rankers.load": "rankloop.rankers.registry",
    "rankloop.serving.checking": "rankloop.serving.stores.checks",
    "rankloop.serving.memory": "rankloop.serving.stores.sqlite",
    "rankloop.serving.store": "rankloop.serving.stores.contract",
    "rankloop.serving.stores.memory": "rankloop.serving.stores.sqlite",
}


class _OldPaths(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Opens a module by the path that it had, and says where it is now."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        return importlib.machinery.ModuleSpec(name, self) if name in MOVED else None

    def exec_module(self, module: ModuleType) -> None:
        new = MOVED[module.__name__]
        warnings.warn(f"{module.__name__} has moved to {new}", DeprecationWarning, stacklevel=2)
        vars(module).update({k: v for k, v in vars(importlib.import_module(new)).items() if k[:2] != "__"})


sys.meta_path.append(_OldPaths())


def __dir__() -> list[str]:
    # `help` and tab completion look at every name: only those that open without a missing extra.
    names = {name for name in globals() if name.startswith("__")} | {*_MODULES, *_CLIENTS, *_FUNCTIONS}
    if not installed("msgspec"):
        names -= {"serving"}
    if not all(installed(module) for module in _FOR_CLIENTS):
        names -= _CLIENTS
    return sorted(names)
