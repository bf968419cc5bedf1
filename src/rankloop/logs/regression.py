"""Examination of positions and attraction by features, from a log whose items need not occur twice."""

from __future__ import annotations

import abc
import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit, xlog1py, xlogy

from rankloop.arguments import number, numbers, whole
from rankloop.feedback import LoggedLists, PositionBasedModel, Sessions
from rankloop.logs import intervals
from rankloop.logs.intervals import listed
from rankloop.logs.pbm import ClickModelWarning

# A position-based model whose attractions come from features: for lists in which items hardly ever occur twice.
#
# A click has probability p = beta_j s(w x + b), with beta_j the examination of position j and s the logistic
# function. Regression-EM climbs to the maximum of this likelihood in ever shorter steps; Fisher scoring climbs to the
# same one in about ten. With beta_j in logarithms, dp = p (dlog beta_j + (1 - s) d(w x + b)), and the expected
# information is the sum of p / (1 - p) times the squares of that bracket.


Floats = NDArray[np.float64]

_TINY = 1e-12
_HALVINGS = 40


@dataclass(frozen=True, slots=True)
class Impressions:
    """Rows of features, each with its position, how often it was shown there and how often clicked."""

    x: Floats
    positions: NDArray[np.int64]
    shown: Floats
    clicked: Floats
    n_positions: int

    def at(self, values: Floats) -> Floats:
        """Sums by position."""
        return np.bincount(self.positions, values, self.n_positions).astype(np.float64)


class Climb(NamedTuple):
    """Where the steps ended: the parameters, their covariance, and how."""

    weights: Floats
    intercept: float
    log_beta: Floats
    pinned: NDArray[np.bool_]
    covariance: Floats  # of the logarithms of the free examinations, the intercept and the weights
    log_likelihood: float
    steps: int
    converged: bool


def climb(cells: Impressions, *, ridge: float, tolerance: float, max_steps: int) -> Climb:
    """Maximum likelihood with the largest examination at 1.

    The position with the highest click rate begins with 1. Where another one then comes out above 1, that one is
    given 1 in its place; and where they take turns, both.
    """
    clicked, shown = cells.at(cells.clicked), cells.at(cells.shown)
    clicks = np.divide(clicked, shown, out=np.zeros_like(clicked), where=shown > 0)
    tried = [int(np.argmax(clicks))]
    pinned = np.arange(cells.n_positions) == tried[0]
    while True:
        end = _scoring(cells, pinned, clicks, ridge=ridge, tolerance=tolerance, max_steps=max_steps)
        above = np.where(pinned, -np.inf, end.log_beta)
        worst = int(np.argmax(above))
        if above[worst] <= 1e-9:
            return end
        pinned = pinned.copy() if worst in tried else np.zeros_like(pinned)
        pinned[worst] = True
        tried.append(worst)


def rates(end: Climb, x: Floats) -> Floats:
    """The chance of a click on each row of features at each position."""
    return np.outer(expit(x @ end.weights + end.intercept), np.minimum(np.exp(end.log_beta), 1.0))


