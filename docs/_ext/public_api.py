"""What is public: the modules that the API reference covers, and the names in each."""

from __future__ import annotations

import importlib
import inspect
import typing
from types import ModuleType
from typing import Any

# Title on the page, module, and whether each name has a page of its own.
MODULES = [
    ("Rankers", "rankloop.rankers", True),
    ("Rankers with a neural network", "rankloop.rankers.neural", False),
    ("Rankers by name, and from a file", "rankloop.rankers.registry", False),
    ("Environments", "rankloop.environments", True),
    ("Users of fixed items", "rankloop.environments.users", False),
    ("Measures", "rankloop.measures", True),
    ("Feedback and click models", "rankloop.feedback", True),
    ("Interleaving and multileaving", "rankloop.feedback.interleaving", False),
    ("Verdicts at any time", "rankloop.feedback.anytime", False),
    ("Surrogates", "rankloop.surrogates", True),
    ("Estimators of a surrogate's gradient", "rankloop.surrogates.estimators", False),
    ("Moments of an estimator", "rankloop.surrogates.moments", False),
    ("Simulation", "rankloop.simulation", True),
    ("Executors", "rankloop.simulation.executors", False),
    ("Ranges of arguments", "rankloop.ranges", False),
    ("Advice", "rankloop.advice", False),
    ("Games", "rankloop.games", True),
    ("Well-known games", "rankloop.games.zoo", False),
    ("Feedback models of ranking games", "rankloop.games.signal_models", False),
    ("Data", "rankloop.data", True),
    ("Logs", "rankloop.logs", True),
    ("Models for search engines", "rankloop.export_model", False),
    ("Experiments", "rankloop.experiments", False),
    ("The suite", "rankloop.suite", False),
    ("Statements of the papers", "rankloop.claims", False),
    ("Contracts", "rankloop.base", False),
    ("What a service asks of a ranker", "rankloop.servable", False),
    ("Rows of features", "rankloop.features", False),
    ("Reading arguments", "rankloop.arguments", False),
    ("Compiled rankers and environments", "rankloop.compiled", False),
    ("Checks", "rankloop.checks", False),
    ("Compiling a kernel", "rankloop.kernels.jit", False),
    ("Random numbers in a kernel", "rankloop.kernels.random", False),
    ("Sorting in a kernel", "rankloop.kernels.sorting", False),
    ("Client of the service", "rankloop.serving.client", False),
    ("Stores of the service", "rankloop.serving.stores.contract", False),
    ("Checks of a store", "rankloop.serving.stores.checks", False),
]


def names(module: ModuleType) -> list[str]:
    """The public names: `__all__`, or where there is none the classes and functions that the module defines."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return [name for name in listed if not inspect.ismodule(getattr(module, name))]
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isclass(value) or inspect.isroutine(value) or hasattr(value, "py_func"))
        and getattr(value, "__module__", "") == module.__name__
    ]


def kind(value: Any) -> str:
    """The kind of a public thing: class, exception, function, alias (of a type) or data."""
    if typing.get_origin(value) is not None:
        return "alias"
    if inspect.isclass(value):
        return "exception" if issubclass(value, BaseException) else "class"
    return "function" if inspect.isroutine(value) or hasattr(value, "py_func") else "data"


def everything() -> list[tuple[str, str, str, Any]]:
    """Module, name, kind and value of every public thing."""
    found = []
    for _, path, _ in MODULES:
        module = importlib.import_module(path)
        found += [(path, name, kind(getattr(module, name)), getattr(module, name)) for name in names(module)]
    return found
