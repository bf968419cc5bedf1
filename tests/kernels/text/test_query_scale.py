"""Scaling features within each query, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankloop.kernels import text

N_QUERIES = 3


def bounds(
    features: np.ndarray, queries: np.ndarray, marker: float = np.inf
) -> tuple[np.ndarray, np.ndarray]:
    shape = N_QUERIES, features.shape[1]
    least, most = np.full(shape, np.inf), np.full(shape, -np.inf)
    text.bounds(features, queries, marker, least, most)
    return least, most


@given(st.integers(1, 12), st.integers(1, 4), st.booleans(), st.integers(0, 2**32 - 1))
def test_rows_are_placed_within_the_bounds_of_their_query(n: int, d: int, rescale: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    features, queries = rng.integers(-5, 6, (n, d)) / 2.0, rng.integers(0, N_QUERIES, n)
    least, most = bounds(features, queries)
    to, out = rng.permutation(n), np.full((n, d), np.nan)
    text.place(features, queries, to, least, most, rescale, out)
    for query in np.unique(queries):
        own = features[queries == query]
        np.testing.assert_array_equal(least[query], own.min(axis=0))
        np.testing.assert_array_equal(most[query], own.max(axis=0))
        span = own.max(axis=0) - own.min(axis=0)
        scaled = np.where(span > 0, (own - own.min(axis=0)) / np.where(span > 0, span, 1), 0)
        np.testing.assert_array_equal(out[to[queries == query]], scaled if rescale else own)


def test_marks_of_infinity_do_not_widen_a_query_and_are_cut_off() -> None:
    features, queries = np.array([[1.0], [3.0], [1e300]]), np.zeros(3, np.int64)
    least, most = bounds(features, queries, marker=1e200)
    assert (least[0, 0], most[0, 0]) == (1.0, 3.0)
    out = np.empty((3, 1))
    text.place(features, queries, np.arange(3), least, most, True, out)
    assert out.ravel().tolist() == [0.0, 1.0, 1.0]


def test_a_span_that_is_too_wide_for_a_float() -> None:
    features, queries = np.array([[-1.5e308], [1.5e308], [0.0]]), np.zeros(3, np.int64)
    least, most = bounds(features, queries)
    out = np.empty((3, 1))
    text.place(features, queries, np.arange(3), least, most, True, out)
    assert out.ravel().tolist() == pytest.approx([0.0, 1.0, 0.5])


def test_columns_that_the_documents_lack_are_zero() -> None:
    least, most = np.full((N_QUERIES, 2), np.inf), np.full((N_QUERIES, 2), -np.inf)
    text.bounds(np.array([[4.0]]), np.array([1]), np.inf, least, most)
    assert least[1].tolist() == most[1].tolist() == [4.0, 0.0]
