"""Counts of clicks by position and item, against numpy."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rankloop.kernels import click_counts


@numba.njit
def count(S: Any, N: Any, items: Any, clicks: Any) -> None:
    click_counts.count(S, N, items, clicks)


@numba.njit
def clicks_and_looks(S: Any, N: Any, kappa: Any, i: int, clicks: float, looks: float) -> Any:
    return click_counts.clicks_and_looks(S, N, kappa, i, clicks, looks)


@given(st.integers(1, 5), st.integers(0, 4), st.integers(0, 30), st.integers(0, 2**32 - 1))
def test_rounds_are_counted_where_they_were_shown(m: int, more: int, rounds: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = m + more
    S, N, expected_S, expected_N = (np.zeros((m, n)) for _ in range(4))
    for _ in range(rounds):
        items, clicks = rng.permutation(n)[:m], rng.integers(0, 2, m).astype(float)
        count(S, N, items, clicks)
        expected_S[np.arange(m), items] += clicks
        expected_N[np.arange(m), items] += 1
    np.testing.assert_array_equal(S, expected_S)
    np.testing.assert_array_equal(N, expected_N)


def test_clicks_and_looks_of_an_item_and_of_a_position() -> None:
    rng = np.random.default_rng(1)
    S, N, kappa, theta = rng.random((3, 5)), rng.random((3, 5)), rng.random(3), rng.random(5)
    expected = 0.5 + S[:, 2].sum(), 1.0 + kappa @ N[:, 2]
    np.testing.assert_allclose(clicks_and_looks(S, N, kappa, 2, 0.5, 1.0), expected)
    expected = S[1].sum(), N[1] @ theta
    np.testing.assert_allclose(clicks_and_looks(S.T, N.T, theta, 1, 0.0, 0.0), expected)


def test_the_first_item_that_was_never_first() -> None:
    N = np.ones((2, 4))
    assert click_counts.first_unseen(N) == -1
    N[1] = 0.0
    assert click_counts.first_unseen(N) == -1, "other positions do not count"
    N[0, [2, 3]] = 0.0
    assert click_counts.first_unseen(N) == 2
