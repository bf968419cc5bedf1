"""Linear bandits that learn from clicks on documents: Thompson sampling and UCB, position-based and cascade users.

The chance of a click on an item x that is examined is x . theta. The estimate is weighted least squares with a
prior of I: M = I + sum w^2 x x', b = sum w y x, theta = M^-1 b. What is kept of M^-1 is a root of it, S with S' S =
M^-1: a rank-one update of it takes O(d^2), as one of the inverse itself does (Sherman and Morrison), but S' S stays
positive whatever is rounded (Potter's form of the update). From time to time S is computed anew from the sums, V.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rankloop.arguments import number, shares, whole
from rankloop.base import Array, Floats, Ints, Ranking
from rankloop.compiled import CompiledRanker, RankerKernels, read_features, read_positions
from rankloop.feedback import Clicks, TopClicks
from rankloop.kernels import sorting
from rankloop.kernels.elementary import cos_turns, log
from rankloop.kernels.jit import apart, hot, kernel
from rankloop.kernels.random import uniform
from rankloop.kernels.rows import score
from rankloop.kernels.sorting import by_falling_score, greedy_order
from rankloop.kernels.vectors import dot

_TURNS = 4  # of alternating least squares when examinations are estimated
_SMALLEST = 0.001  # examination that is estimated


class LinearClickParams(NamedTuple):
    """What the ranker was built with."""

    features: Floats  # of the catalogue, items x features; no rows where requests bring them
    draws: bool  # whether theta is drawn; otherwise indices are upper confidence bounds
    cascade: bool  # whether nothing below the first click is examined
    estimates: bool  # whether examinations are estimated
    width: float  # of a confidence bound, in standard deviations
    precision: float  # of one observation: 1 / sigma
    most: int  # how many positions are shown


class LinearClickState(NamedTuple):
    """Sums over all that was examined, and the estimate that follows from them."""

    t: Ints  # rounds with feedback
    updates: Ints  # rank-one updates
    due: Ints  # after how many of them S is computed anew
    V: Floats  # sums of x x', lower triangles; by position where examinations are estimated
    b: Floats  # sums of x y, as V
    S: Floats  # a root of the inverse: S' S = M^-1
    theta: Floats  # M^-1 b
    kappa: Floats  # by position: examinations, known or estimated


@hot
def normal(key: Any, first: int) -> Any:
    """A standard normal number from the numbers of `key` at `first` and after it (Box and Muller)."""
    radius = np.sqrt(-2.0 * log(1.0 - uniform(key, first)))
    return radius * cos_turns(uniform(key, first + 1))


@hot
def rank_catalogue(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> Any:
    """The best of the items with features known from the start."""
    return _rank(params, state, params.features, key, scratch, items, False)


@hot
def rank_request(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> Any:
    """All items of the request, which brings their features."""
    # From the top: where all positions are looked at alike, estimates of that would order them by chance.
    return _rank(params, state, context, key, scratch, items, params.estimates)


@hot
def _rank(params: Any, state: Any, features: Any, key: Any, scratch: Any, items: Any, from_top: bool) -> Any:
    index, mean, order, by_position, sort_scratch, theta, u, _ = scratch
    n, d = features.shape
    score(features, state.theta, mean)
    if params.draws:
        _draw(params, state, key, theta)
        score(features, theta, index)
    else:
        for i in range(n):
            for k in range(d):
                u[k] = dot(features[i], state.S[k])
            index[i] = mean[i] + params.width * np.sqrt(dot(u, u))
    greedy_order(index, n, key, 2 * d, order, sort_scratch)
    shown = min(n, params.most)
    explored = False
    for place in range(1, shown):
        explored |= mean[order[place]] > mean[order[place - 1]]
    last = mean[order[shown - 1]]
    for place in range(shown, n):
        explored |= mean[order[place]] > last
        if place < len(items):
            items[place] = order[place]
    by_falling_score(state.kappa, min(shown, len(state.kappa)), by_position, sort_scratch)
    for place in range(shown):
        items[place if from_top or place >= len(state.kappa) else by_position[place]] = order[place]
    return explored


@hot
def _draw(params: Any, state: Any, key: Any, theta: Any) -> None:
    # A draw from N(theta, width^2 M^-1): M^-1 is the covariance of S' z.
    d = len(theta)
    for j in range(d):
        theta[j] = state.theta[j]
    for k in range(d):
        z = params.width * normal(key, 2 * k)
        for j in range(d):
            theta[j] += z * state.S[k, j]


@hot
def learn_catalogue(
    params: Any, state: Any, context: Any, scratch: Any, items: Any, propensities: Any, memo: Any, clicks: Any
) -> None:
    """The clicks on items of the catalogue."""
    _learn(params, state, params.features, scratch, items, clicks)


@hot
def learn_request(
    params: Any, state: Any, context: Any, scratch: Any, items: Any, propensities: Any, memo: Any, clicks: Any
) -> None:
    """The clicks on items of the request."""
    _learn(params, state, context, scratch, items, clicks)


@hot
def _learn(params: Any, state: Any, features: Any, scratch: Any, items: Any, clicks: Any) -> None:
    for j in range(min(len(clicks), min(len(features), params.most))):
        if params.cascade:
            _observe(params, state, features[items[j]], 1.0, 0, clicks[j], scratch[6], scratch[5])
            if clicks[j] > 0.0:
                break
        elif state.kappa[j] > 0.0:
            _observe(params, state, features[items[j]], state.kappa[j], j, clicks[j], scratch[6], scratch[5])
    state.t[0] += 1
    if state.updates[0] >= state.due[0]:
        refresh(params, state, scratch[7], scratch[6])
        state.due[0] = state.updates[0] + max(len(state.theta), state.updates[0] // 4)


@apart
def _observe(params: Any, state: Any, x: Any, kappa: float, position: int, y: float, u: Any, g: Any) -> None:
    """One observation y of kappa x . theta: a rank-one update of the root, the estimate and the sums."""
    d = len(u)
    w = kappa * params.precision
    for k in range(d):
        u[k] = w * dot(x, state.S[k])
    q = 1.0 + dot(u, u)
    for j in range(d):
        g[j] = 0.0
    for k in range(d):
        for j in range(d):
            g[j] += u[k] * state.S[k, j]
    wrong = (y * params.precision - w * dot(x, state.theta)) / q
    root = np.sqrt(q)
    shrink = 1.0 / (root * (root + 1.0))
    for k in range(d):
        state.theta[k] += wrong * g[k]
        by = shrink * u[k]
        for j in range(d):
            state.S[k, j] -= by * g[j]
    part = position if params.estimates else 0
    weight = 1.0 if params.estimates else kappa
    for k in range(d):
        xk = weight * x[k]
        state.b[part, k] += xk * y
        for j in range(k + 1):
            state.V[part, k, j] += xk * (weight * x[j])
    state.updates[0] += 1


@apart
def refresh(params: Any, state: Any, A: Any, u: Any) -> None:
    """S, theta and, where they are estimated, the examinations, from the sums alone.

    Where the sums are too ill-conditioned to be factored in double precision, what there is stays.
    """
    d = len(u)
    for _ in range(_TURNS if params.estimates else 1):
        if params.estimates:
            _examinations(state)
        for k in range(d):
            for j in range(k + 1):
                A[k, j] = 1.0 if k == j else 0.0
        for part in range(len(state.V)):
            kappa = state.kappa[part] if params.estimates else 1.0
            weight = (kappa * params.precision) * (kappa * params.precision)
            for k in range(d):
                for j in range(k + 1):
                    A[k, j] += weight * state.V[part, k, j]
        if not _root_of_inverse(A):
            return
        for k in range(d):
            for j in range(d):
                state.S[k, j] = A[k, j] if j <= k else 0.0
        for k in range(d):
            u[k] = 0.0
            for j in range(k + 1):
                total = 0.0
                for part in range(len(state.b)):
                    total += (state.kappa[part] if params.estimates else 1.0) * state.b[part, j]
                u[k] += A[k, j] * (params.precision * params.precision * total)
        for j in range(d):
            state.theta[j] = 0.0
        for k in range(d):
            for j in range(k + 1):
                state.theta[j] += u[k] * A[k, j]


@apart
def _root_of_inverse(A: Any) -> bool:
    """Replace the lower triangle of A = L L' by that of L^-1; False where A is not positive enough."""
    d = len(A)
    for k in range(d):
        for j in range(k + 1):
            total = A[k, j]
            for i in range(j):
                total -= A[k, i] * A[j, i]
            if j < k:
                A[k, j] = total / A[j, j]
            elif not 1e-12 * A[k, k] < total < np.inf:
                return False
            else:
                A[k, k] = np.sqrt(total)
    for k in range(d):
        A[k, k] = 1.0 / A[k, k]
        for j in range(k):
            total = 0.0
            for i in range(j, k):
                total -= A[k, i] * A[i, j]
            A[k, j] = total * A[k, k]
    return True


