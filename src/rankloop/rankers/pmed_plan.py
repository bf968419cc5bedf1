"""The optimisation in PMED: how often each item must stand at each position so that no other best list stays possible.

A linear program in the displays q with one constraint for every alternative model, of which there are infinitely
many: constraints are added where they are violated most, until none is (cutting planes). The most violated one is
found by local search; the problem there is bi-convex and not convex. What is still missing in the end is made up for by
scaling q, which is exact because both sides are linear in it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog, minimize

from rankloop.kernels.rankers import pmed

Matrix = NDArray[np.float64]
LEAST_GAP = (
    1e-3  # items and examinations closer than this are taken to be this far apart: else nothing suffices
)
_LOWEST, _HIGHEST = 1e-6, 1.0 - 1e-6
_ROUNDS = 60
_NOTHING = 1e-6


class Plan(NamedTuple):
    """Displays q (positions x items, in units of log t), how they were found, and where to start next time."""

    q: Matrix
    distance: float  # of the nearest alternative; at least 1 is demanded
    before_scaling: float
    programs: int
    starts: Matrix


class Model(NamedTuple):
    """What the plan is made for: an order of the items, attractions, examinations and click rates."""

    order: NDArray[np.int64]
    theta: NDArray[np.float64]
    kappa: NDArray[np.float64]
    mu: Matrix

    @property
    def log_c(self) -> NDArray[np.float64]:
        """Logarithms of the best list's click rates, which alternatives share."""
        return np.log(self.theta[self.order[: len(self.kappa)]] * self.kappa)

    def smoothed(self) -> Model:
        """The same with the click rates of the fitted model."""
        return self._replace(mu=np.outer(self.kappa, self.theta))


def read_model(theta: Matrix, kappa: Matrix, S: Matrix, N: Matrix, order: NDArray[np.int64]) -> Model:
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


def make_plan(model: Model, starts: Matrix, *, tolerance: float) -> Plan:
    """The cheapest displays that tell every alternative apart, to within `tolerance` of the least cost.

    `starts` has a row of log attractions for each place in the order; NaN where there is none. Where the click rates
    that were seen contradict the fitted model so much that an alternative fits them perfectly, its own are used.
    """
    plan = _cutting_planes(model, starts, tolerance)
    if not plan.before_scaling > _NOTHING:
        plan = _cutting_planes(model.smoothed(), starts, tolerance)
    return plan


def _cutting_planes(model: Model, starts: Matrix, tolerance: float) -> Plan:
    m, n = model.mu.shape
    hardest = starts.copy()
    rivals = range(1, n)
    q, distance, programs = np.ones((m, n)), 0.0, 0
    rows = [_row(model, rival, x, q) for rival in rivals for x in _first_guesses(model, rival, starts[rival])]
    for _ in range(_ROUNDS):
        q = _solve(model, rows)
        programs += 1
        for thorough in (False, True):  # from one start while there is something to find, then from all
            distance = np.inf
            for rival in rivals:
                value, x = nearest(model, rival, q, hardest[rival], thorough=thorough)
                hardest[rival] = x
                distance = min(distance, value)
                if value < 1 - tolerance:
                    rows.append(_row(model, rival, x, q))
            if distance < 1 - tolerance:
                break
        else:
            break
    scaled = q / min(distance, 1.0) if distance > _NOTHING else q
    return Plan(scaled, max(distance, 1.0), distance, programs, hardest)


