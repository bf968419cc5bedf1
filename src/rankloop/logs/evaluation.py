"""The value of a ranking or a ranker, estimated from the log of another one."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from rankloop.arguments import number, numbers, one_of, whole
from rankloop.base import Ranker
from rankloop.feedback import LoggedLists
from rankloop.logs import off_policy
from rankloop.logs.drawn_lists import Orders, lists_for
from rankloop.logs.guesses import Policy, applied, guesses_for
from rankloop.logs.policies import policy_for
from rankloop.logs.regression import FittedRegression

Numbers = NDArray[np.float64]

ESTIMATORS = ("ips", "self-normalised", "item-position", "doubly-robust", "switch")


class TooFewSamples(ValueError):
    """A log has too little in common with a policy to estimate its value."""


class PropensityWarning(UserWarning):
    """Weights do not average to 1: propensities are wrong, or the log never shows some of what the policy does."""


@dataclass(frozen=True, slots=True, repr=False)
class Evaluation:
    """An estimate of the value of a list, with its confidence interval.

    Parameters
    ----------
    estimator : str
        The estimator that was used.
    value : float
        Clicks a list, each weighed by `click_values`.
    low : float
        The lower end of the confidence interval.
    high : float
        The upper end of the confidence interval.
    confidence : float
        The level of the interval.
    standard_error : float
        The standard error of `value`.
    effective_size : float
        How many rows of the policy's own log would tell as much.
    mean_weight : float
        The mean of the weights, about 1 if propensities are right.
    n_rows : int
        How many rows the log has.
    bias : float, optional
        The most by which clipped weights may have moved the value; the interval includes it. 0 without clipping.
    draw_error : float, optional
        The part of `standard_error` that is due to drawing the policy's lists, for a ranker of lists with features;
        0 where its lists are exact. More `draws` make it smaller.
    """

    estimator: str
    value: float
    low: float
    high: float
    confidence: float
    standard_error: float
    effective_size: float
    mean_weight: float
    n_rows: int
    bias: float = 0.0
    draw_error: float = 0.0

    def __repr__(self) -> str:
        return (
            f"Evaluation({self.estimator}: {self.value:.4g}, {self.confidence:.0%} interval {self.low:.4g} to"
            f" {self.high:.4g}, effective size {self.effective_size:,.0f} of {self.n_rows:,} rows)"
        )


def evaluate(
    log: LoggedLists,
    policy: Ranker | Orders | ArrayLike,
    *,
    estimator: str = "doubly-robust",
    click_values: ArrayLike | None = None,
    click_rates: ArrayLike | FittedRegression | None = None,
    threshold: float | None = None,
    confidence: float = 0.95,
    least_effective: float = 100.0,
    draws: int | None = None,
    explore: bool = True,
    seed: int = 0,
) -> Evaluation:
    """Estimate the value of `policy` from the log of another policy.

    Parameters
    ----------
    log : LoggedLists
        Lists with propensities, from `data.read_logged_lists` or by hand.
    policy : Ranker or FittedRanker or array_like
        A ranking (item numbers, best first), a ranker, or a matrix with the chance of each item at each
        position. A ranker is asked for `draws` rankings; it learns nothing. For a log with features: a ranker of lists
        with features, the result of `fit_ranker` or `fit_regression_em`, or a matrix with a list for each row.
    estimator : str, optional
        ``"ips"`` weighs whole lists and assumes nothing about users, but needs lists that both policies show.
        ``"self-normalised"`` divides by the weights, lists' or else items', and is steadier.
        ``"item-position"`` weighs items at positions, assuming that a click depends on nothing else.
        ``"doubly-robust"``, under the same assumption, corrects a guess at the click rates.
        ``"switch"`` does so only where weights are at most `threshold`, and otherwise believes the guess.
    click_values : array_like, optional
        The value of a click at each position; 1 by default, so that the value is the number of clicks per list.
    click_rates : array_like, optional
        For ``"doubly-robust"`` and ``"switch"``: the guess, items by positions; for a log with features the
        candidates of all lists by positions, or the result of `fit_regression_em`. By default a position-based model,
        with features that of `fit_regression_em`, fitted to one half of the rows for use on the other.
    threshold : float, optional
        For ``"switch"``: the largest weight that is used; by default the one with the least sum of variance and
        squared largest bias, of 20.
    confidence : float, optional
        Of the interval, which is that of a normal mean: with few clicks it is a rough one.
    least_effective : float, optional
        An effective sample size below this is refused.
    draws : int, optional
        How often a ranker is asked: 1,000 times; with features 20 times for each list, which leaves estimators unbiased
        and has its part in the interval (`draw_error`).
    explore : bool, optional
        With features: False for the order that a ranker estimates to be best (`current`), which is exact, in place of
        the lists that it would draw.
    seed : int, optional
        The seed for asking a ranker.

    Returns
    -------
    Evaluation
        The estimate, with its interval.

    Raises
    ------
    TooFewSamples
        When the log rarely shows what the policy would.

    Warns
    -----
    PropensityWarning
        Where weights do not average 1, and where ``"switch"`` leaves more than a fifth of what the policy shows to the
        guess.

    Examples
    --------
    >>> import numpy as np
    >>> from rankloop import feedback, logs
    >>> users = feedback.PositionBasedModel(attraction=[0.1, 0.5, 0.3], examination=[1.0, 0.5])
    >>> rng = np.random.default_rng(1)
    >>> items = rng.permuted(np.tile(np.arange(3), (5_000, 1)), axis=1)[:, :2]
    >>> log = feedback.LoggedLists(
    ...     items=items, clicks=users.click(items, rng=rng), propensities=np.full((5_000, 2), 1 / 3)
    ... )
    >>> found = logs.evaluate(log, [1, 2, 0])
    >>> bool(found.low < 0.5 + 0.15 < found.high), round(found.value, 1)
    (True, 0.7)
    """
    one_of("estimator", estimator, ESTIMATORS)
    number("confidence", confidence, above=0, below=1)
    if not least_effective >= 0.0:
        raise ValueError(f"least_effective must be 0 or more, got {least_effective}")
    if click_rates is not None and estimator not in ("doubly-robust", "switch"):
        raise ValueError(
            f"click_rates are for estimator 'doubly-robust' or 'switch', got them with {estimator!r}"
        )
    if threshold is not None:
        number("threshold", threshold, above=0)
        if estimator != "switch":
            raise ValueError(f"threshold is for estimator 'switch', got it with {estimator!r}")
    wanted: Policy
    if log.features is None:
        if not explore:
            raise ValueError(
                "explore=False is for logs with features; give the ranking that is to be evaluated"
            )
        wanted = policy_for(policy, log, draws=1_000 if draws is None else draws, seed=seed)
    else:
        times = whole("draws", 20 if draws is None else draws, at_least=1)
        wanted = lists_for(policy, log, draws=times, explore=explore, seed=seed)
    c, v = log.clicks.astype(np.float64), _values(click_values, log)
    guesses = guesses_for(click_rates, log) if estimator in ("doubly-robust", "switch") else []
    w = _weights(log, wanted, estimator)
    size = off_policy.effective_size(w)
    if size < least_effective or w.sum() == 0.0:
        raise TooFewSamples(
            f"effective sample size {size:.1f} of {log.n_rows:,} rows, less than least_effective={least_effective:g}:"
            f" {log.name!r} rarely shows what this policy would, so its value cannot be estimated from it"
        )
    most = np.inf if threshold is None else float(threshold)
    if estimator == "switch" and threshold is None:
        most = off_policy.best_threshold(w, c, v, *applied(guesses, log, wanted))

    def rows_of(policy: Policy, w: Numbers) -> Numbers:
        if estimator == "ips":
            return off_policy.ips(w[:, 0], c, v)
        if estimator == "self-normalised" and w.shape != c.shape:
            return off_policy.self_normalised(w[:, 0], c, v)
        if estimator == "self-normalised":
            return off_policy.item_position_self_normalised(w, c, v, log.positions)
        if estimator == "item-position":
            return off_policy.item_position(w, c, v)
        return off_policy.switch(w, c, v, *applied(guesses, log, policy), threshold=most)

    parts = wanted.halves()
    drawing = 0.0
    if parts is not None:
        one, other = (rows_of(part, _weights(log, part, estimator)) for part in parts)
        # Half of the difference has the variance that all draws together give a row.
        drawing = float(np.sqrt(((one - other) ** 2).sum()) / (2.0 * log.n_rows))
    _check_mean(w, log)
    bias = off_policy.most_bias(w, v, threshold=most) if estimator == "switch" else 0.0
    if estimator == "switch":
        _check_clipping(w, most, log)
    return _summary(
        estimator,
        rows_of(wanted, w),
        confidence=confidence,
        size=size,
        mean_weight=_mean_weight(w, log),
        bias=bias,
        drawing=drawing,
    )


def on_policy(
    log: LoggedLists, *, click_values: ArrayLike | None = None, confidence: float = 0.95
) -> Evaluation:
    """The value of the logged lists themselves: the mean, and its interval.

    Parameters
    ----------
    log : LoggedLists
        The logged lists.
    click_values : array_like, optional
        What a click at each position is worth; 1 by default.
    confidence : float, optional
        The level of the interval.

    Returns
    -------
    Evaluation
        The mean, with its interval.
    """
    rows = (_values(click_values, log) * log.clicks).sum(axis=1)
    return _summary("on-policy", rows, confidence=confidence, size=float(log.n_rows), mean_weight=1.0)


def _summary(
    estimator: str,
    rows: Numbers,
    *,
    confidence: float,
    size: float,
    mean_weight: float,
    bias: float = 0.0,
    drawing: float = 0.0,
) -> Evaluation:
    value = float(rows.mean())
    error = float(rows.std(ddof=1) / np.sqrt(len(rows))) if len(rows) > 1 else float("inf")
    half = float(ndtri(0.5 + confidence / 2)) * error + bias
    return Evaluation(
        estimator=estimator,
        value=value,
        low=value - half,
        high=value + half,
        confidence=confidence,
        standard_error=error,
        effective_size=size,
        mean_weight=mean_weight,
        n_rows=len(rows),
        bias=bias,
        draw_error=drawing,
    )


def _values(click_values: ArrayLike | None, log: LoggedLists) -> Numbers:
    shown = (log.items >= 0).astype(np.float64)
    if click_values is None:
        return shown
    values = numbers("click_values", click_values)
    if values.shape != (log.n_positions,) or not np.isfinite(values).all():
        raise ValueError(
            f"click_values must be {log.n_positions} numbers, one per position, got {click_values!r}"
        )
    return shown * values[log.positions]


def _weights(log: LoggedLists, policy: Policy, estimator: str) -> Numbers:
    """Chances under the policy over those in the log: a column of lists' where it may, or of items at positions."""
    if estimator in ("ips", "self-normalised"):
        propensities = log.list_propensities
        if propensities is None and log.items.shape[1] == 1 and log.propensities is not None:
            propensities = log.propensities[:, 0]  # a list of one item is that item at its position
        chances = policy.of_lists(log)
        if propensities is not None and chances is not None:
            return (chances / propensities)[:, None]
        if estimator == "ips":
            raise ValueError(
                "estimator 'ips' needs list_propensities in the log, and the chances of whole lists from the policy:"
                " a ranking or a ranker"
            )
    if log.propensities is None:
        raise ValueError(
            f"estimator {estimator!r} needs propensities of items at positions in the log, got none"
        )
    return policy.of_cells(log) / log.propensities