@apart
def _examinations(state: Any) -> None:
    """The least-squares examination of each position given theta; the largest is 1.

    One look at an item that attracts with chance 1 is assumed at every position beforehand, and it was a click.
    """
    d = len(state.theta)
    largest = 0.0
    for position in range(len(state.V)):
        clicks = squares = 1.0
        for k in range(d):
            clicks += state.b[position, k] * state.theta[k]
            row = 0.5 * state.V[position, k, k] * state.theta[k]
            for j in range(k):
                row += state.V[position, k, j] * state.theta[j]
            squares += 2.0 * row * state.theta[k]
        state.kappa[position] = max(clicks / squares, _SMALLEST) if squares > 0.0 else 1.0
        largest = max(largest, state.kappa[position])
    for position in range(len(state.V)):
        state.kappa[position] = max(state.kappa[position] / largest, _SMALLEST)


@kernel
def means(features: Any, theta: Any, out: Any) -> None:
    """The estimated chance of a click on each item that is examined."""
    score(features, theta, out)


SHOWN = 10  # positions of a list that a request brings


class LinearClickRanker(CompiledRanker):
    """Learns the weights of features from clicks, for a catalogue given once or for lists that requests bring."""

    draws: ClassVar[bool]  # whether theta is drawn; otherwise items are ranked by upper confidence bounds
    cascade: ClassVar[bool]  # whether nothing below the first click is examined
    n_features: int

    def build(
        self,
        n_features: Any,
        features: Any,
        n_positions: Any,
        *,
        sigma: Any,
        width: float = 1.0,
        examination: ArrayLike | None = None,
    ) -> None:
        """Check and keep the arguments, and allocate the state."""
        catalogue = self._read_catalogue(n_features, features)
        d = self.n_features
        kappa = np.empty(0)
        if examination is not None:
            kappa = shares("examination", examination, positive=True)
            n_positions = len(kappa) if n_positions is None else n_positions
        if len(catalogue):
            self.n_items = len(catalogue)
            self.n_positions = most = read_positions(n_positions, self.n_items) or self.n_items
            self.feedback = Clicks()
            self.kernels = RankerKernels(rank_catalogue, learn_catalogue)
        else:
            most = whole("n_positions", SHOWN if n_positions is None else n_positions, at_least=1)
            self.n_positions = None
            self.feedback = TopClicks(most)
            self.keeps_context = True
            self.kernels = RankerKernels(rank_request, learn_request)
        if examination is not None and len(kappa) != most:
            raise ValueError(f"examination must have {most} numbers, one for each position, got {len(kappa)}")
        self.informed = examination is not None  # the first item on the position that is examined most
        estimates = not self.cascade and examination is None
        self.params = LinearClickParams(
            features=catalogue,
            draws=self.draws,
            cascade=self.cascade,
            estimates=estimates,
            width=width,
            precision=1.0 / number("sigma", sigma, above=0),
            most=most,
        )
        if estimates:
            kappa = np.ones(most)
        parts = len(kappa) if estimates else 1
        self.state = LinearClickState(
            t=np.zeros(1, np.int64),
            updates=np.zeros(1, np.int64),
            due=np.full(1, d, np.int64),
            V=np.zeros((parts, d, d)),
            b=np.zeros((parts, d)),
            S=np.eye(d),
            theta=np.zeros(d),
            kappa=kappa.copy(),
        )

    def _read_catalogue(self, n_features: Any, features: Any) -> Floats:
        if (n_features is None) == (features is None):
            raise ValueError(
                f"give either n_features or features, got n_features={n_features!r} and "
                f"{'no' if features is None else 'also'} features"
            )
        if features is None:
            self.n_features = whole("n_features", n_features, at_least=1)
            return np.empty((0, self.n_features))
        catalogue = np.array(read_features(features, name="features"), np.float64)
        self.n_features = catalogue.shape[1]
        return catalogue

    @property
    def theta(self) -> Floats:
        """The estimated weights of the features."""
        return np.array(self.state.theta)

    @property
    def examination(self) -> Floats:
        """How likely each position is looked at, as given or as estimated; empty where users read a cascade."""
        return np.array(self.state.kappa)

    def read_context(self, context: Any) -> tuple[int, Any]:
        if self.n_positions is not None:
            return super().read_context(context)
        features = read_features(context, self.n_features)
        return len(features), features

    def scratch(self, n: int) -> tuple[Any, ...]:
        k, d = self.n_items or n, self.n_features
        sorted_at_once = max(k, len(self.state.kappa))
        return (
            np.empty(k),
            np.empty(k),
            np.empty(k, np.int64),
            np.empty(len(self.state.kappa), np.int64),
            sorting.scratch(sorted_at_once),
            np.empty(d),
            np.empty(d),
            np.empty((d, d)),
        )

    def check_state(self, saved: Mapping[str, Array]) -> None:
        if not ((saved["kappa"] > 0) & (saved["kappa"] <= 1)).all():
            raise ValueError(f"saved state 'kappa' must be probabilities, got {saved['kappa']}")
        for name in ("t", "updates", "due"):
            if (saved[name] < 0).any():
                raise ValueError(f"saved state {name!r} must be a count, got {saved[name]}")

    def weights_now(self) -> Floats | None:
        return self.theta

    def learn_logged(
        self, items: Ints, feedback: Any, *, propensities: Floats | None = None, features: Any = None
    ) -> None:
        """Learns: a click is an observation of the weights, whoever chose the list."""
        self.learn(Ranking(items, None, () if features is None else (np.array(features),)), feedback)

    def current(self, context: Any = None) -> Ints:
        """The items by estimated attraction: the best on the positions that are examined most, or from the top."""
        n, request = self.read_context(context)
        features = self.params.features if request is None else request
        mean = np.empty(len(features))
        means(features, self.state.theta, mean)
        order = np.argsort(-mean, kind="stable").astype(np.int64)[:n]
        items = order.copy()
        if self.params.estimates and request is not None:
            return items
        known = min(n, len(self.state.kappa))
        items[np.argsort(-self.state.kappa[:known], kind="stable")] = order[:known]
        return items

    def example_context(self, rng: np.random.Generator) -> Any:
        if self.n_positions is not None:
            return None
        return rng.random((int(rng.integers(1, 9)), self.n_features)) / self.n_features

    @classmethod
    def bytes_for(
        cls, *, n_items: int = 0, n_positions: int | None = None, n_features: int = 0, **parameters: Any
    ) -> int:
        d, parts = n_features, 1
        if not cls.cascade and parameters.get("examination") is None:
            parts = n_positions if isinstance(n_positions, int) else SHOWN
        return 8 * ((parts + 2) * d * d + (parts + 4) * d + 4 * n_items) + sorting.scratch_bytes(n_items)


