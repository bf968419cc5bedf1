"""The optimisation in PMED: how often each item must stand at each position so that no other best list stays possible.

A linear program in the displays q with one constraint for every alternative model, of which there are infinitely
many: constraints are added where they are violated most, until none is (cutting planes). Which one that is is a convex
problem for each item, `rankloop.kernels.solvers.nearest_alternative`. What is still missing in the end is made up for
by scaling q, which is exact because both sides are linear in it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from rankloop.kernels.rankers import pmed
from rankloop.kernels.solvers import nearest_alternative

Matrix = NDArray[np.float64]
LEAST_GAP = (
    1e-3  # items and examinations closer than this are taken to be this far apart: else nothing suffices
)
_LOWEST, _HIGHEST = 1e-6, 1.0 - 1e-6
_ROUNDS = 60
_NOTHING = 1e-6


class Plan(NamedTuple):
    """Displays q (positions x items, in units of log t), how they were found, and where to start next time."""

    q: Matrix  # tells every alternative apart by at least 1
    share: float  # of its cost, that no displays can save; 0 where nothing tells an alternative apart
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
    if not plan.share > 0:
        plan = _cutting_planes(model.smoothed(), starts, tolerance)
    return plan


def _cutting_planes(model: Model, starts: Matrix, tolerance: float) -> Plan:
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


def nearest(model: Model, rival: int, q: Matrix) -> tuple[float, Matrix]:
    """The alternative in which the item at place `rival` is as good as the one it would replace that q tells least.

    Its distance, at most `nearest_alternative.GAP` too high, and the log attractions of the best list.
    """
    m, n = q.shape
    x = np.empty(m)
    x[0] = np.log(model.theta[model.order[0]])
    value = nearest_alternative.nearest(
        rival, q, model.mu, model.log_c, model.order, x, np.empty(n), np.empty(m)
    )
    return value, x


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
    nearest_alternative.distance(
        x, rival, q, model.mu, model.log_c, model.order, theta, kappa, np.empty(m), np.empty((m, m))
    )
    pmed.row(model.mu, theta, kappa, model.order, out)
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

    def cost(self, q: Matrix) -> float:
        """What displays q cost."""
        return float(self._cost[:-1] @ q.ravel() + self._cost[-1] * q[0].sum())

    def solve(self, rows: list[Matrix]) -> Matrix:
        """The cheapest displays that tell the alternatives with these rows."""
        self.solved += 1
        m, n = rows[0].shape
        cuts = np.array([row.ravel() for row in rows])
        unit = 1.0 / max(
            cuts.max(axis=1).min(), 1e-12
        )  # of q, so that the hardest constraint has numbers near one
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
        q: Matrix = np.maximum(done.x[:-1], 0.0).reshape(m, n) * unit
        return q
