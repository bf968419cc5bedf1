"""PDGD with a neural scorer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from rankloop.arguments import whole
from rankloop.base import Ranking
from rankloop.compiled import read_features
from rankloop.feedback import TopClicks
from rankloop.kernels.plackett_luce import room_for_weights
from rankloop.kernels.rankers import neural
from rankloop.rankers.neural.module_ranker import MakeOptimiser, ModuleRanker, small_module
from rankloop.ranking import draw_key

if TYPE_CHECKING:
    import torch


class NeuralPDGD(ModuleRanker):
    """PDGD with scores from any torch module.

    Lists are drawn and clicks are turned into preferences as `PDGD` does; the estimated gradient with respect to the
    scores is the same, and autograd carries it on to the module's parameters. With a linear module and "sgd" it is
    PDGD.

    Parameters
    ----------
    module : torch.nn.Module
        Maps documents x features to one score for each document. A copy is learnt, in evaluation mode.
    n_features : int
        The length of a document's feature vector.
    n_positions : int, optional
        How many documents are shown, and may be clicked.
    learning_rate : float, optional
        The step of an optimiser that is given by name.
    optimiser : str or callable, optional
        "sgd", "adagrad" or "adam"; or a function that takes the parameters and gives a `torch.optim.Optimizer`.

    Departures
    ----------
    As for `PDGD`. Clicks that come late are weighed by the scores that the list was drawn by, and change the module as
    it is now.

    References
    ----------
    H. Oosterhuis and M. de Rijke, Differentiable unbiased online learning to rank, CIKM 2018, Algorithm 1.
    """

    summary = "Observes clicks on the first documents of each list, and learns a neural network."

    def __init__(
        self,
        *,
        module: torch.nn.Module,
        n_features: int,
        n_positions: int = 10,
        learning_rate: float = 0.1,
        optimiser: str | MakeOptimiser = "sgd",
    ) -> None:
        self.feedback = TopClicks(whole("n_positions", n_positions, at_least=1))
        super().__init__(
            module=module, n_features=n_features, optimiser=optimiser, learning_rate=learning_rate
        )

    def rank(self, context: Any = None, *, rng: np.random.Generator) -> Ranking:
        features = read_features(context, self.n_features)
        scores, n = self._scores(features), len(features)
        m = self.feedback.length(n)
        items, header = np.empty(n, np.int64), np.zeros(3)
        neural.draw(scores, m, draw_key(rng), np.empty(room_for_weights(n)), items, header)
        rest = np.sort(items[m:])
        items[m:] = rest[np.argsort(-scores[rest], kind="stable")]
        return Ranking(items, memo=(header, scores[items[:m]], features.copy()))

    def learn(self, ranking: Ranking, feedback: ArrayLike) -> None:
        features, clicks = self._read_ticket(ranking, feedback, 3)
        header, shown, _ = ranking.memo
        m = len(clicks)
        for part, shape in ((header, (3,)), (shown, (m,))):
            if part.shape != shape or part.dtype != np.float64:
                raise ValueError(f"ranking.memo must hold float64{shape}, got {part!r}: of another ranker?")
        if not (np.isfinite(header).all() and np.isfinite(shown).all() and header[0] == m and header[2] >= 0):
            raise ValueError(f"ranking.memo must be finite, and of {m} items, got {header}")
        step = np.zeros(m)
        if neural.preferences(shown, header, clicks, np.empty((3, m + 1)), step):
            gradient = np.zeros(len(features))
            gradient[ranking.items[:m]] = -step
            self._descend(features, gradient)
        self.state.t[0] += 1

    @classmethod
    def examples(cls) -> Iterator[Self]:
        deep = small_module(3)
        yield cls(module=deep, n_features=3, n_positions=3, optimiser="adam", learning_rate=0.01)
        yield cls(module=deep.double(), n_features=3)
