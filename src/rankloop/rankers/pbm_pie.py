"""PBM-PIE: parsimonious exploration at the last position (Lagrée, Vernade and Cappé 2016).

Where examinations are estimated, two neighbours of the list whose order the clicks do not prove change places in
some of these rounds: otherwise a wrong order would confirm itself. Arrays are position-major: S[j, k] are the
clicks on item k at position j, N[j, k] how often it stood there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rankloop.arguments import number, shares, whole
from rankloop.base import Array, Floats, Ints
from rankloop.compiled import RankerKernels
from rankloop.kernels import click_counts, sorting
from rankloop.kernels.click_counts import clicks_and_looks, count, draw_unseen, first_unseen, fit
from rankloop.kernels.elementary import log
from rankloop.kernels.jit import apart, hot
from rankloop.kernels.random import below, uniform
from rankloop.kernels.sorting import by_falling_score_from
from rankloop.ranges import Between, Range
from rankloop.rankers.click_ranker import ClickRanker, check_counts

# Whether clicks tell which of two items is the better one, where nobody knows how positions are examined.
#
# A list that is always shown in one order fits a good item at a good position as well as a better item at a worse
# one. The likelihood knows: the best fit under which both items are equally attractive is then hardly less likely
# than the best fit of all.


_ORDER_SWEEPS = 10
_LEAST = 1e-300


class OrderScratch(NamedTuple):
    """Scratch of the kernels; never state."""

    S: Floats  # clicks and displays, those of two items added up
    N: Floats
    theta: Floats
    kappa: Floats


def order_scratch(n: int, m: int) -> OrderScratch:
    """Scratch for `n` items on `m` positions."""
    return OrderScratch(np.empty((m, n)), np.empty((m, n)), np.empty(n), np.empty(m))


def order_scratch_bytes(n: int, m: int) -> int:
    """Bytes of the scratch for `n` items on `m` positions."""
    return 8 * (2 * m * n + n + m)


@apart
def order_gap(S: Any, N: Any, theta: Any, kappa: Any, a: int, b: int, scratch: Any) -> Any:
    """By how much the log likelihood of `theta` and `kappa` exceeds that of the best fit where a and b are alike."""
    m, n = S.shape
    for i in range(n):
        scratch.theta[i] = theta[i]
        for j in range(m):
            scratch.S[j, i] = S[j, i]
            scratch.N[j, i] = N[j, i]
    for j in range(m):
        scratch.kappa[j] = kappa[j]
        scratch.S[j, a] += S[j, b]
        scratch.N[j, a] += N[j, b]
        scratch.S[j, b] = 0.0
        scratch.N[j, b] = 0.0
    fit(scratch.S, scratch.N, scratch.theta, scratch.kappa, _ORDER_SWEEPS)
    return log_likelihood(S, N, theta, kappa) - log_likelihood(
        scratch.S, scratch.N, scratch.theta, scratch.kappa
    )


@hot
def log_likelihood(S: Any, N: Any, theta: Any, kappa: Any) -> Any:
    """The logarithm of the chance of these clicks, up to a constant."""
    total = 0.0
    for j in range(len(kappa)):
        for i in range(len(theta)):
            p, missed = theta[i] * kappa[j], N[j, i] - S[j, i]
            if S[j, i] > 0.0:
                total += S[j, i] * log(max(p, _LEAST))
            if missed > 0.0:
                total += missed * log(max(1.0 - p, _LEAST))
    return total


_OFTEN = 100  # examinations are estimated after every round up to this one
_SWEEPS = 10
_SELDOM = 10  # every how many estimates the order of the leaders is questioned, after that


class PBMPIEParams(NamedTuple):
    """How sure it must be, and how examinations are known."""

    delta: float  # (1 + epsilon) log T
    refresh: int  # every how many rounds examinations are estimated; 0 where they are known


class PBMPIEState(NamedTuple):
    """Clicks and displays, and the examinations in use."""

    t: Ints  # rounds with feedback
    S: Floats  # by position and item: clicks
    N: Floats  # by position and item: displays
    kappa: Floats  # by position: examinations, given or estimated
    theta: Floats  # by item: attractions, where examinations are estimated
    unproved: Ints  # by place, there as well: whether the next item might be the better one


class PBMPIEScratch(NamedTuple):
    """Scratch for one round, all of it by item; what is in it means nothing between calls."""

    theta: Floats  # estimated attractions
    turned: Floats  # the same, from item t on
    order: Ints  # items by falling estimate
    sorting: Ints
    others: Ints  # items that might belong to the list
    pair: OrderScratch


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """Alg. 2, lines 2-8. Exploring: a list of the beginning, or one that is not the leaders'."""
    m, n = state.S.shape
    first, n_unseen = draw_unseen(state.N, key)
    if first >= 0:
        for j in range(m):
            items[j] = (first + j) % n
            propensities[j] = 1.0 / n_unseen
        return True
    order, others = scratch.order, scratch.others
    q = leaders(state, scratch)
    n_others = 0
    for place in range(m, n):
        if reaches(state.S, state.N, state.kappa, order[place], q, params.delta):
            others[n_others] = order[place]
            n_others += 1
    n_swaps = 0
    for j in range(len(state.unproved)):
        n_swaps += state.unproved[j]
    n_ways = n_others + n_swaps
    share = 0.5 / n_ways if n_ways > 0 else 0.0
    for j in range(m):
        items[j] = order[j]
        propensities[j] = 1.0
    propensities[m - 1] -= n_others * share
    for j in range(len(state.unproved)):
        propensities[j] -= state.unproved[j] * share
        propensities[j + 1] -= state.unproved[j] * share
    if n_ways == 0 or uniform(key, 0) < 0.5:
        return False
    drawn = below(key, 1, n_ways)
    if drawn < n_others:
        items[m - 1] = others[drawn]
        propensities[m - 1] = share
        return True
    drawn -= n_others
    for j in range(len(state.unproved)):
        drawn -= state.unproved[j]
        if drawn < 0:
            items[j] = order[j + 1]
            items[j + 1] = order[j]
            propensities[j] = share
            propensities[j + 1] = share
            break
    return True


