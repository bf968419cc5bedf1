"""RTop-kF with a neural scorer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from rankloop import surrogates
from rankloop.arguments import one_of, whole
from rankloop.base import Ranking
from rankloop.compiled import read_features
from rankloop.feedback import TopK
from rankloop.kernels import random
from rankloop.measures.measure import HIGHEST_GRADE
from rankloop.rankers.neural.module_ranker import MakeOptimiser, ModuleRanker, small_module
from rankloop.rankers.schedules import read_schedule
from rankloop.ranking import draw_key
from rankloop.surrogates.estimators import horvitz_thompson

if TYPE_CHECKING:
    import torch

_SURROGATES = ("squared", "kl", "smooth_dcg", "ranksvm")


class NeuralRTopK(ModuleRanker):
    """RTop-kF with scores from any torch module: observes the labels of the top k documents.

    With probability gamma a list is in random order, otherwise by falling score. The labels of the top k give an
    unbiased estimate of a surrogate's gradient with respect to the scores, and autograd carries it on to the module's
    parameters.

    Parameters
    ----------
    module : torch.nn.Module
        Maps documents x features to one score for each document. A copy is learnt, in evaluation mode.
    n_features : int
        The length of a document's feature vector.
    k : int, optional
        How many top documents reveal their label.
    surrogate : str, optional
        "squared", "kl", "smooth_dcg" or "ranksvm" (needs k >= 2).
    exploration : float or tuple of float, optional
        Gamma: a number, or a pair (scale, power) for scale * t**-power, at most 1.
    max_grade : int, optional
        The largest label; larger feedback is refused.
    learning_rate : float, optional
        The step of an optimiser that is given by name.
    optimiser : str or callable, optional
        "sgd", "adagrad" or "adam"; or a function that takes the parameters and gives a `torch.optim.Optimizer`.

    Departures
    ----------
    The estimator uses all k labels, each divided by the probability that it was seen, and is averaged over the list.
    "squared" and "kl" guess each label by its score, cut to 0..max_grade (a control variate); beyond -max_grade and
    2 max_grade their scores count as these. The regret bound is for linear scores and says nothing here.

    References
    ----------
    S. Chaudhuri and A. Tewari, Online learning to rank with feedback at the top, AISTATS 2016, Algorithm 1.
    """

    summary = "Observes the labels of the top documents, and learns a neural network."

    def __init__(
        self,
        *,
        module: torch.nn.Module,
        n_features: int,
        k: int = 1,
        surrogate: str = "squared",
        exploration: float | tuple[float, float] = (1.0, 1 / 3),
        max_grade: int = 4,
        learning_rate: float = 0.05,
        optimiser: str | MakeOptimiser = "adagrad",
    ) -> None:
        self.feedback = TopK(k)
        self.max_grade = whole("max_grade", max_grade, at_least=1, at_most=int(HIGHEST_GRADE))
        name = one_of("surrogate", surrogate, _SURROGATES)
        self.surrogate = surrogates.require(surrogates.get(name), k)
        self.exploration = read_schedule("exploration", exploration, positive=False)
        if self.exploration.power == 0 and not 0 < self.exploration.scale <= 1:
            raise ValueError(f"exploration must be a probability above 0, got {exploration!r}")
        super().__init__(
            module=module, n_features=n_features, optimiser=optimiser, learning_rate=learning_rate
        )

    def rank(self, context: Any = None, *, rng: np.random.Generator) -> Ranking:
        features = read_features(context, self.n_features)
        scores, n = self._scores(features), len(features)
        key = draw_key(rng)
        gamma = min(1.0, self.exploration.at(int(self.state.t[0]) + 1))
        tiebreak, items = np.empty(n, np.int64), np.empty(n, np.int64)
        random.shuffle(key, 1, n, tiebreak)
        greedy = np.lexsort((tiebreak, -scores))
        explored = random.uniform(key, 0) < gamma
        if explored:
            random.shuffle(key, 1 + n, n, items)
        else:
            items[:] = greedy
        chances = (1.0 - gamma) * (items == greedy) + gamma / n
        return Ranking(items, chances, (np.array([gamma]), scores, greedy, features.copy()), bool(explored))

    def learn(self, ranking: Ranking, feedback: ArrayLike) -> None:
        features, labels = self._read_ticket(ranking, feedback, 4)
        n, (header, scores, greedy, _) = len(features), ranking.memo
        if labels.max(initial=0.0) > self.max_grade:
            raise ValueError(f"feedback must be at most max_grade={self.max_grade}, got {labels}")
        if header.shape != (1,) or not 0 < header[0] <= 1:
            raise ValueError(
                f"ranking.memo must begin with a probability, got {header!r}: of another ranker?"
            )
        if scores.shape != (n,) or not np.isfinite(scores).all() or sorted(greedy.tolist()) != list(range(n)):
            raise ValueError(f"ranking.memo must hold {n} scores and their order, got {scores!r}, {greedy!r}")
        self._descend(features, self._estimate(ranking, scores, greedy, float(header[0]), labels))
        self.state.t[0] += 1

    def _estimate(self, ranking: Ranking, scores: Any, greedy: Any, gamma: float, labels: Any) -> Any:
        guess = None
        if self.surrogate.name in ("squared", "kl"):
            highest = self.max_grade or 0
            scores = np.clip(scores, -highest, 2 * highest)
            guess = np.clip(scores, 0, highest)
        z = horvitz_thompson(
            self.surrogate,
            s=scores,
            shown=ranking.items,
            labels=labels,
            greedy=greedy,
            gamma=gamma,
            baseline=guess,
        )
        return -z / len(scores) if self.surrogate.is_gain else z / len(scores)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        deep = small_module(3)
        yield cls(module=deep, n_features=3)
        yield cls(module=deep, n_features=3, k=2, surrogate="ranksvm", exploration=0.5, optimiser="sgd")