class LinTSPBM(LinearClickRanker):
    """Draws weights of the features that fit all clicks so far, and shows the best list for them.

    The chance of a click on item x at position j is kappa_j x . theta: examination of the position times an attraction
    that is linear in the features. `PBMTS` is the same without features.

    Parameters
    ----------
    n_features : int, optional
        How many features an item has, where each request brings a list of items with features.
    features : array_like, optional
        Items x features of a catalogue that is the same for everybody. Give this or `n_features`.
    n_positions : int, optional
        How many positions users see; None for as many as `examination` has, or the whole catalogue, or 10 of a list
        that a request brings.
    examination : array_like, optional
        For each position, how likely it is looked at, in any order; None estimates them.
    sigma : float, optional
        The standard deviation that one click is assumed to have; smaller values explore less.

    Notation
    --------
    M: I + sum kappa_j^2 x x' / sigma^2, M^-1: S' S, theta: state.theta, kappa_j: state.kappa.

    Departures
    ----------
    There is no paper with this ranker: the linear bandit is applied to position-based clicks, each an observation of
    kappa_j x . theta. Unknown examinations are estimated by alternating least squares, whenever a quarter more was
    observed than before; there is no regret bound for that. Lists that requests bring are then shown from the top.

    References
    ----------
    P. Lagrée, C. Vernade and O. Cappé, Multiple-play bandits in the position-based model, NeurIPS 2016, for the model.
    S. Agrawal and N. Goyal, Thompson sampling for contextual bandits with linear payoffs, ICML 2013, for the draws.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> ranker = LinTSPBM(n_features=2, examination=[1.0, 0.5])
    >>> for _ in range(300):
    ...     shown = ranker.rank([[1.0, 0.0], [0.0, 1.0]], rng=rng)
    ...     ranker.learn(shown, (shown.items == 1) & (rng.random(2) < [1.0, 0.5]))
    >>> ranker.current([[1.0, 0.0], [0.0, 1.0]])
    array([1, 0])
    """

    algorithm_version = 2
    summary = "Observes clicks by position, and ranks by weights for features drawn from their posterior."
    draws = True
    cascade = False

    def __init__(
        self,
        *,
        n_features: int | None = None,
        features: ArrayLike | None = None,
        n_positions: int | None = None,
        examination: ArrayLike | None = None,
        sigma: float = 1.0,
    ) -> None:
        self.build(n_features, features, n_positions, sigma=sigma, examination=examination)


