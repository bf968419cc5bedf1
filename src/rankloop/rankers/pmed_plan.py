"""The optimisation in PMED: how often each item must stand at each position so that no other best list stays possible.

A linear program in the displays q with one constraint for every alternative model, of which there are infinitely
many: constraints are added where they are violated most, until none is (cutting planes). Which one that is is a convex
problem for each item. What is still missing in the end is made up for
by scaling q, which is exact because both sides are linear in it.

Click rates are products of an attraction and an examination, so their logarithms are sums, and the relative entropy
d(mu, e^z) is convex in z. Alternatives share the click rates of the best list, which makes the log attractions x of
its items the only unknowns beside those of other items; that examinations do not rise, and that the rival is as
good as the item before it, is linear in x. So Newton's method with a falling barrier ends within `GAP` of the least
distance.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rankloop.base import Floats, Ints
from rankloop.kernels.click_counts import item_root
from rankloop.kernels.elementary import exp, log
from rankloop.kernels.jit import hot, kernel
from rankloop.rankers.pmed import entropy, row

GAP = 1e-7  # at most this far above the least distance
LOWEST = -14.0  # of log attractions
_HIGHEST_ATTRACTION = 1.0 - 1e-9
_WEAKER = 0.1
_STEPS = 60  # of Newton at one barrier; a handful is enough
_HALVINGS = 40


@kernel
def distance(
    x: Any, rival: int, q: Any, mu: Any, log_c: Any, order: Any, theta: Any, kappa: Any, slope: Any, bend: Any
) -> float:
    """How well displays q tell an alternative from what was seen: sum q d(mu, theta' kappa') off the best list.

    x are the log attractions of the m best items, in `order`. The examinations follow, because theta' kappa' on the
    best list is as it was: kappa'_j = c_j / theta'_(j). The item at place `rival` of the order, where that is beyond m,
    is as good as the m-th; every other item beyond m is whatever is hardest to tell. Writes the alternative to
    `theta` and `kappa`, and the derivatives by x to `slope` (m) and `bend` (m x m).
    """
    m, n = q.shape
    for j in range(m):
        theta[order[j]] = exp(x[j])
        kappa[j] = exp(log_c[j] - x[j])
        slope[j] = 0.0
        for k in range(m):
            bend[j, k] = 0.0
    seen = q * mu
    curves = np.empty(m)
    total = 0.0
    for place in range(n):
        i = order[place]
        if place >= m:
            theta[i] = theta[order[m - 1]] if place == rival else item_root(seen, q, kappa, i, 0.5)
        twin = place if place < m else m - 1  # whose x the item's attraction follows, where it does
        follows = place < m or place == rival
        sum_curves = 0.0
        for j in range(m):
            curves[j] = 0.0
            if place == j or q[j, i] == 0.0:
                continue
            p = min(theta[i] * kappa[j], _HIGHEST_ATTRACTION)
            total += q[j, i] * entropy(mu[j, i], p)
            rest = 1.0 / (1.0 - p)
            h = q[j, i] * (p - mu[j, i]) * rest
            curves[j] = q[j, i] * p * (1.0 - mu[j, i]) * rest * rest
            sum_curves += curves[j]
            slope[j] -= h  # through kappa'_j
            bend[j, j] += curves[j]
            if follows:
                slope[twin] += h
                bend[twin, twin] += curves[j]
                bend[j, twin] -= curves[j]
                bend[twin, j] -= curves[j]
        if not follows and sum_curves > 0.0 and theta[i] < _HIGHEST_ATTRACTION:  # its attraction moves along
            for j in range(m):
                for k in range(m):
                    bend[j, k] -= curves[j] * curves[k] / sum_curves
    return total


@kernel
def nearest_alternative(
    rival: int, q: Any, mu: Any, log_c: Any, order: Any, x: Any, theta: Any, kappa: Any
) -> float:
    """The least distance of an alternative with this rival; writes it to `x`, `theta` and `kappa`.

    x[0] is given and stays. The answer is at most `GAP` above the truth.
    """
    m = len(x)
    unknown = np.full(m, -1)  # the number of each x among the unknowns; -1 where it is given
    n_unknown = 0
    for j in range(1, m):
        if j == rival:
            unknown[j] = unknown[j - 1]
        else:
            unknown[j] = n_unknown
            n_unknown += 1
    for j in range(1, m):
        if j == rival:
            x[j] = x[j - 1]
        else:
            x[j] = max(x[j - 1] + 0.5 * (log_c[j] - log_c[j - 1]), 0.99 * LOWEST)
    slope, bend, tried = np.empty(m), np.empty((m, m)), x.copy()
    value = distance(x, rival, q, mu, log_c, order, theta, kappa, slope, bend)
    if n_unknown == 0:
        return value
    g, H, step = np.empty(n_unknown), np.empty((n_unknown, n_unknown)), np.empty(n_unknown)
    n_bounds = 3 * n_unknown
    barrier = max(value, GAP)
    while True:
        barrier = max(barrier * _WEAKER, 0.5 * GAP / n_bounds)
        for _ in range(_STEPS):
            _reduce(x, rival, log_c, unknown, slope, bend, barrier, g, H)
            if not _solve(H, g, step):
                break
            decrement = 0.0
            for a in range(n_unknown):
                decrement += g[a] * step[a]
            if decrement <= 0.02 * barrier:
                break
            before = value + barrier * _wall(x, rival, log_c)
            size = 1.0
            moved = False
            for _ in range(_HALVINGS):
                for j in range(1, m):
                    tried[j] = x[j] - size * step[unknown[j]] if unknown[j] >= 0 else x[j]
                wall = _wall(tried, rival, log_c)
                if wall < np.inf:
                    after = distance(tried, rival, q, mu, log_c, order, theta, kappa, slope, bend)
                    if after + barrier * wall <= before - 0.1 * size * decrement:
                        value, moved = after, True
                        break
                size *= 0.5
            if not moved:  # as good as numbers allow
                value = distance(x, rival, q, mu, log_c, order, theta, kappa, slope, bend)
                break
            x[:] = tried
        if barrier * n_bounds <= GAP:
            return value


@hot
def _slack(x: Any, log_c: Any, j: int) -> float:
    slack: float = (x[j] - x[j - 1]) - (log_c[j] - log_c[j - 1])
    return slack


@hot
def _wall(x: Any, rival: int, log_c: Any) -> float:
    """Minus the logarithms of all distances to a bound; infinite outside."""
    total = 0.0
    for j in range(1, len(x)):
        low, high = x[j] - LOWEST, -x[j]
        if low <= 0.0 or high <= 0.0:
            return np.inf
        total -= log(low) + log(high)
        if j != rival:
            slack = _slack(x, log_c, j)
            if slack <= 0.0:
                return np.inf
            total -= log(slack)
    return total


@hot
def _reduce(
    x: Any, rival: int, log_c: Any, unknown: Any, slope: Any, bend: Any, barrier: float, g: Any, H: Any
) -> None:
    """Derivatives by the unknowns, of the distance and the barrier together."""
    m = len(x)
    g[:] = 0.0
    H[:] = 0.0
    for j in range(1, m):
        a = unknown[j]
        if a < 0:
            continue
        low, high = 1.0 / (x[j] - LOWEST), -1.0 / x[j]
        g[a] += slope[j] - barrier * (low - high)
        H[a, a] += barrier * (low * low + high * high)
        for k in range(1, m):
            if unknown[k] >= 0:
                H[a, unknown[k]] += bend[j, k]
    for j in range(1, m):
        if j == rival:
            continue
        push = 1.0 / _slack(x, log_c, j)
        a, b = unknown[j], unknown[j - 1]
        g[a] -= barrier * push
        H[a, a] += barrier * push * push
        if b >= 0:
            g[b] += barrier * push
            H[b, b] += barrier * push * push
            H[a, b] -= barrier * push * push
            H[b, a] -= barrier * push * push


@hot
def _solve(H: Any, g: Any, step: Any) -> bool:
    """Write H^-1 g to `step`, by Cholesky in place; False where H is not positive."""
    d = len(g)
    for a in range(d):
        for b in range(a + 1):
            rest = H[a, b]
            for c in range(b):
                rest -= H[a, c] * H[b, c]
            if a == b:
                if not rest > 0.0:
                    return False
                H[a, a] = np.sqrt(rest)
            else:
                H[a, b] = rest / H[b, b]
    for a in range(d):
        rest = g[a]
        for c in range(a):
            rest -= H[a, c] * step[c]
        step[a] = rest / H[a, a]
    for a in range(d - 1, -1, -1):
        rest = step[a]
        for c in range(a + 1, d):
            rest -= H[c, a] * step[c]
        step[a] = rest / H[a, a]
    return True


LEAST_GAP = (
    1e-3  # items and examinations closer than this are taken to be this far apart: else nothing suffices
)
_LOWEST, _HIGHEST = 1e-6, 1.0 - 1e-6
_ROUNDS = 60
_NOTHING = 1e-6


class Plan(NamedTuple):
    """Displays q (positions x items, in units of log t), how they were found, and where to start next time."""

    q: Floats  # tells every alternative apart by at least 1
    share: float  # of its cost, that no displays can save; 0 where nothing tells an alternative apart
    programs: int
    starts: Floats


class Model(NamedTuple):
    """What the plan is made for: an order of the items, attractions, examinations and click rates."""

    order: Ints
    theta: Floats
    kappa: Floats
    mu: Floats

    @property
    def log_c(self) -> Floats:
        """Logarithms of the best list's click rates, which alternatives share."""
        return np.log(self.theta[self.order[: len(self.kappa)]] * self.kappa)

    def smoothed(self) -> Model:
        """The same with the click rates of the fitted model."""
        return self._replace(mu=np.outer(self.kappa, self.theta))