def _scoring(
    cells: Impressions,
    pinned: NDArray[np.bool_],
    rates: Floats,
    *,
    ridge: float,
    tolerance: float,
    max_steps: int,
) -> Climb:
    free = ~pinned & (rates > 0)
    n_free, d = int(free.sum()), cells.x.shape[1]
    column = np.full(cells.n_positions, -1)
    column[free] = np.arange(n_free)
    top = float(rates[pinned].mean())
    theta = np.zeros(n_free + 1 + d)
    theta[:n_free] = np.minimum(np.log(rates[free] / top), 0.0)
    theta[n_free] = logit(np.clip(top, 1e-6, 1.0 - 1e-6))
    seen = np.column_stack([np.ones(len(cells.x)), cells.x])
    place = column[cells.positions]
    penalty = np.concatenate([np.zeros(n_free + 1), np.full(d, ridge)])
    silent = (rates == 0) & ~pinned  # no click there: nobody looks, and its misses say nothing

    def chances(theta: Floats) -> tuple[Floats, Floats, Floats]:
        log_beta = np.where(silent, -np.inf, 0.0)
        log_beta[free] = theta[:n_free]
        s = expit(seen @ theta[n_free:])
        # Above 1 while steps are taken, an examination counts up to a chance of 1.
        return np.minimum(np.exp(log_beta)[cells.positions] * s, 1.0 - _TINY), s, log_beta

    def value(p: Floats, theta: Floats) -> float:
        likelihood = xlogy(cells.clicked, p).sum() + xlog1py(cells.shown - cells.clicked, -p).sum()
        return float(likelihood - 0.5 * (penalty * theta**2).sum())

    p, s, log_beta = chances(theta)
    now, converged, steps = value(p, theta), False, 0
    while not converged and steps < max_steps:
        steps += 1
        slope, information = _derivatives(cells, seen, place, n_free, p, s)
        slope -= penalty * theta
        direction = _solve(information + np.diag(penalty), slope)
        gain = float(slope @ direction)
        if gain <= tolerance:
            converged = True
            continue
        length = 1.0
        for _ in range(_HALVINGS):
            after = theta + length * direction
            p, s, log_beta = chances(after)
            if value(p, after) >= now + 1e-4 * length * gain:
                break
            length *= 0.5
        else:  # as far up as numbers of this size can tell
            p, s, log_beta = chances(theta)
            converged = gain <= 1e-6
            break
        theta, now = after, value(p, after)
    _, information = _derivatives(cells, seen, place, n_free, p, s)
    likelihood = float(xlogy(cells.clicked, p).sum() + xlog1py(cells.shown - cells.clicked, -p).sum())
    return Climb(
        weights=theta[n_free + 1 :],
        intercept=float(theta[n_free]),
        log_beta=log_beta,
        pinned=pinned,
        covariance=_inverse(information + np.diag(penalty)),
        log_likelihood=likelihood,
        steps=steps,
        converged=converged,
    )


def _derivatives(
    cells: Impressions, seen: Floats, place: NDArray[np.int64], n_free: int, p: Floats, s: Floats
) -> tuple[Floats, Floats]:
    """The slope of the log likelihood, and its expected information."""
    g = seen * (1.0 - s)[:, None]
    pull = (cells.clicked - cells.shown * p) / (1.0 - p)
    weight = cells.shown * p / (1.0 - p)
    inside = place >= 0
    slope = np.concatenate([np.bincount(place[inside], pull[inside], n_free), g.T @ pull])
    information = np.zeros((len(slope), len(slope)))
    information[:n_free, :n_free] = np.diag(np.bincount(place[inside], weight[inside], n_free))
    information[n_free:, n_free:] = g.T @ (g * weight[:, None])
    for j in range(n_free):
        here = place == j
        information[j, n_free:] = weight[here] @ g[here]
    information[n_free:, :n_free] = information[:n_free, n_free:].T
    return slope, information


def _scaled(matrix: Floats) -> tuple[Floats, Floats]:
    scale = np.sqrt(np.maximum(np.diag(matrix), np.finfo(float).tiny))
    return matrix / np.outer(scale, scale), scale


def _solve(matrix: Floats, right: Floats) -> Floats:
    small, scale = _scaled(matrix)
    damped = small + 1e-10 * np.eye(len(right))
    solved: Floats = np.linalg.solve(damped, right / scale) / scale
    return solved


def _inverse(matrix: Floats) -> Floats:
    """The inverse; where a direction is flat, its variance is as large as rounding lets it be."""
    small, scale = _scaled(matrix)
    inverse: Floats = np.linalg.inv(small + 1e-10 * np.eye(len(matrix))) / np.outer(scale, scale)
    return inverse


class OrdersItems(abc.ABC):
    """Something fitted that scores items by their features."""

    __slots__ = ()

    @abc.abstractmethod
    def _scores(self, features: ArrayLike) -> Floats: ...

    def order(self, features: ArrayLike) -> NDArray[np.int64]:
        """Item numbers by falling score, best first; `features` has a row for each item."""
        return np.argsort(-self._scores(features), kind="stable")


def item_features(features: ArrayLike, n_features: int) -> NDArray[np.float64]:
    """The features of items that a fitted ranker is asked about: items by features, as many as were fitted."""
    rows = numbers("features", features)
    if rows.ndim != 2 or rows.shape[1] != n_features:
        raise ValueError(f"features must be items by {n_features} features, got shape {rows.shape}")
    return rows