class LinUCBPBM(LinearClickRanker):
    """Shows the items with the largest upper confidence bounds, the best where users look most.

    The chance of a click on item x at position j is kappa_j x . theta: examination of the position times an attraction
    that is linear in the features.

    Parameters
    ----------
    n_features : int, optional
        How many features an item has, where each request brings a list of items with features.
    features : array_like, optional
        Items x features of a catalogue that is the same for everybody. Give this or `n_features`.
    n_positions : int, optional
        How many positions users see; None for as many as `examination` has, or the whole catalogue, or 10 of a list
        that a request brings.
    examination : array_like, optional
        For each position, how likely it is looked at, in any order; None estimates them.
    c : float, optional
        The width of the confidence bounds, in standard deviations.
    sigma : float, optional
        The standard deviation that one click is assumed to have; smaller values explore less.

    Notation
    --------
    M: I + sum kappa_j^2 x x' / sigma^2, M^-1: S' S, theta: state.theta, kappa_j: state.kappa.

    Departures
    ----------
    As of `LinTSPBM`.

    References
    ----------
    P. Lagrée, C. Vernade and O. Cappé, Multiple-play bandits in the position-based model, NeurIPS 2016, for the model.
    L. Li, W. Chu, J. Langford and R. E. Schapire, A contextual-bandit approach to personalized news article
    recommendation, WWW 2010, for LinUCB.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> ranker = LinUCBPBM(n_features=2, examination=[1.0, 0.5])
    >>> for _ in range(300):
    ...     shown = ranker.rank([[1.0, 0.0], [0.0, 1.0]], rng=rng)
    ...     ranker.learn(shown, (shown.items == 1) & (rng.random(2) < [1.0, 0.5]))
    >>> ranker.current([[1.0, 0.0], [0.0, 1.0]])
    array([1, 0])
    """

    algorithm_version = 2
    summary = "Observes clicks by position, and learns weights for features with confidence bounds."
    draws = False
    cascade = False

    def __init__(
        self,
        *,
        n_features: int | None = None,
        features: ArrayLike | None = None,
        n_positions: int | None = None,
        examination: ArrayLike | None = None,
        c: float = 1.0,
        sigma: float = 1.0,
    ) -> None:
        self.build(
            n_features,
            features,
            n_positions,
            sigma=sigma,
            width=number("c", c, at_least=0),
            examination=examination,
        )