def read_model(theta: Floats, kappa: Floats, S: Floats, N: Floats, order: Ints) -> Model:
    """The fitted model with its items and examinations kept apart, and the click rates that were seen."""
    fitted = np.clip(theta, _LOWEST, _HIGHEST)
    apart, floor = fitted.copy(), LEAST_GAP
    for i in order[::-1]:
        apart[i] = max(apart[i], floor)
        floor = apart[i] + LEAST_GAP
    apart *= min(1.0, _HIGHEST / apart.max())
    looks = np.clip(kappa, LEAST_GAP, 1.0)
    # An item that was moved takes the click rates that were seen of it along.
    mu = np.clip(S / np.maximum(N, 1.0) * (apart / fitted), 0.0, _HIGHEST)
    return Model(order.copy(), apart, np.minimum.accumulate(looks), mu)


def make_plan(model: Model, starts: Floats, *, tolerance: float) -> Plan:
    """The cheapest displays that tell every alternative apart, to within `tolerance` of the least cost.

    `starts` has a row of log attractions for each place in the order; NaN where there is none. Where the click rates
    that were seen contradict the fitted model so much that an alternative fits them perfectly, its own are used.
    """
    plan = _cutting_planes(model, starts, tolerance)
    if not plan.share > 0:
        plan = _cutting_planes(model.smoothed(), starts, tolerance)
    return plan