@hot
def leaders(state: Any, scratch: Any) -> Any:
    """Write all items by falling estimate to the scratch's order; returns that of the last to be shown, at most 1.

    Equal ones stand in the order in which they come from item t on, so that no item is favoured by its number.
    """
    theta, order = scratch.theta, scratch.order
    m, n = state.S.shape
    for i in range(n):
        clicks, looks = clicks_and_looks(state.S, state.N, state.kappa, i, 0.0, 0.0)
        theta[i] = clicks / looks
    by_falling_score_from(state.t[0] % n, theta, n, scratch.turned, order, scratch.sorting)
    return min(theta[order[m - 1]], 1.0)


@hot
def reaches(S: Any, N: Any, kappa: Any, k: int, q: float, delta: float) -> bool:
    """Whether U_k(delta) >= q: q lies below the likeliest attraction of item k, or is not too unlikely."""
    if q <= 0.0:
        return True
    slope = 0.0
    for j in range(len(kappa)):
        rest = 1.0 - kappa[j] * q
        if rest > 0.0:
            slope += (N[j, k] * kappa[j] * q - S[j, k]) / rest
        elif N[j, k] > S[j, k]:
            return False
    return slope <= 0.0 or distance(S, N, kappa, k, q) <= delta


@hot
def distance(S: Any, N: Any, kappa: Any, k: int, q: float) -> float:
    """sum_j N d(S / N, kappa q), d the relative entropy of two coins."""
    total = 0.0
    for j in range(len(kappa)):
        missed, p = N[j, k] - S[j, k], kappa[j] * q
        if S[j, k] > 0.0:
            total += S[j, k] * log(S[j, k] / (N[j, k] * p))
        if missed > 0.0:
            total += missed * log(missed / (N[j, k] * (1.0 - p)))
    return total


