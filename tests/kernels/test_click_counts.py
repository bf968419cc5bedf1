"""Counts of clicks, the index of KL-UCB and the likeliest position-based model."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from rankloop.kernels import click_counts
from rankloop.kernels.click_counts import log_level, upper_bound

# Counts of clicks by position and item, against numpy.


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


# The KL-UCB index against a root finder.


def kl(p: float, q: float) -> float:
    return (p * math.log(p / q) if p > 0 else 0.0) + ((1 - p) * math.log((1 - p) / (1 - q)) if p < 1 else 0.0)


@pytest.mark.parametrize("mean", [0.0, 1e-3, 0.2, 0.5, 0.97])
@pytest.mark.parametrize("n", [1.0, 7.0, 1e3, 1e7])
@pytest.mark.parametrize("level", [0.01, 2.0, 20.0])
def test_the_index_is_that_of_a_root_finder(mean: float, n: float, level: float) -> None:
    high = 1 - 1e-16
    expected = (
        1.0
        if n * kl(mean, high) <= level
        else brentq(lambda q: n * kl(mean, q) - level, mean, high, xtol=1e-15)
    )
    assert upper_bound(mean, n, level) == pytest.approx(expected, abs=1e-9)


def test_the_index_at_its_ends() -> None:
    assert upper_bound(0.3, 0.0, 1.0) == 1.0
    assert upper_bound(1.0, 5.0, 1.0) == 1.0
    assert upper_bound(0.3, 5.0, 0.0) == 0.3
    assert log_level(1.0) == 0.0
    assert log_level(1000.0) == pytest.approx(math.log(1000) + 3 * math.log(math.log(1000)))


# The likeliest attractions and examinations, against a root finder and against their neighbours.


@pytest.mark.parametrize("start", [0.01, 0.5, 0.99, 2.0])
def test_the_likeliest_attraction_is_the_root_of_the_derivative(start: float) -> None:
    rng = np.random.default_rng(4)
    kappa = np.array([1.0, 0.7, 0.25])
    for _ in range(20):
        N = rng.integers(1, 200, (3, 2)).astype(float)
        S = np.minimum(rng.binomial(N.astype(int), 0.4 * kappa[:, None]) + 1.0, N)

        def derivative(theta: float, S: np.ndarray = S[:, 1], N: np.ndarray = N[:, 1]) -> float:
            return float(((N * kappa * theta - S) / (1 - kappa * theta)).sum())

        high = 1 - 1e-12
        expected = high if derivative(high) < 0 else brentq(derivative, 1e-9, high, xtol=1e-15)
        assert click_counts.item_root(S, N, kappa, 1, start) == pytest.approx(expected, abs=1e-9)


def test_without_a_click_nothing_attracts() -> None:
    assert click_counts.item_root(np.zeros((2, 3)), np.ones((2, 3)), np.array([1.0, 0.5]), 2, 0.5) == 0.0


@pytest.mark.judges("2022-196")
def test_the_fit_maximises_the_likelihood() -> None:
    rng = np.random.default_rng(5)
    theta, kappa = rng.random(6) * 0.9, np.array([1.0, 0.6, 0.3, 0.1])
    N = rng.integers(500, 3000, (4, 6)).astype(float)
    S = rng.binomial(N.astype(int), np.outer(kappa, theta)).astype(float)
    theta_hat, kappa_hat = np.full(6, 0.5), np.ones(4)
    assert click_counts.fit(S, N, theta_hat, kappa_hat, 500) < 500

    def likelihood(t: np.ndarray, k: np.ndarray) -> float:
        p = np.outer(k, t)
        return float((S * np.log(p) + (N - S) * np.log1p(-p)).sum())

    best = likelihood(theta_hat, kappa_hat)
    assert best >= likelihood(theta, kappa)
    for _ in range(200):
        other = np.clip(theta_hat + 0.01 * rng.standard_normal(6), 1e-6, 1 - 1e-6)
        looks = np.append(1.0, np.clip(kappa_hat[1:] + 0.01 * rng.standard_normal(3), 1e-6, 1 - 1e-6))
        assert likelihood(other, looks) <= best + 1e-9
    np.testing.assert_allclose(theta_hat, theta, atol=0.05)
    np.testing.assert_allclose(kappa_hat, kappa, atol=0.05)


def test_fitted_examinations_do_not_rise() -> None:
    N = np.full((4, 3), 100.0)
    S = np.array(
        [[60.0, 40, 20], [10, 8, 4], [40, 25, 12], [20, 15, 7]]
    )  # positions 1 and 2 the wrong way round
    theta, kappa = np.full(3, 0.5), np.ones(4)
    click_counts.fit(S, N, theta, kappa, 500)
    assert kappa[0] == 1.0
    assert (np.diff(kappa) <= 0).all()
    assert kappa[1] == kappa[2], "pooled"