class CascadeLinTS(LinearClickRanker):
    """Draws weights of the features that fit all clicks so far, and shows the items with the largest scores.

    For users who read from the top, click the first item that attracts them and leave, as in `CascadeKLUCB`; but what
    is learnt of one item carries over to all items with similar features. Of several clicks only the first counts.

    Parameters
    ----------
    n_features : int, optional
        How many features an item has, where each request brings a list of items with features.
    features : array_like, optional
        Items x features of a catalogue that is the same for everybody. Give this or `n_features`.
    n_positions : int, optional
        How many positions users see, K; None for the whole catalogue, or 10 of a list that a request brings.
    sigma : float, optional
        The standard deviation that one click is assumed to have; smaller values explore less.

    Notation
    --------
    M: I + V / sigma^2, M^-1: S' S, B: state.b, theta_bar: state.theta, x_e: a row of the features.

    Departures
    ----------
    Equal scores are ordered at random. A root of M^-1 is updated instead of M^-1 itself; draws are made with it.

    References
    ----------
    S. Zong, H. Ni, K. Sung, N. R. Ke, Z. Wen and B. Kveton, Cascading bandits for large-scale recommendation problems,
    UAI 2016.

    Examples
    --------
    >>> import numpy as np
    >>> catalogue = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]]
    >>> ranker = CascadeLinTS(features=catalogue, n_positions=2)
    >>> rng = np.random.default_rng(1)
    >>> for _ in range(100):
    ...     shown = ranker.rank(rng=rng)
    ...     ranker.learn(shown, shown.items == 2)  # only the last item is ever clicked
    >>> ranker.current()
    array([2, 1])
    """

    stops_at_click = True
    summary = "Observes clicks of users who read down to the first good item, and draws weights for features."
    draws = True
    cascade = True

    def __init__(
        self,
        *,
        n_features: int | None = None,
        features: ArrayLike | None = None,
        n_positions: int | None = None,
        sigma: float = 1.0,
    ) -> None:
        self.build(n_features, features, n_positions, sigma=sigma)


