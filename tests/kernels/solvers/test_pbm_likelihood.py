"""The likeliest attractions and examinations, against a root finder and against their neighbours."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq

from rankloop.kernels import click_counts


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
