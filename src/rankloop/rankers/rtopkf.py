"""RTop-kF: learn to rank documents by their features from the labels of the top k (Chaudhuri and Tewari 2016).

The kernels are those of `rtopkf_adaptive` by default, and of `rtopkf_paper` where `learning_rate` is a schedule.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from rankloop import surrogates
from rankloop.arguments import number, one_of, shares, whole
from rankloop.base import Array, Floats, Ints, Memo, Ranking
from rankloop.compiled import Limits
from rankloop.feedback import TopClicks, TopK
from rankloop.kernels import sorting
from rankloop.measures import HIGHEST_GRADE
from rankloop.ranges import Between, Falling, OneOf, Range
from rankloop.rankers import linear_bandits, rtopkf_adaptive, rtopkf_paper
from rankloop.rankers.linear import (
    LinearRanker,
    Schedule,
    Smoothing,
    WarmStart,
    finite_limits,
    is_adaptive,
    read_papers_schedule,
    read_schedule,
    read_start,
)
from rankloop.rankers.rtopkf_adaptive import Adaptive, by_place
from rankloop.rankers.rtopkf_paper import PapersSteps

_KINDS = {
    "squared": rtopkf_paper.SQUARED,
    "ranksvm": rtopkf_paper.RANKSVM,
    "kl": rtopkf_paper.KL,
    "smooth_dcg": rtopkf_paper.SMOOTH_DCG,
    "centred_squared": rtopkf_adaptive.CENTRED,
}
_GUESSES = {"score": rtopkf_paper.SCORE, "mean": rtopkf_paper.MEAN}
ScheduleLike = str | float | tuple[float, float]


class RTopKF(LinearRanker):
    """A linear ranker that observes the labels of the top k documents and descends a surrogate's gradient.

    With probability 1 - gamma the documents are shown by falling score X w; otherwise some of the revealed positions,
    or all, are drawn at random. The labels of the top give an unbiased estimate of the surrogate's gradient, and w
    takes a step against it. Regret O(T^(2/3)) for the convex surrogates.

    By default nothing needs to be set: steps follow the gradients and the scale of each feature, exploration the
    length of the list. With a `learning_rate` of one's own, all other defaults are those of the paper.

    Parameters
    ----------
    n_features : int
        The length of a document's feature vector, d.
    surrogate : str, optional
        "centred_squared" (the default with "adagrad"), "squared", "kl" (the default otherwise), "ranksvm" (needs
        k >= 2) or "smooth_dcg".
    k : int, optional
        How many top documents reveal their label. A list shorter than k reveals all.
    learning_rate : ScheduleLike, optional
        "adagrad"; "camera-ready" for the paper's 0.01 t^(-2/3); "preprint" for the constant T^(-2/3), which needs a
        horizon; a number; or a pair (scale, power) for scale * t**-power.
    exploration : ScheduleLike, optional
        "matched" (the default with "adagrad", and for it only) for min(1/2, 1.5 (m / (k t))^(1/3)) on a list of m
        documents, at the last revealed position; "camera-ready" (the default otherwise) for 0.1 t^(-1/3);
        "preprint", a number or a pair as for `learning_rate`, with whole lists in random order. As long as a
        falling exploration is above 1, every list is in random order.
    radius : float, optional
        W stays in the ball of this radius, U. The default 10 lets scores of documents with ||x|| <= 1 cover the
        usual grades twice over. With "adagrad": no weight is farther from its start, times the scale of its feature.
    estimator : str, optional
        "horvitz-thompson" (the default with "adagrad") uses all k labels; "paper" (the default otherwise) as many as
        the surrogate's decomposition needs.
    control_variate : str, optional
        None for the estimators as printed; "score" guesses each label by its score, cut to 0..max_grade; "mean"
        by the mean of the labels seen so far. Not for ranksvm, nor for centred_squared, which has its own guess.
    epsilon : str, float or tuple of float, optional
        SmoothDCG's smoothing: a number, or a pair (scale, power) that anneals it down to `epsilon_floor`. With
        "adagrad", "relative" is 0.3 standard deviations of the list's scores, whatever their size, and None one
        standard deviation that the gradient takes for a constant, the default of former versions. With schedules
        both are 1.
    epsilon_floor : float, optional
        Where annealing of `epsilon` ends.
    max_grade : int, optional
        The largest label; cuts guesses, and larger feedback is refused.
    horizon : int, optional
        T, for "preprint" schedules only.
    examination : float or array_like, optional
        Learn from clicks: the chance that a user looks at each of the first k positions, one number for all or one
        each. A click counts as the label 1 / examination, and no click as 0. None, the default, learns from labels.
    warm_start : array_like or FittedRanker, optional
        The weights to begin with, such as those of `logs.fit_ranker`; 0 by default.

    Notation
    --------
    w_t: state.w, eta: learning_rate, gamma: exploration, U: radius, sigma_t: the greedy order, p(.): chances in `memo`.

    Departures
    ----------
    The defaults are ours; `learning_rate="camera-ready"` has the paper's. Ties are broken at random before chances are
    computed (erratum B10). SmoothDCG is climbed (B3). Exponentials stop at e^20 (B12). With schedules features should
    have ||x|| <= 1, as `Dataset.bounded` makes them; the paper does not say (B11).

    References
    ----------
    S. Chaudhuri and A. Tewari, Online learning to rank with feedback at the top, AISTATS 2016, Algorithm 1.

    Examples
    --------
    >>> ranker = RTopKF(n_features=3)
    >>> documents = np.eye(3)
    >>> shown = ranker.rank(documents, rng=np.random.default_rng(1))
    >>> ranker.learn(shown, [2.0])  # the label of shown.items[0]
    >>> bool(ranker.state.w[shown.items[0]] > 0)
    True
    """

    estimate_from = "weights"
    summary = "Observes the labels of the top documents, and learns weights for features."
    takes_sparse = cuts_lists = True
    algorithm_version = 2
    defaults_before: ClassVar[Mapping[int, Mapping[str, Any]]] = {
        1: {"learning_rate": "camera-ready"},
        2: {"epsilon": None},
    }

    def __init__(
        self,
        *,
        n_features: int,
        surrogate: str | None = None,
        k: int = 1,
        learning_rate: ScheduleLike = "adagrad",
        exploration: ScheduleLike | None = None,
        radius: float = 10.0,
        estimator: str | None = None,
        control_variate: str | None = None,
        epsilon: str | float | tuple[float, float] | None = "relative",
        epsilon_floor: float = 0.01,
        max_grade: int = 4,
        horizon: int | None = None,
        examination: float | ArrayLike | None = None,
        warm_start: WarmStart | None = None,
    ) -> None:
        self.n_features = whole("n_features", n_features, at_least=1)
        self.adaptive = is_adaptive(learning_rate)
        algorithm = Adaptive if self.adaptive else PapersSteps
        named = surrogate or algorithm.surrogate
        if not isinstance(named, str):
            raise ValueError(f"surrogate must be a name, got {surrogate!r}")
        k = whole("k", k, at_least=1)
        self.surrogate = surrogates.require(named, k)
        if named == "centred_squared" and not self.adaptive:
            raise ValueError(f"surrogate {named!r} needs learning_rate='adagrad', got {learning_rate!r}")
        used = estimator or algorithm.estimator
        one_of("estimator", used, ("paper", "horvitz-thompson"))
        floor = number("epsilon_floor", epsilon_floor, above=0)
        self.max_grade = whole("max_grade", max_grade, at_least=1, at_most=HIGHEST_GRADE)
        self.feedback: TopK | TopClicks = TopK(k)
        units = np.ones(k)
        if examination is not None:
            self.feedback, self.max_grade = TopClicks(k), 1
            units = 1.0 / _read_examination(examination, k)
        if horizon is not None:
            whole("horizon", horizon, at_least=1)
        self.learning_rate = (
            None
            if self.adaptive
            else read_papers_schedule("learning_rate", learning_rate, Schedule(0.01, 2 / 3), 2 / 3, horizon)
        )
        explored = algorithm.exploration if exploration is None else exploration
        self.exploration = self._read_exploration(explored, horizon)
        relative = isinstance(epsilon, str) and bool(one_of("epsilon", epsilon, ("relative",)))
        fixed = None if epsilon is None or isinstance(epsilon, str) else read_schedule("epsilon", epsilon)
        n_observed = self.surrogate.level if used == "paper" else k
        reach = number("radius", radius, above=0)
        start = read_start(warm_start, self.n_features, radius=np.inf if self.adaptive else reach)
        gamma = self.exploration or Schedule(0.0)
        common: dict[str, Any] = {
            "surrogate": _KINDS[self.surrogate.name],
            "guess": self._guess(control_variate, algorithm.unguided(self.surrogate.name)),
            "n_observed": int(n_observed or 0),
            "max_grade": float(self.max_grade * units.max()),
            "radius": reach,
            "units": units,
            "gamma": gamma.scale,
            "gamma_power": gamma.power,
        }
        self._steps = algorithm(common, self.learning_rate, Smoothing(fixed, floor, relative), start)
        self.kernels = self._steps.kernels()
        self.params: Any = self._steps.params
        self.state: Any = self._steps.new_state()

    def _read_exploration(self, given: ScheduleLike, horizon: int | None) -> Schedule | None:
        if isinstance(given, str) and given == "matched":
            if not self.adaptive:
                raise ValueError("exploration='matched' needs learning_rate='adagrad'")
            return None
        found = read_papers_schedule("exploration", given, Schedule(0.1, 1 / 3), 1 / 3, horizon)
        if found.power == 0 and found.scale > 1:
            raise ValueError(f"exploration must be a probability, at most 1, got {given!r}")
        return found

    def _guess(self, control_variate: str | None, unguided: int) -> int:
        if control_variate is None:
            return unguided
        name = self.surrogate.name
        if name in ("ranksvm", "centred_squared"):
            raise ValueError(f"control_variate must be None, got {control_variate!r} for {name}")
        return _GUESSES[one_of("control_variate", control_variate, tuple(_GUESSES))]

    def ticket_limits(self, items: Ints, propensities: Floats, memo: Memo) -> list[Limits]:
        return finite_limits(*memo)

    def check_ticket(self, ranking: Ranking) -> None:
        header, n = ranking.memo[0], len(ranking.items)
        of, gamma, epsilon = header.tolist()
        if not (of == n and gamma <= 1 and epsilon > 0 and self._steps.is_ticket(gamma, ranking.memo[1][:n])):
            raise ValueError(f"ranking.memo must be of {n} items, got {header}")

    def check_state(self, saved: Mapping[str, Array]) -> None:
        self._steps.check_state(saved)
        total, number = saved["labels"]
        if not 0 <= total <= number * self.params.max_grade:
            raise ValueError(
                f"saved state 'labels' must be a sum and a number of labels, got {saved['labels']}"
            )

    def tunable(self) -> Mapping[str, Range]:
        steps, shares = Falling(0.003, 3.0, power=2 / 3), Falling(0.03, 3.0, power=1 / 3)
        found: dict[str, Range] = {"exploration": shares, "radius": Between(1.0, 300.0)}
        if not self.adaptive:
            return {"learning_rate": steps, **found}
        found["exploration"] = OneOf(None, shares)  # None: what suits the steps
        return found if self._given.get("surrogate") else {"learning_rate": OneOf("adagrad", steps), **found}

    def scratch(self, n: int) -> tuple[Any, ...]:
        return self._steps.scratch(n)

    def blank_propensities(self, n: int) -> Floats:
        return np.empty(n)

    def blank_memo(self, n: int) -> Memo:
        observed, d, columns = self.params.n_observed, self.n_features, self._steps.memo_columns
        known = 0 if self.surrogate.name == "centred_squared" else 2
        return np.zeros(3), np.zeros((observed, columns)), np.zeros((known, d)), np.zeros((observed, d))

    def mean_by_position(self, context: Any, ranking: Ranking, by_position: Floats) -> Floats:
        """Greedy with probability 1 - gamma, where equal scores are in every order equally likely; else explored."""
        features = self.dense_context(context)
        n, gamma = len(features), float(ranking.memo[0][1])
        scores = np.empty(n)
        linear_bandits.means(features, self.state.w, scores)
        kept, drawn = self._steps.explored_positions(n)
        means = by_place(by_position, kept=kept, drawn=drawn)
        return means.mean(scores, ranking.items[: self.feedback.length(n)].tolist(), gamma)

    def regret_bound(self, rounds: int, *, n_documents: int) -> float:
        """What the weights' expected regret over `rounds` cannot exceed, in the surrogate that the defaults descend.

        The surrogate is `centred_squared`, weighted as the ranker's page says, averaged over each list of at least
        `n_documents`; the regret is against the best fixed weights within the radius. Proved for labels that do not
        depend on what was shown, that come at once, and for features whose scales are known from the first round on.

        Returns
        -------
        float
            The bound; it grows as T^(2/3).

        Examples
        --------
        >>> ranker = RTopKF(n_features=2, k=2, max_grade=1, radius=1.0)
        >>> round(ranker.regret_bound(8_000, n_documents=10) / ranker.regret_bound(1_000, n_documents=10), 1)
        3.5
        """
        T, m = whole("rounds", rounds, at_least=1), whole("n_documents", n_documents, at_least=1)
        if self.surrogate.name != "centred_squared" or self.exploration is not None:
            raise ValueError(
                "regret_bound is proved for surrogate='centred_squared' with exploration='matched', "
                f"got {self.surrogate.name!r} and {self.exploration}"
            )
        k, rate, radius = self.params.n_observed, rtopkf_adaptive.RATE, self.params.radius
        inverse_gamma = 2.0 * T + 0.5 * (k / max(m, k)) ** (1 / 3) * (T + 1) ** (4 / 3)
        by_feature = 4.0 * self.params.max_grade * (T + k * inverse_gamma) ** 0.5
        return float(self.n_features * (2.0 * radius**2 / rate + rate) * by_feature)

    @classmethod
    def bytes_for(
        cls,
        *,
        n_items: int = 0,
        n_features: int = 0,
        k: int = 1,
        estimator: str | None = None,
        **parameters: Any,
    ) -> int:
        observed = min(k, 2) if estimator == "paper" else k
        ticket = 8 * (observed * (n_features + 5) + 2 * n_features + 2 * n_items)
        return 56 * n_features + 48 * n_items + sorting.scratch_bytes(n_items) + ticket


def _read_examination(given: Any, k: int) -> Floats:
    if np.ndim(given) == 0:
        return np.full(k, shares("examination", given, n_axes=0, positive=True))
    return shares("examination", given, length=k, positive=True)
