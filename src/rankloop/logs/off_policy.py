"""The value of a ranking or a ranker, estimated from the log of another one."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from rankloop.arguments import number, numbers, one_of, whole
from rankloop.base import Ranker
from rankloop.feedback import Candidates, LoggedLists
from rankloop.logs.intervals import Cells, by_moments
from rankloop.logs.regression import FittedRegression, climb, impressions, rates

Floats = NDArray[np.float64]


class Policy(Protocol):
    """Chances of what a log shows under another policy."""

    def of_cells(self, log: LoggedLists) -> Floats:
        """The chance of each logged item at its position; 0 where nothing was shown."""
        ...

    def of_lists(self, log: LoggedLists) -> Floats | None:
        """The chance of each logged list, or None where only those of items at positions are known."""
        ...

    def mean_rates(self, log: LoggedLists, q: Floats) -> Floats:
        """The mean of `q`, items by positions, over what the policy shows, for each logged item's position."""
        ...

    def halves(self) -> tuple[Policy, Policy] | None:
        """The policy by every other draw, twice; None where its chances are exact."""
        ...


# The policy to evaluate over items that are the same for everybody: chances of items at positions, and of lists.


@dataclass(frozen=True, slots=True)
class ItemPolicy:
    """`cells[i, j]` is the chance of item i at position j; `lists` that of each list, None where it is unknown."""

    cells: Floats
    lists: dict[tuple[int, ...], float] | None

    def of_cells(self, log: LoggedLists) -> Floats:
        return self.cells[log.items, log.positions]

    def of_lists(self, log: LoggedLists) -> Floats | None:
        if log.items.shape[1] == 1:
            return self.of_cells(log)[:, 0]
        if self.lists is None:
            return None
        chances, which = np.unique(log.items, axis=0, return_inverse=True)
        of = [self.lists.get(tuple(row), 0.0) for row in chances.tolist()]
        return np.array(of)[which.ravel()]

    def mean_rates(self, log: LoggedLists, q: Floats) -> Floats:
        means: Floats = (self.cells * q).sum(axis=0)[log.positions]
        return means

    def halves(self) -> None:
        return  # the same for all rows


def policy_for(policy: Any, log: LoggedLists, *, draws: int, seed: int) -> ItemPolicy:
    """Read the policy to evaluate: a ranker, one ranking, or a matrix of probabilities."""
    if isinstance(policy, Ranker):
        return _of_ranker(policy, log, draws=whole("draws", draws, at_least=1), seed=seed)
    array = numbers("policy", policy)
    if array.ndim == 1:
        return _of_ranking(array, log)
    if array.ndim != 2:
        raise ValueError(
            f"policy must be a ranker, a ranking or a matrix of items by positions, got {policy!r}"
        )
    shape = (log.n_items, log.n_positions)
    if array.shape != shape:
        raise ValueError(
            f"policy must have a row for each item and a column for each position, {shape}, got {array.shape}"
        )
    if not ((array >= 0).all() and np.allclose(array.sum(axis=0), 1.0, atol=1e-6)):
        raise ValueError(
            f"policy must be probabilities that sum to 1 at each position, got sums {array.sum(axis=0)}"
        )
    return ItemPolicy(array, None)


def _of_ranking(order: Floats, log: LoggedLists) -> ItemPolicy:
    m = log.n_positions
    whole_numbers = np.isfinite(order).all() and (order == np.floor(order)).all()
    if not whole_numbers or len(order) < m or len(np.unique(order)) < len(order):
        raise ValueError(
            f"policy must rank at least {m} different items, as the log's positions ask, got {order}"
        )
    if order.min() < 0 or order.max() >= log.n_items:
        raise ValueError(f"policy must rank items from 0 to {log.n_items - 1}, got {order}")
    return _mixed([order[:m].astype(np.int64)], log)