def _cutting_planes(model: Model, starts: Floats, tolerance: float) -> Plan:
    m, n = model.mu.shape
    rivals = range(1, n)
    rows = [
        _row(model, rival, x, np.ones((m, n)))
        for rival in rivals
        for x in _first_guesses(model, rival, starts[rival])
    ]
    programs = _Programs(model)
    plan, cost, least = np.ones((m, n)), np.inf, 0.0
    for _ in range(_ROUNDS):
        q = programs.solve(rows)
        least = programs.cost(q)
        # Alternatives are searched for at q, and halfway to the best plan so far, where constraints cut deeper.
        for point in (q,) if np.isinf(cost) else (q, 0.5 * (q + plan)):
            distance = np.inf
            for rival in rivals:
                value, x = nearest(model, rival, point)
                distance = min(distance, value)
                row = _row(model, rival, x, point)
                if (row * q).sum() < 1 - 0.5 * tolerance:
                    rows.append(row)
            if distance > _NOTHING and programs.cost(point) < cost * distance:
                plan, cost = point / distance, programs.cost(point) / distance
        if least >= (1 - tolerance) * cost:
            break
    hardest = starts.copy()
    for rival in rivals:
        _, hardest[rival] = nearest(model, rival, plan)
    share = min(least / cost, 1.0) if cost > 0 else 1.0
    return Plan(plan, share, programs.solved, hardest)