@hot
def learn(
    params: Any, state: Any, context: Any, scratch: Any, items: Any, propensities: Any, memo: Any, clicks: Any
) -> None:
    """Alg. 2, line 9; and where examinations are not known, their estimate from time to time."""
    count(state.S, state.N, items, clicks)
    state.t[0] += 1
    t = state.t[0]
    if params.refresh > 0 and (t < _OFTEN or t % params.refresh == 0) and first_unseen(state.N) < 0:
        fit(state.S, state.N, state.theta, state.kappa, _SWEEPS)
        if t % (params.refresh if t < _OFTEN else _SELDOM * params.refresh) == 0:
            _question_order(params, state, scratch)


@hot
def _question_order(params: Any, state: Any, scratch: Any) -> None:
    # Which neighbours among the leaders might be equally good, or the other way round.
    leaders(state, scratch)
    for j in range(len(state.unproved)):
        a, b = scratch.order[j], scratch.order[j + 1]
        gap = order_gap(state.S, state.N, state.theta, state.kappa, a, b, scratch.pair)
        state.unproved[j] = not gap > params.delta


class PBMPIE(ClickRanker):
    """Shows the items that look best, and explores others only at the last position, half of the time.

    Which others: those whose upper confidence bound reaches the estimate of the item they would replace. Nearly the
    least exploration that is possible where examination probabilities are known. Where they are not, they are
    estimated together with the attractions, and neighbours change places while the clicks leave their order open.

    Parameters
    ----------
    n_items : int
        How many items there are, K.
    n_positions : int, optional
        How many of them are shown, L; None shows all.
    horizon : int
        How many rounds will be played, T.
    examination : array_like, optional
        For each position, how likely it is looked at, none rising; None estimates them.
    epsilon : float, optional
        Bounds are of level (1 + epsilon) log T.
    refresh : int, optional
        Every how many rounds examinations are estimated anew, after the first 100.
    check_order : bool, optional
        Whether, where examinations are estimated, the order of the leaders is questioned; False is as in the papers.

    Notation
    --------
    kappa: state.kappa, S and N: state.S, state.N, U_k(t, delta): upper_bounds(), theta_hat: estimates().

    Departures
    ----------
    Leaders with equal estimates stand in turns; the lists of the beginning come in random order. t counts the rounds
    with feedback. Where examinations are estimated, which the paper does not treat, neighbours in the list change
    places in some of the exploring rounds, as long as the likelihood does not tell which is the better one (erratum
    C16).

    References
    ----------
    P. Lagrée, C. Vernade and O. Cappé, Multiple-play bandits in the position-based model, NeurIPS 2016.
    J. Komiyama, J. Honda and A. Takeda, Position-based multiple-play bandit problem with unknown position bias,
    NeurIPS 2017.

    Examples
    --------
    >>> ranker = PBMPIE(n_items=4, n_positions=2, horizon=1000, examination=[1.0, 0.5])
    >>> rng = np.random.default_rng(1)
    >>> for _ in range(4):
    ...     shown = ranker.rank(rng=rng)
    ...     ranker.learn(shown, shown.items == 2)
    >>> ranker.estimates()  # it was clicked at both positions: 2 clicks by 1.5 looks
    array([0.        , 0.        , 1.33333333, 0.        ])
    """

    summary = "Observes clicks, and explores one item at the last position."
    unservable = "it needs to know beforehand how many rounds there will be"
    no_candidates = "it explores at the last position of a list of all its positions"
    kernels = RankerKernels(rank, learn)
    algorithm_version = 3

    def __init__(
        self,
        *,
        n_items: int,
        n_positions: int | None = None,
        horizon: int,
        examination: ArrayLike | None = None,
        epsilon: float = 0.01,
        refresh: int = 20,
        check_order: bool = True,
    ) -> None:
        n, m = self.read_size(n_items, n_positions)
        self.horizon = whole("horizon", horizon, at_least=1)
        self.epsilon = number("epsilon", epsilon, above=0, below=1e6)
        refresh = whole("refresh", refresh, at_least=1)
        kappa = np.ones(m) if examination is None else falling_examination(examination, m)
        self.params = PBMPIEParams(
            (1 + self.epsilon) * log(self.horizon), refresh if examination is None else 0
        )
        self.state = PBMPIEState(
            t=np.zeros(1, np.int64),
            S=np.zeros((m, n)),
            N=np.zeros((m, n)),
            kappa=kappa,
            theta=np.zeros(n),
            unproved=np.zeros(m - 1 if examination is None and check_order else 0, np.int64),
        )

    def tunable(self) -> Mapping[str, Range]:
        return {"epsilon": Between(0.001, 10.0)}

    def scratch(self, n: int) -> PBMPIEScratch:
        k = self.n_items
        return PBMPIEScratch(
            theta=np.empty(k),
            turned=np.empty(k),
            order=np.empty(k, np.int64),
            sorting=sorting.scratch(k),
            others=np.empty(k, np.int64),
            pair=order_scratch(k, self.n_positions),
        )

    def blank_propensities(self, n: int) -> Floats:
        return np.empty(n)

    def check_state(self, saved: Mapping[str, Array]) -> None:
        check_counts(saved["S"], saved["N"])
        kappa = np.asarray(saved["kappa"])
        if kappa[0] <= 0 or kappa.min() < 0 or kappa.max() > 1:
            raise ValueError(f"saved state 'kappa' must be probabilities, got {kappa}")
        if not np.isin(saved["unproved"], (0, 1)).all():
            raise ValueError(f"saved state 'unproved' must be 0 or 1, got {saved['unproved']}")

    def estimates(self) -> Floats:
        """The estimated attraction of each item, clicks by examinations; zero for items not shown yet."""
        looks = self.state.kappa @ self.state.N
        found: Floats = self.state.S.sum(axis=0) / np.where(looks > 0, looks, 1)
        return found

    def upper_bounds(self) -> Floats:
        """U_k(t, delta) of each item: the largest attraction that the feedback does not contradict."""
        bounds = np.ones(self.n_items)
        for k in range(self.n_items):
            low, high = 0.0, 1.0
            arguments = (self.state.S, self.state.N, self.state.kappa, k)
            if reaches(*arguments, 1.0, self.params.delta):
                continue
            while high - low > 1e-13:
                middle = 0.5 * (low + high)
                if reaches(*arguments, middle, self.params.delta):
                    low = middle
                else:
                    high = middle
            bounds[k] = low
        return bounds

    def candidates(self) -> Ints:
        """B(t): items outside the leaders that might be better than the last leader; empty in the beginning."""
        if click_counts.first_unseen(self.state.N) >= 0:
            return np.empty(0, np.int64)
        scratch = self.scratch(self.n_positions)
        q = leaders(self.state, scratch)
        others = scratch.order[self.n_positions :]
        found: Ints = others[self.upper_bounds()[others] >= q]
        return found

    def current(self, context: Any = None) -> Ints:
        """The items that look best, in order."""
        self.read_context(context)
        if click_counts.first_unseen(self.state.N) >= 0:
            return np.argsort(-self.estimates(), kind="stable")[: self.n_positions].astype(np.int64)
        scratch = self.scratch(self.n_positions)
        leaders(self.state, scratch)
        order: Ints = scratch.order[: self.n_positions].copy()
        return order

    @classmethod
    def bytes_of(cls, n: int, m: int) -> int:
        return 16 * m * n + 40 * n + 16 * m + sorting.scratch_bytes(n) + order_scratch_bytes(n, m)


def falling_examination(examination: ArrayLike, n_positions: int) -> Floats:
    """One examination probability per position, positive and not increasing; ValueError otherwise."""
    kappa = shares("examination", examination, length=n_positions, positive=True)
    if (np.diff(kappa) > 0).any():
        raise ValueError(f"examination must not rise from position to position, got {examination!r}")
    return kappa
