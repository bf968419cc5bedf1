"""The leader of FTRL-PBM by its compiled solver, and what must hold of it; instances of all kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from rankloop.kernels import list_network, tsallis

Floats = NDArray[np.float64]
KINDS = ("even", "powers", "ties", "spikes", "vertex", "equal positions", "equal items")


class Leader(NamedTuple):
    x: Floats
    rows: Floats
    u: Floats
    v: Floats
    steps: int  # of Newton's method; -1 where it did not end
    how: int  # 0 Newton's method, 1 the slow way, 2 the slow way, inexact


def over_the_lists(
    value: Callable[[Floats], float],
    slope: Callable[[Floats], Floats],
    shape: tuple[int, int],
    most: float = 1.0,
) -> Floats:
    """The least value over the hull of lists, by SciPy's general solver, which knows nothing of the leader."""
    m, n = shape
    constraints: list[Any] = [
        {"type": "eq", "fun": lambda x: x.reshape(m, n).sum(axis=1) - 1},
        {"type": "ineq", "fun": lambda x: 1 - x.reshape(m, n).sum(axis=0)},
    ]
    if n == m:  # one of the equations follows from the others, and SLSQP minds
        constraints[1] = {"type": "eq", "fun": lambda x: x.reshape(m, n).sum(axis=0)[1:] - 1}
    found = minimize(
        value,
        np.full(m * n, 1 / n),
        jac=slope,
        bounds=[(1e-9, most)] * (m * n),
        constraints=constraints,
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
    )
    return np.asarray(found.x).reshape(m, n)


class Instance(NamedTuple):
    kind: str
    t: float
    L: Floats

    @property
    def ratio(self) -> float:
        """How large the losses are beside the regulariser; numbers end where this is about 1e6."""
        return float(self.L.max() / np.sqrt(self.t))


def find(
    t: float, L: Floats, *, u: Floats | None = None, v: Floats | None = None, slow: bool = False
) -> Leader:
    """The leader, from multipliers `u` and `v` or from cold ones."""
    m, n = L.shape
    u = np.zeros(n) if u is None else u.copy()
    v = np.full(m, np.sqrt(n * t)) if v is None else v.copy()
    x, rows, scratch = np.empty((m, n)), np.empty(n), list_network.new_scratch(n, m)
    steps, how = -1, 0
    if not slow:
        steps = tsallis.newton(t, L, u, v, x, rows, scratch)
    if steps < 0:
        how = tsallis.recover(t, L, u, v, x, rows, scratch)
    return Leader(x, rows, u, v, steps, how)


def instances(number: int, seed: int, largest: float = 1e12) -> Iterator[Instance]:
    """Losses from 0 to `largest`, t from 1 to 1e7, up to 13 items, every fourth with as many positions."""
    rng = np.random.default_rng(seed)
    for which in range(number):
        n = int(rng.integers(1, 14))
        m = n if which % 4 == 0 else int(rng.integers(1, n + 1))
        t = float(int(10 ** rng.uniform(0, 7)))
        kind = KINDS[which % len(KINDS)]
        size = 10 ** rng.uniform(-3, np.log10(largest))
        L = rng.random((m, n)) * size
        if kind == "powers":
            L = 10 ** rng.uniform(-6, np.log10(largest), (m, n))
        elif kind == "ties":
            L = rng.integers(0, 3, (m, n)) * size / 2
        elif kind == "spikes":
            L = np.where(rng.random((m, n)) < 0.5, size, 0.0)
        elif kind == "vertex":
            L = np.full((m, n), size)
            L[np.arange(m), rng.permutation(n)[:m]] = 0.0
        elif kind == "equal positions":
            L = np.tile(rng.random(n) * size, (m, 1))
        elif kind == "equal items":
            L = np.tile(rng.random((m, 1)) * size, (1, n))
        yield Instance(kind, t, np.ascontiguousarray(L))


def check_chances(x: Floats, rows: Floats, within: float = 1e-9) -> None:
    """What every leader must be, exact or not."""
    assert np.isfinite(x).all()
    assert (x > 0).all()
    np.testing.assert_allclose(x.sum(axis=1), 1, rtol=0, atol=within)
    assert x.sum(axis=0).max() <= 1 + within
    np.testing.assert_allclose(rows, x.sum(axis=0), rtol=0, atol=1e-12)


def check_optimal(t: float, L: Floats, leader: Leader) -> None:
    """Karush, Kuhn, Tucker, and no gap between the primal and the dual value."""
    x, u, v = leader.x, leader.u, leader.v
    m, n = L.shape
    D = L + u + v[:, None]
    assert (D > 0).all(), "t / D^2 is a leader only where D is positive"
    np.testing.assert_allclose(x, t / D**2, rtol=1e-12)
    if n > m:
        assert (u >= 0).all()
        np.testing.assert_allclose(x.sum(axis=0)[u > 0], 1, rtol=0, atol=1e-9)
    primal = (x * L).sum() - 2 * np.sqrt(t) * np.sqrt(x).sum()
    dual = -(t / D).sum() - u.sum() - v.sum()
    scale = np.sqrt(t) * m * np.sqrt(n) + np.abs(u).sum() + np.abs(v).sum() + np.abs(L).max()
    assert abs(primal - dual) <= 1e-9 * scale
