"""The value of a ranking or a ranker, estimated from the log of another one."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from rankloop.arguments import number, numbers, one_of
from rankloop.base import Ranker
from rankloop.feedback import LoggedLists
from rankloop.logs import off_policy
from rankloop.logs.em import Cells, by_moments
from rankloop.logs.policies import Policy, policy_for

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

    def __repr__(self) -> str:
        return (
            f"Evaluation({self.estimator}: {self.value:.4g}, {self.confidence:.0%} interval {self.low:.4g} to"
            f" {self.high:.4g}, effective size {self.effective_size:,.0f} of {self.n_rows:,} rows)"
        )


def evaluate(
    log: LoggedLists,
    policy: Ranker | ArrayLike,
    *,
    estimator: str = "doubly-robust",
    click_values: ArrayLike | None = None,
    click_rates: ArrayLike | None = None,
    threshold: float | None = None,
    confidence: float = 0.95,
    least_effective: float = 100.0,
    draws: int = 1_000,
    seed: int = 0,
) -> Evaluation:
    """Estimate the value of `policy` from the log of another policy.

    Parameters
    ----------
    log : LoggedLists
        Lists with propensities, from `data.read_logged_lists` or by hand.
    policy : Ranker or array_like
        A ranking (item numbers, best first), a ranker, or a matrix with the chance of each item at each
        position. A ranker is asked for `draws` rankings; it learns nothing.
    estimator : str, optional
        ``"ips"`` weighs whole lists and assumes nothing about users, but needs lists that both policies show.
        ``"self-normalised"`` divides by the weights, lists' or else items', and is steadier.
        ``"item-position"`` weighs items at positions, assuming that a click depends on nothing else.
        ``"doubly-robust"``, under the same assumption, corrects a guess at the click rates.
        ``"switch"`` does so only where weights are at most `threshold`, and otherwise believes the guess.
    click_values : array_like, optional
        The value of a click at each position; 1 by default, so that the value is the number of clicks per list.
    click_rates : array_like, optional
        For ``"doubly-robust"`` and ``"switch"``: the guess, items by positions. By default a position-based model,
        fitted to one half of the rows for use on the other.
    threshold : float, optional
        For ``"switch"``: the largest weight that is used; by default the one with the least sum of variance and
        squared largest bias, of 20.
    confidence : float, optional
        Of the interval, which is that of a normal mean: with few clicks it is a rough one.
    least_effective : float, optional
        An effective sample size below this is refused.
    draws : int, optional
        How often a ranker is asked, and the seed for that.
    seed : int, optional
        How often a ranker is asked, and the seed for that.

    Returns
    -------
    Evaluation
        The estimate, with its interval.

    Raises
    ------
    TooFewSamples
        When the log rarely shows what the policy would.

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
    wanted = policy_for(policy, log, draws=draws, seed=seed)
    c, v = log.clicks.astype(np.float64), _values(click_values, log)
    by_list = _list_weights(log, wanted) if estimator in ("ips", "self-normalised") else None
    if estimator == "ips" and by_list is None:
        raise ValueError(
            "estimator 'ips' needs list_propensities in the log, and the chances of whole lists from the policy:"
            " a ranking or a ranker"
        )
    w = by_list[:, None] if by_list is not None else _cell_weights(log, wanted, estimator)
    size = off_policy.effective_size(w)
    if size < least_effective or w.sum() == 0.0:
        raise TooFewSamples(
            f"effective sample size {size:.1f} of {log.n_rows:,} rows, less than least_effective={least_effective:g}:"
            f" {log.name!r} rarely shows what this policy would, so its value cannot be estimated from it"
        )
    bias = 0.0
    if by_list is not None:
        compute = off_policy.ips if estimator == "ips" else off_policy.self_normalised
        rows = compute(by_list, c, v)
    elif estimator == "self-normalised":
        rows = off_policy.item_position_self_normalised(w, c, v, log.positions)
    elif estimator == "item-position":
        rows = off_policy.item_position(w, c, v)
    elif estimator == "doubly-robust":
        rows = off_policy.doubly_robust(w, c, v, *_guesses(click_rates, log, wanted))
    else:
        guesses = _guesses(click_rates, log, wanted)
        most = off_policy.best_threshold(w, c, v, *guesses) if threshold is None else float(threshold)
        rows = off_policy.switch(w, c, v, *guesses, threshold=most)
        bias = off_policy.most_bias(w, v, threshold=most)
    _check_mean(w, log)
    return _summary(estimator, rows, confidence=confidence, size=size, mean_weight=float(w.mean()), bias=bias)


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
    estimator: str, rows: Numbers, *, confidence: float, size: float, mean_weight: float, bias: float = 0.0
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
    )


