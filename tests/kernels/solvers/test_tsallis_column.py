"""Sums in eight lanes: bit by bit as NumPy adds them in the same order, at every length."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
from numpy.typing import NDArray

from rankloop.kernels.vectors import evaluate_column
from tests.kernels.lanes import in_lanes

Floats = NDArray[np.float64]


@numba.njit
def _column(L: Any, j: int, u: Any, v: float, t: float, weight: float, x: Any, rows: Any) -> Any:
    return evaluate_column(L, j, u, v, t, weight, x, rows)


@pytest.mark.parametrize("n", range(1, 41))
def test_a_column(n: int) -> None:
    rng = np.random.default_rng(n)
    m, t = 3, float(rng.integers(1, 1000))
    L, u, v = rng.random((m, n)) * 50, rng.random(n) * (rng.random(n) < 0.5), rng.random(m) + 1
    weight = 1.0 if n % 2 else 0.25
    free = weight * (u == 0)
    x, rows = np.full((m, n), np.nan), np.full(n, np.nan)
    expected_rows = np.zeros(n)
    for j in (0, 2, 1):
        total, ground = _column(L, j, u, v[j], t, weight, x, rows)
        inverse = 1.0 / (L[j] + u + v[j])
        chances = t * inverse * inverse
        np.testing.assert_array_equal(x[j], chances)
        expected_rows += chances
        np.testing.assert_array_equal(rows, expected_rows)
        assert total == in_lanes(chances)
        assert ground == in_lanes(chances * inverse * free)
        np.testing.assert_allclose([total, ground], [chances.sum(), (chances * inverse * free).sum()])


def test_a_slice_of_a_matrix_is_refused() -> None:
    whole = np.ones((3, 20))
    n = 10
    scratch = np.ones(n)
    with pytest.raises(numba.TypingError):
        _column(whole[:, ::2], 0, scratch, 1.0, 1.0, 1.0, np.empty((3, n)), np.zeros(n))
