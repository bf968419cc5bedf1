"""RTop-kF: learn to rank documents by their features from the labels of the top k (Chaudhuri and Tewari 2016)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankloop import surrogates
from rankloop.arguments import number, one_of, whole
from rankloop.base import Array, Memo, Ranking
from rankloop.compiled import RankerKernels
from rankloop.feedback import TopK
from rankloop.kernels import elementary, sorting
from rankloop.kernels.rankers import rtopkf
from rankloop.measures.measure import HIGHEST_GRADE
from rankloop.rankers.linear import LinearRanker
from rankloop.rankers.schedules import Schedule, check_weights, read_schedule

_KINDS = {
    "squared": rtopkf.SQUARED,
    "ranksvm": rtopkf.RANKSVM,
    "kl": rtopkf.KL,
    "smooth_dcg": rtopkf.SMOOTH_DCG,
}
_GUESSES = {"score": rtopkf.SCORE, "mean": rtopkf.MEAN}
ScheduleLike = str | float | tuple[float, float]


class RTopKF(LinearRanker):
    """A linear ranker that observes the labels of the top k documents and descends a surrogate's gradient.

    With probability 1 - gamma the documents are shown by falling score X w, otherwise in random order. The labels of
    the top gives an unbiased estimate of the surrogate's gradient, and w takes a step against it. Regret O(T^(2/3)) for
    the three convex surrogates.

    Parameters
    ----------
    n_features : int
        The length of a document's feature vector, d.
    surrogate : str, optional
        "squared", "ranksvm" (needs k >= 2), "kl" or "smooth_dcg".
    k : int, optional
        How many top documents reveal their label. A list shorter than k reveals all.
    learning_rate : ScheduleLike, optional
        "camera-ready" for 0.01 t^(-2/3) and 0.1 t^(-1/3); "preprint" for the constants T^(-2/3) and T^(-1/3),
        which need a horizon; a number; or a pair (scale, power) for scale * t**-power. As long as a falling
        exploration is above 1, every list is in random order.
    exploration : ScheduleLike, optional
        "camera-ready" for 0.01 t^(-2/3) and 0.1 t^(-1/3); "preprint" for the constants T^(-2/3) and T^(-1/3),
        which need a horizon; a number; or a pair (scale, power) for scale * t**-power. As long as a falling
        exploration is above 1, every list is in random order.
    radius : float, optional
        W stays in the ball of this radius, U. The default 10 lets scores of documents with ||x|| <= 1 cover the
        usual grades twice over.
    estimator : str, optional
        "paper" uses as many labels as the surrogate's decomposition needs; "horvitz-thompson" uses all k.
    control_variate : str, optional
        None for the estimators as printed; "score" guesses each label by its score, cut to 0..max_grade; "mean"
        by the mean of the labels seen so far. Not for ranksvm.
    epsilon : float or tuple of float, optional
        SmoothDCG's smoothing: a number, or a pair (scale, power) that anneals it down to `epsilon_floor`.
    epsilon_floor : float, optional
        Where annealing of `epsilon` ends.
    max_grade : int, optional
        The largest label; cuts guesses, and larger feedback is refused.
    horizon : int, optional
        T, for "preprint" schedules only.

    Notation
    --------
    w_t: state.w, eta: learning_rate, gamma: exploration, U: radius, sigma_t: the greedy order, p(.): chances in `memo`.

    Departures
    ----------
    Ties are broken at random before chances are computed (erratum B10). SmoothDCG is climbed (B3). Exponentials stop at
    e^20 (B12). Features should have ||x|| <= 1, as `Dataset.bounded` makes them; the paper does not say (B11).

    References
    ----------
    S. Chaudhuri and A. Tewari, Online learning to rank with feedback at the top, AISTATS 2016, Algorithm 1.

    Examples
    --------
    >>> ranker = RTopKF(n_features=3, surrogate="kl", k=1)
    >>> documents = np.eye(3)
    >>> shown = ranker.rank(documents, rng=np.random.default_rng(1))
    >>> ranker.learn(shown, [2.0])  # the label of shown.items[0]
    >>> bool(ranker.state.w[shown.items[0]] > 0)
    True
    """

    estimate_from = "weights"
    summary = "Observes the labels of the top documents, and learns weights for features."
    kernels = RankerKernels(rtopkf.rank, rtopkf.learn)

    def __init__(
        self,
        *,
        n_features: int,
        surrogate: str = "kl",
        k: int = 1,
        learning_rate: ScheduleLike = "camera-ready",
        exploration: ScheduleLike = "camera-ready",
        radius: float = 10.0,
        estimator: str = "paper",
        control_variate: str | None = None,
        epsilon: float | tuple[float, float] = 1.0,
        epsilon_floor: float = 0.01,
        max_grade: int = 4,
        horizon: int | None = None,
    ) -> None:
        self.n_features = whole("n_features", n_features, at_least=1)
        if not isinstance(surrogate, str):
            raise ValueError(f"surrogate must be a name, got {surrogate!r}")
        self.surrogate = surrogates.require(surrogate, whole("k", k, at_least=1))
        one_of("estimator", estimator, ("paper", "horvitz-thompson"))
        floor = number("epsilon_floor", epsilon_floor, above=0)
        self.max_grade = whole("max_grade", max_grade, at_least=1, at_most=HIGHEST_GRADE)
        self.feedback = TopK(k)
        if horizon is not None:
            whole("horizon", horizon, at_least=1)
        self.learning_rate = _read("learning_rate", learning_rate, Schedule(0.01, 2 / 3), 2 / 3, horizon)
        self.exploration = _read("exploration", exploration, Schedule(0.1, 1 / 3), 1 / 3, horizon)
        if self.exploration.power == 0 and self.exploration.scale > 1:
            raise ValueError(f"exploration must be a probability, at most 1, got {exploration!r}")
        smoothing = read_schedule("epsilon", epsilon)
        n_observed = self.surrogate.level if estimator == "paper" else k
        self.params = rtopkf.TopKParams(
            surrogate=_KINDS[self.surrogate.name],
            guess=self._guess(control_variate),
            n_observed=int(n_observed or 0),
            max_grade=float(self.max_grade),
            radius=number("radius", radius, above=0),
            eta=self.learning_rate.scale,
            eta_power=self.learning_rate.power,
            gamma=self.exploration.scale,
            gamma_power=self.exploration.power,
            epsilon=smoothing.scale,
            epsilon_power=smoothing.power,
            epsilon_floor=min(floor, smoothing.scale),
        )
        self.state = rtopkf.TopKState(np.zeros(self.n_features), np.zeros(1, np.int64), np.zeros(2))

    def _guess(self, control_variate: str | None) -> int:
        if control_variate is None:
            return rtopkf.ZERO if self.surrogate.name == "squared" else rtopkf.NO_GUESS  # erratum B6
        if self.surrogate.name == "ranksvm":
            raise ValueError(
                f"control_variate needs a surrogate with one label at a time, got {control_variate!r} for ranksvm"
            )
        return _GUESSES[one_of("control_variate", control_variate, tuple(_GUESSES))]

    def check_ticket(self, ranking: Ranking) -> None:
        header = ranking.memo[0]
        good = header[0] == len(ranking.items) and 0 < header[1] <= 1 and header[2] > 0
        if not (good and all(np.isfinite(part).all() for part in ranking.memo)):
            raise ValueError(f"ranking.memo must be finite, and of {len(ranking.items)} items, got {header}")

    def check_state(self, saved: Mapping[str, Array]) -> None:
        check_weights(saved, self.params.radius)
        total, number = saved["labels"]
        if not 0 <= total <= number * self.max_grade:
            raise ValueError(
                f"saved state 'labels' must be a sum and a number of labels, got {saved['labels']}"
            )

    def scratch(self, n: int) -> tuple[Any, ...]:
        return np.empty(n), np.empty(n), np.empty(n), np.empty(n, np.int64), sorting.scratch(n)

    def blank_propensities(self, n: int) -> NDArray[np.float64]:
        return np.empty(n)

    def blank_memo(self, n: int) -> Memo:
        observed = self.params.n_observed
        d = self.n_features
        return np.zeros(3), np.zeros((observed, 4)), np.zeros((2, d)), np.zeros((observed, d))

    def mean_by_position(
        self, context: Any, ranking: Ranking, by_position: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Greedy with probability 1 - gamma, where equal scores are in every order equally likely; else uniform."""
        n, scores = len(context), context @ self.state.w
        gamma = float(ranking.memo[0][1])
        top = scores[ranking.items[: self.feedback.length(n)]]
        reached = np.hstack([np.zeros((len(by_position), 1)), np.cumsum(by_position, axis=1)])
        ordered = np.sort(-scores)
        first, last = np.searchsorted(ordered, -top, "left"), np.searchsorted(ordered, -top, "right")
        greedy = (reached[:, last] - reached[:, first]) / (last - first)
        mean: NDArray[np.float64] = (1 - gamma) * greedy + gamma * by_position.mean(axis=1, keepdims=True)
        return mean

    @classmethod
    def bytes_for(
        cls, *, n_items: int = 0, n_features: int = 0, k: int = 1, estimator: str = "paper", **parameters: Any
    ) -> int:
        observed = k if estimator == "horvitz-thompson" else min(k, 2)
        ticket = 8 * (observed * (n_features + 4) + 2 * n_features + 2 * n_items)
        return 8 * n_features + 32 * n_items + sorting.scratch_bytes(n_items) + ticket

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(n_features=3, surrogate="squared", learning_rate=(0.5, 2 / 3), exploration=(1.0, 1 / 3))
        yield cls(n_features=9, surrogate="ranksvm", k=2, learning_rate=(0.5, 2 / 3), exploration=0.3)
        yield cls(n_features=3, surrogate="kl", k=3, estimator="horvitz-thompson", exploration=0.5)
        yield cls(
            n_features=4,
            surrogate="smooth_dcg",
            epsilon=(1.0, 0.2),
            exploration=(1.0, 1 / 3),
            control_variate="mean",
        )
        yield cls(n_features=2, surrogate="ranksvm", k=4, estimator="horvitz-thompson", exploration=0.5)
        yield cls(
            n_features=1, surrogate="kl", control_variate="score", horizon=100, learning_rate="preprint"
        )


def _read(
    name: str, given: ScheduleLike, camera_ready: Schedule, power: float, horizon: int | None
) -> Schedule:
    if not isinstance(given, str):
        return read_schedule(name, given)
    one_of(name, given, ("camera-ready", "preprint"))
    if given == "camera-ready":
        return camera_ready
    if horizon is None:
        raise ValueError(f"{name}='preprint' is a constant made from T: it needs a horizon, got None")
    return Schedule(float(elementary.power(horizon, -power)))