def _shown(w: Numbers, log: LoggedLists) -> NDArray[np.bool_]:
    """Which weights belong to something that was shown."""
    return log.items >= 0 if w.shape == log.items.shape else np.ones(w.shape, np.bool_)


def _mean_weight(w: Numbers, log: LoggedLists) -> float:
    return float(w[_shown(w, log)].mean())


def _check_mean(w: Numbers, log: LoggedLists) -> None:
    shown = _shown(w, log)
    flat = np.where(shown, w, 0.0).sum(axis=1) / shown.sum(axis=1)
    error = flat.std() / np.sqrt(len(flat))
    if abs(flat.mean() - 1.0) > 5.0 * error + 1e-9:
        warnings.warn(
            f"{log.name}: weights average {flat.mean():.3f} instead of 1; propensities are wrong, or some of what the"
            " policy shows was never shown",
            PropensityWarning,
            stacklevel=3,
        )


def _check_clipping(w: Numbers, threshold: float, log: LoggedLists) -> None:
    left = float(w[w > threshold].sum() / w.sum())
    if left > 0.2:
        warnings.warn(
            f"{log.name}: {left:.0%} of what the policy shows has weights above {threshold:.3g} and is left to the"
            " guess; the log says little of it",
            PropensityWarning,
            stacklevel=3,
        )
