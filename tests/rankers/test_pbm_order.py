"""Whether the order of two items is proved: against closed forms and against a general solver."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import xlogy

from rankloop.kernels.click_counts import fit
from rankloop.rankers import pbm_pie

Floats = NDArray[np.float64]


def gap(S: Floats, N: Floats, a: int, b: int) -> float:
    m, n = S.shape
    theta, kappa = np.full(n, 0.5), np.linspace(1.0, 0.5, m)
    fit(S, N, theta, kappa, 500)
    return float(pbm_pie.order_gap(S, N, theta, kappa, a, b, pbm_pie.order_scratch(n, m)))


def test_one_position_has_a_closed_form() -> None:
    S, N = np.array([[30.0, 20.0, 5.0]]), np.array([[50.0, 50.0, 40.0]])

    def best(clicks: float, shown: float) -> float:
        return float(xlogy(clicks, clicks / shown) + xlogy(shown - clicks, 1 - clicks / shown))

    assert abs(gap(S, N, 0, 1) - (best(30, 50) + best(20, 50) - best(50, 100))) < 1e-9
    assert abs(gap(S, N, 0, 2) - (best(30, 50) + best(5, 40) - best(35, 90))) < 1e-9


def test_a_general_solver_finds_no_better_fit() -> None:
    rng = np.random.default_rng(3)
    for _ in range(5):
        N = rng.integers(20, 400, (3, 4)).astype(np.float64)
        S = rng.binomial(N.astype(int), np.outer([1.0, 0.6, 0.3], [0.8, 0.7, 0.4, 0.2])).astype(np.float64)

        def loss(y: Floats, tied: bool, S: Floats = S, N: Floats = N) -> float:
            theta = np.array([y[0], y[0] if tied else y[1], y[2], y[3]])
            p = np.outer([1.0, y[4], y[4] * y[5]], theta)
            return -float((xlogy(S, p) + xlogy(N - S, 1 - p)).sum())

        free, tied = (
            min(
                minimize(
                    loss,
                    start,
                    args=(which,),
                    bounds=[(1e-6, 1 - 1e-6)] * 4 + [(1e-6, 1.0)] * 2,
                    method="L-BFGS-B",
                ).fun
                for start in (np.full(6, 0.5), np.array([0.8, 0.7, 0.4, 0.2, 0.6, 0.5]))
            )
            for which in (False, True)
        )
        assert abs(gap(S, N, 0, 1) - (tied - free)) < 1e-2


def test_a_list_in_one_order_proves_nothing() -> None:
    # Two items, each at its own position only: as likely with equal attractions and other examinations.
    N = np.array([[5000.0, 1.0], [1.0, 5000.0]])
    S = np.array([[3000.0, 0.0], [1.0, 1500.0]])
    assert gap(S, N, 0, 1) < 3.0
    N += 2000.0
    S += 2000.0 * np.outer([1.0, 0.5], [0.6, 0.5])
    assert gap(S, N, 0, 1) > 10.0
