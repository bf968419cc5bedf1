"""One round of Algorithm 1 (2016) at given weights: the shown order by trying keys, the step by the plain reference."""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankloop import surrogates
from rankloop.base import Floats, Ints, Ranking
from rankloop.rankers import RTopKF
from rankloop.surrogates import estimators

MAX_GRADE = 4
FORMS = [
    (name, estimator, variate)
    for name in ("squared", "kl", "smooth_dcg", "ranksvm")
    for estimator in ("paper", "horvitz-thompson")
    for variate in ((None,) if name == "ranksvm" else (None, "score", "mean"))
]


class Keyed(np.random.Generator):
    """A generator whose next word is given."""

    def __init__(self, key: int) -> None:
        super().__init__(np.random.PCG64(0))
        self.key = key

    @property
    def bit_generator(self) -> Any:
        return SimpleNamespace(random_raw=lambda: self.key)


def keyed(key: int) -> Any:
    """A generator whose next word is `key`."""
    return Keyed(key)


def a_list(n: int, d: int, seed: int) -> tuple[Floats, Floats]:
    """Features and labels of n documents."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.integers(0, MAX_GRADE + 1, n).astype(np.float64)


def project(w: Floats, radius: float) -> Floats:
    """Line 11."""
    norm = float(np.linalg.norm(w))
    return w if norm <= radius else w * (radius / norm)


@dataclass
class Learner:
    """An `RTopKF` beside the arguments that the reference needs."""

    surrogate: str
    k: int
    estimator: str = "paper"
    control_variate: str | None = None
    n_features: int = 3
    gamma: float = 0.5
    eta: float = 0.7
    epsilon: float = 0.6
    radius: float = 1e6

    def __post_init__(self) -> None:
        self.ranker = self.made(self.gamma)
        self.never_explores = self.made(1e-300)

    def made(self, gamma: float) -> RTopKF:
        return RTopKF(
            n_features=self.n_features,
            surrogate=self.surrogate,
            k=self.k,
            learning_rate=self.eta,
            exploration=gamma,
            radius=self.radius,
            estimator=self.estimator,
            control_variate=self.control_variate,
            epsilon=self.epsilon,
            max_grade=MAX_GRADE,
        )

    def at(self, w: Floats, labels_seen: tuple[float, float] = (0.0, 0.0)) -> Learner:
        """The same with these weights, and with so large a sum and number of labels seen."""
        for ranker in (self.ranker, self.never_explores):
            ranker.state.w[:] = w
            ranker.state.labels[:] = labels_seen
            ranker.state.t[0] = 0
        return self

    def show(self, X: NDArray[Any], key: int) -> tuple[Ranking, Ints]:
        """What is shown for `key`, and the greedy order that it was drawn around: ties are broken before exploring."""
        shown = self.ranker.rank(X, rng=keyed(key))
        return shown, self.never_explores.rank(X, rng=keyed(key)).items

    def guess(self, s: Floats) -> Floats | None:
        """R_hat (erratum B6)."""
        if self.control_variate == "score":
            return np.clip(s, 0.0, MAX_GRADE)
        if self.control_variate == "mean":
            total, number = self.ranker.state.labels
            return np.full(len(s), total / max(number, 1.0))
        return None

    def scored_by(self) -> surrogates.Surrogate:
        """The surrogate."""
        smoothing = {"epsilon": self.epsilon} if self.surrogate == "smooth_dcg" else {}
        return surrogates.get(self.surrogate, **smoothing)

    def z(self, X: NDArray[Any], shown: Ints, greedy: Ints, labels: Floats) -> Floats:
        """The reference's estimate of the gradient in w, to be descended."""
        rows, surrogate = X.astype(np.float64), self.scored_by()
        s = rows @ self.ranker.state.w
        in_scores = estimators.get(self.estimator)(
            surrogate,
            s=s,
            shown=shown,
            labels=labels,
            greedy=greedy,
            gamma=self.gamma,
            baseline=self.guess(s),
        )
        return (-1.0 if surrogate.is_gain else 1.0) * (rows.T @ in_scores)

    def gradient(self, X: NDArray[Any], R: Floats) -> Floats:
        """What z estimates."""
        rows, surrogate = X.astype(np.float64), self.scored_by()
        in_scores = surrogate.gradient(rows @ self.ranker.state.w, R)
        return (-1.0 if surrogate.is_gain else 1.0) * (rows.T @ in_scores)

    def learn(self, shown: Ranking, R: Floats) -> Floats:
        """The weights after the labels of the top k of `shown` came back."""
        self.ranker.learn(shown, R[shown.items[: self.k]])
        return self.ranker.state.w.copy()


@functools.cache
def keys(
    n: int, gamma: float, *, tied: bool
) -> dict[tuple[tuple[int, ...], tuple[int, ...]], tuple[int, ...]]:
    """For every greedy and shown order of n items, up to two keys that lead there: one exploring, one not if it can.

    With `tied` scores every greedy order is possible; otherwise items are in falling order of their index.
    """
    learner = Learner("kl", 1, gamma=gamma, n_features=1)
    learner.at(np.zeros(1) if tied else np.ones(1))
    X = np.arange(n, dtype=np.float64)[:, None]
    orders = list(itertools.permutations(range(n)))
    greedy_orders = orders if tied else [tuple(range(n - 1, -1, -1))]
    wanted = {(greedy, shown, True) for greedy in greedy_orders for shown in orders}
    wanted |= {(greedy, greedy, False) for greedy in greedy_orders}
    found: dict[tuple[tuple[int, ...], tuple[int, ...]], tuple[int, ...]] = {}
    for key in range(100_000):
        shown, greedy = learner.show(X, key)
        pair = tuple(greedy.tolist()), tuple(shown.items.tolist())
        if (*pair, shown.explored) in wanted:
            wanted.remove((*pair, shown.explored))
            found[pair] = (*found.get(pair, ()), key)
            if not wanted:
                return found
    raise AssertionError(f"no key leads to {wanted}")