def nearest(
    model: Model, rival: int, q: Matrix, start: Matrix, *, thorough: bool = True
) -> tuple[float, Matrix]:
    """The alternative in which the item at place `rival` is as good as the one it would replace that q tells least.

    Searched for from `start` where there is one, and from the fitted model; from the latter only where both are wanted
    (`thorough`) or there is no start.
    """
    m, n = q.shape
    theta, kappa, slope = np.empty(n), np.empty(m), np.empty(m)
    log_c = model.log_c
    first = float(np.log(model.theta[model.order[0]]))

    # x_0 is given, x_j = x_(j-1) where rival = j < m, the others are free
    free = [j for j in range(1, m) if j != rival]

    def whole(y: Matrix) -> Matrix:
        x = np.empty(m)
        x[0] = first
        x[free] = y
        if rival < m:
            x[rival] = x[rival - 1]
        return x

    def distance(y: Matrix) -> tuple[float, Matrix]:
        value = pmed.alternative(whole(y), rival, q, model.mu, log_c, model.order, theta, kappa, slope)
        by_y = slope[free].copy()
        if rival < m and rival - 1 in free:
            by_y[free.index(rival - 1)] += slope[rival]
        return value, by_y

    if not free:
        return distance(np.empty(0))[0], whole(np.empty(0))
    # examinations do not rise: log kappa'_(j-1) - log kappa'_j >= 0, linear in y
    falls = np.diff(np.eye(m), axis=0)
    jump = np.zeros((m, len(free)))
    for place, j in enumerate(free):
        jump[j, place] = 1.0
        if rival < m and j == rival - 1:
            jump[rival, place] = 1.0
    matrix = falls @ jump
    fixed = falls @ (whole(np.zeros(len(free))) - log_c)
    # falls @ (x - log_c) = (x_j - x_(j-1)) - (log c_j - log c_(j-1)) = log kappa'_(j-1) - log kappa'_j
    constraint = {"type": "ineq", "fun": lambda y: matrix @ y + fixed, "jac": lambda y: matrix}
    best, found = np.inf, whole(np.zeros(len(free)))
    guesses = _first_guesses(model, rival, start)
    for x in guesses if thorough else guesses[-1:]:
        value = distance(x[free])[0]
        if value < best:
            best, found = value, x
        done = minimize(
            distance,
            x[free],
            jac=True,
            method="SLSQP",
            bounds=[(-14.0, 0.0)] * len(free),
            constraints=[constraint],
            options={"maxiter": 40, "ftol": 1e-7},
        )
        y = np.clip(done.x, -14.0, 0.0)
        if (matrix @ y + fixed).min(initial=0.0) < -1e-6:
            continue
        value = distance(y)[0]
        if value < best:
            best, found = value, whole(y)
    return best, found


def _first_guesses(model: Model, rival: int, start: Matrix) -> list[Matrix]:
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


def _row(model: Model, rival: int, x: Matrix, q: Matrix) -> Matrix:
    m, n = model.mu.shape
    theta, kappa, out = np.empty(n), np.empty(m), np.empty((m, n))
    pmed.alternative(x, rival, q, model.mu, model.log_c, model.order, theta, kappa, np.empty(m))
    pmed.row(model.mu, theta, kappa, model.order, out)
    return out


def _solve(model: Model, rows: list[Matrix]) -> Matrix:
    # Variables: q by position and item, and s, what every position sums to and no item exceeds.
    m, n = model.mu.shape
    best = model.theta[model.order[:m]] * model.kappa
    cost = np.append((best[:, None] - model.kappa[:, None] * model.theta[None, :]).ravel(), 1e-9)
    sums = np.zeros((m, m * n + 1))
    items = np.zeros((n, m * n + 1))
    for j in range(m):
        sums[j, j * n : (j + 1) * n] = 1.0
        items[:, j * n : (j + 1) * n] += np.eye(n)
    sums[:, -1] = items[:, -1] = -1.0
    cuts = np.array([row.ravel() for row in rows])
    unit = 1.0 / max(
        cuts.max(axis=1).min(), 1e-12
    )  # of q, so that the hardest constraint has numbers near one
    apart = np.hstack([-cuts * unit, np.zeros((len(cuts), 1))])
    done = linprog(
        cost,
        A_ub=np.vstack([items, apart]),
        b_ub=np.append(np.zeros(n), -np.ones(len(cuts))),
        A_eq=sums,
        b_eq=np.zeros(m),
        bounds=(0, None),
        method="highs",
    )
    if done.x is None:
        raise ArithmeticError(f"the linear program of PMED has no solution: {done.message}")
    q: Matrix = np.maximum(done.x[:-1], 0.0).reshape(m, n) * unit
    return q
