"""FTRL-PBM as the paper computes it: Algorithm 2 (Frank-Wolfe) and Algorithm 3 (Birkhoff), in NumPy and SciPy.

For reference and for experiments about the paper's method; the rankers' defaults are exact and many thousand times
as quick. Matrices here are positions x items, as in the state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from rankloop.kernels.random import uniform
from rankloop.kernels.rankers import ftrl_pbm

Matrix = NDArray[np.float64]
_FLOOR = 1e-12  # where the gradient of -sqrt(x) is taken for x = 0 (erratum C1)


def frank_wolfe(x: Matrix, L_hat: Matrix, eta_t: float, K: int) -> Matrix:
    """Algorithm 2, from x^(1) = `x`.

    Repairs (errata C1, C3, C4): k starts at 2, because the step 2 / (1 + 1) = 1 jumps to a vertex and forgets where it
    came from; the last iterate is returned; the linear subproblem is a weighted assignment, not a matching.
    """
    for k in range(2, K + 2):
        r = L_hat - 0.5 / eta_t / np.sqrt(np.maximum(x, _FLOOR))  # line 3
        positions, items = linear_sum_assignment(r)  # line 4
        gamma = 2.0 / (1.0 + k)  # line 5
        x = (1.0 - gamma) * x  # line 6
        x[positions, items] += gamma
    return x


def birkhoff(x: Matrix) -> tuple[list[NDArray[np.int64]], Matrix]:
    """Algorithm 3, lines 1-7: lists of items and their weights, which sum to one; the mean of the lists is `x`."""
    m, n = x.shape
    rest = 1.0 - x.sum(axis=0)
    W = np.vstack(
        [x, np.tile(rest / max(n - m, 1), (n - m, 1))]
    )  # line 1; nothing to complete for n = m (C6)
    W = np.maximum(W, 0.0)
    lists: list[NDArray[np.int64]] = []
    weights: list[float] = []
    while True:  # line 2
        W[W < _FLOOR] = 0.0
        matching = maximum_bipartite_matching(csr_array(W), perm_type="column")  # line 4
        if (matching < 0).any():
            break
        gamma = W[np.arange(n), matching].min()  # line 5
        lists.append(matching[:m].astype(np.int64))
        weights.append(gamma)
        W[np.arange(n), matching] -= gamma  # line 6
    if not lists:  # only where W is zero but for rounding errors, which no x is
        raise ValueError(f"x must have column sums of one and row sums of at most one, got {x!r}")
    return lists, np.array(weights) / np.sum(weights)


def rank(
    params: Any, state: Any, context: Any, key: Any, scratch: Any, items: Any, propensities: Any, memo: Any
) -> bool:
    """Algorithm 3, line 8."""
    lists, weights = birkhoff(state.x)
    drawn = int(np.searchsorted(np.cumsum(weights), uniform(key, 0), side="right"))
    items[:] = lists[min(drawn, len(lists) - 1)]
    propensities[:] = np.minimum(state.x[np.arange(len(items)), items], 1.0)
    return bool(propensities.sum() < 0.5 * len(items))


def learner(K: int) -> Callable[..., None]:
    """Algorithm 1, lines 5-7 and 3, with K Frank-Wolfe steps."""

    def learn(
        params: Any,
        state: Any,
        context: Any,
        scratch: Any,
        items: Any,
        propensities: Any,
        memo: Any,
        feedback: Any,
    ) -> None:
        ftrl_pbm.estimate(params, state, items, propensities, feedback)
        state.t[0] += 1
        eta_t = 1.0 / (2.0 * np.sqrt(state.t[0]))
        state.x[:] = np.maximum(frank_wolfe(state.x, state.L_hat, eta_t, K), _FLOOR)
        state.x[:] /= state.x.sum(axis=1, keepdims=True)
        state.rows[:] = state.x.sum(axis=0)

    return learn