def _of_ranker(ranker: Ranker, log: LoggedLists, *, draws: int, seed: int) -> ItemPolicy:
    m = log.n_positions
    if ranker.n_positions is None or ranker.n_positions < m:
        raise ValueError(
            f"policy must be a ranker of the log's {m} positions, without features, got {ranker.n_positions} positions"
        )
    rng = np.random.default_rng(seed)
    lists = [ranker.rank(rng=rng).items[:m] for _ in range(draws)]
    largest = max(int(items.max()) for items in lists)
    if largest >= log.n_items:
        raise ValueError(f"policy must rank items from 0 to {log.n_items - 1}, it shows item {largest}")
    return _mixed(lists, log)


def _mixed(lists: Sequence[NDArray[np.int64]], log: LoggedLists) -> ItemPolicy:
    """The policy that shows each of these lists equally often."""
    cells = np.zeros((log.n_items, log.n_positions))
    places = np.arange(log.n_positions)
    counts: Counter[tuple[Any, ...]] = Counter()
    for items in lists:
        cells[items, places] += 1.0 / len(lists)
        counts[tuple(items.tolist())] += 1
    return ItemPolicy(cells, {items: count / len(lists) for items, count in counts.items()})


# The policy to evaluate on lists with features of their own: what it would have shown for each request.


@runtime_checkable
class Orders(Protocol):
    """Something that orders items by their features, such as the result of `logs.fit_ranker`."""

    def order(self, features: ArrayLike, /) -> NDArray[np.int64]:
        """Item numbers, best first."""
        ...


@dataclass(frozen=True, slots=True)
class DrawnLists:
    """`lists[r, k]` is the k-th list drawn for row r, candidate numbers by position, -1 behind the last.

    A deterministic policy has one list a row, and its chances are exact. Otherwise the share of the drawn lists stands
    for a chance. It is right on average for any number of draws, so that what is linear in it stays unbiased, and as
    rows are drawn independently, the spread over rows has the error of drawing in it.
    """

    lists: NDArray[np.int64]

    def of_cells(self, log: LoggedLists) -> Floats:
        here = np.take_along_axis(self.lists, log.positions[:, None, :], axis=2)
        chances: Floats = ((here == log.items[:, None, :]) & (log.items >= 0)[:, None, :]).mean(axis=1)
        return chances

    def of_lists(self, log: LoggedLists) -> Floats | None:
        here = np.take_along_axis(self.lists, log.positions[:, None, :], axis=2)
        chances: Floats = (here == log.items[:, None, :]).all(axis=2).mean(axis=1)
        return chances

    def mean_rates(self, log: LoggedLists, q: Floats) -> Floats:
        assert log.features is not None
        rows = log.features.starts[:-1, None, None] + np.maximum(self.lists, 0)
        guessed = np.where(self.lists >= 0, q[rows, np.arange(self.lists.shape[2])], 0.0).mean(axis=1)
        means: Floats = np.take_along_axis(guessed, log.positions, axis=1)
        return means

    def halves(self) -> tuple[DrawnLists, DrawnLists] | None:
        if self.lists.shape[1] < 2:
            return None
        n = self.lists.shape[1] // 2 * 2
        return DrawnLists(self.lists[:, 0:n:2]), DrawnLists(self.lists[:, 1:n:2])


def lists_for(policy: Any, log: LoggedLists, *, draws: int, explore: bool, seed: int) -> DrawnLists:
    """Ask the policy for a list, or for many, for each row of the log; it learns nothing."""
    assert log.features is not None
    requests, m = log.features, log.n_positions
    if isinstance(policy, Ranker):
        if policy.n_positions is not None:
            raise ValueError(
                "policy must be a ranker of lists with features, as the log's, got one of fixed items:"
                f" {type(policy).__name__}"
            )
        if policy.n_features not in (requests.n_features, None):
            raise ValueError(
                f"policy must be a ranker of the log's {requests.n_features} features, got one of"
                f" {policy.n_features}"
            )
        if not explore:
            return _ordered([policy.current(requests[row]) for row in range(len(requests))], requests, m)
        return _drawn(policy, requests, m, draws=draws, seed=seed)
    if isinstance(policy, Orders):
        return _ordered([policy.order(requests[row]) for row in range(len(requests))], requests, m)
    listed = numbers("policy", policy)
    if listed.ndim != 2 or len(listed) != log.n_rows or (listed != np.floor(listed)).any():
        raise ValueError(
            "policy must be a ranker, something with a method order, or a matrix with a list for each of the log's"
            f" {log.n_rows:,} rows, got shape {listed.shape}"
        )
    return _ordered([row[row >= 0].astype(np.int64) for row in listed], requests, m)


