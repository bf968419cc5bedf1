"""A neural ranker from a log of clicks, which goes live as the module of `NeuralPDGD` or `NeuralRTopK`."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankloop.arguments import number, whole
from rankloop.extras import require
from rankloop.features import read_features
from rankloop.feedback import LoggedLists, Sessions
from rankloop.logs.counterfactual import corrected_clicks, told_of
from rankloop.logs.regression import OrdersItems

if TYPE_CHECKING:  # importing this package must not import torch
    import torch


Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FittedNeuralRanker(OrdersItems):
    """A torch module that predicts how attractive an item is.

    Parameters
    ----------
    module : torch.nn.Module
        The trained copy: the argument `module` of `rankers.NeuralPDGD` and `rankers.NeuralRTopK`.
    losses : ndarray of float
        The mean squared error to the corrected clicks, after each epoch.
    method : str
        How clicks were corrected.
    clip : float
        The largest weight of a click.
    bias : float
        The most by which clipping may have moved the corrected click rates, on average over impressions; 0 where no
        weight was clipped.
    n_impressions : int
        How many impressions the log has.
    """

    module: torch.nn.Module
    losses: Floats
    method: str
    clip: float
    bias: float
    n_impressions: int

    def __repr__(self) -> str:
        return told_of(self, type(self.module).__name__)

    def scores(self, features: ArrayLike) -> Floats:
        """The score of each item, by its row of `features`: its predicted attraction."""
        import torch

        rows = read_features(features, name="features")
        with torch.no_grad():
            scores: Floats = _scores(self.module, _tensor(rows, self.module)).numpy().astype(np.float64)
        return scores

    def _scores(self, features: ArrayLike) -> Floats:
        return self.scores(features)


def fit_neural_ranker(
    log: Sessions | LoggedLists,
    *,
    module: torch.nn.Module,
    examination: ArrayLike,
    features: ArrayLike | None = None,
    method: str = "doubly-robust",
    clip: float = 20.0,
    epochs: int = 20,
    batch_size: int = 256,
    learning_rate: float = 0.01,
    seed: int = 0,
) -> FittedNeuralRanker:
    """Train a torch module on clicks, each weighed by how seldom users look at its position.

    As `fit_ranker`, with a network in place of weights: least squares of its scores to the corrected clicks, by Adam.

    Parameters
    ----------
    log : Sessions or LoggedLists
        The lists. Those of `LoggedLists` with features bring their own.
    module : torch.nn.Module
        Maps items x features to one score for each item, by itself. A copy is trained, in evaluation mode as in
        `rankers.NeuralPDGD`.
    examination, features, method, clip : object
        As for `fit_ranker`.
    epochs : int, optional
        How often to go through the log.
    batch_size : int, optional
        Items a step.
    learning_rate : float, optional
        Adam's step.
    seed : int, optional
        Of the order in which items come.
    """
    require("torch", extra="torch", for_="fit_neural_ranker")
    import torch

    whole("epochs", epochs, at_least=1)
    whole("batch_size", batch_size, at_least=1)
    number("learning_rate", learning_rate, above=0)
    if not isinstance(module, torch.nn.Module):
        raise ValueError(f"module must be a torch.nn.Module, got {module!r}")
    corrected = corrected_clicks(log, examination=examination, features=features, method=method, clip=clip)
    shown = corrected.times > 0
    trained = copy.deepcopy(module).eval()
    x, y = _tensor(corrected.x[shown], trained), _tensor(corrected.rates[shown], trained)
    weight = _tensor(corrected.times[shown] / corrected.times.sum() * shown.sum(), trained)
    try:
        _scores(trained, x[:2])
    except RuntimeError as error:
        raise ValueError(
            f"module must take items with {x.shape[1]} features, got the error: {error}"
        ) from error
    optimiser = torch.optim.Adam(trained.parameters(), lr=learning_rate)
    rng = np.random.default_rng(seed)
    losses = []
    for _ in range(epochs):
        for part in np.array_split(rng.permutation(len(x)), max(1, len(x) // batch_size)):
            optimiser.zero_grad()
            (weight[part] * (_scores(trained, x[part]) - y[part]) ** 2).mean().backward()
            optimiser.step()
        with torch.no_grad():
            losses.append(float((weight * (_scores(trained, x) - y) ** 2).mean()))
    if not np.isfinite(losses[-1]):
        raise ValueError(
            f"learning_rate must be small enough to train the module, got {learning_rate}: the loss is not finite"
        )
    optimiser.zero_grad()
    return FittedNeuralRanker(
        module=trained,
        losses=np.array(losses),
        method=method,
        clip=float(clip),
        bias=corrected.bias,
        n_impressions=int(corrected.times.sum()),
    )


def _tensor(values: NDArray[np.float64], module: torch.nn.Module) -> torch.Tensor:
    import torch

    kind = next((value.dtype for value in module.parameters()), torch.float32)
    return torch.as_tensor(np.array(values), dtype=kind)


def _scores(module: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    scores: torch.Tensor = module(x)
    if tuple(scores.shape) not in ((len(x),), (len(x), 1)):
        raise ValueError(
            f"module must give one score for each of {len(x)} items, got shape {tuple(scores.shape)}"
        )
    return scores.reshape(-1)