def nearest(model: Model, rival: int, q: Floats) -> tuple[float, Floats]:
    """The alternative in which the item at place `rival` is as good as the one it would replace that q tells least.

    Its distance, at most `nearest_alternative.GAP` too high, and the log attractions of the best list.
    """
    m, n = q.shape
    x = np.empty(m)
    x[0] = np.log(model.theta[model.order[0]])
    value = nearest_alternative(rival, q, model.mu, model.log_c, model.order, x, np.empty(n), np.empty(m))
    return value, x


def _first_guesses(model: Model, rival: int, start: Floats) -> list[Floats]:
    # As fitted, with the rival as good as the one before it; and what was hardest the last time.
    m = len(model.kappa)
    log_theta, falls = np.log(model.theta[model.order[:m]]), np.diff(model.log_c)
    guesses = [log_theta, start] if np.isfinite(start).all() else [log_theta]
    for place, guess in enumerate(guesses):
        x = guess.copy()
        x[0] = log_theta[0]
        for j in range(1, m):  # examinations do not rise
            x[j] = x[j - 1] if j == rival else min(max(x[j], x[j - 1] + falls[j - 1]), 0.0)
        guesses[place] = x
    return guesses


def _row(model: Model, rival: int, x: Floats, q: Floats) -> Floats:
    m, n = model.mu.shape
    theta, kappa, out = np.empty(n), np.empty(m), np.empty((m, n))
    distance(x, rival, q, model.mu, model.log_c, model.order, theta, kappa, np.empty(m), np.empty((m, m)))
    row(model.mu, theta, kappa, model.order, out)
    return out


class _Programs:
    """The linear programs of one plan: the least cost of displays that tell these alternatives apart."""

    def __init__(self, model: Model) -> None:
        # Variables: q by position and item, and s, what every position sums to and no item exceeds.
        m, n = model.mu.shape
        best = model.theta[model.order[:m]] * model.kappa
        self.solved = 0
        self._cost = np.append((best[:, None] - model.kappa[:, None] * model.theta[None, :]).ravel(), 1e-9)
        self._sums = np.zeros((m, m * n + 1))
        self._items = np.zeros((n, m * n + 1))
        for j in range(m):
            self._sums[j, j * n : (j + 1) * n] = 1.0
            self._items[:, j * n : (j + 1) * n] += np.eye(n)
        self._sums[:, -1] = self._items[:, -1] = -1.0

    def cost(self, q: Floats) -> float:
        """What displays q cost."""
        return float(self._cost[:-1] @ q.ravel() + self._cost[-1] * q[0].sum())

    def solve(self, rows: list[Floats]) -> Floats:
        """The cheapest displays that tell the alternatives with these rows."""
        from scipy.optimize import linprog

        self.solved += 1
        m, n = rows[0].shape
        cuts = np.array([row.ravel() for row in rows])
        # Of q, so that the hardest constraint has numbers near one
        unit = 1.0 / max(cuts.max(axis=1).min(), 1e-12)
        apart = np.hstack([-cuts * unit, np.zeros((len(cuts), 1))])
        done = linprog(
            self._cost,
            A_ub=np.vstack([self._items, apart]),
            b_ub=np.append(np.zeros(n), -np.ones(len(cuts))),
            A_eq=self._sums,
            b_eq=np.zeros(m),
            bounds=(0, None),
            method="highs",
        )
        if done.x is None:
            raise ArithmeticError(f"the linear program of PMED has no solution: {done.message}")
        q: Floats = np.maximum(done.x[:-1], 0.0).reshape(m, n) * unit
        return q