class CascadeLinUCB(LinearClickRanker):
    """Shows the items with the largest upper confidence bounds on a chance of a click that is linear in their features.

    For users who read from the top, click the first item that attracts them and leave, as in `CascadeKLUCB`; but what
    is learnt of one item carries over to all items with similar features. Of several clicks only the first counts.

    Parameters
    ----------
    n_features : int, optional
        How many features an item has, where each request brings a list of items with features.
    features : array_like, optional
        Items x features of a catalogue that is the same for everybody. Give this or `n_features`.
    n_positions : int, optional
        How many positions users see, K; None for the whole catalogue, or 10 of a list that a request brings.
    c : float, optional
        The width of the confidence bounds, in standard deviations.
    sigma : float, optional
        The standard deviation that one click is assumed to have; smaller values explore less.

    Notation
    --------
    M: I + V / sigma^2, M^-1: S' S, B: state.b, theta_bar: state.theta, x_e: a row of the features.

    Departures
    ----------
    Bounds above 1 are not cut to 1, which would only make ties of them. Equal bounds are ordered at random. A root of
    M^-1 is updated instead of M^-1 itself.

    References
    ----------
    S. Zong, H. Ni, K. Sung, N. R. Ke, Z. Wen and B. Kveton, Cascading bandits for large-scale recommendation problems,
    UAI 2016.

    Examples
    --------
    >>> import numpy as np
    >>> catalogue = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]]
    >>> ranker = CascadeLinUCB(features=catalogue, n_positions=2)
    >>> rng = np.random.default_rng(1)
    >>> for _ in range(100):
    ...     shown = ranker.rank(rng=rng)
    ...     ranker.learn(shown, shown.items == 2)  # only the last item is ever clicked
    >>> ranker.current()
    array([2, 1])
    """

    stops_at_click = True
    summary = (
        "Observes clicks of users who read down to the first good item, and learns weights for features."
    )
    draws = False
    cascade = True

    def __init__(
        self,
        *,
        n_features: int | None = None,
        features: ArrayLike | None = None,
        n_positions: int | None = None,
        c: float = 1.0,
        sigma: float = 1.0,
    ) -> None:
        self.build(n_features, features, n_positions, sigma=sigma, width=number("c", c, at_least=0))
