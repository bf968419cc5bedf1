"""The projection of MW is the nearest point in relative entropy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from rankloop.kernels import entropy_projection


def projected(W: np.ndarray) -> np.ndarray:
    m, n = W.shape
    found = W.copy()
    assert entropy_projection.project(found, entropy_projection.new_scratch(n, m)) > 0, "ran out of steps"
    return found


def by_a_generic_solver(W: np.ndarray) -> np.ndarray:
    """Minimise the relative entropy over x itself, with the constraints as they stand."""
    m, n = W.shape

    def distance(x: np.ndarray) -> tuple[float, np.ndarray]:
        ratio = np.log(x / W.ravel())
        return float(np.sum(x * ratio - x + W.ravel())), ratio

    positions = np.kron(np.eye(m), np.ones(n))
    items = np.kron(np.ones(m), np.eye(n))
    constraints = [
        {"type": "eq", "fun": lambda x: positions @ x - 1, "jac": lambda x: positions},
        {"type": "ineq", "fun": lambda x: 1 - items @ x, "jac": lambda x: -items},
    ]
    done = minimize(
        distance,
        np.full(m * n, 1 / n),
        jac=True,
        method="SLSQP",
        bounds=[(1e-12, 1)] * (m * n),
        constraints=constraints,
        options={"maxiter": 500, "ftol": 1e-15},
    )
    assert done.success or done.status == 8, (
        done.message
    )  # 8: no direction leads further down at this precision
    return done.x.reshape(m, n)


@pytest.mark.judges("2022-199")
@pytest.mark.parametrize(
    ("m", "n", "power"), [(2, 4, 1), (3, 5, 3), (3, 3, 2), (4, 6, 4), (1, 5, 2), (5, 10, 3)]
)
def test_the_projection_is_that_of_a_generic_convex_solver(m: int, n: int, power: int) -> None:
    rng = np.random.default_rng(m * n)
    W = rng.random((m, n)) ** power + 0.01
    W[:, 0] += 1.0  # an item that every position wants: its bound is tight
    np.testing.assert_allclose(projected(W), by_a_generic_solver(W), atol=2e-6)


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 6), st.integers(0, 6), st.integers(1, 30), st.booleans(), st.integers(0, 2**32))
def test_the_projection_keeps_its_conditions(
    m: int, more: int, power: int, nearly_a_list: bool, seed: int
) -> None:
    # Sufficient for the minimum: W_ij e^(-u_i - v_j), u >= 0, u_i = 0 where item i's bound is not met.
    n = m + more
    W = np.random.default_rng(seed).random((m, n)) ** power + 1e-9
    W[:, :m] += 10.0 * np.eye(m) * nearly_a_list
    x = projected(W)
    assert np.abs(x.sum(axis=1) - 1).max() < 1e-11
    assert x.sum(axis=0).max() < 1 + 1e-11
    ratio = np.log(x / W)
    factors = ratio - ratio[:, :1]  # u_0 - u_i, the same at every position
    assert np.abs(factors - factors[:1]).max() < 1e-6
    u = -factors[0]
    if n > m:
        loose = x.sum(axis=0) < 1 - 1e-9
        assert loose.any()
        u -= u[loose].mean()
        assert np.abs(u[loose]).max() < 1e-6
        assert u.min() > -1e-6


def test_weights_that_are_a_mixture_of_lists_already_stay() -> None:
    W = np.array([[0.5, 0.3, 0.2], [0.4, 0.3, 0.3]])
    np.testing.assert_allclose(projected(W), W, atol=1e-15)
