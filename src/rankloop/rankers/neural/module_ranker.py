"""What rankers with a torch module have in common: scores, steps, and a state that saves and loads."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop import state_file
from rankloop.arguments import number, one_of, whole
from rankloop.base import Array, Ranker, Ranking
from rankloop.compiled import check_items, read_features
from rankloop.extras import require

if TYPE_CHECKING:  # importing this package must not import torch
    import torch

_SETTINGS = "optimiser.json"
_OPTIMISERS = ("sgd", "adagrad", "adam")
MakeOptimiser = Callable[[Any], Any]


class ModuleState(NamedTuple):
    """Beside the module and the optimiser, which hold arrays of their own."""

    t: NDArray[np.int64]  # rounds learnt


class ModuleRanker(Ranker):
    """Scores documents by a torch module; a subclass estimates the gradient with respect to the scores.

    The module works on a copy, always in evaluation mode: dropout is off, and normalisation keeps its statistics. It is
    played step by step, and its bytes depend on the version of torch and on the machine.

    Parameters
    ----------
    module : torch.nn.Module
        Maps documents x features to one score for each document.
    n_features : int
        The length of a document's feature vector.
    optimiser : str or callable
        "sgd", "adagrad" or "adam"; or a function that takes the parameters and gives a `torch.optim.Optimizer`.
    learning_rate : float
        The optimiser's step, for optimisers given by name.
    """

    n_positions = None
    n_features: int
    portable = False
    informed = True  # by the weights that the module comes with
    unservable = "a torch module is code, which the log of a service cannot hold"

    def __init__(
        self,
        *,
        module: torch.nn.Module,
        n_features: int,
        optimiser: str | MakeOptimiser,
        learning_rate: float,
    ) -> None:
        require("torch", extra="torch", for_=type(self).__name__)
        import torch

        self.n_features = whole("n_features", n_features, at_least=1)
        if not isinstance(module, torch.nn.Module):
            raise ValueError(f"module must be a torch.nn.Module, got {module!r}")
        rate = number("learning_rate", learning_rate, above=0)
        self.module = copy.deepcopy(module).eval()
        kinds = {value.dtype for value in self.module.state_dict().values() if value.is_floating_point()}
        if not kinds <= {torch.float32, torch.float64} or len(kinds) != 1:
            raise ValueError(
                f"module must have parameters of float32 or of float64, got {sorted(map(str, kinds))}"
            )
        self._dtype = kinds.pop()
        learnt = [value for value in self.module.parameters() if value.requires_grad]
        if not learnt:
            raise ValueError("module must have parameters that require a gradient, got none")
        if isinstance(optimiser, str):
            make: Any = {
                "sgd": torch.optim.SGD,
                "adagrad": torch.optim.Adagrad,
                "adam": torch.optim.Adam,
            }[one_of("optimiser", optimiser, _OPTIMISERS)]
            self.optimiser = make(learnt, lr=rate)
        else:
            self.optimiser = optimiser(learnt)
            if not isinstance(self.optimiser, torch.optim.Optimizer):
                raise ValueError(f"optimiser must give a torch.optim.Optimizer, got {self.optimiser!r}")
        self.state = ModuleState(np.zeros(1, np.int64))
        try:
            self._scores(np.zeros((2, self.n_features)))
        except RuntimeError as error:
            raise ValueError(
                f"module must take documents with n_features={self.n_features}, got the error: {error}"
            ) from error

    def _forward(self, features: NDArray[Any]) -> torch.Tensor:
        import torch

        scores: torch.Tensor = self.module(torch.as_tensor(np.array(features), dtype=self._dtype))
        if tuple(scores.shape) not in ((len(features),), (len(features), 1)):
            raise ValueError(
                f"module must give one score for each of {len(features)} documents, got shape {tuple(scores.shape)}"
            )
        return scores.reshape(-1)

    def _scores(self, features: NDArray[Any]) -> NDArray[np.float64]:
        import torch

        with torch.no_grad():
            scores: NDArray[np.float64] = self._forward(features).numpy().astype(np.float64)
        if not np.isfinite(scores).all():
            raise ValueError(f"module must give finite scores, got {scores}")
        return scores

    def _descend(self, features: NDArray[Any], gradient: NDArray[np.float64]) -> None:
        # One step of the optimiser, for this gradient with respect to the scores.
        import torch

        self.optimiser.zero_grad()
        try:
            self._forward(features).backward(torch.as_tensor(gradient, dtype=self._dtype))
            slopes = [value.grad for value in self.module.parameters() if value.grad is not None]
            if not all(bool(torch.isfinite(slope).all()) for slope in slopes):
                raise FloatingPointError("the module's gradient is not finite: nothing was learnt")
            self.optimiser.step()
        finally:
            self.optimiser.zero_grad()

    def _read_ticket(
        self, ranking: Ranking, feedback: ArrayLike, n_parts: int
    ) -> tuple[NDArray[Any], NDArray[np.float64]]:
        # The features that a ticket ends with, and what was revealed of its list.
        n = len(ranking.items)
        revealed = self.feedback.check(feedback, n)
        if len(ranking.memo) != n_parts:
            raise ValueError(f"ranking.memo must have {n_parts} parts, got {len(ranking.memo)}")
        features = read_features(ranking.memo[-1], self.n_features)
        if len(features) != n:
            raise ValueError(
                f"ranking.memo must end with a request for {n} items, got one for {len(features)}"
            )
        check_items(ranking.items, n, n)
        return features, revealed

    def current(self, context: Any = None) -> NDArray[np.int64]:
        return np.argsort(-self._scores(read_features(context, self.n_features)), kind="stable")

    def example_context(self, rng: np.random.Generator) -> Any:
        return rng.random((int(rng.integers(1, 9)), self.n_features))

    def state_arrays(self) -> dict[str, Array]:
        """The module's and the optimiser's `state_dict` as named arrays, and the number of rounds.

        Returns
        -------
        dict of str to numpy.ndarray
            `t`, `module.*`, `optimiser.*`, and the optimiser's settings as JSON. Nothing that could run.
        """
        arrays: dict[str, Array] = {"t": self.state.t.copy()}
        for name, value in self.module.state_dict().items():
            arrays[f"module.{name}"] = value.detach().numpy().copy()
        kept = self.optimiser.state_dict()
        settings: dict[str, Any] = {"groups": kept["param_groups"], "state": {}}
        for place, entries in kept["state"].items():
            settings["state"][str(place)] = {}
            for name, value in entries.items():
                if hasattr(value, "detach"):
                    arrays[f"optimiser.{place}.{name}"] = value.detach().numpy().copy()
                else:
                    settings["state"][str(place)][name] = value
        return arrays | {_SETTINGS: np.array(json.dumps(settings))}

    def load(self, saved: Mapping[str, Array] | str | os.PathLike[str]) -> None:
        if isinstance(saved, str | os.PathLike):
            saved = state_file.read(saved)
        state_file.check_origin(saved, self)
        weights, kept = self._read_module(saved), self._read_optimiser(saved)
        before = copy.deepcopy(self.optimiser.state_dict())
        try:
            self.optimiser.load_state_dict(kept)
        except (ValueError, KeyError, TypeError) as error:
            self.optimiser.load_state_dict(before)
            raise ValueError(f"saved state of the optimiser does not fit: {error}") from error
        self.module.load_state_dict(weights)
        self.state.t[...] = saved["t"]

    def _read_module(self, saved: Mapping[str, Array]) -> dict[str, Any]:
        import torch

        mine = {name: value for name, value in self.state_arrays().items() if name.startswith("module.")}
        theirs = {name for name in saved if not name.startswith("optimiser.")} - {state_file.ORIGIN}
        if theirs != {"t", *mine} or _SETTINGS not in saved:
            raise ValueError(
                f"saved state has {sorted(saved)}, this module needs {sorted(mine)}, t and {_SETTINGS}"
            )
        for name, value in {**mine, "t": self.state.t}.items():
            given = np.asarray(saved[name])
            if given.shape != value.shape or given.dtype != value.dtype:
                raise ValueError(
                    f"saved state {name!r} is {given.dtype}{given.shape}, "
                    f"this {type(self).__name__} holds {value.dtype}{value.shape}: another module?"
                )
            if not np.isfinite(given).all():
                raise ValueError(f"saved state {name!r} must be finite, got {given}")
        if saved["t"][0] < 0:
            raise ValueError(f"saved state 't' must not be negative, got {saved['t'][0]}")
        return {name.partition(".")[2]: torch.as_tensor(np.array(saved[name])) for name in mine}

    def _read_optimiser(self, saved: Mapping[str, Array]) -> dict[str, Any]:
        import torch

        try:
            settings = json.loads(str(saved[_SETTINGS]))
            groups, entries = settings["groups"], settings["state"]
            state: dict[int, dict[str, Any]] = {int(place): dict(part) for place, part in entries.items()}
            n_learnt = sum(len(group["params"]) for group in self.optimiser.param_groups)
            for name, value in saved.items():
                if name.startswith("optimiser.") and name != _SETTINGS:
                    _, place, entry = name.split(".", 2)
                    if not (0 <= int(place) < n_learnt and np.isfinite(value).all()):
                        raise ValueError(f"{name} must be finite, and of one of {n_learnt} parameters")
                    state.setdefault(int(place), {})[entry] = torch.as_tensor(np.array(value))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"saved state of the optimiser cannot be read: {error}") from error
        return {"param_groups": groups, "state": state}


def small_module(n_features: int) -> torch.nn.Module:
    """A network with one hidden layer, always the same, for the checks."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        return torch.nn.Sequential(torch.nn.Linear(n_features, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
