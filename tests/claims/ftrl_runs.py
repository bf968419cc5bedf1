"""Runs of FTRL-PBM, step by step, with everything that its analysis speaks of (2022, appendix B).

Matrices are positions by items, as in the ranker.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankloop.rankers import FTRLPBM
from tests.kernels.leader import find

Floats = NDArray[np.float64]
N, M, T, RUNS = 4, 2, 400, 10
# Chances of a click; in both worlds item j is best at position j.
WORLDS = {"chance": np.outer([1.0, 0.6], [0.9, 0.6, 0.3, 0.1]), "sure": np.eye(N)[:M]}


class Run(NamedTuple):
    x: Floats  # round, position, item: the leaders
    loss: Floats  # round, position, item: all losses, seen or not
    shown: Floats  # round, position, item: 1 where the item stood
    L_hat: Floats  # before each round, and at the end
    stability: Floats  # of each round
    penalty: Floats  # of each round, against the best list


def eta(t: float) -> float:
    return 1 / (2 * float(np.sqrt(t)))


def objective(x: Floats, L: Floats, t: float) -> float:
    """<x, L> + Psi(x) / eta_t."""
    return float((x * L).sum() - np.sqrt(x).sum() / eta(t))


def Phi(t: float, y: Floats) -> float:
    """Phi_t(y), the largest <x, y> - Psi(x) / eta_t over mixtures of lists."""
    return -objective(find(t, -y).x, -y, t)


@cache
def run(world: str, seed: int) -> Run:
    rng, ranker = np.random.default_rng(seed), FTRLPBM(n_items=N, n_positions=M)
    loss = (rng.random((T, M, N)) >= WORLDS[world]).astype(float)
    x, shown, L_hat = np.zeros((T, M, N)), np.zeros((T, M, N)), np.zeros((T + 1, M, N))
    stability, penalty = np.zeros(T), np.zeros(T)
    for t in range(T):
        x[t] = ranker.x
        drawn = ranker.rank(rng=rng)
        at = np.arange(M), drawn.items
        shown[t][at] = 1.0
        ranker.learn(drawn, 1 - loss[t][at])
        L_hat[t + 1] = ranker.state.L_hat
        moved = Phi(t + 1, -L_hat[t + 1]) + objective(x[t], L_hat[t], t + 1)
        stability[t] = float(loss[t][at].sum()) + moved
        penalty[t] = -moved - float(np.trace(L_hat[t + 1] - L_hat[t]))
    return Run(x, loss, shown, L_hat, stability, penalty)
