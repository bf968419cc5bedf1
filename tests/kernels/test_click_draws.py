"""Draws from the posterior of the position-based model: against SciPy, and a fit against its root."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from rankloop.kernels import click_draws
from rankloop.kernels.click_counts import item_root
from rankloop.kernels.click_draws import beta, draw_examinations, fit_turn, normal, weigh_item


def keys(n: int) -> np.ndarray:
    return np.random.default_rng(1).bit_generator.random_raw(n)


def test_normal_numbers_are_the_quantiles_of_scipy() -> None:
    u = np.concatenate(
        [10.0 ** -np.arange(1, 16), np.linspace(0.001, 0.999, 501), 1 - 10.0 ** -np.arange(1, 12)]
    )
    got = np.array([normal(one) for one in u])
    np.testing.assert_allclose(got, stats.norm.ppf(u), rtol=2e-8, atol=1e-8)


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (1.0, 99.0), (0.3, 2.0), (4.0, 8.0), (300.0, 20.0)])
def test_drawn_shares_are_nearly_beta(a: float, b: float) -> None:
    draws = np.array([beta(a, b, key, 3) for key in keys(20_000)])
    law = stats.beta(a, b)
    assert draws.mean() == pytest.approx(law.mean(), abs=4 * law.std() / np.sqrt(20_000) + 0.002 * law.mean())
    assert draws.std() == pytest.approx(law.std(), rel=0.03)
    # Wilson and Hilferty's law is not exact: a Kolmogorov distance of .01 is what it may cost.
    assert stats.ks_1samp(draws, law.cdf).statistic < 0.02


def test_scoring_ends_at_the_likeliest_attraction() -> None:
    # With thousands of looks the prior's one click does not matter any more.
    rng = np.random.default_rng(2)
    kappa = np.array([1.0, 0.5, 0.2])
    N = rng.integers(20_000, 90_000, (3, 4)).astype(float)
    S = rng.binomial(N.astype(int), np.outer(kappa, [0.9, 0.5, 0.1, 0.02])).astype(float)
    for i in range(4):
        theta = 0.5
        for _ in range(200):
            theta = weigh_item(S, N, theta, kappa, 0.5, i)
        assert theta == pytest.approx(item_root(S, N, kappa, i, 0.5), rel=2e-3)


def test_the_fit_finds_positions_and_items() -> None:
    theta, kappa = np.array([0.9, 0.6, 0.3, 0.1]), np.array([0.4, 1.0, 0.7])
    N = np.full((3, 4), 1e6)
    fitted, examined, mean = np.full(4, 0.5), np.full(3, 0.5), 0.5
    scratch = click_draws.scratch(4, 3)
    for _ in range(300):
        mean = fit_turn(N * np.outer(kappa, theta), N, fitted, examined, mean, True, scratch)
    np.testing.assert_allclose(fitted, theta, rtol=1e-3)
    np.testing.assert_allclose(examined, kappa, rtol=1e-3)


def test_what_only_products_say_stays_open() -> None:
    """Two items that always stood at a position each: their examinations may have any ratio. Mixed once, they may not.

    A draw of each coordinate given the others (the wrong version) has a spread of .003 in both cases.
    """
    theta, kappa = np.array([0.5, 0.4]), np.array([1.0, 0.5])
    apart = np.array([[1e5, 0.0], [0.0, 1e5]])
    mixed = np.full((2, 2), 5e4)
    scratch = click_draws.scratch(2, 2)
    spread = []
    for N in (apart, mixed):
        ratios = []
        for key in keys(2_000):
            draw_examinations(N * np.outer(kappa, theta), N, theta, kappa, 1.0, key, 0, scratch)
            ratios.append(np.log(scratch.kappa[1] / scratch.kappa[0] / 0.5))
        spread.append(np.std(ratios))
    assert spread[0] > 0.5
    # The ratio's variance: 1 / sum over items of the information on it, n p / (1 - p) of both positions in parallel.
    p = np.outer(kappa, theta)
    information = 5e4 * p / (1 - p)
    parallel = 1 / (1 / information).sum(axis=0)
    assert spread[1] == pytest.approx(parallel.sum() ** -0.5, rel=0.06)
