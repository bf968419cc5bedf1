"""The three estimates of the losses: unbiased, by enumeration of every list with its chance, in time and late."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from rankloop.base import Ranking
from rankloop.rankers import FTRLPBM
from tests.kernels.lists import law
from tests.rankers.test_ftrl_pbm import ESTIMATORS, check_leader

Floats = NDArray[np.float64]


def played(estimator: str, m: int, n: int, rounds: int, seed: int) -> FTRLPBM:
    ranker = FTRLPBM(n_items=n, n_positions=m, estimator=estimator)
    play_on(ranker, rounds, seed)
    return ranker


def play_on(ranker: FTRLPBM, rounds: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    attraction = np.linspace(0.9, 0.2, ranker.n_items)
    for _ in range(rounds):
        shown = ranker.rank(rng=rng)
        ranker.learn(shown, rng.random(ranker.n_positions) < attraction[shown.items])


def expected_estimate(ranker: FTRLPBM, x: Floats, losses: Floats) -> Floats:
    """The mean of what is added to L_hat, over lists drawn from `x`, if position j loses losses[j, i] with item i."""
    m, n = losses.shape
    saved, mean = ranker.save(), np.zeros((m, n))
    for shown, chance in law(x).items():
        items = np.array(shown)
        ticket = Ranking(items, x[np.arange(m), items])
        ranker.learn(ticket, 1 - losses[np.arange(m), items])
        mean += chance * (ranker.state.L_hat - saved["L_hat"])
        ranker.load(saved)
    return mean


@pytest.mark.judges("2022-166")
@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(("m", "n", "rounds"), [(2, 4, 0), (2, 4, 60), (3, 3, 40), (1, 3, 500), (2, 3, 2000)])
def test_in_time(estimator: str, m: int, n: int, rounds: int) -> None:
    ranker = played(estimator, m, n, rounds, seed=1)
    rng = np.random.default_rng(2)
    for _ in range(3):
        losses = rng.integers(0, 2, (m, n)).astype(np.float64)
        mean = expected_estimate(ranker, ranker.x, losses)
        np.testing.assert_allclose(mean, losses, rtol=0, atol=1e-6)


@pytest.mark.judges("2022-166")
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_late(estimator: str) -> None:
    # Lists were drawn long ago, from another x; baselines are those of today, which the lists had no part in.
    ranker = played(estimator, 2, 4, rounds=30, seed=3)
    x = ranker.x
    play_on(ranker, 300, seed=4)
    assert np.abs(ranker.x - x).max() > 0.05
    losses = np.array([[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 1.0, 0.0]])
    np.testing.assert_allclose(expected_estimate(ranker, x, losses), losses, rtol=0, atol=1e-6)


def test_each_in_its_own_words() -> None:
    # Item 1 at position 0, not clicked; item 0 at position 1, clicked.
    for estimator in ESTIMATORS:
        ranker = played(estimator, 2, 3, rounds=25, seed=5)
        state = ranker.save()
        x, t = ranker.x, int(state["t"][0])
        B = np.zeros((2, 3))
        if estimator == "reduced-variance":
            B = np.where(x >= 1 / (4 * t), 0.5, 0.0)  # eta_t^2
        elif estimator == "mean":
            B = (state["lost"] + 0.5) / (state["seen"] + 1)
            assert state["seen"].sum() == 50
        expected = state["L_hat"] + B
        expected[0, 1] += (1 - B[0, 1]) / x[0, 1]
        expected[1, 0] += (0 - B[1, 0]) / x[1, 0]
        ranker.learn(Ranking(np.array([1, 0]), x[[0, 1], [1, 0]]), [0, 1])
        np.testing.assert_allclose(ranker.state.L_hat, expected, rtol=1e-12)


@pytest.mark.parametrize(("said", "baseline"), [(0.05, 0.0), (0.25, 0.0), (0.3, 0.5)])
def test_the_reduced_variance_has_no_baseline_where_chances_are_small(said: float, baseline: float) -> None:
    # Item 0 is never clicked; how likely it was said to be decides on which side of eta_t^2 = 1 / (4 t) its x is.
    ranker = FTRLPBM(n_items=3, n_positions=1, estimator="reduced-variance")
    for _ in range(100):
        ranker.learn(Ranking(np.array([0]), np.array([said])), [0])
    x, eta_squared = ranker.x, 1 / (4 * 101)
    assert (x[0, 0] >= eta_squared) == (baseline > 0)
    assert x[0, 0] < 2 * eta_squared < x[0, 1]
    before = ranker.save()["L_hat"]
    ranker.learn(Ranking(np.array([1]), x[0, 1:2]), [1])
    added = ranker.state.L_hat - before
    np.testing.assert_allclose(added[0, [0, 2]], [baseline, 0.5], rtol=0, atol=1e-12)


def test_variances_are_as_the_table_says() -> None:
    # Erratum C14: at x = 0.1 and a click rate of 0.036 (the mean of Yandex) 8.67 for the loss, far less with baselines.
    x, click_rate = 0.1, 0.0364
    loss = (1 - click_rate) / x - (1 - click_rate) ** 2
    centred = {}
    for name, B in (("reduced-variance", 0.5), ("mean", 1 - click_rate)):
        second = (click_rate * B**2 + (1 - click_rate) * (1 - B) ** 2) / x
        centred[name] = second - (1 - click_rate - B) ** 2
    assert loss == pytest.approx(8.67, abs=0.1)
    assert centred["mean"] < centred["reduced-variance"] < loss / 3


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(("m", "n"), [(1, 3), (2, 5), (3, 3)])
def test_a_late_click_that_outdoes_its_baseline(estimator: str, m: int, n: int) -> None:
    # (loss - B) / p is so far below zero that D = L_hat + u + v is, too. t / D^2 has the same sums on the wrong side
    # of zero, where the item that was clicked against all odds would be shown least instead of most.
    ranker = played(estimator, m, n, rounds=400, seed=6)
    item = int(ranker.x[0].argmin())
    items = np.array([item, *(i for i in range(n) if i != item)][:m])
    before = ranker.counters()["solver_fallbacks"]
    ranker.learn(Ranking(items, np.full(m, 1e-6)), np.ones(m))
    assert ranker.counters() == {"solver_fallbacks": before + (estimator != "loss"), "solver_inexact": 0}
    assert (ranker.x[0, item] > 0.99) == (estimator != "loss")
    check_leader(ranker)


def test_early_clicks_against_the_running_mean() -> None:
    # Everybody clicks; in the first rounds that is news to a mean that starts at one half.
    ranker = FTRLPBM(n_items=10, n_positions=5, estimator="mean")
    rng = np.random.default_rng(0)
    for _ in range(2000):
        ranker.learn(ranker.rank(rng=rng), np.ones(5))
        check_leader(ranker)
