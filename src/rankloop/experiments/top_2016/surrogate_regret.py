"""How the surrogate regret of the 2016 paper is measured: the loss of the scores it plays, against the best weights.

Queries are drawn afresh each round, so the loss expected of weights w is a mean over all queries, L(w), and exact. A
round costs (1 - gamma) L(w_t) + gamma L_0, where L_0 is the loss of scores drawn uniformly from [0, 1] (Algorithm 1,
line 5); the best weights w* cost min L(w) over the ball. w_t is looked at on the way, more often early on, and L
interpolated; so is the second moment of the gradient's estimate, of which eq. (4) makes its bound,

    (1 - gamma) (|w*|^2 / (2 eta) + eta / 2 sum of E|z_t|^2) + gamma T (L_0 - L(w*)),

where the paper has the radius U for |w*|: the proof asks for the way from w_1 = 0 to w* only.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse

from rankloop import surrogates
from rankloop.data import Dataset, synthetic_letor
from rankloop.environments import QueryStream
from rankloop.rankers import RTopKF
from rankloop.simulation import play

Floats = NDArray[np.float64]
RADIUS = 30.0
LOOKS = 60
MOMENT_LOOKS = 4  # second moments change slowly: every fourth look is enough
# eta = scale * T^(-2/3): the scale undoes the size of each surrogate's gradients.
SCALES = {"squared": 0.3, "kl": 0.5, "ranksvm": 1.0}
FEEDBACK = {"squared": 1, "kl": 1, "ranksvm": 2}


@lru_cache(maxsize=1)
def queries() -> Dataset:
    """The queries that all runs draw from."""
    made = synthetic_letor(n_queries=150, n_features=8, list_length=(4, 12), max_grade=2, seed=2016)
    return made.with_dtype("float64")


class Run(NamedTuple):
    """Surrogate regret at the end of a run, the bound of eq. (4) for it, and the regret of weights at zero."""

    regret: float
    bound: float
    unmoved: float


def run(surrogate: str, *, horizon: int, seed: int) -> Run:
    """RTop-kF over `horizon` rounds, with the constants made from T."""
    gamma, eta = horizon ** (-1 / 3), SCALES[surrogate] * horizon ** (-2 / 3)
    ranker = RTopKF(
        n_features=queries().n_features,
        surrogate=surrogate,
        k=FEEDBACK[surrogate],
        learning_rate=eta,
        exploration=gamma,
        radius=RADIUS,
        max_grade=queries().max_grade,
    )
    stream = QueryStream(queries(), measure="ndcg", order="drawn")
    stops = np.unique(np.geomspace(1, horizon, LOOKS).round().astype(int))
    at, losses, moments = (
        [0],
        [loss(surrogate, ranker.state.w)],
        {0: second_moment(surrogate, ranker.state.w, gamma)},
    )
    for piece, (start, stop) in enumerate(zip([0, *stops[:-1]], stops, strict=True)):
        play(ranker, stream, rounds=int(stop - start), seed=seed * 1_000 + piece, points=1, progress=False)
        at.append(int(stop))
        losses.append(loss(surrogate, ranker.state.w))
        if piece % MOMENT_LOOKS == 0 or stop == horizon:
            moments[int(stop)] = second_moment(surrogate, ranker.state.w, gamma)
    least, exploring = least_loss(surrogate), random_loss(surrogate)
    squares = np.trapezoid(list(moments.values()), list(moments))
    length = float(best_weights(surrogate) @ best_weights(surrogate))
    lost = gamma * horizon * (exploring - least)
    return Run(
        regret=float((1 - gamma) * (np.trapezoid(losses, at) - horizon * least) + lost),
        bound=float((1 - gamma) * (length / (2 * eta) + eta / 2 * squares) + lost),
        unmoved=(1 - gamma) * horizon * (losses[0] - least) + lost,
    )


def second_moment(surrogate: str, w: Floats, gamma: float) -> float:
    """E|z|^2 of the paper's estimate at w, over queries and orders: `surrogates.moments.second_moment`, written out."""
    total = 0.0
    for i in range(queries().n_queries):
        X, R = queries().query(i)
        s = X @ w
        m, first = len(R), np.argsort(-s, kind="stable")
        if surrogate == "ranksvm":
            chance = np.full((m, m), 2 * gamma / (m * (m - 1)))
            chance[first[0], first[1]] += 1 - gamma
            chance[first[1], first[0]] += 1 - gamma
            active = (R[:, None] > R[None, :]) & (1 + s[None, :] - s[:, None] > 0)
            length = (X * X).sum(axis=1)
            total += float((active * (length[:, None] + length[None, :] - 2 * X @ X.T) / chance).sum())
            continue
        top = np.full(m, gamma / m)
        top[first[0]] += 1 - gamma
        if surrogate == "kl":
            total += float(((np.exp(s) - np.exp(R)) ** 2 * (X * X).sum(axis=1) / top).sum())
        else:
            known, unknown = X.T @ (2 * s), -2 * R[:, None] * X
            total += float(known @ known + 2 * known @ unknown.sum(axis=0))
            total += float(((unknown * unknown).sum(axis=1) / top).sum())
    return total / queries().n_queries