def _drawn(ranker: Ranker, requests: Candidates, m: int, *, draws: int, seed: int) -> DrawnLists:
    rng = np.random.default_rng(seed)
    lists = np.full((len(requests), draws, m), -1, np.int64)
    for row in range(len(requests)):
        context = requests[row]
        for k in range(draws):
            items = ranker.rank(context, rng=rng).items[:m]
            lists[row, k, : len(items)] = items
    return DrawnLists(lists)


def _ordered(orders: list[NDArray[np.int64]], requests: Candidates, m: int) -> DrawnLists:
    lists = np.full((len(requests), 1, m), -1, np.int64)
    for row, (order, n) in enumerate(zip(orders, requests.sizes.tolist(), strict=True)):
        top = order[:m]
        if len(top) < min(m, n) or len(np.unique(top)) < len(top) or top.min() < 0 or top.max() >= n:
            raise ValueError(
                f"policy must rank at least {min(m, n)} different candidates of the {n} of list {row}, got {order}"
            )
        lists[row, 0, : len(top)] = top
    return DrawnLists(lists)


# Guesses at click rates, for estimators that correct them: of what was shown, and of what the policy would show.


# Rows, and the click rates of items (or candidates) by positions for them.
Guess = tuple[NDArray[np.bool_], Floats]


def guesses_for(click_rates: Any, log: LoggedLists) -> list[Guess]:
    """The given guess for all rows, or one for each half of them, from the clicks of the other half.

    From the other half, so that a row's own clicks have no part in its guess.
    """
    if click_rates is not None:
        return [(np.ones(log.n_rows, np.bool_), _given(click_rates, log))]
    half = np.arange(log.n_rows) % 2
    fit = _by_items if log.features is None else _by_features
    return [(half == one, fit(log, half != one)) for one in (0, 1)]


def applied(guesses: list[Guess], log: LoggedLists, policy: Policy) -> tuple[Floats, Floats]:
    """Guessed click rates of what was shown, and of what the policy would show in its place."""
    first = 0 if log.features is None else log.features.starts[:-1, None]
    places = first + np.maximum(log.items, 0)
    q_shown, q_policy = np.empty(log.items.shape), np.empty(log.items.shape)
    for rows, q in guesses:
        q_shown[rows] = q[places, log.positions][rows]
        q_policy[rows] = policy.mean_rates(log, q)[rows]
    return q_shown, q_policy


def _given(click_rates: Any, log: LoggedLists) -> Floats:
    if log.features is None:
        shape, what = (log.n_items, log.n_positions), "items by positions"
    else:
        make: Callable[..., Any] | None = getattr(click_rates, "click_rates", None)
        click_rates = click_rates if make is None else make(log.features.rows)
        shape, what = (len(log.features.rows), log.n_positions), "candidates of all lists by positions"
    q = numbers("click_rates", click_rates)
    if q.shape != shape or not np.isfinite(q).all():
        raise ValueError(f"click_rates must be {what}, {shape}, got {q.shape}")
    return q


def _by_items(log: LoggedLists, rows: NDArray[np.bool_]) -> Floats:
    items, places, clicks = log.items[rows].ravel(), log.positions[rows].ravel(), log.clicks[rows].ravel()
    if clicks.sum() == 0:
        return np.zeros((log.n_items, log.n_positions))
    once = np.ones(len(items))
    cells = Cells(items, places, once, clicks.astype(np.float64), log.n_items, log.n_positions)
    alpha, beta, _ = by_moments(cells, impressions=10.0)
    return np.outer(alpha, beta).clip(0.0, 1.0)


