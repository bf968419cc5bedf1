"""MW: its rounds are those of the paper, and it stays exact."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rankloop import environments, rankers, simulation
from rankloop.base import Ranking


@pytest.mark.judges("2022-199")
def test_a_round_is_that_of_the_paper() -> None:
    ranker = rankers.MW(n_items=4, n_positions=2, eta=0.3, gamma=0.1)
    shown = ranker.rank(rng=np.random.default_rng(3))
    np.testing.assert_allclose(shown.propensities, 0.25)
    ranker.learn(shown, [1, 0])  # the first was clicked: no loss
    W = np.full((2, 4), 0.25)
    W[1, shown.items[1]] *= math.exp(-0.3 / 0.25)
    W /= W.sum(axis=1, keepdims=True)  # no item is above one
    np.testing.assert_allclose(ranker.state.W, W)
    np.testing.assert_allclose(ranker.x, 0.9 * W + 0.1 / 4)
    np.testing.assert_allclose(ranker.state.rows, ranker.x.sum(axis=0))


def test_lists_are_drawn_with_the_chances_that_the_ticket_tells() -> None:
    ranker = rankers.MW(n_items=4, n_positions=2, eta=0.5, gamma=0.1)
    rng = np.random.default_rng(4)
    for _ in range(30):
        shown = ranker.rank(rng=rng)
        ranker.learn(shown, shown.items < 2)
    counts = np.zeros((2, 4))
    for _ in range(20_000):
        shown = ranker.rank(rng=rng)
        counts[[0, 1], shown.items] += 1
        np.testing.assert_array_equal(shown.propensities, ranker.x[[0, 1], shown.items])
    np.testing.assert_allclose(counts / 20_000, ranker.x, atol=0.015)


def test_it_stays_exact_when_the_weights_are_nearly_a_list() -> None:
    people = environments.named("yandex")
    ranker = rankers.MW(n_items=10, n_positions=5, horizon=100_000)
    trace = simulation.play(ranker, people, rounds=100_000, seed=1, points=10)
    assert trace.counters["projection_inexact"] == 0
    assert trace.counters["projection_steps"] < 3 * 100_000
    assert trace.total_regret < ranker.regret_bound(100_000)


def test_constants_come_from_the_horizon_and_bad_arguments_are_named() -> None:
    ranker = rankers.MW(n_items=10, n_positions=5, horizon=10_000)
    assert ranker.gamma == pytest.approx(math.sqrt(10 * math.log(10) / 10_000))
    assert ranker.eta == pytest.approx(math.sqrt((1 - ranker.gamma) * math.log(10) / 100_000))
    with pytest.raises(ValueError, match="horizon must be"):
        rankers.MW(n_items=3, eta=0.1)
    with pytest.raises(ValueError, match=r"eta must be .* got -1"):
        rankers.MW(n_items=3, horizon=10, eta=-1)
    ranker = rankers.MW(n_items=2, horizon=10)
    with pytest.raises(ValueError, match="must be probabilities"):
        ranker.learn(Ranking(np.arange(2), np.array([0.5, 0.0])), [0, 1])
    with pytest.raises(ValueError, match="saved state 'W' must sum to 1"):
        ranker.load(ranker.save() | {"W": np.full((2, 2), 0.6)})