def features_of_items(log: Sessions | LoggedLists, features: ArrayLike | None) -> Floats | None:
    """Items by features, for items that are the same in every list; None for a log that has its own."""
    if isinstance(log, LoggedLists) and log.features is not None:
        if features is not None:
            raise ValueError("features must be left out, because the log has its own")
        return None
    if features is None:
        raise ValueError("features must be given, items by features: the log has none of its own")
    rows = numbers("features", features)
    if rows.ndim != 2 or len(rows) != log.n_items or not np.isfinite(rows).all():
        raise ValueError(f"features must be {log.n_items} items by features, finite, got shape {rows.shape}")
    return rows


_VAGUE = 0.5  # error of a logarithm: twice that is a factor of 2.7 either way


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FittedRegression(OrdersItems):
    """A position-based model whose attractions are a logistic function of features.

    Parameters
    ----------
    weights : ndarray of float
        One for each feature; a linear ranker takes them as `warm_start`.
    intercept : float
        What is added to the weighted features.
    examination : ndarray of float
        By position; that of `reference` is 1 by convention. Not a number where nothing was shown.
    examination_interval : ndarray of float
        Lower and upper end of the interval of each examination, a row for each position.
    weight_errors : ndarray of float
        The standard error of each weight.
    reference : int
        The position (from 0) that users look at most.
    confidence : float
        The level of the intervals.
    log_likelihood : float
        Of the log, at these parameters.
    steps : int
        How many steps it took.
    converged : bool
        Whether the steps became short enough.
    warnings : tuple of str
        What the log does not tell, in sentences.
    n_impressions : int
        How many impressions the log has.
    """

    weights: Floats
    intercept: float
    examination: Floats
    examination_interval: Floats
    weight_errors: Floats
    reference: int
    confidence: float
    log_likelihood: float
    steps: int
    converged: bool
    warnings: tuple[str, ...]
    n_impressions: int

    def __repr__(self) -> str:
        end = f"{self.steps} steps" + ("" if self.converged else ", not converged")
        size = f"{len(self.weights)} weights, {len(self.examination)} positions"
        return f"FittedRegression({size} from {self.n_impressions:,} impressions, {end})"

    def attraction(self, features: ArrayLike) -> Floats:
        """The chance of a click on each item, a row of `features`, by those who look at it."""
        chances: Floats = expit(item_features(features, len(self.weights)) @ self.weights + self.intercept)
        return chances

    def _scores(self, features: ArrayLike) -> Floats:
        return self.attraction(features)

    def click_rates(self, features: ArrayLike) -> Floats:
        """The chance of a click on each item (a row of `features`) at each position; 0 where nothing was shown."""
        return np.outer(self.attraction(features), np.nan_to_num(self.examination))

    def model(self, features: ArrayLike) -> PositionBasedModel:
        """The click model of one list, a row of `features` for each item, to simulate its users."""
        return PositionBasedModel(attraction=self.attraction(features), examination=self.examination)


def fit_regression_em(
    log: Sessions | LoggedLists,
    *,
    features: ArrayLike | None = None,
    ridge: float = 0.1,
    confidence: float = 0.95,
    tolerance: float = 1e-8,
    max_steps: int = 200,
) -> FittedRegression:
    """Estimate how users examine positions where items hardly occur twice: attractions come from features.

    A click on an item with features x at position j has the probability examination_j times the logistic function of
    the weighted features. What ties positions together is that items with similar features were shown at several of
    them.

    Parameters
    ----------
    log : Sessions or LoggedLists
        The lists. Those of `LoggedLists` with features bring their own.
    features : array_like, optional
        Items by features, for items that are the same in every list.
    ridge : float, optional
        Half of this, times the sum of squared weights, is taken off the log likelihood, so that a maximum exists.
    confidence : float, optional
        Of the intervals, which come from the expected information with all parameters unknown.
    tolerance : float, optional
        When to stop: a step promises less than this of log likelihood.
    max_steps : int, optional
        When to give up, with a warning and `converged` False.

    Departures
    ----------
    The paper fits boosted trees to labels drawn from the posterior, step by step. Here the link is logistic, and
    Fisher scoring goes to the maximum of the likelihood that its EM climbs: a test compares the two.

    References
    ----------
    X. Wang, N. Golbandi, M. Bendersky, D. Metzler, M. Najork (2018). Position bias estimation for unbiased learning to
    rank in personal search. *WSDM*.

    Examples
    --------
    >>> import numpy as np
    >>> from rankloop import feedback, logs
    >>> rng = np.random.default_rng(1)
    >>> x = rng.normal(size=(5_000, 3, 2))  # 15,000 items, each shown once
    >>> looks = rng.random((5_000, 3)) < [1.0, 0.5, 0.2]
    >>> likes = rng.random((5_000, 3)) < 1 / (1 + np.exp(1.0 - x @ [1.0, -0.5]))
    >>> items = np.tile(np.arange(3), (5_000, 1))
    >>> found = logs.fit_regression_em(feedback.LoggedLists(items=items, clicks=looks & likes, features=x))
    >>> found.examination.round(1), found.weights.round(1)
    (array([1. , 0.5, 0.2]), array([ 1. , -0.5]))
    """
    number("ridge", ridge, at_least=0)
    number("confidence", confidence, above=0, below=1)
    number("tolerance", tolerance, above=0)
    whole("max_steps", max_steps, at_least=1)
    cells = impressions(log, features)
    if cells.clicked.sum() == 0:
        raise ValueError(f"log must have a click, got none in {log.n_rows:,} rows of {log.name!r}")
    end = climb(cells, ridge=ridge, tolerance=tolerance, max_steps=max_steps)
    fitted = _told(end, cells, confidence)
    for sentence in fitted.warnings:
        warnings.warn(f"{log.name}: {sentence}", ClickModelWarning, stacklevel=2)
    return fitted