def _by_features(log: LoggedLists, rows: NDArray[np.bool_]) -> Floats:
    assert log.features is not None
    cells = impressions(log, None, rows)
    if cells.clicked.sum() == 0:
        return np.zeros((len(log.features.rows), log.n_positions))
    return rates(climb(cells, ridge=1.0, tolerance=1e-4, max_steps=50), log.features.rows)


# The estimators of an off-policy value, each a function from arrays to one number per row.
#
# The mean of those numbers is the estimate, and their spread its error. `w` are importance weights, the chance under
# the policy in question over the chance under the policy that was logged: for whole lists a number per row, for items
# at positions a number for each. `c` are clicks, `v` the value of a click at each position.


def ips(w: Floats, c: Floats, v: Floats) -> Floats:
    """Inverse propensity scores of whole lists: unbiased whatever makes users click (Horvitz and Thompson 1952)."""
    value: Floats = w * (v * c).sum(axis=1)
    return value


def self_normalised(w: Floats, c: Floats, v: Floats) -> Floats:
    """The same divided by the mean weight (Swaminathan and Joachims 2015): slightly biased, with less variance.

    Returned is the estimate plus each row's influence on it, so that the mean is the estimate and the spread
    that of a ratio.
    """
    reward: Floats = (v * c).sum(axis=1)
    mean = float((w * reward).sum() / w.sum())
    value: Floats = mean + w * (reward - mean) / w.mean()
    return value


def item_position(w: Floats, c: Floats, v: Floats) -> Floats:
    """Inverse propensity scores of items at positions (Li et al. 2018).

    Unbiased if a click depends on the item and the position alone, as in the position-based model; a list then need not
    have been shown as a whole.
    """
    value: Floats = (v * w * c).sum(axis=1)
    return value


def item_position_self_normalised(w: Floats, c: Floats, v: Floats, places: NDArray[np.int64]) -> Floats:
    """The same with the weights at each position divided by their mean there."""
    value = np.zeros(len(w))
    for j in np.unique(places):
        here = places == j
        mean_w = float(w[here].mean())
        mean = float((w[here] * c[here]).sum() / w[here].sum()) if mean_w > 0 else 0.0
        gain = mean + w * (c - mean) / mean_w if mean_w > 0 else np.zeros_like(w)
        value += np.where(here, v * gain, 0.0).sum(axis=1)
    return value


def doubly_robust(w: Floats, c: Floats, v: Floats, q_shown: Floats, q_policy: Floats) -> Floats:
    """A model of the clicks, corrected by the observed ones (Dudik, Langford and Li 2011), item by item and position.

    `q_shown` guesses the click rate of what was shown, `q_policy` that of what the policy would have shown in the same
    place. Unbiased if the propensities are right, whatever the guess; and if the guess is right, whatever the
    propensities.
    """
    value: Floats = (v * (q_policy + w * (c - q_shown))).sum(axis=1)
    return value


def switch(w: Floats, c: Floats, v: Floats, q_shown: Floats, q_policy: Floats, *, threshold: float) -> Floats:
    """Doubly robust where weights are at most `threshold`, the guess alone where they are larger.

    This is SWITCH-DR (Wang, Agarwal and Dudik 2017): less variance, and a bias of at most `most_bias` where the guess
    is wrong.
    """
    return doubly_robust(np.where(w <= threshold, w, 0.0), c, v, q_shown, q_policy)


def most_bias(w: Floats, v: Floats, *, threshold: float) -> float:
    """The largest bias that `switch` can have: the value of the clicks on what it leaves to the guess."""
    return float((np.abs(v) * np.where(w > threshold, w, 0.0)).sum(axis=1).mean())


def best_threshold(w: Floats, c: Floats, v: Floats, q_shown: Floats, q_policy: Floats) -> float:
    """The threshold, of 20, with the least sum of the estimate's variance and the square of its largest bias."""
    tried = np.unique(np.quantile(w[w > 0.0], np.linspace(0.05, 1.0, 20)))

    def error(threshold: float) -> float:
        rows = switch(w, c, v, q_shown, q_policy, threshold=threshold)
        return float(rows.var() / len(rows) + most_bias(w, v, threshold=threshold) ** 2)

    return float(min(tried, key=error))