def loss(surrogate: str, w: Floats) -> float:
    """L(w), the mean surrogate loss over all queries."""
    phi, made = surrogates.get(surrogate), queries()
    values = [float(phi.value(X @ w, R)) for X, R in (made.query(i) for i in range(made.n_queries))]
    return float(np.mean(values))


@lru_cache(maxsize=8)
def random_loss(surrogate: str) -> float:
    """L_0: the mean loss of scores drawn uniformly from [0, 1], in closed form."""
    total = 0.0
    for i in range(queries().n_queries):
        R = queries().query(i)[1]
        if surrogate == "squared":
            total += float((1 / 3 - R + R**2).sum())
        elif surrogate == "kl":
            total += float((np.exp(R) * (R - 1.5) + np.e - 1).sum())
        else:  # 1 + s_j - s_i is never below 0 here, and 1 on average
            total += float((R[:, None] > R[None, :]).sum())
    return total / queries().n_queries


@lru_cache(maxsize=8)
def best_weights(surrogate: str) -> Floats:
    """w*, with the least L(w) in the ball; it lies inside of it, which is checked."""
    w = _best_pairs() if surrogate == "ranksvm" else _best_smooth(surrogate)
    if np.linalg.norm(w) >= RADIUS:
        raise ValueError(f"the best weights for {surrogate} lie outside of the ball of radius {RADIUS:g}")
    return w


@lru_cache(maxsize=8)
def least_loss(surrogate: str) -> float:
    """L(w*)."""
    return loss(surrogate, best_weights(surrogate))


def _best_smooth(surrogate: str) -> Floats:
    phi, made = surrogates.get(surrogate), queries()

    def gradient(w: Floats) -> Floats:
        lists = (made.query(i) for i in range(made.n_queries))
        return np.asarray(sum(X.T @ phi.gradient(X @ w, R) for X, R in lists)) / made.n_queries

    found = optimize.minimize(
        lambda w: loss(surrogate, w),
        np.zeros(made.n_features),
        jac=gradient,
        method="BFGS",
        options={"gtol": 1e-9},
    )
    return np.asarray(found.x)


def _best_pairs() -> Floats:
    # RankSVM's loss is piecewise linear: one slack for each pair, as a linear programme.
    made = queries()
    rows = []
    for i in range(made.n_queries):
        X, R = made.query(i)
        better, worse = np.nonzero(R[:, None] > R[None, :])
        rows.append(X[worse] - X[better])
    apart = np.concatenate(rows)
    n, d = apart.shape
    cost = np.concatenate([np.zeros(d), np.ones(n)])
    bounds = [(None, None)] * d + [(0, None)] * n
    held = sparse.hstack(
        [sparse.csr_array(apart), -sparse.eye_array(n)]
    )  # 1 + (x_worse - x_better) . w <= slack
    found = optimize.linprog(cost, A_ub=held, b_ub=-np.ones(n), bounds=bounds, method="highs")
    return np.asarray(found.x[:d])