def impressions(
    log: Sessions | LoggedLists, features: ArrayLike | None, rows: NDArray[np.bool_] | None = None
) -> Impressions:
    """The shown items of a log (or of some of its rows) with their features, one by one or counted."""
    shown = log.items >= 0
    if rows is not None:
        shown = shown & rows[:, None]
    places = log.positions if isinstance(log, LoggedLists) else np.arange(log.n_positions)
    places = np.broadcast_to(places, log.items.shape)[shown].astype(np.int64)
    clicks = log.clicks[shown].astype(np.float64)
    of_items = features_of_items(log, features)
    if of_items is None:
        own = log.features  # type: ignore[union-attr]
        assert own is not None
        x = own.rows[(own.starts[:-1, None] + log.items)[shown]]
        return Impressions(x, places, np.ones(len(x)), clicks, log.n_positions)
    codes = log.items[shown].astype(np.int64) * log.n_positions + places
    cells, which = np.unique(codes, return_inverse=True)
    items, positions = np.divmod(cells, log.n_positions)
    times = np.bincount(which, minlength=len(cells)).astype(np.float64)
    clicked = np.bincount(which, clicks, len(cells)).astype(np.float64)
    return Impressions(of_items[items], positions, times, clicked, log.n_positions)


def _told(end: Climb, cells: Impressions, confidence: float) -> FittedRegression:
    variances = np.maximum(np.diag(end.covariance), 0.0)
    shown, clicked = cells.at(cells.shown), cells.at(cells.clicked)
    free = ~end.pinned & (clicked > 0)
    beta = np.minimum(np.exp(end.log_beta), 1.0)
    error = np.zeros(cells.n_positions)
    error[free] = np.sqrt(variances[: free.sum()])
    # Nobody clicked there: what is known is how many clicks as many looks would have brought.
    silent = ~end.pinned & (clicked == 0) & (shown > 0)
    would = cells.at(cells.shown * expit(cells.x @ end.weights + end.intercept))
    error[silent] = 1.0 / np.sqrt(_TINY * np.maximum(would[silent], _TINY))
    error[shown == 0] = np.inf
    ends = intervals.examination_interval(beta, error, confidence=confidence)
    sentences = []
    if (shown == 0).any():
        sentences.append(f"nothing was shown at {listed(shown == 0)}: how often users look there is unknown")
    if (free & (error > _VAGUE)).any():
        sentences.append(
            f"examination of {listed(free & (error > _VAGUE))} is hardly known: items with similar features were"
            " rarely shown both there and at other positions, or few were clicked"
        )
    if not end.converged:
        sentences.append(
            f"the fit was stopped after {end.steps} steps, before it converged: estimates and intervals are not"
            " those of the maximum"
        )
    return FittedRegression(
        weights=end.weights,
        intercept=end.intercept,
        examination=np.where(shown > 0, beta, np.nan),
        examination_interval=ends,
        weight_errors=np.sqrt(variances[free.sum() + 1 :]),
        reference=int(np.argmax(end.pinned)),
        confidence=confidence,
        log_likelihood=end.log_likelihood,
        steps=end.steps,
        converged=end.converged,
        warnings=tuple(sentences),
        n_impressions=int(shown.sum()),
    )