def _values(click_values: ArrayLike | None, log: LoggedLists) -> Numbers:
    if click_values is None:
        return np.ones(log.items.shape)
    values = numbers("click_values", click_values)
    if values.shape != (log.n_positions,) or not np.isfinite(values).all():
        raise ValueError(
            f"click_values must be {log.n_positions} numbers, one per position, got {click_values!r}"
        )
    return values[log.positions]


def _list_weights(log: LoggedLists, policy: Policy) -> Numbers | None:
    propensities = log.list_propensities
    if propensities is None and log.items.shape[1] == 1 and log.propensities is not None:
        propensities = log.propensities[:, 0]  # a list of one item is that item at its position
    chances = policy.of_lists(log)
    return None if propensities is None or chances is None else chances / propensities


def _cell_weights(log: LoggedLists, policy: Policy, estimator: str) -> Numbers:
    if log.propensities is None:
        raise ValueError(
            f"estimator {estimator!r} needs propensities of items at positions in the log, got none"
        )
    return policy.of_cells(log) / log.propensities


def _guesses(click_rates: ArrayLike | None, log: LoggedLists, policy: Policy) -> tuple[Numbers, Numbers]:
    """Guessed click rates of what was shown, and of what the policy would show in its place."""
    if click_rates is not None:
        q = numbers("click_rates", click_rates)
        if q.shape != policy.cells.shape or not np.isfinite(q).all():
            raise ValueError(f"click_rates must be items by positions, {policy.cells.shape}, got {q.shape}")
        return q[log.items, log.positions], (policy.cells * q).sum(axis=0)[log.positions]
    q_shown, q_policy = np.empty(log.items.shape), np.empty(log.items.shape)
    half = np.arange(log.n_rows) % 2
    for one in (0, 1):
        # From the other half, so that a row's own clicks have no part in its guess.
        q = _fitted_rates(log, half != one)
        here = half == one
        q_shown[here] = q[log.items[here], log.positions[here]]
        q_policy[here] = (policy.cells * q).sum(axis=0)[log.positions[here]]
    return q_shown, q_policy


def _fitted_rates(log: LoggedLists, rows: NDArray[np.bool_]) -> Numbers:
    items, places, clicks = log.items[rows].ravel(), log.positions[rows].ravel(), log.clicks[rows].ravel()
    if clicks.sum() == 0:
        return np.zeros((log.n_items, log.n_positions))
    once = np.ones(len(items))
    cells = Cells(items, places, once, clicks.astype(np.float64), log.n_items, log.n_positions)
    alpha, beta, _ = by_moments(cells, impressions=10.0)
    return np.outer(alpha, beta).clip(0.0, 1.0)


def _check_mean(w: Numbers, log: LoggedLists) -> None:
    flat = w.mean(axis=1)
    error = flat.std() / np.sqrt(len(flat))
    if abs(flat.mean() - 1.0) > 5.0 * error + 1e-9:
        warnings.warn(
            f"{log.name}: weights average {flat.mean():.3f} instead of 1; propensities are wrong, or some of what the"
            " policy shows was never shown",
            PropensityWarning,
            stacklevel=3,
        )
