"""PMED: show what an optimisation requires to rule out every other model (Komiyama, Honda and Takeda 2017).

The optimisation gives a plan: lists and how often each is required, in units of log t. In between, lists wait in a
queue, and each user is shown one of them. When all have feedback the queue is filled again: with lists that were
shown too seldom to be informative, with lists that the plan requires more often than they were shown, and with the
best. Arrays are position-major, as everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from rankloop.arguments import number, one_of, share, whole
from rankloop.base import Array, Floats, Ints, Ranking
from rankloop.compiled import RankerKernels
from rankloop.extras import require
from rankloop.kernels import sorting
from rankloop.kernels.click_counts import count, fit
from rankloop.kernels.elementary import log
from rankloop.kernels.jit import hot, kernel
from rankloop.kernels.random import below
from rankloop.kernels.sorting import by_falling_score_from
from rankloop.ranges import Between, Range
from rankloop.rankers.click_ranker import ClickRanker, check_counts

_OFTEN = 100  # the model is fitted after every round up to this one
_SWEEPS = 10
_HIGHEST = 1.0 - 1e-9


class PMEDParams(NamedTuple):
    """How often lists are tried out, and how often the model is fitted."""

    alpha: float  # displays that every list must have had, in units of sqrt(log t)
    refit: int  # every how many rounds the model is fitted


class PMEDState(NamedTuple):
    """Clicks and displays, the fitted model, the queue, the plan, and where its optimisation stands."""

    t: Ints  # rounds with feedback
    S: Floats  # by position and item: clicks
    N: Floats  # by position and item: displays
    theta: Floats  # by item: fitted attractions
    kappa: Floats  # by position: fitted examinations
    best: Ints  # the best list when the queue was filled
    queue: Ints  # lists to be shown, L_C; the first n_queue of them
    n_queue: Ints
    plan: Ints  # lists; the first n_plan of them
    required: Floats  # how often each must have been shown, in units of log t
    n_plan: Ints
    due: Ints  # the round after which the plan is renewed
    # Of each alternative: log attractions that were hardest to tell apart last time
    starts: Floats
    # Plans made, linear programs solved, plans that kept to their constraint only by scaling
    solves: Ints


@kernel
def entropy(p: float, q: float) -> float:
    """The relative entropy d(p, q) of two coins."""
    total = 0.0
    if p > 0.0:
        total += p * log(p / q)
    if p < 1.0:
        total += (1.0 - p) * log((1.0 - p) / (1.0 - q))
    return total


@hot
def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """Alg. 1, line 16: a list of the queue, in random order. Exploring: not the best list."""
    n_queue = state.n_queue[0]
    drawn = below(key, 0, n_queue)
    explored = False
    for j in range(len(items)):
        items[j] = state.queue[drawn, j]
        explored |= items[j] != state.best[j]
    for j in range(len(items)):
        alike = 0
        for v in range(n_queue):
            alike += state.queue[v, j] == items[j]
        propensities[j] = alike / n_queue
    return explored


@hot
def learn(
    params: Any, state: Any, context: Any, scratch: Any, items: Any, propensities: Any, memo: Any, clicks: Any
) -> None:
    """Count, take the list off the queue, and fill the queue again when it is empty."""
    m = len(items)
    count(state.S, state.N, items, clicks)
    state.t[0] += 1
    t = state.t[0]
    if t < _OFTEN or t % params.refit == 0:
        fit(state.S, state.N, state.theta, state.kappa, _SWEEPS)
    last = state.n_queue[0] - 1
    for v in range(last + 1):
        if _same(state.queue, v, items):
            for j in range(m):
                state.queue[v, j] = state.queue[last, j]
            state.n_queue[0] = last
            break
    if state.n_queue[0] == 0:
        fill(params, state, scratch)


@hot
def _same(lists: Any, v: int, items: Any) -> bool:
    same = True
    for j in range(len(items)):
        same &= lists[v, j] == items[j]
    return same


@hot
def fill(params: Any, state: Any, scratch: Any) -> None:
    """Alg. 1, lines 4-6 and 13-15: circular lists that lack displays, what the plan requires, and the best list."""
    m, n = state.S.shape
    left, turned, order, sort_scratch = scratch
    log_t = log(max(float(state.t[0]), 2.0))
    least, count = params.alpha * np.sqrt(log_t), 0
    for first in range(n):
        lacking = False
        for j in range(m):
            lacking |= state.N[j, (first + j) % n] < least
        if lacking:
            for j in range(m):
                state.queue[count, j] = (first + j) % n
            count += 1
    for j in range(m):
        for i in range(n):
            left[j, i] = state.N[j, i]
    for v in range(state.n_plan[0]):  # Alg. 2
        wanted = state.required[v] * log_t
        had = wanted
        for j in range(m):
            had = min(had, left[j, state.plan[v, j]])
        if had < wanted and _adds(state.queue, count, state.plan, v, m):
            for j in range(m):
                state.queue[count, j] = state.plan[v, j]
            count += 1
        for j in range(m):
            left[j, state.plan[v, j]] -= had
    by_estimate(state, turned, order, sort_scratch)
    for j in range(m):
        state.best[j] = order[j]
    found = False
    for v in range(count):
        found |= _same(state.queue, v, state.best)
    if not found:
        for j in range(m):
            state.queue[count, j] = state.best[j]
        count += 1
    state.n_queue[0] = count


@hot
def _adds(queue: Any, count: int, plan: Any, v: int, m: int) -> bool:
    # Whether some item of plan[v] is, at its position, in no list of the queue.
    for j in range(m):
        found = False
        for waiting in range(count):
            found |= queue[waiting, j] == plan[v, j]
        if not found:
            return True
    return False


@hot
def by_estimate(state: Any, turned: Any, order: Any, scratch: Any) -> None:
    """Items by falling attraction; equal ones as they come from item t on, so that none is favoured by its number."""
    n = len(state.theta)
    by_falling_score_from(state.t[0] % n, state.theta, n, turned, order, scratch)


@kernel
def row(mu: Any, theta: Any, kappa: Any, order: Any, out: Any) -> None:
    """The coefficients of q in the distance of an alternative: d(mu, theta' kappa') off the best list, zero on it."""
    m, n = mu.shape
    for j in range(m):
        for i in range(n):
            out[j, i] = (
                0.0 if order[j] == i else entropy(mu[j, i], max(min(theta[i] * kappa[j], _HIGHEST), 1e-12))
            )


class PMED(ClickRanker):
    """Fits the position-based model, and shows lists until no model with another best list is likely enough.

    How often which item must stand where is the solution of a linear program with infinitely many constraints, one for
    each alternative model. It is solved with SciPy between rounds, when the number of rounds has grown by a
    factor. In between lists are taken from a queue. Examination probabilities need not be known, but must fall from
    position to position.

    Parameters
    ----------
    n_items : int
        How many items there are, K.
    n_positions : int, optional
        How many of them are shown, L; None shows all.
    alpha : float, optional
        Every item must have stood at every position alpha sqrt(log t) times.
    growth : float, optional
        The plan is made anew when the number of rounds has grown by this factor, ...
    every : int, optional
        ... but not before so many more rounds. `growth=1, every=10` comes close to the paper.
    tolerance : float, optional
        The cost of a plan may be so much above the least, relatively.
    refit : int, optional
        Every how many rounds the model is fitted, after the first 100.
    rates : str, optional
        The click rates that alternatives are held against: "seen", the paper's, or "fitted", those of the
        model.

    Notation
    --------
    theta_hat, kappa_hat: state.theta, state.kappa; L_C: state.queue; q: state.plan, each list state.required times.

    Departures
    ----------
    The plan is not made in every round. Lists of the queue are shown in random order. Items closer than 0.001
    count as that far apart in the optimisation, which has no solution for equal ones. This is PMED, not PMED-Hinge.

    References
    ----------
    J. Komiyama, J. Honda and A. Takeda, Position-based multiple-play bandit problem with unknown position bias,
    NeurIPS 2017.

    Examples
    --------
    >>> ranker = PMED(n_items=4, n_positions=2)
    >>> rng = np.random.default_rng(1)
    >>> for _ in range(4):  # each item once at every position
    ...     shown = ranker.rank(rng=rng)
    ...     ranker.learn(shown, shown.items < 2)
    >>> ranker.counters()["plans"]
    1
    """

    summary = "Observes clicks, and plans how often each list must be shown to rule out the others."
    no_candidates = "its plan is made of lists of all items"
    kernels = RankerKernels(rank, learn)

    algorithm_version = 3
    portable = False  # its plans come from HiGHS, whose last digits depend on the machine

    def __init__(
        self,
        *,
        n_items: int,
        n_positions: int | None = None,
        alpha: float = 1.0,
        growth: float = 1.1,
        every: int = 1,
        tolerance: float = 0.01,
        refit: int = 20,
        rates: str = "seen",
    ) -> None:
        require("scipy", extra="scipy", for_="PMED")
        n, m = self.read_size(n_items, n_positions)
        self.alpha = number("alpha", alpha, at_least=0, below=1e6)
        self.growth = number("growth", growth, at_least=1, below=1e6)
        self.every = whole("every", every, at_least=1)
        self.tolerance = share("tolerance", tolerance)
        self.rates = one_of("rates", rates, ("seen", "fitted"))
        self.params = PMEDParams(self.alpha, whole("refit", refit, at_least=1))
        circular = (np.arange(n)[:, None] + np.arange(m)[None, :]) % n
        self.state = PMEDState(
            t=np.zeros(1, np.int64),
            S=np.zeros((m, n)),
            N=np.zeros((m, n)),
            theta=np.full(n, 0.5),
            kappa=np.ones(m),
            best=np.arange(m),
            queue=np.vstack([circular, np.zeros((n * n + 1, m), np.int64)]),
            n_queue=np.array([n]),
            plan=np.zeros((n * n, m), np.int64),
            required=np.zeros(n * n),
            n_plan=np.zeros(1, np.int64),
            due=np.array([n]),
            starts=np.zeros((n, m)),
            solves=np.zeros(3, np.int64),
        )

    def until_pause(self) -> int | None:
        return max(int(self.state.due[0] - self.state.t[0]), 0) if self.n_items > 1 else None

    def pause(self) -> None:
        """Renew the plan: the optimisation of Alg. 1, line 12, and its Birkhoff decomposition."""
        from rankloop.rankers import pmed_plan  # SciPy takes a while to import, and most uses need no plan
        from rankloop.rankers.ftrl_pbm import birkhoff

        state = self.state
        order = np.empty(self.n_items, np.int64)
        scratch = self.scratch(self.n_positions)
        by_estimate(state, scratch[1], order, scratch[3])
        model = pmed_plan.read_model(state.theta, state.kappa, state.S, state.N, order)
        if self.rates == "fitted":
            model = model.smoothed()
        starts = np.where(state.starts == 0.0, np.nan, state.starts)
        plan = pmed_plan.make_plan(model, starts, tolerance=self.tolerance)
        # Rounded, so that two machines whose exponentials differ in the last digit give the same run.
        state.starts[...] = plan.starts.round(4)
        state.starts[0] = 0.0
        total = float(plan.q.sum(axis=1).mean())
        lists, weights = birkhoff(plan.q / total)
        state.n_plan[0] = len(lists)
        state.plan[: len(lists)] = lists
        state.required[: len(lists)] = _rounded_up(weights * total)
        state.solves[...] += np.array([1, plan.programs, plan.share < 1 - self.tolerance])
        t = int(state.t[0])
        state.due[0] = max(t + self.every, math.ceil(self.growth * t))

    def tunable(self) -> Mapping[str, Range]:
        return {"alpha": Between(0.1, 10.0), "growth": Between(1.01, 2.0)}

    def scratch(self, n: int) -> tuple[Any, ...]:
        k = self.n_items
        return np.empty((self.n_positions, k)), np.empty(k), np.empty(k, np.int64), sorting.scratch(k)

    def blank_propensities(self, n: int) -> Floats:
        return np.empty(n)

    def check_state(self, saved: Mapping[str, Array]) -> None:
        check_counts(saved["S"], saved["N"])
        n_queue, n_plan = int(saved["n_queue"][0]), int(saved["n_plan"][0])
        if not 0 < n_queue <= len(saved["queue"]) or not 0 <= n_plan <= len(saved["plan"]):
            raise ValueError(
                f"saved state 'n_queue' and 'n_plan' must count lists, got {n_queue} and {n_plan}"
            )
        for name in ("queue", "plan", "best"):
            if saved[name].min(initial=0) < 0 or saved[name].max(initial=0) >= self.n_items:
                raise ValueError(f"saved state {name!r} must name items below {self.n_items}")
        if self.n_items > 1 and saved["due"][0] <= saved["t"][0]:
            raise ValueError(f"saved state 'due' must be after round {saved['t'][0]}, got {saved['due'][0]}")

    def counters(self) -> dict[str, int]:
        plans, programs, inexact = self.state.solves.tolist()
        return {"plans": plans, "linear_programs": programs, "plans_inexact": inexact}

    def carry(self, old: Any, origin: Ints, positions: Ints | None = None) -> None:
        """A new item was never shown: the circular lists are shown once again, then a new plan is made."""
        there, state = self.carry_counts(old, origin, positions), self.state
        state.theta[:] = np.where(origin >= 0, old.state.theta[np.maximum(origin, 0)], 0.5)
        state.kappa[:] = old.state.kappa[there]
        state.due[0] = int(old.state.t[0]) + self.n_items
        order, scratch = np.empty(self.n_items, np.int64), self.scratch(self.n_positions)
        by_estimate(state, scratch[1], order, scratch[3])
        state.best[:] = order[: self.n_positions]

    def learn_logged(
        self, items: Ints, feedback: Any, *, propensities: Floats | None = None, features: Any = None
    ) -> None:
        """Learns: its counts are of whatever was shown."""
        self.learn(Ranking(items, np.ones(len(items)), ()), feedback)

    def current(self, context: Any = None) -> Ints:
        """The best list of the fitted model."""
        self.read_context(context)
        order, scratch = np.empty(self.n_items, np.int64), self.scratch(self.n_positions)
        by_estimate(self.state, scratch[1], order, scratch[3])
        return order[: self.n_positions]

    @classmethod
    def bytes_of(cls, n: int, m: int) -> int:
        lists = 2 * n * n + n + 1
        return 8 * (lists * m + n * n + 4 * n * m + 3 * n + 2 * m) + sorting.scratch_bytes(n)


def _rounded_up(values: Floats) -> Floats:
    """To three digits."""
    unit = 10.0 ** (np.floor(np.log10(np.maximum(values, 1e-300))) - 2)
    return np.ceil(values / unit - 1e-6) * unit
