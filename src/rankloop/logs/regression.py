"""Examination of positions and attraction by features, from a log whose items need not occur twice."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from rankloop.arguments import number, numbers, whole
from rankloop.feedback import LoggedLists, PositionBasedModel, Sessions
from rankloop.logs import intervals
from rankloop.logs.identifiability import listed
from rankloop.logs.item_features import item_features
from rankloop.logs.pbm import ClickModelWarning
from rankloop.logs.regression_em import Climb, Impressions, climb

Numbers = NDArray[np.float64]

_TINY = 1e-12
_VAGUE = 0.5  # error of a logarithm: twice that is a factor of 2.7 either way


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FittedRegression:
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

    weights: Numbers
    intercept: float
    examination: Numbers
    examination_interval: Numbers
    weight_errors: Numbers
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

    def attraction(self, features: ArrayLike) -> Numbers:
        """The chance of a click on each item by those who look at it.

        Parameters
        ----------
        features : array_like
            Items by features.

        Returns
        -------
        ndarray of float
            One for each item.
        """
        given = item_features(features, len(self.weights))
        chances: Numbers = expit(given @ self.weights + self.intercept)
        return chances

    def click_rates(self, features: ArrayLike) -> Numbers:
        """The chance of a click on each item at each position.

        Parameters
        ----------
        features : array_like
            Items by features.

        Returns
        -------
        ndarray of float
            Items by positions; 0 at a position where nothing was shown.
        """
        return np.outer(self.attraction(features), np.nan_to_num(self.examination))

    def order(self, features: ArrayLike) -> NDArray[np.int64]:
        """Items by falling attraction.

        Parameters
        ----------
        features : array_like
            Items by features.

        Returns
        -------
        ndarray of int
            Item numbers, best first.
        """
        return np.argsort(-self.attraction(features), kind="stable")

    def model(self, features: ArrayLike) -> PositionBasedModel:
        """The click model of one list, to simulate its users.

        Parameters
        ----------
        features : array_like
            Items by features.

        Returns
        -------
        PositionBasedModel
            With the attraction of each item, and the examinations.
        """
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

    Returns
    -------
    FittedRegression
        The estimates, with their intervals.

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
    found = climb(cells, ridge=ridge, tolerance=tolerance, max_steps=max_steps)
    fitted = _told(found, cells, confidence)
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
    own = log.features if isinstance(log, LoggedLists) else None
    if own is not None:
        if features is not None:
            raise ValueError("features must be left out, because the log has its own")
        x = own.rows[(own.starts[:-1, None] + log.items)[shown]]
        return Impressions(x, places, np.ones(len(x)), clicks, log.n_positions)
    if features is None:
        raise ValueError("features must be given, items by features: the log has none of its own")
    given = numbers("features", features)
    if given.ndim != 2 or len(given) != log.n_items or not np.isfinite(given).all():
        raise ValueError(f"features must be {log.n_items} items by features, finite, got shape {given.shape}")
    codes = log.items[shown].astype(np.int64) * log.n_positions + places
    cells, which = np.unique(codes, return_inverse=True)
    items, positions = np.divmod(cells, log.n_positions)
    times = np.bincount(which, minlength=len(cells)).astype(np.float64)
    clicked = np.bincount(which, clicks, len(cells)).astype(np.float64)
    return Impressions(given[items], positions, times, clicked, log.n_positions)


def _told(found: Climb, cells: Impressions, confidence: float) -> FittedRegression:
    variances = np.maximum(np.diag(found.covariance), 0.0)
    shown, clicked = cells.at(cells.shown), cells.at(cells.clicked)
    free = ~found.pinned & (clicked > 0)
    beta = np.minimum(np.exp(found.log_beta), 1.0)
    error = np.zeros(cells.n_positions)
    error[free] = np.sqrt(variances[: free.sum()])
    # Nobody clicked there: what is known is how many clicks as many looks would have brought.
    silent = ~found.pinned & (clicked == 0) & (shown > 0)
    would = cells.at(cells.shown * expit(cells.x @ found.weights + found.intercept))
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
    if not found.converged:
        sentences.append(
            f"the fit was stopped after {found.steps} steps, before it converged: estimates and intervals are not"
            " those of the maximum"
        )
    return FittedRegression(
        weights=found.weights,
        intercept=found.intercept,
        examination=np.where(shown > 0, beta, np.nan),
        examination_interval=ends,
        weight_errors=np.sqrt(variances[free.sum() + 1 :]),
        reference=int(np.argmax(found.pinned)),
        confidence=confidence,
        log_likelihood=found.log_likelihood,
        steps=found.steps,
        converged=found.converged,
        warnings=tuple(sentences),
        n_impressions=int(shown.sum()),
    )
