"""The projection of a linear ranker, against numpy."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankloop.kernels import descent

SEEDS = st.integers(0, 2**32 - 1)


@numba.njit
def project(w: Any, radius: float) -> None:
    descent.project(w, radius)


@settings(max_examples=60)
@given(st.integers(1, 12), st.floats(1e-6, 1e6), st.floats(1e-8, 1e8), SEEDS)
def test_projection_shortens_what_is_too_long_and_nothing_else(
    d: int, radius: float, length: float, seed: int
) -> None:
    w = np.random.default_rng(seed).normal(size=d)
    w *= length / np.linalg.norm(w)
    projected = w.copy()
    project(projected, radius)
    if length < radius * (1 - 1e-12):
        np.testing.assert_array_equal(projected, w)
    elif length > radius * (1 + 1e-12):
        np.testing.assert_allclose(projected, w * (radius / length), rtol=1e-12)


@pytest.mark.parametrize("length", [1e160, 1e300])
def test_projection_of_weights_whose_squares_are_infinite(length: float) -> None:
    w = np.array([3.0, -4.0]) * length / 5.0
    project(w, 10.0)
    np.testing.assert_allclose(w, [6.0, -8.0], rtol=1e-12)


def test_projection_of_nothing_is_nothing() -> None:
    w = np.zeros(3)
    project(w, 1e-300)
    assert not w.any()
