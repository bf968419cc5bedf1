"""What kernels do with rows of features: dense against numpy, sparse against dense, bit by bit."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankloop.features import sparse_rows
from rankloop.kernels import rows
from tests.sparse_lists import rows as random_rows

SEEDS = st.integers(0, 2**32 - 1)


@numba.njit
def both(features: Any, w: Any, weights: Any, scores: Any, out: Any) -> None:
    rows.score(features, w, scores)
    rows.combine(features, weights, out)


@numba.njit
def others(features: Any, i: Any, w: Any, row: Any, least: Any, most: Any) -> Any:
    rows.copy_row(features, i, row)
    rows.bounds(features, least, most)
    return rows.plain_dot(features, i, w)


@given(st.integers(1, 6), st.integers(1, 40), SEEDS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_scores_and_their_transpose_are_products_of_matrices(dtype: Any, n: int, d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(dtype)
    w, v = rng.normal(size=d), rng.normal(size=n + 3)
    scores, out = np.full(n + 3, np.nan), np.full(d, np.nan)
    both(X, w, v, scores, out)
    exact = X.astype(np.float64)
    np.testing.assert_allclose(scores[:n], exact @ w, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(out, exact.T @ v[:n], rtol=1e-12, atol=1e-13)
    assert np.isnan(scores[n:]).all(), "what lies beyond the list is not touched"


@given(st.integers(1, 12), st.integers(1, 40), SEEDS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sparse_rows_give_the_bits_of_dense_ones(dtype: Any, n: int, d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = random_rows(rng, n, d, dtype)
    w, v, i = rng.normal(size=d), rng.normal(size=n), int(rng.integers(n))
    found = []
    for features in (X, sparse_rows(X)):
        scores, out, row, least, most = np.empty(n), *(np.full(d, np.nan) for _ in range(4))
        both(features, w, v, scores, out)
        total = others(features, i, w, row, least, most)
        found.append([part.tobytes() for part in (scores, out, row, most - least, np.float64(total))])
    assert found[0] == found[1]
