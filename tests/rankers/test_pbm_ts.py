"""PBM-TS: its draws have the law of the model given the clicks, and it plays well on them."""

from __future__ import annotations

import numpy as np
import pytest

from rankloop import rankers
from rankloop.base import Ranking
from tests.rankers.odd_positions import regret_where_the_middle_is_seen_first


def test_with_one_position_draws_are_beta() -> None:
    ranker = rankers.PBMTS(n_items=2, n_positions=1, examination=[1.0])
    ranker.state.S[...] = [[3, 20]]
    ranker.state.N[...] = [[10, 25]]
    draws = chain(ranker, 20_000)[0]
    np.testing.assert_allclose(draws.mean(axis=0), [4 / 12, 21 / 27], atol=0.01)
    np.testing.assert_allclose(
        draws.std(axis=0), [np.sqrt(4 * 8 / (12**2 * 13)), np.sqrt(21 * 6 / (27**2 * 28))], atol=0.01
    )


def chain(ranker: rankers.PBMTS, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Draws one after the other, without learning anything new in between."""
    rng, thetas, kappas = np.random.default_rng(1), [], []
    for _ in range(length):
        theta, kappa = ranker.rank(rng=rng).memo
        ranker.state.theta[...] = theta
        ranker.state.kappa[...] = kappa
        thetas.append(theta)
        kappas.append(kappa)
    return np.array(thetas), np.array(kappas)


def test_attractions_and_examinations_are_drawn_from_their_joint_law() -> None:
    # One item, one position: density theta^S kappa^S (1 - theta kappa)^(N - S) on the unit square, by quadrature.
    S, N = 4.0, 10.0
    ranker = rankers.PBMTS(n_items=1, sweeps=3)
    ranker.state.S[...], ranker.state.N[...] = S, N
    thetas, kappas = chain(ranker, 30_000)
    grid = (np.arange(400) + 0.5) / 400
    theta, kappa = np.meshgrid(grid, grid)
    density = (theta * kappa) ** S * (1 - theta * kappa) ** (N - S)
    density /= density.sum()
    products = (thetas * kappas)[:, 0]
    assert products.mean() == pytest.approx((density * theta * kappa).sum(), abs=0.01)
    assert thetas.mean() == pytest.approx((density * theta).sum(), abs=0.02)
    assert thetas.std() == pytest.approx(
        np.sqrt((density * theta**2).sum() - (density * theta).sum() ** 2), abs=0.02
    )


def test_the_best_items_go_where_people_look_most() -> None:
    ranker = rankers.PBMTS(n_items=3, n_positions=3, examination=[0.2, 1.0, 0.5])
    ranker.state.N[...] = 10**6
    ranker.state.S[...] = np.outer([0.2, 1.0, 0.5], [0.3, 0.6, 0.9]) * 10**6
    ranker.state.theta[...] = [0.3, 0.6, 0.9]
    shown = ranker.rank(rng=np.random.default_rng(1))
    assert shown.items.tolist() == ranker.current().tolist() == [0, 2, 1]
    assert not shown.explored


def test_the_draw_is_kept_when_it_comes_back() -> None:
    ranker = rankers.PBMTS(n_items=4, n_positions=2)
    shown = ranker.rank(rng=np.random.default_rng(3))
    np.testing.assert_array_equal(ranker.state.theta, 0.5)
    ranker.learn(shown, [1, 0])
    np.testing.assert_array_equal(ranker.state.theta, shown.memo[0])
    np.testing.assert_array_equal(ranker.state.kappa, shown.memo[1])


def test_it_learns_positions_in_any_order_and_little_is_lost() -> None:
    assert regret_where_the_middle_is_seen_first(rankers.PBMTS(n_items=5, n_positions=3)) < 150


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="examination must be 2 numbers"):
        rankers.PBMTS(n_items=3, n_positions=2, examination=[0.5])
    with pytest.raises(ValueError, match="sweeps must be"):
        rankers.PBMTS(n_items=3, sweeps=0)
    ranker = rankers.PBMTS(n_items=2)
    with pytest.raises(ValueError, match="must hold probabilities"):
        ranker.learn(Ranking(np.arange(2), None, (np.zeros(2), np.ones(2))), [0, 1])
    with pytest.raises(ValueError, match="'theta' must be probabilities"):
        ranker.load(ranker.save() | {"theta": np.zeros(2)})


def test_what_is_forgotten_counts_for_less_and_less() -> None:
    ranker = rankers.PBMTS(n_items=3, n_positions=2, forget=20)
    rng, N = np.random.default_rng(1), np.zeros((2, 3))
    for _ in range(50):
        shown = ranker.rank(rng=rng)
        ranker.learn(shown, [1, 0])
        N *= 1 - 1 / 20
        N[[0, 1], shown.items] += 1
    np.testing.assert_allclose(ranker.state.N, N)
    np.testing.assert_allclose(ranker.state.S, N * [[1], [0]])
    with pytest.raises(ValueError, match=r"forget must be .*at least 2, got 1"):
        rankers.PBMTS(n_items=3, forget=1)
