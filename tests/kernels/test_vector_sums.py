"""Dot products and sums in eight lanes: bit by bit as NumPy adds them in the same order, at every length."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest

from rankloop.kernels.vectors import dot, sum_stretch
from tests.kernels.lanes import in_lanes


@numba.njit
def _dot(x: Any, w: Any) -> Any:
    return dot(x, w)


@numba.njit
def _stretch(x: Any, j: int, start: int, stop: int) -> Any:
    return sum_stretch(x, j, start, stop)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", range(1, 41))
def test_a_product_runs_in_lanes_of_a_fixed_order(dtype: Any, n: int) -> None:
    # Rounding is part of the story that a seed tells, so the order of the sum is too.
    rng = np.random.default_rng(n)
    x = (rng.normal(size=n) * 10.0 ** rng.integers(-8, 8, n)).astype(dtype)
    w = rng.normal(size=n)
    products = x.astype(np.float64) * w
    whole = n // 8 * 8
    lane = np.zeros(8)
    for eight in products[:whole].reshape(-1, 8):
        lane += eight
    for product in products[whole:]:
        lane[0] += product
    assert _dot(x, w) == in_lanes(lane)


@pytest.mark.parametrize("n", range(1, 41))
def test_a_stretch(n: int) -> None:
    x = np.random.default_rng(n).random((3, n))
    for start in range(0, n, 3):
        for stop in range(start, n + 1):
            found = _stretch(x, 1, start, stop)
            assert found == in_lanes(x[1, start:stop])
            np.testing.assert_allclose(found, x[1, start:stop].sum())


def test_a_slice_of_a_matrix_is_refused() -> None:
    with pytest.raises(numba.TypingError):
        _stretch(np.ones((3, 20))[:, ::2], 0, 0, 5)
