"""Rows in vectors of eight: bit by bit as NumPy computes them entry by entry, dot products in the fixed order."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest

from rankloop.kernels.vectors import (
    add_row,
    excess_row,
    fill_row,
    inverse_cubes,
    invert_row,
    multiply_rows,
    row_dot,
    row_dots,
    scale,
    subtract_rows,
    sum_rows,
)
from tests.kernels.lanes import in_lanes


@numba.njit(error_model="numpy")
def _all(out: Any, x: Any, y: Any) -> float:
    multiply_rows(out, 0, x, 1, y, 2)
    invert_row(out, 1, x, 0)
    add_row(out, 2, y, 1, -0.3)
    inverse_cubes(out, 3, x, 2, y, 0, 0.7, 5.0)
    return row_dot(x, 1, y, 2)


@pytest.mark.parametrize("width", [8, 16, 24])
def test_rows(width: int) -> None:
    rng = np.random.default_rng(width)
    out, x, y = (rng.random((4, width)) + 0.1 for _ in range(3))
    expected = out.copy()
    expected[0] = x[1] * y[2]
    expected[1] = 1.0 / x[0]
    expected[2] += -0.3 * y[1]
    inverse = 1.0 / (x[2] + 0.7 + y[0])
    expected[3] = 5.0 * inverse * inverse * inverse
    assert _all(out, x, y) == in_lanes(x[1] * y[2])
    np.testing.assert_array_equal(out, expected)


@numba.njit(error_model="numpy")
def _several(out: Any, x: Any, y: Any, weights: Any, dots: Any) -> None:
    fill_row(out, 0, weights, 7.0)
    excess_row(out, 1, x, 0)
    sum_rows(out, 2, x, 1, y, 3)
    subtract_rows(out, 3, y, weights, 2)
    scale(out, 2 * out.shape[1], 0.7)
    row_dots(dots, 1, x, 2, y, 3)


@pytest.mark.parametrize("width", [8, 16])
@pytest.mark.parametrize("known", [3, 8, 16])
def test_several_rows_at_once(width: int, known: int) -> None:
    rng = np.random.default_rng(width)
    out, x, y = (rng.random((4, width)) + 0.1 for _ in range(3))
    weights, dots, expected = rng.random(known), np.zeros((2, 5)), out.copy()
    expected[0] = np.concatenate([weights, np.full(width, 7.0)])[:width]
    expected[1] = x[0] * (np.sqrt(x[0]) - 1.0)
    expected[2] = x[1] + y[0] + y[1] + y[2]
    expected[3] = out[3] - weights[0] * y[0] - weights[1] * y[1]
    expected[:2] *= 0.7
    _several(out, x, y, weights, dots)
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(dots, [[0] * 5, [*(in_lanes(x[2] * y[b]) for b in range(3)), 0, 0]])


def test_rows_that_are_not_whole_are_refused() -> None:
    wide = np.ones((4, 16))
    with pytest.raises(numba.TypingError):
        _all(wide[:, ::2], wide[:, :8].copy(), wide[:, :8].copy())