def effective_size(w: Floats) -> float:
    """How many rows with equal weights would give the same precision (Kish 1965).

    With weights for items at positions, the least of the columns counts.
    """
    squares = (w**2).sum(axis=0)
    return float(
        np.min(np.divide(w.sum(axis=0) ** 2, squares, out=np.zeros_like(squares), where=squares > 0))
    )


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
    low, high : float
        The ends of the confidence interval.
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
    size = effective_size(w)
    if size < least_effective or w.sum() == 0.0:
        raise TooFewSamples(
            f"effective sample size {size:.1f} of {log.n_rows:,} rows, less than least_effective={least_effective:g}:"
            f" {log.name!r} rarely shows what this policy would, so its value cannot be estimated from it"
        )
    most = np.inf if threshold is None else float(threshold)
    if estimator == "switch" and threshold is None:
        most = best_threshold(w, c, v, *applied(guesses, log, wanted))

    def rows_of(policy: Policy, w: Floats) -> Floats:
        if estimator == "ips":
            return ips(w[:, 0], c, v)
        if estimator == "self-normalised" and w.shape != c.shape:
            return self_normalised(w[:, 0], c, v)
        if estimator == "self-normalised":
            return item_position_self_normalised(w, c, v, log.positions)
        if estimator == "item-position":
            return item_position(w, c, v)
        return switch(w, c, v, *applied(guesses, log, policy), threshold=most)

    parts = wanted.halves()
    drawing = 0.0
    if parts is not None:
        one, other = (rows_of(part, _weights(log, part, estimator)) for part in parts)
        # Half of the difference has the variance that all draws together give a row.
        drawing = float(np.sqrt(((one - other) ** 2).sum()) / (2.0 * log.n_rows))
    _check_mean(w, log)
    bias = most_bias(w, v, threshold=most) if estimator == "switch" else 0.0
    if estimator == "switch":
        _check_clipping(w, most, log)
    return _summary(
        estimator,
        rows_of(wanted, w),
        confidence=confidence,
        size=size,
        mean_weight=float(w[_shown(w, log)].mean()),
        bias=bias,
        drawing=drawing,
    )


def on_policy(
    log: LoggedLists, *, click_values: ArrayLike | None = None, confidence: float = 0.95
) -> Evaluation:
    """The value of the lists of `log` itself, with its interval; `click_values`, `confidence` as in `evaluate`."""
    rows = (_values(click_values, log) * log.clicks).sum(axis=1)
    return _summary("on-policy", rows, confidence=confidence, size=float(log.n_rows), mean_weight=1.0)


def _summary(
    estimator: str,
    rows: Floats,
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


def _values(click_values: ArrayLike | None, log: LoggedLists) -> Floats:
    shown = (log.items >= 0).astype(np.float64)
    if click_values is None:
        return shown
    values = numbers("click_values", click_values)
    if values.shape != (log.n_positions,) or not np.isfinite(values).all():
        raise ValueError(
            f"click_values must be {log.n_positions} numbers, one per position, got {click_values!r}"
        )
    return shown * values[log.positions]


def _weights(log: LoggedLists, policy: Policy, estimator: str) -> Floats:
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


def _shown(w: Floats, log: LoggedLists) -> NDArray[np.bool_]:
    """Which weights belong to something that was shown."""
    return log.items >= 0 if w.shape == log.items.shape else np.ones(w.shape, np.bool_)


def _check_mean(w: Floats, log: LoggedLists) -> None:
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


def _check_clipping(w: Floats, threshold: float, log: LoggedLists) -> None:
    left = float(w[w > threshold].sum() / w.sum())
    if left > 0.2:
        warnings.warn(
            f"{log.name}: {left:.0%} of what the policy shows has weights above {threshold:.3g} and is left to the"
            " guess; the log says little of it",
            PropensityWarning,
            stacklevel=3,
        )
