"""Networks of a few nodes: bit by bit as the loops solve them, and as NumPy does where nothing is in the way."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest

from rankloop.kernels import list_plan
from rankloop.kernels.list_network import MOST, solve_small


@numba.njit(error_model="numpy")
def _solve(w: Any, drain: Any, du: Any, u: Any, tight: Any, n: int) -> None:
    solve_small(w, drain, du, u, tight, n)


def _network(n: int, *, u: float) -> dict[str, Any]:
    rng = np.random.default_rng(n)
    # Conductances of very different sizes, as where x is nearly a single list.
    drain, w = 10.0 ** rng.uniform(-12, 0, n), 10.0 ** rng.uniform(-12, 0, (n + 2, n + 2))
    return {
        "w": w,
        "drain": drain,
        "du": rng.normal(size=n) * drain.min(),
        "u": np.full(2 * n + 1, u),
        "tight": rng.permutation(2 * n + 1)[:n],
    }


@pytest.mark.parametrize("n", range(1, MOST + 1))
@pytest.mark.parametrize("u", [1e9, 0.1, 0.0])
def test_the_operations_of_the_loops(n: int, u: float) -> None:
    one, other = _network(n, u=u), _network(n, u=u)
    _solve(**one, n=n)
    scratch: Any = list_plan.step_scratch(2 * n + 1, 2 * n + 1, n)._replace(
        **{name: other[name] for name in ("w", "drain", "du", "tight")}
    )
    loops: Any = list_plan._solve
    loops.py_func(other["u"], scratch, n)
    np.testing.assert_array_equal(one["du"], other["du"])
    assert (one["du"] >= -u).all()


@pytest.mark.parametrize("n", [1, 3, MOST])
def test_the_solution(n: int) -> None:
    network = _network(n, u=1e9)
    w, flow = np.tril(network["w"][:n, :n], -1), network["du"].copy()
    w += w.T
    _solve(**network, n=n)
    laplacian = np.diag(network["drain"] + w.sum(axis=1)) - w
    np.testing.assert_allclose(laplacian @ network["du"], flow, rtol=1e-6, atol=1e-14)


@pytest.mark.parametrize("n", [0, MOST + 1])
def test_other_numbers_of_nodes_are_left_alone(n: int) -> None:
    network = _network(MOST + 1, u=1.0)
    before = network["du"].copy()
    _solve(**network, n=n)
    np.testing.assert_array_equal(network["du"], before)


def test_what_is_no_number_stays_none() -> None:
    network = _network(2, u=1.0)
    network["du"][:] = np.nan
    _solve(**network, n=2)
    assert np.isnan(network["du"]).all()
